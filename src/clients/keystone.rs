//! Keystone v3 tokens.

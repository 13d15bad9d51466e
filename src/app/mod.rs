//! The use cases that console and commands share.

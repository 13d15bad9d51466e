//! Workflows: straight-line orchestration against the context port. No tokio, no clients, no clock.

pub mod cx;
pub mod defs;
pub mod enroll;

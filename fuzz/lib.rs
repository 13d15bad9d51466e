//! Puts libFuzzer before the targets.

#[path = "targets/mod.rs"]
pub mod targets;

pub use libfuzzer_sys;

/// The target of the binary's own name.
#[macro_export]
macro_rules! fuzz {
    () => {
        $crate::libfuzzer_sys::fuzz_target!(|bytes: &[u8]| $crate::run(env!("CARGO_BIN_NAME"), bytes));
    };
}

/// Runs a target on an input.
pub fn run(name: &str, bytes: &[u8]) {
    let (_, target) = targets::TARGETS.iter().find(|(known, _)| *known == name).expect("a binary for each target");
    target(bytes);
}

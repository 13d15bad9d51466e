//! Configuration: one TOML file to typed, validated settings (K1). Nothing else reads keys, files or environment.

pub mod settings;

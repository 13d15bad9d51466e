//! Configuration: one TOML file to typed, validated settings (K1). Nothing else reads keys, files or environment.

mod eligibility;
mod error;
mod ironic;
mod load;
mod nats;
mod nearest;
pub mod paths;
mod push;
pub mod settings;
mod site;
mod table;

pub use error::{ConfigError, ConfigErrors};
pub use load::{Loaded, load, parse, read};

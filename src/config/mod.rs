//! Configuration: one TOML file to typed, validated settings (K1). Nothing else reads keys, files or environment.

mod eligibility;
mod error;
pub mod example;
mod ironic;
mod load;
mod log;
mod nats;
pub(crate) mod nearest;
pub mod paths;
mod push;
mod schema;
pub mod settings;
mod shape;
mod site;
mod table;
mod unchecked;
pub mod vault;
mod webhooks;

pub use error::{ConfigError, ConfigErrors, Excerpt};
pub use load::{Loaded, load, parse, read};
pub use schema::schema;

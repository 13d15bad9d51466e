//! The use cases that console and commands share: submit, cancel, retry, look at fleet and runs, follow the feed.

mod feed;
mod fleet;
mod handle;
mod runs;
mod submit;

pub use feed::{FeedEvent, SystemHealth};
pub use fleet::{Fleet, FleetRow};
pub use handle::{App, AppError, OpenError};
pub use runs::{RunSummary, Runs};
pub use submit::SubmitError;

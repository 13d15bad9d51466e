//! The use cases that console and commands share: submit, plan, cancel, retry, look at fleet and runs, follow the feed.

mod backfill;
mod batch;
mod beside;
mod cables;
pub mod doctor;
mod elevation;
mod export;
mod feed;
mod fleet;
mod handle;
mod history;
mod keep;
mod lead;
mod learn;
mod metrics;
mod plan;
mod rack;
mod roster;
mod runs;
mod steer;
mod submit;
mod webhooks;
mod wiring;

pub use backfill::{BackfillError, Backfilled, Coverage};
pub use batch::{Judged, Name, Sorted, Verdict};
pub use cables::Cables;
pub use export::ExportError;
pub use feed::{FeedEvent, SystemHealth};
pub use fleet::{Fleet, FleetRow};
pub use handle::{App, AppError, OpenError, Opening};
pub use lead::Role;
pub use metrics::Listening;
pub use plan::Planner;
pub use rack::{Consent, RackError};
pub use roster::{Changes, Entry, Order, Roster};
pub use runs::{RunSummary, Runs};
pub use submit::SubmitError;
pub use webhooks::{Counts, Told, Webhooks};
pub use wiring::Wiring;

pub use crate::store::Leader;

//! The store: SQLite with one writer thread and group commit. Journal, fleet, proofs, migrations.
//!
//! Everything in it but the runs and the proofs can be rebuilt from NetBox and Ironic. A write is answered after the
//! commit that carries it is on the disk (WAL, `synchronous=FULL`); reads use connections of their own and see what was
//! committed. Any number of processes may have the store open; [`Lead`] decides which of them runs the engine.

mod commands;
mod ends;
mod error;
mod fleet;
mod folder;
mod handle;
mod health;
mod heard;
mod journal;
mod latency;
mod lead;
mod listing;
mod objects;
mod proofs;
mod queue;
mod readers;
mod rows;
mod runs;
mod schema;
mod stir;
mod took;
mod watcher;
mod writer;

pub use commands::{Answer, Command, CommandState, Wish};
pub use ends::{Ends, health_in};
pub use error::StoreError;
pub use handle::Store;
pub use health::SyncState;
pub use lead::{Candidate, Lead, LeadError, Leader};
pub use listing::{Around, Brief, Mark};
pub use objects::{Object, ObjectChange, ObjectKind, Read};
pub use proofs::ProveOutcome;
pub use runs::{RunRow, RunStatus, Submit, Waiting};
pub use stir::{Stir, Stirred};
pub use watcher::{News, Watcher};
pub use writer::Commits;

//! The store: SQLite with one writer thread and group commit. Journal, fleet, proofs, migrations.

/// A handle to the store. Cheap to clone; all writes go through one thread.
#[derive(Clone)]
pub struct Store {}

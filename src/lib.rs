//! muster: the console of the engineer at the rack. See `docs/` for what it does and `README.md` for how to start.
//!
//! Layers, each importing only those below it: cli, tui, app, engine, activities, inventory, clients, store, config,
//! workflows, domain. `lab` stands beside them and uses `domain` at most. `tests/layering.rs` proves it.

pub mod activities;
pub mod app;
pub mod cli;
pub mod clients;
pub mod config;
pub mod domain;
pub mod engine;
pub mod inventory;
pub mod lab;
pub mod store;
pub mod tui;
pub mod workflows;

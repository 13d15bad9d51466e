//! The console: a model, what events make of it, and how it is drawn. Only the runtime touches a terminal or a clock.

pub mod action;
pub mod effect;
pub mod environment;
pub mod event;
pub mod glyphs;
mod input;
pub mod keymap;
pub mod layout;
mod log_layer;
mod memory;
pub mod model;
mod outside;
pub mod paint;
mod runtime;
mod shelf;
pub mod terminal;
pub mod text;
pub mod theme;
pub mod update;
pub mod view;
pub mod widgets;

pub use log_layer::{LogLayer, log_layer};
pub use runtime::{Hands, TuiError, TuiOptions, run};

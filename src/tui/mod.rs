//! The console: a model, what events make of it, and how it is drawn. Only the runtime touches a terminal or a clock.

pub mod action;
pub mod effect;
pub mod event;
pub mod glyphs;
pub mod keymap;
pub mod layout;
pub mod model;
pub mod text;
pub mod theme;
pub mod update;
pub mod view;
pub mod widgets;

//! Observers: they keep the fleet store's view of NetBox and Ironic fresh, and say how fresh it is.

mod cursor;
pub mod ironic;
pub mod netbox;
pub mod notify;
pub mod project;
pub mod push;
mod schedule;
pub mod survey;
pub mod wiring;

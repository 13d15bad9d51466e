//! The rules and the words of the field. Pure: no async, no I/O, no clock.

pub mod cables;
pub mod checks;
pub mod device;
pub mod dhcp;
pub mod eligibility;
pub mod event;
pub mod failure;
pub mod host;
pub mod ids;
pub mod link;
pub mod lldp;
pub mod mac;
pub mod phase;
pub mod plan;
pub mod platform_class;
pub mod proof;
pub mod provision;
pub mod queue;
pub mod request;
pub mod root_device;
pub mod run_view;
pub mod story;
pub mod text;
pub mod verify;
pub mod wiring;

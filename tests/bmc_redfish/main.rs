//! The Redfish client: against captured trees, against the field's bugs, against real certificates.

mod bounds;
mod captured;
mod dell;
mod quirks;
mod tls;
mod tree;

//! IPMI 2.0 over LAN, as far as it takes to prove that somebody can log in: RMCP+ with the cipher suites 17 and 3.
//!
//! A client of our own over RustCrypto: what it reads comes from a BMC, or from whoever answers in its place, so every
//! byte of an answer is looked at before it is used, and nothing in it makes the program panic.

mod error;
mod keys;
mod link;
mod message;
mod packet;
mod prove;
mod rakp;
mod session;

pub use error::IpmiError;
pub use keys::Suite;
pub use prove::{BmcKey, Login, Patience, Privilege, Proof, prove};

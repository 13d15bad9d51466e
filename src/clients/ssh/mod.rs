//! SSH as the DHCP activity needs it: a verified connection, commands with an exit status, files that appear whole.

mod algorithms;
mod error;
pub mod known_hosts;
mod session;
mod sftp;
mod sign;

pub use error::SshError;
pub use session::{Deadlines, Output, SshClient, SshTarget, quote};
pub use sftp::Sftp;

//! Why a login over IPMI is not proven, told apart by who mends it.

use std::net::SocketAddr;

use super::prove::Privilege;

/// Why there is no proof. Names in it are those that were given; texts of a BMC are none.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum IpmiError {
    /// Nothing was sent: this machine has no way to that address.
    #[error("no way to {to} by UDP: {cause}")]
    NoWay { to: SocketAddr, cause: String },
    /// The host is there, and nobody listens at that port.
    #[error("{to} refuses UDP: nobody listens there for IPMI")]
    Refused { to: SocketAddr },
    #[error("{to} does not answer to '{asked}' ({tries} tries in {seconds} s)")]
    Silent { to: SocketAddr, asked: &'static str, tries: u32, seconds: u64 },
    #[error("{to} speaks IPMI, and not IPMI 2.0: {why}")]
    NotV2 { to: SocketAddr, why: String },
    #[error("{to} takes neither of the cipher suites 17 and 3: {why}")]
    NoCommonSuite { to: SocketAddr, why: String },
    #[error("the BMC has no IPMI user '{user}'")]
    UnknownUser { user: String },
    /// Seen by the console: nothing that proves the password was sent.
    #[error("the BMC's password of the IPMI user '{user}' is another one")]
    WrongPassword { user: String },
    #[error("the BMC lets '{user}' not in as {level}: {said}")]
    TooHigh { user: String, level: Privilege, said: String },
    /// For the whole time that was given for it.
    #[error("all IPMI sessions of {to} are taken ({tries} tries in {seconds} s)")]
    SessionsFull { to: SocketAddr, tries: u32, seconds: u64 },
    /// Name or password are none that IPMI 2.0 can carry.
    #[error("{why}")]
    Unfit { why: String },
    /// The BMC asks for its own key beside the password, and there is none to show.
    #[error("{to} wants a BMC key (K_g) beside the password")]
    BmcKey { to: SocketAddr },
    /// The password is right, and the BMC's own key is not.
    #[error("{to} has another BMC key (K_g) than the one that was given")]
    OtherBmcKey { to: SocketAddr },
    /// It says no for another reason.
    #[error("{to} refuses '{asked}': {said}")]
    Denied { to: SocketAddr, asked: &'static str, said: String },
    /// What came is no answer that this protocol knows.
    #[error("the answer of {to} to '{asked}' cannot be used: {what}")]
    Unusable { to: SocketAddr, asked: &'static str, what: &'static str },
}

/// The word for a status of Open Session and of RAKP messages.
pub(super) fn status_word(status: u8) -> String {
    let word = match status {
        0x01 => "no session is free",
        0x02 => "unknown session",
        0x03 => "unknown payload",
        0x04 => "unknown authentication algorithm",
        0x05 => "unknown integrity algorithm",
        0x06 => "no such authentication",
        0x07 => "no such integrity",
        0x08 => "the session is not active",
        0x09 => "no such role",
        0x0a => "the role is not allowed",
        0x0b => "no session is free for the role",
        0x0c => "a name of wrong length",
        0x0d => "no such name",
        0x0e => "no such GUID",
        0x0f => "wrong integrity value",
        0x10 => "unknown confidentiality algorithm",
        0x11 => "no such cipher suite",
        0x12 => "illegal parameter",
        _ => "a status that the standard does not know",
    };
    format!("{word} (0x{status:02x})")
}

/// The word for a completion code.
pub(super) fn completion_word(code: u8) -> String {
    let word = match code {
        0x80 => "not available for this user",
        0x81 => "above the limit of the channel or the user",
        0xc0 => "busy",
        0xc1 => "unknown command",
        0xc7 | 0xc8 | 0xcc => "the request has other fields than it knows",
        0xd4 => "the privilege does not reach",
        0xd5 => "not possible in this state",
        _ => "completion code",
    };
    format!("{word} (0x{code:02x})")
}

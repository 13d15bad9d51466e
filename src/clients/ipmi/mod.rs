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

/// Reads a datagram in every way in which one is read here. For the fuzz targets: the readers themselves are of no use to
/// anybody else.
#[doc(hidden)]
pub fn read_in_every_way(datagram: &[u8]) {
    let login = Login { username: "root".to_owned(), password: "calvin".to_owned().into(), bmc_key: None };
    let unsealed = packet::read_outside(datagram);
    for message in [datagram].into_iter().chain(unsealed.ok()) {
        message::answer(message, message::GET_DEVICE_ID, 1).ok();
    }
    for suite in [Suite::Three, Suite::Seventeen] {
        let mut exchange = rakp::Exchange::new(suite, &login, Privilege::Administrator, 1, 2);
        let keys = exchange.keys();
        for length in [0, suite.code_length()] {
            let Ok(packet) = packet::read(datagram, length) else { continue };
            keys.open(&packet).ok();
            exchange.second(packet.payload, 1).ok();
            exchange.fourth(packet.payload, 1).ok();
        }
        rakp::open_answer(datagram, 1, 1).ok();
        exchange.second(datagram, 1).ok();
        exchange.fourth(datagram, 1).ok();
    }
}

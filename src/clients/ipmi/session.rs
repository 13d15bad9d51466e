//! A session of RMCP+ that is open: questions in it, and its end. Dropped without its end it is ended all the same.

use std::net::SocketAddr;

use super::error::IpmiError;
use super::keys::Sealed;
use super::link::Link;
use super::message::{Answer, CLOSE_SESSION, answer, question};
use super::packet::{read, sealed};

/// An open session.
pub(super) struct Session<'a> {
    link: &'a Link,
    keys: Sealed,
    /// The console's number of it, and the BMC's.
    console: u32,
    managed: u32,
    /// Of the last packet that was sent in it.
    sequence: u32,
    /// Of the last question.
    number: u8,
    closed: bool,
}

impl<'a> Session<'a> {
    pub fn new(link: &'a Link, keys: Sealed, console: u32, managed: u32) -> Session<'a> {
        Session { link, keys, console, managed, sequence: 0, number: 0, closed: false }
    }

    pub fn to(&self) -> SocketAddr {
        self.link.to
    }

    /// Asks in the session.
    pub async fn ask(&mut self, asked: &'static str, command: u8, data: &[u8]) -> Result<Answer, IpmiError> {
        self.number = (self.number + 1) & 0x3f;
        let (number, console, managed) = (self.number, self.console, self.managed);
        let message = question(command, number, data);
        let (keys, sequence) = (&self.keys, &mut self.sequence);
        let send = || {
            // The same question under a new number: a BMC drops what it has seen.
            *sequence += 1;
            sealed(keys, managed, *sequence, &message)
        };
        let take = |datagram: &[u8]| {
            let packet = read(datagram, keys.suite().code_length())?;
            if packet.session != console {
                return Err("it is for another session");
            }
            answer(&keys.open(&packet)?, command, number)
        };
        self.link.ask(asked, send, take).await
    }

    /// Ends it. A BMC that does not answer to that has ended it, or will.
    pub async fn close(mut self) {
        let managed = self.managed.to_le_bytes();
        let ended = self.ask("close session", CLOSE_SESSION, &managed).await;
        self.closed = ended.is_ok();
    }
}

impl Drop for Session<'_> {
    /// A run that is cancelled drops what it waits for: the session is not left to the BMC's own patience.
    fn drop(&mut self) {
        if !self.closed {
            let message = question(CLOSE_SESSION, (self.number + 1) & 0x3f, &self.managed.to_le_bytes());
            self.link.tell(&sealed(&self.keys, self.managed, self.sequence + 1, &message));
        }
    }
}

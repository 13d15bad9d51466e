//! UDP to one BMC: a question is sent again until an answer comes that is one, or patience ends.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use tokio::net::UdpSocket;
use tokio::time::{Instant, timeout_at};

use super::error::IpmiError;
use super::packet::{Broken, DATAGRAM_MAX};

/// How often a question is sent.
const TRIES: u32 = 4;

/// The longest wait for one answer: a BMC under load takes seconds.
const WAIT_MAX: Duration = Duration::from_secs(4);

/// A socket that hears one BMC only.
pub(super) struct Link {
    socket: UdpSocket,
    pub to: SocketAddr,
    /// The wait after the first try; each further one is twice as long.
    first: Duration,
    until: Instant,
}

impl Link {
    /// Opens it. All questions together end at `until`.
    pub async fn open(to: SocketAddr, first: Duration, until: Instant) -> Result<Link, IpmiError> {
        let no_way = |error: std::io::Error| IpmiError::NoWay { to, cause: error.to_string() };
        let any: SocketAddr = match to {
            SocketAddr::V4(_) => (Ipv4Addr::UNSPECIFIED, 0).into(),
            SocketAddr::V6(_) => (Ipv6Addr::UNSPECIFIED, 0).into(),
        };
        let socket = UdpSocket::bind(any).await.map_err(no_way)?;
        // Connected: what others send is not heard, and a refusal is.
        socket.connect(to).await.map_err(no_way)?;
        Ok(Link { socket, to, first, until })
    }

    /// Asks until `read` takes a datagram. What it does not take is somebody else's, or late, or broken: the right answer may
    /// still come. `send` makes each try anew, since some have numbers that must not come twice.
    pub async fn ask<T>(
        &self,
        asked: &'static str,
        mut send: impl FnMut() -> Vec<u8>,
        mut read: impl FnMut(&[u8]) -> Result<T, Broken>,
    ) -> Result<T, IpmiError> {
        let began = Instant::now();
        let (mut broken, mut refused) = (None, 0);
        let (mut tries, mut wait) = (0, self.first.min(WAIT_MAX));
        let mut buffer = [0; DATAGRAM_MAX];
        while tries < TRIES && (tries == 0 || Instant::now() < self.until) {
            tries += 1;
            let datagram = send();
            // A refusal of an earlier try can be told here, and then nothing was sent.
            if let Err(error) = self.socket.send(&datagram).await {
                refused += self.refusal(error)?;
                self.socket.try_send(&datagram).ok();
            }
            let next = (Instant::now() + wait).min(self.until);
            while let Ok(heard) = timeout_at(next, self.socket.recv(&mut buffer)).await {
                match heard {
                    Ok(length) => match read(&buffer[..length]) {
                        Ok(answer) => return Ok(answer),
                        Err(what) => broken = Some(what),
                    },
                    Err(error) => {
                        refused += self.refusal(error)?;
                        // Nobody listens; the next try comes after its wait, since a BMC may just be starting.
                        tokio::time::sleep_until(next).await;
                        break;
                    }
                }
            }
            if refused > 1 && broken.is_none() {
                return Err(IpmiError::Refused { to: self.to });
            }
            wait = (wait * 2).min(WAIT_MAX);
        }
        let to = self.to;
        Err(match broken {
            Some(what) => IpmiError::Unusable { to, asked, what },
            None if refused > 0 => IpmiError::Refused { to },
            None => IpmiError::Silent { to, asked, tries, seconds: began.elapsed().as_secs() },
        })
    }

    /// Sends without waiting for an answer: for what ends something.
    pub fn tell(&self, datagram: &[u8]) {
        // Where it cannot be sent, the BMC ends the session by its own time.
        self.socket.try_send(datagram).ok();
    }

    fn refusal(&self, error: std::io::Error) -> Result<u32, IpmiError> {
        if error.kind() == std::io::ErrorKind::ConnectionRefused {
            return Ok(1);
        }
        Err(IpmiError::NoWay { to: self.to, cause: error.to_string() })
    }
}

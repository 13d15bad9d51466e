//! Datagrams as a BMC reads and writes them. What it cannot read it does not answer.

/// Payload types of RMCP+.
pub(super) mod payload {
    pub const OPEN: u8 = 0x10;
    pub const OPENED: u8 = 0x11;
    pub const RAKP1: u8 = 0x12;
    pub const RAKP2: u8 = 0x13;
    pub const RAKP3: u8 = 0x14;
    pub const RAKP4: u8 = 0x15;
}

const RMCP: [u8; 4] = [6, 0, 0xff, 7];
const PLUS: u8 = 6;

/// A datagram that was read.
pub(super) enum Frame<'a> {
    /// A message outside of any session.
    Outside(&'a [u8]),
    Plus(Packet<'a>),
}

/// A packet of RMCP+.
pub(super) struct Packet<'a> {
    pub kind: u8,
    /// Encrypted and authenticated.
    pub sealed: bool,
    pub session: u32,
    pub sequence: u32,
    pub payload: &'a [u8],
    /// From the authentication type to the end: trailer and code are behind the payload.
    pub whole: &'a [u8],
}

/// A little-endian number at a place.
pub(super) fn number(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..at + 4)?.try_into().ok().map(u32::from_le_bytes)
}

pub(super) fn read(datagram: &[u8]) -> Option<Frame<'_>> {
    let [6, _, _, 7, whole @ ..] = datagram else { return None };
    if whole.first() == Some(&PLUS) {
        let word = *whole.get(1)?;
        let length = usize::from(u16::from_le_bytes(whole.get(10..12)?.try_into().ok()?));
        return Some(Frame::Plus(Packet {
            kind: word & 0x3f,
            sealed: word & 0xc0 == 0xc0,
            session: number(whole, 2)?,
            sequence: number(whole, 6)?,
            payload: whole.get(12..12 + length)?,
            whole,
        }));
    }
    let length = usize::from(*whole.get(9)?);
    (whole.first() == Some(&0)).then(|| whole.get(10..10 + length))?.map(Frame::Outside)
}

/// A message outside of any session.
pub(super) fn outside(message: &[u8]) -> Vec<u8> {
    [&RMCP[..], &[0; 9], &[message.len() as u8], message].concat()
}

/// A packet that is neither encrypted nor authenticated.
pub(super) fn plain(kind: u8, payload: &[u8]) -> Vec<u8> {
    headed(kind, 0, 0, payload)
}

/// The head of a packet with its payload; a trailer follows where it is sealed.
pub(super) fn headed(kind: u8, session: u32, sequence: u32, payload: &[u8]) -> Vec<u8> {
    let length = (payload.len() as u16).to_le_bytes();
    [&RMCP[..], &[PLUS, kind], &session.to_le_bytes(), &sequence.to_le_bytes(), &length, payload].concat()
}

/// A question to the BMC.
pub(super) struct Question<'a> {
    /// Network function and command.
    pub function: u8,
    pub command: u8,
    pub data: &'a [u8],
    /// Who asks, and under which number.
    asker: [u8; 2],
}

pub(super) fn question(message: &[u8]) -> Option<Question<'_>> {
    let sum = |bytes: &[u8]| bytes.iter().fold(0u8, |sum, byte| sum.wrapping_add(*byte));
    let (head, tail) = message.split_at_checked(3)?;
    if tail.len() < 4 || sum(head) != 0 || sum(tail) != 0 {
        return None;
    }
    let data = &tail[3..tail.len() - 1];
    Some(Question { function: head[1] >> 2, command: tail[2], data, asker: [tail[0], tail[1]] })
}

impl Question<'_> {
    /// The answer to it.
    pub fn answer(&self, completion: u8, data: &[u8]) -> Vec<u8> {
        let close = |mut part: Vec<u8>| {
            let sum = part.iter().fold(0u8, |sum, byte| sum.wrapping_add(*byte));
            part.push(sum.wrapping_neg());
            part
        };
        let head = close(vec![self.asker[0], (self.function | 1) << 2]);
        let tail = close([&[0x20, self.asker[1], self.command, completion], data].concat());
        [head, tail].concat()
    }
}

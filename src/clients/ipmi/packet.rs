//! Frames of IPMI over UDP: RMCP, the session of IPMI 1.5 that carries the first question, and that of RMCP+.

use super::keys::Sealed;

/// Version 6, no sequence, class IPMI.
const RMCP: [u8; 4] = [0x06, 0x00, 0xff, 0x07];

/// The authentication type that says that RMCP+ follows.
const RMCP_PLUS: u8 = 0x06;

/// The largest datagram that is read: no answer to a question asked here comes near it.
pub(super) const DATAGRAM_MAX: usize = 1024;

/// What a packet of RMCP+ carries.
pub(super) mod kind {
    pub const IPMI: u8 = 0x00;
    pub const OPEN_REQUEST: u8 = 0x10;
    pub const OPEN_ANSWER: u8 = 0x11;
    pub const RAKP1: u8 = 0x12;
    pub const RAKP2: u8 = 0x13;
    pub const RAKP3: u8 = 0x14;
    pub const RAKP4: u8 = 0x15;
}

/// Why a datagram is not what it should be. The text is ours.
pub(super) type Broken = &'static str;

/// A packet of RMCP+.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Packet<'a> {
    pub kind: u8,
    pub encrypted: bool,
    pub authenticated: bool,
    pub session: u32,
    pub sequence: u32,
    pub payload: &'a [u8],
    /// What the code at its end is made over, and that code. Both empty where the packet is not authenticated.
    pub signed: &'a [u8],
    pub code: &'a [u8],
}

/// Four bytes at a place, as the protocol has numbers.
pub(super) fn number_at(bytes: &[u8], at: usize) -> Option<u32> {
    let four = bytes.get(at..at.checked_add(4)?)?;
    Some(u32::from_le_bytes(four.try_into().ok()?))
}

/// A message outside of any session, in the frame of IPMI 1.5.
pub(super) fn outside(message: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(RMCP.len() + 10 + message.len());
    out.extend(RMCP);
    out.extend([0; 9]);
    out.push(message.len() as u8);
    out.extend(message);
    out
}

/// The message in such a frame.
pub(super) fn read_outside(datagram: &[u8]) -> Result<&[u8], Broken> {
    let rest = after_rmcp(datagram)?;
    if rest.first() != Some(&0) {
        return Err("it is no message outside of a session");
    }
    let length = usize::from(*rest.get(9).ok_or("it ends within its header")?);
    // Some firmware pads: what lies behind the message is no part of it.
    rest.get(10..10 + length).ok_or("it is shorter than it says")
}

/// A packet of RMCP+ that is neither encrypted nor authenticated, outside of a session.
pub(super) fn plain(kind: u8, payload: &[u8]) -> Vec<u8> {
    framed(kind, 0, 0, payload)
}

/// The frame with its payload, without a trailer.
fn framed(kind: u8, session: u32, sequence: u32, payload: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(RMCP.len() + 12 + payload.len() + 40);
    out.extend(RMCP);
    out.extend([RMCP_PLUS, kind]);
    out.extend(session.to_le_bytes());
    out.extend(sequence.to_le_bytes());
    out.extend((payload.len() as u16).to_le_bytes());
    out.extend(payload);
    out
}

/// A message within a session: encrypted, and with the code that shows who sent it.
pub(super) fn sealed(keys: &Sealed, session: u32, sequence: u32, message: &[u8]) -> Vec<u8> {
    let payload = keys.encrypt(message);
    let mut out = framed(kind::IPMI | 0xc0, session, sequence, &payload);
    // The trailer makes the signed part a multiple of four, less the two bytes that end it.
    let pad = (4 - (out.len() - RMCP.len() + 2) % 4) % 4;
    out.extend(std::iter::repeat_n(0xff, pad));
    out.extend([pad as u8, 0x07]);
    let code = keys.sign(&out[RMCP.len()..]);
    out.extend(code);
    out
}

/// Reads a packet of RMCP+ whose code has a length. Checks no code.
pub(super) fn read(datagram: &[u8], code_length: usize) -> Result<Packet<'_>, Broken> {
    let rest = after_rmcp(datagram)?;
    if rest.first() != Some(&RMCP_PLUS) {
        return Err("it is no packet of RMCP+");
    }
    let word = *rest.get(1).ok_or("it ends within its header")?;
    let session = number_at(rest, 2).ok_or("it ends within its header")?;
    let sequence = number_at(rest, 6).ok_or("it ends within its header")?;
    let length: [u8; 2] = rest.get(10..12).and_then(|two| two.try_into().ok()).ok_or("it ends within its header")?;
    let (begin, length) = (12, usize::from(u16::from_le_bytes(length)));
    let payload = rest.get(begin..begin + length).ok_or("it is shorter than it says")?;
    let (encrypted, authenticated) = (word & 0x80 != 0, word & 0x40 != 0);
    let mut packet =
        Packet { kind: word & 0x3f, encrypted, authenticated, session, sequence, payload, signed: &[], code: &[] };
    if authenticated {
        let trailer = &rest[begin + length..];
        let pad_at = trailer.len().checked_sub(code_length + 2).ok_or("its trailer is too short")?;
        if usize::from(trailer[pad_at]) != pad_at {
            return Err("the padding of its trailer is not as long as it says");
        }
        let cut = rest.len() - code_length;
        (packet.signed, packet.code) = (&rest[..cut], &rest[cut..]);
    }
    Ok(packet)
}

fn after_rmcp(datagram: &[u8]) -> Result<&[u8], Broken> {
    match datagram {
        // The sequence is of a counter that IPMI does not use.
        [0x06, _, _, class, rest @ ..] if class & 0x1f == 0x07 => Ok(rest),
        _ => Err("it is no IPMI over RMCP"),
    }
}

#[cfg(test)]
mod tests {
    use super::super::keys::Suite;
    use super::super::keys::tests::keys;
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_frame_says_what_it_holds() {
        assert_eq!(read_outside(&outside(b"abc")), Ok(&b"abc"[..]));
        let plain = plain(kind::RAKP1, b"payload");
        let packet = read(&plain, 12).unwrap();
        assert_eq!((packet.kind, packet.payload), (kind::RAKP1, &b"payload"[..]));
        assert!(!packet.encrypted && !packet.authenticated && packet.code.is_empty());
        for cut in 0..plain.len() {
            assert!(read(&plain[..cut], 12).is_err(), "{cut}");
        }
    }

    #[test]
    fn what_is_sealed_is_aligned_and_every_changed_byte_is_seen() {
        for suite in Suite::ALL {
            let keys = keys(suite);
            for length in 0..40 {
                let message = vec![7; length];
                let datagram = sealed(&keys, 9, 3, &message);
                let packet = read(&datagram, suite.code_length()).unwrap();
                assert_eq!((packet.session, packet.sequence, packet.signed.len() % 4), (9, 3, 0));
                assert_eq!(keys.open(&packet).unwrap(), message, "{suite} {length}");
            }
            let datagram = sealed(&keys, 9, 3, b"a message");
            for at in 4..datagram.len() {
                let mut spoilt = datagram.clone();
                spoilt[at] ^= 1;
                let opened = read(&spoilt, suite.code_length()).and_then(|packet| keys.open(&packet));
                assert!(opened.is_err(), "{suite}: a change at {at} is not seen");
            }
        }
    }

    proptest! {
        #[test]
        fn no_datagram_makes_a_reader_panic(bytes in proptest::collection::vec(any::<u8>(), 0..80), code in 0usize..33) {
            let _ = read_outside(&bytes);
            let _ = read(&bytes, code);
            let framed = [&RMCP[..], &bytes].concat();
            let _ = read_outside(&framed);
            for suite in Suite::ALL {
                let keys = keys(suite);
                let mut plus = framed.clone();
                plus.insert(4, RMCP_PLUS);
                if let Ok(packet) = read(&plus, suite.code_length()) {
                    let _ = keys.open(&packet);
                }
            }
        }
    }
}

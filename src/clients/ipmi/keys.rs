//! The two cipher suites: hashes, the keys of a session made from a password, and what they seal.

use std::fmt;

use aes::Aes128;
use cbc::cipher::block_padding::NoPadding;
use cbc::cipher::{BlockModeDecrypt, BlockModeEncrypt, KeyIvInit};
use hmac::{Hmac, KeyInit, Mac};
use secrecy::zeroize::Zeroizing;
use sha1::Sha1;
use sha2::Sha256;

use super::packet::{Broken, Packet};

/// A cipher suite of RMCP+, by the number that the standard gives it. All encrypt by AES-128 in CBC.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Suite {
    /// SHA-256 throughout.
    Seventeen,
    /// SHA-1 throughout; every IPMI 2.0 has to have it.
    Three,
}

impl fmt::Display for Suite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.number())
    }
}

const BLOCK: usize = 16;

impl Suite {
    /// The better one first.
    pub const ALL: [Suite; 2] = [Suite::Seventeen, Suite::Three];

    pub fn number(self) -> u8 {
        match self {
            Suite::Seventeen => 17,
            Suite::Three => 3,
        }
    }

    /// Authentication, integrity and confidentiality, as Open Session names them.
    pub(super) fn algorithms(self) -> [u8; 3] {
        match self {
            Suite::Seventeen => [0x03, 0x04, 0x01],
            Suite::Three => [0x01, 0x01, 0x01],
        }
    }

    /// Bytes of a code in RAKP 2 and 3.
    pub(super) fn hash_length(self) -> usize {
        match self {
            Suite::Seventeen => 32,
            Suite::Three => 20,
        }
    }

    /// Bytes of a code in RAKP 4 and behind a sealed packet.
    pub(super) fn code_length(self) -> usize {
        match self {
            Suite::Seventeen => 16,
            Suite::Three => 12,
        }
    }

    /// The keyed hash over some parts.
    pub(super) fn hmac(self, key: &[u8], parts: &[&[u8]]) -> Zeroizing<Vec<u8>> {
        fn over<M: Mac + KeyInit>(key: &[u8], parts: &[&[u8]]) -> Zeroizing<Vec<u8>> {
            let mut mac = <M as KeyInit>::new_from_slice(key).expect("HMAC takes a key of any length");
            for part in parts {
                mac.update(part);
            }
            Zeroizing::new(mac.finalize().into_bytes().to_vec())
        }
        match self {
            Suite::Seventeen => over::<Hmac<Sha256>>(key, parts),
            Suite::Three => over::<Hmac<Sha1>>(key, parts),
        }
    }
}

/// Whether two codes are one, in a time that does not tell where they differ.
pub(super) fn same(a: &[u8], b: &[u8]) -> bool {
    a.len() == b.len() && !a.is_empty() && a.iter().zip(b).fold(0, |differs, (a, b)| differs | (a ^ b)) == 0
}

/// The keys of one session. Wiped when it ends.
pub(super) struct Sealed {
    suite: Suite,
    integrity: Zeroizing<Vec<u8>>,
    secrecy: Zeroizing<[u8; BLOCK]>,
}

impl Sealed {
    /// Derives them from the key that both sides have agreed on. The constants have twenty bytes whatever the hash.
    pub fn from_session_key(suite: Suite, session_key: &[u8]) -> Sealed {
        let second = suite.hmac(session_key, &[&[2; 20]]);
        let mut secrecy = Zeroizing::new([0; BLOCK]);
        secrecy.copy_from_slice(&second[..BLOCK]);
        Sealed { suite, integrity: suite.hmac(session_key, &[&[1; 20]]), secrecy }
    }

    pub fn suite(&self) -> Suite {
        self.suite
    }

    /// The code of a packet.
    pub fn sign(&self, signed: &[u8]) -> Vec<u8> {
        let mut code = self.suite.hmac(&self.integrity, &[signed]).to_vec();
        code.truncate(self.suite.code_length());
        code
    }

    /// Initialization vector, then the message with its padding: 1, 2, 3, … and how many.
    pub fn encrypt(&self, message: &[u8]) -> Vec<u8> {
        let iv: [u8; BLOCK] = rand::random();
        let pad = (BLOCK - (message.len() + 1) % BLOCK) % BLOCK;
        let mut body = message.to_vec();
        body.extend((1..=pad).map(|n| n as u8));
        body.push(pad as u8);
        let length = body.len();
        cbc::Encryptor::<Aes128>::new_from_slices(&self.secrecy[..], &iv)
            .expect("key and vector have sixteen bytes each")
            .encrypt_padded::<NoPadding>(&mut body, length)
            .expect("it is padded to whole blocks");
        [&iv[..], &body].concat()
    }

    /// What a packet of this session holds. Its code is looked at before anything else.
    pub fn open(&self, packet: &Packet<'_>) -> Result<Vec<u8>, Broken> {
        if !packet.encrypted || !packet.authenticated {
            return Err("it is not sealed");
        }
        if !same(&self.sign(packet.signed), packet.code) {
            return Err("its code is wrong");
        }
        let (iv, body) = packet.payload.split_at_checked(BLOCK).ok_or("it is shorter than a block")?;
        if body.is_empty() || body.len() % BLOCK != 0 {
            return Err("it is no whole number of blocks");
        }
        let mut body = body.to_vec();
        cbc::Decryptor::<Aes128>::new_from_slices(&self.secrecy[..], iv)
            .expect("key and vector have sixteen bytes each")
            .decrypt_padded::<NoPadding>(&mut body)
            .map_err(|_| "it is no whole number of blocks")?;
        let pad = usize::from(body.pop().unwrap_or_default());
        let length = body.len().checked_sub(pad).filter(|_| pad < BLOCK).ok_or("its padding is wrong")?;
        body.truncate(length);
        Ok(body)
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub fn keys(suite: Suite) -> Sealed {
        Sealed::from_session_key(suite, &[0x5a; 20])
    }

    #[test]
    fn codes_are_equal_only_where_every_byte_is_and_nothing_equals_nothing() {
        assert!(same(b"abc", b"abc"));
        assert!(!same(b"abc", b"abd"));
        assert!(!same(b"abc", b"ab"));
        assert!(!same(b"", b""));
    }

    /// RFC 2202, case 2, and RFC 4231, case 2.
    #[test]
    fn the_hashes_are_those_of_the_published_vectors() {
        let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
        let of = |suite: Suite| hex(&suite.hmac(b"Jefe", &[b"what do ya want ", b"for nothing?"]));
        assert_eq!(of(Suite::Three), "effcdf6ae5eb2fa2d27416d5f184df9c259a7c79");
        assert_eq!(of(Suite::Seventeen), "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
    }
}

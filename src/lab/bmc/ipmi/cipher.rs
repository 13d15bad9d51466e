//! The two cipher suites from the BMC's side.

use aes::Aes128;
use cbc::cipher::block_padding::NoPadding;
use cbc::cipher::{BlockModeDecrypt, BlockModeEncrypt, KeyIvInit};
use hmac::{Hmac, KeyInit, Mac};
use sha1::Sha1;
use sha2::Sha256;

/// A cipher suite with its number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Suite {
    Three,
    Seventeen,
}

impl Suite {
    /// The suite of an authentication, an integrity and a confidentiality algorithm.
    pub fn of(algorithms: [u8; 3]) -> Option<Suite> {
        match algorithms {
            [1, 1, 1] => Some(Suite::Three),
            [3, 4, 1] => Some(Suite::Seventeen),
            _ => None,
        }
    }

    pub fn hmac(self, key: &[u8], parts: &[&[u8]]) -> Vec<u8> {
        let whole = parts.concat();
        match self {
            Suite::Three => {
                let mut mac = Hmac::<Sha1>::new_from_slice(key).expect("HMAC takes a key of any length");
                mac.update(&whole);
                mac.finalize().into_bytes().to_vec()
            }
            Suite::Seventeen => {
                let mut mac = Hmac::<Sha256>::new_from_slice(key).expect("HMAC takes a key of any length");
                mac.update(&whole);
                mac.finalize().into_bytes().to_vec()
            }
        }
    }

    /// The first bytes of a hash, as many as codes in packets have.
    pub fn cut(self, mut hash: Vec<u8>) -> Vec<u8> {
        hash.truncate(match self {
            Suite::Three => 12,
            Suite::Seventeen => 16,
        });
        hash
    }
}

/// The keys of a session.
#[derive(Debug, Clone)]
pub(super) struct Keys {
    pub suite: Suite,
    integrity: Vec<u8>,
    secrecy: [u8; 16],
}

impl Keys {
    pub fn new(suite: Suite, session_key: &[u8]) -> Keys {
        let second = suite.hmac(session_key, &[&[2; 20]]);
        let secrecy = second[..16].try_into().expect("both hashes are longer");
        Keys { suite, integrity: suite.hmac(session_key, &[&[1; 20]]), secrecy }
    }

    /// The code over a packet from its authentication type on.
    pub fn code(&self, signed: &[u8]) -> Vec<u8> {
        self.suite.cut(self.suite.hmac(&self.integrity, &[signed]))
    }

    pub fn encrypt(&self, message: &[u8]) -> Vec<u8> {
        let iv: [u8; 16] = rand::random();
        let mut body = message.to_vec();
        let pad = (15 - message.len() % 16) as u8;
        body.extend(1..=pad);
        body.push(pad);
        let length = body.len();
        let cipher = cbc::Encryptor::<Aes128>::new(&self.secrecy.into(), &iv.into());
        cipher.encrypt_padded::<NoPadding>(&mut body, length).expect("whole blocks");
        [&iv[..], &body].concat()
    }

    pub fn decrypt(&self, payload: &[u8]) -> Option<Vec<u8>> {
        let (iv, body) = payload.split_at_checked(16)?;
        let mut body = body.to_vec();
        let iv: [u8; 16] = iv.try_into().ok()?;
        let cipher = cbc::Decryptor::<Aes128>::new(&self.secrecy.into(), &iv.into());
        cipher.decrypt_padded::<NoPadding>(&mut body).ok()?;
        let pad = usize::from(body.pop()?);
        let length = body.len().checked_sub(pad)?;
        body.truncate(length);
        Some(body)
    }
}

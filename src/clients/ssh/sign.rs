//! Signs the login with the private key, so that the library never has it (D3).
//!
//! russh keeps what it is given in the state of its connection's task, and gives that memory back as it is.

use russh::client::{AuthResult, Handle};
use russh::keys::agent::AgentIdentity;
use russh::keys::ssh_key::SigningKey;
use russh::keys::{HashAlg, PrivateKey};
use secrecy::zeroize::Zeroize;

use super::session::Verifier;

/// Signs with a key that stays where it is. RSA signs with SHA-512.
struct Signs<'a>(&'a PrivateKey);

/// The connection is gone, or the key does not sign.
#[derive(Debug)]
struct NotSigned;

impl From<russh::SendError> for NotSigned {
    fn from(_: russh::SendError) -> Self {
        NotSigned
    }
}

impl russh::Signer for Signs<'_> {
    type Error = NotSigned;

    async fn auth_sign(
        &mut self,
        _: &AgentIdentity,
        _: Option<HashAlg>,
        mut text: Vec<u8>,
    ) -> Result<Vec<u8>, NotSigned> {
        let signature = sign(self.0, &text).ok_or(NotSigned)?;
        // The wire's form: the whole signature with its length before it.
        text.extend_from_slice(&u32::try_from(signature.len()).map_err(|_| NotSigned)?.to_be_bytes());
        text.extend_from_slice(&signature);
        Ok(text)
    }
}

/// Not async: what it has of the key is on the stack, and in no state that is kept while something is waited for.
fn sign(key: &impl SigningKey, text: &[u8]) -> Option<Vec<u8>> {
    let signature = key.try_sign(text).ok().and_then(|signature| Vec::try_from(signature).ok());
    scrub_stack();
    signature
}

/// Overwrites what calls before have left on the stack below: a state machine that is made there and then moved to the heap
/// takes along what lies in its unused parts.
#[inline(never)]
pub(super) fn scrub_stack() {
    let mut below = [0u8; 128 * 1024];
    below.zeroize();
    std::hint::black_box(&below);
}

/// Logs in with a key.
pub(super) async fn login(
    handle: &mut Handle<Verifier>,
    user: &str,
    key: &PrivateKey,
    hash: Option<HashAlg>,
) -> Result<AuthResult, russh::Error> {
    let public = key.public_key().clone();
    let signed = handle.authenticate_publickey_with(user, public, hash, &mut Signs(key)).await;
    signed.map_err(|NotSigned| russh::Error::Disconnect)
}

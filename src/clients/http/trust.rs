//! Whose certificate is believed where the system's roots are not asked.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime, pem::PemObject};
use rustls_platform_verifier::BuilderVerifierExt;
use sha2::{Digest, Sha256};

use crate::config::settings::Trust;

/// TLS for a client that is not reqwest's, with the same meaning of `trust`.
pub(super) fn config(trust: &Trust) -> Result<rustls::ClientConfig, String> {
    let text = |e: rustls::Error| e.to_string();
    match trust {
        Trust::Ca(path) => {
            let told = |cause: String| format!("{}: {cause}", path.display());
            only_ca(&std::fs::read(path).map_err(|e| told(e.to_string()))?).map_err(told)
        }
        Trust::Pinned(fingerprint) => pinned(*fingerprint).map_err(text),
        Trust::Anything => {
            verified_by(Arc::new(OneCertificate { fingerprint: None, provider: provider() })).map_err(text)
        }
        Trust::System => {
            let builder = rustls::ClientConfig::builder_with_provider(provider());
            let builder = builder.with_safe_default_protocol_versions().map_err(text)?;
            Ok(builder.with_platform_verifier().map_err(text)?.with_no_client_auth())
        }
    }
}

/// The same, with a flag that is up after a handshake where the certificate is good now and no longer after `ahead`. What is
/// pinned or taken unseen has no end.
pub(super) fn ahead(trust: &Trust, ahead: Duration) -> Result<(rustls::ClientConfig, Arc<AtomicBool>), String> {
    let ends = Arc::new(AtomicBool::new(false));
    let inner: Arc<dyn ServerCertVerifier> = match trust {
        Trust::Pinned(_) | Trust::Anything => return Ok((config(trust)?, ends)),
        Trust::System => Arc::new(rustls_platform_verifier::Verifier::new(provider()).map_err(|e| e.to_string())?),
        Trust::Ca(path) => {
            let told = |cause: String| format!("{}: {cause}", path.display());
            let pem = std::fs::read(path).map_err(|e| told(e.to_string()))?;
            let roots = Arc::new(roots(&pem).map_err(told)?);
            let builder = rustls::client::WebPkiServerVerifier::builder_with_provider(roots, provider());
            builder.build().map_err(|e| told(e.to_string()))?
        }
    };
    let verifier = Arc::new(Ahead { inner, ahead, ends: Arc::clone(&ends) });
    let builder = rustls::ClientConfig::builder_with_provider(provider());
    let builder = builder.with_safe_default_protocol_versions().map_err(|e| e.to_string())?;
    Ok((builder.dangerous().with_custom_certificate_verifier(verifier).with_no_client_auth(), ends))
}

fn provider() -> Arc<rustls::crypto::CryptoProvider> {
    Arc::new(rustls::crypto::ring::default_provider())
}

fn verified_by(verifier: Arc<OneCertificate>) -> Result<rustls::ClientConfig, rustls::Error> {
    let builder = rustls::ClientConfig::builder_with_provider(Arc::clone(&verifier.provider));
    let builder = builder.with_safe_default_protocol_versions()?;
    Ok(builder.dangerous().with_custom_certificate_verifier(verifier).with_no_client_auth())
}

/// Trusts what these authorities signed, and nothing else.
pub(super) fn only_ca(pem: &[u8]) -> Result<rustls::ClientConfig, String> {
    let roots = roots(pem)?;
    let builder = rustls::ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()));
    let builder = builder.with_safe_default_protocol_versions().map_err(|e| e.to_string())?;
    Ok(builder.with_root_certificates(roots).with_no_client_auth())
}

fn roots(pem: &[u8]) -> Result<rustls::RootCertStore, String> {
    let mut roots = rustls::RootCertStore::empty();
    for der in CertificateDer::pem_slice_iter(pem) {
        roots.add(der.map_err(|e| e.to_string())?).map_err(|e| e.to_string())?;
    }
    if roots.is_empty() { Err("no certificate in it".to_owned()) } else { Ok(roots) }
}

/// Trusts no certificate: where there is no TLS.
pub(super) fn nobody() -> Result<rustls::ClientConfig, rustls::Error> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = rustls::ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions()?;
    Ok(builder.with_root_certificates(rustls::RootCertStore::empty()).with_no_client_auth())
}

/// Trusts the certificate with this SHA-256 fingerprint, and no other.
pub(super) fn pinned(fingerprint: [u8; 32]) -> Result<rustls::ClientConfig, rustls::Error> {
    verified_by(Arc::new(OneCertificate { fingerprint: Some(fingerprint), provider: provider() }))
}

/// Trusts exactly one certificate, whatever its name, issuer or date.
#[derive(Debug)]
struct OneCertificate {
    /// `None`: any one, which is the visible opt-out.
    fingerprint: Option<[u8; 32]>,
    provider: Arc<rustls::crypto::CryptoProvider>,
}

impl ServerCertVerifier for OneCertificate {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        if self.fingerprint.is_none_or(|fingerprint| Sha256::digest(end_entity)[..] == fingerprint) {
            Ok(ServerCertVerified::assertion())
        } else {
            Err(rustls::Error::General("the certificate is not the pinned one".to_owned()))
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &rustls::DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        rustls::crypto::verify_tls12_signature(message, cert, dss, &self.provider.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &rustls::DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        rustls::crypto::verify_tls13_signature(message, cert, dss, &self.provider.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<rustls::SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}

/// Judges as another does, now and once more for a later time.
#[derive(Debug)]
struct Ahead {
    inner: Arc<dyn ServerCertVerifier>,
    ahead: Duration,
    ends: Arc<AtomicBool>,
}

impl ServerCertVerifier for Ahead {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        let at = |time| self.inner.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, time);
        let verdict = at(now)?;
        let later = UnixTime::since_unix_epoch(Duration::from_secs(now.as_secs()) + self.ahead);
        self.ends.store(at(later).is_err(), Ordering::Relaxed);
        Ok(verdict)
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &rustls::DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.inner.verify_tls12_signature(message, cert, dss)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &rustls::DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.inner.verify_tls13_signature(message, cert, dss)
    }

    fn supported_verify_schemes(&self) -> Vec<rustls::SignatureScheme> {
        self.inner.supported_verify_schemes()
    }
}

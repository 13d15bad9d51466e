//! TLS in front of a server that has none, with one of the certificates in `tests/fixtures/tls` or one of the test's own.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use sha2::{Digest, Sha256};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;

/// A certificate with its key.
#[derive(Clone)]
pub struct Shown {
    pub certificate: PathBuf,
    pub key: PathBuf,
}

/// A file of the fixtures.
pub fn file(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/tls").join(name)
}

/// `good`, `expired`, `wrong-name`, `self-signed`.
pub fn fixture(name: &str) -> Shown {
    Shown { certificate: file(&format!("{name}.pem")), key: file(&format!("{name}.key")) }
}

impl Shown {
    /// What `trust = "sha256:…"` names it by.
    pub fn fingerprint(&self) -> [u8; 32] {
        Sha256::digest(CertificateDer::from_pem_file(&self.certificate).unwrap()).into()
    }

    fn acceptor(&self) -> TlsAcceptor {
        let chain = vec![CertificateDer::from_pem_file(&self.certificate).unwrap()];
        let key = PrivateKeyDer::from_pem_file(&self.key).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = rustls::ServerConfig::builder_with_provider(provider);
        let config = config.with_safe_default_protocol_versions().unwrap().with_no_client_auth();
        TlsAcceptor::from(Arc::new(config.with_single_cert(chain, key).unwrap()))
    }
}

/// Listens on 127.0.0.1 and passes everything on to `upstream`, until the runtime ends.
pub async fn front(shown: &Shown, upstream: SocketAddr) -> SocketAddr {
    let localhost = IpAddr::V4(Ipv4Addr::LOCALHOST);
    let port = front_of(shown, &[localhost], move |_| upstream).await;
    (localhost, port).into()
}

/// The same for several addresses at one port.
pub async fn front_of(
    shown: &Shown,
    addresses: &[IpAddr],
    upstream: impl Fn(IpAddr) -> SocketAddr + Send + Sync + Clone + 'static,
) -> u16 {
    let mut port = 0;
    for address in addresses {
        let listener = TcpListener::bind((*address, port)).await.unwrap();
        port = listener.local_addr().unwrap().port();
        let (acceptor, to) = (shown.acceptor(), upstream(*address));
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let acceptor = acceptor.clone();
                tokio::spawn(async move {
                    // A client that does not trust the certificate leaves in the handshake.
                    let Ok(mut near) = acceptor.accept(stream).await else { return };
                    let Ok(mut far) = TcpStream::connect(to).await else { return };
                    tokio::io::copy_bidirectional(&mut near, &mut far).await.ok();
                });
            }
        });
    }
    port
}

//! What the Redfish client says of certificates, against real TLS servers on loopback.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use muster::clients::redfish::error::{TlsTrouble, tls_trouble};
use muster::clients::redfish::{Redfish, RedfishError, RedfishOptions};
use muster::config::settings::Trust;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use sha2::{Digest, Sha256};
use url::Url;

fn file(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/tls").join(name)
}

/// A server with one of the certificates that answers every request with an empty service root.
fn serve(certificate: &'static str) -> SocketAddr {
    let chain = vec![CertificateDer::from_pem_file(file(&format!("{certificate}.pem"))).unwrap()];
    let key = PrivateKeyDer::from_pem_file(file(&format!("{certificate}.key"))).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
    let config = Arc::new(config.with_no_client_auth().with_single_cert(chain, key).unwrap());
    listen(move |mut stream| {
        let Ok(mut tls) = rustls::ServerConnection::new(config.clone()) else { return };
        let mut tls = rustls::Stream::new(&mut tls, &mut stream);
        if tls.read(&mut [0; 4096]).is_ok_and(|length| length > 0) {
            let body = r#"{"Id": "ServiceRoot", "@odata.id": "/redfish/v1"}"#;
            let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\nConnection: close\r\n\r\n", body.len());
            tls.write_all(format!("{head}{body}").as_bytes()).ok();
            tls.conn.send_close_notify();
            tls.flush().ok();
        }
    })
}

fn listen(answer: impl Fn(std::net::TcpStream) + Send + 'static) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            stream.set_read_timeout(Some(Duration::from_secs(5))).ok();
            answer(stream);
        }
    });
    address
}

async fn ask(address: SocketAddr, trust: Trust) -> Result<(), RedfishError> {
    rustls::crypto::ring::default_provider().install_default().ok();
    let options = RedfishOptions {
        trust,
        connect_timeout: Duration::from_secs(5),
        timeout: Duration::from_secs(5),
        busy_budget: Duration::ZERO,
    };
    let base = Url::parse(&format!("https://{address}/")).unwrap();
    Redfish::new(&base, None, options)?.root().await.map(drop)
}

async fn trouble(address: SocketAddr, trust: Trust) -> Option<TlsTrouble> {
    match ask(address, trust).await {
        Err(RedfishError::Http(error)) => {
            let found = tls_trouble(&error);
            assert!(found.is_some(), "{error}");
            found
        }
        Err(other) => panic!("{other}"),
        Ok(()) => None,
    }
}

/// Proves: B20
/// Case: C-35
#[tokio::test]
async fn with_the_sites_ca_each_bad_certificate_is_told_for_what_it_is() {
    let ca = || Trust::Ca(file("ca.pem"));
    assert_eq!(trouble(serve("good"), ca()).await, None);
    assert_eq!(trouble(serve("self-signed"), ca()).await, Some(TlsTrouble::Untrusted));
    assert_eq!(trouble(serve("expired"), ca()).await, Some(TlsTrouble::Expired));
    assert_eq!(trouble(serve("wrong-name"), ca()).await, Some(TlsTrouble::WrongName));
    let plain = listen(|mut stream| {
        // The first record of a handshake is longer than this.
        stream.read_exact(&mut [0; 16]).ok();
        stream.write_all(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n").ok();
    });
    assert_eq!(trouble(plain, ca()).await, Some(TlsTrouble::NotTls));
    let closes = listen(drop);
    assert_eq!(trouble(closes, ca()).await, Some(TlsTrouble::NotTls));
}

/// Proves: B20
/// Case: C-35
#[tokio::test]
async fn the_platforms_roots_trust_no_bmc_and_a_fingerprint_trusts_exactly_one() {
    assert_eq!(trouble(serve("self-signed"), Trust::System).await, Some(TlsTrouble::Untrusted));
    let der = CertificateDer::from_pem_file(file("self-signed.pem")).unwrap();
    let pin: [u8; 32] = Sha256::digest(&der).into();
    assert_eq!(trouble(serve("self-signed"), Trust::Pinned(pin)).await, None);
    assert_eq!(trouble(serve("good"), Trust::Pinned(pin)).await, Some(TlsTrouble::Untrusted));
    assert_eq!(trouble(serve("expired"), Trust::Anything).await, None);
}

//! How much is asked of a BMC at once, and where a site says that it checks no certificate.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use muster::clients::redfish::{Credential, Redfish, RedfishOptions};
use muster::config::settings::Trust;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use url::Url;

/// A BMC that takes a while for each request, and counts how many it has at once.
async fn slow() -> (Url, Arc<AtomicUsize>, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = Url::parse(&format!("http://{}/", listener.local_addr().unwrap())).unwrap();
    let (now, most, all) =
        (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let counts = (Arc::clone(&most), Arc::clone(&all));
    tokio::spawn(async move {
        loop {
            let Ok((mut stream, _)) = listener.accept().await else { return };
            let (now, most, all) = (Arc::clone(&now), Arc::clone(&most), Arc::clone(&all));
            tokio::spawn(async move {
                let mut head = [0; 4096];
                if stream.read(&mut head).await.unwrap_or(0) == 0 {
                    return;
                }
                most.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                all.fetch_add(1, Ordering::SeqCst);
                tokio::time::sleep(Duration::from_millis(20)).await;
                now.fetch_sub(1, Ordering::SeqCst);
                let body = r#"{"Id": "1", "@odata.id": "/redfish/v1/Systems/1"}"#;
                let answer = format!(
                    "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
                    body.len()
                );
                stream.write_all(answer.as_bytes()).await.ok();
            });
        }
    });
    (url, counts.0, counts.1)
}

fn client(base: &Url) -> Redfish {
    rustls::crypto::ring::default_provider().install_default().ok();
    let options = RedfishOptions {
        trust: Trust::System,
        connect_timeout: Duration::from_secs(5),
        timeout: Duration::from_secs(20),
        busy_budget: Duration::ZERO,
    };
    let credential = Credential { username: "ADMIN".into(), password: "x".to_owned().into() };
    Redfish::new(base, Some(credential), options).unwrap()
}

/// Proves: B20
#[tokio::test(flavor = "multi_thread")]
async fn a_bmc_has_one_request_at_a_time_however_many_clients_ask_it() {
    let (base, most, all) = slow().await;
    let (other_base, _, other) = slow().await;
    let mut asking = tokio::task::JoinSet::new();
    for n in 0..12 {
        // A run, a look beside it, another user: each has a client of its own.
        let client = client(&base);
        let client = if n % 3 == 0 { client.impatient() } else { client };
        asking.spawn(async move { client.get("/redfish/v1/Systems/1").await.map(drop) });
    }
    let elsewhere = client(&other_base);
    elsewhere.get("/redfish/v1/Systems/1").await.unwrap();
    let left = 12 - all.load(Ordering::SeqCst);
    assert!(left > 0 && other.load(Ordering::SeqCst) == 1, "another BMC waited for this one");
    while let Some(answer) = asking.join_next().await {
        answer.unwrap().unwrap();
    }
    assert_eq!((all.load(Ordering::SeqCst), most.load(Ordering::SeqCst)), (12, 1));
}

/// Proves: B20
#[test]
fn a_site_that_checks_no_certificate_is_warned_of_by_name() {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/config/valid/two-sites.toml");
    let loaded = muster::config::read(&path).unwrap();
    let warned = loaded.warnings.iter().any(|warning| warning.key == "sites.osl1.bmc.trust");
    assert!(warned, "{:?}", loaded.warnings);
}

//! The figures that `muster serve` shows, after runs on the lab: what is counted, what is said of each system, and what is
//! asked in vain.

use std::time::{Duration, Instant};

use muster::app::{App, Opening};
use muster::domain::request::EnrollParams;
use muster::lab::Lab;
use muster::lab::scenario::Scenario;
use muster::store::RunStatus;

const GOOD: &str = "gpu-b07-29";
/// Its two cables are in each other's places.
const MISCABLED: &str = "gpu-b07-37";

/// The value of the sample with this name and these labels.
fn sample(text: &str, sample: &str) -> f64 {
    let line = text.lines().find_map(|line| line.strip_prefix(sample)?.strip_prefix(' '));
    line.unwrap_or_else(|| panic!("no '{sample}' in\n{text}")).parse().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn what_ended_and_how_stale_each_system_is_can_be_scraped() {
    rustls::crypto::ring::default_provider().install_default().ok();
    let mut scenario = Scenario::demo().unwrap();
    scenario.hosts.retain(|host| [GOOD, MISCABLED].contains(&host.name.as_str()));
    scenario.faults.retain(|fault| format!("{fault:?}").contains(MISCABLED));
    let lab = Lab::start(scenario, 200.0).await.unwrap();
    let folder = tempfile::tempdir().unwrap();
    let config = lab.write_config(&folder.path().join("etc")).unwrap();
    let settings = muster::config::load(&config).unwrap();
    let opening = Opening { user: Some("jo".into()), aside: false };
    let app = App::open_as(settings, &folder.path().join("state"), opening).await.unwrap();
    app.sync_now().await.unwrap();
    let listening = app.expose("127.0.0.1:0".parse().unwrap()).await.unwrap();
    let client = reqwest::Client::builder().no_proxy().build().unwrap();
    let url = format!("http://{}", listening.at);
    let scrape = async || {
        let answer = client.get(format!("{url}/metrics")).send().await.unwrap();
        assert_eq!(answer.headers()["content-type"], "text/plain; version=0.0.4; charset=utf-8");
        answer.text().await.unwrap()
    };
    let before = scrape().await;
    assert_eq!((sample(&before, "muster_leads"), sample(&before, "muster_run_seconds_count")), (1.0, 0.0));
    assert_eq!(sample(&before, "muster_system_up{system=\"netbox\"}"), 1.0);
    assert!(sample(&before, "muster_system_age_seconds{system=\"netbox\"}") < 60.0);

    for host in [GOOD, MISCABLED] {
        app.submit(host, EnrollParams::default(), "jo").await.unwrap();
    }
    let until = Instant::now() + Duration::from_secs(120);
    while app.runs().unwrap().iter().any(|row| row.status.is_active()) {
        assert!(Instant::now() < until, "{:#?}", app.runs());
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let failed = app.runs().unwrap().into_iter().find(|row| row.host == MISCABLED).unwrap();
    assert_eq!(failed.status, RunStatus::Failed);
    let failure = failed.failure.unwrap();
    let ended = "muster_runs_ended_total{outcome=\"succeeded\",code=\"\",owner=\"\"}".to_owned();
    let broke = format!(
        "muster_runs_ended_total{{outcome=\"failed\",code=\"{}\",owner=\"{}\"}}",
        failure.code.as_str(),
        failure.owner.as_str()
    );
    let mut text = scrape().await;
    // The end is heard a moment after it is in the store.
    while !text.contains(&ended) || !text.contains(&broke) {
        assert!(Instant::now() < until, "{text}");
        tokio::time::sleep(Duration::from_millis(20)).await;
        text = scrape().await;
    }
    assert_eq!((sample(&text, &ended), sample(&text, &broke)), (1.0, 1.0));
    assert_eq!(sample(&text, "muster_runs{status=\"succeeded\"}"), 1.0);
    assert_eq!(sample(&text, "muster_run_seconds_count"), 2.0);
    assert_eq!(sample(&text, "muster_phase_seconds_count{phase=\"bmc\"}"), 2.0, "{text}");
    assert_eq!(sample(&text, "muster_phase_seconds_count{phase=\"finalize\"}"), 1.0);
    assert!(sample(&text, "muster_journal_write_seconds_count") > 100.0);
    assert!(!text.contains("gpu-b07"), "no series for each host: {text}");

    let status = async |path: &str, post: bool| {
        let request = if post { client.post(format!("{url}{path}")) } else { client.get(format!("{url}{path}")) };
        request.send().await.unwrap().status().as_u16()
    };
    assert_eq!([status("/", false).await, status("/metrics", true).await], [404, 405]);
    drop(listening);
    app.shutdown().await;
}

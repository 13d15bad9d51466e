//! What services answer: each part of an input is the body of one answer, in the order in which they are asked.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use futures::future::BoxFuture;
use muster::clients::http::{Answer, Carrier, HttpError, Request, StatusCode};
use muster::clients::ironic::Ironic;
use muster::clients::netbox::NetBox;
use muster::clients::netbox::records::{CableDetail, InterfaceRecord, IpAddressRecord, MacAddressRecord};
use muster::clients::redfish::accounts;
use muster::clients::redfish::dialect::At;
use muster::clients::redfish::host::{find_manager, find_system};
use muster::clients::redfish::links;
use muster::clients::redfish::said::{Said, property_refused};
use muster::clients::redfish::vendor::Vendor;
use muster::clients::redfish::{Redfish, RedfishOptions};
use muster::clients::vault::Vault;
use muster::config::settings::{Settings, Trust};
use muster::domain::ids::NodeUuid;
use muster::inventory::push::Again;

use super::{is_safe, parts};

/// Requests that one input may set off: an endless walk is another kind of finding, of `tests/hostile_answers`.
const ASKED_MAX: usize = 300;

/// Answers with one body after the other, and then from the beginning. The first byte of a body that is no JSON's says that
/// it comes with another status.
struct Answers {
    bodies: Vec<Vec<u8>>,
    asked: AtomicUsize,
}

impl Answers {
    fn of(bytes: &[u8]) -> Arc<Answers> {
        Arc::new(Answers { bodies: parts(bytes).into_iter().map(<[u8]>::to_vec).collect(), asked: AtomicUsize::new(0) })
    }
}

impl Carrier for Answers {
    fn carry<'a>(&'a self, request: Request, url: &'a url::Url) -> BoxFuture<'a, Result<Answer, HttpError>> {
        let n = self.asked.fetch_add(1, Ordering::Relaxed);
        let asked = format!("{} {}", request.method, url.path());
        if n > ASKED_MAX {
            let host = "fuzz".to_owned();
            return Box::pin(async move { Err(HttpError::Refused { asked, host }) });
        }
        let body = &self.bodies[n % self.bodies.len()];
        let (status, body) = match body.split_first() {
            Some((b'4', rest)) => (400, rest),
            Some((b'5', rest)) => (503, rest),
            Some((b'9', rest)) => (409, rest),
            _ => (200, &body[..]),
        };
        let status = StatusCode::from_u16(status).unwrap();
        let body = body.to_vec();
        Box::pin(async move { Ok(Answer { status, headers: Default::default(), body, asked }) })
    }
}

fn run<T>(work: impl Future<Output = T>) -> T {
    thread_local! {
        static RUNTIME: tokio::runtime::Runtime =
            tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    }
    RUNTIME.with(|runtime| runtime.block_on(work))
}

fn settings() -> &'static Settings {
    static SETTINGS: OnceLock<Settings> = OnceLock::new();
    SETTINGS.get_or_init(|| {
        let text = "[netbox]\nurl = \"http://fuzz\"\ntoken = \"env:X\"\n[ironic.lab]\nurl = \"http://fuzz\"\n\
                    device_classes = [\"A\"]\nauth = { kind = \"none\" }\n[sites.osl1.gates]\nconfigure_dhcp = false\n";
        muster::config::parse(text, "fuzz.toml").unwrap_or_else(|error| panic!("{error}"))
    })
}

/// What was read can be shown, or an error says why not in a sentence that can.
fn shown<T>(outcome: Result<T, impl std::fmt::Display>) -> Option<T> {
    match outcome {
        Ok(value) => Some(value),
        Err(error) => {
            let text = error.to_string();
            assert!(is_safe(&text), "{text:?}");
            None
        }
    }
}

/// Lists and records of NetBox.
pub fn netbox(bytes: &[u8]) {
    static CLIENT: OnceLock<NetBox> = OnceLock::new();
    let client = CLIENT.get_or_init(|| NetBox::new(&settings().netbox, "t".to_owned().into()).unwrap());
    let netbox = || client.over(Answers::of(bytes));
    run(async {
        shown(netbox().devices(None).await);
        shown(netbox().observe_all::<InterfaceRecord>().await);
        shown(netbox().observe_all::<IpAddressRecord>().await);
        shown(netbox().observe_all::<MacAddressRecord>().await);
        shown(netbox().observe_all::<CableDetail>().await);
        shown(netbox().device(1).await);
        shown(netbox().site(1).await);
        shown(netbox().device_type(1).await);
        shown(netbox().role(1).await);
        shown(netbox().account().await);
        shown(netbox().token_facts().await);
        shown(netbox().cables(&[1, 2]).await);
    });
}

/// What NetBox's webhook and its database tell.
pub fn netbox_event(bytes: &[u8]) {
    Again::of_event(bytes);
    if let Ok(text) = std::str::from_utf8(bytes) {
        Again::of_notification(text);
    }
}

/// Nodes, inventories and ports of Ironic, and its faults.
pub fn ironic(bytes: &[u8]) {
    static CLIENT: OnceLock<Ironic> = OnceLock::new();
    let client = CLIENT
        .get_or_init(|| Ironic::new("lab", &settings().ironic["lab"], &Vault::new(settings().vault.clone())).unwrap());
    // The versions come first, and are good ones.
    let versions = br#"{"default_version": {"id": "v1", "min_version": "1.1", "version": "1.95"}}"#;
    let node = NodeUuid(uuid::Uuid::nil());
    run(async {
        let ironic = || {
            let answers = Answers::of(&[&versions[..], b"\n---\n", bytes].concat());
            client.over(answers)
        };
        shown(client.over(Answers::of(bytes)).speaks().await);
        shown(ironic().nodes(&["name"]).await);
        shown(ironic().node("gpu-b07-37").await);
        shown(ironic().inventory(node).await);
        shown(ironic().ports_of(node).await);
        shown(ironic().portgroups_of(node).await);
    });
}

/// What a BMC says of an answer.
pub fn redfish_said(bytes: &[u8]) {
    let said = Said::read(bytes);
    assert!(is_safe(&said.text), "{:?}", said.text);
    for entry in &said.entries {
        assert!(is_safe(&entry.id) && is_safe(&entry.message) && entry.args.iter().all(|arg| is_safe(arg)));
    }
    if let Ok(body) = serde_json::from_slice(bytes)
        && let Some(reason) = property_refused(&body)
    {
        assert!(is_safe(&reason), "{reason:?}");
    }
}

/// A BMC from its root on, as each vendor's dialect reads it.
pub fn redfish(bytes: &[u8]) {
    static CLIENT: OnceLock<Redfish> = OnceLock::new();
    let client = CLIENT.get_or_init(|| {
        let patience = std::time::Duration::from_secs(1);
        let options = RedfishOptions {
            trust: Trust::System,
            connect_timeout: patience,
            timeout: patience,
            busy_budget: std::time::Duration::ZERO,
        };
        Redfish::new(&"http://fuzz".parse().unwrap(), None, options).unwrap()
    });
    let names: Vec<String> = ["BootMode", "PxeDev1Interface", "BootModes_SystemBootMode"].map(str::to_owned).into();
    run(async {
        let redfish = client.impatient().over(Answers::of(bytes));
        let Some(root) = shown(redfish.root().await) else { return };
        let Some(found) = shown(find_system(&redfish, &root, None).await) else { return };
        let Some(manager) = shown(find_manager(&redfish, &root, &found.system).await) else { return };
        shown(accounts::read(&redfish, &root).await);
        for vendor in [Vendor::Supermicro, Vendor::Lenovo, Vendor::Dell, Vendor::Ami] {
            let redfish = client.impatient().over(Answers::of(bytes));
            let at = At { redfish: &redfish, root: &root, system: &found.system, manager: &manager };
            let dialect = vendor.dialect();
            shown(dialect.not_ready(at).await);
            shown(dialect.refuses_changes(at).await);
            if let Some(staging) = dialect.staging() {
                shown(staging.bios(at, &names).await);
                shown(staging.boot(at).await);
                shown(staging.jobs(at).await);
                shown(staging.job(at, "JID_1").await);
            }
        }
        let macs = ["52:54:00:10:01:01".parse().unwrap(), "52:54:00:10:01:02".parse().unwrap()];
        let redfish = client.impatient().over(Answers::of(bytes));
        shown(links::read(&redfish, &root, &found.system, Some(Vendor::Dell), &macs).await);
    });
}

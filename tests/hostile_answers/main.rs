//! Every client against every hostile answer: bodies, pages, redirects, time, heads, protocols. Each ends with an error of its
//! own class, within its time and within bounds of memory, and no credential goes anywhere but where it is for.
//!
//! What a class is of, and that it stays so, is in the snapshot.

mod http;
mod others;

use std::collections::BTreeMap;
use std::future::Future;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use futures::StreamExt;
use http::{ALL, Kind, Server};
use muster::clients::ironic::Ironic;
use muster::clients::netbox::NetBox;
use muster::clients::redfish::{Credential, Redfish, RedfishOptions};
use muster::clients::vault::{Vault, plain};
use muster::config::settings::{Settings, Trust};

/// What the clients are given for a request that is waited out.
const PATIENCE: Duration = Duration::from_millis(800);
/// And for all others: however busy the machine is, they end before it.
const PATIENCE_ENOUGH: Duration = Duration::from_secs(30);
/// Much more than any of them may take: what is longer hangs.
const HANG: Duration = Duration::from_secs(60);
/// What one answer may take of the memory, in MB, with that of the server that gives it in the same process.
const MEMORY: u64 = 350;
const SECRET: &str = "c4nary-s3cret/of+all";

/// How something ended: `ok`, or the class of its error and its sentence.
type Ended = Result<String, (String, String)>;
type Work = Pin<Box<dyn Future<Output = Ended> + Send>>;

/// The path of variants at the beginning of an error's debug form: `Http/Timeout`.
fn class(error: &(impl std::fmt::Debug + std::fmt::Display)) -> (String, String) {
    let debug = format!("{error:?}");
    let mut path = Vec::new();
    let mut rest = debug.as_str();
    loop {
        let end = rest.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(rest.len());
        path.push(&rest[..end]);
        match rest[end..].strip_prefix('(') {
            Some(inner) if inner.starts_with(|c: char| c.is_ascii_uppercase()) => rest = inner,
            _ => return (path.join("/"), error.to_string()),
        }
    }
}

fn told<T>(outcome: Result<T, impl std::fmt::Debug + std::fmt::Display>) -> Ended {
    outcome.map(|_| "ok".to_owned()).map_err(|error| class(&error))
}

fn settings(url: &str, folder: &Path, patience: Duration) -> Settings {
    let secret = folder.join("secret");
    let text = format!(
        "[netbox]\nurl = \"{url}\"\ntoken = \"file:{0}\"\ntimeout_s = {1}\n\
         [vault]\nkind = \"connect\"\nurl = \"{url}\"\ntoken = \"file:{0}\"\nvault = \"ionaiwtdvgclrixbt6ztpqcxnq\"\ntimeout_s = {1}\n\
         [ironic.lab]\nurl = \"{url}\"\ndevice_classes = [\"A\"]\ntimeout_s = {1}\n\
         auth = {{ kind = \"http_basic\", username = \"m\", password = \"file:{0}\" }}\n\
         [ironic.keystone]\nurl = \"{url}\"\ndevice_classes = [\"B\"]\ntimeout_s = {1}\n\
         auth = {{ kind = \"keystone\", auth_url = \"{url}/v3\", username = \"m\", password = \"file:{0}\", project = \"p\" }}\n\
         [sites.osl1.gates]\nconfigure_dhcp = false\n",
        secret.display(),
        patience.as_secs_f64()
    );
    muster::config::parse(&text, "hostile.toml").unwrap_or_else(|e| panic!("{e}"))
}

/// A client with what it asks, and what it has to be answered before that.
struct Client {
    name: &'static str,
    good: http::Good,
    page: http::Page,
    work: fn(Settings, String) -> Work,
}

fn versions(path: &str) -> Option<String> {
    let body = r#"{"default_version": {"id": "v1", "min_version": "1.1", "version": "1.95"}}"#;
    (path == "/").then(|| body.to_owned())
}

fn netbox(settings: &Settings) -> NetBox {
    NetBox::new(&settings.netbox, plain(&settings.netbox.token).unwrap()).unwrap()
}

fn ironic(settings: &Settings, name: &str) -> Ironic {
    Ironic::new(name, &settings.ironic[name], &Vault::new(settings.vault.clone())).unwrap()
}

fn redfish(settings: &Settings, url: &str) -> Redfish {
    let timeout = settings.netbox.timeout;
    let options =
        RedfishOptions { trust: Trust::System, connect_timeout: timeout, timeout, busy_budget: Duration::ZERO };
    let credential = Credential { username: "root".into(), password: SECRET.to_owned().into() };
    Redfish::new(&url.parse().unwrap(), Some(credential), options).unwrap()
}

const CLIENTS: &[Client] = &[
    Client {
        name: "netbox account",
        good: |_| None,
        page: |_, _| "{}".to_owned(),
        work: |settings, _| Box::pin(async move { told(netbox(&settings).account().await) }),
    },
    Client {
        name: "netbox list",
        good: |_| None,
        page: |url, n| {
            format!(
                "{{\"count\": 3, \"next\": \"{url}/api/dcim/sites/?x\", \"results\": [{{\"id\": {}, \"name\": \"a\", \"slug\": \"a\"}}]}}",
                n + 1
            )
        },
        work: |settings, _| Box::pin(async move { told(netbox(&settings).sites().await) }),
    },
    Client {
        name: "ironic root",
        good: |_| None,
        page: |_, _| "{}".to_owned(),
        work: |settings, _| Box::pin(async move { told(ironic(&settings, "lab").speaks().await) }),
    },
    Client {
        name: "ironic nodes",
        good: versions,
        page: |url, n| {
            format!(
                "{{\"next\": \"{url}/v1/nodes?x\", \"nodes\": [{{\"uuid\": \"00000000-0000-4000-8000-{n:012}\", \"provision_state\": \"available\"}}]}}"
            )
        },
        work: |settings, _| Box::pin(async move { told(ironic(&settings, "lab").nodes(&["name"]).await) }),
    },
    Client {
        name: "keystone",
        good: versions,
        page: |_, _| "{}".to_owned(),
        work: |settings, _| Box::pin(async move { told(ironic(&settings, "keystone").sees_nodes().await) }),
    },
    Client {
        name: "redfish root",
        good: |_| None,
        page: |_, _| "{}".to_owned(),
        work: |settings, url| Box::pin(async move { told(redfish(&settings, &url).root().await) }),
    },
    Client {
        name: "redfish list",
        good: |_| None,
        page: |_, n| {
            format!(
                "{{\"@odata.id\": \"/p{n}\", \"Id\": \"{n}\", \"Members\": [], \"Members@odata.nextLink\": \"/p{}\"}}",
                n + 1
            )
        },
        work: |settings, url| Box::pin(async move { told(redfish(&settings, &url).list("/redfish/v1/Systems").await) }),
    },
    Client {
        name: "redfish members",
        good: |path| {
            let members = r#"{"@odata.id": "/m", "Id": "m", "Members": [{"@odata.id": "/m/1"}]}"#;
            (path == "/m").then(|| members.to_owned())
        },
        page: |_, _| "{}".to_owned(),
        work: |settings, url| Box::pin(async move { told(redfish(&settings, &url).list("/m").await) }),
    },
    Client {
        name: "redfish write",
        good: |_| None,
        page: |_, _| "{}".to_owned(),
        work: |settings, url| {
            Box::pin(async move {
                told(redfish(&settings, &url).patch("/x", &serde_json::json!({"Password": SECRET})).await)
            })
        },
    },
    Client {
        name: "connect",
        good: |_| None,
        page: |_, _| "[]".to_owned(),
        work: |settings, _| {
            Box::pin(async move { told(Vault::new(settings.vault.clone()).ask("item", "password").await) })
        },
    },
];

/// In MB, from the kernel's own book: what the process takes now, and took at most.
fn memory() -> (u64, u64) {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let of = |name: &str| {
        let line = status.lines().find(|line| line.starts_with(name)).unwrap();
        line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() / 1024
    };
    (of("VmRSS:"), of("VmHWM:"))
}

/// Begins the peak anew; what the process takes now.
fn fresh_peak() -> u64 {
    // Where the kernel does not let it, the peak of before stands: the figures are then larger, and never smaller.
    std::fs::write("/proc/self/clear_refs", "5").ok();
    memory().0
}

/// One try: what came of it and how long it took. A panic and a hang are findings of their own.
pub struct Tried {
    pub what: String,
    pub ended: Ended,
    pub took: Duration,
}

async fn tried(what: String, work: Work) -> Tried {
    let began = Instant::now();
    let ended = match tokio::time::timeout(HANG, tokio::spawn(work)).await {
        Ok(Ok(ended)) => ended,
        Ok(Err(broken)) => Err(("PANIC".to_owned(), broken.to_string())),
        Err(_) => Err(("HANG".to_owned(), String::new())),
    };
    Tried { what, ended, took: began.elapsed() }
}

/// Proves: Z3, Z4
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_client_ends_every_hostile_answer_with_a_class_of_its_own() {
    rustls::crypto::ring::default_provider().install_default().ok();
    let panics = Arc::new(AtomicUsize::new(0));
    let (count, before) = (Arc::clone(&panics), std::panic::take_hook());
    // Those of tasks that libraries start, too.
    std::panic::set_hook(Box::new(move |info| {
        count.fetch_add(1, Ordering::SeqCst);
        before(info);
    }));
    let folder = tempfile::tempdir().unwrap();
    let secret = folder.path().join("secret");
    std::fs::write(&secret, SECRET).unwrap();
    std::fs::set_permissions(&secret, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();

    let folder = folder.path();
    let attempt = |(client, kind): (&'static Client, Kind)| async move {
        let server = Server::start(kind, client.good, client.page);
        let patience = if http::SLOW.contains(&kind) { PATIENCE } else { PATIENCE_ENOUGH };
        let work = (client.work)(settings(&server.url, folder, patience), server.url.clone());
        let before = fresh_peak();
        let tried = tried(format!("{}: {kind:?}", client.name), work).await;
        let lured = server.lured.lock().unwrap().clone();
        assert!(lured.is_empty(), "{}: went where it was led to: {lured:?}", tried.what);
        let asked = server.asked.load(Ordering::SeqCst);
        assert!(asked < 500, "{}: {asked} requests", tried.what);
        (client.name, kind, tried, memory().1.saturating_sub(before))
    };
    let cases = || CLIENTS.iter().flat_map(|client| ALL.iter().map(move |kind| (client, *kind)));
    // Those that are about memory one at a time, so that it is known whose it is; the others together, since they wait.
    let mut tries = Vec::new();
    for case in cases().filter(|(_, kind)| http::HEAVY.contains(kind)) {
        tries.push(attempt(case).await);
    }
    let one = tries.iter().max_by_key(|(.., peak)| *peak).unwrap();
    let heaviest = format!("{} MB ({})", one.3, one.2.what);
    assert!(one.3 < MEMORY, "{heaviest}");
    let light = futures::stream::iter(cases().filter(|(_, kind)| !http::HEAVY.contains(kind)));
    tries.extend(light.map(attempt).buffer_unordered(12).collect::<Vec<_>>().await);
    let mut classes: BTreeMap<&str, BTreeMap<String, Vec<Kind>>> = BTreeMap::new();
    let mut all = Vec::new();
    for (client, kind, tried, _) in tries {
        let class = tried.ended.as_ref().map_or_else(|(class, _)| class.clone(), Clone::clone);
        let kinds = classes.entry(client).or_default().entry(class).or_default();
        kinds.push(kind);
        kinds.sort();
        all.push(tried);
    }
    let over_tcp = others::all(folder).await;
    let mut table = String::new();
    for (client, classes) in &classes {
        for (class, kinds) in classes {
            table.push_str(&format!("{client}: {class}: {kinds:?}\n"));
        }
    }
    // Where two clocks meet (a deadline and a bound) either may be first: that it is an error is enough.
    for tried in &over_tcp {
        match &tried.ended {
            Ok(said) => assert!(said.starts_with("given up"), "{}: {said}", tried.what),
            Err((class, _)) => assert!(!class.is_empty()),
        }
    }
    all.extend(over_tcp);

    let (_, peak) = memory();
    let slowest = all.iter().max_by_key(|tried| tried.took).unwrap();
    let hangs =
        all.iter().filter(|tried| tried.took >= HANG || matches!(&tried.ended, Err((class, _)) if class == "HANG"));
    let hangs = hangs.map(|tried| tried.what.as_str()).collect::<Vec<_>>();
    let panics = panics.load(Ordering::SeqCst);
    println!(
        "hostile answers tried: {}, {panics} panics, {} hangs, peak memory {peak} MB, by one answer {heaviest}, slowest {:?} ({})",
        all.len(),
        hangs.len(),
        slowest.took,
        slowest.what
    );
    assert!(hangs.is_empty(), "{hangs:#?}");
    assert_eq!(panics, 0);
    for Tried { what, ended, .. } in &all {
        let Err((_, sentence)) = ended else { continue };
        assert!(!sentence.chars().any(char::is_control), "{what}: {sentence:?}");
        assert!(sentence.chars().count() < 1200, "{what}: {} characters", sentence.chars().count());
        assert!(!sentence.contains("c4nary"), "{what}: {sentence}");
    }
    insta::assert_snapshot!("classes", table);
}

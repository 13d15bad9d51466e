//! The DHCP activity against OpenSSH, ISC dhcpd, Kea and dnsmasq: whatever goes wrong, the server serves afterwards what it
//! served before. A client of our own asks for a lease after each situation.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::time::Duration;

use futures::future::join_all;
use muster::activities::dhcp::serve_entry;
use muster::activities::env::ActivityCx;
use muster::config::settings::DhcpSettings;
use muster::domain::dhcp::{Entry, Server, render};
use muster::domain::failure::{Failure, FailureCode};
use muster::domain::mac::Mac;
use muster::workflows::defs::DhcpOut;
use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::TestRunner;
use serde_json::Value;

use crate::cut::Cutter;
use crate::support::context;
use crate::text;

/// Tests that share the servers take turns, however they are started.
static TURN: tokio::sync::Mutex<()> = tokio::sync::Mutex::const_new(());

async fn rig() -> Option<(Value, tokio::sync::MutexGuard<'static, ()>)> {
    let Some(path) = std::env::var_os("MUSTER_REAL_DHCP") else {
        assert!(std::env::var_os("MUSTER_REAL").is_none(), "could not run: MUSTER_REAL_DHCP names no rig");
        return None;
    };
    let turn = TURN.lock().await;
    Some((serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap(), turn))
}

/// One server of the rig.
struct Host<'a> {
    rig: &'a Value,
    kind: &'static str,
    server: Server,
    folder: tempfile::TempDir,
    rows: Mutex<Vec<[String; 3]>>,
}

/// What may be different from one run to the next.
#[derive(Clone)]
struct Way {
    key: &'static str,
    host_key: &'static str,
    port: u16,
    command_s: &'static str,
}

const BASE: (&str, &str, &str) = ("base-bmc", "02:aa:00:00:00:01", "198.51.100.11");
const NEW: &str = "02:aa:00:00:00:02";

fn entry(name: &str, mac: &str, address: &str) -> Entry {
    Entry { name: name.into(), mac: mac.parse().unwrap(), address: address.parse().unwrap() }
}

fn new(address: &str) -> Entry {
    entry("gpu-b07-37", NEW, address)
}

impl<'a> Host<'a> {
    /// The server with one entry made by hand.
    fn start(rig: &'a Value, kind: &'static str, server: Server) -> Host<'a> {
        let host = Host { rig, kind, server, folder: tempfile::tempdir().unwrap(), rows: Mutex::default() };
        host.fresh();
        host
    }

    fn fresh(&self) {
        for place in ["fault_dir", "directory"] {
            for file in std::fs::read_dir(self.text(place)).unwrap() {
                std::fs::remove_file(file.unwrap().path()).unwrap();
            }
        }
        let base = entry(BASE.0, BASE.1, if self.is_six() { "2001:db8:8::11" } else { BASE.2 });
        let file = render(self.server, &base).unwrap();
        std::fs::write(self.directory().join(file.name), file.content).unwrap();
        let (ok, said) = self.verb("restart");
        assert!(ok, "{}: {said}", self.kind);
    }

    fn is_six(&self) -> bool {
        self.kind.ends_with('6')
    }

    fn text(&self, key: &str) -> &str {
        text(&self.rig["servers"][self.kind], key)
    }

    fn directory(&self) -> PathBuf {
        self.text("directory").into()
    }

    /// Runs a command of the service here, past muster and SSH.
    fn verb(&self, verb: &str) -> (bool, String) {
        run(self.text(verb))
    }

    fn lease(&self, mac: &str) -> Option<String> {
        let (ok, said) = run(&format!("{} {mac}", self.text("lease")));
        ok.then(|| said.trim().to_owned())
    }

    fn fault(&self, name: &str, text: &str) {
        std::fs::write(Path::new(self.text("fault_dir")).join(name), text).unwrap();
    }

    /// Restarts since the rig was started.
    fn restarts(&self) -> usize {
        let log = std::fs::read_to_string(self.text("verbs_log")).unwrap();
        log.lines().filter(|line| line.starts_with("restart")).count()
    }

    /// SFTP sessions since the rig was started: without one nothing is transferred.
    fn transfers(&self) -> usize {
        let log = std::fs::read_to_string(text(self.rig, "sshd_log")).unwrap();
        log.lines().filter(|line| line.contains("subsystem 'sftp'")).count()
    }

    fn way(&self) -> Way {
        let port = self.rig["port"].as_u64().unwrap() as u16;
        Way { key: "user", host_key: "host_key", port, command_s: "20" }
    }

    fn settings(&self, way: &Way) -> (DhcpSettings, ActivityCx) {
        let quoted = |key: &str| serde_json::to_string(self.text(key)).unwrap();
        let read = |path: &str| std::fs::read_to_string(path).unwrap();
        let key = read(text(&self.rig["keys"], way.key));
        let host_key = read(text(self.rig, way.host_key));
        let vault = format!(
            "[ssh-config-dhcp]\nprivate_key = '''\n{key}'''\nknown_hosts = '''\n[127.0.0.1]:{} {host_key}'''\n",
            way.port
        );
        crate::private(&self.folder.path().join("vault.toml"), &vault);
        let config = format!(
            "[netbox]\nurl = \"http://127.0.0.1:9\"\ntoken = \"env:NOT_USED\"\n[vault]\nkind = \"file\"\n\
             path = \"{0}/vault.toml\"\n[sites.osl1.dhcp]\nhost = \"127.0.0.1\"\nport = {1}\nuser = {2}\nserver = \"{3}\"\n\
             directory = {4}\ntest = {5}\nrestart = {6}\nvalidate = {7}\ncommand_s = {8}\n",
            self.folder.path().display(),
            way.port,
            serde_json::to_string(text(self.rig, "user")).unwrap(),
            self.server.as_str(),
            quoted("directory"),
            quoted("test"),
            quoted("restart"),
            quoted("validate"),
            way.command_s,
        );
        let settings = muster::config::parse(&config, "config.toml").unwrap_or_else(|errors| panic!("{errors}"));
        let dhcp = settings.sites["osl1"].dhcp.clone().unwrap();
        let (cx, _) = context(settings, self.folder.path());
        (dhcp, cx)
    }

    async fn serve(&self, way: &Way, entry: &Entry) -> Result<DhcpOut, Failure> {
        let (settings, cx) = self.settings(way);
        tokio::time::timeout(Duration::from_secs(60), serve_entry(&cx, &settings, entry)).await.unwrap()
    }

    /// What holds after every situation: the configuration is valid, the server is up, and it serves what it served.
    /// Notes the row of the table.
    fn assert_well(&self, situation: &str, said: &str, expected: Option<&str>) {
        let place = format!("{}, {situation}: {said}", self.kind);
        let (valid, up, served, given) = std::thread::scope(|scope| {
            let valid = scope.spawn(|| self.verb("test"));
            let up = scope.spawn(|| self.verb("validate"));
            let served = scope.spawn(|| self.lease(BASE.1).unwrap_or_default());
            let given = self.lease(NEW).unwrap_or_else(|| "nothing".to_owned());
            (valid.join().unwrap(), up.join().unwrap(), served.join().unwrap(), given)
        });
        assert!(valid.0, "{place}: its configuration is not valid: {}", valid.1);
        assert!(up.0, "{place}: it is down: {}", up.1);
        let base = if self.is_six() { "2001:db8:8::11" } else { BASE.2 };
        assert!(served.starts_with(base), "{place}: the other entry gets '{served}'");
        match expected {
            Some(address) => assert!(given.split(' ').next() == Some(address), "{place}: got '{given}'"),
            None => {
                assert!(given.contains(".20") || given.contains(".21") || given.contains("::2"), "{place}: '{given}'")
            }
        }
        let what = if expected.is_some() { given } else { format!("{given} (pool)") };
        self.rows.lock().unwrap().push([situation.to_owned(), what, said.to_owned()]);
    }

    fn failed(
        &self,
        situation: &str,
        outcome: Result<DhcpOut, Failure>,
        code: FailureCode,
        expected: Option<&str>,
    ) -> Failure {
        let failure = outcome.map(|out| panic!("{}, {situation}: {out:?}", self.kind)).unwrap_err();
        assert_eq!(failure.code, code, "{}, {situation}: {failure}", self.kind);
        self.assert_well(situation, &format!("{}: {}", failure.code.as_str(), failure.message), expected);
        failure
    }

    fn served(&self, situation: &str, outcome: Result<DhcpOut, Failure>, expected: &str) {
        let out = outcome.unwrap_or_else(|failure| panic!("{}, {situation}: {failure}", self.kind));
        let said = if out.changed { "served" } else { "right already" };
        self.assert_well(situation, said, Some(expected));
    }

    /// The table of what happened.
    fn print(&self) {
        println!("\n{}: situation | a client of the entry then gets | muster said", self.server);
        for [situation, given, said] in self.rows.lock().unwrap().iter() {
            println!("  {situation} | {given} | {said}");
        }
    }
}

fn run(command: &str) -> (bool, String) {
    let done = Command::new("sh").arg("-c").arg(command).output().unwrap();
    let said = [done.stdout, done.stderr].concat();
    (done.status.success(), String::from_utf8_lossy(&said).into_owned())
}

/// Everything that can go wrong, one after the other, with an entry that is served as .42 and is to become .43.
///
/// Proves: D4, D5, D6, D7, D8, D9
async fn every_situation(host: &Host<'_>) {
    let way = host.way();
    let good = host.serve(&way, &new("198.51.100.42")).await;
    host.served("good entry", good, "198.51.100.42");

    let (restarts, transfers) = (host.restarts(), host.transfers());
    let again = host.serve(&way, &new("198.51.100.42")).await;
    assert!(!again.as_ref().unwrap().changed);
    host.served("equal digest", again, "198.51.100.42");
    assert_eq!((host.restarts(), host.transfers()), (restarts, transfers), "no transfer and no restart");
    let noisy = host.serve(&Way { key: "noisy", ..way.clone() }, &new("198.51.100.42")).await;
    assert!(!noisy.as_ref().unwrap().changed, "what a profile says is no digest");
    host.served("equal digest, banner and noisy profile", noisy, "198.51.100.42");
    assert_eq!((host.restarts(), host.transfers()), (restarts, transfers));

    // What is in the server's own configuration, beside the folder, muster cannot see: the server's test does.
    let refused = match host.server {
        Server::Isc => entry("in-main", NEW, "198.51.100.43"),
        Server::Kea => entry("gpu-b07-38", "02:aa:00:00:00:03", "203.0.113.9"),
        Server::Dnsmasq => entry("gpu-b07-38", "02:aa:00:00:00:03", "198.51.100.9"),
    };
    if host.server == Server::Isc {
        std::fs::remove_file(host.directory().join("gpu-b07-37.conf")).unwrap();
        assert!(host.verb("restart").0);
    }
    let restarts = host.restarts();
    let outcome = host.serve(&way, &refused).await;
    let left = if host.server == Server::Isc { None } else { Some("198.51.100.42") };
    let failure = host.failed("the server's test refuses it", outcome, FailureCode::DhcpValidationFailed, left);
    assert!(failure.message.contains("was not restarted") && host.restarts() == restarts, "{failure}");
    if host.server == Server::Isc {
        host.serve(&way, &new("198.51.100.42")).await.unwrap();
    }

    for (situation, verb) in [("it does not come back", "restart"), ("it comes back and does not serve", "validate")] {
        host.fault(&format!("fail-{verb}-once"), "main process exited, code=exited, status=1\n");
        let outcome = host.serve(&way, &new("198.51.100.43")).await;
        let failure = host.failed(situation, outcome, FailureCode::DhcpValidationFailed, Some("198.51.100.42"));
        assert!(failure.message.contains("the service runs again"), "{failure}");
    }
    host.fault("hang-restart-once", "4");
    let outcome = host.serve(&Way { command_s: "2.5", ..way.clone() }, &new("198.51.100.43")).await;
    tokio::time::sleep(Duration::from_secs(3)).await; // the restart that hung is carried out at last
    host.failed("its restart hangs", outcome, FailureCode::DhcpTimeout, Some("198.51.100.42"));

    let outcome = host.serve(&Way { host_key: "other_host_key", ..way.clone() }, &new("198.51.100.43")).await;
    let failure = host.failed("host key changed", outcome, FailureCode::DhcpHostKeyChanged, Some("198.51.100.42"));
    assert_eq!(failure.message.matches("SHA256:").count(), 2, "{failure}");

    let full = host.directory().join(".full");
    std::fs::write(&full, vec![b'x'; 1 << 20]).unwrap_err();
    let outcome = host.serve(&way, &new("198.51.100.43")).await;
    std::fs::remove_file(&full).unwrap();
    host.failed("disk full", outcome, FailureCode::DhcpTransferFailed, Some("198.51.100.42"));
    // The disk fills up while the service is restarted, in vain.
    host.fault("fail-restart-once", "no space left on device\n");
    host.fault("hang-restart-once", "0.7");
    let changed = new("198.51.100.43");
    let (outcome, ()) = tokio::join!(host.serve(&way, &changed), async {
        let file = host.directory().join(render(host.server, &changed).unwrap().name);
        while !std::fs::read_to_string(&file).unwrap_or_default().contains("100.43") {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
        std::fs::write(&full, vec![b'x'; 1 << 20]).unwrap_err();
    });
    std::fs::remove_file(&full).unwrap();
    host.failed("disk full on the way back", outcome, FailureCode::DhcpValidationFailed, Some("198.51.100.42"));

    let bare = Way { port: host.rig["port_without_sftp"].as_u64().unwrap() as u16, ..way.clone() };
    let outcome = host.serve(&bare, &new("198.51.100.43")).await;
    host.failed("no SFTP subsystem", outcome, FailureCode::DhcpTransferFailed, Some("198.51.100.42"));

    let slow = Way { key: "slow", command_s: "0.4", ..way.clone() };
    let outcome = host.serve(&slow, &new("198.51.100.43")).await;
    host.failed("slow shell, short patience", outcome, FailureCode::DhcpTimeout, Some("198.51.100.42"));

    for (situation, entry) in [
        ("duplicate MAC", entry("gpu-b07-38", BASE.1, "198.51.100.44")),
        ("duplicate address", entry("gpu-b07-38", "02:aa:00:00:00:03", BASE.2)),
        ("duplicate name", entry("base-BMC", "02:aa:00:00:00:03", "198.51.100.44")),
    ] {
        let outcome = host.serve(&way, &entry).await;
        let failure = host.failed(situation, outcome, FailureCode::DhcpEntryInvalid, Some("198.51.100.42"));
        assert!(failure.message.contains("'base-bmc."), "{failure}");
    }

    cut_everywhere(host).await;
    let slow = host.serve(&Way { key: "slow", ..way.clone() }, &new("198.51.100.45")).await;
    host.served("slow shell", slow, "198.51.100.45");
    let noisy = host.serve(&Way { key: "noisy", ..way.clone() }, &new("198.51.100.46")).await;
    host.served("banner and noisy profile", noisy, "198.51.100.46");
    assert_eq!(dot_files(host), [] as [String; 0]);
}

/// The connection is cut after so many bytes of the client: in each step once, and in the middle of the transfer.
async fn cut_everywhere(host: &Host<'_>) {
    let way = host.way();
    let cutter = Cutter::in_front_of(way.port).await;
    let through = Way { port: cutter.port, ..way };
    cutter.cut_after(None);
    host.serve(&through, &new("198.51.100.43")).await.unwrap();
    host.serve(&through, &new("198.51.100.42")).await.unwrap();
    let whole = cutter.carried();
    // The first part is key exchange and login, which touch nothing.
    for tenths in [4, 5, 6, 7, 8, 9] {
        let at = whole * tenths / 10;
        cutter.cut_after(Some(at));
        let outcome = host.serve(&through, &new("198.51.100.43")).await;
        let situation = format!("cut after {at} of {whole} bytes");
        match outcome {
            Ok(_) => {
                host.served(&situation, outcome, "198.51.100.43");
                host.serve(&through, &new("198.51.100.42")).await.unwrap();
            }
            Err(failure) => {
                assert!(failure.retryable, "{failure}");
                host.failed(&situation, Err(failure.clone()), failure.code, Some("198.51.100.42"));
            }
        }
    }
    cutter.cut_after(None);
    let next = host.serve(&through, &new("198.51.100.43")).await;
    host.served("the attempt after a cut", next, "198.51.100.43");
}

fn dot_files(host: &Host<'_>) -> Vec<String> {
    let names = std::fs::read_dir(host.directory()).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap());
    names.filter(|name| name.starts_with('.')).collect()
}

/// Proves: D2, D4, D5, D6, D7, D8, D9
#[tokio::test]
async fn isc_dhcpd_serves_on_whatever_happens() {
    let Some((rig, _turn)) = rig().await else { return };
    let host = Host::start(&rig, "isc", Server::Isc);
    every_situation(&host).await;
    host.print();
}

/// Proves: D2, D4, D5, D6, D7, D8, D9
#[tokio::test]
async fn kea_serves_on_whatever_happens() {
    let Some((rig, _turn)) = rig().await else { return };
    let host = Host::start(&rig, "kea", Server::Kea);
    every_situation(&host).await;
    host.print();
}

/// Proves: D2, D4, D5, D6, D7, D8, D9
#[tokio::test]
async fn dnsmasq_serves_on_whatever_happens() {
    let Some((rig, _turn)) = rig().await else { return };
    let host = Host::start(&rig, "dnsmasq", Server::Dnsmasq);
    every_situation(&host).await;
    host.print();
}

/// Proves: D10
#[tokio::test]
async fn runs_at_once_share_a_restart_that_the_server_counts() {
    let Some((rig, _turn)) = rig().await else { return };
    for (kind, server) in [("isc", Server::Isc), ("kea", Server::Kea), ("dnsmasq", Server::Dnsmasq)] {
        let host = Host::start(&rig, kind, server);
        let (settings, cx) = host.settings(&host.way());
        let entries: Vec<Entry> = (0..6u8)
            .map(|n| entry(&format!("gpu-{n}"), &format!("02:aa:00:00:01:0{n}"), &format!("198.51.100.6{n}")))
            .collect();
        let restarts = host.restarts();
        for outcome in join_all(entries.iter().map(|entry| serve_entry(&cx, &settings, entry))).await {
            assert!(outcome.unwrap().changed);
        }
        assert_eq!(host.restarts() - restarts, 2, "{kind}: one for the first, one for the five behind it");
        for entry in &entries {
            let given = host.lease(&entry.mac.to_string()).unwrap();
            assert!(given.starts_with(&format!("{} ", entry.address)), "{kind}: {given}");
        }
    }
}

/// Proves: D2, D7
/// Case: C-25
#[tokio::test]
async fn an_ipv6_management_address_is_leased_by_each_kind() {
    let Some((rig, _turn)) = rig().await else { return };
    for (kind, server) in [("isc6", Server::Isc), ("kea6", Server::Kea), ("dnsmasq", Server::Dnsmasq)] {
        let host = Host::start(&rig, kind, server);
        host.serve(&host.way(), &new("2001:db8:8::29")).await.unwrap_or_else(|f| panic!("{kind}: {f}"));
        // dnsmasq is one server for both families.
        let mac = if host.is_six() { NEW.to_owned() } else { format!("{NEW} 6") };
        let given = host.lease(&mac).unwrap_or_default();
        assert!(given.starts_with("2001:db8:8::29 "), "{kind}: '{given}'");
    }
}

/// Names of every form that is taken, and words that a configuration has for something else.
fn names() -> Vec<String> {
    let mut runner = TestRunner::deterministic();
    let any = "[a-zA-Z0-9]([a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?";
    let mut names: Vec<String> = [
        "host",
        "group",
        "subnet",
        "pool",
        "hardware",
        "ethernet",
        "include",
        "option",
        "true",
        "null",
        "on",
        "if",
        "else",
        "range",
        "deny",
        "fixed-address",
        "1",
        "007",
        "0x10",
        "1e5",
        "12h",
        "infinite",
        "ignore",
        "net",
    ]
    .map(str::to_owned)
    .into();
    while names.len() < 150 {
        let name = any.new_tree(&mut runner).unwrap().current();
        if !names.iter().any(|known| known.eq_ignore_ascii_case(&name)) {
            names.push(name);
        }
    }
    names
}

/// Proves: D2
#[tokio::test]
async fn every_rendered_entry_passes_the_servers_own_checker() {
    let Some((rig, _turn)) = rig().await else { return };
    for (kind, server) in [
        ("isc", Server::Isc),
        ("kea", Server::Kea),
        ("dnsmasq", Server::Dnsmasq),
        ("isc6", Server::Isc),
        ("kea6", Server::Kea),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let mut rendered = 0;
        for (n, name) in names().into_iter().enumerate() {
            // Every octet of the MAC has its turns at small, large and odd values.
            let mac = [0x02, 0xff - n as u8, 0, n as u8, 0xa0, (n * 7) as u8];
            let mac: Mac = mac.map(|octet| format!("{octet:02x}")).join(":").parse().unwrap();
            let address = match kind.ends_with('6') {
                true => format!("2001:db8:8::{:x}", 0x1000 + n * 77),
                false => format!("198.51.100.{}", 20 + n),
            };
            let Ok(file) = render(server, &Entry { name, mac, address: address.parse().unwrap() }) else { continue };
            std::fs::write(folder.path().join(file.name), file.content).unwrap();
            rendered += 1;
        }
        let check = text(&rig["servers"][kind], "check");
        let (ok, said) = run(&format!("{check} {}", folder.path().display()));
        assert!(ok, "{kind} refuses what was rendered: {said}");
        println!("{kind}: {rendered} entries at once pass its own checker");
        assert!(rendered > 130, "{kind}: {rendered}");
    }
}

//! The DHCP activity's bench: a DHCP host of the lab, and an attempt's context with key and known_hosts for it.

use std::time::Duration;

use muster::activities::dhcp::serve_entry;
use muster::activities::env::ActivityCx;
use muster::config::settings::{DhcpServerKind, DhcpSettings};
use muster::domain::dhcp::{Entry, render};
use muster::domain::event::Observation;
use muster::domain::failure::Failure;
use muster::lab::dhcp_host::{DIRECTORY, DhcpHost, RESTART, TEST, USER, VALIDATE, serve};
use muster::lab::faults::{Fault, HttpRule};
use muster::lab::ironic::Ironic;
use muster::lab::ledger::System;
use muster::lab::records::Records;
use muster::lab::world::{Timing, World};
use muster::workflows::defs::DhcpOut;

use crate::support::{Seen, context};

/// The activity's context before a DHCP host of the lab.
pub struct Bench {
    pub world: World,
    pub host: DhcpHost,
    pub settings: DhcpSettings,
    pub cx: ActivityCx,
    pub seen: Seen,
    pub folder: tempfile::TempDir,
}

const CONFIG: &str = r#"
[netbox]
url = "http://127.0.0.1:9"
token = "env:NOT_USED"
[vault]
kind = "file"
path = "vault.toml"
[ironic.lab]
url = "http://127.0.0.1:9"
device_classes = ["COMPUTE_GPU"]
auth = { kind = "none" }
[sites.osl1.dhcp]
host = "127.0.0.1"
port = PORT
user = "USER"
server = "SERVER"
directory = "DIRECTORY"
test = "TEST"
restart = "RESTART"
validate = "VALIDATE"
connect_s = 10
login_s = 10
command_s = 10
transfer_s = 10
"#;

impl Bench {
    pub async fn start(server: DhcpServerKind) -> Bench {
        let world = World::new(vec![], Records::default(), Ironic::default(), Timing::default(), 1000.0);
        let host = serve(&world).await.unwrap();
        let folder = tempfile::tempdir().unwrap();
        let text = CONFIG
            .replace("PORT", &host.addr().port().to_string())
            .replace("USER", USER)
            .replace("SERVER", server.as_str())
            .replace("DIRECTORY", DIRECTORY)
            .replace("TEST", TEST)
            .replace("RESTART", RESTART)
            .replace("VALIDATE", VALIDATE)
            .replace("vault.toml", folder.path().join("vault.toml").to_str().unwrap());
        let settings = muster::config::parse(&text, "config.toml").unwrap_or_else(|e| panic!("{e}"));
        let dhcp = settings.sites["osl1"].dhcp.clone().unwrap();
        let (cx, seen) = context(settings, folder.path());
        let bench = Bench { world, host, settings: dhcp, cx, seen, folder };
        bench.vault(bench.host.private_key(), &bench.host.known_hosts());
        bench
    }

    pub fn vault(&self, private_key: &str, known_hosts: &str) {
        use std::os::unix::fs::PermissionsExt;
        let path = self.folder.path().join("vault.toml");
        let text =
            format!("[ssh-config-dhcp]\nprivate_key = '''\n{private_key}'''\nknown_hosts = '''\n{known_hosts}'''\n");
        std::fs::write(&path, text).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
    }

    pub async fn run(&self) -> Result<DhcpOut, Failure> {
        tokio::time::timeout(Duration::from_secs(60), serve_entry(&self.cx, &self.settings, &entry())).await.unwrap()
    }

    pub async fn fails(&self) -> Failure {
        let failure = self.run().await.unwrap_err();
        assert!(!failure.message.is_empty() && !failure.action.is_empty());
        failure
    }

    pub fn fault(&self, rule: HttpRule) {
        self.world.add_fault(Fault::Http(HttpRule { system: Some(System::Dhcp), ..rule }));
    }

    pub fn writes(&self) -> Vec<String> {
        self.world.ledger().writes().into_iter().map(|entry| format!("{} {}", entry.method, entry.path)).collect()
    }

    pub fn file(&self) -> String {
        render(self.settings.server, &entry()).unwrap().name
    }

    pub fn wrote(&self) -> usize {
        self.seen.lock().unwrap().iter().filter(|o| matches!(o, Observation::Wrote { .. })).count()
    }

    /// Whether some run said this.
    pub fn said(&self, part: &str) -> bool {
        let seen = self.seen.lock().unwrap();
        seen.iter().any(|o| matches!(o, Observation::Note { text, .. } if text.contains(part)))
    }

    /// The entry folder holds these files and no leftovers.
    pub fn assert_folder(&self, expected: &[(&str, &str)]) {
        let files = self.host.files();
        let found: Vec<(&str, &str)> = files.iter().map(|(name, content)| (name.as_str(), content.as_str())).collect();
        assert_eq!(found, expected);
    }
}

pub fn entry() -> Entry {
    Entry {
        name: "gpu-b07-37".into(),
        mac: "02:aa:00:00:00:02".parse().unwrap(),
        address: "10.10.8.42".parse().unwrap(),
    }
}

/// The first so many times that the command is run, it says no.
pub fn failing(command: &str, count: u32) -> HttpRule {
    HttpRule {
        method: Some("exec".into()),
        path: Some(command.into()),
        status: Some(1),
        body: Some("line 3: \u{1b}[31mno subnet".into()),
        count: Some(count),
        ..HttpRule::default()
    }
}

//! muster against real services: Ironic with emulated BMCs and ramdisks, NetBox, OpenSSH in front of DHCP servers.
//! `tests/run` starts them; see `tests/real/README.md`.

#[allow(dead_code, reason = "each test binary uses its part of the support")]
#[path = "support/binary.rs"]
mod binary;
#[allow(dead_code, reason = "each test binary uses its part of the support")]
#[path = "support/counting.rs"]
mod counting;
#[path = "real/cut.rs"]
mod cut;
#[path = "real/dhcp.rs"]
mod dhcp;
#[path = "real/doctor.rs"]
mod doctor;
#[path = "support/door.rs"]
mod door;
#[path = "real/fleet.rs"]
mod fleet;
#[path = "support/inside.rs"]
mod inside;
#[path = "real/keystone.rs"]
mod keystone;
#[allow(dead_code, reason = "each test binary uses its part of the support")]
#[path = "support/nats.rs"]
mod nats;
#[path = "real/netbox.rs"]
mod netbox;
#[path = "real/nodes.rs"]
mod nodes;
#[path = "support/prelude.rs"]
mod prelude;
#[path = "real/push.rs"]
mod push;
#[path = "real/second.rs"]
mod second;
#[path = "support/dhcp.rs"]
mod support;
#[path = "real/table.rs"]
mod table;

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use binary::{Ended, Running, muster, request};
use counting::Counting;
use muster::clients::http::{Auth, HttpClient, Method, Request};
use serde_json::{Value, json};

/// The rigs of this run, each as its `env.json`.
struct Rigs {
    ironic: Value,
    netbox: Value,
    ssh: Value,
}

/// `None` where this run has no rigs and may do without.
fn rigs() -> Option<Rigs> {
    let read = |name: &str| {
        let variable = format!("MUSTER_REAL_{name}");
        let Some(path) = std::env::var_os(&variable) else {
            assert!(std::env::var_os("MUSTER_REAL").is_none(), "could not run: {variable} names no rig");
            return None;
        };
        Some(serde_json::from_str::<Value>(&std::fs::read_to_string(path).unwrap()).unwrap())
    };
    Some(Rigs { ironic: read("IRONIC")?, netbox: read("NETBOX")?, ssh: read("SSHD")? })
}

/// Asks the rig's NetBox as its administrator.
async fn ask_netbox(http: &HttpClient, env: &Value, method: Method, path: &str, body: Option<Value>) -> Value {
    let token = format!("Bearer {}", text(env, "admin_token"));
    let request = Request::new(method, path).auth(Auth::Authorization(token.into()));
    let request = match body {
        Some(body) => request.json(body),
        None => request,
    };
    let answer = http.send(request).await.unwrap();
    assert!(answer.status.is_success(), "{path}: {}", answer.excerpt());
    answer.json().unwrap_or(Value::Null)
}

fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value[key].as_str().unwrap_or_else(|| panic!("no text '{key}' in {value}"))
}

/// A configuration for the rigs, with a counting proxy in front of each API.
struct Site {
    rigs: Rigs,
    netbox: Counting,
    ironic: Counting,
    folder: tempfile::TempDir,
    config: PathBuf,
}

impl Site {
    fn new(rigs: Rigs) -> Site {
        // Whatever a test or the rig's own proof has set before this.
        request("DELETE", &format!("{}/faults", text(&rigs.ironic, "ramdisk_url")), None);
        let netbox = Counting::in_front_of(text(&rigs.netbox, "url"));
        let ironic = Counting::in_front_of(text(&rigs.ironic, "ironic_url"));
        let folder = tempfile::tempdir().unwrap();
        private(&folder.path().join("netbox.token"), text(&rigs.netbox, "token"));
        private(&folder.path().join("vault.toml"), &vault(&rigs));
        let config = folder.path().join("muster.toml");
        let auth = match rigs.ironic["ironic_user"].as_str() {
            None => "{ kind = \"none\" }".to_owned(),
            Some(user) => {
                private(&folder.path().join("ironic.password"), text(&rigs.ironic, "ironic_password"));
                format!("{{ kind = \"http_basic\", username = \"{user}\", password = \"file:ironic.password\" }}")
            }
        };
        let ssh = &rigs.ssh;
        let quoted = |key: &str| serde_json::to_string(text(ssh, key)).unwrap();
        std::fs::write(
            &config,
            format!(
                r#"
[netbox]
url = "{netbox}"
token = "file:netbox.token"

[vault]
kind = "file"
path = "vault.toml"

[ironic.rig]
url = "{ironic}"
device_classes = ["COMPUTE_GPU", "COMPUTE_CPU", "HYPERVISOR"]
auth = {auth}
poll_s = 2

[sites.osl1.gates]
# The emulated BMCs are of no vendor: the BMC phase is proven on the lab.
configure_bmc = false
platform_class_activity_ready = true

[sites.osl1.deadlines]
poll_first_s = 0.5
poll_max_s = 2
link_poll_s = 0.5
inspection_s = 240
cleaning_s = 400

[sites.osl1.bmc]
trust = "anything"

[sites.osl1.dhcp]
host = {host}
port = {port}
user = {user}
server = {server}
directory = {directory}
test = {test}
restart = {restart}
validate = {validate}
"#,
                netbox = netbox.url,
                ironic = ironic.url,
                host = quoted("host"),
                port = ssh["port"],
                user = quoted("user"),
                server = quoted("server"),
                directory = quoted("entry_dir"),
                test = quoted("test"),
                restart = quoted("restart"),
                validate = quoted("validate"),
            ),
        )
        .unwrap();
        Site { rigs, netbox, ironic, folder, config }
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = muster(&[]);
        command.arg("--config").arg(&self.config).arg("--state-dir").arg(self.folder.path().join("state"));
        command.args(arguments);
        command
    }

    fn run(&self, arguments: &[&str]) -> Ended {
        Running::start(self.command(arguments)).end()
    }

    /// Ironic, asked as its administrator and past the proxy.
    fn node(&self, host: &str) -> Value {
        self.ironic(&format!("/v1/nodes/{host}"))
    }

    fn ironic(&self, path: &str) -> Value {
        let url = format!("{}{path}", text(&self.rigs.ironic, "ironic_url"));
        let user = self.rigs.ironic["ironic_user"].as_str();
        let output = {
            let mut curl = Command::new("curl");
            curl.args(["-fsS", "-H", "X-OpenStack-Ironic-API-Version: 1.81", &url]);
            if let Some(user) = user {
                curl.arg("-u").arg(format!("{user}:{}", text(&self.rigs.ironic, "ironic_password")));
            }
            curl.output().unwrap()
        };
        assert!(output.status.success(), "{path}: {}", String::from_utf8_lossy(&output.stderr));
        serde_json::from_slice(&output.stdout).unwrap()
    }

    fn restarts(&self) -> u32 {
        let counted = std::fs::read_to_string(text(&self.rigs.ssh, "restarts_file")).unwrap();
        counted.trim().parse().unwrap()
    }

    fn netbox_device(&self, host: &str) -> Value {
        let devices = self.rigs.netbox["devices"].as_array().unwrap();
        let id = &devices.iter().find(|device| device["name"] == host).unwrap()["id"];
        let url = format!("{}/api/dcim/devices/{id}/", text(&self.rigs.netbox, "url"));
        let bearer = format!("Authorization: Bearer {}", text(&self.rigs.netbox, "token"));
        let output = Command::new("curl").args(["-fsS", "-H", &bearer, &url]).output().unwrap();
        serde_json::from_slice(&output.stdout).unwrap()
    }

    fn fault(&self, host: &str, stage: &str, fault: Value) {
        request("PUT", &format!("{}/faults/{host}/{stage}", text(&self.rigs.ironic, "ramdisk_url")), Some(fault));
    }
}

fn private(path: &Path, content: &str) {
    std::fs::write(path, content).unwrap();
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600)).unwrap();
}

fn vault(rigs: &Rigs) -> String {
    let file = |key: &str| std::fs::read_to_string(text(&rigs.ssh, key)).unwrap();
    let mut items = toml::Table::new();
    let mut item = |name: String, fields: [(&str, String); 2]| {
        let fields: toml::Table = fields.into_iter().map(|(k, v)| (k.to_owned(), v.into())).collect();
        items.insert(name, fields.into());
    };
    item("ssh-config-dhcp".into(), [("private_key", file("private_key")), ("known_hosts", file("known_hosts"))]);
    for system in rigs.ironic["systems"].as_array().unwrap() {
        let name = format!("bmc-{}", text(system, "name"));
        let bmc = |key| text(&rigs.ironic, key).to_owned();
        item(name, [("username", bmc("bmc_user")), ("password", bmc("bmc_password"))]);
    }
    items.to_string()
}

/// Proves: G1, G4, E2, I3, I4, I14, C7, D6, D7, T1
#[test]
fn two_hosts_end_available_on_real_services_and_their_rerun_writes_nothing() {
    let Some(rigs) = rigs() else { return };
    let site = Site::new(rigs);
    let hosts = ["osl1-b07-u11", "osl1-b07-u15"];
    let before = site.restarts();
    let first = site.run(&["enroll", hosts[0], hosts[1], "--json"]);
    assert_eq!(first.code(), Some(0), "{first}");
    for host in hosts {
        assert_eq!(first.finished(host)["status"], "succeeded");
        let node = site.node(host);
        assert_eq!(
            (&node["provision_state"], &node["power_state"]),
            (&json!("available"), &json!("power on")),
            "{node:#}"
        );
        let ports = site.ironic(&format!("/v1/ports?node={host}&detail=true"));
        let ports = ports["ports"].as_array().unwrap().clone();
        let boot: Vec<&Value> = ports
            .iter()
            .filter(|port| {
                port["pxe_enabled"] == true && !port["local_link_connection"].as_object().is_none_or(|l| l.is_empty())
            })
            .collect();
        assert_eq!(boot.len(), 1, "PXE on exactly one of our ports: {ports:#?}");
        let unit = host.rsplit_once('u').unwrap().1;
        // The GPU host's bond is a LAG, whose parent is the link; the other's is not.
        let expected = if host == hosts[0] { format!("bond{unit}") } else { format!("swp{unit}") };
        let link = &boot[0]["local_link_connection"];
        assert_eq!((&link["switch_info"], &link["port_id"]), (&json!("leaf-b07-1"), &json!(expected)), "{link:#}");
        let device = site.netbox_device(host);
        assert_eq!(device["status"]["value"], "active");
        let tags: Vec<&Value> = device["tags"].as_array().unwrap().iter().map(|tag| &tag["slug"]).collect();
        assert!(tags.contains(&&json!("ironic")), "{tags:?}");
        assert!(
            device["custom_fields"]["platform_class"].as_str().is_some_and(|key| key.ends_with("_01")),
            "{device:#}"
        );
    }
    let restarts = site.restarts();
    assert!(
        (1..=2).contains(&(restarts - before)),
        "{restarts} after {before} restarts of the DHCP service for two entries"
    );
    offered(&site, hosts[0]);

    site.netbox.take();
    site.ironic.take();
    let second = site.run(&["enroll", hosts[0], hosts[1], "--json"]);
    assert_eq!(second.code(), Some(0), "{second}");
    assert_eq!(site.netbox.take_writes(), Vec::<String>::new(), "the rerun wrote to NetBox");
    assert_eq!(site.ironic.take_writes(), Vec::<String>::new(), "the rerun wrote to Ironic");
    assert_eq!(site.restarts(), restarts, "the rerun restarted the DHCP service");
}

/// The real DHCP server offers the address that NetBox has.
fn offered(site: &Site, host: &str) {
    if site.rigs.ssh["serving"] != true {
        return;
    }
    let device = site.netbox_device(host);
    let address = text(&device["oob_ip"], "address").split('/').next().unwrap().to_owned();
    let entry = std::fs::read_dir(text(&site.rigs.ssh, "entry_dir")).unwrap().map(|e| e.unwrap().path());
    let file = entry.into_iter().find(|path| path.file_name().unwrap().to_string_lossy().starts_with(host)).unwrap();
    let content = std::fs::read_to_string(file).unwrap();
    let mac = content.split("hardware ethernet ").nth(1).unwrap().split(';').next().unwrap();
    let offer = Command::new("sh").arg("-c").arg(format!("{} {mac}", text(&site.rigs.ssh, "offer"))).output().unwrap();
    let offer = String::from_utf8_lossy(&offer.stdout).into_owned();
    assert!(offer.starts_with(&address), "offered '{offer}', expected {address}");
}

/// Proves: V8, V10, I12
#[test]
fn a_miscabled_host_fails_on_what_a_real_inspection_brought() {
    let Some(rigs) = rigs() else { return };
    let site = Site::new(rigs);
    let host = "osl1-b07-u13";
    site.fault(
        host,
        "inspect",
        json!({"times": 1, "nics": {
        "eth0": {"switch": "leaf-b07-2", "port": "swp13"}, "eth1": {"switch": "leaf-b07-1", "port": "swp13"}}}),
    );
    let ended = site.run(&["enroll", host, "--json"]);
    assert_eq!(ended.code(), Some(1), "{ended}");
    let failure = &ended.finished(host)["failure"];
    assert_eq!((&failure["code"], &failure["owner"]), (&json!("CABLES_WRONG"), &json!("ONSITE")), "{failure:#}");
    assert!(text(failure, "message").contains("swapped"), "{failure:#}");
    assert_eq!(site.node(host)["provision_state"], "manageable");
}

/// Proves: G5
#[test]
fn a_run_killed_while_ironic_inspects_goes_on_where_it_was() {
    let Some(rigs) = rigs() else { return };
    let site = Site::new(rigs);
    let host = "osl1-b07-u17";
    let mut running = Running::start(site.command(&["enroll", host, "--json"]));
    let seen = running.wait_for("inspect asked for", |line| line.contains("inspect asked for"));
    assert!(seen.is_some(), "{}", running.end());
    running.kill();
    let ended = site.run(&["enroll", host, "--json"]);
    assert_eq!(ended.code(), Some(0), "{ended}");
    assert_eq!(ended.finished(host)["status"], "succeeded");
    let asked =
        site.ironic.take().into_iter().filter(|r| r.starts_with("PUT") && r.ends_with("/states/provision")).count();
    assert_eq!(asked, 3, "manage, inspect and provide, each once");
}

/// Proves: U10. The emulator is of no vendor: what is asked for is the standard's.
#[test]
fn locator_and_power_of_an_emulated_bmc_follow_the_commands_and_read_back() {
    let Some(rigs) = rigs() else { return };
    let site = Site::new(rigs);
    let host = "osl1-b07-u15";
    let redfish = |path: &str| -> Value {
        let system = site.rigs.ironic["systems"].as_array().unwrap().iter().find(|s| s["name"] == host).unwrap();
        let user = format!("{}:{}", text(&site.rigs.ironic, "bmc_user"), text(&site.rigs.ironic, "bmc_password"));
        let url = format!("{}{}", text(&site.rigs.ironic, "redfish_url"), text(system, "redfish_system_id"));
        let output = Command::new("curl").args(["-fsS", "-u", &user, &url]).output().unwrap();
        let body: Value = serde_json::from_slice(&output.stdout).unwrap();
        body[path].clone()
    };
    let power = |words: &[&str]| {
        let ended = site.run(&[&["power", host], words, &["--json"]].concat());
        assert_eq!(ended.code(), Some(0), "{ended}");
        ended.events().last().unwrap()["power"].clone()
    };
    for (word, led) in [("on", "Blinking"), ("off", "Off")] {
        let ended = site.run(&["locate", host, word, "--json"]);
        assert_eq!(ended.code(), Some(0), "{ended}");
        assert_eq!(redfish("IndicatorLED"), led, "{ended}");
    }
    let before = power(&["status"]);
    assert_eq!(power(&["off", "--hard", "--yes"]), "Off");
    assert_eq!(redfish("PowerState"), "Off");
    assert_eq!(power(&["on"]), "On");
    assert_eq!(redfish("PowerState"), "On");
    assert_eq!(power(&["cycle", "--yes"]), "On");
    if before == "Off" {
        power(&["off", "--hard", "--yes"]);
    }
}

/// Proves: P12
#[test]
fn a_backfill_writes_what_was_cleared_in_a_real_netbox_and_the_second_one_nothing() {
    let Some(rigs) = rigs() else { return };
    let site = Site::new(rigs);
    let host = "osl1-b07-u11";
    let recorded = || site.netbox_device(host)["custom_fields"]["platform_class"].clone();
    let url = format!("{}/api/dcim/devices/{}/", text(&site.rigs.netbox, "url"), site.netbox_device(host)["id"]);
    let bearer = format!("Authorization: Bearer {}", text(&site.rigs.netbox, "admin_token"));
    let cleared = json!({"custom_fields": {"platform_class": null}}).to_string();
    let mut curl = Command::new("curl");
    curl.args(["-fsS", "-o", "/dev/null", "-X", "PATCH", "-H", &bearer, "-H", "Content-Type: application/json"]);
    assert!(curl.args(["-d", &cleared, &url]).status().unwrap().success());

    let dry = site.run(&["platform-class", "backfill", host, "--json"]);
    assert_eq!((dry.code(), &dry.events()[0]["outcome"]), (Some(0), &json!("missing")), "{dry}");
    assert_eq!((site.netbox.take_writes(), recorded()), (vec![], Value::Null));
    let applied = site.run(&["platform-class", "backfill", host, "--apply", "--json"]);
    assert_eq!((applied.code(), &applied.events()[0]["outcome"]), (Some(0), &json!("written")), "{applied}");
    assert_eq!(recorded(), applied.events()[0]["effective"]);
    assert_eq!(site.netbox.take_writes().len(), 1);
    let again = site.run(&["platform-class", "backfill", "--apply", "--json"]);
    assert_eq!(again.events()[0]["summary"], Value::Null, "{again}");
    let of_host = again.events().into_iter().find(|event| event["host"] == host).unwrap();
    assert_eq!(of_host["outcome"], "right", "{again}");
}

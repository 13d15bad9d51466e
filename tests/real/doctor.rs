//! `muster doctor` against a real NetBox with accounts of several rights.

use muster::app::doctor::{Check, Level, doctor};
use muster::clients::http::{HttpClient, HttpOptions, Method};
use muster::config::settings::{SecretRef, Settings};
use serde_json::{Value, json};

struct Rig {
    env: Value,
    http: HttpClient,
    settings: Settings,
    folder: tempfile::TempDir,
}

fn rig() -> Option<Rig> {
    let Some(path) = std::env::var_os("MUSTER_REAL_NETBOX") else {
        assert!(std::env::var_os("MUSTER_REAL").is_none(), "could not run: MUSTER_REAL_NETBOX names no rig");
        return None;
    };
    let env: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    let text = format!(
        "[netbox]\nurl = \"{}\"\ntoken = \"env:UNUSED\"\n[sites.osl1.gates]\nconfigure_dhcp = false\n",
        super::text(&env, "url")
    );
    let settings = muster::config::parse(&text, "real.toml").unwrap_or_else(|e| panic!("{e}"));
    let http = HttpClient::new("netbox", &settings.netbox.url, &HttpOptions::default()).unwrap();
    Some(Rig { env, http, settings, folder: tempfile::tempdir().unwrap() })
}

impl Rig {
    async fn ask(&self, method: Method, path: &str, body: Option<Value>) -> Value {
        super::ask_netbox(&self.http, &self.env, method, path, body).await
    }

    async fn post(&self, path: &str, body: Value) -> Value {
        self.ask(Method::POST, path, Some(body)).await
    }

    /// An account with these permissions, and its token.
    async fn account(&self, name: &str, grants: &[Value], token: Value) -> String {
        let name = format!("{name}-{}", uuid::Uuid::now_v7().simple());
        let user = json!({"username": name, "password": "Rig-doctor-0000"});
        let user = self.post("/api/users/users/", user).await["id"].as_u64().unwrap();
        for (n, grant) in grants.iter().enumerate() {
            let mut body = grant.clone();
            (body["name"], body["users"]) = (json!(format!("{name} {n}")), json!([user]));
            self.post("/api/users/permissions/", body).await;
        }
        let mut body = json!({"user": user, "description": name});
        body.as_object_mut().unwrap().extend(token.as_object().unwrap().clone());
        let made = self.post("/api/users/tokens/", body).await;
        format!("nbt_{}.{}", super::text(&made, "key"), super::text(&made, "token"))
    }

    async fn look(&mut self, token: &str) -> Vec<Check> {
        let path = self.folder.path().join("token");
        super::private(&path, token);
        self.settings.netbox.token = SecretRef::File(path);
        let mut told = 0;
        let mut checks = doctor(&self.settings, None, &mut |_| told += 1).await.unwrap();
        assert_eq!(told, checks.len());
        // Only what the token may: all else is of the test below.
        let of_token = ["netbox.token", "netbox.view.", "netbox.change.", "netbox.more."];
        checks.retain(|check| of_token.iter().any(|part| check.check.starts_with(part)));
        for check in &checks {
            println!("{:?} {} {}", check.level, check.check, check.message);
        }
        checks
    }

    /// How many changes NetBox has logged.
    async fn changes(&self) -> u64 {
        self.ask(Method::GET, "/api/core/object-changes/?limit=1", None).await["count"].as_u64().unwrap()
    }
}

fn at<'c>(checks: &'c [Check], name: &str) -> &'c Check {
    checks.iter().find(|check| check.check == name).unwrap_or_else(|| panic!("no line '{name}': {checks:#?}"))
}

const VIEW: [&str; 11] = [
    "dcim.device",
    "dcim.interface",
    "dcim.cable",
    "dcim.macaddress",
    "ipam.ipaddress",
    "dcim.site",
    "dcim.location",
    "dcim.rack",
    "dcim.devicetype",
    "dcim.devicerole",
    "extras.tag",
];

/// Proves: O12
#[tokio::test]
async fn each_account_of_a_real_netbox_is_told_what_it_lacks_and_what_it_has_too_much() {
    let Some(mut rig) = rig() else { return };
    let view = |objects: &[&str]| json!({"object_types": objects, "actions": ["view"]});
    let change = json!({"object_types": ["dcim.device"], "actions": ["change"]});
    let rest: Vec<&str> = VIEW.into_iter().filter(|object| !["dcim.device", "dcim.rack"].contains(object)).collect();
    let only_one =
        json!({"object_types": ["dcim.device"], "actions": ["view"], "constraints": {"name": "osl1-b07-u11"}});
    let change_one =
        json!({"object_types": ["dcim.device"], "actions": ["change"], "constraints": {"name": "osl1-b07-u11"}});
    let no_rack = json!({"object_types": ["dcim.rack"], "actions": ["view"], "constraints": {"name": "no such"}});
    let much = json!({"object_types": ["dcim.device", "dcim.site", "users.token"], "actions": ["add", "delete"]});

    let good = super::text(&rig.env, "token").to_owned();
    let admin = super::text(&rig.env, "admin_token").to_owned();
    let nothing = rig.account("nothing", &[], json!({})).await;
    let readonly = rig.account("readonly", &[view(&VIEW), change.clone()], json!({"write_enabled": false})).await;
    let filtered = rig.account("filtered", &[view(&rest), only_one, no_rack, change.clone()], json!({})).await;
    let some = rig.account("some", &[view(&VIEW), change_one], json!({})).await;
    let much = rig.account("much", &[view(&VIEW), change.clone(), much], json!({})).await;
    let within = |seconds| (jiff::Timestamp::now() + jiff::SignedDuration::from_secs(seconds)).to_string();
    let soon = rig.account("soon", &[view(&VIEW)], json!({"expires": within(86_400)})).await;
    let expired = rig.account("expired", &[view(&VIEW)], json!({"expires": within(4)})).await;
    let before = rig.changes().await;

    // The token that this rig gives to muster has what it needs and nothing else.
    let checks = rig.look(&good).await;
    assert!(checks.iter().filter(|c| c.check != "netbox.view.extras.tag").all(|c| c.level == Level::Ok), "{checks:#?}");
    assert_eq!(checks.len(), 13, "{checks:#?}");
    assert!(at(&checks, "netbox.token").message.contains("'muster' and does not expire"), "{checks:#?}");

    let checks = rig.look(&nothing).await;
    for object in VIEW {
        assert_eq!(at(&checks, &format!("netbox.view.{object}")).level, Level::Fail, "{object}");
    }
    assert_eq!(at(&checks, "netbox.change.dcim.device").because.as_deref(), Some("netbox.view.dcim.device"));

    let checks = rig.look(&readonly).await;
    assert_eq!(at(&checks, "netbox.view.dcim.device").level, Level::Ok);
    let told = at(&checks, "netbox.change.dcim.device");
    assert!(told.level == Level::Fail && told.message.contains("the token of"), "{told:?}");

    // Nothing is refused to this one, and its lists are short.
    let checks = rig.look(&filtered).await;
    let devices = rig.env["devices"].as_array().unwrap().len();
    let told = at(&checks, "netbox.view.dcim.device");
    assert_eq!(told.level, Level::Warn);
    assert!(
        told.message.contains(&format!("of {devices} dcim.device")) && told.message.contains("sees 1:"),
        "{told:?}"
    );
    let told = at(&checks, "netbox.view.dcim.rack");
    assert!(
        told.level == Level::Warn && told.message.contains("of 1 dcim.rack") && told.message.contains("sees 0"),
        "{told:?}"
    );
    assert_eq!(at(&checks, "netbox.view.dcim.site").level, Level::Ok);

    // Which devices it may not change NetBox tells nobody but administrators; the line says so.
    let checks = rig.look(&some).await;
    let told = at(&checks, "netbox.change.dcim.device");
    assert!(told.level == Level::Ok && told.message.contains("unless constraints"), "{told:?}");

    let checks = rig.look(&much).await;
    let more: Vec<&str> = checks.iter().map(|c| c.check.as_str()).filter(|c| c.starts_with("netbox.more.")).collect();
    assert_eq!(more, ["netbox.more.dcim.device", "netbox.more.dcim.site", "netbox.more.users.token"]);
    assert!(at(&checks, "netbox.more.dcim.device").message.contains("'add', 'delete'"));
    assert_eq!(at(&checks, "netbox.change.dcim.device").level, Level::Ok);

    let checks = rig.look(&admin).await;
    assert!(at(&checks, "netbox.more.dcim.site").message.contains("'add', 'change'"));
    assert_eq!(at(&checks, "netbox.more.users.objectpermission").level, Level::Warn);

    let checks = rig.look(&soon).await;
    let token = at(&checks, "netbox.token");
    assert!(token.level == Level::Warn && token.message.contains("expires at"), "{token:?}");
    tokio::time::sleep(std::time::Duration::from_secs(4)).await;
    let checks = rig.look(&expired).await;
    let token = at(&checks, "netbox.token");
    assert!(token.level == Level::Fail && token.message.to_lowercase().contains("expired"), "{token:?}");
    let checks = rig.look("nbt_unknown.unknown").await;
    assert!(at(&checks, "netbox.token").message.contains("refused the token"));
    assert_eq!(rig.changes().await, before, "something was changed to find out");
}

/// NetBox, Ironic, the DHCP host behind OpenSSH, and a vault, as one site: every line is well, nothing was changed to find
/// out, and of what is broken then that is named and nothing else.
///
/// Proves: K4, O12
/// Case: C-41
#[test]
fn on_real_services_the_doctor_is_content_and_names_what_is_broken_alone() {
    let Some(rigs) = super::rigs() else { return };
    if rigs.ssh["serving"] != true {
        println!("skipped: without root no DHCP server serves in the rig");
        return;
    }
    let site = super::Site::new(rigs);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let look = || {
        let settings = muster::config::load(&site.config).unwrap();
        runtime.block_on(doctor(&settings, None, &mut |_| {})).unwrap()
    };
    let restarts = site.restarts();
    let checks = look();
    let bad: Vec<&Check> = checks.iter().filter(|check| check.level != Level::Ok).collect();
    assert!(bad.is_empty(), "{bad:#?}");
    println!("{} lines, all well", checks.len());
    for line in ["netbox.version", "ironic.rig.login", "site.osl1.dhcp.serves", "site.osl1.context", "vault.item.bmc"] {
        assert!(checks.iter().any(|check| check.check == line), "{line}: {checks:#?}");
    }
    let changes =
        |requests: Vec<String>| requests.into_iter().filter(|r| !r.starts_with("OPTIONS ")).collect::<Vec<_>>();
    assert_eq!(changes(site.netbox.take_writes()), [""; 0]);
    assert_eq!(changes(site.ironic.take_writes()), [""; 0]);
    assert_eq!(site.restarts(), restarts, "the DHCP service was started anew");

    let alone = |checks: &[Check], line: &str| {
        let told = at(checks, line);
        assert_eq!(told.level, Level::Fail, "{told:#?}");
        for other in checks.iter().filter(|check| check.level != Level::Ok && check.check != line) {
            assert_eq!((other.level, other.because.as_deref()), (Level::Unknown, Some(line)), "{other:#?}");
        }
    };
    let fault = std::path::Path::new(super::text(&site.rigs.ssh, "fault_dir")).join("fail-validate");
    std::fs::write(&fault, "no socket on port 67").unwrap();
    let checks = look();
    std::fs::remove_file(&fault).unwrap();
    alone(&checks, "site.osl1.dhcp.serves");
    assert!(at(&checks, "site.osl1.dhcp.serves").message.contains("no socket on port 67"), "{checks:#?}");

    let (vault, ssh) = (site.folder.path().join("vault.toml"), &site.rigs.ssh);
    let before = std::fs::read_to_string(&vault).unwrap();
    for (key, word) in
        [("known_hosts_changed", "changed"), ("known_hosts_revoked", "revoked"), ("known_hosts_empty", "unknown")]
    {
        let mut items: toml::Table = before.parse().unwrap();
        let lines = std::fs::read_to_string(super::text(ssh, key)).unwrap();
        // An empty field counts as missing: a comment is a file without a host.
        let lines = if lines.trim().is_empty() { "# nobody\n".to_owned() } else { lines };
        items["ssh-config-dhcp"].as_table_mut().unwrap().insert("known_hosts".into(), lines.into());
        super::private(&vault, &items.to_string());
        let checks = look();
        alone(&checks, "site.osl1.dhcp.hostkey");
        assert!(at(&checks, "site.osl1.dhcp.hostkey").message.contains(word), "{key}: {checks:#?}");
    }
}

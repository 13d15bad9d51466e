//! `muster doctor` on the lab: that all is well there, what it says of forty things that are not, and that it changes nothing.

#[path = "doctor/breakages.rs"]
mod breakages;
#[path = "doctor/command.rs"]
mod command;
#[allow(dead_code, reason = "each test binary uses its part of the support")]
#[path = "support/tls.rs"]
mod tls;

use muster::app::doctor::{Check, Level, doctor};
use muster::config::settings::{SecretRef, Settings};
use muster::lab::Lab;
use muster::lab::ledger::System;
use muster::lab::records::Token;
use muster::lab::scenario::Scenario;

struct Rig {
    lab: Lab,
    settings: Settings,
    folder: tempfile::TempDir,
}

/// One site of the demo, with nothing wrong in it.
async fn rig() -> Rig {
    let mut scenario = Scenario::demo().unwrap();
    scenario.sites.retain(|slug, _| slug == "osl1");
    scenario.hosts.retain(|host| host.site == "osl1");
    scenario.faults.clear();
    let lab = Lab::start(scenario, 100.0).await.unwrap();
    let folder = tempfile::tempdir().unwrap();
    let settings = muster::config::load(&lab.write_config(&folder.path().join("etc")).unwrap()).unwrap();
    Rig { lab, settings, folder }
}

impl Rig {
    async fn look(&self) -> Vec<Check> {
        let mut told = Vec::new();
        let checks = doctor(&self.settings, None, &mut |check| told.push(check.clone())).await.unwrap();
        assert_eq!(told, checks, "each line is told when it is known");
        checks
    }

    /// A secret in a file that only its owner can read.
    fn secret(&self, name: &str, text: &str) -> SecretRef {
        use std::os::unix::fs::PermissionsExt;
        let path = self.folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
        SecretRef::File(path)
    }

    /// NetBox has one more token, and muster asks with it.
    fn use_token(&mut self, token: Token) {
        self.settings.netbox.token = self.secret("token", &token.secret);
        self.lab.world().lock().records.tokens.push(token);
    }

    async fn look_with(&mut self, token: Token) -> Vec<Check> {
        self.use_token(token);
        self.look().await
    }

    /// Nothing was asked of any system that changes something.
    fn wrote_nothing(&self) {
        let ledger = self.lab.ledger();
        let reads = |entry: &muster::lab::ledger::Entry| match entry.system {
            System::Dhcp => ["connect", "login", "exec"].contains(&entry.method.as_str()),
            _ => ["GET", "OPTIONS"].contains(&entry.method.as_str()),
        };
        let written: Vec<_> = ledger.iter().filter(|entry| entry.write || !reads(entry)).collect();
        assert!(written.is_empty(), "{written:#?}");
    }
}

fn at<'c>(checks: &'c [Check], name: &str) -> &'c Check {
    checks.iter().find(|check| check.check == name).unwrap_or_else(|| panic!("no line '{name}': {checks:#?}"))
}

/// Proves: O12
#[tokio::test]
async fn a_good_token_gets_a_line_for_each_permission_and_nothing_is_written() {
    let rig = rig().await;
    let checks = rig.look().await;
    for object in ["device", "interface", "cable", "macaddress", "site", "location", "rack", "devicetype", "devicerole"]
    {
        assert_eq!(at(&checks, &format!("netbox.view.dcim.{object}")).level, Level::Ok, "{checks:#?}");
    }
    assert_eq!(at(&checks, "netbox.view.ipam.ipaddress").level, Level::Ok);
    assert_eq!(at(&checks, "netbox.change.dcim.device").level, Level::Ok);
    assert_eq!(checks.iter().filter(|check| check.check.starts_with("netbox.more.")).count(), 0);
    rig.wrote_nothing();
}

/// Proves: O12
#[tokio::test]
async fn tokens_that_see_nothing_or_may_not_write_are_told_line_by_line() {
    let mut rig = rig().await;
    let nothing = Token { secret: "nbt_none.none".into(), write: true, view: false };
    let checks = rig.look_with(nothing).await;
    for object in ["dcim.device", "dcim.interface", "dcim.site", "ipam.ipaddress", "extras.tag"] {
        let view = at(&checks, &format!("netbox.view.{object}"));
        assert_eq!(view.level, Level::Fail, "{view:?}");
        assert_eq!(view.action.as_deref(), Some(&*format!("grant 'muster' 'view' on {object} in NetBox")));
    }
    let change = at(&checks, "netbox.change.dcim.device");
    assert_eq!(
        change.because.as_deref(),
        Some("netbox.view.dcim.device"),
        "what is not seen is not offered: {change:?}"
    );
    let reads = Token { secret: "nbt_reads.reads".into(), write: false, view: true };
    let checks = rig.look_with(reads).await;
    assert_eq!(at(&checks, "netbox.view.dcim.device").level, Level::Ok);
    let change = at(&checks, "netbox.change.dcim.device");
    assert!(change.level == Level::Fail && change.message.contains("may not change dcim.device"), "{change:?}");
    assert!(rig.lab.ledger().iter().all(|entry| !entry.write));
}

/// Proves: O12
#[tokio::test]
async fn a_refused_token_and_a_netbox_that_does_not_answer_leave_the_rest_unknown() {
    let mut rig = rig().await;
    rig.settings.netbox.token = rig.secret("wrong", "nbt_wrong.wrong");
    let checks = rig.look().await;
    let token = at(&checks, "netbox.token");
    assert!(token.level == Level::Fail && token.message.contains("Invalid v2 token"), "{token:?}");
    assert!(token.action.as_deref().is_some_and(|action| action.contains("valid API token")));
    let behind =
        |check: &&Check| check.check.starts_with("netbox.view.") || check.check.starts_with("site.osl1.context");
    let told: Vec<&Check> = checks.iter().filter(behind).collect();
    assert_eq!(told.len(), 12, "{checks:#?}");
    for check in told {
        assert_eq!((check.level, check.because.as_deref()), (Level::Unknown, Some("netbox.token")), "{check:?}");
    }

    rig.settings.netbox.url = "http://127.0.0.1:9".parse().unwrap();
    let checks = rig.look().await;
    assert_eq!(at(&checks, "netbox.tcp").level, Level::Fail);
    let token = at(&checks, "netbox.token");
    assert_eq!((token.level, token.because.as_deref()), (Level::Unknown, Some("netbox.tcp")), "{token:?}");
}

/// An Ironic that answers its root with these versions, and its list of nodes so.
async fn ironic_with(rig: &mut Rig, max: &str, nodes: wiremock::ResponseTemplate) -> wiremock::MockServer {
    use wiremock::matchers::path;
    use wiremock::{Mock, MockServer, ResponseTemplate};
    let server = MockServer::start().await;
    let root = serde_json::json!({"default_version": {"id": "v1", "min_version": "1.1", "version": max}});
    Mock::given(path("/")).respond_with(ResponseTemplate::new(200).set_body_json(root)).mount(&server).await;
    Mock::given(path("/v1/nodes")).respond_with(nodes).mount(&server).await;
    for instance in rig.settings.ironic.values_mut() {
        instance.url = Some(server.uri().parse().unwrap());
        instance.auth = muster::config::settings::IronicAuth::None;
    }
    server
}

/// Proves: K4
#[tokio::test]
async fn an_ironic_is_told_by_what_its_versions_lack_and_whether_it_takes_the_login() {
    use wiremock::ResponseTemplate;
    let mut rig = rig().await;
    let name = rig.settings.ironic.keys().next().unwrap().clone();
    let (api, login) = (format!("ironic.{name}.api"), format!("ironic.{name}.login"));
    let checks = rig.look().await;
    assert!(at(&checks, &api).message.contains("1.81 is needed"), "{checks:#?}");
    assert_eq!((at(&checks, &api).level, at(&checks, &login).level), (Level::Ok, Level::Ok), "{checks:#?}");

    let good = || ResponseTemplate::new(200).set_body_json(serde_json::json!({"nodes": []}));
    let _server = ironic_with(&mut rig, "1.58", good()).await;
    let checks = rig.look().await;
    let told = at(&checks, &api);
    assert_eq!((told.level, at(&checks, &login).level), (Level::Fail, Level::Unknown), "{checks:#?}");
    for word in ["1.58 (Train)", "the lessee of a node (1.65)", "the inventory of an inspection (1.81)"] {
        assert!(told.message.contains(word), "{word}: {}", told.message);
    }
    assert!(told.action.as_ref().unwrap().contains("2023.1 Antelope"), "{told:?}");

    let _server = ironic_with(&mut rig, "1.95", ResponseTemplate::new(401)).await;
    let checks = rig.look().await;
    assert_eq!((at(&checks, &api).level, at(&checks, &login).level), (Level::Ok, Level::Fail), "{checks:#?}");
    let stripped = good().insert_header("x-openstack-ironic-api-version", "1.1");
    let _server = ironic_with(&mut rig, "1.95", stripped).await;
    let checks = rig.look().await;
    assert!(at(&checks, &login).message.contains("X-OpenStack-Ironic-API-Version"), "{checks:#?}");

    rig.settings.ironic.values_mut().for_each(|i| i.url = Some("http://127.0.0.1:9".parse().unwrap()));
    let checks = rig.look().await;
    assert_eq!((at(&checks, &api).level, at(&checks, &login).level), (Level::Unknown, Level::Unknown));
    assert_eq!(at(&checks, &api).because, Some(format!("ironic.{name}.tcp")));
}

/// Proves: K2, K4
#[tokio::test]
async fn the_vaults_lines_tell_what_is_missing_from_what_could_not_be_looked_at() {
    use muster::config::settings::{ConnectVault, Trust, VaultKind};
    let mut rig = rig().await;
    let checks = rig.look().await;
    for line in ["vault.open", "vault.item.dhcp", "vault.item.ipmi", "vault.item.bmc"] {
        assert_eq!(at(&checks, line).level, Level::Ok, "{checks:#?}");
    }
    let VaultKind::File(path) = rig.settings.vault.kind.clone() else { panic!("{:?}", rig.settings.vault) };
    let text = std::fs::read_to_string(&path).unwrap();
    let mut items: toml::Table = text.parse().unwrap();
    items.remove("ssh-config-dhcp");
    items.retain(|name, _| !name.starts_with("bmc-gpu"));
    std::fs::write(&path, items.to_string()).unwrap();
    let checks = rig.look().await;
    let dhcp = at(&checks, "vault.item.dhcp");
    assert!(dhcp.level == Level::Fail && dhcp.message.contains("'ssh-config-dhcp'"), "{dhcp:?}");
    let bmc = at(&checks, "vault.item.bmc");
    assert!(bmc.level == Level::Warn && bmc.message.contains("'bmc-gpu-"), "{bmc:?}");
    assert_eq!(std::fs::read_to_string(&path).unwrap(), items.to_string(), "nothing was written");

    let connect = ConnectVault {
        url: "http://127.0.0.1:9".parse().unwrap(),
        token: rig.settings.netbox.token.clone(),
        vault: "lab".into(),
        trust: Trust::System,
        timeout: std::time::Duration::from_secs(5),
    };
    rig.settings.vault.kind = VaultKind::Connect(connect);
    let checks = rig.look().await;
    assert_eq!(at(&checks, "vault.tcp").level, Level::Fail);
    for line in ["vault.open", "vault.item.dhcp", "vault.item.ipmi", "vault.item.bmc", "site.osl1.dhcp.login"] {
        let line = at(&checks, line);
        assert_eq!((line.level, line.because.as_deref()), (Level::Unknown, Some("vault.tcp")), "{checks:#?}");
    }
    assert_eq!(at(&checks, "netbox.view.dcim.device").level, Level::Ok, "the token is no item of the vault");
    rig.settings.netbox.token = SecretRef::Vault { item: "netbox".into(), field: "token".into() };
    let checks = rig.look().await;
    let token = at(&checks, "netbox.token");
    assert_eq!((token.level, token.because.as_deref()), (Level::Unknown, Some("vault.tcp")), "{token:?}");
}

//! `muster doctor` on the lab: what it says of good and of bad tokens, and that it changes nothing.

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

async fn rig() -> Rig {
    let lab = Lab::start(Scenario::demo().unwrap(), 100.0).await.unwrap();
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

    /// Looks with a token of this form.
    async fn look_with(&mut self, token: Token) -> Vec<Check> {
        use std::os::unix::fs::PermissionsExt;
        let path = self.folder.path().join("token");
        std::fs::write(&path, &token.secret).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
        self.settings.netbox.token = SecretRef::File(path);
        self.lab.world().lock().records.tokens.push(token);
        self.look().await
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
    // The lab's account may write journal entries, which muster does not.
    let more = at(&checks, "netbox.more.extras.journalentry");
    assert!(more.level == Level::Warn && more.message.contains("'add'"), "{more:?}");
    assert_eq!(checks.iter().filter(|check| check.check.starts_with("netbox.more.")).count(), 1);
    assert!(checks.iter().all(|check| check.level == Level::Ok || (check.owner.is_some() && check.action.is_some())));
    let ledger = rig.lab.ledger();
    let asked = |entry: &muster::lab::ledger::Entry| matches!(entry.system, System::Netbox | System::Ironic);
    assert!(ledger.len() > 20 && ledger.iter().all(asked), "{ledger:#?}");
    let written: Vec<_> =
        ledger.iter().filter(|entry| entry.write || !["GET", "OPTIONS"].contains(&entry.method.as_str())).collect();
    assert!(written.is_empty(), "{written:#?}");
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
    assert_eq!(at(&checks, "netbox.change.dcim.device").level, Level::Fail);
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
    rig.settings.netbox.token = {
        use std::os::unix::fs::PermissionsExt;
        let path = rig.folder.path().join("wrong");
        std::fs::write(&path, "nbt_wrong.wrong").unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
        SecretRef::File(path)
    };
    let checks = rig.look().await;
    let token = at(&checks, "netbox.token");
    assert!(token.level == Level::Fail && token.message.contains("Invalid v2 token"), "{token:?}");
    assert!(token.action.as_deref().is_some_and(|action| action.contains("valid API token")));
    let netbox: Vec<&Check> = checks.iter().filter(|check| check.check.starts_with("netbox.")).collect();
    assert!(netbox[1..].iter().all(|check| check.level == Level::Unknown) && netbox.len() == 13, "{checks:#?}");

    rig.settings.netbox.url = "http://127.0.0.1:9".parse().unwrap();
    let checks = rig.look().await;
    assert_eq!(at(&checks, "netbox.token").level, Level::Unknown);
    let netbox = |check: &&Check| check.check.starts_with("netbox.");
    assert!(checks.iter().filter(netbox).all(|check| check.level == Level::Unknown), "{checks:#?}");
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
        instance.url = server.uri().parse().unwrap();
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

    rig.settings.ironic.values_mut().for_each(|i| i.url = "http://127.0.0.1:9".parse().unwrap());
    let checks = rig.look().await;
    assert_eq!((at(&checks, &api).level, at(&checks, &login).level), (Level::Unknown, Level::Unknown));
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
    for line in ["vault.open", "vault.item.dhcp", "vault.item.ipmi", "vault.item.bmc"] {
        assert_eq!(at(&checks, line).level, Level::Unknown, "{checks:#?}");
    }
    assert_eq!(at(&checks, "netbox.view.dcim.device").level, Level::Ok, "the token is no item of the vault");
    rig.settings.netbox.token = SecretRef::Vault { item: "netbox".into(), field: "token".into() };
    let checks = rig.look().await;
    let token = at(&checks, "netbox.token");
    assert!(token.level == Level::Unknown && token.message.contains("127.0.0.1:9"), "{token:?}");
}

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
        // The vault and Ironic are looked at too, and are not of this rig.
        checks.retain(|check| check.check.starts_with("netbox."));
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
    assert_eq!(at(&checks, "netbox.change.dcim.device").level, Level::Fail);

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

//! One thing is broken, and the doctor names that one and nothing else.

use std::net::{IpAddr, SocketAddr};
use std::process::Command;
use std::time::Duration;

use futures::future::BoxFuture;
use futures::{FutureExt, StreamExt};
use muster::app::doctor::{Check, Level};
use muster::config::settings::{IronicAuth, SecretRef, Trust, VaultKind};
use muster::lab::faults::{Fault, HttpRule};
use muster::lab::ledger::System;
use muster::lab::records::Token;
use serde_json::{Value, json};

use super::tls::{Shown, file, fixture, front, front_of};
use super::{Rig, at, rig};

/// The one line that is to be told, and how; every other is well, or could not be looked at because of it.
type Breakage = (&'static str, &'static str, Level, for<'r> fn(&'r mut Rig) -> BoxFuture<'r, ()>);

/// What the doctor says of each thing that is broken (K4, O12).
const BREAKAGES: &[Breakage] = &[
    // NetBox: the way to it.
    ("its name is none", "netbox.dns", Level::Fail, |rig| {
        rig.settings.netbox.url = format!("http://{}.invalid/", "n".repeat(70)).parse().unwrap();
        done()
    }),
    ("its port is closed", "netbox.tcp", Level::Fail, |rig| {
        rig.settings.netbox.url = "http://127.0.0.1:9/".parse().unwrap();
        done()
    }),
    ("no CA of ours signed it", "netbox.tls", Level::Fail, |rig| netbox_by_tls(rig, "self-signed", ca())),
    ("its certificate has expired", "netbox.tls", Level::Fail, |rig| netbox_by_tls(rig, "expired", ca())),
    ("its certificate is another host's", "netbox.tls", Level::Fail, |rig| netbox_by_tls(rig, "wrong-name", ca())),
    ("it is not the pinned one", "netbox.tls", Level::Fail, |rig| netbox_by_tls(rig, "good", Trust::Pinned([7; 32]))),
    ("the CA is no file", "netbox.tls", Level::Fail, |rig| netbox_by_tls(rig, "good", Trust::Ca("/no/ca.pem".into()))),
    ("nobody looks at its certificate", "netbox.tls", Level::Warn, |rig| netbox_by_tls(rig, "good", Trust::Anything)),
    ("there is no TLS", "netbox.tls", Level::Fail, |rig| {
        rig.settings.netbox.url.set_scheme("https").unwrap();
        done()
    }),
    ("it is out of order", "netbox.http", Level::Fail, |rig| {
        rule(rig, System::Netbox, "/", 502, json!("<html>bad</html>"))
    }),
    ("its clock is wrong", "netbox.clock", Level::Warn, |rig| {
        add(rig, HttpRule { headers: long_ago(), ..answer(System::Netbox, "/", 200) })
    }),
    // NetBox: what the token may do.
    ("its token is unknown", "netbox.token", Level::Fail, |rig| {
        rig.settings.netbox.token = rig.secret("token", "nbt_wrong.wrong");
        done()
    }),
    ("its token is nowhere", "netbox.token", Level::Fail, |rig| {
        rig.settings.netbox.token = SecretRef::File("/no/token".into());
        done()
    }),
    ("the token may not write", "netbox.change.dcim.device", Level::Fail, |rig| {
        rig.use_token(Token { secret: "nbt_reads.reads".into(), write: false, view: true });
        done()
    }),
    ("a permission is missing", "netbox.view.dcim.cable", Level::Fail, |rig| refuse(rig, "/api/dcim/cables/")),
    ("roles are hidden", "netbox.view.dcim.devicerole", Level::Fail, |rig| refuse(rig, "/api/dcim/device-roles/")),
    ("devices are hidden", "netbox.view.dcim.device", Level::Fail, |rig| refuse(rig, "/api/dcim/devices/*")),
    ("a permission is superfluous", "netbox.more.users.token", Level::Warn, |rig| {
        let grant = json!({"name": "p", "enabled": true, "object_types": ["users.token"], "actions": ["delete"]});
        let account = json!({"username": "muster", "groups": [], "permissions": [grant]});
        rule(rig, System::Netbox, "/api/authentication-check/", 200, account)
    }),
    // NetBox: what is in it.
    ("it is too old", "netbox.version", Level::Fail, |rig| {
        rule(rig, System::Netbox, "/api/status/", 200, json!({"netbox-version": "3.5.9"}))
    }),
    ("roles have no class", "netbox.field.dcim.devicerole.device_class", Level::Fail, |rig| {
        rig.lab
            .world()
            .lock()
            .records
            .roles
            .values_mut()
            .for_each(|role| drop(role.custom_fields.remove("device_class")));
        done()
    }),
    ("the platform class has no field", "netbox.field.dcim.device.platform_class", Level::Fail, |rig| {
        let mut state = rig.lab.world().lock();
        state.records.devices.values_mut().for_each(|device| drop(device.custom_fields.remove("platform_class")));
        done()
    }),
    ("sites have no NTP field", "netbox.field.dcim.site.ntp_server_1", Level::Fail, |rig| {
        rig.lab
            .world()
            .lock()
            .records
            .sites
            .values_mut()
            .for_each(|site| drop(site.custom_fields.remove("ntp_server_1")));
        done()
    }),
    ("a tag is missing", "netbox.tag.ironic", Level::Fail, |rig| {
        let mut state = rig.lab.world().lock();
        let gone = state.records.tags.values().find(|tag| tag.slug == "ironic").unwrap().id;
        state.records.tags.remove(&gone);
        state.records.devices.values_mut().for_each(|device| device.tags.retain(|tag| *tag != gone));
        done()
    }),
    ("the site has another slug", "site.osl1.netbox", Level::Fail, |rig| {
        rig.lab.world().lock().records.sites.values_mut().for_each(|site| site.slug = "oslo".into());
        done()
    }),
    ("the site has no syslog server", "site.osl1.fields", Level::Fail, |rig| {
        let mut state = rig.lab.world().lock();
        state.records.sites.values_mut().for_each(|site| site.custom_fields["syslog_server"] = Value::Null);
        done()
    }),
    ("a config context has a wrong key", "site.osl1.context", Level::Fail, |rig| {
        device(rig, "gpu-b07-29", |device| device.config_context["ironic_settings"]["bond"]["miimon"] = json!("100"));
        done()
    }),
    ("a config context has a misspelt key", "site.osl1.context", Level::Warn, |rig| {
        device(rig, "gpu-b07-29", |device| device.config_context["ironic_settings"]["raid_interfce"] = json!("agent"));
        done()
    }),
    ("a GPU type is missing", "site.osl1.gpu_types", Level::Fail, |rig| {
        let mut state = rig.lab.world().lock();
        state.records.device_types.values_mut().for_each(|kind| kind.custom_fields["gpu_type"] = Value::Null);
        done()
    }),
    // The vault.
    ("everybody can read the vault", "vault.open", Level::Fail, |rig| {
        use std::os::unix::fs::PermissionsExt;
        std::fs::set_permissions(vault(rig), std::fs::Permissions::from_mode(0o644)).unwrap();
        done()
    }),
    ("the DHCP hosts' key is missing", "vault.item.dhcp", Level::Fail, |rig| {
        change_vault(rig, |items| drop(items.remove("ssh-config-dhcp")))
    }),
    ("the monitoring password is too long", "vault.item.ipmi", Level::Fail, |rig| {
        change_vault(rig, |items| {
            let user = items["ipmi_exporter"].as_table_mut().unwrap();
            user.insert("password".into(), "canary-0123456789-0123456789".into());
        })
    }),
    ("a BMC has no item", "vault.item.bmc", Level::Warn, |rig| {
        change_vault(rig, |items| items.retain(|name, _| !name.starts_with("bmc-gpu")))
    }),
    // Ironic.
    ("its port is closed", "ironic.lab.tcp", Level::Fail, |rig| {
        rig.settings.ironic["lab"].url = Some("http://127.0.0.1:9/".parse().unwrap());
        done()
    }),
    ("its clock is wrong", "ironic.lab.clock", Level::Warn, |rig| {
        let versions = json!({"default_version": {"id": "v1", "min_version": "1.1", "version": "1.95"}});
        add(rig, HttpRule { headers: long_ago(), body: Some(versions), ..answer(System::Ironic, "/", 200) })
    }),
    ("it is too old", "ironic.lab.api", Level::Fail, |rig| {
        let versions = json!({"default_version": {"id": "v1", "min_version": "1.1", "version": "1.58"}});
        rule(rig, System::Ironic, "/", 200, versions)
    }),
    ("it does not know the login", "ironic.lab.login", Level::Fail, |rig| {
        rule(rig, System::Ironic, "/v1/nodes", 401, json!({"error": {"code": 401}}))
    }),
    ("its password is nowhere", "ironic.lab.login", Level::Fail, |rig| {
        let password = SecretRef::File("/no/password".into());
        rig.settings.ironic["lab"].auth = IronicAuth::HttpBasic { username: "muster".into(), password };
        done()
    }),
    // The DHCP host.
    ("its port is closed", "site.osl1.dhcp.tcp", Level::Fail, |rig| {
        rig.settings.sites["osl1"].dhcp.as_mut().unwrap().port = 9;
        done()
    }),
    ("its host key changed", "site.osl1.dhcp.hostkey", Level::Fail, |rig| {
        rig.lab.dhcp_host().change_host_key().unwrap();
        done()
    }),
    ("its host key is not known", "site.osl1.dhcp.hostkey", Level::Fail, |rig| {
        known_hosts(rig, |_| "other.example.com ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJy6\n".to_owned())
    }),
    ("its host key is revoked", "site.osl1.dhcp.hostkey", Level::Fail, |rig| {
        known_hosts(rig, |line| format!("@revoked {line}"))
    }),
    ("it does not know the user", "site.osl1.dhcp.login", Level::Fail, |rig| {
        rig.settings.sites["osl1"].dhcp.as_mut().unwrap().user = "nobody".into();
        done()
    }),
    ("its folder can't be written", "site.osl1.dhcp.folder", Level::Fail, |rig| exec(rig, "test -w *", 1, "")),
    ("its folder is not there", "site.osl1.dhcp.folder", Level::Warn, |rig| {
        rig.settings.sites["osl1"].dhcp.as_mut().unwrap().directory = "/srv/other".into();
        done()
    }),
    ("its service is down", "site.osl1.dhcp.serves", Level::Fail, |rig| exec(rig, "dhcp-validate", 3, "no socket")),
    ("an entry is broken", "site.osl1.dhcp.serves", Level::Fail, |rig| {
        rig.lab.dhcp_host().put_file("hand-made.conf", "host {");
        done()
    }),
    ("sudo does not let it restart", "site.osl1.dhcp.sudo", Level::Fail, |rig| {
        rig.settings.sites["osl1"].dhcp.as_mut().unwrap().sudo = true;
        async move {
            exec(rig, "sudo -n -- *", 0, "").await;
            exec(rig, "sudo -n -l -- *", 1, "sudo: a password is required").await;
        }
        .boxed()
    }),
    ("it tells no time", "site.osl1.dhcp.clock", Level::Unknown, |rig| exec(rig, "date *", 127, "date: not found")),
    // BMCs.
    ("a BMC is away", "site.osl1.bmc.tcp", Level::Warn, |rig| {
        let mut state = rig.lab.world().lock();
        let oob = state.records.device_named("gpu-b06-41").unwrap().oob_ip.unwrap();
        state.records.ips.get_mut(&oob).unwrap().address = "127.99.99.99/24".into();
        done()
    }),
    ("a BMC is another thing", "site.osl1.bmc.redfish", Level::Warn, |rig| {
        let rule = answer(System::Bmc, "/redfish/v1*", 200);
        add(rig, HttpRule { device: Some("gpu-b06-41".into()), body: Some(json!({"Name": "printer"})), ..rule })
    }),
    ("nobody looks at their certificates", "site.osl1.bmc.tls", Level::Warn, |rig| bmcs_by_tls(rig, Trust::Anything)),
    ("their certificates are not trusted", "site.osl1.bmc.tls", Level::Fail, |rig| bmcs_by_tls(rig, ca())),
];

fn done() -> BoxFuture<'static, ()> {
    async {}.boxed()
}

fn ca() -> Trust {
    Trust::Ca(file("ca.pem"))
}

fn local(url: &str) -> SocketAddr {
    url.trim_start_matches("http://").trim_end_matches('/').parse().unwrap()
}

fn netbox_by_tls<'r>(rig: &'r mut Rig, shown: &'static str, trust: Trust) -> BoxFuture<'r, ()> {
    async move {
        let address = front(&fixture(shown), local(&rig.lab.netbox_url())).await;
        rig.settings.netbox.url = format!("https://{address}/").parse().unwrap();
        rig.settings.netbox.trust = trust;
    }
    .boxed()
}

fn bmcs_by_tls(rig: &mut Rig, trust: Trust) -> BoxFuture<'_, ()> {
    async move {
        let ips: Vec<IpAddr> = {
            let state = rig.lab.world().lock();
            let address = |ip: &muster::lab::records::IpAddress| ip.address.split('/').next().unwrap().parse().unwrap();
            state.records.ips.values().map(address).collect()
        };
        let bmc_port = rig.lab.bmc_port();
        let port = front_of(&fixture("self-signed"), &ips, move |ip| (ip, bmc_port).into()).await;
        let bmc = &mut rig.settings.sites["osl1"].bmc;
        (bmc.scheme, bmc.port, bmc.trust) = ("https".into(), Some(port), trust);
    }
    .boxed()
}

fn answer(system: System, path: &str, status: u16) -> HttpRule {
    HttpRule { system: Some(system), path: Some(path.into()), status: Some(status), ..HttpRule::default() }
}

fn long_ago() -> std::collections::BTreeMap<String, String> {
    [("date".to_owned(), "Mon, 30 Nov 2020 12:00:00 GMT".to_owned())].into()
}

fn add(rig: &mut Rig, rule: HttpRule) -> BoxFuture<'static, ()> {
    rig.lab.world().add_fault(Fault::Http(rule));
    done()
}

fn rule(rig: &mut Rig, system: System, path: &str, status: u16, body: Value) -> BoxFuture<'static, ()> {
    add(rig, HttpRule { body: Some(body), ..answer(system, path, status) })
}

fn refuse(rig: &mut Rig, path: &str) -> BoxFuture<'static, ()> {
    let words = json!({"detail": "You do not have permission to perform this action."});
    rule(rig, System::Netbox, path, 403, words)
}

fn exec(rig: &mut Rig, command: &str, status: u16, said: &str) -> BoxFuture<'static, ()> {
    add(rig, HttpRule { method: Some("exec".into()), body: Some(json!(said)), ..answer(System::Dhcp, command, status) })
}

fn device(rig: &mut Rig, name: &str, change: impl FnOnce(&mut muster::lab::records::Device)) {
    let mut state = rig.lab.world().lock();
    change(state.records.devices.values_mut().find(|device| device.name == name).unwrap());
}

fn vault(rig: &Rig) -> std::path::PathBuf {
    let VaultKind::File(path) = &rig.settings.vault.kind else { panic!("{:?}", rig.settings.vault) };
    path.clone()
}

fn change_vault(rig: &mut Rig, change: impl FnOnce(&mut toml::Table)) -> BoxFuture<'static, ()> {
    let path = vault(rig);
    let mut items: toml::Table = std::fs::read_to_string(&path).unwrap().parse().unwrap();
    change(&mut items);
    std::fs::write(&path, items.to_string()).unwrap();
    done()
}

fn known_hosts(rig: &mut Rig, change: impl FnOnce(&str) -> String) -> BoxFuture<'static, ()> {
    change_vault(rig, |items| {
        let item = items["ssh-config-dhcp"].as_table_mut().unwrap();
        let lines = change(item["known_hosts"].as_str().unwrap());
        item.insert("known_hosts".into(), lines.into());
    })
}

/// That line is not well, everything else is, or could not be looked at because of it; and somebody can mend it.
fn named_alone(what: &str, checks: &[Check], line: &str, level: Level) {
    let told = at(checks, line);
    assert_eq!(told.level, level, "{what}: {told:#?}");
    assert!(told.owner.is_some() && told.action.as_ref().is_some_and(|action| action.len() > 10), "{what}: {told:#?}");
    let others = checks.iter().filter(|check| check.level != Level::Ok && check.check != line);
    for other in others {
        assert_eq!((other.level, other.because.as_deref()), (Level::Unknown, Some(line)), "{what}: {other:#?}");
        assert!(other.owner.is_some() && other.action.is_some(), "{what}: {other:#?}");
    }
    let shown = format!("{checks:?}");
    assert!(!shown.contains("canary"), "{what}: {shown}");
}

/// Proves: K4, O12
#[tokio::test]
async fn on_a_site_where_nothing_is_wrong_every_line_is_well_and_nothing_is_written() {
    let rig = rig().await;
    let checks = rig.look().await;
    let bad: Vec<&Check> = checks.iter().filter(|check| check.level != Level::Ok).collect();
    assert!(bad.is_empty(), "{bad:#?}");
    let names: std::collections::BTreeSet<&str> = checks.iter().map(|check| check.check.as_str()).collect();
    assert_eq!(names.len(), checks.len(), "a name stands for one line: {checks:#?}");
    for (_, line, ..) in BREAKAGES {
        let optional = line.starts_with("netbox.more.") || line.ends_with(".sudo");
        assert!(optional || names.contains(line), "{line} is no line of a healthy site: {names:?}");
    }
    let systems: std::collections::BTreeSet<System> = rig.lab.ledger().iter().map(|entry| entry.system).collect();
    assert_eq!(systems.len(), 4, "every system of the site was asked: {systems:?}");
    rig.wrote_nothing();
}

/// Proves: K4, O12, P12
/// Case: C-26, C-33, C-35, C-41
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_each_thing_that_is_broken_the_doctor_names_that_one_and_nothing_else() {
    assert!(BREAKAGES.len() >= 20);
    let each = BREAKAGES.iter().map(|&(what, line, level, breaks)| async move {
        let mut rig = rig().await;
        breaks(&mut rig).await;
        let checks = rig.look().await;
        named_alone(&format!("{line}, {what}"), &checks, line, level);
        rig.wrote_nothing();
        let blocked = checks.iter().filter(|check| check.because.is_some()).count();
        println!("{line:<44} {level:?}: {what} ({} lines, {blocked} wait for it)", checks.len());
    });
    let count = futures::stream::iter(each).buffer_unordered(4).count().await;
    println!("{count} things broken, {count} named and nothing else");
}

/// What a wrong certificate is told as differs by what is to be done about it, and none is called unreachable.
///
/// Proves: K4
/// Case: C-35
#[tokio::test]
async fn each_bad_certificate_has_an_action_of_its_own() {
    let mut actions = std::collections::BTreeSet::new();
    for (shown, words) in
        [("self-signed", "to the CA that signed"), ("expired", "has expired"), ("wrong-name", "for that name")]
    {
        let mut rig = rig().await;
        netbox_by_tls(&mut rig, shown, ca()).await;
        let tls = at(&rig.look().await, "netbox.tls").clone();
        let action = tls.action.unwrap();
        assert!(action.contains(words) && !tls.message.contains("reach"), "{shown}: {} / {action}", tls.message);
        actions.insert(action);
    }
    let mut rig = rig().await;
    rig.settings.netbox.url.set_scheme("https").unwrap();
    actions.insert(at(&rig.look().await, "netbox.tls").action.clone().unwrap());
    assert_eq!(actions.len(), 4, "{actions:#?}");
}

/// The site's CA and a pinned fingerprint are each enough, for every system, and the doctor has nothing to say.
///
/// Proves: K4, B20
#[tokio::test]
async fn what_the_sites_ca_signed_and_what_is_pinned_is_well() {
    let mut rig = rig().await;
    netbox_by_tls(&mut rig, "good", ca()).await;
    let shown = fixture("self-signed");
    let address = front(&shown, local(&rig.lab.ironic_url())).await;
    rig.settings.ironic["lab"].url = Some(format!("https://{address}/").parse().unwrap());
    rig.settings.ironic["lab"].trust = Trust::Pinned(shown.fingerprint());
    bmcs_by_tls(&mut rig, Trust::Pinned(shown.fingerprint())).await;
    let checks = rig.look().await;
    let bad: Vec<&Check> = checks.iter().filter(|check| check.level != Level::Ok).collect();
    assert!(bad.is_empty(), "{bad:#?}");
    assert!(at(&checks, "netbox.tls").message.contains("the configured CA"));
    assert!(at(&checks, "ironic.lab.tls").message.contains("pinned fingerprint"));
    assert!(at(&checks, "site.osl1.bmc.tls").message.contains("pinned fingerprint"));
}

/// Proves: K4
#[tokio::test]
async fn a_certificate_that_ends_soon_is_told_while_it_is_still_good() {
    let mut rig = rig().await;
    let at_path = |name: &str| rig.folder.path().join(name);
    let (key, certificate) = (at_path("soon.key"), at_path("soon.pem"));
    let made = Command::new("openssl")
        .args(["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "5"])
        .args(["-subj", "/CN=netbox", "-addext", "subjectAltName=IP:127.0.0.1"])
        .args(["-addext", "basicConstraints=critical,CA:FALSE", "-keyout"])
        .arg(&key)
        .arg("-out")
        .arg(&certificate)
        .output();
    if !made.is_ok_and(|output| output.status.success()) {
        assert!(std::env::var_os("MUSTER_MUST_RUN").is_none(), "could not run: no openssl (install openssl)");
        println!("skipped: no openssl");
        return;
    }
    let address = front(&Shown { certificate: certificate.clone(), key }, local(&rig.lab.netbox_url())).await;
    rig.settings.netbox.url = format!("https://{address}/").parse().unwrap();
    rig.settings.netbox.trust = Trust::Ca(certificate);
    let checks = rig.look().await;
    named_alone("a certificate of five days", &checks, "netbox.tls", Level::Warn);
    assert!(at(&checks, "netbox.tls").message.contains("ends within 14 days"));
}

/// A NetBox that takes the connection and never answers is waited for once.
///
/// Proves: K4
/// Case: C-49
#[tokio::test]
async fn a_netbox_that_never_answers_is_waited_for_once() {
    let mut rig = rig().await;
    add(&mut rig, HttpRule { hang: true, ..answer(System::Netbox, "*", 200) }).await;
    rig.settings.netbox.timeout = Duration::from_millis(400);
    let began = std::time::Instant::now();
    let checks = rig.look().await;
    named_alone("a NetBox that hangs", &checks, "netbox.http", Level::Fail);
    assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
}

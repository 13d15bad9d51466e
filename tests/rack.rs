//! `muster locate` and `muster power` on the lab: what is asked of the BMCs of all vendors, and what is refused before that.

#[allow(dead_code, reason = "each test binary uses its part of the support")]
#[path = "support/binary.rs"]
mod binary;

use std::path::Path;

use binary::LabProcess;
use muster::app::{App, Consent, Opening, RackError, SubmitError};
use muster::domain::failure::FailureCode;
use muster::domain::rack::{LocatorWish, PowerWish};
use muster::domain::request::EnrollParams;
use muster::lab::Lab;
use muster::lab::bmc::Settings;
use muster::lab::faults::{Fault, HttpRule};
use muster::lab::ledger::System;
use muster::lab::machine::{Machine, PowerAction, Quirk, Vendor};
use muster::lab::scenario::Scenario;
use serde_json::{Value, json};

const FRESH: &str = "gpu-b07-29";
const DEPLOYED: &str = "gpu-b06-41";

const HARD: PowerWish = PowerWish::Off { hard: true };
const SOFT: PowerWish = PowerWish::Off { hard: false };

struct Site {
    lab: Lab,
    app: App,
    _folder: tempfile::TempDir,
}

impl Site {
    async fn start(change: impl FnOnce(&mut Scenario)) -> Site {
        rustls::crypto::ring::default_provider().install_default().ok();
        let mut scenario = Scenario::demo().unwrap();
        scenario.hosts.retain(|host| [FRESH, DEPLOYED].contains(&host.name.as_str()));
        scenario.faults.clear();
        change(&mut scenario);
        let lab = Lab::start(scenario, 100.0).await.unwrap();
        let folder = tempfile::tempdir().unwrap();
        let config = lab.write_config(&folder.path().join("etc")).unwrap();
        let app = open(&config, &folder.path().join("state")).await;
        app.sync_now().await.unwrap();
        lab.world().ledger().reset();
        Site { lab, app, _folder: folder }
    }

    async fn of_vendor(vendor: Vendor, quirks: &[Quirk]) -> Site {
        Site::start(|scenario| {
            scenario.types.values_mut().for_each(|model| model.bmc = vendor);
            let host = scenario.hosts.iter_mut().find(|host| host.name == FRESH).unwrap();
            host.bmc_quirks = quirks.iter().copied().collect();
        })
        .await
    }

    fn machine(&self, host: &str) -> Machine {
        self.lab.world().machine(host).unwrap()
    }

    fn is_lit(&self) -> bool {
        Settings::of(&self.machine(FRESH)).locator
    }

    /// Writes to BMCs since the last time that this was asked: method and path.
    fn writes(&self) -> Vec<String> {
        let entries = self.lab.world().ledger().select(|entry| entry.system == System::Bmc && entry.write);
        self.lab.world().ledger().reset();
        entries.iter().map(|entry| format!("{} {}", entry.method, entry.path)).collect()
    }

    fn rule(&self, rule: HttpRule) {
        self.lab.world().add_fault(Fault::Http(rule));
    }
}

async fn open(config: &Path, state: &Path) -> App {
    let settings = muster::config::load(config).unwrap();
    App::open_as(settings, state, Opening { user: Some("jo".into()), aside: false }).await.unwrap()
}

fn yes() -> Consent {
    Consent { yes: true, typed: None }
}

const VENDORS: [(Vendor, &[Quirk]); 6] = [
    (Vendor::Supermicro, &[]),
    (Vendor::Lenovo, &[Quirk::IfMatchRequired]),
    (Vendor::Dell, &[]),
    (Vendor::Dell, &[Quirk::Idrac10]),
    (Vendor::Ami, &[]),
    (Vendor::Ami, &[Quirk::Dgx]),
];

/// Proves: U10
#[tokio::test(flavor = "multi_thread")]
async fn the_locator_of_every_vendor_is_lit_once_read_back_and_put_out() {
    for (vendor, quirks) in VENDORS {
        let site = Site::of_vendor(vendor, quirks).await;
        let seen = site.app.locator(FRESH, None).await.unwrap();
        assert_eq!((seen.on, seen.changed), (Some(false), false), "{vendor:?}");
        let lit = site.app.locator(FRESH, Some(LocatorWish::Toggle)).await.unwrap();
        assert_eq!((lit.on, lit.changed, site.is_lit()), (Some(true), true, true), "{vendor:?} {lit:?}");
        let first = site.writes();
        assert!(!first.is_empty() && first.iter().all(|write| write.starts_with("PATCH ")), "{vendor:?} {first:?}");
        let again = site.app.locator(FRESH, Some(LocatorWish::On)).await.unwrap();
        assert_eq!((again.on, again.changed), (Some(true), false), "{vendor:?}");
        assert!(site.writes().is_empty(), "{vendor:?}: it was lit already");
        let out = site.app.locator(FRESH, Some(LocatorWish::Off)).await.unwrap();
        assert_eq!((out.on, out.changed, site.is_lit()), (Some(false), true, false), "{vendor:?}");
        site.app.shutdown().await;
    }
}

/// Proves: U10
#[tokio::test(flavor = "multi_thread")]
async fn where_the_system_takes_no_locator_what_it_stands_in_does() {
    for (vendor, system, chassis) in [
        (Vendor::Supermicro, "/redfish/v1/Systems/1", "/redfish/v1/Chassis/1"),
        (Vendor::Lenovo, "/redfish/v1/Systems/1", "/redfish/v1/Chassis/1"),
    ] {
        let site = Site::of_vendor(vendor, &[]).await;
        let body = json!({"error": {"message": "The property is read only."}});
        site.rule(HttpRule {
            system: Some(System::Bmc),
            method: Some("PATCH".into()),
            path: Some(system.into()),
            status: Some(400),
            body: Some(body),
            ..HttpRule::default()
        });
        let lit = site.app.locator(FRESH, Some(LocatorWish::On)).await.unwrap();
        assert!(lit.by.starts_with(chassis), "{vendor:?} {lit:?}");
        assert!(site.is_lit());
        site.app.shutdown().await;
    }
}

/// Proves: U10
#[tokio::test(flavor = "multi_thread")]
async fn a_locator_that_is_taken_and_does_not_show_is_a_failure() {
    let site = Site::of_vendor(Vendor::Dell, &[]).await;
    site.rule(HttpRule {
        system: Some(System::Bmc),
        method: Some("PATCH".into()),
        status: Some(200),
        body: Some(json!({})),
        ..HttpRule::default()
    });
    let error = site.app.locator(FRESH, Some(LocatorWish::On)).await.unwrap_err();
    let RackError::Failed(failure) = &error else { panic!("{error:?}") };
    assert_eq!(failure.code, FailureCode::BmcAnswerUnexpected);
    assert!(failure.message.contains("reads"), "{failure}");
    assert!(!site.is_lit() && error.was_tried());
    site.app.shutdown().await;
}

/// Proves: U10
#[tokio::test(flavor = "multi_thread")]
async fn the_power_of_every_vendor_is_changed_once_and_read_back() {
    for (vendor, quirks) in VENDORS {
        let site = Site::of_vendor(vendor, quirks).await;
        let power = async |wish: Option<PowerWish>| site.app.power(FRESH, wish, &yes()).await.unwrap();
        let seen = power(None).await;
        assert_eq!((&*seen.before, seen.asked.len()), ("Off", 0), "{vendor:?}");
        let on = power(Some(PowerWish::On)).await;
        assert_eq!((&*on.after, &on.asked[..]), ("On", &["On".to_owned()][..]), "{vendor:?}");
        assert_eq!(site.machine(FRESH).boots, 1, "{vendor:?}");
        site.writes();
        assert!(power(Some(PowerWish::On)).await.asked.is_empty());
        assert!(site.writes().is_empty(), "{vendor:?}: it was on already");
        let cycled = power(Some(PowerWish::Cycle)).await;
        assert_eq!(cycled.after, "On", "{vendor:?} {cycled:?}");
        let expected: &[&str] = match vendor {
            Vendor::Lenovo => &["ForceOff", "On"],
            Vendor::Ami => &["ForceRestart"],
            Vendor::Supermicro | Vendor::Dell => &["PowerCycle"],
        };
        assert_eq!(cycled.asked, expected, "{vendor:?}");
        for _ in 0..200 {
            if site.machine(FRESH).boots == 2 {
                break;
            }
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
        assert_eq!((site.machine(FRESH).boots, site.machine(FRESH).power.on), (2, true), "{vendor:?}");
        let soft = power(Some(SOFT)).await;
        assert_eq!((&*soft.after, &soft.asked[..]), ("Off", &["GracefulShutdown".to_owned()][..]), "{vendor:?}");
        assert!(power(Some(SOFT)).await.asked.is_empty(), "{vendor:?}");
        power(Some(PowerWish::On)).await;
        let hard = power(Some(HARD)).await;
        assert_eq!((&*hard.after, &hard.asked[..]), ("Off", &["ForceOff".to_owned()][..]), "{vendor:?}");
        site.app.shutdown().await;
    }
}

/// Proves: U10
#[tokio::test(flavor = "multi_thread")]
async fn a_host_that_does_not_end_by_itself_is_put_off() {
    let site = Site::start(|scenario| scenario.timing.soft_off_s = 1e6).await;
    site.lab.world().press(FRESH, PowerAction::On);
    while !site.machine(FRESH).power.on {
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    let off = site.app.power(FRESH, Some(SOFT), &yes()).await.unwrap();
    assert_eq!((&*off.after, &off.asked[..]), ("Off", &["GracefulShutdown".to_owned(), "ForceOff".to_owned()][..]));
    site.app.shutdown().await;
}

/// Proves: U10, B19
#[tokio::test(flavor = "multi_thread")]
async fn what_interrupts_a_host_wants_a_yes_and_of_a_deployed_one_its_name() {
    let site = Site::start(|_| {}).await;
    let refused =
        async |host: &str, wish, consent: &Consent| site.app.power(host, Some(wish), consent).await.unwrap_err();
    let error = refused(FRESH, HARD, &Consent::default()).await;
    assert!(matches!(error, RackError::Unasked { .. }), "{error}");
    let nobody = Consent { yes: false, typed: Some("somebody-else".into()) };
    assert!(matches!(refused(FRESH, HARD, &nobody).await, RackError::Unasked { .. }));
    let error = refused(DEPLOYED, PowerWish::Cycle, &yes()).await;
    assert!(matches!(&error, RackError::Deployed { what, .. } if what.contains("instance")), "{error}");
    assert!(error.action().contains(DEPLOYED) && !error.was_tried());
    let typed = |name: &str| Consent { yes: true, typed: Some(name.into()) };
    assert!(matches!(refused(DEPLOYED, SOFT, &typed(FRESH)).await, RackError::Deployed { .. }));
    assert!(site.writes().is_empty());
    // Its name is a yes.
    let consent = Consent { yes: false, typed: Some(DEPLOYED.into()) };
    let off = site.app.power(DEPLOYED, Some(HARD), &consent).await.unwrap();
    assert_eq!(off.after, "Off");
    // On interrupts nothing.
    site.app.power(DEPLOYED, Some(PowerWish::On), &Consent::default()).await.unwrap();
    site.app.shutdown().await;
}

/// Proves: U10
#[tokio::test(flavor = "multi_thread")]
async fn where_ironic_cannot_say_whose_a_host_is_a_yes_is_not_enough() {
    let site = Site::start(|_| {}).await;
    site.rule(HttpRule { system: Some(System::Ironic), status: Some(403), ..HttpRule::default() });
    let error = site.app.power(FRESH, Some(HARD), &yes()).await.unwrap_err();
    assert!(matches!(&error, RackError::Deployed { what, .. } if what.contains("not known")), "{error}");
    assert!(site.writes().is_empty());
    site.app.shutdown().await;
}

/// Proves: U10
#[tokio::test(flavor = "multi_thread")]
async fn no_power_is_changed_beside_a_run_and_the_locator_is() {
    let site = Site::start(|_| {}).await;
    let run = site.app.submit(FRESH, EnrollParams::default(), "ada").await.unwrap();
    for wish in [PowerWish::On, HARD, PowerWish::Cycle] {
        let consent = Consent { yes: true, typed: Some(FRESH.into()) };
        let error = site.app.power(FRESH, Some(wish), &consent).await.unwrap_err();
        assert!(matches!(&error, RackError::Busy { run: by, .. } if *by == run), "{error}");
        assert!(error.action().contains("runs cancel"), "{}", error.action());
    }
    assert!(site.app.locator(FRESH, Some(LocatorWish::On)).await.unwrap().changed);
    site.app.shutdown().await;
}

/// Proves: U10, C-28
#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_credential_is_tried_twice_and_then_no_more() {
    let site = Site::start(|_| {}).await;
    site.lab.world().with_machine(FRESH, |machine, _| {
        machine.bmc.accounts.values_mut().for_each(|password| *password = "somebody-else".into());
    });
    for _ in 0..4 {
        let error = site.app.locator(FRESH, Some(LocatorWish::On)).await.unwrap_err();
        assert_eq!(error.code(), "BMC_AUTH_FAILED", "{error}");
    }
    let logins = Settings::of(&site.machine(FRESH)).logins;
    assert!(logins.values().all(|logins| logins.wrong_ever <= 2), "{logins:?}");
    site.app.shutdown().await;
}

/// Proves: U10, G16
#[test]
fn the_commands_answer_in_lines_and_in_json_with_the_codes_of_the_contract() {
    let lab = LabProcess::start(60, None);
    let ended = lab.run(&["locate", FRESH]);
    assert_eq!(ended.code(), Some(0), "{ended}");
    assert!(ended.stdout.contains("the locator is on"), "{ended}");
    let ended = lab.run(&["locate", FRESH, "on", "--json"]);
    let expected = json!({"host": FRESH, "locator": "on", "changed": false});
    let told = &ended.events()[0];
    for (key, value) in expected.as_object().unwrap() {
        assert_eq!(&told[key], value, "{ended}");
    }
    let ended = lab.run(&["power", FRESH, "--json"]);
    assert_eq!((ended.code(), &ended.events()[0]["power"]), (Some(0), &json!("Off")), "{ended}");
    let ended = lab.run(&["power", FRESH, "off"]);
    assert_eq!(ended.code(), Some(2), "nobody said yes: {ended}");
    assert!(ended.stderr.contains("--yes"), "{ended}");
    let ended = lab.run(&["power", FRESH, "off", "--yes"]);
    assert!(ended.code() == Some(0) && ended.stdout.contains("already"), "{ended}");
    let ended = lab.run(&["power", FRESH, "cycle", "--yes", "--json"]);
    let told = &ended.events()[0];
    assert_eq!((ended.code(), &told["power"], &told["asked"]), (Some(0), &json!("On"), &json!(["On"])), "{ended}");
    let ended = lab.run(&["power", DEPLOYED, "off", "--yes", "--json"]);
    let told: Value = ended.events()[0].clone();
    assert_eq!((ended.code(), &told["code"]), (Some(2), &json!("host_deployed")), "{ended}");
    let ended = lab.run(&["power", "no-such-host", "status", "--json"]);
    assert_eq!((ended.code(), &ended.events()[0]["code"]), (Some(2), &json!("host_unknown")), "{ended}");
    let ended = lab.run(&["power", FRESH, "cycle", "--hard"]);
    assert_eq!(ended.code(), Some(2), "{ended}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_host_that_netbox_does_not_have_is_refused() {
    let site = Site::start(|_| {}).await;
    let error = site.app.locator("no-such-host", None).await.unwrap_err();
    assert!(matches!(error, RackError::Host(SubmitError::UnknownHost(_))), "{error}");
    site.app.shutdown().await;
}

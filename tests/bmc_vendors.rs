//! Whole enrollments of hosts with each vendor's BMC, from the factory's state: what stands there afterwards, what a second
//! run leaves alone, and what becomes of a Dell host whose staged job goes another way.

#[path = "support/site.rs"]
mod site;

use std::time::Duration;

use muster::domain::event::Outcome;
use muster::domain::failure::{Failure, FailureCode, Owner};
use muster::domain::ids::RunId;
use muster::lab::ledger::{Entry, System};
use muster::lab::machine::{Machine, Quirk, Vendor};
use serde_json::Value;
use site::{Ended, HOST, Life, Site, bootable, kept, of_vendor};

const LIMIT: Duration = Duration::from_secs(90);

fn machine(site: &Site) -> Machine {
    site.lab.world().machine(HOST).unwrap()
}

fn writes(site: &Site) -> Vec<String> {
    let write = |entry: &&Entry| entry.system == System::Bmc && entry.write;
    site.ledger().iter().filter(write).map(|entry| format!("{} {}", entry.method, entry.path)).collect()
}

fn enrolled(site: &Site, life: &Life) -> Outcome {
    let run = life.submit(site.request());
    match life.wait(run, LIMIT) {
        Some(Ended::Run(outcome)) => outcome,
        other => panic!("{other:?}"),
    }
}

/// A run that ends with its BMC and goes well.
fn configured(site: &Site, life: &Life) -> RunId {
    let mut request = site.request();
    request.options.ironic_enrol = false;
    let run = life.submit(request);
    let ended = life.wait(run, LIMIT);
    assert!(matches!(ended, Some(Ended::Run(Outcome::Succeeded { .. }))), "{ended:?}");
    run
}

fn failed(site: &Site, life: &Life) -> Failure {
    match enrolled(site, life) {
        Outcome::Failed { failure } => *failure,
        other => panic!("{other:?}"),
    }
}

fn open_jobs(machine: &Machine) -> Vec<Value> {
    kept(machine, "jobs").into_iter().filter(|job| job["state"] != "Completed" && job["state"] != "Failed").collect()
}

fn host_resets(site: &Site) -> usize {
    writes(site).iter().filter(|write| write.contains("ComputerSystem.Reset")).count()
}

/// Proves: B2, B5, B11, B16, B17
#[test]
fn a_host_of_each_vendor_is_enrolled_from_the_factory_and_a_second_run_writes_nothing_to_its_bmc() {
    for vendor in [Vendor::Supermicro, Vendor::Lenovo, Vendor::Dell, Vendor::Ami] {
        let quirks: &[Quirk] = if vendor == Vendor::Supermicro { &[] } else { &[Quirk::FactoryPassword] };
        let site = of_vendor(vendor, quirks);
        let life = site.begin_sound();
        let first = enrolled(&site, &life);
        assert!(matches!(first, Outcome::Succeeded { .. }), "{vendor:?}: {first:?}");
        let now = machine(&site);
        let rotated = vendor != Vendor::Supermicro;
        assert_eq!(
            now.bmc.resets,
            u64::from(rotated),
            "{vendor:?}: a set password takes a cold reset, and nothing else"
        );
        let tags: Vec<String> = {
            let world = site.lab.world().lock();
            let device = world.records.device_named(HOST).unwrap();
            device.tags.iter().map(|tag| world.records.tags[tag].slug.clone()).collect()
        };
        assert!(tags.iter().any(|tag| tag == "ipmi_exporter"), "{vendor:?}: {tags:?}");
        assert!(now.bmc.accounts.contains_key("ipmi_exporter"), "{vendor:?}");
        match vendor {
            Vendor::Dell => {
                assert_eq!(bootable(&now).0, 1, "{:#}", now.bmc.settings["dell"]["options"]);
                assert!(bootable(&now).1 > 0);
                assert_eq!(open_jobs(&now), Vec::<Value>::new());
            }
            Vendor::Ami => {
                assert_eq!(bootable(&now).0, 1, "{:#}", now.bmc.settings["ami"]["options"]);
                assert!(bootable(&now).1 > 0);
            }
            Vendor::Lenovo | Vendor::Supermicro => {}
        }
        site.lab.world().ledger().reset();
        let again = enrolled(&site, &life);
        assert!(matches!(again, Outcome::Succeeded { .. }), "{vendor:?}: {again:?}");
        assert_eq!(writes(&site), Vec::<String>::new(), "{vendor:?}");
        life.end();
    }
}

/// Proves: B20. It authenticates with each request, so there is no session to be left; none is over IPMI either.
#[test]
fn a_whole_run_opens_no_session_that_it_does_not_close() {
    for vendor in [Vendor::Supermicro, Vendor::Lenovo, Vendor::Dell, Vendor::Ami] {
        let site = of_vendor(vendor, &[]);
        let life = site.begin_sound();
        let mut request = site.request();
        request.options.prove_ipmi = true;
        let run = life.submit(request);
        let ended = life.wait(run, LIMIT);
        assert!(matches!(ended, Some(Ended::Run(Outcome::Succeeded { .. }))), "{vendor:?}: {ended:?}");
        let asked = site.ledger();
        let of_bmc = |path: &str| asked.iter().filter(|e| e.system == System::Bmc && e.path.contains(path)).count();
        assert!(of_bmc("/redfish/v1") > 10, "{vendor:?}");
        assert_eq!(of_bmc("/SessionService"), 0, "{vendor:?}: a session was asked for");
        assert_eq!((of_bmc("open session"), of_bmc("close session")), (1, 1), "{vendor:?}");
        assert_eq!(machine(&site).bmc.ipmi_sessions, 0, "{vendor:?}");
        life.end();
    }
}

/// How a host is met.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Met {
    Fresh,
    Converged,
    /// Everything but its password is as the factory left it.
    Drifted,
    /// The same, and its BMC is busy for a while.
    Busy,
    /// The same, and its BMC refuses every change.
    Faulted,
}

const MET: [Met; 5] = [Met::Fresh, Met::Converged, Met::Drifted, Met::Busy, Met::Faulted];

/// What runs may change at a BMC, in their order. Firmware attributes stand for their vendor's own names.
const STEPS: [&str; 15] = [
    "admin password",
    "cold reset",
    "hostname",
    "DHCP on the BMC's NIC",
    "TLS minimum",
    "plain services",
    "host interface",
    "NTP",
    "syslog",
    "virtual media",
    "firmware attributes",
    "boot order",
    "IPMI user",
    "IPMI privilege",
    "IPMI over LAN",
];

/// Changes of a run at the BMC, by step, and how it ended.
fn changes(life: &Life, run: RunId) -> (Vec<String>, Outcome) {
    use muster::domain::event::{Body, Observation};
    let Some(Ended::Run(outcome)) = life.wait(run, LIMIT) else { panic!("it does not end") };
    let records = life.store.records(run).unwrap();
    let wrote = records.into_iter().filter_map(|record| match record.body {
        Body::Observation(Observation::Wrote { system, what, .. }) if system == "bmc" => Some(what),
        _ => None,
    });
    let step =
        |what: String| if STEPS.contains(&&*what) || what == "power" { what } else { "firmware attributes".into() };
    (wrote.map(step).filter(|what| what != "power").collect(), outcome)
}

/// The column of one vendor and one way to meet it.
fn column(vendor: Vendor, met: Met) -> Vec<String> {
    let quirks: &[Quirk] = if vendor == Vendor::Supermicro { &[] } else { &[Quirk::FactoryPassword] };
    let site = of_vendor(vendor, quirks);
    let factory = machine(&site).bmc.settings;
    let life = site.begin_sound();
    let request = || {
        let mut request = site.request();
        request.options.ironic_enrol = false;
        request.options.configure_dhcp = false;
        request
    };
    let run = life.submit(request());
    let (mut changed, mut outcome) = changes(&life, run);
    if met != Met::Fresh {
        assert_eq!(outcome.status(), "succeeded", "{vendor:?}: {outcome:?}");
        if met != Met::Converged {
            site.lab
                .world()
                .with_machine(HOST, |machine, _| {
                    machine.bmc.accounts.remove("ipmi_exporter");
                    machine.bmc.settings.extend(factory);
                    // The factory has it on.
                    machine.bmc.settings.insert("dhcp".to_owned(), false.into());
                })
                .unwrap();
        }
        if met == Met::Busy {
            site.fault(serde_json::json!({"kind": "bmc_busy", "device": HOST, "for_s": 30.0}));
        }
        if met == Met::Faulted {
            for method in ["PATCH", "POST"] {
                site.fault(serde_json::json!({"kind": "http", "system": "bmc", "method": method, "status": 400,
                    "path": "*", "body": {"error": {"message": "the lab says no"}}}));
            }
        }
        site.lab.world().ledger().reset();
        let run = life.submit(request());
        (changed, outcome) = changes(&life, run);
        if met == Met::Converged {
            assert_eq!(writes(&site), Vec::<String>::new(), "{vendor:?}");
        }
    }
    life.end();
    let end = match &outcome {
        Outcome::Succeeded { .. } => "ok".to_owned(),
        Outcome::Failed { failure } => failure.code.to_string(),
        other => panic!("{vendor:?} {met:?}: {other:?}"),
    };
    let cell = |step: &str| if changed.iter().any(|what| what == step) { "changed" } else { "." };
    STEPS.iter().map(|step| cell(step).to_owned()).chain([end]).collect()
}

/// Proves: B2, B5, B11, B16, B18
#[test]
fn each_step_of_each_vendor_is_what_the_table_says_however_the_host_is_met() {
    let mut table = String::new();
    for vendor in [Vendor::Lenovo, Vendor::Dell, Vendor::Ami, Vendor::Supermicro] {
        let columns: Vec<Vec<String>> = MET.iter().map(|met| column(vendor, *met)).collect();
        table += &format!("{:<24}", format!("{vendor:?}"));
        table += &MET.iter().map(|met| format!("{:<12}", format!("{met:?}").to_lowercase())).collect::<String>();
        table = table.trim_end().to_owned() + "\n";
        for (row, step) in STEPS.iter().copied().chain(["the run"]).enumerate() {
            let cells: String = columns.iter().map(|column| format!("{:<12}", column[row])).collect();
            table += format!("  {step:<22}{cells}").trim_end();
            table += "\n";
        }
    }
    println!("{table}");
    insta::assert_snapshot!(table);
}

/// Proves: B15
#[test]
fn without_boot_restriction_no_boot_option_is_disabled() {
    for vendor in [Vendor::Dell, Vendor::Ami] {
        let site = of_vendor(vendor, &[]);
        let before = bootable(&machine(&site));
        let life = site.begin_sound();
        let mut request = site.request();
        request.options.restrict_boot = false;
        request.options.ironic_enrol = false;
        let run = life.submit(request);
        let ended = life.wait(run, LIMIT);
        assert!(matches!(ended, Some(Ended::Run(Outcome::Succeeded { .. }))), "{vendor:?}: {ended:?}");
        assert_eq!(bootable(&machine(&site)), before, "{vendor:?}");
        let about_boot = |write: &&String| write.contains("BootOptions") || write.contains("BootSources");
        if vendor == Vendor::Ami {
            assert_eq!(writes(&site).iter().filter(about_boot).count(), 0, "AMI has no reorder of its own");
        }
        life.end();
    }
}

/// Proves: B9
#[test]
fn a_job_that_is_never_scheduled_is_deleted_and_the_host_is_not_restarted() {
    let site = of_vendor(Vendor::Dell, &[Quirk::JobNeverSchedules]);
    let life = site.begin_sound();
    let failure = failed(&site, &life);
    assert_eq!(failure.code, FailureCode::BmcJobNotScheduled, "{failure}");
    assert_eq!(host_resets(&site), 0);
    assert_eq!(open_jobs(&machine(&site)), Vec::<Value>::new());
    // Mended, a rerun stages it again.
    site.lab.world().with_machine(HOST, |machine, _| machine.bmc.quirks.clear()).unwrap();
    let again = enrolled(&site, &life);
    assert!(matches!(again, Outcome::Succeeded { .. }), "{again:?}");
    assert_eq!(bootable(&machine(&site)).0, 1);
    life.end();
}

/// Proves: B9
#[test]
fn a_job_that_cannot_begin_fails_the_step_and_is_deleted() {
    let site = of_vendor(Vendor::Dell, &[Quirk::JobInitFails]);
    let life = site.begin_sound();
    let failure = failed(&site, &life);
    assert_eq!(failure.code, FailureCode::BmcJobFailed, "{failure}");
    assert!(failure.message.contains("JID_"), "{failure}");
    assert_eq!((host_resets(&site), open_jobs(&machine(&site))), (0, vec![]));
    life.end();
}

/// Proves: B8, B9
#[test]
fn a_job_that_another_restart_carries_in_is_left_to_end_without_a_further_one() {
    let site = of_vendor(Vendor::Dell, &[Quirk::ForeignRestart]);
    let life = site.begin_sound();
    configured(&site, &life);
    assert_eq!(host_resets(&site), 0);
    assert_eq!((bootable(&machine(&site)).0, open_jobs(&machine(&site))), (1, vec![]));
    life.end();
}

#[test]
fn a_job_of_somebody_else_is_named_and_nothing_is_staged_beside_it() {
    let site = of_vendor(Vendor::Dell, &[Quirk::ForeignJob]);
    let before = open_jobs(&machine(&site));
    assert_eq!(before.len(), 1);
    let life = site.begin_sound();
    let failure = failed(&site, &life);
    assert_eq!(failure.code, FailureCode::BmcJobForeign, "{failure}");
    assert!(failure.message.contains(before[0]["id"].as_str().unwrap()), "{failure}");
    let after = open_jobs(&machine(&site));
    assert_eq!(after.len(), 1, "it is left alone: {after:?}");
    let staged = |write: &&String| write.contains("Settings") || write.contains("DeleteJobQueue");
    assert_eq!(writes(&site).iter().filter(staged).count(), 0, "{:?}", writes(&site));
    assert_eq!(host_resets(&site), 0);
    life.end();
}

/// Proves: B9
#[test]
fn a_job_that_is_done_and_changed_nothing_is_no_success() {
    let site = of_vendor(Vendor::Dell, &[Quirk::OrderUnchanged]);
    let life = site.begin_sound();
    let failure = failed(&site, &life);
    assert_eq!(failure.code, FailureCode::BmcSettingNotApplied, "{failure}");
    assert!(failure.message.contains("boot order"), "{failure}");
    life.end();
}

/// Proves: B14
#[test]
fn a_nic_that_nothing_identifies_leaves_all_boot_options_on() {
    let site = of_vendor(Vendor::Dell, &[Quirk::RelatedItemNull]);
    // Another MAC in NetBox than any that the BMC knows.
    site.lab
        .world()
        .with_machine(HOST, |machine, _| machine.nics[0].mac = "02:00:00:00:00:99".parse().unwrap())
        .unwrap();
    let before = bootable(&machine(&site));
    let life = site.begin_sound();
    let run = configured(&site, &life);
    assert_eq!(bootable(&machine(&site)), before);
    let told = serde_json::to_string(&life.store.records(run).unwrap()).unwrap();
    assert!(told.contains("no option is disabled"), "the run says so");
    life.end();
}

/// Proves: B9, G9
#[test]
fn a_cancel_while_a_job_waits_takes_the_job_back() {
    let site = of_vendor(Vendor::Dell, &[Quirk::JobNeverSchedules]);
    let life = site.begin_sound();
    let run = life.submit(site.request());
    let until = std::time::Instant::now() + LIMIT;
    while open_jobs(&machine(&site)).is_empty() {
        assert!(std::time::Instant::now() < until, "no job was made");
        std::thread::sleep(Duration::from_millis(5));
    }
    assert!(life.cancel(run));
    let ended = life.wait(run, LIMIT);
    assert!(matches!(ended, Some(Ended::Run(Outcome::Cancelled { .. }))), "{ended:?}");
    assert_eq!((open_jobs(&machine(&site)), host_resets(&site)), (vec![], 0));
    life.end();
}

/// Case: C-31
///
/// iDRAC10 takes no boot order beside its other settings: two jobs, two boots.
#[test]
fn what_a_bmc_does_not_take_at_once_is_staged_boot_by_boot() {
    let site = of_vendor(Vendor::Dell, &[Quirk::Idrac10]);
    let life = site.begin_sound();
    configured(&site, &life);
    assert_eq!((bootable(&machine(&site)).0, open_jobs(&machine(&site))), (1, vec![]));
    assert_eq!(host_resets(&site), 2);
    life.end();
}

/// A firmware that makes something else of an order than it was told (Q10) is told again, after the boot that did so.
#[test]
fn an_order_that_a_boot_has_changed_is_staged_once_more() {
    let site = of_vendor(Vendor::Lenovo, &[Quirk::DropsHardDisk]);
    let life = site.begin_sound();
    configured(&site, &life);
    let classes = machine(&site).bmc.settings["lenovo"]["classes"].to_string();
    assert!(classes.contains("Hard Disk"), "{classes}");
    assert_eq!(host_resets(&site), 3, "on, and then off and on: {:?}", writes(&site));
    life.end();
}

const TLS: &str = "WebServer.1.TLSProtocol";

/// Writes of the attribute whose change makes an iDRAC's web server start anew.
fn tls_writes(site: &Site) -> usize {
    let wrote = |entry: &&Entry| entry.write && entry.body.as_ref().is_some_and(|b| b["Attributes"][TLS].is_string());
    site.ledger().iter().filter(wrote).count()
}

/// Proves: B5, G12. Whether the answer to the change comes through or is lost with the connection: the web server is waited for,
/// and what was written is not written again.
#[test]
fn an_idracs_web_server_that_starts_anew_is_waited_for_and_no_write_is_made_twice() {
    for lost in [false, true] {
        let site = of_vendor(Vendor::Dell, &[Quirk::WebServerRestarts]);
        if lost {
            // The first of its attributes is the host name.
            site.fault(
                serde_json::json!({"kind": "http", "system": "bmc", "method": "PATCH", "path": "*/DellAttributes/*",
                "skip": 1, "count": 1, "drop": true, "after_effect": true}),
            );
        }
        let life = site.begin_sound();
        configured(&site, &life);
        let now = machine(&site);
        assert!(now.bmc.web_away.is_some(), "{lost}: it did not start anew");
        assert_eq!(now.bmc.settings["dell"]["attributes"][TLS], "TLS 1.2 and Higher");
        assert_eq!(tls_writes(&site), 1, "{lost}: {:?}", writes(&site));
        assert_eq!(open_jobs(&now), Vec::<Value>::new());
        site.lab.world().ledger().reset();
        configured(&site, &life);
        assert_eq!(writes(&site), Vec::<String>::new(), "{lost}");
        life.end();
    }
}

/// Proves: G12. A locked down iDRAC that is to be changed ends the run before any write; one that is right already is enrolled.
#[test]
fn a_bmc_in_lockdown_ends_the_run_with_what_to_do_and_nothing_is_written_or_queued() {
    let site = of_vendor(Vendor::Dell, &[Quirk::Lockdown]);
    let life = site.begin_sound();
    let failure = failed(&site, &life);
    assert_eq!((failure.code, failure.owner), (FailureCode::BmcLockdown, Owner::InfraEng), "{failure}");
    assert!(failure.message.contains("Lockdown.1.SystemLockdown is Enabled"), "{failure}");
    assert!(failure.action.contains("switch the lockdown mode") && failure.action.contains(HOST), "{failure:?}");
    assert_eq!((writes(&site), open_jobs(&machine(&site))), (vec![], vec![]));
    // Somebody does so.
    let lockdown = |word: &'static str| {
        site.lab.world().with_machine(HOST, |machine, _| {
            machine.bmc.settings.get_mut("dell").unwrap()["attributes"]["Lockdown.1.SystemLockdown"] = word.into();
        })
    };
    lockdown("Disabled");
    configured(&site, &life);
    lockdown("Enabled");
    site.lab.world().ledger().reset();
    configured(&site, &life);
    assert_eq!(writes(&site), Vec::<String>::new());
    life.end();
}

/// A firmware whose attributes tell nothing of its lockdown: its refusal does, whichever write meets it.
#[test]
fn a_lockdown_that_only_a_refusal_tells_of_is_one_all_the_same_and_the_write_is_not_repeated() {
    for (method, path) in [("PATCH", "*/DellAttributes/*"), ("PATCH", "*/Settings"), ("PATCH", "*/Accounts/*")] {
        let site = of_vendor(Vendor::Dell, &[]);
        let text = "The request failed because the system is in lockdown mode.";
        site.fault(serde_json::json!({"kind": "http", "system": "bmc", "method": method, "path": path, "status": 400,
            "body": {"error": {"@Message.ExtendedInfo": [{"MessageId": "IDRAC.2.8.XYZ1", "Message": text}]}}}));
        let life = site.begin_sound();
        let failure = failed(&site, &life);
        assert_eq!(failure.code, FailureCode::BmcLockdown, "{path}: {failure}");
        assert!(failure.message.contains(text), "{failure}");
        let refused = |entry: &&Entry| entry.injected && entry.write;
        assert_eq!(site.ledger().iter().filter(refused).count(), 1, "{path}");
        assert_eq!(open_jobs(&machine(&site)), Vec::<Value>::new(), "{path}");
        life.end();
    }
}

/// Proves: B5. An XCC3 orders its NICs by firmware attributes.
#[test]
fn an_xcc3_boots_the_provisioning_nic_first_and_a_second_run_writes_nothing() {
    let site = of_vendor(Vendor::Lenovo, &[Quirk::Xcc3]);
    let life = site.begin_sound();
    configured(&site, &life);
    let now = machine(&site);
    let order = now.bmc.settings["lenovo"]["network"].clone();
    let mac = now.nics[0].mac.to_string().to_uppercase().replace(':', "_");
    assert!(order[0].as_str().is_some_and(|first| first.contains("PXEv4") && first.ends_with(&mac)), "{order}");
    assert_eq!(now.bmc.settings["lenovo"]["classes"][0], "Network");
    site.lab.world().ledger().reset();
    configured(&site, &life);
    assert_eq!(writes(&site), Vec::<String>::new());
    life.end();
}

//! The enrollment workflow against a scripted world: its order, gates, waits, reruns and ends, in virtual time.

#[path = "support/good_world.rs"]
mod good_world;
#[path = "workflow/panes.rs"]
mod panes;
#[allow(dead_code, reason = "each test binary uses its part of the support")]
#[path = "support/script.rs"]
mod script;

use std::cell::Cell;

use good_world::{NODE, World, good_world, links, locked, look, managed, verified};
use jiff::SignedDuration;
use muster::domain::event::WaitKind;
use muster::domain::failure::{Failure, FailureCode, Owner};
use muster::domain::phase::Phase;
use muster::workflows::cx::ActivityError;
use script::{Played, play, request};
use serde_json::{Value, json};

fn all_well() -> Played {
    play(request(), None, good_world(|_, _, _| None))
}

/// Proves: G1, A2, C7, T1
#[test]
fn a_fresh_host_walks_all_phases_in_their_order() {
    let mut asked = request();
    asked.options.platform_class_activity_ready = true;
    asked.options.switch_to_ipmi_after_inspection = true;
    let played = play(asked, None, good_world(|_, _, _| None));
    let result = played.result.as_ref().unwrap();
    assert_eq!(result.node.unwrap().to_string(), NODE);
    assert!(result.qualifying && !result.already_enrolled);
    assert_eq!(played.phases_started(), Phase::ALL);
    let order = [
        "netbox.status_gate",
        "netbox.platform_class",
        "dhcp.configure",
        "bmc.prepare",
        "bmc.configure",
        "netbox.activate",
        "ironic.prelude",
        "ironic.networking",
        "ironic.manage",
        "ironic.raid_target",
        "ironic.inspect",
        "ironic.verify",
        "ironic.switch_driver",
        "ironic.provide",
        "ironic.power_on",
        "fleet.prove",
    ];
    let mut last = 0;
    for name in order {
        let place = played.names()[last..].iter().position(|n| *n == name);
        last += place.unwrap_or_else(|| panic!("no {name} after place {last} of {:?}", played.names()));
    }
    assert_eq!(played.asked.last().unwrap().0, "fleet.prove");
    let tags: Vec<&Value> =
        played.asked.iter().filter(|(n, _)| n == "netbox.add_tag").map(|(_, i)| &i["tag"]).collect();
    assert_eq!(tags, ["ipmi_exporter", "ironic"]);
}

/// Proves: G2, A2, P1
#[test]
fn gates_switch_off_their_group_and_never_the_status_gate_or_the_activation() {
    let mut asked = request();
    asked.options.configure_dhcp = false;
    asked.options.configure_bmc = false;
    asked.options.ironic_enrol = false;
    let played = play(asked, None, good_world(|_, _, _| None));
    assert_eq!(played.names(), ["netbox.status_gate", "netbox.activate"]);
    assert!(played.result.as_ref().unwrap().node.is_none());
    use Phase::*;
    assert_eq!(played.skipped(), [PlatformClass, Dhcp, Bmc, Inspection, DriverSwitch, Cleaning, Finalize]);
}

/// Proves: R1, R2, R3
#[test]
fn without_an_ironic_instance_nothing_is_asked() {
    for class in [None, Some("SWITCH".to_owned())] {
        let mut asked = request();
        asked.device_class = class;
        let played = play(asked, None, good_world(|_, _, _| None));
        assert!(played.asked.is_empty(), "{:?}", played.names());
        let failure = played.failure();
        assert_eq!(failure.code, FailureCode::IronicRoutingUnresolved);
        assert_eq!((failure.phase, failure.owner), (Phase::ResolveIronicInstance, Owner::InfraEng));
        assert!(!failure.retryable && failure.action.contains("COMPUTE_GPU"), "{failure:?}");
    }
}

/// Proves: E6, C8
#[test]
fn an_enrolled_host_is_verified_powered_on_and_tagged_and_not_touched_otherwise() {
    let world = good_world(|name, _, _| match name {
        "ironic.prelude" => Some(Ok(json!({"prelude": "satisfied", "node": NODE, "state": "available"}))),
        "ironic.verify" => Some(Ok(verified("pass"))),
        _ => None,
    });
    let played = play(request(), None, world);
    assert!(played.result.as_ref().unwrap().already_enrolled);
    for never in [
        "ironic.networking",
        "ironic.manage",
        "ironic.inspect",
        "ironic.provide",
        "ironic.raid_target",
        "bmc.read_links",
    ] {
        assert_eq!(played.count(never), 0, "{never}");
    }
    assert_eq!(played.count("ironic.power_on"), 1);
}

/// Proves: X1
#[test]
fn logins_over_ipmi_are_proven_where_the_site_asks_and_for_whom_will_log_in() {
    let proven = |ask: bool, switch: bool, no_user: bool| {
        let mut asked = request();
        (asked.options.prove_ipmi, asked.options.switch_to_ipmi_after_inspection) = (ask, switch);
        let world = good_world(move |name, _, _| match name {
            "bmc.configure" => {
                Some(Ok(json!({"changed": [], "satisfied": [], "skipped": [], "no_monitoring_user": no_user})))
            }
            _ => None,
        });
        let played = play(asked, None, world);
        let place = |name| played.names().iter().position(|n| *n == name);
        if let Some(proves) = place("bmc.prove_ipmi") {
            assert!(place("bmc.configure") < Some(proves) && Some(proves) < place("netbox.activate"));
        }
        let inputs = played.asked.iter().filter(|(name, _)| name == "bmc.prove_ipmi");
        inputs.map(|(_, i)| (i["monitoring"] == json!(true), i["administrator"] == json!(true))).collect::<Vec<_>>()
    };
    assert_eq!(proven(false, true, false), []);
    assert_eq!(proven(true, false, false), [(true, false)]);
    assert_eq!(proven(true, true, false), [(true, true)]);
    assert_eq!(proven(true, true, true), [(false, true)]);
    assert_eq!(proven(true, false, true), []);
}

/// Proves: E6, C7, C8
#[test]
fn a_deployed_host_is_only_tagged() {
    for (state, instance) in [("active", Some("i-1")), ("active", None), ("manageable", Some("i-1"))] {
        let world = good_world(move |name, _, _| match name {
            "ironic.prelude" => {
                Some(Ok(json!({"prelude": "satisfied", "node": NODE, "state": state, "instance_uuid": instance})))
            }
            "ironic.verify" => Some(Ok(verified("pass"))),
            _ => None,
        });
        let played = play(request(), None, world);
        let asked: Vec<&str> = played.names().into_iter().filter(|n| n.starts_with("ironic.")).collect();
        assert_eq!(asked, ["ironic.prelude", "ironic.verify"], "{state}");
        assert_eq!(played.count("fleet.prove"), 1);
    }
}

/// Proves: E6, I10
#[test]
fn without_inspection_an_enrolled_host_is_not_verified_and_proves_nothing() {
    let mut asked = request();
    asked.params.run_inspection = false;
    let world = good_world(|name, _, _| {
        (name == "ironic.prelude").then(|| Ok(json!({"prelude": "satisfied", "node": NODE, "state": "available"})))
    });
    let played = play(asked, None, world);
    assert_eq!((played.count("ironic.verify"), played.count("fleet.prove")), (0, 0));
    assert!(!played.result.as_ref().unwrap().qualifying);
}

/// Proves: I10, L5
#[test]
fn without_inspection_the_cleaning_guard_still_runs_and_it_is_said() {
    let mut asked = request();
    asked.params.run_inspection = false;
    asked.params.force_inspection = true;
    let played = play(asked, None, good_world(|_, _, _| None));
    assert_eq!((played.count("ironic.inspect"), played.count("ironic.verify")), (0, 0));
    assert_eq!(played.count("bmc.read_links"), 1);
    assert!(played.warnings().iter().any(|w| w.contains("bypass")), "{:?}", played.warnings());
}

/// Proves: I11
#[test]
fn an_inventory_that_passes_is_reused_unless_an_inspection_is_forced() {
    let with_inventory = |force: bool| {
        let mut asked = request();
        asked.params.force_inspection = force;
        play(asked, None, good_world(|name, _, _| (name == "ironic.verify").then(|| Ok(verified("pass")))))
    };
    assert_eq!(with_inventory(false).count("ironic.inspect"), 0);
    assert_eq!(with_inventory(true).count("ironic.inspect"), 1);
}

/// Proves: I12, V10
#[test]
fn wrong_cables_on_fresh_data_end_the_run_at_once_with_both_ends() {
    let world = good_world(|name, _, _| (name == "ironic.verify").then(|| Ok(verified("fail"))));
    let played = play(request(), None, world);
    assert_eq!(played.count("ironic.inspect"), 1, "the data at hand leads to one inspection, its own data to none");
    let failure = played.failure();
    assert_eq!((failure.code, failure.owner), (FailureCode::CablesWrong, Owner::Onsite));
    assert!(failure.message.contains("leaf-b07-2 swp14") && failure.message.contains("leaf-b07-1 swp14"));
    assert_eq!(played.count("ironic.provide"), 0);
}

/// Proves: L1, L2
#[test]
fn all_links_down_for_the_whole_budget_abort_the_inspection() {
    let world = good_world(|name, _, _| match name {
        "bmc.read_links" => Some(Ok(links(&["DOWN", "DOWN"]))),
        "ironic.look" => Some(Ok(look("inspect wait", "on"))),
        _ => None,
    });
    let mut asked = request();
    asked.params.force_inspection = true;
    // The node is enrolled and managed before: only the inspection is looked at.
    let world = managed(world);
    let played = play(asked, None, world);
    let failure = played.failure();
    assert_eq!((failure.code, failure.owner), (FailureCode::LinkAllDown, Owner::Onsite));
    assert!(failure.message.contains("leaf-b07-1 swp14") && failure.message.contains("W-0412"), "{}", failure.message);
    assert_eq!(played.count("ironic.abort"), 1);
    // A look every five seconds of the five minutes, and one at their end.
    assert_eq!(played.count("bmc.read_links"), 61);
}

/// Proves: L2
#[test]
fn unknown_links_go_on_with_a_warning() {
    let world = good_world(|name, _, _| (name == "bmc.read_links").then(|| Ok(links(&["DOWN", "UNKNOWN"]))));
    let played = play(request(), None, world);
    assert!(played.result.is_ok());
    assert!(played.warnings().iter().any(|w| w.contains("eth1") && w.contains("UNKNOWN")), "{:?}", played.warnings());
}

/// Proves: L3
#[test]
fn a_bmc_that_cannot_be_asked_for_links_fails_the_attempt() {
    let world = good_world(|name, _, _| {
        (name == "bmc.read_links")
            .then(|| Err(Failure::new(FailureCode::BmcLinkUnsupported, Phase::Inspection, "no resource", "update it")))
    });
    assert_eq!(play(request(), None, world).failure().code, FailureCode::BmcLinkUnsupported);
}

/// Proves: E15, E16
#[test]
fn a_lock_is_waited_out_on_timers_and_at_the_end_names_its_holder() {
    let passing = good_world(|name, _, since| {
        (name == "ironic.manage" && since < SignedDuration::from_secs(180)).then(|| Ok(locked()))
    });
    let played = play(request(), None, passing);
    assert!(played.result.is_ok());
    let lock: Vec<i64> =
        played.waits.iter().filter(|(k, _)| *k == WaitKind::NodeLock).map(|(_, w)| w.as_secs()).collect();
    assert_eq!(&lock[..4], [10, 20, 40, 60]);
    assert!(lock[4..].iter().all(|w| *w == 60));

    let forever = good_world(|name, _, _| match name {
        "ironic.manage" => Some(Ok(locked())),
        "ironic.look" => Some(Ok(json!({"state": "verifying", "power": "off", "reservation": "conductor-7"}))),
        _ => None,
    });
    let played = play(request(), None, forever);
    let failure = played.failure();
    assert_eq!(failure.code, FailureCode::IronicNodeLocked);
    assert!(failure.message.contains("conductor-7") && failure.message.contains("verifying"), "{}", failure.message);
    let waited = played.waited(WaitKind::NodeLock).as_secs();
    assert!((880..=900).contains(&waited), "{waited}");
}

/// Proves: E15, E16
#[test]
fn a_prelude_that_stays_locked_reads_the_node_before_it_gives_up() {
    let world = good_world(|name, _, _| match name {
        "ironic.prelude" => {
            Some(Ok(json!({"prelude": "locked", "holder": "conductor-1", "state": "manageable", "node": NODE})))
        }
        "ironic.look" => Some(Ok(json!({"state": "clean failed", "power": "off", "reservation": "conductor-9"}))),
        _ => None,
    });
    let played = play(request(), None, world);
    let failure = played.failure();
    assert_eq!(failure.code, FailureCode::IronicNodeLocked);
    for word in ["conductor-9", "clean failed", "15 min"] {
        assert!(failure.message.contains(word), "{word}: {}", failure.message);
    }
    assert_eq!(played.count("ironic.look"), 1);
}

/// Proves: C7
#[test]
fn a_node_that_nova_takes_while_its_power_is_waited_for_is_waited_for_no_longer() {
    let tagged = Cell::new(false);
    let world = good_world(move |name, _, _| match name {
        "ironic.power_on" => {
            tagged.set(true);
            None
        }
        "ironic.look" if tagged.get() => Some(Ok(json!({"state": "active", "power": "off", "instance_uuid": "i-1"}))),
        "ironic.prelude" => Some(Ok(json!({"prelude": "satisfied", "node": NODE, "state": "available"}))),
        "ironic.verify" => Some(Ok(verified("pass"))),
        _ => None,
    });
    let played = play(request(), None, world);
    assert!(played.result.is_ok(), "{:?}", played.result);
    assert_eq!(played.waited(WaitKind::PowerOn).as_secs(), 0);
}

/// Proves: I8
#[test]
fn a_manage_that_lands_elsewhere_is_a_hard_failure() {
    let world = good_world(|name, _, _| {
        (name == "ironic.look").then(|| Ok(json!({"state": "enroll", "power": "off", "last_error": "bad credentials"})))
    });
    let played = play(request(), None, world);
    assert_eq!(played.failure().code, FailureCode::NodeManageFailed);
    assert!(played.failure().message.contains("bad credentials"));
    assert_eq!(played.count("ironic.manage"), 1);
}

/// A world whose inspections fail this often.
fn failing_inspections(times: u32) -> World {
    let (inspections, failing) = (Cell::new(0), Cell::new(false));
    managed(good_world(move |name, _, _| match name {
        "ironic.inspect" => {
            inspections.set(inspections.get() + 1);
            failing.set(inspections.get() <= times);
            None
        }
        "ironic.look" if failing.get() => {
            Some(Ok(json!({"state": "inspect failed", "power": "on", "last_error": "no ramdisk"})))
        }
        _ => None,
    }))
}

/// Proves: I13, G11
#[test]
fn a_failed_inspection_reruns_the_attempt_within_the_one_budget() {
    let played = play(request(), None, failing_inspections(2));
    assert!(played.result.is_ok());
    assert_eq!(played.count("ironic.inspect"), 3);
    let played = play(request(), None, failing_inspections(3));
    assert_eq!(played.failure().code, FailureCode::InspectionFailed);
    let mut once = request();
    once.params.max_attempts = Some(1);
    let played = play(once, None, failing_inspections(1));
    assert_eq!((played.failure().code, played.count("ironic.inspect")), (FailureCode::InspectionFailed, 1));
}

/// Case: C-03. Proves: I13, G11
#[test]
fn an_inspection_that_never_reports_is_tried_as_often_as_allowed_and_each_attempt_tells_what_it_saw() {
    // As `c03-inspection-timeouts.json` has it: Ironic itself gives up after 30 minutes.
    let world = || {
        let began = Cell::new(SignedDuration::ZERO);
        managed(good_world(move |name, _, since| {
            let took = since - began.get();
            match name {
                "ironic.inspect" => {
                    began.set(since);
                    None
                }
                "bmc.read_links" if took < SignedDuration::from_secs(60) => Some(Ok(links(&["DOWN", "DOWN"]))),
                "bmc.read_links" => Some(Ok(links(&["UP", "DOWN"]))),
                "ironic.look" => {
                    let secs = took.as_secs();
                    let state = match secs {
                        ..30 => "inspecting",
                        30..1800 => "inspect wait",
                        _ => "inspect failed",
                    };
                    let mut look = look(state, if secs < 20 { "off" } else { "on" });
                    if secs >= 1800 {
                        look["last_error"] = json!("timeout reached while inspecting the node");
                    }
                    if secs >= 300 {
                        look["last_heartbeat"] = json!("2026-09-21T14:00:00");
                    }
                    Some(Ok(look))
                }
                _ => None,
            }
        }))
    };
    for (override_, attempts) in [(None, 3), (Some(1), 1)] {
        let mut asked = request();
        asked.params.max_attempts = override_;
        let played = play(asked, None, world());
        let failure = played.failure();
        assert_eq!((failure.code, played.count("ironic.inspect")), (FailureCode::InspectionFailed, attempts));
        for word in ["'gpu-b07-37'", "its ramdisk", "30 min", "timeout reached while inspecting the node"] {
            assert!(failure.message.contains(word), "{word}: {}", failure.message);
        }
        let seen = &failure.evidence.last().unwrap().read;
        let told = played.warnings().into_iter().chain([seen.to_owned()]);
        assert_eq!(told.clone().count(), attempts, "{:?}", played.warnings());
        for (n, told) in told.enumerate() {
            let attempt = format!("attempt {} of {attempts}", n + 1);
            for word in [&*attempt, "power on since", "links eth0 UP eth1 DOWN", "last heartbeat of the ramdisk 2026"] {
                assert!(told.contains(word), "{word}: {told}");
            }
        }
        // The attempts are whole ones, one behind the other: never longer than their budgets together.
        let took = played.took.as_secs();
        assert!((1800 * attempts as i64..1900 * attempts as i64).contains(&took), "{took}");
    }
}

/// Proves: I13
/// Case: C-03
#[test]
fn an_inspection_that_never_reports_times_out_and_says_what_was_awaited() {
    let mut asked = request();
    asked.params.max_attempts = Some(1);
    let world = managed(good_world(|name, _, _| (name == "ironic.look").then(|| Ok(look("inspect wait", "on")))));
    let played = play(asked, None, world);
    let failure = played.failure();
    assert_eq!(failure.code, FailureCode::InspectionTimeout);
    assert!(
        failure.message.contains("40 min")
            && failure.message.contains("ramdisk of 'gpu-b07-37' did not report to Ironic 'main'"),
        "{}",
        failure.message
    );
    assert!((2395..=2420).contains(&played.took.as_secs()), "{:?}", played.took);
}

/// A world whose cleans fail this often.
fn failing_cleans(times: u32) -> World {
    let (cleans, failing) = (Cell::new(0), Cell::new(false));
    good_world(move |name, _, _| match name {
        "ironic.provide" => {
            cleans.set(cleans.get() + 1);
            failing.set(cleans.get() <= times);
            None
        }
        "ironic.look" if failing.get() => {
            Some(Ok(json!({"state": "clean failed", "power": "on", "last_error": "disk nvme3"})))
        }
        _ => None,
    })
}

/// Proves: C2
#[test]
fn a_node_that_is_available_by_the_time_of_the_clean_goes_straight_to_finalize() {
    let world = good_world(|name, input, _| {
        (name == "ironic.prelude" && input["half"] == "cleaning")
            .then(|| Ok(json!({"prelude": "satisfied", "node": NODE, "state": "available"})))
    });
    let played = play(request(), None, world);
    assert!(played.result.is_ok(), "{:?}", played.result);
    assert_eq!((played.count("ironic.provide"), played.count("fleet.prove")), (0, 1));
}

/// Proves: C4
#[test]
fn a_failed_clean_is_started_again_while_attempts_are_left() {
    let played = play(request(), None, failing_cleans(1));
    assert!(played.result.is_ok(), "{:?}", played.result);
    assert_eq!(played.count("ironic.provide"), 2);
    let played = play(request(), None, failing_cleans(9));
    assert_eq!((played.failure().code, played.count("ironic.provide")), (FailureCode::CleanFailed, 3));
    assert!(played.failure().message.contains("nvme3"));
}

/// A world whose clean ends in this state, or never.
fn clean_stays(state: &'static str) -> World {
    let cleaning = Cell::new(false);
    good_world(move |name, _, _| {
        cleaning.set(cleaning.get() || name == "ironic.provide");
        (name == "ironic.look" && cleaning.get()).then(|| Ok(look(state, "on")))
    })
}

/// Proves: C3, C5
#[test]
fn a_clean_is_looked_at_with_growing_pauses_up_to_its_deadline() {
    let played = play(request(), None, clean_stays("clean wait"));
    assert_eq!(played.failure().code, FailureCode::CleanTimeout);
    let waits: Vec<i64> =
        played.waits.iter().filter(|(k, _)| *k == WaitKind::Cleaning).map(|(_, w)| w.as_secs()).collect();
    assert_eq!(&waits[..5], [5, 10, 20, 40, 60]);
    let total: i64 = waits.iter().sum();
    assert!((14_000..=14_400).contains(&total), "{total}");
}

/// Proves: C5
#[test]
fn another_state_during_a_clean_fails_at_once() {
    let played = play(request(), None, clean_stays("deploying"));
    assert_eq!(played.failure().code, FailureCode::NodeStateUnexpected);
    assert_eq!(played.count("ironic.provide"), 1);
}

/// Proves: C6, L5
#[test]
fn all_links_down_abort_the_clean() {
    let cleaning = Cell::new(false);
    let world = good_world(move |name, _, _| {
        cleaning.set(cleaning.get() || name == "ironic.provide");
        match name {
            "bmc.read_links" if cleaning.get() => Some(Ok(links(&["DOWN", "DOWN"]))),
            "ironic.look" if cleaning.get() => Some(Ok(look("clean wait", "on"))),
            _ => None,
        }
    });
    let played = play(request(), None, world);
    let failure = played.failure();
    assert_eq!((failure.code, failure.phase), (FailureCode::LinkAllDown, Phase::Cleaning));
    assert_eq!(played.count("ironic.abort"), 1);
}

/// Proves: B4
#[test]
fn a_forced_restart_waits_until_the_bmc_is_back_before_settings() {
    let mut asked = request();
    asked.params.force_bmc_restart = true;
    let played = play(asked, None, good_world(|_, _, _| None));
    let names = played.names();
    let place = |name: &str| names.iter().rposition(|n| *n == name).unwrap();
    assert!(place("bmc.reset") < place("bmc.back") && place("bmc.back") < place("bmc.configure"));
    assert!(played.count("bmc.back") > 1);
    assert_eq!(all_well().count("bmc.reset"), 0);
}

/// Proves: T2
#[test]
fn a_proof_that_never_fits_is_rejected_after_a_bounded_time() {
    let world = good_world(|name, _, _| {
        (name == "fleet.prove")
            .then(|| Ok(json!({"accepted": false, "projected": "99999999-2222-4333-8444-555555555555"})))
    });
    let played = play(request(), None, world);
    let failure = played.failure();
    assert_eq!(failure.code, FailureCode::EnrollmentCompletionProofRejected);
    assert!(failure.message.contains("99999999"), "{}", failure.message);
    assert!((290..=301).contains(&played.waited(WaitKind::Proof).as_secs()));
}

/// Proves: G9
#[test]
fn a_cancel_ends_the_run_at_its_next_await() {
    let world = good_world(|name, _, _| (name == "ironic.look").then(|| Ok(look("verifying", "off"))));
    let played = play(request(), Some(SignedDuration::from_secs(60)), world);
    assert_eq!(played.result, Err(ActivityError::Cancelled));
    assert!(played.took.as_secs() <= 61);
}

/// Proves: G9
///
/// At every tenth of a second of an enrollment that waits everywhere: nothing is asked behind the cancel but what undoes, and no
/// failure is made of it.
#[test]
fn a_cancel_at_any_time_ends_the_run_as_cancelled_and_asks_for_nothing_more_but_what_undoes() {
    let world = || {
        let locked_until = |since: SignedDuration, s: i64| since < SignedDuration::from_secs(s);
        good_world(move |name, _, since| match name {
            "ironic.manage" if locked_until(since, 90) => Some(Ok(locked())),
            "ironic.provide" if locked_until(since, 200) => Some(Ok(locked())),
            "bmc.read_links" if locked_until(since, 120) => Some(Ok(links(&["DOWN", "DOWN"]))),
            _ => None,
        })
    };
    let whole = play(request(), None, world());
    assert!(whole.result.is_ok(), "{:?}", whole.result);
    let mut undone = 0;
    // Behind the last thing that is asked no await is left.
    for tenth in 0..whole.took.as_millis() as i64 / 100 - 3 {
        let at = SignedDuration::from_millis(tenth * 100);
        let (second, cancelled) = (at.as_secs(), play(request(), Some(at), world()));
        assert_eq!(cancelled.result, Err(ActivityError::Cancelled), "at {second} s");
        assert!(cancelled.took.as_secs() <= second + 1, "at {second} s: {:?}", cancelled.took);
        let before = whole.asked.iter().zip(&cancelled.asked).take_while(|(one, other)| one == other).count();
        let behind: Vec<&str> = cancelled.names()[before..].to_vec();
        assert!(behind.iter().all(|name| *name == "ironic.put_back"), "at {second} s: {behind:?}");
        undone += behind.len();
    }
    assert!(undone > 0);
}

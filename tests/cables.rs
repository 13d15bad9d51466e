//! The cable doctor over the whole program: what inspections heard is kept, runs name the cause at other hosts, `muster cables`
//! says the moves, and after them the hosts pass.

#[allow(dead_code, reason = "each test binary uses its part of the support")]
#[path = "support/binary.rs"]
mod binary;

use std::path::Path;

use binary::{Ended, LabProcess};
use jiff::{SignedDuration, Timestamp};
use muster::domain::cable_doctor::{HeardCable, HeardHost, Port, diagnose};
use muster::domain::device::Device;
use muster::domain::link::CableEnd;
use muster::domain::lldp::Neighbour;
use muster::domain::wiring::{Cable, Interface};
use muster::inventory::survey::{RECENT, survey};
use muster::store::{ObjectKind, Store};
use serde_json::{Value, json};

fn heard(id: u64, host: &str, switch: &str, port: &str, at: Timestamp) -> HeardHost {
    let neighbour =
        Neighbour { system_name: Some("leaf-1".into()), port_id: Some("swp1".into()), ..Default::default() };
    let cable = HeardCable {
        netbox_id: id * 10,
        interface: "eth0".into(),
        mac: format!("52:54:00:10:01:{id:02x}").parse().ok(),
        recorded: Some(CableEnd { switch: switch.into(), port: port.into(), label: None, color: None }),
        seen: true,
        carrier: Some(true),
        neighbours: vec![neighbour],
    };
    HeardHost {
        netbox_id: id,
        host: host.into(),
        site: "osl1".into(),
        rack: Some("B07".into()),
        place: None,
        inspected_at: at,
        cables: vec![cable],
    }
}

/// Proves: V12
#[tokio::test]
async fn what_was_heard_is_kept_over_restarts_and_older_or_equal_news_change_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let now = Timestamp::now();
    let first = heard(1, "a", "leaf-1", "swp1", now);
    {
        let store = Store::open(folder.path()).unwrap();
        assert!(store.put_heard(first.clone(), true).await.unwrap());
        assert!(!store.put_heard(first.clone(), true).await.unwrap(), "the same again");
    }
    let store = Store::open(folder.path()).unwrap();
    assert_eq!(store.heard(1).unwrap(), Some(first.clone()));
    let older = heard(1, "a", "leaf-9", "swp9", now - SignedDuration::from_hours(1));
    assert!(!store.put_heard(older, true).await.unwrap());
    let newer = heard(1, "a", "leaf-2", "swp2", now + SignedDuration::from_secs(1));
    assert!(store.put_heard(newer.clone(), true).await.unwrap());
    // Ironic does not tell when it was: reading it again makes it no younger.
    let untimed = HeardHost { inspected_at: now + SignedDuration::from_hours(9), ..newer.clone() };
    assert!(!store.put_heard(untimed, false).await.unwrap());
    assert_eq!(store.heard(1).unwrap(), Some(newer));
    // A plan keeps nothing.
    let plan = store.rehearsing();
    assert!(!plan.put_heard(heard(2, "b", "leaf-1", "swp1", now), true).await.unwrap());
    plan.forget_heard(1).await.unwrap();
    assert_eq!((store.heard(2).unwrap(), store.heard(1).unwrap().is_some()), (None, true));
    store.forget_heard(1).await.unwrap();
    assert_eq!(store.heard(1).unwrap(), None);
}

fn device(id: u64, name: &str, site: &str, class: &str) -> Device {
    let value = json!({
        "netbox_id": id, "name": name, "site": site, "rack": "B07", "position": id as f64, "status": "staged",
        "role": "gpu", "device_class": class, "manufacturer": "X", "model": "Y", "last_updated": null,
        "read_at": Timestamp::now(),
    });
    serde_json::from_value(value).unwrap()
}

fn interface(id: u64, device: u64, name: &str, far: Value) -> Interface {
    let value = json!({
        "netbox_id": id, "device": device, "name": name, "kind": "100gbase-x-qsfp28", "enabled": true,
        "mgmt_only": false, "cable": 7, "far": far,
    });
    serde_json::from_value(value).unwrap()
}

/// Proves: V12
#[tokio::test]
async fn a_survey_has_the_names_and_cables_of_now_and_only_recent_inspections() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(folder.path()).unwrap();
    let now = Timestamp::now();
    // `a` is recorded elsewhere now than at its inspection, and has another name; `c` is of another site by now.
    for (id, host) in [(1, "a-old"), (2, "b"), (3, "c")] {
        store
            .put_heard(heard(id, host, "leaf-1", "swp9", now - SignedDuration::from_secs(id as i64)), true)
            .await
            .unwrap();
    }
    let long_ago = now - RECENT - SignedDuration::from_mins(1);
    store.put_heard(heard(4, "d", "leaf-1", "swp4", long_ago), true).await.unwrap();
    let devices = [
        device(1, "a", "osl1", "COMPUTE_GPU"),
        device(2, "b", "osl1", "COMPUTE_GPU"),
        device(3, "c", "ams2", "COMPUTE_GPU"),
        device(9, "leaf-1", "osl1", "SWITCH"),
    ];
    store.put_devices(devices.to_vec()).await.unwrap();
    let end = |id: u64, device: u64, name: &str| json!([{"netbox_id": id, "kind": "dcim.interface", "device": device, "name": name}]);
    let objects = vec![
        interface(10, 1, "eth0", end(91, 9, "swp1")),
        interface(20, 2, "eth0", json!([])),
        interface(91, 9, "swp1", end(10, 1, "eth0")),
        interface(92, 9, "swp2", json!([])),
    ];
    store.put_objects(objects, now).await.unwrap();
    let cable: Cable =
        serde_json::from_value(json!({"netbox_id": 7, "label": "W-7", "color": "2196f3", "a": [], "b": []})).unwrap();
    store.put_objects(vec![cable], now).await.unwrap();

    let found = survey(&store, "osl1", now, None).unwrap();
    let names: Vec<&str> = found.hosts.iter().map(|host| host.host.as_str()).collect();
    assert_eq!(names, ["a", "b"]);
    let recorded = found.hosts[0].cables[0].recorded.as_ref().unwrap();
    assert_eq!(
        (recorded.switch.as_str(), recorded.port.as_str(), recorded.label.as_deref()),
        ("leaf-1", "swp1", Some("W-7"))
    );
    assert_eq!(found.hosts[0].place.as_deref(), Some("B07 U1"));
    assert_eq!(found.hosts[1].cables[0].recorded, None, "NetBox has no cable there now");
    let owner =
        |port: &str| found.ports.get(&Port::new("leaf-1", port)).map(|o| o.as_ref().map(|spot| spot.host.clone()));
    assert_eq!((owner("swp1"), owner("swp2"), owner("swp3")), (Some(Some("a".into())), Some(None), None));
    let findings = diagnose(&found);
    assert_eq!(findings.right.len(), 1, "{findings:#?}");

    // What NetBox has no more is forgotten.
    store.remove_devices(vec![1]).await.unwrap();
    assert_eq!(store.heard(1).unwrap(), None);
    assert_eq!(store.object_count(ObjectKind::Cable).unwrap().0, 1);
    // The host that was read just now replaces what the store has of it.
    let live = heard(2, "b", "leaf-1", "swp1", now);
    let found = survey(&store, "osl1", now, Some(live.clone())).unwrap();
    assert_eq!(found.hosts, [live]);
}

/// What a run says.
fn failure(ended: &Ended, host: &str) -> (String, String) {
    assert_eq!(ended.code(), Some(1), "{ended}");
    let failure = &ended.finished(host)["failure"];
    assert_eq!((&failure["code"], &failure["owner"]), (&json!("CABLES_WRONG"), &json!("ONSITE")), "{failure:#}");
    (failure["message"].as_str().unwrap().to_owned(), failure["action"].as_str().unwrap().to_owned())
}

/// Proves: V8, V10, V11, V12
#[test]
fn miswired_hosts_are_told_whose_cable_they_have_and_pass_when_the_moves_are_made() {
    let scenario = Path::new(env!("CARGO_MANIFEST_DIR")).join("scenarios/cables.toml");
    let lab = LabProcess::start(60, Some(&scenario));

    // Nobody has heard 39 yet: NetBox says whose place it is.
    let (message, action) = failure(&lab.run(&["enroll", "gpu-b07-37", "--json"]), "gpu-b07-37");
    assert!(message.starts_with("the cable in eth0 is gpu-b07-39's"), "{message}");
    assert!(action.contains("from leaf-b07-1 swp15 to leaf-b07-1 swp14"), "{action}");

    let second = lab.run(&["enroll", "gpu-b07-39", "--json"]);
    let (message, action) = failure(&second, "gpu-b07-39");
    let cause = "eth0 and eth0 of gpu-b07-37 are swapped: the cable in eth0 is gpu-b07-37's";
    assert!(message.starts_with(cause), "{message}");
    assert!(message.contains("eth0 sees 'leaf-b07-1 swp14"), "{message}");
    for part in ["exchange the two cables at leaf-b07-1", "swp14", "swp15", "gpu-b07-37-eth0", "U39"] {
        assert!(action.contains(part), "{part}: {action}");
    }
    let run = second.finished("gpu-b07-39")["run"].as_str().unwrap().to_owned();
    let story = lab.run(&["runs", "export", &run]);
    assert!(story.stdout.contains("are swapped") && story.stdout.contains("exchange the two cables"), "{story}");

    let (message, action) = failure(&lab.run(&["enroll", "gpu-b07-35", "--json"]), "gpu-b07-35");
    assert!(message.starts_with("eth0 and eth1 are swapped: "), "{message}");
    assert!(action.contains("swap the two cables at the host"), "{action}");
    let right = lab.run(&["enroll", "gpu-b07-41", "--json"]);
    assert_eq!(right.code(), Some(0), "{right}");

    let found = lab.run(&["cables", "osl1", "--rack", "B07", "--json"]);
    assert_eq!(found.code(), Some(1), "{found}");
    let events = found.events();
    let summary = events.last().unwrap();
    let counts = |key: &str| summary[key].as_u64().unwrap();
    assert_eq!((counts("right"), counts("wrong"), counts("unknown"), counts("moves")), (4, 4, 0, 4), "{found}");
    assert_eq!((&summary["stale"], &summary["not_inspected"]), (&Value::Null, &json!([])), "{found}");
    let kinds: Vec<&Value> = events.iter().filter(|e| e["event"] == "diagnosis").map(|e| &e["kind"]).collect();
    assert_eq!(kinds, [&json!("swapped"), &json!("swapped_across")], "{found}");

    let text = lab.run(&["cables", "osl1"]);
    for part in [
        "osl1: 4 cables right, 4 wrong, 0 unknown",
        "eth0 and eth1 of gpu-b07-35 are swapped",
        "eth0 of gpu-b07-37 and eth0 of gpu-b07-39 are swapped",
        "gpu-b07-37 in B07 U37, gpu-b07-39 in B07 U39",
    ] {
        assert!(text.stdout.contains(part), "{part}: {text}");
    }
    for (arguments, part) in [(&["cables", "nowhere"][..], "nowhere"), (&["cables", "osl1", "--rack", "Z9"], "Z9")] {
        let refused = lab.run(arguments);
        assert_eq!(refused.code(), Some(2), "{refused}");
        assert!(refused.stderr.contains(part), "{refused}");
    }

    // A person makes the moves.
    let moves: Vec<Value> = events.iter().filter_map(|e| e["moves"].as_array().cloned()).flatten().collect();
    for step in &moves {
        let to = &step["to"];
        lab.fault(json!({
            "kind": "cable_moved", "device": step["host"], "interface": step["interface"],
            "to": {"switch": to["switch"], "port": to["port"]},
        }));
    }
    for host in ["gpu-b07-37", "gpu-b07-39", "gpu-b07-35"] {
        let again = lab.run(&["enroll", host, "--json"]);
        assert_eq!(again.code(), Some(0), "{again}");
        assert_eq!(again.finished(host)["status"], "succeeded");
    }
    let mended = lab.run(&["cables", "osl1", "--json"]);
    assert_eq!(mended.code(), Some(0), "{mended}");
    assert_eq!(mended.events().last().unwrap()["right"], json!(8), "{mended}");
    let nodes = lab.world()["nodes"].as_array().unwrap().clone();
    assert!(nodes.len() == 4 && nodes.iter().all(|node| node["state"] == "available"), "{nodes:#?}");
}

//! The real binary on the lab: a host enrolled, a host miscabled, a rerun that writes nothing, and every bad input.

#[allow(dead_code, reason = "each test binary uses its part of the support")]
#[path = "support/binary.rs"]
mod binary;

use binary::{Ended, LabProcess, muster};
use serde_json::Value;

const HEALTHY: &str = "gpu-b07-29";
const SWAPPED: &str = "gpu-b07-37";

/// Lab seconds in a real one: fast, and slow enough that short waits are still seen.
const SPEED: u32 = 60;

fn no_panic(ended: &Ended) {
    for word in ["panicked", "RUST_BACKTRACE", "stack backtrace"] {
        assert!(!ended.stderr.contains(word) && !ended.stdout.contains(word), "{ended}");
    }
}

/// Proves: G1, G4, G16, T1
#[test]
fn a_staged_host_ends_available_and_its_rerun_writes_nothing() {
    let lab = LabProcess::start(SPEED, None);
    let first = lab.run(&["enroll", HEALTHY, "--json"]);
    assert_eq!(first.code(), Some(0), "{first}");
    let finished = first.finished(HEALTHY);
    assert_eq!((&finished["status"], &finished["failure"]), (&Value::from("succeeded"), &Value::Null), "{first}");

    let writes = lab.writes();
    let place =
        |what: &str| writes.iter().position(|w| w.contains(what)).unwrap_or_else(|| panic!("no {what}: {writes:#?}"));
    // The order of the phases, seen from outside.
    let order = [
        place("dhcp "),
        place("bmc "),
        place("ironic POST /v1/nodes"),
        place("POST /v1/portgroups"),
        place("POST /v1/ports"),
    ];
    assert!(order.is_sorted(), "{writes:#?}");
    assert_eq!(writes.iter().filter(|w| w.ends_with("ironic POST /v1/ports")).count(), 2, "{writes:#?}");
    assert_eq!(
        writes.iter().filter(|w| w.contains("/states/provision")).count(),
        3,
        "manage, inspect, provide: {writes:#?}"
    );

    lab.reset_ledger();
    let second = lab.run(&["enroll", HEALTHY, "--json"]);
    assert_eq!(second.code(), Some(0), "{second}");
    assert_eq!(second.finished(HEALTHY)["status"], "succeeded");
    assert!(lab.ledger().len() > 5, "the rerun reads");
    assert!(lab.writes().is_empty(), "a rerun of a converged host wrote: {:#?}", lab.writes());

    let listed = lab.run(&["runs", "list", "--json"]).events();
    assert_eq!(listed.len(), 2);
    assert!(listed.iter().all(|run| run["host"] == HEALTHY && run["status"] == "succeeded"), "{listed:#?}");
    let inventory = lab.run(&["inventory", "list", "--json"]).events();
    let host = inventory.iter().find(|d| d["host"] == HEALTHY).unwrap();
    assert_eq!((&host["ironic_state"], &host["status"]), (&Value::from("available"), &Value::from("active")));
    // What a person at the rack asks of it: which cable goes where.
    let shown = lab.run(&["inventory", "show", HEALTHY, "--json"]).events();
    let interfaces = shown[0]["interfaces"].as_array().unwrap();
    let eth0 = interfaces.iter().find(|interface| interface["name"] == "eth0").unwrap();
    let far = &eth0["cable"]["far"][0];
    assert!(far["device"].is_string() && far["interface"].is_string(), "{eth0}");
    assert!(eth0["macs"][0].is_string());
    let text = lab.run(&["inventory", "show", HEALTHY]).stdout;
    let row = text.lines().find(|line| line.trim_start().starts_with("eth0")).unwrap_or_else(|| panic!("{text}"));
    for part in [&eth0["macs"][0], &eth0["cable"]["label"], &far["device"], &far["interface"]] {
        assert!(row.contains(part.as_str().unwrap()), "{part}: {row}");
    }

    let refused = inventory.iter().find(|d| d["host"] == "gpu-b07-35").unwrap();
    assert_eq!(refused["refusal"]["code"], "device_not_placed");
}

/// Proves: V8, V10, V12
#[test]
fn swapped_cables_are_said_to_be_that_with_both_ends() {
    let lab = LabProcess::start(SPEED, None);
    let ended = lab.run(&["enroll", SWAPPED, "--json"]);
    assert_eq!(ended.code(), Some(1), "{ended}");
    let failure = &ended.finished(SWAPPED)["failure"];
    assert_eq!(
        (&failure["code"], &failure["owner"]),
        (&Value::from("CABLES_WRONG"), &Value::from("ONSITE")),
        "{failure:#}"
    );
    let message = failure["message"].as_str().unwrap();
    for part in ["eth0", "eth1", "swapped", "leaf-b07-1", "leaf-b07-2", "swp14"] {
        assert!(message.contains(part), "{part}: {message}");
    }
    assert!(failure["action"].as_str().unwrap().contains("swap"), "{failure:#}");
    assert!(!lab.writes().iter().any(|w| w.contains("provide")), "a miscabled host is not cleaned");
}

/// Proves: S1, R2
#[test]
fn refusals_name_what_to_mend_and_exit_with_2() {
    let lab = LabProcess::start(SPEED, None);
    for (host, part) in [("gpu-b07-35", "position"), ("no-such-host", "no-such-host"), ("gpu-b06-33", "failed")] {
        let ended = lab.run(&["enroll", host]);
        assert_eq!(ended.code(), Some(2), "{ended}");
        assert!(ended.stderr.contains(part), "{part}: {ended}");
        no_panic(&ended);
    }
    assert!(lab.writes().is_empty(), "{:#?}", lab.writes());
    let deployed = lab.run(&["enroll", "gpu-b06-41"]);
    assert_eq!(deployed.code(), Some(2), "{deployed}");
    assert!(deployed.stderr.contains("--yes"), "{deployed}");
}

/// Proves: K1
#[test]
fn a_missing_or_wrong_configuration_is_one_sentence_and_exit_2() {
    let folder = tempfile::tempdir().unwrap();
    let missing = folder.path().join("none.toml");
    let ended = binary::Running::start(muster(&["--config", missing.to_str().unwrap(), "enroll", HEALTHY])).end();
    assert_eq!(ended.code(), Some(2), "{ended}");
    assert!(ended.stderr.contains("none.toml"), "{ended}");
    no_panic(&ended);

    let wrong = folder.path().join("wrong.toml");
    std::fs::write(&wrong, "[netbox]\nurl = \"https://netbox.example.com\"\ntokn = \"env:X\"\n[sitez.osl1]\n").unwrap();
    let ended = binary::Running::start(muster(&["--config", wrong.to_str().unwrap(), "config", "check"])).end();
    assert_eq!(ended.code(), Some(2), "{ended}");
    for part in ["wrong.toml:3", "tokn", "token", "sitez", "sites"] {
        assert!(ended.stderr.contains(part), "{part}: {ended}");
    }
    no_panic(&ended);
    assert_eq!(binary::Running::start(muster(&["enroll"])).end().code(), Some(2));
}

/// Rewrites a file of the lab's folder.
fn mend(lab: &LabProcess, change: impl Fn(String) -> String) {
    let text = std::fs::read_to_string(&lab.config).unwrap();
    let changed = change(text.clone());
    assert_ne!(text, changed, "the configuration was not changed");
    std::fs::write(&lab.config, changed).unwrap();
}

#[test]
fn an_unreachable_netbox_is_named_with_its_address() {
    let lab = LabProcess::start(SPEED, None);
    let netbox = lab.ready["netbox"].as_str().unwrap().trim_end_matches('/').to_owned();
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    mend(&lab, |text| text.replace(&netbox, &format!("http://{free}")));
    let ended = lab.run(&["enroll", HEALTHY]);
    assert!(matches!(ended.code(), Some(1 | 2)), "{ended}");
    assert!(ended.stderr.contains(&free.to_string()) && ended.stderr.contains("refused"), "{ended}");
    no_panic(&ended);
}

#[test]
fn a_refused_token_says_so_and_who_mends_it() {
    let lab = LabProcess::start(SPEED, None);
    std::fs::write(lab.folder.path().join("bad-token"), "nbt_nobody.nothing").unwrap();
    {
        use std::os::unix::fs::PermissionsExt;
        let private = std::fs::Permissions::from_mode(0o600);
        std::fs::set_permissions(lab.folder.path().join("bad-token"), private).unwrap();
    }
    mend(&lab, |text| {
        let line = text.lines().find(|line| line.trim_start().starts_with("token")).unwrap();
        text.replacen(line, "token = \"file:bad-token\"", 1)
    });
    let ended = lab.run(&["enroll", HEALTHY]);
    assert!(matches!(ended.code(), Some(1 | 2)), "{ended}");
    assert!(ended.stderr.contains("token"), "{ended}");
    assert!(!ended.stderr.contains("nothing"), "the token itself is not shown: {ended}");
    no_panic(&ended);
}

/// Proves: D4
#[test]
fn a_wrong_host_key_stops_before_anything_is_sent() {
    let lab = LabProcess::start(SPEED, None);
    // Another key than the one that the host shows, under the same name.
    let vault = lab.folder.path().join("vault.toml");
    let text = std::fs::read_to_string(&vault).unwrap();
    let pinned = text.split("ssh-ed25519 ").nth(1).unwrap().split([' ', '"', '\n', '\\']).next().unwrap().to_owned();
    std::fs::write(
        &vault,
        text.replace(&pinned, "AAAAC3NzaC1lZDI1NTE5AAAAIAABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhscHR4f"),
    )
    .unwrap();
    let ended = lab.run(&["enroll", HEALTHY, "--json"]);
    assert_eq!(ended.code(), Some(1), "{ended}");
    let failure = &ended.finished(HEALTHY)["failure"];
    assert_eq!(failure["code"], "DHCP_HOST_KEY_CHANGED", "{failure:#}");
    assert_eq!(failure["owner"], "NETOPS");
    assert!(!lab.writes().iter().any(|w| w.starts_with("dhcp")), "{:#?}", lab.writes());
}

//! The never-do list, held against the book of a history. Written from the document, not from the code that keeps to it.

use std::time::Duration;

use muster::domain::provision::ProvisionState;
use muster::lab::inside::{IRONIC_URL, NETBOX_URL};
use serde_json::{Value, json};

use crate::history::{History, SHAPES};
use crate::inside::{Glimpse, Sent};
use crate::live::Lived;

/// Longer than all budgets of a run together.
const NEVER_LONGER: Duration = Duration::from_secs(24 * 3600);

/// Looks through what was lived, and says what breaks it.
type Rule = fn(&History, &Lived, &mut Vec<String>);

/// Changes a book; `false` where the history has nothing to change.
type Forgery = fn(&mut Lived) -> bool;

/// Which rules a history breaks, each with the request that does.
pub fn broken(history: &History, lived: &Lived) -> Vec<String> {
    let mut broken = Vec::new();
    let rules: [(&str, Rule); 11] = [
        ("E17: only Ironic and NetBox are asked", only_known_systems),
        ("E7: nothing is written on a node that was read as Nova's, or was not read", never_owned),
        ("E6, E11: each write goes from its states only", from_its_states),
        ("verbs, power and paths that enrollment has no business with", only_known_writes),
        ("E14: the root-device hint is the pin of the OS disk", root_device),
        ("I3: one port boots", one_port_boots),
        ("I6, I7: ports get a missing link and nothing else", only_missing_links),
        ("B10: Ironic never logs in as the monitoring user", never_the_monitoring_user),
        ("E10: maintenance comes back where the manage failed, and only there", maintenance_window),
        ("E15: a locked attempt ends at once, and the next comes later", locks),
        ("the end", the_end),
    ];
    for (name, rule) in rules {
        let before = broken.len();
        rule(history, lived, &mut broken);
        broken[before..].iter_mut().for_each(|line| *line = format!("{name}: {line}"));
    }
    broken
}

fn writes(lived: &Lived) -> impl Iterator<Item = &Sent> {
    lived.sent.iter().filter(|sent| sent.is_write())
}

/// Writes about a node that is there.
fn on_a_node(lived: &Lived) -> impl Iterator<Item = &Sent> {
    writes(lived).filter(|sent| sent.words() != "POST /v1/nodes")
}

fn shown(sent: &Sent) -> String {
    format!(
        "{} at {:.1} s in {}, read {:?}, is {:?}",
        sent.words(),
        sent.at.0.as_secs_f64(),
        sent.activity,
        sent.read,
        sent.truth
    )
}

fn is_deployment(state: &ProvisionState) -> bool {
    let word = state.as_str();
    ["active", "deploying", "wait call-back", "deploy hold", "deploy failed", "error", "deleting", "deleted", "rebuild"]
        .contains(&word)
        || word.contains("rescu")
        || word.contains("servic")
        || word.contains("adopt")
}

fn is_novas(seen: &Glimpse) -> bool {
    seen.instance || is_deployment(&seen.state)
}

fn only_known_systems(_: &History, lived: &Lived, broken: &mut Vec<String>) {
    broken.extend(lived.origins.iter().filter(|o| *o != NETBOX_URL && *o != IRONIC_URL).cloned());
}

/// A recovery that a cancel has dropped ends by itself, on what its own attempt has read.
fn is_carried_on(lived: &Lived, sent: &Sent) -> bool {
    lived.end == "cancelled" && (sent.words().contains("maintenance") || sent.words().ends_with(" manage"))
}

fn never_owned(_: &History, lived: &Lived, broken: &mut Vec<String>) {
    for sent in on_a_node(lived) {
        match &sent.read {
            None => broken.push(format!("not read at all: {}", shown(sent))),
            Some((attempt, _)) if *attempt != sent.attempt && !is_carried_on(lived, sent) => {
                broken.push(format!("not read in this attempt: {}", shown(sent)));
            }
            Some((_, seen)) if is_novas(seen) => broken.push(shown(sent)),
            Some(_) => {}
        }
        if sent.done && !sent.overtaken && sent.truth.as_ref().is_some_and(is_novas) {
            broken.push(format!("carried out on Nova's node: {}", shown(sent)));
        }
    }
}

fn from_its_states(_: &History, lived: &Lived, broken: &mut Vec<String>) {
    for sent in on_a_node(lived) {
        let Some((_, seen)) = &sent.read else { continue };
        let words = sent.words();
        let allowed: &[&str] = match words.as_str() {
            "PUT /v1/nodes/ID/states/provision manage" => &["enroll", "inspect failed", "clean failed"],
            "PUT /v1/nodes/ID/states/provision inspect"
            | "PUT /v1/nodes/ID/states/provision provide"
            | "PUT /v1/nodes/ID/states/raid" => &["manageable"],
            "PUT /v1/nodes/ID/states/provision abort" => &["inspect wait", "clean wait"],
            "PUT /v1/nodes/ID/states/power power on" => &["manageable", "available"],
            "DELETE /v1/nodes/ID/maintenance" => &["clean failed", "manageable", "cleaning", "clean wait"],
            "PUT /v1/nodes/ID/maintenance" => &["clean failed"],
            "POST /v1/ports" | "POST /v1/portgroups" => &["enroll"],
            "PATCH /v1/nodes/ID" if sent.query.contains("reset_interfaces") => &["manageable"],
            "PATCH /v1/nodes/ID" | "PATCH /v1/ports/ID" => &["enroll", "manageable"],
            trait_ if trait_.starts_with("PUT /v1/nodes/ID/traits/HW_ARCH_") => &["enroll", "manageable"],
            _ => &[],
        };
        if !allowed.contains(&seen.state.as_str()) {
            broken.push(shown(sent));
        }
    }
}

fn operations(sent: &Sent) -> impl Iterator<Item = (&str, &str, &Value)> {
    sent.body
        .as_array()
        .into_iter()
        .flatten()
        .map(|op| (op["op"].as_str().unwrap_or_default(), op["path"].as_str().unwrap_or_default(), &op["value"]))
}

fn only_known_writes(_: &History, lived: &Lived, broken: &mut Vec<String>) {
    for sent in writes(lived) {
        let words = sent.words();
        if words == "PATCH /v1/nodes/ID" {
            for (op, path, value) in operations(sent) {
                let known = ["/owner", "/lessee", "/raid_interface", "/properties/root_device"].contains(&path)
                    || path.starts_with("/driver_info/redfish_")
                    || path.starts_with("/driver_info/ipmi_")
                    || (path == "/driver" && value == "ipmi")
                    || (path.ends_with("_interface") && sent.query.contains("reset_interfaces"));
                if !known {
                    broken.push(format!("{op} {path}: {}", shown(sent)));
                }
            }
        }
        if words == "POST /v1/nodes" {
            let known = ["name", "uuid", "driver", "driver_info", "properties", "resource_class", "owner", "lessee"];
            let keys = sent.body.as_object().into_iter().flat_map(|body| body.keys());
            broken.extend(
                keys.filter(|key| !known.contains(&key.as_str()) && !key.ends_with("_interface"))
                    .map(|key| format!("'{key}' of a new node")),
            );
        }
    }
}

fn root_device(history: &History, lived: &Lived, broken: &mut Vec<String>) {
    let netbox = SHAPES[history.shape].1.contains("controller = \"software\"");
    for sent in writes(lived) {
        let software = netbox || sent.read.as_ref().is_some_and(|(_, seen)| seen.software_raid);
        for (op, path, value) in operations(sent) {
            let strips = op == "remove" || value.as_object().is_none_or(serde_json::Map::is_empty);
            if path.starts_with("/properties") && strips && !software {
                broken.push(shown(sent));
            }
        }
    }
}

fn one_port_boots(_: &History, lived: &Lived, broken: &mut Vec<String>) {
    for sent in writes(lived).filter(|sent| sent.words() == "POST /v1/ports" && sent.body["pxe_enabled"] != false) {
        if sent.done && !sent.overtaken && sent.truth.as_ref().is_some_and(|truth| truth.pxe > 0) {
            broken.push(shown(sent));
        }
    }
}

fn only_missing_links(_: &History, lived: &Lived, broken: &mut Vec<String>) {
    for sent in writes(lived) {
        let words = sent.words();
        if words == "PATCH /v1/ports/ID" {
            let alien = operations(sent).any(|(op, path, _)| op != "add" || path != "/local_link_connection");
            if alien {
                broken.push(shown(sent));
            }
        } else if words.contains("/portgroups/") || (words.contains("/ports/") && sent.method != "PATCH") {
            broken.push(shown(sent));
        }
    }
}

fn never_the_monitoring_user(_: &History, lived: &Lived, broken: &mut Vec<String>) {
    broken.extend(writes(lived).filter(|sent| sent.body.to_string().contains("ipmi_exporter")).map(shown));
}

/// The flag that a recovery took away: gone until a `manage` is taken, and put back where one is not.
fn maintenance_window(history: &History, lived: &Lived, broken: &mut Vec<String>) {
    // Set and cleared in a failed clean, and no manage taken since.
    let (mut owed, mut put_back_failed, mut manage_failed) = (false, false, false);
    let mut book = on_a_node(lived).peekable();
    while let Some(sent) = book.next() {
        let in_failed_clean = sent.read.as_ref().is_some_and(|(_, seen)| seen.state == ProvisionState::CleanFailed);
        match sent.words().as_str() {
            "DELETE /v1/nodes/ID/maintenance" if in_failed_clean => {
                let was_set = sent.truth.as_ref().is_some_and(|truth| truth.maintenance);
                (owed, put_back_failed, manage_failed) = (owed || (sent.done && was_set), false, false);
                let follows = book.peek().map(|next| next.words());
                let manages = follows.as_deref() == Some("PUT /v1/nodes/ID/states/provision manage");
                if sent.status.is_some_and(|status| status < 300) && !manages && lived.end != "cancelled" {
                    broken.push(format!("not followed by manage but by {follows:?}: {}", shown(sent)));
                }
            }
            "PUT /v1/nodes/ID/states/provision manage" if in_failed_clean => {
                if sent.done {
                    (owed, manage_failed) = (false, false);
                } else {
                    manage_failed = true;
                }
            }
            "PUT /v1/nodes/ID/maintenance" => {
                if !owed {
                    broken.push(format!("nothing was taken away: {}", shown(sent)));
                } else if !manage_failed && lived.end != "cancelled" {
                    broken.push(format!("no manage has failed: {}", shown(sent)));
                }
                put_back_failed = !sent.done;
                owed = owed && !sent.done;
            }
            _ => {}
        }
    }
    let failed_clean = lived
        .last
        .as_ref()
        .is_some_and(|last| last.state == ProvisionState::CleanFailed && !last.instance && !last.maintenance);
    // Where others had their hands in it, or the answers to look and flag were lost, nobody can do better.
    if owed && failed_clean && !put_back_failed && !lived.meddled && history.mishaps.is_empty() {
        broken.push("the flag was taken away, no manage was taken, and it is not back".to_owned());
    }
}

/// A lock ends the attempt: nothing more is written in it but a flag that goes back, and the next attempt waits.
fn locks(_: &History, lived: &Lived, broken: &mut Vec<String>) {
    let sent: Vec<&Sent> = writes(lived).collect();
    for (n, locked) in sent.iter().enumerate().filter(|(_, sent)| sent.is_locked()) {
        for next in &sent[n + 1..] {
            let back = next.words() == "PUT /v1/nodes/ID/maintenance";
            if next.attempt == locked.attempt {
                if !back {
                    broken.push(format!("goes on behind a lock: {}", shown(next)));
                }
                continue;
            }
            let waited = next.at - locked.at;
            // The last look of a wait is made when patience ends, however soon that is.
            let series = sent[..=n].iter().rev().take_while(|sent| sent.words() == locked.words());
            let since = series.filter(|sent| sent.is_locked()).last().map_or(locked.at, |first| first.at);
            let at_the_end = next.at - since >= Duration::from_secs(880);
            // 10 s, less the jitter between hosts. What undoes something after a cancel waits for nobody.
            if waited < Duration::from_millis(7900) && !back && !at_the_end && lived.end != "cancelled" {
                broken.push(format!("knocks again after {waited:.1?}: {}", shown(next)));
            }
            break;
        }
    }
}

fn the_end(history: &History, lived: &Lived, broken: &mut Vec<String>) {
    if lived.took > NEVER_LONGER {
        broken.push(format!("it took {:.0?}", lived.took));
    }
    if lived.end == "cancelled" && history.cancel.is_none() {
        broken.push("cancelled by nobody".to_owned());
    }
    if let Some(failure) = &lived.failure {
        // The guard is the last line: a step that relies on it has decided wrongly.
        if ["INTERNAL_ERROR", "JOURNAL_DIVERGED", "WRITE_FORBIDDEN"].contains(&failure.code.as_str()) {
            broken.push(format!("{failure:?}"));
        }
        // Where others move the node between two writes it has to, on what the answer to the first one tells.
        if failure.message.contains("was not asked for") && !lived.meddled {
            broken.push(format!("the guard had to step in: {}", failure.message));
        }
        if failure.action.len() < 8 {
            broken.push(format!("no action: {failure:?}"));
        }
    }
    let undisturbed = !lived.meddled && history.mishaps.is_empty() && history.cancel.is_none();
    let said: Vec<String> = writes(lived).map(Sent::words).collect();
    if let (true, Some(start)) = (undisturbed, &history.start) {
        let state = start.state.as_str();
        let satisfied = matches!(state, "active" | "available") || (state == "manageable" && start.instance);
        let deployed = start.instance || state == "active";
        let pinned_elsewhere = history.pinned == Some(false);
        if pinned_elsewhere {
            if lived.end != "NODE_UUID_MISMATCH" || !said.is_empty() {
                broken.push(format!("a node of another UUID: {} {said:?}", lived.end));
            }
        } else if satisfied {
            let allowed = |words: &String| !deployed && words.ends_with("/states/power power on");
            if !said.iter().all(allowed) {
                broken.push(format!("an enrolled node was written on: {said:?}"));
            }
        } else if start.instance {
            if lived.end != "NODE_OWNED_BY_NOVA" || !said.is_empty() {
                broken.push(format!("Nova's node: {} {said:?}", lived.end));
            }
        } else if is_deployment(&start.state)
            && start.state.is_stable()
            && (lived.end != "NODE_NEEDS_REVIEW" || !said.is_empty())
        {
            broken.push(format!("a node for a person to look at: {} {said:?}", lived.end));
        }
    }
    let fake = history.start.as_ref().is_some_and(|start| start.driver == Some("fake-hardware"));
    if undisturbed && lived.end.starts_with("enrolled") {
        match &lived.last {
            // Hardware that does nothing has no power that a machine could show.
            Some(last) if last.state == ProvisionState::Available && !last.instance && !lived.powered && !fake => {
                broken.push("enrolled, and not powered on".to_owned());
            }
            Some(last) if last.state == ProvisionState::Available || is_novas(last) => {}
            other => broken.push(format!("enrolled, and the node is {other:?}")),
        }
    }
}

/// Changes of a book that each break a rule.
pub const FORGERIES: [(&str, Forgery); 9] = [
    ("a request to somebody else", |lived| lived.origins.insert("http://nova.inside".to_owned())),
    ("a write on a node that was read as Nova's", |lived| {
        change(
            lived,
            |sent| sent.words() != "POST /v1/nodes",
            |sent| {
                if let Some((_, seen)) = &mut sent.read {
                    seen.instance = true;
                }
            },
        )
    }),
    ("a write on a node that was not read", |lived| {
        change(lived, |sent| sent.words() != "POST /v1/nodes", |sent| sent.read = None)
    }),
    ("a provide from 'available'", |lived| {
        change(
            lived,
            |sent| sent.words().ends_with(" provide"),
            |sent| {
                if let Some((_, seen)) = &mut sent.read {
                    seen.state = ProvisionState::Available;
                }
            },
        )
    }),
    ("a rebuild", |lived| {
        change(lived, |sent| sent.words().ends_with(" provide"), |sent| sent.body = json!({"target": "rebuild"}))
    }),
    ("an instance in a patch", |lived| {
        change(
            lived,
            |sent| sent.words() == "PATCH /v1/nodes/ID",
            |sent| {
                sent.body = json!([{"op": "add", "path": "/instance_uuid", "value": "x"}]);
            },
        )
    }),
    ("a hint that is removed", |lived| {
        change(
            lived,
            |sent| sent.words() == "PATCH /v1/nodes/ID",
            |sent| {
                sent.body = json!([{"op": "remove", "path": "/properties/root_device"}]);
            },
        )
    }),
    ("a second port for PXE", |lived| {
        change(
            lived,
            |sent| sent.words() == "POST /v1/ports" && sent.body["pxe_enabled"] == true,
            |sent| {
                if let Some(truth) = &mut sent.truth {
                    truth.pxe = 1;
                }
            },
        )
    }),
    ("a flag that nobody had taken away", |lived| {
        let forged = lived.sent.iter().find(|sent| sent.words().ends_with(" manage")).cloned();
        let Some(mut forged) = forged else { return false };
        (forged.path, forged.body) = (forged.path.replace("states/provision", "maintenance"), json!({"reason": "x"}));
        if let Some((_, seen)) = &mut forged.read {
            seen.state = ProvisionState::CleanFailed;
        }
        lived.sent.push(forged);
        true
    }),
];

fn change(lived: &mut Lived, which: impl Fn(&Sent) -> bool, how: impl Fn(&mut Sent)) -> bool {
    match lived.sent.iter_mut().find(|sent| sent.is_write() && which(sent)) {
        Some(sent) => {
            how(sent);
            true
        }
        None => false,
    }
}

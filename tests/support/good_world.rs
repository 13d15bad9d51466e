//! Answers of a world in which an enrollment goes well, activity by activity; a test says what goes otherwise.

#![allow(dead_code, reason = "each test binary uses a part of it")]

use std::cell::Cell;

use jiff::SignedDuration;
use muster::domain::failure::Failure;
use serde_json::{Value, json};

/// What a script answers to an activity: by name, input, and the time since the start.
pub type World = Box<dyn FnMut(&str, &Value, SignedDuration) -> Result<Value, Failure> + Send>;

pub const NODE: &str = "11111111-2222-4333-8444-555555555555";

pub fn done(note: &str) -> Value {
    json!({"step": "done", "changed": true, "note": note})
}

pub fn locked() -> Value {
    json!({"step": "locked", "holder": "conductor-2", "state": "enroll"})
}

pub fn look(state: &str, power: &str) -> Value {
    json!({"state": state, "power": power})
}

pub fn links(states: &[&str]) -> Value {
    let readings: Vec<Value> = states
        .iter()
        .enumerate()
        .map(|(n, state)| {
            json!({"interface": format!("eth{n}"), "mac": null, "state": state,
                   "cable": {"switch": format!("leaf-b07-{}", n + 1), "port": "swp14", "label": "W-0412"}})
        })
        .collect();
    json!({ "readings": readings })
}

pub fn verified(verdict: &str) -> Value {
    json!({"verification": {"checks": [{"kind": "lldp", "subject": "eth0", "expected": "leaf-b07-1 swp14",
        "observed": "leaf-b07-2 swp14", "verdict": verdict, "rule": "V8", "owner": "ONSITE",
        "action": "move the cable of eth0 to leaf-b07-1 swp14"}]}})
}

/// A fresh node that does all it is asked: the states follow the requests.
struct Node {
    state: Cell<&'static str>,
    power: Cell<&'static str>,
    inventory: Cell<bool>,
}

/// Answers of a world in which all goes well; `special` goes first.
pub fn good_world(
    mut special: impl FnMut(&str, &Value, SignedDuration) -> Option<Result<Value, Failure>> + Send + 'static,
) -> World {
    let node = Node { state: Cell::new("enroll"), power: Cell::new("off"), inventory: Cell::new(false) };
    Box::new(move |name, input, since| {
        if let Some(answer) = special(name, input, since) {
            return answer;
        }
        Ok(match name {
            "netbox.status_gate" => json!({"status": "staged"}),
            "netbox.platform_class" => {
                json!({"effective": "K", "computed": "K", "wrote_netbox": true, "wrote_store": true})
            }
            "netbox.activate" | "netbox.add_tag" | "bmc.reset" => json!({"changed": true, "note": "staged → active"}),
            "dhcp.configure" => json!({"changed": true, "file": "gpu-b07-37.conf", "sha256": "ab"}),
            "bmc.prepare" => json!({"vendor": "Supermicro", "model": "X", "password_rotated": false,
                                    "needs_reset": input["force_restart"]}),
            "bmc.back" => json!({"back": since > SignedDuration::from_secs(120), "away": true, "note": "no answer"}),
            "bmc.configure" => json!({"changed": ["hostname"], "satisfied": [], "skipped": []}),
            "bmc.prove_ipmi" => json!({"proven": []}),
            "bmc.read_links" => links(&["UP", "DOWN"]),
            "ironic.prelude" => match node.state.get() {
                "available" => json!({"prelude": "satisfied", "node": NODE, "state": "available"}),
                "clean failed" | "inspect failed" => {
                    node.state.set("manageable");
                    json!({"prelude": "wait", "node": NODE, "state": "clean failed", "why": "manage was asked for"})
                }
                state => json!({"prelude": "ready", "node": NODE, "state": state, "created": true}),
            },
            "ironic.manage" => {
                node.state.set("manageable");
                done("manage")
            }
            "ironic.inspect" => {
                node.state.set("inspect wait");
                node.power.set("on");
                done("inspect")
            }
            "ironic.provide" => {
                node.state.set("clean wait");
                node.power.set("on");
                done("provide")
            }
            "ironic.power_on" => {
                node.power.set("on");
                done("power on")
            }
            "ironic.put_back" => json!({"changed": false, "note": "nothing to put back"}),
            "ironic.networking" | "ironic.raid_target" | "ironic.abort" | "ironic.switch_driver" => done("done"),
            "ironic.look" => {
                let now = look(node.state.get(), node.power.get());
                // Each look sees the state once; by the next one the transition is through.
                match node.state.get() {
                    "inspect wait" => {
                        node.state.set("manageable");
                        node.inventory.set(true);
                    }
                    "clean wait" => {
                        node.state.set("available");
                        node.power.set("off");
                    }
                    _ => {}
                }
                now
            }
            "ironic.verify" if node.inventory.get() => verified("pass"),
            "ironic.verify" => json!({"verification": null}),
            "fleet.prove" => json!({"accepted": true}),
            other => panic!("the script knows no '{other}'"),
        })
    })
}

/// The same world with a node that is in `manageable` already.
pub fn managed(mut world: World) -> World {
    Box::new(move |name, input, since| match name {
        "ironic.prelude" => Ok(json!({"prelude": "ready", "node": NODE, "state": "manageable", "created": false})),
        _ => world(name, input, since),
    })
}

//! Lives through a history: makes the world as it begins, lets the workflow run in it, and keeps what was seen.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use muster::domain::failure::Failure;
use muster::domain::provision::ProvisionState;
use muster::lab::faults::Fault;
use muster::lab::ironic::{Node, Port};
use muster::lab::machine::Spell;
use muster::lab::scenario::Scenario;
use muster::workflows::cx::ActivityError;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::history::{History, Meddle, Mishap, Ports, SHAPES, Start};
use crate::inside::{Fate, Glimpse, Ground, Scene, Sent, Wire, unwatched};

const HOST: &str = "gpu-1";
const OTHER: &str = "gpu-2";

/// One ground for each shape.
pub fn grounds() -> Vec<Arc<Ground>> {
    SHAPES.iter().map(|(_, settings)| Arc::new(Ground::of(scenario(settings), HOST))).collect()
}

fn scenario(settings: &str) -> Scenario {
    let host = |name: &str, unit: u32| {
        format!(
            "{{ name = \"{name}\", site = \"t1\", rack = \"R1\", unit = {unit}, type = \"small\", role = \"gpu\", \
             node = \"manageable\" }}"
        )
    };
    let template = include_str!("../ironic_steps/scenario.toml");
    // What a shape says of a key goes before what all say.
    let keys: Vec<&str> = settings.lines().filter_map(|line| line.trim().split(" = ").next()).collect();
    let mut in_settings = false;
    let usual: Vec<&str> = template
        .lines()
        .filter(|line| {
            if line.starts_with('[') {
                in_settings = *line == "[context.ironic_settings]";
            }
            !(in_settings && line.split(" = ").next().is_some_and(|key| keys.contains(&key)))
        })
        .collect();
    let text = format!(
        "name = \"histories\"\nhosts = [{}, {}]\n{}",
        host(HOST, 40),
        host(OTHER, 38),
        usual.join("\n").replace("#IRONIC#", "project = \"enrol\"").replace("#SETTINGS#", settings)
    );
    Scenario::parse(&text).unwrap_or_else(|e| panic!("{e}\n{text}"))
}

/// What is left of a history that was lived through.
pub struct Lived {
    pub end: String,
    pub failure: Option<Failure>,
    pub sent: Vec<Sent>,
    pub origins: BTreeSet<String>,
    /// The node at the end, and whether its host is on.
    pub last: Option<Glimpse>,
    pub powered: bool,
    pub took: Duration,
    pub meddled: bool,
}

impl Sent {
    pub fn is_locked(&self) -> bool {
        self.status == Some(409) && self.said.contains("is locked by host")
    }
}

/// Lives through a history.
pub async fn live(grounds: &[Arc<Ground>], history: &History) -> Lived {
    let scene = grounds[history.shape].scene();
    scene.renew_uuid();
    prepare(&scene, history);
    let mut request = scene.request();
    request.params.run_inspection = history.run_inspection;
    request.params.force_inspection = history.force_inspection;
    request.params.max_attempts = history.attempts;
    request.params.node_uuid = history.pinned.map(|the_nodes_own| {
        let own = scene.node().filter(|_| the_nodes_own).map(|node| node.uuid);
        own.unwrap_or_else(|| Uuid::from_u128(0x0f0f_0f0f_0000_4000_8000_0000_0000_0001)).to_string().parse().unwrap()
    });
    request.options.switch_to_ipmi_after_inspection = history.switch_driver;
    let budgets = &mut request.options.budgets;
    // Fewer looks of the same kind: they cost time and show nothing new.
    (budgets.poll_first, budgets.poll_max) = (Duration::from_secs(10), Duration::from_secs(300));
    budgets.link_poll = Duration::from_secs(30);
    {
        let mut book = scene.wire.book();
        book.cancel_at = history.cancel;
        let (meddles, mishaps) = (history.meddles.clone(), history.mishaps.clone());
        if !meddles.is_empty() || !mishaps.is_empty() {
            book.meddler = Some(Box::new(move |n, wire| {
                meddles.iter().filter(|(at, _)| *at == n).for_each(|(_, what)| meddle(wire, what));
                mishaps.iter().find(|(at, _)| *at == n).map_or(Fate::Served, |(_, mishap)| fate(*mishap))
            }));
        }
    }
    let ran = scene.run(request, unwatched()).await;
    let end = match &ran.result {
        Ok(result) if result.already_enrolled => "enrolled already".to_owned(),
        Ok(_) => "enrolled".to_owned(),
        Err(ActivityError::Cancelled) => "cancelled".to_owned(),
        Err(ActivityError::Failed(failure)) => failure.code.as_str().to_owned(),
    };
    let mut book = scene.wire.book();
    Lived {
        end,
        failure: ran.failure().cloned(),
        sent: std::mem::take(&mut book.sent),
        origins: std::mem::take(&mut book.origins),
        last: scene.wire.truth(),
        powered: scene.world().machine(HOST).unwrap().power.on,
        took: ran.took.0,
        meddled: !history.meddles.is_empty(),
    }
}

fn prepare(scene: &Scene, history: &History) {
    let world = scene.world();
    let fault = |fault: Value| world.add_fault(serde_json::from_value::<Fault>(fault).unwrap());
    let times = |kind: &str, times: u32| {
        if times > 0 {
            fault(json!({"kind": kind, "device": HOST, "times": times}));
        }
    };
    times("inspection_fails", history.inspection_fails);
    times("inspection_silent", history.inspection_silent);
    times("clean_fails", history.clean_fails);
    if let Some(seconds) = history.dark {
        for _ in 0..2 {
            fault(json!({"kind": "dark_link", "device": HOST, "for_s": seconds}));
        }
    }
    if history.cables_swapped {
        fault(json!({"kind": "swapped_cables", "device": HOST, "interfaces": ["eth0", "eth1"]}));
    }
    world.with_machine(HOST, |machine, _| {
        machine.nics.iter_mut().for_each(|nic| nic.unreported = history.links_unreported);
        machine.power.on = history.start.as_ref().is_some_and(|start| start.powered);
    });
    match &history.start {
        Some(start) => begin(scene, start),
        None => remove(scene),
    }
}

fn remove(scene: &Scene) {
    let mut state = world_of(&scene.wire).lock();
    let Some(uuid) = state.ironic.node_named(HOST).map(|node| node.uuid) else { return };
    state.ironic.nodes.remove(&uuid);
    state.ironic.ports.retain(|_, port| port.node != uuid);
    state.ironic.portgroups.retain(|_, group| group.node != uuid);
}

fn begin(scene: &Scene, start: &Start) {
    let world = scene.world();
    let at = world.clock().stamp(world.now());
    scene.edit(|node| {
        node.put_into(start.state.clone(), at);
        if start.instance {
            node.set("instance_uuid", "22222222-0000-4000-8000-000000000001");
        }
        if start.maintenance {
            node.set("maintenance", true);
            node.set("maintenance_reason", "set before");
        }
        if let Some(driver) = start.driver {
            node.become_of(driver);
        }
        if start.hint {
            node.fields["properties"]["root_device"] = json!({"serial": "OTHER"});
        }
        if start.software_raid {
            node.set("target_raid_config", json!({"logical_disks": [{"size_gb": "MAX", "controller": "software"}]}));
        }
        if !start.inventory {
            node.forget_inventory();
        }
    });
    if start.wrong_credential {
        world.add_fault(serde_json::from_value(json!({"kind": "bmc_password_unknown", "device": HOST})).unwrap());
    }
    match start.ports {
        Ports::AsWanted => {}
        Ports::None => ports(&scene.wire, |_| false, |_| {}),
        Ports::WithoutLinks => ports(&scene.wire, |_| true, unlink),
        Ports::AnotherBoots => {
            ports(&scene.wire, |_| false, |_| {});
            another_boots(&scene.wire);
        }
        Ports::Stolen => steal(&scene.wire),
    }
}

fn world_of(wire: &Wire) -> &muster::lab::world::World {
    &wire.inside.world
}

/// Keeps some of the host's ports, and changes those.
fn ports(wire: &Wire, keep: impl Fn(&Port) -> bool, change: impl Fn(&mut Port)) {
    let mut state = world_of(wire).lock();
    let Some(uuid) = state.ironic.node_named(HOST).map(|node| node.uuid) else { return };
    state.ironic.ports.retain(|_, port| port.node != uuid || keep(port));
    state.ironic.ports.values_mut().filter(|port| port.node == uuid).for_each(change);
}

fn unlink(port: &mut Port) {
    port.fields.insert("local_link_connection".to_owned(), json!({}));
}

/// The first port of the host goes to the other node, as after a move of its card.
fn steal(wire: &Wire) {
    let world = world_of(wire);
    let mac = world.machine(HOST).unwrap().nics[0].mac.to_string();
    let mut state = world.lock();
    let Some(other) = state.ironic.node_named(OTHER).map(|node| node.uuid) else { return };
    match state.ironic.ports.values_mut().find(|port| port.address == mac) {
        Some(port) => (port.node, port.portgroup) = (other, None),
        None => {
            let port = port(&state, other, &mac, true);
            state.ironic.ports.insert(port.uuid, port);
        }
    }
}

/// A NIC that NetBox does not have boots the node.
fn another_boots(wire: &Wire) {
    let mut state = world_of(wire).lock();
    let Some(node) = state.ironic.node_named(HOST).map(|node| node.uuid) else { return };
    if state.ironic.ports.values().all(|port| port.address != "02:99:00:00:00:01") {
        let port = port(&state, node, "02:99:00:00:00:01", true);
        state.ironic.ports.insert(port.uuid, port);
    }
}

fn port(state: &muster::lab::world::State, node: Uuid, address: &str, pxe: bool) -> Port {
    let fields = json!({"extra": {}, "local_link_connection": {}, "pxe_enabled": pxe, "name": null});
    Port {
        uuid: Uuid::new_v4(),
        node,
        address: address.to_owned(),
        portgroup: None,
        fields: fields.as_object().unwrap().clone(),
        created_at: state.stamp(),
        updated_at: None,
        id: 1_000_000,
    }
}

fn meddle(wire: &Wire, what: &Meddle) {
    let world = world_of(wire);
    let at = world.clock().stamp(world.now());
    let put = |state: &ProvisionState| wire.edit(|node: &mut Node| node.put_into(state.clone(), at));
    let instance = || json!("33333333-0000-4000-8000-000000000001");
    match what {
        Meddle::State(state) => put(state),
        Meddle::Instance(true) => wire.edit(|node| node.set("instance_uuid", instance())),
        Meddle::Instance(false) => wire.edit(|node| node.set("instance_uuid", Value::Null)),
        Meddle::Deployed => {
            put(&ProvisionState::Active);
            wire.edit(|node| node.set("instance_uuid", instance()));
        }
        Meddle::Maintenance(on) => wire.edit(|node| {
            node.set("maintenance", *on);
            node.set("maintenance_reason", if *on { json!("by hand") } else { Value::Null });
        }),
        Meddle::Lock(seconds) => {
            world.with_machine(HOST, |machine, now| {
                let lasts = Duration::from_secs(*seconds);
                machine.troubles.locks.push(Spell { lasts, until: Some(now + lasts) });
            });
        }
        Meddle::Delete => {
            let mut state = world.lock();
            if let Some(uuid) = state.ironic.node_named(HOST).map(|node| node.uuid) {
                state.ironic.nodes.remove(&uuid);
                state.ironic.ports.retain(|_, port| port.node != uuid);
                state.ironic.portgroups.retain(|_, group| group.node != uuid);
            }
        }
        Meddle::Steal => steal(wire),
        Meddle::AnotherBoots => another_boots(wire),
        Meddle::Unlink => ports(wire, |_| true, unlink),
        Meddle::Driver(driver) => wire.edit(|node| node.become_of(driver)),
    }
}

fn fate(mishap: Mishap) -> Fate {
    let said = |text: &str| json!({"error_message": json!({"faultstring": text, "faultcode": "Client"}).to_string()});
    match mishap {
        Mishap::Lost => Fate::Lost,
        Mishap::AnswerLost => Fate::AnswerLost,
        Mishap::Busy => Fate::Refused(503, said("the service is busy")),
        Mishap::NoConductor => {
            Fate::Refused(503, said("Requested action cannot be performed due to lack of free conductor workers."))
        }
        Mishap::Conflict => Fate::Refused(409, said("Something else is in the way.")),
    }
}

impl Lived {
    /// What was asked of Ironic, request by request.
    pub fn story(&self) -> String {
        let mut story = String::new();
        for sent in &self.sent {
            let glimpse = |seen: &Option<Glimpse>| {
                seen.as_ref().map_or("no node".to_owned(), |seen| {
                    let owned = if seen.instance { ", owned" } else { "" };
                    let kept = if seen.maintenance { ", maintenance" } else { "" };
                    format!("'{}'{owned}{kept}", seen.state)
                })
            };
            let answered = sent.status.map_or("no answer".to_owned(), |status| status.to_string());
            story.push_str(&format!(
                "{:>9.1} s {:<18} {:<52} {answered:<9} is {}, read {}{}\n",
                sent.at.0.as_secs_f64(),
                sent.activity,
                sent.words(),
                glimpse(&sent.truth),
                glimpse(&sent.read.clone().map(|(_, seen)| seen)),
                if sent.overtaken { ", overtaken" } else { "" },
            ));
        }
        story.push_str(&format!("ended {} after {:.0?}", self.end, self.took));
        if let Some(failure) = &self.failure {
            story.push_str(&format!(": {} / {}", failure.message, failure.action));
        }
        without_uuids(&story)
    }
}

/// UUIDs are others each time.
fn without_uuids(text: &str) -> String {
    let mut out = text.to_owned();
    for start in (0..text.len().saturating_sub(35)).rev() {
        if text.get(start..start + 36).is_some_and(|part| part.parse::<Uuid>().is_ok() && part.contains('-')) {
            out.replace_range(start..start + 36, "ID");
        }
    }
    out
}

//! Portgroup and ports of a node, planned whole before the first write (I1–I7).

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::common::{Desk, Did, Stop, changed, step, unchanged};
use crate::activities::env::ActivityCx;
use crate::activities::facts;
use crate::clients::ironic::{ConflictKind, IronicError, LinkConnection, NewPort, NewPortgroup, Node, Port, Portgroup};
use crate::domain::failure::{Failure, FailureCode};
use crate::domain::host::{BondSettings, CablePeer, HostFacts, HostInterface};
use crate::domain::mac::Mac;
use crate::domain::provision::ProvisionState;
use crate::workflows::defs::{NodeTarget, Step};

/// Ironic wants a MAC beside a port's name and has no use for it (I4).
const SWITCH_ID: &str = "00:00:00:00:00:00";

/// A node in `enroll` gets its portgroup and ports; on hosts whose cables are not verified, missing links are recorded in
/// `manageable` too.
pub async fn networking(cx: &ActivityCx, input: NodeTarget) -> Result<Step, Failure> {
    let desk = Desk::of(cx, &input)?;
    step(run(&desk, &input).await)
}

async fn run(desk: &Desk, input: &NodeTarget) -> Did {
    let facts = facts::read(&desk.cx, &input.target, desk.phase).await?;
    let node = desk.unowned(input.node).await?;
    let only_repair = match node.state {
        ProvisionState::Enroll => false,
        ProvisionState::Manageable if desk.settings(&facts)?.skip_cable_verification => true,
        _ => return unchanged(format!("the ports of a node in '{}' are left as they are", node.state)),
    };
    let wanted = wanted(desk, &facts)?;
    let world = World::read(desk, &node, &wanted).await?;
    let plan = plan(desk, &facts, &node, &wanted, &world, only_repair)?;
    carry_out(desk, &node, plan).await
}

/// What NetBox wants in Ironic.
struct Wanted {
    group: Option<BondSettings>,
    /// Frontend interfaces with their MACs, in order. The first is the provisioning NIC.
    ports: Vec<(HostInterface, Mac)>,
}

/// The wanted ports, or the gap in NetBox that stands in their way; all of it before any request to Ironic (I1, I5).
fn wanted(desk: &Desk, facts: &HostFacts) -> Result<Wanted, Failure> {
    let settings = desk.settings(facts)?;
    let host = &desk.host;
    let missing = facts.frontend_missing();
    if !missing.is_empty() {
        return Err(desk.invalid("interfaces", &missing.join(", "), "interfaces that the device has in NetBox"));
    }
    if let Some((a, b)) = facts.duplicate_mac() {
        let mac = a.mac.map_or(String::new(), |mac| mac.to_string());
        return Err(desk.failure(
            FailureCode::MacConflict,
            format!("'{}' and '{}' of '{host}' both have MAC '{mac}' in NetBox", a.name, b.name),
            format!("correct the MAC addresses of '{}' and '{}' of '{host}' in NetBox, then retry", a.name, b.name),
        ));
    }
    let frontend = facts.frontend();
    let Some(first) = frontend.first() else {
        return Err(desk.invalid("interface_type", "", "a word that frontend interfaces have as their description"));
    };
    if first.mac.is_none() {
        return Err(desk.failure(
            FailureCode::NetboxDataMissing,
            format!("the provisioning NIC '{}' of '{host}' has no mac_address in NetBox", first.name),
            format!("set the mac_address of '{}' of '{host}' in NetBox, then retry", first.name),
        ));
    }
    let ports: Vec<(HostInterface, Mac)> = frontend.iter().filter_map(|i| Some(((*i).clone(), i.mac?))).collect();
    if !settings.skip_cable_verification {
        let uncabled: Vec<String> =
            ports.iter().filter(|(i, _)| i.peer.is_none()).map(|(i, _)| format!("'{}'", i.name)).collect();
        if !uncabled.is_empty() {
            let names = uncabled.join(", ");
            return Err(desk.failure(
                FailureCode::InterfaceUncabled,
                format!("{names} of '{host}' {} no cable in NetBox", if uncabled.len() == 1 { "has" } else { "have" }),
                format!(
                    "record the cable of {names} of '{host}' in NetBox, or set skip_cable_verification for this host"
                ),
            ));
        }
    }
    Ok(Wanted { group: settings.bond.clone(), ports })
}

/// What Ironic has: the node's own objects, and whoever else holds one of the wanted addresses.
struct World {
    ports: Vec<Port>,
    groups: Vec<Portgroup>,
    /// By address: what holds it on another node, in words, and that node's name.
    foreign: BTreeMap<Mac, Foreign>,
}

struct Foreign {
    what: String,
    owner: String,
}

impl World {
    async fn read(desk: &Desk, node: &Node, wanted: &Wanted) -> Result<Self, Failure> {
        let failed = |e, what: &str| desk.failed(e, &format!("looking up {what} for '{}'", desk.host));
        let ports = desk.ironic.ports_of(node.uuid).await.map_err(|e| failed(e, "ports"))?;
        let groups = desk.ironic.portgroups_of(node.uuid).await.map_err(|e| failed(e, "portgroups"))?;
        let mut foreign = BTreeMap::new();
        for (n, (_, mac)) in wanted.ports.iter().enumerate() {
            // An address is unique among ports: one that is on this node is on no other.
            if !ports.iter().any(|port| port.mac == Some(*mac)) {
                let found = desk.ironic.ports_by_address(*mac).await.map_err(|e| failed(e, "a port"))?;
                if let Some(port) = found.iter().find(|port| port.node != node.uuid) {
                    let owner = desk.name_of(port.node).await;
                    foreign.insert(*mac, Foreign { what: format!("port {}", port.uuid), owner });
                }
            }
            // The portgroup takes the first interface's address.
            if n == 0 && wanted.group.is_some() && groups.is_empty() {
                let found = desk.ironic.portgroups_by_address(*mac).await.map_err(|e| failed(e, "a portgroup"))?;
                if let Some(group) = found.iter().find(|group| group.node != node.uuid) {
                    let owner = desk.name_of(group.node).await;
                    foreign.insert(*mac, Foreign { what: format!("portgroup {}", group.uuid), owner });
                }
            }
        }
        Ok(World { ports, groups, foreign })
    }
}

impl Desk {
    /// `'gpu-b09-12' (B09 U12)`: another node by name, with its place where the fleet store knows it.
    async fn name_of(&self, node: crate::domain::ids::NodeUuid) -> String {
        let name = match self.ironic.node(&node.to_string()).await {
            Ok(Some(Node { name: Some(name), .. })) => name,
            // Not named, or not visible to these credentials: its UUID is all there is.
            _ => return format!("node '{node}'"),
        };
        match self.cx.env.store.device(&name) {
            Ok(Some(device)) => {
                let rack = device.rack.unwrap_or_else(|| format!("site {}", device.site));
                let unit = device.position.map_or(String::new(), |u| format!(" U{u}"));
                format!("'{name}' ({rack}{unit})")
            }
            _ => format!("'{name}'"),
        }
    }
}

impl Desk {
    /// What a refused port means. A MAC that somebody took since the look-up is said with both owners (E15).
    async fn port_refused(&self, error: IronicError, node: &Node, interface: &str, mac: Mac, doing: &str) -> Stop {
        if !matches!(&error, IronicError::Conflict { kind: ConflictKind::Mac(_), .. }) {
            return self.stop(error, node, doing);
        }
        let found = self.ironic.ports_by_address(mac).await.unwrap_or_default();
        let Some(port) = found.iter().find(|port| port.node != node.uuid) else {
            return self.stop(error, node, doing);
        };
        let owner = self.name_of(port.node).await;
        self.failure(
            FailureCode::MacConflict,
            format!(
                "MAC '{mac}' of '{interface}' of '{}' was taken by {owner} (port {}) just now",
                self.host, port.uuid
            ),
            format!(
                "find out which of the two has the card; delete the stale port {} in Ironic, then retry",
                port.uuid
            ),
        )
        .into()
    }
}

/// The writes that are left to do.
#[derive(Default)]
struct Plan {
    new_group: Option<NewPortgroup>,
    /// The portgroup that ports go into, where it exists already.
    group: Option<String>,
    new_ports: Vec<(String, NewPort)>,
    /// Interface, port UUID, link.
    links: Vec<(String, String, LinkConnection)>,
}

fn plan(
    desk: &Desk,
    facts: &HostFacts,
    node: &Node,
    wanted: &Wanted,
    world: &World,
    only_repair: bool,
) -> Result<Plan, Failure> {
    if let Some((interface, mac, foreign)) =
        wanted.ports.iter().find_map(|(i, mac)| Some((i, mac, world.foreign.get(mac)?)))
    {
        return Err(desk
            .failure(
                FailureCode::MacConflict,
                format!(
                    "MAC '{mac}' of '{}' of '{}' ({}) belongs to {} ({})",
                    interface.name,
                    desk.host,
                    facts.place(),
                    foreign.owner,
                    foreign.what
                ),
                format!(
                    "find out which of the two has the card now (card moved, tray swapped, or a stale node): correct NetBox, or \
                     delete the stale {} in Ironic; then retry",
                    foreign.what
                ),
            )
            .with_evidence(format!("ironic address {mac}"), format!("{} of {}", foreign.what, foreign.owner)));
    }
    let mut plan = Plan::default();
    let lag = wanted.group.as_ref().is_some_and(BondSettings::is_lag);
    if let Some(bond) = &wanted.group {
        let (_, first) = &wanted.ports[0];
        // Create-only: the one that the node has is used as it is (I6).
        let own = world.groups.iter().find(|g| g.mac == Some(*first)).or(world.groups.first());
        match own {
            Some(group) => plan.group = Some(group.uuid.clone()),
            None if only_repair => {}
            None => plan.new_group = Some(new_group(desk, node, bond, *first)),
        }
    }
    for (n, (interface, mac)) in wanted.ports.iter().enumerate() {
        let link = interface.peer.as_ref().map(|peer| connection(peer, lag));
        match world.ports.iter().find(|port| port.mac == Some(*mac)) {
            Some(port) => {
                if let Some(other) = port.portgroup.as_ref().filter(|g| Some(*g) != plan.group.as_ref()) {
                    return Err(desk.failure(
                        FailureCode::MacConflict,
                        format!(
                            "port {} of '{}' ('{mac}') belongs to portgroup {other}, which is not the one of this host's bond",
                            port.uuid, interface.name
                        ),
                        format!("delete port {} or portgroup {other} of '{}' in Ironic, then retry", port.uuid, desk.host),
                    ));
                }
                if let (None, Some(link)) = (&port.link, link) {
                    plan.links.push((interface.name.clone(), port.uuid.clone(), link));
                }
            }
            None if only_repair => {}
            None => {
                if n == 0 {
                    no_other_boots(desk, node, interface, &world.ports)?;
                }
                let port = NewPort { node: node.uuid, mac: *mac, pxe_enabled: n == 0, portgroup: None, link };
                plan.new_ports.push((interface.name.clone(), port));
            }
        }
    }
    Ok(plan)
}

/// The port for PXE is to be the only one (I3). One that is there already is never changed, so that it has to go first.
fn no_other_boots(desk: &Desk, node: &Node, first: &HostInterface, ports: &[Port]) -> Result<(), Failure> {
    let Some(port) = ports.iter().find(|port| port.pxe_enabled) else { return Ok(()) };
    let mac = port.mac.map_or("no MAC".to_owned(), |mac| mac.to_string());
    Err(desk
        .failure(
            FailureCode::PxePortConflict,
            format!(
                "node '{}' of '{}' boots over port {} ('{mac}'), the provisioning NIC in NetBox is '{}'",
                node.uuid, desk.host, port.uuid, first.name
            ),
            format!(
                "delete port {} in Ironic, or switch its pxe_enabled off, if '{}' is right; correct NetBox otherwise; then retry",
                port.uuid, first.name
            ),
        )
        .with_evidence(format!("ironic /v1/ports/{}", port.uuid), format!("pxe_enabled true, address {mac}")))
}

fn new_group(desk: &Desk, node: &Node, bond: &BondSettings, mac: Mac) -> NewPortgroup {
    let mut properties = Map::new();
    if let Some(miimon) = bond.miimon {
        properties.insert("miimon".to_owned(), json!(miimon.to_string()));
    }
    if let Some(policy) = &bond.xmit_hash_policy {
        properties.insert("xmit_hash_policy".to_owned(), json!(policy));
    }
    let name = format!("{}-{}", desk.host, bond.name.as_deref().unwrap_or("bond0"));
    NewPortgroup { node: node.uuid, name, mac, mode: bond.mode.clone(), properties }
}

/// The switch port of the cable, or its LAG where the bond is one on the switch's side too (I2, I4).
fn connection(peer: &CablePeer, lag: bool) -> LinkConnection {
    let port = peer.port_lag.as_ref().filter(|_| lag).unwrap_or(&peer.port);
    LinkConnection { switch_id: SWITCH_ID.to_owned(), port_id: port.clone(), switch_info: peer.switch.clone() }
}

async fn carry_out(desk: &Desk, node: &Node, plan: Plan) -> Did {
    let mut done = Vec::new();
    let mut group = plan.group;
    if let Some(new) = &plan.new_group {
        let doing = format!("creating portgroup '{}'", new.name);
        let made = desk.ironic.create_portgroup(new).await.map_err(|e| desk.stop(e, node, &doing))?;
        desk.wrote("portgroup", "none", format!("{} mode {}", new.name, new.mode.as_deref().unwrap_or("of Ironic")));
        done.push(format!("portgroup {}", new.name));
        group = Some(made.uuid);
    }
    for (interface, mut new) in plan.new_ports {
        new.portgroup = group.clone();
        let doing = format!("creating the port of '{interface}' ('{}')", new.mac);
        let made = match desk.ironic.create_port(&new).await {
            Ok(made) => made,
            Err(error) => return Err(desk.port_refused(error, node, &interface, new.mac, &doing).await),
        };
        if made.mac != Some(new.mac) || made.link != new.link || made.pxe_enabled != new.pxe_enabled {
            return Err(not_kept(desk, &interface, &made).into());
        }
        let pxe = if new.pxe_enabled { ", PXE" } else { "" };
        desk.wrote("port", "none", format!("{interface} {}{pxe}, {}", new.mac, shown(new.link.as_ref())));
        done.push(format!("port {interface}"));
    }
    for (interface, port, link) in plan.links {
        let doing = format!("recording the link of '{interface}'");
        let made = desk.ironic.record_link(&port, &link).await.map_err(|e| desk.stop(e, node, &doing))?;
        if made.link.as_ref() != Some(&link) {
            return Err(not_kept(desk, &interface, &made).into());
        }
        desk.wrote("port link", "not set", format!("{interface} {}", shown(Some(&link))));
        done.push(format!("link of {interface}"));
    }
    match done.is_empty() {
        true => unchanged("portgroup and ports are there"),
        false => changed(done.join(", ")),
    }
}

fn shown(link: Option<&LinkConnection>) -> String {
    link.map_or_else(|| "no link".to_owned(), |l| format!("{} {}", l.switch_info, l.port_id))
}

fn not_kept(desk: &Desk, interface: &str, port: &Port) -> Failure {
    desk.failure(
        FailureCode::IronicAnswerUnexpected,
        format!("port {} of '{interface}' reads back otherwise: {}", port.uuid, shown(port.link.as_ref())),
        "look at the port in Ironic, then retry",
    )
    .with_evidence(format!("ironic /v1/ports/{}", port.uuid), read(port))
}

fn read(port: &Port) -> String {
    let value: Value = json!({"address": port.mac, "pxe_enabled": port.pxe_enabled, "portgroup": port.portgroup});
    value.to_string()
}

//! Decides whether a request that changes something may leave: the never-do list of enrollment, held against what was last
//! read in the same attempt.
//!
//! What the types rule out (`change`, the enum below) is not here: there is no verb but four, no power change but one, no
//! patch of a name, a UUID or an instance, no deletion, and no change of a portgroup.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;

use super::model::{Node, Port};
use crate::domain::ids::NodeUuid;
use crate::domain::provision::ProvisionState;

/// How long a reading stands for the node. An attempt takes seconds; a laptop's lid makes hours of them, so that an older one
/// is made anew before anything is written on it.
const READING_HOLDS_S: i64 = 60;

macro_rules! writes {
    ($($(#[doc = $doc:literal])* $variant:ident = $words:literal, $why:literal, $($state:ident)|+;)*) => {
        /// Everything that muster may ever ask Ironic to do with a node that is there.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Write { $($(#[doc = $doc])* $variant,)* }

        impl Write {
            /// All of them. The documentation is made from this.
            pub const ALL: &'static [Write] = &[$(Write::$variant,)*];

            /// As messages name it.
            pub fn words(self) -> &'static str { match self { $(Write::$variant => $words,)* } }

            /// What it is for.
            pub fn why(self) -> &'static str { match self { $(Write::$variant => $why,)* } }

            /// Whether it may be asked of a node in this state that belongs to nobody. In every other state, those of the
            /// future included, it may not.
            pub fn goes_from(self, state: &ProvisionState) -> bool {
                match self { $(Write::$variant => matches!(state, $(ProvisionState::$state)|+),)* }
            }
        }
    };
}

writes! {
    Manage = "manage", "takes a node under management, recovers a failed inspection or clean (I8, E9, E10)",
        Enroll | InspectFailed | CleanFailed;
    Inspect = "inspect", "a fresh inspection (I12)", Manageable;
    Provide = "provide", "the clean that ends in 'available' (C1)", Manageable;
    Abort = "abort", "the end of a wait for a host without a link (L2, C6)", InspectWait | CleanWait;
    PowerOn = "power on", "at the end of either half (I14, C7, C8)", Manageable | Available;
    ClearMaintenance = "maintenance off", "before a recovery or a clean (E10, C1)",
        CleanFailed | Manageable | Cleaning | CleanWait;
    RestoreMaintenance = "maintenance on", "back, where the recovery itself failed (E10)", CleanFailed;
    Converge = "a change of the node", "owner, BMC access, RAID interface, root-device hint (E2, E13, E14)",
        Enroll | Manageable;
    SwitchDriver = "the switch to the driver ipmi", "after the inspection, where the site wants it (X2)", Manageable;
    AddTrait = "a trait", "the architecture, for the scheduler (E13)", Enroll | Manageable;
    SetRaidTarget = "the RAID target", "what the next clean builds (I9)", Manageable;
    CreatePort = "a port", "one per frontend NIC (I1)", Enroll;
    CreatePortgroup = "a portgroup", "one per bond (I1)", Enroll;
    RecordLink = "the link of a port", "where it has none (I7)", Enroll | Manageable;
}

/// Why a request did not leave. Nothing was sent.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// An instance lives on the node, or it is deployed.
    #[error("{asked} was not asked for: node '{node}' is '{state}'{}", instance.as_ref().map_or(String::new(), |i| format!(" and holds instance '{i}'")))]
    Owned { asked: &'static str, node: NodeUuid, state: ProvisionState, instance: Option<String> },
    #[error("{asked} was not asked for: node '{node}' is '{state}'")]
    State { asked: &'static str, node: NodeUuid, state: ProvisionState },
    #[error("{asked} was not asked for: node '{node}' was not read in this attempt")]
    NotRead { asked: &'static str, node: NodeUuid },
    #[error("port '{port}' was not read in this attempt")]
    PortNotRead { port: String },
    /// The ports of a node have to be known before one more is enabled for PXE.
    #[error("the ports of node '{node}' were not read in this attempt")]
    PortsNotRead { node: NodeUuid },
    #[error("port '{port}' of node '{node}' is enabled for PXE already")]
    SecondPxePort { node: NodeUuid, port: String },
    #[error("port '{port}' has a link already")]
    LinkThere { port: String },
    /// The shared account is for monitoring only.
    #[error("Ironic would log in to the BMC as '{username}', which is the shared monitoring user")]
    MonitoringUser { username: String },
    /// A node is created only where its name and its pinned UUID were looked for and not found.
    #[error("whether there is a node '{ident}' already was not looked for in this attempt")]
    NotLookedFor { ident: String },
}

/// What an attempt has read.
#[derive(Debug, Default)]
pub(super) struct Seen {
    nodes: BTreeMap<NodeUuid, Sight>,
    ports: BTreeMap<String, SeenPort>,
    /// Nodes whose ports were listed.
    listed: BTreeSet<NodeUuid>,
    /// Names and UUIDs that no node has.
    absent: BTreeSet<String>,
    monitoring: BTreeSet<String>,
}

#[derive(Debug)]
struct Sight {
    state: ProvisionState,
    instance: Option<String>,
    at: Timestamp,
}

#[derive(Debug)]
struct SeenPort {
    node: NodeUuid,
    pxe: bool,
    has_link: bool,
}

impl Seen {
    /// A node was answered to a question of `at`.
    pub fn node(&mut self, node: &Node, at: Timestamp) {
        let sight = Sight { state: node.state.clone(), instance: node.instance_uuid.clone(), at };
        self.absent.remove(&node.uuid.to_string());
        if let Some(name) = &node.name {
            self.absent.remove(name);
        }
        self.nodes.insert(node.uuid, sight);
    }

    /// There is no such node.
    pub fn no_node(&mut self, ident: &str) {
        if let Ok(uuid) = ident.parse() {
            self.nodes.remove(&uuid);
        }
        self.absent.insert(ident.to_owned());
    }

    pub fn port(&mut self, port: &Port) {
        let seen = SeenPort { node: port.node, pxe: port.pxe_enabled, has_link: port.link.is_some() };
        self.ports.insert(port.uuid.clone(), seen);
    }

    /// All ports of a node.
    pub fn ports_of(&mut self, node: NodeUuid, ports: &[Port]) {
        self.ports.retain(|_, seen| seen.node != node);
        ports.iter().for_each(|port| self.port(port));
        self.listed.insert(node);
    }

    /// An account that Ironic must never use.
    pub fn shun(&mut self, username: &str) {
        self.monitoring.insert(username.to_owned());
    }

    /// Whether the node was read, and so long ago that it has to be read again.
    pub fn is_old(&self, node: NodeUuid, now: Timestamp) -> bool {
        self.nodes.get(&node).is_some_and(|sight| {
            // A clock that was set back proves nothing either.
            !(0..=READING_HOLDS_S).contains(&now.duration_since(sight.at).as_secs())
        })
    }

    /// Whether a request about a node may leave.
    pub fn may(&self, write: Write, node: NodeUuid) -> Result<(), Refusal> {
        let asked = write.words();
        let Some(sight) = self.nodes.get(&node) else { return Err(Refusal::NotRead { asked, node }) };
        let (state, instance) = (sight.state.clone(), sight.instance.clone());
        if instance.is_some() || is_deployment(&state) {
            return Err(Refusal::Owned { asked, node, state, instance });
        }
        if write.goes_from(&state) { Ok(()) } else { Err(Refusal::State { asked, node, state }) }
    }

    /// Whether a port may be created. Never a second one for PXE (I3).
    pub fn may_create_port(&self, node: NodeUuid, pxe: bool) -> Result<(), Refusal> {
        self.may(Write::CreatePort, node)?;
        if !pxe {
            return Ok(());
        }
        if !self.listed.contains(&node) {
            return Err(Refusal::PortsNotRead { node });
        }
        match self.ports.iter().find(|(_, seen)| seen.node == node && seen.pxe) {
            Some((port, _)) => Err(Refusal::SecondPxePort { node, port: port.clone() }),
            None => Ok(()),
        }
    }

    /// Whether a port's link may be recorded: only where there is none. Says whose port it is.
    pub fn may_record_link(&self, port: &str) -> Result<NodeUuid, Refusal> {
        let seen = self.ports.get(port).ok_or_else(|| Refusal::PortNotRead { port: port.to_owned() })?;
        self.may(Write::RecordLink, seen.node)?;
        if seen.has_link { Err(Refusal::LinkThere { port: port.to_owned() }) } else { Ok(seen.node) }
    }

    /// The node of a port that was read.
    pub fn node_of_port(&self, port: &str) -> Option<NodeUuid> {
        self.ports.get(port).map(|seen| seen.node)
    }

    /// Whether a node may be created under this name and UUID: nothing that is there is ever pointed elsewhere (E5).
    pub fn may_create(&self, name: &str, uuid: Option<NodeUuid>) -> Result<(), Refusal> {
        let idents = [Some(name.to_owned()), uuid.map(|uuid| uuid.to_string())];
        match idents.into_iter().flatten().find(|ident| !self.absent.contains(ident)) {
            Some(ident) => Err(Refusal::NotLookedFor { ident }),
            None => Ok(()),
        }
    }

    /// Whether Ironic may be given this account.
    pub fn may_log_in_as(&self, username: &str) -> Result<(), Refusal> {
        match self.monitoring.contains(username) {
            true => Err(Refusal::MonitoringUser { username: username.to_owned() }),
            false => Ok(()),
        }
    }
}

/// States that a node is in for its instance, whatever `instance_uuid` says, and those in which a person has to look first.
fn is_deployment(state: &ProvisionState) -> bool {
    use ProvisionState::*;
    match state {
        Active | Deploying | WaitCallback | DeployHold | DeployFailed | Error | Deleting | Deleted | Rebuild
        | Rescue | Rescuing | RescueWait | RescueFailed | Unrescuing | UnrescueFailed | Servicing | ServiceWait
        | ServiceHold | ServiceFailed | Adopting | AdoptFailed => true,
        Enroll | Verifying | Manageable | Inspecting | InspectWait | InspectFailed | Cleaning | CleanWait
        | CleanHold | CleanFailed | Available | Other(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn uuid() -> NodeUuid {
        "0f0f0f0f-0000-4000-8000-000000000001".parse().unwrap()
    }

    fn node(state: &str, instance: Option<&str>) -> Node {
        let body = json!({"uuid": uuid(), "name": "gpu-1", "provision_state": state, "instance_uuid": instance});
        Node::read(&body, "GET").unwrap()
    }

    fn port(uuid: &str, pxe: bool, link: Value) -> Port {
        let body = json!({"uuid": uuid, "node_uuid": self::uuid(), "address": "02:00:00:00:00:01", "pxe_enabled": pxe,
            "local_link_connection": link});
        Port::read(&body, "GET").unwrap()
    }

    fn now() -> Timestamp {
        Timestamp::from_second(1_790_000_000).unwrap()
    }

    fn seen(state: &str, instance: Option<&str>) -> Seen {
        let mut seen = Seen::default();
        seen.node(&node(state, instance), now());
        seen
    }

    /// The whole table: what may be asked in which state, of a node that belongs to nobody.
    ///
    /// Proves: E6, E8, E9, E10, E11, I8, I9, X2, C1, C7, C8
    #[test]
    fn each_write_goes_from_its_states_and_from_no_other() {
        let expected = [
            (Write::Manage, "enroll, inspect failed, clean failed"),
            (Write::Inspect, "manageable"),
            (Write::Provide, "manageable"),
            (Write::Abort, "inspect wait, clean wait"),
            (Write::PowerOn, "manageable, available"),
            (Write::ClearMaintenance, "manageable, cleaning, clean wait, clean failed"),
            (Write::RestoreMaintenance, "clean failed"),
            (Write::Converge, "enroll, manageable"),
            (Write::SwitchDriver, "manageable"),
            (Write::AddTrait, "enroll, manageable"),
            (Write::SetRaidTarget, "manageable"),
            (Write::CreatePort, "enroll"),
            (Write::CreatePortgroup, "enroll"),
            (Write::RecordLink, "enroll, manageable"),
        ];
        assert_eq!(expected.len(), Write::ALL.len());
        for (write, states) in expected {
            let others = [ProvisionState::from("a state of the future")];
            let may: Vec<&str> = ProvisionState::KNOWN
                .iter()
                .chain(&others)
                .filter(|state| seen(state.as_str(), None).may(write, uuid()).is_ok())
                .map(ProvisionState::as_str)
                .collect();
            assert_eq!(may.join(", "), states, "{write:?}");
        }
    }

    /// Proves: E6, E7, C7, C8
    #[test]
    fn nothing_is_asked_of_a_node_with_an_instance_or_in_a_state_of_a_deployment() {
        for state in ProvisionState::KNOWN {
            let deployed = is_deployment(state);
            for instance in [None, Some("i-1")] {
                let seen = seen(state.as_str(), instance);
                for write in Write::ALL {
                    let outcome = seen.may(*write, uuid());
                    let owned = matches!(outcome, Err(Refusal::Owned { .. }));
                    assert_eq!(owned, deployed || instance.is_some(), "{write:?} in '{state}': {outcome:?}");
                }
            }
        }
        for state in ["active", "deploying", "deploy failed", "error", "rescue", "rebuild", "deleting"] {
            assert!(is_deployment(&state.into()), "{state}");
        }
        let words = seen("manageable", Some("i-1")).may(Write::PowerOn, uuid()).unwrap_err().to_string();
        assert!(words.contains("power on") && words.contains("'manageable'") && words.contains("'i-1'"), "{words}");
    }

    #[test]
    fn a_node_that_was_not_read_in_this_attempt_or_is_gone_is_left_alone() {
        let mut seen = Seen::default();
        assert!(matches!(seen.may(Write::Manage, uuid()), Err(Refusal::NotRead { .. })));
        seen.node(&node("enroll", None), now());
        assert_eq!(seen.may(Write::Manage, uuid()), Ok(()));
        seen.no_node(&uuid().to_string());
        assert!(matches!(seen.may(Write::Manage, uuid()), Err(Refusal::NotRead { .. })));
    }

    #[test]
    fn the_last_reading_counts() {
        let mut seen = seen("manageable", None);
        assert_eq!(seen.may(Write::Provide, uuid()), Ok(()));
        seen.node(&node("manageable", Some("i-1")), now());
        assert!(matches!(seen.may(Write::Provide, uuid()), Err(Refusal::Owned { .. })));
    }

    /// Case: C-47
    #[test]
    fn a_reading_of_before_a_suspend_is_old_and_so_is_one_of_a_clock_that_was_set_back() {
        let seen = seen("manageable", None);
        let after = |s: i64| now().checked_add(jiff::SignedDuration::from_secs(s)).unwrap();
        for (seconds, old) in [(0, false), (60, false), (61, true), (7200, true), (-5, true)] {
            assert_eq!(seen.is_old(uuid(), after(seconds)), old, "{seconds}");
        }
        assert!(!Seen::default().is_old(uuid(), now()), "not read is another thing");
    }

    /// Proves: I3
    #[test]
    fn a_port_for_pxe_is_the_only_one_of_its_node_and_wants_its_ports_known() {
        let mut seen = seen("enroll", None);
        assert_eq!(seen.may_create_port(uuid(), false), Ok(()));
        assert_eq!(seen.may_create_port(uuid(), true), Err(Refusal::PortsNotRead { node: uuid() }));
        seen.ports_of(uuid(), &[port("p1", false, json!({}))]);
        assert_eq!(seen.may_create_port(uuid(), true), Ok(()));
        seen.port(&port("p2", true, json!({})));
        assert_eq!(seen.may_create_port(uuid(), true), Err(Refusal::SecondPxePort { node: uuid(), port: "p2".into() }));
        assert_eq!(seen.may_create_port(uuid(), false), Ok(()));
        // Deleted meanwhile by somebody: a new list says so.
        seen.ports_of(uuid(), &[]);
        assert_eq!(seen.may_create_port(uuid(), true), Ok(()));
    }

    /// Proves: I6, I7
    #[test]
    fn a_link_is_recorded_only_where_a_port_of_ours_was_read_without_one() {
        let mut seen = seen("enroll", None);
        assert!(matches!(seen.may_record_link("p1"), Err(Refusal::PortNotRead { .. })));
        seen.port(&port("p1", true, json!({})));
        assert_eq!(seen.may_record_link("p1"), Ok(uuid()));
        seen.port(&port("p1", true, json!({"switch_id": "00:00:00:00:00:00", "port_id": "swp1"})));
        assert!(matches!(seen.may_record_link("p1"), Err(Refusal::LinkThere { .. })));
        let mut owned = self::seen("active", None);
        owned.port(&port("p1", true, json!({})));
        assert!(matches!(owned.may_record_link("p1"), Err(Refusal::Owned { .. })));
    }

    /// Proves: B10, E13
    #[test]
    fn the_monitoring_user_is_never_given_to_ironic() {
        let mut seen = Seen::default();
        seen.shun("ipmi_exporter");
        assert!(matches!(seen.may_log_in_as("ipmi_exporter"), Err(Refusal::MonitoringUser { .. })));
        assert_eq!(seen.may_log_in_as("root"), Ok(()));
    }

    /// Proves: E5
    #[test]
    fn a_node_is_created_only_where_its_name_and_its_uuid_were_looked_for_and_are_free() {
        let mut seen = Seen::default();
        let pinned = Some(uuid());
        assert!(seen.may_create("gpu-1", None).is_err());
        seen.no_node("gpu-1");
        assert_eq!(seen.may_create("gpu-1", None), Ok(()));
        assert_eq!(seen.may_create("gpu-1", pinned), Err(Refusal::NotLookedFor { ident: uuid().to_string() }));
        seen.no_node(&uuid().to_string());
        assert_eq!(seen.may_create("gpu-1", pinned), Ok(()));
        seen.node(&node("enroll", None), now());
        assert!(seen.may_create("gpu-1", pinned).is_err());
    }
}

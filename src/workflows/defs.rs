//! The activities of the workflows as types: name, input, output. Names and fields are journaled and kept forever; a new
//! field carries `#[serde(default)]`.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::cx::Activity;
use crate::domain::ids::NodeUuid;
use crate::domain::link::LinkReading;
use crate::domain::phase::Phase;
use crate::domain::provision::{Power, ProvisionState};
use crate::domain::verify::Verification;

macro_rules! activities {
    ($($(#[$doc:meta])* $def:ident = $name:literal, $in:ty => $out:ty;)*) => {
        $($(#[$doc])* pub struct $def;
        impl Activity for $def { const NAME: &'static str = $name; type In = $in; type Out = $out; })*

        /// The names of all activities. The registry has exactly these.
        pub const NAMES: &[&str] = &[$($name,)*];
    };
}

activities! {
    /// Does NetBox have the device in a status that may be enrolled? Read live (S2).
    StatusGate = "netbox.status_gate", Target => GateOut;
    /// Computes the platform class and records it where it is empty (P1–P10).
    PlatformClass = "netbox.platform_class", Target => PlatformClassOut;
    /// `staged` → `active`; any other status is left alone (A1).
    Activate = "netbox.activate", Target => Changed;
    /// Adds a tag and keeps all others (C7, B17, O11).
    AddTag = "netbox.add_tag", AddTagIn => Changed;
    /// Renders the device's DHCP entry and brings it to the site's DHCP host (D1–D7).
    ConfigureDhcp = "dhcp.configure", Target => DhcpOut;
    /// Finds the BMC's vendor and proves the per-host credential (B1, B3).
    PrepareBmc = "bmc.prepare", PrepareBmcIn => PrepareBmcOut;
    /// Asks the BMC for a cold reset (B4).
    ResetBmc = "bmc.reset", Target => Changed;
    /// One look whether the BMC is back: it went away first, then answers authenticated (B4).
    BmcBack = "bmc.back", BmcBackIn => BmcBackOut;
    /// Converges the BMC's settings: read, compare, write on difference, read back (B5, B16).
    ConfigureBmc = "bmc.configure", ConfigureBmcIn => ConfigureBmcOut;
    /// Compares firmware attributes and boot order with what is wanted, and stages the difference for the next boot (B7, B8,
    /// B12).
    StageBmc = "bmc.stage", StageBmcIn => StageBmcOut;
    /// One look at what was staged: bound to the next boot, carried in, applied (B8, B9).
    StagedBmc = "bmc.staged", StagedBmcIn => StagedBmcOut;
    /// Takes staged jobs back, so that a rerun can stage them again (B9).
    WithdrawBmc = "bmc.withdraw", StagedBmcIn => Changed;
    /// Restarts the host for what is staged; powers it on where it is off (B8).
    RestartHost = "bmc.restart_host", Target => Changed;
    /// Logs in over IPMI as those who will, and out again; changes nothing (X1).
    ProveIpmi = "bmc.prove_ipmi", ProveIpmiIn => ProveIpmiOut;
    /// One look at the host's frontend links, as the BMC reports them (L1–L4).
    ReadLinks = "bmc.read_links", PhaseTarget => LinksOut;
    /// The shared prelude: find or create the node, guard it, converge it (E1–E14).
    Prelude = "ironic.prelude", PreludeIn => PreludeOut;
    /// Portgroup and ports of a node in `enroll`; repair of missing links (I1–I7).
    Networking = "ironic.networking", NodeTarget => Step;
    /// Asks for `manage` where the node is in `enroll` (I8).
    Manage = "ironic.manage", NodeTarget => Step;
    /// One look at the node. Never changes anything.
    LookAtNode = "ironic.look", NodeTarget => NodeLook;
    /// Applies NetBox's RAID target where there is one (I9).
    RaidTarget = "ironic.raid_target", NodeTarget => Step;
    /// Judges the node's inventory against NetBox (V1–V9). Never fails for a mismatch: the verdicts are the output.
    Verify = "ironic.verify", NodeTarget => VerifyOut;
    /// Asks for `inspect` (I12).
    Inspect = "ironic.inspect", NodeTarget => Step;
    /// Asks for `abort` of an inspection or a clean (L2).
    Abort = "ironic.abort", NodeTarget => Step;
    /// After a cancel: puts back a maintenance flag that a recovery had taken away and not yet followed by `manage` (G9).
    PutBack = "ironic.put_back", PhaseTarget => Changed;
    /// Ensures that the node is powered on (I14, C7).
    PowerOn = "ironic.power_on", NodeTarget => Step;
    /// The driver becomes `ipmi` on an unowned node in `manageable` with a Redfish driver (X1, X2).
    SwitchDriver = "ironic.switch_driver", NodeTarget => Step;
    /// Clears maintenance and asks for `provide` (C1).
    Provide = "ironic.provide", NodeTarget => Step;
    /// Compare-and-set of the enrollment proof against the projected Ironic reference (T1).
    Prove = "fleet.prove", ProveIn => ProveOut;
}

/// Whom an activity acts for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Target {
    pub host: String,
    pub netbox_id: u64,
    pub site: String,
    /// Name of the Ironic instance that owns the device.
    pub ironic: String,
}

/// A target, and the phase that failures are recorded against.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PhaseTarget {
    #[serde(flatten)]
    pub target: Target,
    pub phase: Phase,
}

/// A target's node, and the phase that failures are recorded against.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeTarget {
    #[serde(flatten)]
    pub target: Target,
    pub node: NodeUuid,
    pub phase: Phase,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GateOut {
    pub status: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlatformClassOut {
    /// What stands in NetBox and in the fleet store afterwards.
    pub effective: String,
    pub computed: String,
    pub wrote_netbox: bool,
    pub wrote_store: bool,
    /// NetBox held another value, which was kept (P9).
    #[serde(default)]
    pub warning: Option<String>,
}

/// Whether something had to be changed, and what, in a few words.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Changed {
    pub changed: bool,
    pub note: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AddTagIn {
    #[serde(flatten)]
    pub target: Target,
    pub phase: Phase,
    /// Slug.
    pub tag: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DhcpOut {
    /// `false`: the digest there was the one here, and neither a transfer nor a restart was made (D6).
    pub changed: bool,
    pub file: String,
    pub sha256: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PrepareBmcIn {
    #[serde(flatten)]
    pub target: Target,
    pub force_restart: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PrepareBmcOut {
    pub vendor: String,
    pub model: String,
    pub password_rotated: bool,
    /// A cold reset is to be made before settings are converged (B4).
    pub needs_reset: bool,
    /// This vendor keeps settings for the host's next boot: those are a part of their own.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub stages: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BmcBackIn {
    #[serde(flatten)]
    pub target: Target,
    /// When the reset was asked for.
    pub since: Timestamp,
    /// It was seen away since then.
    pub seen_away: bool,
    /// When this look was asked for, by the clock that `since` was taken from. `None` in journals of before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asked_at: Option<Timestamp>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BmcBackOut {
    pub back: bool,
    pub away: bool,
    /// What was seen, in words.
    pub note: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConfigureBmcIn {
    #[serde(flatten)]
    pub target: Target,
    pub vendor: String,
    pub restrict_boot: bool,
    /// Which settings. In journals of before: all.
    #[serde(default, skip_serializing_if = "BmcPart::is_whole")]
    pub part: BmcPart,
}

/// A part of a BMC's settings, where what is staged for the host's next boot lies between them (B2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BmcPart {
    #[default]
    Whole,
    /// All but the monitoring user.
    Settings,
    /// The monitoring user and IPMI over LAN.
    Monitoring,
}

impl BmcPart {
    fn is_whole(&self) -> bool {
        *self == BmcPart::Whole
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StageBmcIn {
    #[serde(flatten)]
    pub target: Target,
    pub restrict_boot: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StageBmcOut {
    /// What was staged, in words.
    pub changed: Vec<String>,
    pub satisfied: Vec<String>,
    pub skipped: Vec<String>,
    /// Jobs of the BMC that carry it. Empty where it has none.
    pub jobs: Vec<String>,
    /// The host has to boot for it.
    pub needs_boot: bool,
    /// More is to be staged after that boot.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub rest: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StagedBmcIn {
    #[serde(flatten)]
    pub target: Target,
    pub restrict_boot: bool,
    pub jobs: Vec<String>,
    /// The host was restarted for it: it is waited for until it is applied.
    pub booted: bool,
    /// It is not all: what still differs after it is no fault.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub rest: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StagedBmcOut {
    pub stage: BmcStage,
    /// What was seen, in words.
    pub note: String,
}

/// How far staged settings are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BmcStage {
    /// Accepted, and not yet bound to the next boot: a restart now would walk past it.
    Waiting,
    /// The next boot carries it in.
    Scheduled,
    /// A boot has carried it in: no further restart.
    Running,
    /// Applied, and read back.
    Applied,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConfigureBmcOut {
    /// Settings that were written, in order.
    pub changed: Vec<String>,
    /// Settings that were right already.
    pub satisfied: Vec<String>,
    /// Steps that this vendor or model does not have, with the reason.
    pub skipped: Vec<String>,
    /// The model takes no monitoring user: nobody is there to log in over IPMI.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub no_monitoring_user: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProveIpmiIn {
    #[serde(flatten)]
    pub target: Target,
    /// As the monitoring user, with the level USER.
    pub monitoring: bool,
    /// As the host's own user, with the level ADMINISTRATOR: Ironic will.
    pub administrator: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProveIpmiOut {
    /// Who has logged in, in words.
    pub proven: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LinksOut {
    pub readings: Vec<LinkReading>,
}

/// Which half of the Ironic phases asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Half {
    Inspection,
    Cleaning,
}

impl Half {
    /// The phase that failures of this half are recorded against.
    pub fn phase(self) -> Phase {
        match self {
            Half::Inspection => Phase::Inspection,
            Half::Cleaning => Phase::Cleaning,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PreludeIn {
    #[serde(flatten)]
    pub target: Target,
    pub half: Half,
    /// Pins the UUID at creation (E5).
    #[serde(default)]
    pub node_uuid: Option<NodeUuid>,
}

/// What the prelude found or brought about.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "prelude", rename_all = "snake_case")]
pub enum PreludeOut {
    /// The node is in `enroll` or `manageable`, unowned, and converged.
    Ready { node: NodeUuid, state: ProvisionState, created: bool },
    /// Enrolment-satisfied: nothing may be changed (E6).
    Satisfied {
        node: NodeUuid,
        state: ProvisionState,
        #[serde(default)]
        instance_uuid: Option<String>,
    },
    /// A clean is under way already (E8); only for the cleaning half.
    Cleaning { node: NodeUuid, state: ProvisionState },
    /// Not in a stable state yet, or a recovery was asked for: look again later (E9, E12).
    Wait { node: NodeUuid, state: ProvisionState, why: String },
    /// Another operation holds the node (E15).
    Locked {
        holder: Option<String>,
        state: Option<ProvisionState>,
        /// Which node; nowhere in journals of before.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        node: Option<NodeUuid>,
    },
}

/// The outcome of one request to Ironic that may meet a lock.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "step", rename_all = "snake_case")]
pub enum Step {
    Done {
        changed: bool,
        note: String,
    },
    /// Another operation holds the node (E15): the workflow waits on its timers and asks again.
    Locked {
        holder: Option<String>,
        state: Option<ProvisionState>,
    },
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeLook {
    pub state: ProvisionState,
    #[serde(default)]
    pub target_state: Option<ProvisionState>,
    pub power: Power,
    #[serde(default)]
    pub reservation: Option<String>,
    #[serde(default)]
    pub last_error: Option<String>,
    #[serde(default)]
    pub clean_step: Option<String>,
    #[serde(default)]
    pub maintenance: bool,
    #[serde(default)]
    pub instance_uuid: Option<String>,
    /// When the ramdisk last spoke to Ironic, where Ironic tells.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_heartbeat: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct VerifyOut {
    /// `None`: the node has no inventory yet.
    pub verification: Option<Verification>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProveIn {
    #[serde(flatten)]
    pub target: Target,
    pub node: NodeUuid,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProveOut {
    pub accepted: bool,
    /// The reference that the projection has, where it is not the resolved one.
    #[serde(default)]
    pub projected: Option<NodeUuid>,
}

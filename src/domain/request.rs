//! What a run is asked to do, fixed at the moment of submission.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::ids::NodeUuid;
use super::queue::Placement;

/// The switches of an enrollment (domain document, "Operator parameters").
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct EnrollParams {
    /// `false` skips the inspection and the checks of its data; the cleaning link guard still runs.
    pub run_inspection: bool,
    /// A fresh inspection even where the data at hand passes every check.
    pub force_inspection: bool,
    /// A cold reset of the BMC even where no password was rotated.
    pub force_bmc_restart: bool,
    /// The UUID that the node gets when it is created.
    pub node_uuid: Option<NodeUuid>,
    /// Overrides the policy's total attempts; 1 fails fast (G11).
    pub max_attempts: Option<u32>,
}

impl Default for EnrollParams {
    fn default() -> Self {
        EnrollParams {
            run_inspection: true,
            force_inspection: false,
            force_bmc_restart: false,
            node_uuid: None,
            max_attempts: None,
        }
    }
}

/// A site's gates and options as they stood at submission. A later change of the configuration changes no run (G3).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SiteOptions {
    pub configure_dhcp: bool,
    pub configure_bmc: bool,
    pub ironic_enrol: bool,
    pub platform_class_activity_ready: bool,
    pub switch_to_ipmi_after_inspection: bool,
    pub restrict_boot: bool,
    /// BMC configuration ends with a login over IPMI (X1). Off in requests of versions that proved none.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub prove_ipmi: bool,
    /// NetBox slug of the tag that marks an enrolled host (C7).
    pub ironic_tag: String,
    /// NetBox slug of the tag that says "BMC configuration completed" (B17).
    pub bmc_tag: String,
    pub budgets: Budgets,
}

/// How long a run is patient. All are journaled with the request. In the configuration each key has the suffix `_s` and is
/// in seconds, fractions allowed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Budgets {
    /// Total attempts of an activity, and of inspections and cleans as wholes (G11, I13, C4).
    pub max_attempts: u32,
    /// `node_lock_max_wait`: how long a locked node is waited for (E15).
    pub node_lock: Duration,
    /// Waiting for a stable provision state, and for `manage` (E12, I8).
    pub stable: Duration,
    /// From `inspect` to `manageable` (I13).
    pub inspection: Duration,
    /// From `provide` to `power on` (C1).
    pub power_on: Duration,
    /// The link guard (L1).
    pub link_guard: Duration,
    /// Between two looks at the links (L6).
    pub link_poll: Duration,
    /// The whole cleaning half (C3).
    pub cleaning: Duration,
    /// First and longest wait between two looks at a provision state (C3).
    pub poll_first: Duration,
    pub poll_max: Duration,
    /// From the end of the run to an accepted proof (T2).
    pub proof: Duration,
    /// How long a step waits for a service that many hosts share and that does not answer, before that costs attempts. None
    /// in requests of versions that did not wait.
    #[serde(default)]
    pub outage: Duration,
    /// Until a BMC has bound staged firmware settings to the next boot (B9). The default in requests of versions that staged
    /// nothing.
    #[serde(default = "ten_minutes")]
    pub staged: Duration,
    /// Until the host's boots have applied them.
    #[serde(default = "an_hour")]
    pub applied: Duration,
}

fn ten_minutes() -> Duration {
    Duration::from_secs(10 * 60)
}

fn an_hour() -> Duration {
    Duration::from_secs(60 * 60)
}

/// Which Ironic instance manages which device classes, as it stood at submission (R1).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Default)]
pub struct Routing {
    /// Device class (`COMPUTE_GPU`) to the name of the Ironic instance.
    pub by_class: BTreeMap<String, String>,
}

impl Routing {
    /// The Ironic instance for a device class; `None` where no instance manages it (R2).
    pub fn resolve(&self, device_class: Option<&str>) -> Option<&str> {
        self.by_class.get(device_class?).map(String::as_str)
    }
}

/// One host to enroll: everything that a run knows before it reads anything.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EnrollRequest {
    /// The NetBox device name.
    pub host: String,
    /// NetBox's id of the device, as the inventory had it.
    pub netbox_id: u64,
    /// NetBox slug of the site.
    pub site: String,
    /// From the device's role in NetBox; decides the Ironic instance.
    pub device_class: Option<String>,
    pub params: EnrollParams,
    pub options: SiteOptions,
    pub routing: Routing,
    /// Who started it: a login name, for the people who share a console.
    pub submitted_by: String,
    pub submitted_at: Timestamp,
    /// The run that this one repeats (G10).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_of: Option<super::ids::RunId>,
    /// Where the host stands and hangs: what the limits of rack and switch go by (G13).
    #[serde(default, skip_serializing_if = "Placement::is_unknown")]
    pub placement: Placement,
    /// The run that has to succeed before this one begins: the first of its batch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub canary: Option<super::ids::RunId>,
}

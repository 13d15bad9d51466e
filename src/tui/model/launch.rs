//! The launch dialog: which hosts, with which switches, and which of them may go.

use serde::{Deserialize, Serialize};

use super::host::Host;
use super::input::Input;
use crate::domain::request::EnrollParams;
use crate::tui::glyphs::Status;

/// What is about to be started.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Launch {
    pub hosts: Vec<Candidate>,
    pub params: EnrollParams,
    /// As typed; read when the dialog starts.
    pub node_uuid: Input,
    pub field: Field,
    /// The first begins alone, and the others when it has succeeded.
    #[serde(default)]
    pub canary: bool,
    /// First host that shows.
    pub top: usize,
}

/// A host of the dialog.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Candidate {
    pub netbox_id: u64,
    pub host: String,
    pub site: String,
    pub verdict: Verdict,
}

/// Whether a host may be started from here.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Verdict {
    Eligible,
    /// May go alone, with its name typed: settings that drifted restart it (B19).
    Deployed,
    Refused {
        code: String,
        message: String,
        action: String,
    },
    /// A run is under way (G8).
    Busy {
        run: String,
    },
}

/// The fields of the dialog, from the top down.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Field {
    RunInspection,
    ForceInspection,
    RestartBmc,
    Attempts,
    NodeUuid,
    /// Only of a batch.
    Canary,
}

impl Field {
    const ALL: [Field; 6] = [
        Field::RunInspection,
        Field::ForceInspection,
        Field::RestartBmc,
        Field::Attempts,
        Field::NodeUuid,
        Field::Canary,
    ];
}

/// The most attempts that the dialog offers.
const MAX_ATTEMPTS: u32 = 9;

impl Launch {
    /// A dialog for these hosts.
    pub fn new<'a>(hosts: impl IntoIterator<Item = &'a Host>) -> Launch {
        Launch {
            hosts: hosts.into_iter().map(Candidate::of).collect(),
            params: EnrollParams::default(),
            node_uuid: Input::default(),
            field: Field::RunInspection,
            canary: false,
            top: 0,
        }
    }

    /// The next field, or the one before; the ends hold.
    pub fn step(&mut self, down: bool) {
        let fields = self.fields();
        let at = fields.iter().position(|f| *f == self.field).unwrap_or(0);
        let to = if down { (at + 1).min(fields.len() - 1) } else { at.saturating_sub(1) };
        self.field = fields[to];
    }

    /// The fields of this dialog.
    pub fn fields(&self) -> &'static [Field] {
        if self.hosts.len() > 1 { &Field::ALL } else { &Field::ALL[..5] }
    }

    /// Flips the focused switch.
    pub fn toggle(&mut self) {
        match self.field {
            Field::RunInspection => self.params.run_inspection = !self.params.run_inspection,
            Field::ForceInspection => self.params.force_inspection = !self.params.force_inspection,
            Field::RestartBmc => self.params.force_bmc_restart = !self.params.force_bmc_restart,
            Field::Attempts => self.attempts(true),
            Field::Canary => self.canary = !self.canary,
            Field::NodeUuid => {}
        }
    }

    /// More or fewer attempts; below one stands "as the site has it".
    pub fn attempts(&mut self, more: bool) {
        self.params.max_attempts = match (self.params.max_attempts, more) {
            (None, true) => Some(1),
            (Some(n), true) => Some((n + 1).min(MAX_ATTEMPTS)),
            (None | Some(0 | 1), false) => None,
            (Some(n), false) => Some(n - 1),
        };
    }

    /// The hosts that start when the dialog does.
    pub fn starting(&self) -> impl Iterator<Item = &Candidate> {
        let alone = self.hosts.len() == 1;
        self.hosts.iter().filter(move |c| match c.verdict {
            Verdict::Eligible => true,
            Verdict::Deployed => alone,
            Verdict::Refused { .. } | Verdict::Busy { .. } => false,
        })
    }

    /// What stands in the way of starting, in a sentence.
    pub fn obstacle(&self) -> Option<String> {
        let starting = self.starting().count();
        if starting == 0 {
            return Some("none of these hosts can be started".to_owned());
        }
        if self.node_uuid.is_empty() {
            return None;
        }
        if self.node_uuid.text.trim().parse::<uuid::Uuid>().is_err() {
            return Some(format!("'{}' is no UUID", self.node_uuid.text.trim()));
        }
        (starting > 1).then(|| "a node UUID is for one host".to_owned())
    }

    /// The switches with the UUID read.
    pub fn read_params(&self) -> EnrollParams {
        EnrollParams { node_uuid: self.node_uuid.text.trim().parse().ok(), ..self.params.clone() }
    }
}

impl Candidate {
    /// A host, and whether it may go.
    pub fn of(host: &Host) -> Candidate {
        let verdict = match (&host.last_run, host.refused()) {
            (Some(run), _) if run.is_live() => Verdict::Busy { run: run.run.short() },
            (_, Some(r)) => Verdict::Refused { code: r.code, message: r.message, action: r.action },
            _ if host.is_deployed() => Verdict::Deployed,
            _ => Verdict::Eligible,
        };
        let (netbox_id, host, site) =
            (host.device.netbox_id, host.device.name.to_string(), host.device.site.to_string());
        Candidate { netbox_id, host, site, verdict }
    }

    /// The sign before its name.
    pub fn status(&self) -> Status {
        match self.verdict {
            Verdict::Eligible => Status::Ok,
            Verdict::Deployed => Status::Warned,
            Verdict::Refused { .. } => Status::Refused,
            Verdict::Busy { .. } => Status::Running,
        }
    }
}

//! A row of the prelude's decision table, what it must come to, and what it comes to when the workflow lives through it.

#![allow(dead_code, reason = "each test binary uses a part of it")]

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use muster::domain::event::WaitKind;
use muster::domain::provision::ProvisionState;
use muster::lab::scenario::Scenario;
use muster::workflows::defs::Half;
use serde_json::{Value, json};

use super::inside::{Ground, Next, Watch};

pub const HOST: &str = "gpu-1";

/// One host whose node is `manageable`, inspected, powered on, and as NetBox wants it.
pub fn scenario() -> Scenario {
    let host = "{ name = \"gpu-1\", site = \"t1\", rack = \"R1\", unit = 40, type = \"small\", role = \"gpu\", \
                node = \"manageable\", power = true }";
    let text = format!(
        "name = \"prelude\"\nhosts = [{host}]\n{}",
        include_str!("../ironic_steps/scenario.toml").replace("#IRONIC#", "").replace("#SETTINGS#", "")
    );
    Scenario::parse(&text).unwrap()
}

/// A node as the prelude of a half finds it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Row {
    pub state: ProvisionState,
    pub instance: bool,
    pub maintenance: bool,
    pub run_inspection: bool,
    pub half: Half,
}

/// What the prelude came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    pub end: End,
    /// Writes to Ironic, in their order.
    pub writes: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum End {
    /// Unowned, in `enroll` or `manageable`, converged: the half goes on with its next step.
    GoesOn,
    /// Enrolled already, and whether the inventory at hand was verified.
    Satisfied {
        verified: bool,
    },
    /// The clean under way is watched.
    Polled,
    /// Waited for as long as patience lasts, and then given up.
    WaitedFor,
    Failed(&'static str),
}

const MANAGE: &str = "PUT /v1/nodes/ID/states/provision manage";
const CLEAR: &str = "DELETE /v1/nodes/ID/maintenance";
const CHANGE: &str = "PATCH /v1/nodes/ID";

impl Outcome {
    /// As the documentation says it.
    pub fn words(&self) -> String {
        let wrote: Vec<&str> = self
            .writes
            .iter()
            .filter_map(|write| match write.as_str() {
                MANAGE => Some("`manage`"),
                CLEAR => Some("maintenance off"),
                // The credential, which is converged where the half goes on.
                CHANGE => None,
                other => panic!("a write that the table has no words for: {other}"),
            })
            .collect();
        let end = match &self.end {
            End::GoesOn => "converged, goes on".to_owned(),
            End::Satisfied { verified: true } => "enrolled: verified, nothing changed".to_owned(),
            End::Satisfied { verified: false } => "enrolled: nothing changed".to_owned(),
            End::Polled => "its clean is watched".to_owned(),
            End::WaitedFor => "waited for".to_owned(),
            End::Failed(code) => format!("`{code}`"),
        };
        match wrote.is_empty() {
            true => end,
            false => format!("{}; {end}", wrote.join(", then ")),
        }
    }
}

/// What the rules say (E6 to E12), independent of the code that carries them out.
pub fn expected(row: &Row) -> Outcome {
    let nothing = |end| Outcome { end, writes: vec![] };
    let writes = |writes: &[&str]| writes.iter().map(|w| (*w).to_owned()).collect();
    let state = row.state.as_str();
    // E6
    if matches!(state, "active" | "available") || (state == "manageable" && row.instance) {
        // Only the half that inspects has something to verify.
        return nothing(End::Satisfied { verified: row.run_inspection && row.half == Half::Inspection });
    }
    // E7
    if row.instance {
        return nothing(End::Failed("NODE_OWNED_BY_NOVA"));
    }
    // In the cleaning half the credential was given by the half before, and again only where a recovery casts doubt on it.
    let access: &[&str] = if row.half == Half::Inspection { &[CHANGE] } else { &[] };
    match state {
        // E8
        "cleaning" | "clean wait" if row.half == Half::Cleaning => nothing(End::Polled),
        // E9
        "inspect failed" => Outcome { end: End::GoesOn, writes: writes(&[MANAGE, CHANGE]) },
        // E10
        "clean failed" if row.maintenance => Outcome { end: End::GoesOn, writes: writes(&[CLEAR, MANAGE, CHANGE]) },
        "clean failed" => Outcome { end: End::GoesOn, writes: writes(&[MANAGE, CHANGE]) },
        "enroll" | "manageable" => Outcome { end: End::GoesOn, writes: writes(access) },
        // E11, and every other state that only a person leads out of.
        "deploy failed" | "error" | "adopt failed" | "rescue" | "rescue failed" | "unrescue failed"
        | "service failed" | "clean hold" | "deploy hold" | "service hold" => nothing(End::Failed("NODE_NEEDS_REVIEW")),
        // E12
        _ => nothing(End::WaitedFor),
    }
}

/// Follows a run from the moment at which its prelude meets the row to the step behind the prelude.
#[derive(Default)]
pub struct Follow {
    met: bool,
    verified: bool,
    /// The step behind the prelude.
    next: Option<String>,
}

impl Follow {
    /// A watch that calls `meet` when the prelude of the half is about to look, and stops the run behind it.
    pub fn from(half: Half, meet: impl Fn() + 'static) -> (Watch, Rc<RefCell<Follow>>) {
        let follow = Rc::new(RefCell::new(Follow::default()));
        let this = Rc::clone(&follow);
        let watch = move |name: &str, input: &Value| {
            let mut this = this.borrow_mut();
            if name == "ironic.prelude" && input["half"] == json!(half) {
                if !this.met {
                    this.met = true;
                    meet();
                }
                return Next::Do;
            }
            if !this.met {
                return Next::Do;
            }
            if name == "ironic.verify" && this.next.is_none() {
                this.verified = true;
                return Next::Do;
            }
            this.next = Some(name.to_owned());
            Next::Stop
        };
        (Box::new(watch), follow)
    }

    /// What it came to, by the code of the failure where there was one, and what was waited for.
    pub fn end(&self, code: &'static str, waits: &[WaitKind]) -> End {
        match self.next.as_deref() {
            Some("ironic.networking" | "ironic.raid_target") => End::GoesOn,
            Some("ironic.look") => End::Polled,
            Some("ironic.power_on" | "netbox.add_tag") => End::Satisfied { verified: self.verified },
            Some(other) => panic!("the prelude is followed by '{other}'"),
            // A node that nobody has inspected fails in it: it was read all the same.
            None if self.verified => End::Satisfied { verified: true },
            None if code == "NODE_STATE_UNEXPECTED" && waits.contains(&WaitKind::StableState) => End::WaitedFor,
            None => End::Failed(code),
        }
    }
}

/// Lives through a row on the lab. `driver`: of the node, where it is not NetBox's.
pub async fn outcome(ground: &Arc<Ground>, row: &Row, driver: Option<&'static str>) -> Outcome {
    let scene = ground.scene();
    scene.renew_uuid();
    if let Some(driver) = driver {
        scene.edit(|node| node.become_of(driver));
    }
    let mut request = scene.request();
    request.params.run_inspection = row.run_inspection;
    // An attempt is enough to see what the first one does.
    request.params.max_attempts = Some(1);
    let (wire, now, row_) = (Arc::clone(&scene.wire), scene.world().clone(), row.clone());
    let (watch, follow) = Follow::from(row.half, move || {
        let at = now.clock().stamp(now.now());
        wire.edit(|node| {
            node.put_into(row_.state.clone(), at);
            if row_.instance {
                node.set("instance_uuid", "22222222-0000-4000-8000-000000000001");
            }
            if row_.maintenance {
                node.set("maintenance", true);
                node.set("maintenance_reason", "set by hand");
            }
        });
        wire.book().sent.clear();
    });
    let ran = scene.run(request, watch).await;
    let waits: Vec<WaitKind> = ran.waits.iter().map(|(kind, _)| *kind).collect();
    let end = follow.borrow().end(ran.code(), &waits);
    let writes = scene.wire.book().sent.iter().filter(|sent| sent.is_write()).map(|sent| sent.words()).collect();
    Outcome { end, writes }
}

//! Watches, while a node boots for an inspection or a clean, whether any frontend link comes up (L1–L5).

use std::time::Duration;

use jiff::Timestamp;

use super::Enrollment;
use super::node::words;
use super::patience::Patience;
use crate::domain::event::{Observation, WaitKind, WaitReason};
use crate::domain::failure::{Failure, FailureCode};
use crate::domain::ids::NodeUuid;
use crate::domain::link::{GuardVerdict, LinkGuard, LinkReading};
use crate::domain::phase::Phase;
use crate::domain::provision::{Power, ProvisionState};
use crate::workflows::cx::{ActivityError, Cx};
use crate::workflows::defs::*;

/// More gaps between readings than suspends make.
const GAPS: u32 = 5;

/// What the watch ended with.
pub(super) enum Watched {
    /// A link is up, or cannot be read: go on.
    GoOn,
    /// The node has left the states in which it boots for this phase: judge its state instead.
    Moved(NodeLook),
}

impl<C: Cx> Enrollment<C> {
    /// Waits for power on, then for a link. `under_way` says in which states the node still does what was asked.
    pub(super) async fn watch_links(
        &self,
        node: NodeUuid,
        phase: Phase,
        limit: Option<Timestamp>,
        under_way: fn(&ProvisionState) -> bool,
    ) -> Result<Watched, ActivityError> {
        if let Some(look) = self.wait_for_boot(node, phase, limit, under_way).await? {
            return Ok(Watched::Moved(look));
        }
        let budgets = &self.request.options.budgets;
        // Four missed looks are a gap, and no observation. A busy program and Ironic's answer take their time as well.
        let longest_pause = budgets.link_poll * 4 + Duration::from_secs(2);
        let mut guard = LinkGuard::new(budgets.link_guard, longest_pause, Duration::from_secs(30));
        loop {
            let asked = self.cx.now();
            let input = PhaseTarget { target: self.target.clone(), phase };
            let links = self.ask::<ReadLinks>(phase, 120, input).await?.readings;
            self.seen.borrow_mut().links(&links);
            let verdict = guard.observe(asked, self.cx.now(), &links);
            let budget_left_s = guard.left().as_secs();
            self.cx.report(Observation::Links { phase, readings: links.clone(), budget_left_s });
            match verdict {
                GuardVerdict::Pass { interface } => {
                    self.note("bmc", format!("link of {interface} is UP"));
                    return Ok(Watched::GoOn);
                }
                GuardVerdict::PassUnknown { interfaces } => {
                    let which =
                        if interfaces.is_empty() { "no frontend link".to_owned() } else { interfaces.join(", ") };
                    self.warned(
                        phase,
                        format!("the BMC does not report a link state ({which} UNKNOWN): Ironic decides"),
                    );
                    return Ok(Watched::GoOn);
                }
                GuardVerdict::AllDown { .. } => {}
                GuardVerdict::Expired { observed } => {
                    self.step::<Abort>(node, phase, None).await?;
                    return Err(self.all_down(phase, &links, observed).into());
                }
            }
            let look = self.look(node, phase).await?;
            let now = self.cx.now();
            // A BMC so slow that its readings never add up must not hold the phase beyond its own deadline (G12). One suspend
            // is no reason: the links are still what has to be told.
            let never_ends = guard.gaps() > GAPS && limit.is_some_and(|limit| now >= limit);
            if !under_way(&look.state) || never_ends {
                return Ok(Watched::Moved(look));
            }
            let reason = WaitReason {
                phase,
                kind: WaitKind::LinkGuard,
                text: links
                    .iter()
                    .map(|l| format!("{} {}", l.interface, l.state.as_str()))
                    .collect::<Vec<_>>()
                    .join(" "),
                gives_up_at: now.checked_add(guard.left()).ok(),
            };
            // From the beginning of the last look, so that a change is seen within one poll (L6); a BMC that takes longer than
            // that to answer gets a breath.
            let next = asked.checked_add(budgets.link_poll).unwrap_or(now);
            let breath = now.checked_add(budgets.link_poll / 5).unwrap_or(now);
            self.cx.sleep_until(next.max(breath), reason).await?;
        }
    }

    /// Waits until Ironic says `power on`; gives back the look where the node moved on meanwhile.
    async fn wait_for_boot(
        &self,
        node: NodeUuid,
        phase: Phase,
        limit: Option<Timestamp>,
        under_way: fn(&ProvisionState) -> bool,
    ) -> Result<Option<NodeLook>, ActivityError> {
        let budget = self.request.options.budgets.power_on;
        let mut patience = Patience::until(self.cx.now(), budget, self.poll_first(), self.poll_max()).clamped(limit);
        loop {
            let look = self.look(node, phase).await?;
            if !under_way(&look.state) {
                return Ok(Some(look));
            }
            if look.power == Power::On {
                return Ok(None);
            }
            let text = format!("waiting for power on · node is '{}'", look.state);
            if !patience.wait(&self.cx, phase, WaitKind::PowerOn, &text).await? {
                return Err(self.power_timeout(node, phase, &look).into());
            }
        }
    }

    fn all_down(&self, phase: Phase, links: &[LinkReading], observed: Duration) -> Failure {
        let host = &self.target.host;
        let places: Vec<String> = links
            .iter()
            .map(|link| match &link.cable {
                Some(end) => {
                    let label = end.label.as_ref().map_or(String::new(), |label| format!(", cable {label}"));
                    format!("{} to {} {}{label}", link.interface, end.switch, end.port)
                }
                None => format!("{}, no cable in NetBox", link.interface),
            })
            .collect();
        Failure::new(
            FailureCode::LinkAllDown,
            phase,
            format!("every frontend link of '{host}' stayed DOWN for {}: {}", words(observed), places.join("; ")),
            format!(
                "check cable, optic and switch port of {}; then retry with a forced inspection",
                places.join(" and ")
            ),
        )
        .with_evidence(
            "redfish links of the BMC",
            links.iter().map(|l| format!("{} {}", l.interface, l.state.as_str())).collect::<Vec<_>>().join(", "),
        )
    }

    pub(super) fn note(&self, system: &str, text: String) {
        self.cx.report(Observation::Note { system: system.to_owned(), text });
    }
}

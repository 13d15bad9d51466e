//! The fold itself: what each kind of record changes in a [`RunView`].

use std::borrow::Cow;

use jiff::Timestamp;

use super::links::GuardView;
use super::words::activity_words;
use super::{
    ActivityView, CancelView, CleaningView, EventKind, EventLine, NodeView, PhaseStatus, PhaseView, RetryView, RunView,
    StateSpan, VerificationView, WaitView, WriteLine,
};
use crate::domain::event::{Body, Event, Observation, Outcome, RunRecord, WaitKind, WaitReason};
use crate::domain::failure::Failure;
use crate::domain::lines::squeezed;
use crate::domain::link::LinkReading;
use crate::domain::phase::Phase;
use crate::domain::provision::{Power, ProvisionState};
use crate::domain::text::neutralize_to;
use crate::domain::verify::Verification;

/// Applies a record; `false` where it was applied already.
pub(super) fn apply(view: &mut RunView, record: &RunRecord) -> bool {
    if view.run.is_some() && record.n < view.next_n {
        return false;
    }
    view.run = Some(record.run);
    view.next_n = record.n + 1;
    view.last_at = Some(record.at);
    let mut fold = Fold { view, n: record.n, at: record.at };
    match &record.body {
        Body::Journal(event) => fold.event(event),
        Body::Observation(observation) => fold.observation(observation),
    }
    true
}

struct Fold<'a> {
    view: &'a mut RunView,
    n: u64,
    at: Timestamp,
}

impl Fold<'_> {
    fn event(&mut self, event: &Event) {
        match event {
            Event::Submitted { request, .. } => {
                let text = match &request.retry_of {
                    Some(before) => format!("submitted by {}, repeats run {}", request.submitted_by, before.short()),
                    None => format!("submitted by {}", request.submitted_by),
                };
                self.view.request = Some(request.clone());
                self.line("run", text, EventKind::Info);
            }
            Event::ActivityScheduled { seq, name, phase, .. } => self.scheduled(*seq, name, *phase),
            Event::ActivityDone { seq, .. } => self.close(*seq),
            Event::ActivityCancelled { seq } => self.close(*seq),
            Event::ActivityFailed { seq, failure } => {
                self.close(*seq);
                self.line(failure.phase.label(), failure.message.clone(), EventKind::Failed);
            }
            Event::TimerSet { seq, until, reason } => self.timer_set(*seq, *until, reason),
            Event::TimerFired { seq } => {
                if let Some(wait) = self.view.wait.as_mut().filter(|w| w.seq == *seq) {
                    wait.until = None;
                }
            }
            Event::Signalled { signal } => {
                let word = signal.get("signal").and_then(|s| s.as_str()).unwrap_or("signal").replace('_', " ");
                self.line("operator", word, EventKind::Info);
            }
            Event::CancelRequested { by } => {
                self.view.cancel = Some(CancelView { at: self.at, by: by.clone() });
                self.line("run", format!("cancel asked for by {by}"), EventKind::Warned);
            }
            Event::Version { .. } => {}
            Event::Finished { outcome } => self.finished(outcome),
        }
    }

    fn observation(&mut self, observation: &Observation) {
        match observation {
            Observation::PhaseStarted { phase, attempt } => self.phase_started(*phase, *attempt),
            Observation::PhaseSkipped { phase, why } => {
                self.end_phase(*phase, PhaseStatus::Skipped, why);
                self.line(phase.label(), format!("skipped: {why}"), EventKind::Skipped);
            }
            Observation::PhaseDone { phase, note } => {
                // A warning of the phase outlives its good end: it is what there is to look at.
                let warned = !self.phase(*phase).warnings.is_empty();
                let status = if warned { PhaseStatus::Warned } else { PhaseStatus::Done };
                self.end_phase(*phase, status, note);
                self.over(*phase);
                let text = if note.is_empty() { "done".to_owned() } else { note.clone() };
                self.line(phase.label(), text, EventKind::Done);
            }
            Observation::Warned { phase, message } => {
                let entry = self.phase(*phase);
                entry.warnings.push(message.clone());
                if entry.status == PhaseStatus::Done {
                    entry.status = PhaseStatus::Warned;
                }
                self.line(phase.label(), message.clone(), EventKind::Warned);
            }
            Observation::Attempt { seq, attempt, max_attempts, .. } => {
                if let Some(activity) = self.activity(*seq) {
                    (activity.attempt, activity.max_attempts, activity.retry) = (*attempt, *max_attempts, None);
                }
            }
            Observation::AttemptFailed { seq, attempt, failure, retry_at } => {
                self.attempt_failed(*seq, *attempt, failure, *retry_at)
            }
            Observation::Note { system, text } => self.line(system, text.clone(), EventKind::Info),
            Observation::Wrote { system, target, what, before, after } => {
                self.view.writes.push(WriteLine {
                    at: self.at,
                    system: system.clone(),
                    target: target.clone(),
                    what: what.clone(),
                    before: before.clone(),
                    after: after.clone(),
                });
                // The run's own host needs no name in its own list.
                let own = self.view.request.as_ref().is_some_and(|r| r.host == *target);
                let target = if own { "" } else { target.as_str() };
                self.line(system, wrote_text(target, what, before, after), EventKind::Wrote);
            }
            Observation::Links { phase, readings, budget_left_s } => self.links(*phase, readings, *budget_left_s),
            Observation::Verified { verification, fresh } => self.verified(verification, *fresh),
            Observation::Node { state, power, clean_step, reservation, last_error } => {
                self.node(state, *power, clean_step, reservation, last_error)
            }
            Observation::Cleaning { attempt, max_attempts, next_look_at, deadline } => {
                self.cleaning(*attempt, *max_attempts, *next_look_at, *deadline)
            }
            Observation::Resumed { by } => {
                self.line("run", format!("was interrupted, goes on under {by}"), EventKind::Warned)
            }
            Observation::Outlived => {}
            Observation::Stopped { by } => self.line("run", format!("{by} was stopped in order"), EventKind::Info),
            // A matter of the story, not of a pane: see `domain::story`.
            Observation::Requests { .. } => {}
        }
    }

    fn scheduled(&mut self, seq: u32, name: &str, phase: Phase) {
        let at = self.at;
        // A lock is asked for by one activity; other waits may look at two things before the next timer.
        let over = self.view.wait.as_mut().is_some_and(|wait| {
            wait.looks += u32::from(wait.until.is_none());
            wait.looks > if wait.reason.kind == WaitKind::NodeLock { 1 } else { 2 }
        });
        if over {
            self.view.wait = None;
        }
        let entry = self.phase(phase);
        if entry.status == PhaseStatus::Pending {
            (entry.status, entry.started_at, entry.attempt) = (PhaseStatus::Running, Some(at), 1);
        }
        self.view.activities.push(ActivityView {
            seq,
            name: name.to_owned(),
            phase,
            started_at: at,
            attempt: 0,
            max_attempts: 0,
            retry: None,
        });
    }

    fn close(&mut self, seq: u32) {
        self.view.activities.retain(|a| a.seq != seq);
    }

    fn timer_set(&mut self, seq: u32, until: Timestamp, reason: &WaitReason) {
        let since = match &self.view.wait {
            Some(wait) if wait.reason.kind == reason.kind && wait.reason.phase == reason.phase => wait.since,
            _ => self.at,
        };
        self.view.wait = Some(WaitView { reason: reason.clone(), since, until: Some(until), seq, looks: 0 });
    }

    fn attempt_failed(&mut self, seq: u32, attempt: u32, failure: &Failure, retry_at: Timestamp) {
        let at = self.at;
        let Some(activity) = self.activity(seq) else { return };
        activity.retry = Some(RetryView { since: at, at: retry_at, failure: Box::new(failure.clone()) });
        let (words, max, phase) = (activity_words(&activity.name).to_owned(), activity.max_attempts, activity.phase);
        self.phase(phase).retries += 1;
        let text = format!("{words}: attempt {attempt} of {max} failed: {}", failure.message);
        self.line(failure.phase.label(), text, EventKind::Warned);
    }

    fn phase_started(&mut self, phase: Phase, attempt: u32) {
        let at = self.at;
        self.view.wait = None;
        let entry = self.phase(phase);
        entry.started_at.get_or_insert(at);
        (entry.status, entry.attempt, entry.ended_at) = (PhaseStatus::Running, attempt.max(1), None);
        self.over(phase);
        if attempt > 1 {
            self.line(phase.label(), format!("attempt {attempt}"), EventKind::Info);
        }
    }

    fn end_phase(&mut self, phase: Phase, status: PhaseStatus, note: &str) {
        let at = self.at;
        self.view.wait = None;
        let entry = self.phase(phase);
        entry.status = status;
        entry.note = note.to_owned();
        if status != PhaseStatus::Skipped {
            entry.started_at.get_or_insert(at);
            entry.ended_at = Some(at);
        }
    }

    fn links(&mut self, phase: Phase, readings: &[LinkReading], budget_left_s: u64) {
        let attempt = self.phase(phase).attempt.max(1);
        let same = |g: &GuardView| g.phase == phase && g.attempt == attempt && budget_left_s <= g.budget_left_s;
        if !self.view.guards.last().is_some_and(same) {
            self.over(phase);
            self.view.guards.push(GuardView::new(phase, attempt, self.at, budget_left_s));
        }
        let Some(guard) = self.view.guards.last_mut() else { return };
        let changes = guard.look(self.at, readings, budget_left_s);
        // A link that is up, or can't be read, lets the run go on (L2): this guard has done its work.
        guard.over = !guard.all_down();
        for change in changes {
            let text = match change.before {
                Some((before, s)) => {
                    format!("{} is {} after {s}s {}", change.interface, change.state.as_str(), before.as_str())
                }
                None => format!("{} is {}", change.interface, change.state.as_str()),
            };
            self.line("link guard", text, EventKind::Info);
        }
    }

    /// The phase's guard counts no more.
    fn over(&mut self, phase: Phase) {
        for guard in self.view.guards.iter_mut().filter(|g| g.phase == phase) {
            guard.over = true;
        }
    }

    fn verified(&mut self, verification: &Verification, fresh: bool) {
        let (all, failed) = (verification.checks.len(), verification.failed().count());
        let of = if fresh { "fresh inspection" } else { "data at hand" };
        let (text, kind) = match (failed, &verification.diagnosis) {
            (0, _) => (format!("{of}: all {all} checks agree"), EventKind::Done),
            (_, Some(diagnosis)) => (format!("{of}: {failed} of {all} checks differ: {diagnosis}"), EventKind::Failed),
            (_, None) => (format!("{of}: {failed} of {all} checks differ"), EventKind::Failed),
        };
        self.line("inspection", text, kind);
        self.view.verification = Some(VerificationView { verification: verification.clone(), fresh, at: self.at });
    }

    fn node(
        &mut self,
        state: &ProvisionState,
        power: Power,
        clean_step: &Option<String>,
        reservation: &Option<String>,
        last_error: &Option<String>,
    ) {
        let before = self.view.node.replace(NodeView {
            at: self.at,
            state: state.clone(),
            power,
            clean_step: clean_step.clone(),
            reservation: reservation.clone(),
            last_error: last_error.clone(),
        });
        let phase = self.running();
        if *state == ProvisionState::CleanFailed
            && let Some(cleaning) = &mut self.view.cleaning
        {
            cleaning.last_failure = Some(last_error.clone().unwrap_or_else(|| "Ironic gave no reason".to_owned()));
        }
        let same_state = before.as_ref().is_some_and(|b| b.state == *state);
        match self.view.states.last_mut() {
            Some(span) if span.state == *state => span.until = self.at,
            last => {
                if let Some(span) = last {
                    span.until = self.at;
                }
                self.view.states.push(StateSpan { state: state.clone(), since: self.at, until: self.at, phase });
            }
        }
        let powered = match power {
            Power::On => ", powered on",
            Power::Off => ", powered off",
            Power::Unknown => ", power unknown",
        };
        let same_power = before.as_ref().is_some_and(|b| b.power == power);
        if !same_state || !same_power {
            self.line("ironic", format!("node is {state}{powered}"), EventKind::Info);
        }
        if let Some(error) = last_error
            && before.as_ref().and_then(|b| b.last_error.as_ref()) != Some(error)
        {
            self.line("ironic", error.clone(), EventKind::Warned);
        }
        if let Some(step) = clean_step
            && before.as_ref().and_then(|b| b.clean_step.as_ref()) != Some(step)
        {
            self.line("ironic", format!("clean step {step}"), EventKind::Info);
        }
    }

    fn cleaning(&mut self, attempt: u32, max_attempts: u32, next_look_at: Timestamp, deadline: Timestamp) {
        let pause_s = next_look_at.duration_since(self.at).as_secs().max(0) as u64;
        let at = self.at;
        let cleaning = self.view.cleaning.get_or_insert_with(|| CleaningView {
            started_at: at,
            attempt,
            max_attempts,
            next_look_at,
            deadline,
            pauses_s: Vec::new(),
            last_failure: None,
        });
        if cleaning.attempt != attempt {
            cleaning.pauses_s.clear();
        }
        (cleaning.attempt, cleaning.max_attempts) = (attempt, max_attempts);
        (cleaning.next_look_at, cleaning.deadline) = (next_look_at, deadline);
        if cleaning.pauses_s.last() != Some(&pause_s) {
            cleaning.pauses_s.push(pause_s);
            let extra = cleaning.pauses_s.len().saturating_sub(4);
            cleaning.pauses_s.drain(..extra);
        }
    }

    fn finished(&mut self, outcome: &Outcome) {
        self.view.finished_at = Some(self.at);
        self.view.outcome = Some(outcome.clone());
        self.view.activities.clear();
        self.view.wait = None;
        for guard in &mut self.view.guards {
            guard.over = true;
        }
        match outcome {
            Outcome::Succeeded { result } => {
                let again = result.as_ref().is_some_and(|r| r.already_enrolled);
                let text = if again { "succeeded: it was enrolled already" } else { "succeeded" };
                self.line("run", text.to_owned(), EventKind::Done);
            }
            Outcome::Failed { failure } => {
                self.end_running(PhaseStatus::Failed, &failure.message);
                self.end_phase(failure.phase, PhaseStatus::Failed, &failure.message);
                self.line("run", format!("failed: {}", failure.message), EventKind::Failed);
            }
            Outcome::Cancelled { by, left, why } => {
                self.end_running(PhaseStatus::Cancelled, &format!("cancelled by {by}"));
                let why = why.as_ref().map_or(String::new(), |why| format!(": {why}"));
                let text = match left.as_slice() {
                    [] => format!("cancelled by {by}{why}, nothing was left in place"),
                    left => format!("cancelled by {by}{why}, left in place: {}", left.join("; ")),
                };
                self.line("run", text, EventKind::Warned);
            }
        }
    }

    fn end_running(&mut self, status: PhaseStatus, note: &str) {
        if let Some(phase) = self.running() {
            self.end_phase(phase, status, note);
        }
    }

    fn running(&self) -> Option<Phase> {
        self.view.phases.iter().rev().find(|p| p.status == PhaseStatus::Running).map(|p| p.phase)
    }

    fn phase(&mut self, phase: Phase) -> &mut PhaseView {
        let place = Phase::ALL.iter().position(|p| *p == phase).unwrap_or(0);
        &mut self.view.phases[place]
    }

    fn activity(&mut self, seq: u32) -> Option<&mut ActivityView> {
        self.view.activities.iter_mut().find(|a| a.seq == seq)
    }

    fn line(&mut self, system: &str, text: String, kind: EventKind) {
        let system = system.to_owned();
        self.view.events.push(EventLine { n: self.n, at: self.at, system, text, kind });
    }
}

/// `status of gpu-b07-37: 'staged' → 'active'`, or what of it there is.
/// A file's text stands squeezed in a list of events; its diff has a place of its own.
fn one_line(text: &str) -> Cow<'_, str> {
    if text.contains('\n') { Cow::Owned(neutralize_to(&squeezed(text), 200)) } else { Cow::Borrowed(text) }
}

fn wrote_text(target: &str, what: &str, before: &str, after: &str) -> String {
    let (before, after) = (one_line(before), one_line(after));
    let change = match (&*before, &*after) {
        ("", "") => String::new(),
        ("", after) => format!(": {after}"),
        (before, "") => format!(": {before} removed"),
        (before, after) => format!(": {before} → {after}"),
    };
    if target.is_empty() { format!("{what}{change}") } else { format!("{what} of {target}{change}") }
}

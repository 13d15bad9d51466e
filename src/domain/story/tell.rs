//! Tells a story from records. What a record means for the run as a whole is the fold's; what belongs to the story alone
//! is taken here: waits with their length, interruptions, and every step with its requests.

use jiff::Timestamp;

use super::{EXPORT, Interruption, Moment, MomentKind, Routed, Step, StepOutcome, Story, seconds, snapshot};
use crate::domain::event::{Body, Event, Observation, Outcome, RunRecord, WaitKind};
use crate::domain::phase::Phase;
use crate::domain::run_view::{RunView, activity_words};

pub(super) fn tell(records: &[RunRecord]) -> Option<Story> {
    let Some(Body::Journal(Event::Submitted { workflow, request })) = records.first().map(|first| &first.body) else {
        return None;
    };
    let mut teller = Teller::default();
    records.iter().for_each(|record| teller.take(record));
    let Teller { view, timeline, interruptions, steps, .. } = teller;
    let (gates, options, budgets) = snapshot(request);
    let left = match &view.outcome {
        Some(Outcome::Cancelled { left, .. }) => left.clone(),
        _ => Vec::new(),
    };
    Some(Story {
        export: EXPORT,
        run: view.run?,
        workflow: workflow.clone(),
        host: request.host.clone(),
        netbox_id: request.netbox_id,
        site: request.site.clone(),
        device_class: request.device_class.clone(),
        status: view.state(),
        submitted_at: request.submitted_at,
        submitted_by: request.submitted_by.clone(),
        finished_at: view.finished_at,
        last_at: view.last_at?,
        retry_of: request.retry_of,
        retried_by: Vec::new(),
        params: request.params.clone(),
        gates,
        options,
        budgets,
        routing: Routed {
            ironic: request.routing.resolve(request.device_class.as_deref()).map(str::to_owned),
            by_class: request.routing.by_class.clone(),
        },
        timeline,
        interruptions,
        steps,
        result: view.result().cloned(),
        failure: view.failure().cloned(),
        left,
        phases: view.phases,
        changes: view.writes,
        guards: view.guards,
        inspection: view.verification,
        states: view.states,
        cleaning: view.cleaning,
    })
}

#[derive(Default)]
struct Teller {
    view: RunView,
    timeline: Vec<Moment>,
    interruptions: Vec<Interruption>,
    steps: Vec<Step>,
    /// The wait that is under way: what it is, and its place in the timeline.
    wait: Option<((WaitKind, Phase, Timestamp), usize)>,
}

impl Teller {
    fn take(&mut self, record: &RunRecord) {
        if let Body::Observation(Observation::Resumed { by }) = &record.body {
            self.interrupted(record, by);
            self.view.apply(record);
            self.view.events.clear();
            return;
        }
        self.view.apply(record);
        if let Body::Observation(Observation::PhaseStarted { phase, attempt: 1 }) = &record.body {
            self.moment(record, MomentKind::Begun, phase.label(), "begins".to_owned());
        }
        let finished = matches!(record.body, Body::Journal(Event::Finished { .. }));
        for line in std::mem::take(&mut self.view.events) {
            let text = match &self.view.outcome {
                // Its sentence stands where it came up, and in the section of its own.
                Some(Outcome::Failed { failure }) if finished => format!("failed: {}", failure.code),
                _ => line.text,
            };
            self.moment(record, line.kind.into(), &line.system, text);
        }
        if let Body::Observation(Observation::PhaseDone { phase, .. }) = &record.body
            && let Some(began) = self.view.phase_of(*phase).started_at
            && let Some(last) = self.timeline.last_mut()
        {
            last.took_s = Some(seconds(began, record.at));
        }
        self.waited(record);
        self.stepped(record);
    }

    fn moment(&mut self, record: &RunRecord, kind: MomentKind, place: &str, text: String) {
        let (n, at, place) = (record.n, record.at, place.to_owned());
        self.timeline.push(Moment { n, at, kind, place, text, took_s: None, looks: None });
    }

    /// One line for all timers of a wait, at the time when it began.
    fn waited(&mut self, record: &RunRecord) {
        let now = self.view.wait.as_ref().map(|wait| (wait.reason.kind, wait.reason.phase, wait.since));
        if let Some((kept, place)) = self.wait
            && now != Some(kept)
        {
            self.timeline[place].took_s = Some(seconds(kept.2, record.at));
            self.wait = None;
        }
        if let Body::Journal(Event::TimerSet { reason, .. }) = &record.body
            && let Some(now) = now
        {
            let place = match self.wait {
                Some((_, place)) => place,
                None => {
                    self.moment(record, MomentKind::Waited, reason.phase.label(), String::new());
                    self.timeline.len() - 1
                }
            };
            self.timeline[place].text = reason.text.clone();
            self.wait = Some((now, place));
        }
        if let (Body::Journal(Event::TimerFired { .. }), Some((_, place))) = (&record.body, self.wait) {
            *self.timeline[place].looks.get_or_insert(0) += 1;
        }
    }

    fn interrupted(&mut self, record: &RunRecord, by: &str) {
        let Some(last_at) = self.view.last_at else { return };
        let during = match (self.view.activity(), &self.view.wait, self.view.phase()) {
            (Some(activity), ..) => activity_words(&activity.name).to_owned(),
            (None, Some(wait), _) => format!("waiting: {}", wait.reason.text),
            (None, None, Some(phase)) => format!("in {}", phase.phase.label()),
            (None, None, None) => "queued".to_owned(),
        };
        let away_s = seconds(last_at, record.at);
        let text = format!("interrupted while {during}; resumed by {by}");
        self.moment(record, MomentKind::Interrupted, "run", text);
        if let Some(last) = self.timeline.last_mut() {
            (last.at, last.took_s) = (last_at, Some(away_s));
        }
        self.interruptions.push(Interruption { last_at, resumed_at: record.at, away_s, by: by.to_owned(), during });
    }

    fn stepped(&mut self, record: &RunRecord) {
        let at = record.at;
        match &record.body {
            Body::Journal(Event::ActivityScheduled { seq, name, phase, .. }) => self.steps.push(Step {
                seq: *seq,
                name: name.clone(),
                phase: *phase,
                began_at: at,
                ended_at: None,
                outcome: StepOutcome::Open,
                starts: 0,
                failures: Vec::new(),
                requests: Vec::new(),
                requests_more: 0,
            }),
            Body::Journal(Event::ActivityDone { seq, .. }) => self.ended(*seq, at, StepOutcome::Done),
            Body::Journal(Event::ActivityCancelled { seq }) => self.ended(*seq, at, StepOutcome::Cancelled),
            Body::Journal(Event::ActivityFailed { seq, failure }) => {
                self.ended(*seq, at, StepOutcome::Failed);
                self.step(*seq, |step| step.failures.push((**failure).clone()));
            }
            Body::Observation(Observation::Attempt { seq, .. }) => self.step(*seq, |step| step.starts += 1),
            Body::Observation(Observation::AttemptFailed { seq, failure, .. }) => {
                self.step(*seq, |step| step.failures.push((**failure).clone()))
            }
            Body::Observation(Observation::Requests { seq, asked, more, .. }) => self.step(*seq, |step| {
                step.requests.extend(asked.iter().cloned());
                step.requests_more += more;
            }),
            Body::Journal(_) | Body::Observation(_) => {}
        }
    }

    fn ended(&mut self, seq: u32, at: Timestamp, outcome: StepOutcome) {
        self.step(seq, |step| (step.ended_at, step.outcome) = (Some(at), outcome));
    }

    fn step(&mut self, seq: u32, change: impl FnOnce(&mut Step)) {
        // The newest are at the end, and most records speak of those.
        if let Some(step) = self.steps.iter_mut().rev().find(|step| step.seq == seq) {
            change(step);
        }
    }
}

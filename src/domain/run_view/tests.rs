//! A run's story, record by record, and what the views make of it.

use std::time::Duration;

use super::*;
use crate::domain::event::{Body, Event, Observation, WaitKind};
use crate::domain::failure::FailureCode;
use crate::domain::link::{LinkReading, LinkState};

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(1_800_000_000 + second).unwrap()
}

struct Story {
    run: RunId,
    n: u64,
    records: Vec<RunRecord>,
}

impl Story {
    fn new() -> Self {
        Story { run: RunId(uuid::Uuid::from_u128(7)), n: 0, records: Vec::new() }
    }

    fn push(&mut self, second: i64, body: Body) -> &mut Self {
        self.records.push(RunRecord { run: self.run, n: self.n, at: at(second), body });
        self.n += 1;
        self
    }

    fn event(&mut self, second: i64, event: Event) -> &mut Self {
        self.push(second, Body::Journal(event))
    }

    fn saw(&mut self, second: i64, observation: Observation) -> &mut Self {
        self.push(second, Body::Observation(observation))
    }

    fn activity(&mut self, second: i64, seq: u32, name: &str, phase: Phase) -> &mut Self {
        self.event(second, Event::ActivityScheduled { seq, name: name.into(), phase, input: serde_json::Value::Null })
    }

    fn wait(&mut self, second: i64, seq: u32, secs: i64, kind: WaitKind) -> &mut Self {
        let reason = WaitReason { phase: Phase::Inspection, kind, text: "a link".into(), gives_up_at: Some(at(900)) };
        self.event(second, Event::TimerSet { seq, until: at(second + secs), reason })
    }

    fn view(&self) -> RunView {
        RunView::of(&self.records)
    }
}

fn link(name: &str, state: LinkState) -> LinkReading {
    LinkReading { interface: name.into(), mac: None, state, slot: None, cable: None, raw: None }
}

fn cables_wrong() -> Failure {
    Failure::new(FailureCode::CablesWrong, Phase::Inspection, "eth0 sees 'b'", "move the cable")
}

#[test]
fn an_empty_run_is_queued_and_the_first_phase_sets_it_running() {
    let mut story = Story::new();
    assert_eq!(story.view().state(), RunState::Queued);
    story.saw(0, Observation::PhaseStarted { phase: Phase::ResolveIronicInstance, attempt: 1 });
    let view = story.view();
    assert_eq!(view.state(), RunState::Running);
    assert_eq!(view.phase().unwrap().phase, Phase::ResolveIronicInstance);
}

#[test]
fn a_record_that_was_applied_changes_nothing_when_it_comes_again() {
    let mut story = Story::new();
    story
        .saw(0, Observation::PhaseStarted { phase: Phase::Dhcp, attempt: 1 })
        .saw(3, Observation::PhaseDone { phase: Phase::Dhcp, note: "6 lines".into() });
    let mut view = story.view();
    let before = view.clone();
    for record in &story.records {
        assert!(!view.apply(record));
    }
    assert_eq!(view, before);
    let phase = view.phase_of(Phase::Dhcp);
    assert_eq!((phase.status, phase.note.as_str()), (PhaseStatus::Done, "6 lines"));
    assert_eq!((phase.started_at, phase.ended_at), (Some(at(0)), Some(at(3))));
}

#[test]
fn a_warning_outlives_the_good_end_of_its_phase() {
    let mut story = Story::new();
    let phase = Phase::PlatformClass;
    story
        .saw(0, Observation::PhaseStarted { phase, attempt: 1 })
        .saw(1, Observation::Warned { phase, message: "NetBox has another key".into() })
        .saw(2, Observation::PhaseDone { phase, note: "kept".into() });
    let view = story.view();
    assert_eq!((view.phase_of(phase).status, view.phase_of(phase).note.as_str()), (PhaseStatus::Warned, "kept"));
    assert_eq!(view.warnings().collect::<Vec<_>>(), [(phase, "NetBox has another key")]);
}

#[test]
fn a_warning_in_the_midst_of_a_phase_ends_nothing() {
    let mut story = Story::new();
    let phase = Phase::Inspection;
    story
        .saw(0, Observation::PhaseStarted { phase, attempt: 1 })
        .wait(1, 1, 5, WaitKind::Inspection)
        .saw(2, Observation::Warned { phase, message: "attempt 1 of 3: inspect failed".into() });
    let view = story.view();
    assert_eq!((view.phase_of(phase).status, view.phase_of(phase).ended_at), (PhaseStatus::Running, None));
    assert!(view.wait.is_some());
}

#[test]
fn an_activity_shows_its_attempts_and_the_pause_before_the_next() {
    let mut story = Story::new();
    story
        .activity(0, 1, "bmc.configure", Phase::Bmc)
        .saw(0, Observation::Attempt { seq: 1, name: "bmc.configure".into(), attempt: 1, max_attempts: 3 })
        .saw(9, Observation::AttemptFailed { seq: 1, attempt: 1, failure: Box::new(cables_wrong()), retry_at: at(11) });
    let view = story.view();
    assert_eq!(view.phase_of(Phase::Bmc).status, PhaseStatus::Running);
    assert_eq!(view.activity().unwrap().retry.as_ref().unwrap().at, at(11));
    story.saw(11, Observation::Attempt { seq: 1, name: "bmc.configure".into(), attempt: 2, max_attempts: 3 });
    let view = story.view();
    let activity = view.activity().unwrap();
    assert_eq!((activity.attempt, activity.max_attempts, &activity.retry), (2, 3, &None));
    story.event(12, Event::ActivityDone { seq: 1, output: serde_json::Value::Null });
    assert!(story.view().activity().is_none());
}

#[test]
fn a_wait_keeps_its_beginning_over_all_its_timers_and_while_the_run_looks() {
    let mut story = Story::new();
    story.saw(0, Observation::PhaseStarted { phase: Phase::Inspection, attempt: 1 });
    for round in 0..3 {
        let (second, seq) = (10 * round, 10 * round as u32);
        story
            .wait(second, seq, 5, WaitKind::LinkGuard)
            .event(second + 5, Event::TimerFired { seq })
            .activity(second + 5, seq + 1, "ironic.look", Phase::Inspection)
            .event(second + 6, Event::ActivityDone { seq: seq + 1, output: serde_json::Value::Null })
            .activity(second + 6, seq + 2, "bmc.read_links", Phase::Inspection)
            .event(second + 7, Event::ActivityDone { seq: seq + 2, output: serde_json::Value::Null });
        let wait = story.view().wait.unwrap();
        assert_eq!((wait.since, wait.until), (at(0), None));
    }
    story.activity(40, 90, "ironic.verify", Phase::Inspection);
    assert_eq!(story.view().wait, None, "three activities without a timer are no look any more");
}

#[test]
fn a_link_that_came_and_went_is_told_with_its_times() {
    let mut story = Story::new();
    story.saw(0, Observation::PhaseStarted { phase: Phase::Inspection, attempt: 1 });
    let states = [LinkState::Down, LinkState::Up, LinkState::Up, LinkState::Down, LinkState::Down];
    for (n, state) in states.into_iter().enumerate() {
        let readings = vec![link("eth0", LinkState::Down), link("eth1", state)];
        let second = 5 * n as i64;
        story.saw(second, Observation::Links { phase: Phase::Inspection, readings, budget_left_s: 300 - 5 * n as u64 });
    }
    let view = story.view();
    let guard = view.guard().unwrap();
    assert_eq!((guard.budget_s, guard.budget_left_s, guard.read_at), (300, 280, at(20)));
    let eth1 = &guard.links[1];
    assert_eq!(
        eth1.spans.iter().map(|s| s.state).collect::<Vec<_>>(),
        [LinkState::Down, LinkState::Up, LinkState::Down]
    );
    assert_eq!(eth1.was_up_s(), Some(10));
    assert_eq!(guard.links[0].was_up_s(), None);
    assert_eq!(eth1.state_at(at(7)), Some(LinkState::Up));
    assert_eq!(eth1.state_at(at(-1)), None);
    assert!(view.events.iter().any(|e| e.text == "eth1 is DOWN after 10s UP"), "{:?}", view.events);
}

#[test]
fn a_second_attempt_gets_a_guard_of_its_own() {
    let mut story = Story::new();
    let phase = Phase::Cleaning;
    let look = |left| Observation::Links { phase, readings: vec![link("eth0", LinkState::Down)], budget_left_s: left };
    story
        .saw(0, Observation::PhaseStarted { phase, attempt: 1 })
        .saw(1, look(300))
        .saw(6, look(295))
        .saw(60, Observation::PhaseStarted { phase, attempt: 2 })
        .saw(61, look(290));
    let view = story.view();
    assert_eq!(view.guards.iter().map(|g| (g.attempt, g.over)).collect::<Vec<_>>(), [(1, true), (2, false)]);
    assert_eq!(view.phase_of(phase).started_at, Some(at(0)));
}

#[test]
fn cleaning_keeps_the_states_and_the_reason_of_a_failed_clean() {
    let mut story = Story::new();
    let phase = Phase::Cleaning;
    let node = |state: &str, error: Option<&str>| Observation::Node {
        state: state.into(),
        power: Power::On,
        clean_step: None,
        reservation: None,
        last_error: error.map(str::to_owned),
    };
    let look = |attempt, second: i64, pause| Observation::Cleaning {
        attempt,
        max_attempts: 3,
        next_look_at: at(second + pause),
        deadline: at(14_400),
    };
    story.saw(0, Observation::PhaseStarted { phase, attempt: 1 });
    story.saw(1, node("cleaning", None)).saw(1, look(1, 1, 5));
    story.saw(6, node("clean wait", None)).saw(6, look(1, 6, 10));
    story.saw(16, node("clean wait", None)).saw(16, look(1, 16, 20));
    story.saw(36, node("clean failed", Some("disk nvme3 did not answer")));
    story.saw(40, node("cleaning", None)).saw(40, look(2, 40, 5));
    let view = story.view();
    let cleaning = view.cleaning.as_ref().unwrap();
    assert_eq!((cleaning.attempt, cleaning.max_attempts), (2, 3));
    assert_eq!(cleaning.pauses_s, [5]);
    assert_eq!(cleaning.last_failure.as_deref(), Some("disk nvme3 did not answer"));
    let states: Vec<_> = view.states.iter().map(|s| (s.state.as_str(), s.since, s.until)).collect();
    assert_eq!(
        states,
        [
            ("cleaning", at(1), at(6)),
            ("clean wait", at(6), at(36)),
            ("clean failed", at(36), at(40)),
            ("cleaning", at(40), at(40)),
        ]
    );
}

#[test]
fn a_failed_run_ends_its_phase_and_everything_under_way() {
    let mut story = Story::new();
    story
        .saw(0, Observation::PhaseStarted { phase: Phase::Inspection, attempt: 1 })
        .activity(1, 1, "ironic.verify", Phase::Inspection)
        .event(2, Event::Finished { outcome: Outcome::Failed { failure: Box::new(cables_wrong()) } });
    let view = story.view();
    assert_eq!(view.state(), RunState::Failed);
    assert_eq!(view.failure().unwrap().code, FailureCode::CablesWrong);
    assert_eq!(view.phase_of(Phase::Inspection).status, PhaseStatus::Failed);
    assert_eq!((view.activities.len(), &view.wait, view.finished_at), (0, &None, Some(at(2))));
}

#[test]
fn a_cancel_is_shown_at_once_and_then_as_the_outcome() {
    let mut story = Story::new();
    story
        .saw(0, Observation::PhaseStarted { phase: Phase::Cleaning, attempt: 1 })
        .event(5, Event::CancelRequested { by: "jo".into() });
    assert_eq!(story.view().state(), RunState::Cancelling);
    let left = vec!["the node is manageable".into()];
    story.event(6, Event::Finished { outcome: Outcome::Cancelled { by: "jo".into(), left, why: None } });
    let view = story.view();
    assert_eq!(view.state(), RunState::Cancelled);
    assert_eq!(view.phase_of(Phase::Cleaning).status, PhaseStatus::Cancelled);
}

#[test]
fn a_view_survives_a_round_through_json() {
    let mut story = Story::new();
    story.saw(0, Observation::PhaseStarted { phase: Phase::Inspection, attempt: 1 }).wait(
        1,
        1,
        Duration::from_secs(5).as_secs() as i64,
        WaitKind::Inspection,
    );
    let view = story.view();
    let text = serde_json::to_string(&view).unwrap();
    assert_eq!(serde_json::from_str::<RunView>(&text).unwrap(), view);
}

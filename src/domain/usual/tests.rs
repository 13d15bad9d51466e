//! What is learned from a run, and what the figures are of it.

use proptest::prelude::*;

use super::*;
use crate::domain::event::EnrollResult;
use crate::domain::failure::{Failure, FailureCode};
use crate::domain::ids::RunId;
use crate::domain::verify::Verification;

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(1_800_000_000 + second).unwrap()
}

fn kind(class: &str, device_type: &str, site: &str) -> Kind {
    let some = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
    Kind { platform_class: some(class), device_type: some(device_type), site: site.to_owned() }
}

fn took(kind: &Kind, second: i64, seconds: u64) -> Took {
    Took { part: Part::Phase(Phase::Bmc), kind: kind.clone(), at: at(second), seconds }
}

fn records(bodies: Vec<(i64, Body)>) -> Vec<RunRecord> {
    let run = RunId(uuid::Uuid::from_u128(7));
    let record = |(n, (second, body))| RunRecord { run, n, at: at(second), body };
    (0..).zip(bodies).map(record).collect()
}

fn saw(second: i64, observation: Observation) -> (i64, Body) {
    (second, Body::Observation(observation))
}

fn begins(second: i64, phase: Phase) -> (i64, Body) {
    saw(second, Observation::PhaseStarted { phase, attempt: 1 })
}

fn done(second: i64, phase: Phase) -> (i64, Body) {
    saw(second, Observation::PhaseDone { phase, note: String::new() })
}

fn judged(second: i64, fresh: bool) -> (i64, Body) {
    let verification = Verification { checks: vec![], inspected_at: None, diagnosis: None, place: None };
    saw(second, Observation::Verified { verification, fresh })
}

fn succeeded(second: i64, already_enrolled: bool) -> (i64, Body) {
    let result = EnrollResult { node: None, ironic: None, platform_class: None, already_enrolled, qualifying: true };
    (second, Body::Journal(Event::Finished { outcome: Outcome::Succeeded { result: Some(result) } }))
}

fn failed(second: i64) -> (i64, Body) {
    let failure = Box::new(Failure::new(FailureCode::CablesWrong, Phase::Inspection, "m", "a"));
    (second, Body::Journal(Event::Finished { outcome: Outcome::Failed { failure } }))
}

fn lesson(bodies: Vec<(i64, Body)>) -> Vec<(Part, u64)> {
    learned(&records(bodies)).into_iter().map(|(part, _, seconds)| (part, seconds)).collect()
}

#[test]
fn a_run_teaches_what_its_phases_took_and_what_all_of_it_did_without_the_queue() {
    let told = lesson(vec![
        (0, Body::Journal(Event::CancelRequested { by: "kim".into() })),
        begins(60, Phase::Bmc),
        // A rerun is still the same phase.
        begins(90, Phase::Bmc),
        done(160, Phase::Bmc),
        begins(160, Phase::Inspection),
        judged(500, true),
        done(700, Phase::Inspection),
        succeeded(720, false),
    ]);
    let inspection = Part::Phase(Phase::Inspection);
    assert_eq!(told, [(Part::Phase(Phase::Bmc), 100), (inspection, 540), (Part::Run, 660)]);
}

#[test]
fn a_failed_run_teaches_the_phases_that_it_succeeded_in_and_one_under_way_nothing() {
    let story = vec![begins(0, Phase::Bmc), done(100, Phase::Bmc), begins(100, Phase::Inspection), judged(300, true)];
    assert_eq!(lesson(story.clone()), []);
    let told = lesson([story, vec![failed(400)]].concat());
    assert_eq!(told, [(Part::Phase(Phase::Bmc), 100)]);
}

#[test]
fn time_in_which_nobody_drove_the_run_and_what_was_done_before_teach_nothing() {
    let away = lesson(vec![
        begins(0, Phase::Dhcp),
        done(4, Phase::Dhcp),
        begins(4, Phase::Bmc),
        saw(9000, Observation::Resumed { by: "muster".into() }),
        begins(9001, Phase::Bmc),
        done(9100, Phase::Bmc),
        begins(9100, Phase::Inspection),
        judged(9200, true),
        done(9300, Phase::Inspection),
        succeeded(9300, false),
    ]);
    assert_eq!(away, [(Part::Phase(Phase::Dhcp), 4), (Part::Phase(Phase::Inspection), 200)]);
    let at_hand = lesson(vec![
        begins(0, Phase::Inspection),
        judged(3, false),
        done(4, Phase::Inspection),
        begins(4, Phase::Cleaning),
        done(90, Phase::Cleaning),
        succeeded(90, false),
    ]);
    assert_eq!(at_hand, [(Part::Phase(Phase::Cleaning), 86)]);
    let before = vec![begins(0, Phase::Bmc), done(1, Phase::Bmc), judged(1, true), succeeded(2, true)];
    assert_eq!(lesson(before), []);
}

#[test]
fn too_few_runs_say_nothing_and_the_most_alike_that_say_something_are_meant() {
    let (b300, gb300) = (kind("B300", "Dell XE9680", "osl1"), kind("GB300", "Lenovo HG635N", "osl1"));
    let bmc = Part::Phase(Phase::Bmc);
    let two = Usual::of(&[took(&gb300, 0, 10), took(&gb300, 1, 20)]);
    assert_eq!(two.figure(bmc, &gb300), None);
    let mut known: Vec<Took> =
        (0..3).map(|n| took(&gb300, n, 100)).chain((3..5).map(|n| took(&b300, n, 400))).collect();
    let figure = |known: &[Took], kind: &Kind| Usual::of(known).figure(bmc, kind).unwrap();
    assert_eq!(figure(&known, &gb300), Figure { seconds: 100, runs: 3, like: Like::PlatformClass });
    assert_eq!(figure(&known, &b300), Figure { seconds: 100, runs: 5, like: Like::Site }, "two of its own are too few");
    let elsewhere = kind("", "HPE DL380", "ams2");
    assert_eq!(figure(&known, &elsewhere).like, Like::All);
    known.push(took(&kind("", "Dell XE9680", "ams2"), 9, 600));
    assert_eq!(figure(&known, &b300), Figure { seconds: 400, runs: 3, like: Like::DeviceType });
    assert_eq!(Usual::of(&known).figure(Part::Run, &b300), None, "nothing is known of whole runs");
}

#[test]
fn far_longer_is_twice_as_long_and_more_than_a_moment() {
    let figure = |seconds| Figure { seconds, runs: 5, like: Like::All };
    assert!(!figure(1).is_far_below(20));
    assert!(figure(1).is_far_below(31));
    assert!(!figure(540).is_far_below(1000));
    assert!(figure(540).is_far_below(1080));
}

#[test]
fn every_part_is_found_by_its_name() {
    for part in std::iter::once(Part::Run).chain(Phase::ALL.map(Part::Phase)) {
        assert_eq!(Part::named(part.as_str()), Some(part));
    }
    assert_eq!(Part::named("levitation"), None);
}

proptest! {
    /// One run that hung all night moves a figure by no more than to the next one.
    #[test]
    fn a_figure_lies_among_the_latest_and_no_single_run_carries_it_away(
        mut seconds in proptest::collection::vec(1u64..4000, LEAST..60), outlier in 0usize..60, order in any::<u64>(),
    ) {
        let of = kind("GB300", "Lenovo HG635N", "osl1");
        let part = Part::Phase(Phase::Bmc);
        let figure = |seconds: &[u64]| {
            let mut known: Vec<Took> = (0..).zip(seconds).map(|(second, s)| took(&of, second, *s)).collect();
            // In whatever order they come out of the store.
            let turn = usize::try_from(order % known.len() as u64).unwrap();
            known.rotate_left(turn);
            Usual::of(&known).figure(part, &of).unwrap()
        };
        let latest = &seconds[seconds.len().saturating_sub(LAST)..];
        let (least, most) = (*latest.iter().min().unwrap(), *latest.iter().max().unwrap());
        let before = figure(&seconds);
        prop_assert!((least..=most).contains(&before.seconds));
        prop_assert_eq!(before.runs, latest.len());
        prop_assert_eq!(Usual::of(&(0..).zip(&seconds).map(|(n, s)| took(&of, n, *s)).collect::<Vec<_>>()).figures(&of).get(part), Some(before));
        let hangs = outlier % seconds.len();
        seconds[hangs] = 1_000_000;
        prop_assert!(figure(&seconds).seconds <= most.max(4000), "{:?}", figure(&seconds));
    }

    #[test]
    fn what_is_far_longer_stays_so_when_it_goes_on(usual in 0u64..10_000, seconds in 0u64..40_000, more in 0u64..1000) {
        if is_far(usual, seconds) {
            prop_assert!(is_far(usual, seconds + more));
            prop_assert!(!is_far(seconds, usual));
        }
    }
}

//! What stands beside what, and what is marked.

use proptest::prelude::*;

use super::*;
use crate::domain::event::{Body, Event, Observation, Outcome, RunRecord};
use crate::domain::failure::{Failure, FailureCode};
use crate::domain::link::{CableEnd, LinkReading, LinkState};
use crate::domain::phase::Phase;
use crate::domain::verify::Verification;

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(1_800_000_000 + second).unwrap()
}

fn view(bodies: Vec<(i64, Body)>) -> RunView {
    let run = RunId(uuid::Uuid::from_u128(7));
    let records: Vec<RunRecord> =
        (0..).zip(bodies).map(|(n, (second, body))| RunRecord { run, n, at: at(second), body }).collect();
    RunView::of(&records)
}

fn saw(second: i64, observation: Observation) -> (i64, Body) {
    (second, Body::Observation(observation))
}

fn begins(second: i64, phase: Phase, attempt: u32) -> (i64, Body) {
    saw(second, Observation::PhaseStarted { phase, attempt })
}

fn done(second: i64, phase: Phase) -> (i64, Body) {
    saw(second, Observation::PhaseDone { phase, note: String::new() })
}

fn looked(second: i64, state: LinkState) -> (i64, Body) {
    let cable = CableEnd { switch: "leaf-1".into(), port: "swp1".into(), label: None, color: None };
    let reading = LinkReading { interface: "eth0".into(), mac: None, state, slot: None, cable: Some(cable), raw: None };
    saw(second, Observation::Links { phase: Phase::Inspection, readings: vec![reading], budget_left_s: 300 })
}

fn wrote(second: i64, what: &str, before: &str, after: &str) -> (i64, Body) {
    let observation = Observation::Wrote {
        system: "bmc".into(),
        target: String::new(),
        what: what.into(),
        before: before.into(),
        after: after.into(),
    };
    saw(second, observation)
}

fn check(kind: &str, subject: &str, observed: &str, verdict: Verdict) -> Check {
    Check {
        kind: kind.into(),
        subject: subject.into(),
        expected: "leaf-1 swp1".into(),
        observed: observed.into(),
        verdict,
        rule: String::new(),
        hint: None,
        owner: None,
        action: None,
    }
}

fn judged(second: i64, checks: Vec<Check>) -> (i64, Body) {
    let verification = Verification { checks, inspected_at: None, diagnosis: None, place: None };
    saw(second, Observation::Verified { verification, fresh: true })
}

fn good() -> RunView {
    view(vec![
        begins(0, Phase::Bmc, 1),
        wrote(10, "NTPServers", "[]", "[ntp1]"),
        done(60, Phase::Bmc),
        begins(60, Phase::Inspection, 1),
        looked(70, LinkState::Down),
        looked(90, LinkState::Up),
        judged(500, vec![check("lldp", "eth0", "leaf-1 swp1", Verdict::Pass), check("gpu", "", "8", Verdict::Pass)]),
        done(600, Phase::Inspection),
        (600, Body::Journal(Event::Finished { outcome: Outcome::Succeeded { result: None } })),
    ])
}

fn bad() -> RunView {
    let failure = Failure::new(FailureCode::CablesWrong, Phase::Inspection, "eth0 sees 'leaf-2'", "move the cable");
    view(vec![
        begins(0, Phase::Bmc, 1),
        wrote(10, "BootOrder", "disk", "nic1"),
        done(70, Phase::Bmc),
        begins(70, Phase::Inspection, 1),
        begins(900, Phase::Inspection, 2),
        looked(910, LinkState::Up),
        judged(
            1400,
            vec![
                check("lldp", "eth0", "leaf-2 swp1", Verdict::Fail),
                check("gpu", "", "8", Verdict::Pass),
                check("disk", "nvme0", "3.84 TB", Verdict::Pass),
            ],
        ),
        (1400, Body::Journal(Event::Finished { outcome: Outcome::Failed { failure: Box::new(failure) } })),
    ])
}

fn row<'a>(compared: &'a Comparison, topic: Topic, name: &str) -> &'a Row {
    let section = compared.sections.iter().find(|section| section.topic == topic).unwrap();
    section.rows.iter().find(|row| row.name == name).unwrap_or_else(|| panic!("no '{name}' in {section:#?}"))
}

#[test]
fn a_run_beside_itself_differs_in_nothing() {
    for run in [good(), bad(), RunView::default()] {
        let compared = Comparison::of(&run, &run);
        assert_eq!(compared.differing().0, 0, "{compared:#?}");
        assert!(compared.differing().1 >= 10);
    }
}

#[test]
fn what_differs_is_marked_in_every_part_and_a_few_seconds_are_not() {
    let compared = Comparison::of(&good(), &bad());
    let told = |topic, name: &str| {
        let row = row(&compared, topic, name);
        let text = |cell: &Option<Cell>| cell.as_ref().map_or("–".to_owned(), |cell| cell.text.clone());
        (row.mark, text(&row.left), text(&row.right))
    };
    let is = |mark, left: &str, right: &str| (mark, left.to_owned(), right.to_owned());
    assert_eq!(told(Topic::Run, "outcome"), is(Mark::Differs, "succeeded", "failed"));
    assert_eq!(told(Topic::Run, "duration"), is(Mark::Differs, "10:00", "23:20"));
    assert_eq!(told(Topic::Phases, "bmc"), is(Mark::Same, "1:00 · done", "1:10 · done"));
    let inspection = is(Mark::Differs, "9:00 · done", "22:10 · failed · attempt 2");
    assert_eq!(told(Topic::Phases, "inspection"), inspection);
    assert_eq!(told(Topic::Failure, "code"), is(Mark::OnlyRight, "–", "CABLES_WRONG"));
    let lldp = is(Mark::Differs, "agrees · leaf-1 swp1", "leaf-2 swp1, expected leaf-1 swp1");
    assert_eq!(told(Topic::Inspection, "lldp eth0"), lldp);
    assert_eq!(told(Topic::Inspection, "gpu").0, Mark::Same);
    assert_eq!(told(Topic::Inspection, "disk nvme0"), is(Mark::OnlyRight, "–", "agrees · 3.84 TB"));
    let link = is(Mark::Differs, "DOWN 0:20 → UP · leaf-1 swp1", "UP 0:00 · leaf-1 swp1");
    assert_eq!(told(Topic::Links, "inspection eth0"), link);
    assert_eq!(told(Topic::Changes, "bmc NTPServers"), is(Mark::OnlyLeft, "[] → [ntp1]", "–"));
    assert_eq!(told(Topic::Changes, "bmc BootOrder").0, Mark::OnlyRight);
    assert!(row(&compared, Topic::Phases, "inspection").right.as_ref().is_some_and(|cell| cell.bad));
}

#[test]
fn attempts_of_steps_that_were_tried_again_count() {
    let mut again = good();
    again.phases.iter_mut().find(|phase| phase.phase == Phase::Bmc).unwrap().retries = 2;
    let compared = Comparison::of(&good(), &again);
    let bmc = row(&compared, Topic::Phases, "bmc");
    assert_eq!((bmc.mark, bmc.right.as_ref().unwrap().text.as_str()), (Mark::Differs, "1:00 · done · 2 retries"));
}

#[test]
fn the_second_of_a_name_stands_beside_the_second() {
    let write = |n: i64, after: &str| wrote(n, "tags", "", after);
    let compared = Comparison::of(&view(vec![write(1, "a"), write(2, "b")]), &view(vec![write(1, "a"), write(2, "c")]));
    let marks: Vec<Mark> =
        compared.sections.iter().find(|s| s.topic == Topic::Changes).unwrap().rows.iter().map(|row| row.mark).collect();
    assert_eq!(marks, [Mark::Same, Mark::Differs]);
}

#[test]
fn the_older_one_stands_first() {
    let id = |n| RunId(uuid::Uuid::from_u128(n));
    assert_eq!(older_first((id(2), Some(at(5))), (id(1), Some(at(3)))), [id(1), id(2)]);
    assert_eq!(older_first((id(2), None), (id(1), Some(at(3)))), [id(2), id(1)]);
}

proptest! {
    /// Every part of both runs stands in one row and in one only, in its own order; and from the other side it is the same.
    #[test]
    fn nothing_is_lost_doubled_or_turned_round(
        left in proptest::collection::vec((0u8..6, 0u8..3), 0..12), right in proptest::collection::vec((0u8..6, 0u8..3), 0..12),
    ) {
        let items = |of: &[(u8, u8)]| -> Vec<Item> {
            of.iter().map(|(name, text)| Item::new(format!("n{name}"), format!("t{text}"))).collect()
        };
        let told = rows(items(&left), items(&right));
        let side = |of: fn(&Row) -> &Option<Cell>| -> Vec<(String, String)> {
            told.iter().filter_map(|row| Some((row.name.clone(), of(row).as_ref()?.text.clone()))).collect()
        };
        let names = |of: &[(u8, u8)]| of.iter().map(|(name, text)| (format!("n{name}"), format!("t{text}"))).collect::<Vec<_>>();
        prop_assert_eq!(side(|row| &row.left), names(&left), "the left one keeps its order");
        let (mut there, mut all) = (side(|row| &row.right), names(&right));
        there.sort();
        all.sort();
        prop_assert_eq!(there, all);
        for row in &told {
            let is_same = row.left.is_some() && row.left == row.right;
            prop_assert_eq!(row.mark == Mark::Same, is_same);
            prop_assert_eq!(row.mark == Mark::OnlyLeft, row.right.is_none());
        }
        let count = |told: &[Row], mark| told.iter().filter(|row| row.mark == mark).count();
        let back = rows(items(&right), items(&left));
        for mark in [Mark::Same, Mark::Differs, Mark::OnlyLeft, Mark::OnlyRight] {
            prop_assert_eq!(count(&told, mark), count(&back, mark.mirrored()));
        }
    }
}

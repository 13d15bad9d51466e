//! What is usual, the runs of a host, two runs side by side, and what the live panes of a run have to say at every size.

use muster::domain::event::{Body, Event as Journal, RunRecord};
use muster::domain::run_view::RunState;
use muster::domain::usual::Usual;

use super::world::past::{compare, history, pasts, timeline};
use super::world::{Story, before, good_run, hosts, load, now};
use super::*;

const SIZES: [(u16, u16); 3] = [(60, 20), (100, 32), (200, 60)];

/// The line of the screen that has a text.
#[track_caller]
fn line(model: &Model, text: &str) -> String {
    let screen = screen(model);
    let found = screen.lines().find(|line| line.contains(text));
    found.unwrap_or_else(|| panic!("'{text}' is not on the screen:\n{screen}")).to_owned()
}

/// Proves: U3
#[test]
fn a_run_says_what_is_usual_and_marks_what_takes_far_longer() {
    for (width, height) in SIZES {
        let model = live_run(width, height, "gpu-b07-39");
        assert_shows(&model, "usually 24m");
        assert!(
            screen(&model).lines().any(|l| l.contains("inspection") && l.contains("usually 9m")),
            "{}",
            screen(&model)
        );
        assert!(!screen(&model).contains("longer than usual"), "{}", screen(&model));
        // More than twice what it takes, and no colour is needed to see it.
        let model = live_run(width, height, "gpu-b07-31");
        assert_shows(&model, "! longer than usual: cleaning 41:24, usually 13m");
        let model = live_run(width, height, "gpu-b07-21");
        assert_shows(&model, "! longer than usual: bmc 1:29, usually 40s");
    }
    let model = timeline(100, 32);
    assert!(line(&model, "b07-host.conf uploaded").contains("usually 4s"), "{}", screen(&model));
    assert!(screen(&model).lines().any(|l| l.contains("! usually 13m") && l.contains("longer than usual")));
}

#[test]
fn where_too_little_is_known_nothing_is_said() {
    for (width, height) in SIZES {
        let mut model = live_run(width, height, "gpu-b07-31");
        update(&mut model, Event::Usual(Usual::default()));
        let screen = screen(&model);
        assert!(!screen.contains("usual"), "{screen}");
    }
}

/// Proves: U11
#[test]
fn the_history_of_a_host_has_all_its_runs_and_opens_one_to_look_back_at_it() {
    let mut model = console(100, 32);
    let netbox_id = model.fleet.host().unwrap().device.netbox_id;
    assert_eq!(press(&mut model, "H"), [Effect::LoadHistory { netbox_id }]);
    assert_eq!(here(&model), Where::History);
    assert_shows(&model, "reading the runs of gpu-b07-37");
    update(&mut model, Event::History { netbox_id, runs: Ok(pasts()) });
    let row = line(&model, "CLEAN_FAILED");
    for part in ["✗", "21d ago", "0001f4", "failed", "cleaning", "3", "1:10:15", "jo"] {
        assert!(row.contains(part), "'{part}': {row}");
    }
    assert_shows(&model, "swap the two cables at the host");
    press(&mut model, "G");
    assert_shows(&model, "took 24:40 · usually 24m");
    // A refresh moves no cursor, and a run that came meanwhile stands above.
    let mut more = pasts();
    more.insert(0, more[0].clone());
    more[0].run = run_id(0x4a1);
    update(&mut model, Event::History { netbox_id, runs: Ok(more) });
    assert_eq!(model.history().unwrap().past().unwrap().run, run_id(0x1e3));
    assert_shows(&model, "6 runs");
    assert_eq!(press(&mut model, "enter"), [Effect::LoadRun(run_id(0x1e3))]);
    let host = hosts().into_iter().find(|h| h.device.name == "gpu-b07-37").unwrap();
    let story = Story::of(0x1e3, &host, 2_600_000).prepared().inspected(false).succeeded(1480);
    load(&mut model, &story);
    assert_shows(&model, "run 0001e3 · succeeded");
    assert_eq!(press(&mut model, "["), [Effect::LoadTape(run_id(0x1e3))]);
    // The list is where it was.
    press(&mut model, "H");
    assert_eq!(here(&model), Where::History);
    press(&mut model, "esc");
    assert_eq!(here(&model), Where::Fleet);
}

#[test]
fn a_run_that_begins_or_ends_is_read_into_the_history_that_shows() {
    let mut model = history(100, 32);
    let netbox_id = model.history().unwrap().netbox_id;
    let host = hosts().into_iter().find(|h| h.device.name == "gpu-b07-37").unwrap();
    let records = Story::of(0x5b1, &host, 3).records;
    assert_eq!(update(&mut model, Event::Record(records[0].clone())), [Effect::LoadHistory { netbox_id }]);
    let other = hosts().into_iter().find(|h| h.device.name == "gpu-b07-33").unwrap();
    let records = Story::of(0x5b2, &other, 3).records;
    assert_eq!(update(&mut model, Event::Record(records[0].clone())), []);
    let end = Body::Journal(Journal::Finished {
        outcome: muster::domain::event::Outcome::Cancelled { by: "jo".into(), left: vec![], why: None },
    });
    let end = RunRecord { run: run_id(0x5b1), n: 1, at: now(), body: end };
    assert_eq!(update(&mut model, Event::Record(end)), [Effect::LoadHistory { netbox_id }]);
    assert_eq!(model.runs[&run_id(0x5b1)].state(), RunState::Cancelled);
}

#[test]
fn two_marked_runs_stand_side_by_side_the_older_one_first_and_what_differs_is_marked() {
    for (width, height) in SIZES {
        let mut model = history(width, height);
        press(&mut model, "space G space");
        assert_shows(&model, "2 of 2 marked");
        let wanted = press(&mut model, "c");
        assert!(wanted.contains(&Effect::LoadRun(run_id(0x1e3))), "{wanted:?}");
        assert_shows(&model, "reading run");
        let mut model = compare(width, height);
        let screen = screen(&model);
        let first = screen.find("0001e3").unwrap();
        assert!(screen.find("0003c7").is_some_and(|second| first < second), "the older one first:\n{screen}");
        for _ in 0..5 {
            if !self::screen(&model).contains("≠ inspection") {
                press(&mut model, "ctrl-d");
            }
        }
        let phase = line(&model, "≠ inspection");
        assert!(phase.contains("10:33 · failed") && phase.contains("differs"), "{phase}");
        assert!(line(&model, "✗ run 0003c7").contains("failed"), "{screen}");
        press(&mut model, "G");
        assert!(!self::screen(&model).contains("bmc BootOrder"), "what agrees is folded:\n{}", self::screen(&model));
        press(&mut model, "a G");
        assert_shows(&model, "bmc BootOrder");
        let text = match press(&mut model, "y").as_slice() {
            [Effect::Copy(text)] => text.clone(),
            other => panic!("{other:?}"),
        };
        assert!(text.contains("outcome: 1 succeeded / 2 failed"), "{text}");
        press(&mut model, "esc");
        assert_eq!(here(&model), Where::History);
    }
}

#[test]
fn a_third_mark_takes_the_first_one_off_and_without_marks_the_run_before_is_meant() {
    let mut model = history(100, 32);
    let pair = |model: &Model| model.history().unwrap().pair().map(|(a, b)| (a.run, b.run));
    assert_eq!(pair(&model), Some((run_id(0x3c7), run_id(0x3b2))));
    press(&mut model, "space space space");
    assert_eq!(model.history().unwrap().marks, [run_id(0x3b2), run_id(0x2d8)]);
    press(&mut model, "G");
    assert_eq!(pair(&model), Some((run_id(0x3b2), run_id(0x2d8))));
    let netbox_id = model.history().unwrap().netbox_id;
    update(&mut model, Event::History { netbox_id, runs: Ok(pasts()[..1].to_vec()) });
    assert_eq!(pair(&model), None);
    press(&mut model, "c");
    assert_shows(&model, "there is no other run to put beside this one");
}

/// Proves: L6
#[test]
fn the_link_pane_has_everything_of_a_link_at_every_size() {
    for (width, height) in SIZES {
        let model = live_run(width, height, "gpu-b07-39");
        let screen = screen(&model);
        // As many lines as a link takes here.
        let from = screen.lines().position(|l| l.contains("eth0") && l.contains("▁")).unwrap();
        let until = screen.lines().position(|l| l.contains("eth1") && l.contains("▁")).unwrap();
        let link = screen.lines().skip(from).take(until - from).collect::<Vec<_>>().join("\n");
        let mac = if width == 100 { "9c:6…:01" } else { "9c:6b:00:4a:07:01" };
        for part in ["DOWN", mac, "slot 3 p0", "leaf-b07-1", "swp15", "W-0398", "blue"] {
            assert!(link.contains(part), "'{part}' at {width}×{height}:\n{link}");
        }
        assert!(link.matches('▁').count() >= 3 && link.contains('·'), "the strip, and what is not read yet: {link}");
        for part in ["3:42 left", "read 3s ago"] {
            assert!(screen.contains(part), "'{part}' at {width}×{height}:\n{screen}");
        }
        // The budget runs down by itself between two looks.
        let mut later = model.clone();
        update(&mut later, Event::Tick(model.now.checked_add(Span::new().seconds(3)).unwrap()));
        assert_shows(&later, "3:39 left");
    }
}

/// Proves: L6
#[test]
fn a_link_that_came_and_went_is_told_and_shows_in_its_strip() {
    for (width, height) in SIZES {
        let mut model = live_run(width, height, "gpu-b07-39");
        let view = model.runs[&run_id(0x4f2)].clone();
        let guard = view.guard().unwrap();
        let mut readings: Vec<_> = guard.links.iter().map(|l| l.reading.clone()).collect();
        for (n, (second, state)) in (view.next_n..).zip([(1, "UP"), (5, "DOWN")]) {
            readings[1].state = serde_json::from_value(state.into()).unwrap();
            let seen = muster::domain::event::Observation::Links {
                phase: guard.phase,
                readings: readings.clone(),
                budget_left_s: guard.budget_left_s - second,
            };
            let at = guard.read_at.checked_add(Span::new().seconds(second as i64)).unwrap();
            update(&mut model, Event::Record(RunRecord { run: run_id(0x4f2), n, at, body: Body::Observation(seen) }));
        }
        // The guard has done its work with the first of them; that the link is down again is no secret.
        assert_shows(&model, "was up for 4s");
        assert!(screen(&model).lines().any(|l| l.contains("eth1") && l.contains('█')), "{}", screen(&model));
    }
}

/// Proves: C9
#[test]
fn the_cleaning_pane_has_everything_of_a_clean_at_every_size() {
    for (width, height) in SIZES {
        let model = live_run(width, height, "gpu-b07-31");
        for part in [
            "clean wait",
            "step erase_devices_metadata",
            "attempt 2 of 3",
            "next look in 0:20",
            "looks after 5s › 10s › 20s › 1m",
            "52:52 left",
            "last failure: erase_devices_metadata: disk nvme3 did no",
        ] {
            assert_shows(&model, part);
        }
        // The strip of states ends with where it is now.
        let strip = line(&model, "manageable 10s ›");
        assert!(
            strip.contains("› cleaning 20s")
                && (width == 60 || strip.contains("clean failed 10s"))
                && strip.trim_end_matches(['│', ' ']).contains("clean wait"),
            "{strip}"
        );
    }
}

/// Proves: V13
#[test]
fn each_check_has_both_sides_its_verdict_and_its_rule_and_all_of_it_can_be_taken_along() {
    for (width, height) in SIZES {
        let mut model = failed_run(width, height);
        press(&mut model, "tab shift-tab g g");
        let first = screen(&model);
        let place = |text: &str| first.find(text).unwrap_or_else(|| panic!("no '{text}':\n{first}"));
        assert!(first.contains("2 of 31 differ"), "{first}");
        let mut at = place("✗ lldp eth0");
        for part in ["leaf-b07-1 swp14", "leaf-b07-2 swp14", "V8: switch and port equal"] {
            at += first[at..].find(part).unwrap_or_else(|| panic!("'{part}' after lldp at {width}:\n{first}"));
        }
        // What differs stands before what was not reported, and that before what agrees.
        press(&mut model, "a");
        let rows = muster::tui::model::run_screen::diff_rows(
            &model.open_run().unwrap().verification.as_ref().unwrap().verification,
            true,
        );
        assert!(rows.len() >= 31);
        let mut seen = String::new();
        for _ in 0..40 {
            seen.push_str(&screen(&model));
            press(&mut model, "j");
        }
        let order = ["lldp eth1", "carrier eth3", "cpu cores"].map(|text| seen.find(text).unwrap());
        assert!(order.is_sorted(), "{order:?}");
        assert!(seen.contains("not reported") && seen.contains("V2: cores of all sockets"), "{seen}");
        let text = match press(&mut model, "y").as_slice() {
            [Effect::Copy(text)] => text.clone(),
            other => panic!("{other:?}"),
        };
        let all =
            text.lines().filter(|l| ["differs  ", "agrees  ", "passes  "].iter().any(|v| l.starts_with(v))).count();
        assert_eq!(all, 31, "{text}");
        assert!(
            text.contains("passes  carrier eth3: expected up, observed not reported (V1: not reported passes)"),
            "{text}"
        );
        assert_eq!(press(&mut model, "E"), [Effect::Export(run_id(0x3c7))]);
    }
}

#[test]
fn a_run_that_is_compared_stays_while_others_are_forgotten() {
    let mut model = compare(100, 32);
    for n in 0..80 {
        let host = hosts()[n as usize % 10].clone();
        load(&mut model, &Story::of(0x9000 + n, &host, 5000).prepared().succeeded(1480));
    }
    assert!(model.comparison().is_some());
    assert!(before(0) <= model.now);
}

#[test]
fn a_good_run_has_no_failure_to_compare_and_a_run_beside_itself_differs_in_nothing() {
    let model = good_run(100, 32);
    let view = model.open_run().unwrap();
    let compared = muster::domain::compare::Comparison::of(view, view);
    assert_eq!(compared.differing().0, 0);
}

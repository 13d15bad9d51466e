//! What the panes of a run say while the workflow is under way: drawn from what it reports, at the second at which it does.

use std::cell::Cell;

use jiff::{SignedDuration, Timestamp};
use muster::domain::event::{Body, Event as Journal, Observation, RunRecord, WaitKind};
use muster::domain::ids::RunId;
use muster::tui::event::Event;
use muster::tui::glyphs::Glyphs;
use muster::tui::model::run_screen::RunScreen;
use muster::tui::model::{Model, Screen};
use muster::tui::theme::Theme;
use muster::tui::update::update;
use muster::tui::view::{LogPane, draw};
use muster::tui::widgets::pen::Skin;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use uuid::Uuid;

use super::good_world::{good_world, links, look, managed};
use super::script::{Played, play, request, start};

/// The run's screen as it is at a moment, with all that was reported until then.
fn screen(played: &Played, at: Timestamp) -> String {
    let run = RunId(Uuid::from_u128(7));
    let submitted = Journal::Submitted { workflow: "enroll".into(), request: Box::new(request()) };
    let reports = played.reports.iter().cloned().map(Body::Observation).zip(&played.reported_at);
    let bodies = std::iter::once((Body::Journal(submitted), start())).chain(reports.map(|(body, at)| (body, *at)));
    let records = (0..).zip(bodies).map(|(n, (body, at))| RunRecord { run, n, at, body });
    let records: Vec<RunRecord> = records.take_while(|record| record.at <= at).collect();
    let mut model = Model::new(at, 100, 32);
    model.screens.push(Screen::Run(RunScreen::new(run, "gpu-b07-37")));
    update(&mut model, Event::RunLoaded { run, records });
    let mut buf = Buffer::empty(Rect::new(0, 0, 100, 32));
    let skin = Skin { theme: Theme::named("mono").unwrap(), glyphs: Glyphs { ascii: false } };
    draw(&model, &skin, &LogPane::new(false), &mut buf);
    let rows = buf.content.chunks(100);
    rows.map(|row| row.iter().map(|cell| cell.symbol()).collect::<String>()).collect::<Vec<_>>().join("\n")
}

fn line<'a>(screen: &'a str, text: &str) -> &'a str {
    screen.lines().find(|line| line.contains(text)).unwrap_or_else(|| panic!("no '{text}':\n{screen}"))
}

/// At whatever moment between two looks the BMC begins to report it, and however long its answers take.
///
/// Proves: L6
#[test]
fn a_link_that_comes_up_stands_in_the_pane_within_one_poll() {
    let poll = SignedDuration::from_secs(5);
    // How long an answer takes in this world.
    let answer = SignedDuration::from_millis(200);
    for tenths in (600..1100).step_by(17) {
        let up_at = SignedDuration::from_millis(tenths * 100);
        let world = managed(good_world(move |name, _, since| match name {
            "bmc.read_links" if since < up_at => Some(Ok(links(&["DOWN", "DOWN"]))),
            "bmc.read_links" => Some(Ok(links(&["DOWN", "UP"]))),
            "ironic.look" if since < up_at + poll * 2 => Some(Ok(look("inspect wait", "on"))),
            _ => None,
        }));
        let mut asked = request();
        asked.params.force_inspection = true;
        let played = play(asked, None, world);
        let before = screen(&played, start() + up_at - answer);
        assert!(line(&before, "eth1 ").contains("DOWN"), "{before}");
        let within = screen(&played, start() + up_at + poll + answer);
        assert!(line(&within, "eth1 ").contains("UP"), "up at {up_at:?}:\n{within}");
        assert!(line(&within, "eth1 ").contains('█'), "the strip shows it too:\n{within}");
        assert!(within.contains("a link is up"), "{within}");
    }
}

/// Proves: C9
#[test]
fn the_cleaning_pane_counts_down_to_each_look_and_to_the_deadline() {
    let cleaning = Cell::new(None);
    let world = good_world(move |name, _, since| {
        if name == "ironic.provide" {
            cleaning.set(Some(since));
        }
        let began = cleaning.get().filter(|_| name == "ironic.look")?;
        let mut seen =
            look(if since - began < SignedDuration::from_secs(10) { "cleaning" } else { "clean wait" }, "on");
        seen["clean_step"] = "erase_devices_metadata".into();
        Some(Ok(seen))
    });
    let played = play(request(), None, world);
    let looks = played.reports.iter().zip(&played.reported_at).filter_map(|(report, at)| match report {
        Observation::Cleaning { next_look_at, deadline, .. } => Some((*at, *next_look_at, *deadline)),
        _ => None,
    });
    let pauses: Vec<i64> =
        played.waits.iter().filter(|(k, _)| *k == WaitKind::Cleaning).map(|(_, wait)| wait.as_secs()).collect();
    for (n, (at, next, deadline)) in looks.take(6).enumerate() {
        let clock = |seconds: i64| format!("{}:{:02}", seconds / 60, seconds % 60);
        let drawn = screen(&played, at);
        assert!(drawn.contains(&format!("next look in {} ", clock(pauses[n]))), "look {n}:\n{drawn}");
        // The last second counts.
        let left = (deadline.duration_since(at).as_millis() + 999) as i64 / 1000;
        let left = format!("{}:{:02}:{:02} left", left / 3600, left / 60 % 60, left % 60);
        assert!(line(&drawn, "▌cleaning").contains(&format!("attempt 1 of 3 · {left}")), "{left}:\n{drawn}");
        assert!(drawn.contains("step erase_devices_metadata"), "{drawn}");
        // Between two looks the clock goes on.
        let later = screen(&played, next - SignedDuration::from_secs(1));
        assert!(later.contains("next look in 0:01 "), "look {n}:\n{later}");
        if n == 4 {
            assert!(drawn.contains("looks after 10s › 20s › 40s › 1m"), "the backoff:\n{drawn}");
            assert!(drawn.contains("cleaning") && drawn.contains("› clean wait"), "the strip of states:\n{drawn}");
        }
    }
}

//! Every view with hostile text in every place where text from outside stands, at any size: nothing panics, nothing reaches
//! the terminal that it could act on, and every column stays where it is.
//!
//! `MUSTER_FUZZ_CASES=N` draws so many cases instead of the few of every run; `MUSTER_FUZZ_SEED=N` begins with another one.

#[path = "support/plant.rs"]
mod plant;
#[path = "support/world.rs"]
mod world;

use std::collections::BTreeMap;
use std::time::Duration;

use muster::tui::event::Event;
use muster::tui::glyphs::{Glyphs, Status};
use muster::tui::model::{Model, Popup};
use muster::tui::theme::Theme;
use muster::tui::update::update;
use muster::tui::view::{LogPane, draw};
use muster::tui::widgets::pen::Skin;
use plant::{Dice, Planter};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use unicode_width::UnicodeWidthStr;

/// Cases of a usual run; each is one view at one size.
const CASES: u64 = 24;
/// Of this thread's own time, in a debug build. What grows with the square of a text of ten thousand characters takes many
/// times as long.
const FRAME_WITHIN: Duration = Duration::from_secs(2);

fn number(name: &str, otherwise: u64) -> u64 {
    std::env::var(name).map_or(otherwise, |text| text.parse().unwrap_or_else(|_| panic!("{name} is no number: {text}")))
}

fn frame(model: &Model, skin: &Skin) -> Buffer {
    let mut buf = Buffer::empty(Rect::new(0, 0, model.width, model.height));
    draw(model, skin, &LogPane::new(false), &mut buf);
    buf
}

/// The time that this thread has had so far: others on the machine do not count.
fn own_time() -> Duration {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap();
    Duration::from_nanos(text.split(' ').next().unwrap().parse().unwrap())
}

/// Proves: U8, U6
#[test]
fn hostile_text_in_every_place_of_every_view_breaks_nothing() {
    let cases = number("MUSTER_FUZZ_CASES", CASES);
    let first = number("MUSTER_FUZZ_SEED", 1);
    let views = world::every_view(100, 32);
    let mut planter = Planter::default();
    let mut slowest = Duration::ZERO;
    for case in first..first + cases {
        let mut dice = Dice::new(case);
        let (view, model) = &views[dice.below(views.len())];
        let mut model = planter.plant(model, &mut dice);
        let (width, height) = match dice.below(6) {
            0 => (60, 20),
            1 => (100, 32),
            2 => (200, 60),
            3 => (1 + dice.below(20) as u16, 1 + dice.below(10) as u16),
            _ => (1 + dice.below(240) as u16, 1 + dice.below(80) as u16),
        };
        let skin = Skin {
            theme: Theme::named(Theme::names()[dice.below(Theme::names().len())]).unwrap(),
            glyphs: Glyphs { ascii: dice.below(4) == 0 },
        };
        let what = format!("MUSTER_FUZZ_SEED={case}, {view} at {width}×{height}, ascii {}", skin.glyphs.ascii);
        let began = own_time();
        let drawn = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            update(&mut model, Event::Resize { width, height });
            frame(&model, &skin)
        }));
        let took = own_time() - began;
        let buf = drawn.unwrap_or_else(|_| panic!("panicked: {what}"));
        assert!(took < FRAME_WITHIN, "a resize and a frame took {took:?}: {what}");
        slowest = slowest.max(took);
        harmless(&buf, skin.glyphs.ascii, &what);
        every_row_is_full(&buf, &what);
        frames_are_closed(&buf, &what);
        columns_stand(&model, &buf, &what);
    }
    println!("{cases} cases, the slowest took {slowest:?}");
}

/// What no cell may hold, said here once more and not taken from the code under test.
fn forbidden(c: char) -> bool {
    c.is_control()
        || matches!(c as u32,
            0xad | 0x34f | 0x61c | 0x180b..=0x180f | 0x200b..=0x200f | 0x2028..=0x202e | 0x2060..=0x206f
            | 0xfe00..=0xfe0f | 0xfeff | 0xfff9..=0xfffb | 0x1f3fb..=0x1f3ff | 0xe0000..=0xe0fff)
}

fn harmless(buf: &Buffer, ascii: bool, what: &str) {
    for cell in &buf.content {
        let symbol = cell.symbol();
        assert!(!symbol.chars().any(forbidden), "{symbol:?} in a cell: {what}");
        assert!(symbol.chars().count() <= 8, "{} characters in a cell: {what}", symbol.chars().count());
        assert!(!ascii || symbol.is_ascii(), "{symbol:?} on an ASCII terminal: {what}");
    }
}

/// A row of cells takes as many columns on a terminal as the screen has: nothing is pushed, nothing sticks out.
fn every_row_is_full(buf: &Buffer, what: &str) {
    for y in 0..buf.area.height {
        let mut x = 0;
        while x < buf.area.width {
            let symbol = buf[(x, y)].symbol();
            let width = symbol.width() as u16;
            assert!((1..=2).contains(&width), "{symbol:?} takes {width} columns: {what}");
            if width == 2 {
                assert!(x + 1 < buf.area.width, "{symbol:?} sticks out of row {y}: {what}");
                let behind = buf[(x + 1, y)].symbol();
                assert!(behind.trim().is_empty(), "{symbol:?} lies on {behind:?} in row {y}: {what}\n{}", text(buf));
            }
            x += width;
        }
    }
}

/// Every frame has its four corners, and nothing breaks its sides.
fn frames_are_closed(buf: &Buffer, what: &str) {
    let at = |x: u16, y: u16| buf[(x, y)].symbol();
    for y in 0..buf.area.height {
        for x in (0..buf.area.width).filter(|x| at(*x, y) == "┏") {
            let right = (x..buf.area.width).rev().find(|x| at(*x, y) == "┓");
            let right = right.unwrap_or_else(|| panic!("a frame without its corner: {what}\n{}", text(buf)));
            let mut below = y + 1;
            while at(x, below) == "┃" {
                assert_eq!(at(right, below), "┃", "row {below}: {what}\n{}", text(buf));
                below += 1;
            }
            assert_eq!((at(x, below), at(right, below)), ("┗", "┛"), "row {below}: {what}\n{}", text(buf));
        }
    }
}

/// Of the fleet: the line between tree and table goes straight down, and the signs of all hosts stand in one column.
fn columns_stand(model: &Model, buf: &Buffer, what: &str) {
    let bare = model.popup.is_none() && model.toasts.is_empty() && model.screens.is_empty();
    if !bare || !muster::tui::layout::fits(model) {
        return;
    }
    let areas = muster::tui::layout::fleet(model);
    let ascii = buf.content.iter().all(|cell| cell.symbol().is_ascii());
    let line = areas.divider;
    let drawn: BTreeMap<&str, usize> = (line.top()..line.bottom()).fold(BTreeMap::new(), |mut seen, y| {
        *seen.entry(buf[(line.x, y)].symbol()).or_default() += 1;
        seen
    });
    assert!(drawn.len() <= 1, "{drawn:?} between tree and table: {what}\n{}", text(buf));
    let body = areas.table_body();
    let rows = model.fleet.shown.len().saturating_sub(model.fleet.table_top).min(usize::from(body.height)) as u16;
    if rows == 0 || ascii {
        return;
    }
    let signs: Vec<&str> =
        Status::ALL.iter().map(|status| Glyphs { ascii: false }.status(*status, model.now)).collect();
    let of_all = |x: &u16| (body.y..body.y + rows).all(|y| signs.contains(&buf[(*x, y)].symbol()));
    assert!((body.left()..body.right()).any(|x| of_all(&x)), "no column of signs: {what}\n{}", text(buf));
}

fn text(buf: &Buffer) -> String {
    let rows = buf.content.chunks(usize::from(buf.area.width));
    rows.map(|row| row.iter().map(|cell| cell.symbol()).collect::<String>()).collect::<Vec<_>>().join("\n")
}

/// A check that cannot fail proves nothing: each of these frames is broken in one way.
#[test]
fn the_checks_see_what_they_are_for() {
    let fails = |check: &dyn Fn()| std::panic::catch_unwind(std::panic::AssertUnwindSafe(check)).is_err();
    let mut buf = Buffer::with_lines(["┏━━┓ ", "┃  ┃ ", "┗━━┛ "]);
    frames_are_closed(&buf, "whole");
    every_row_is_full(&buf, "whole");
    buf[(3, 1)].set_symbol(" ");
    assert!(fails(&|| frames_are_closed(&buf, "broken")));
    let mut buf = Buffer::with_lines(["漢a  "]);
    every_row_is_full(&buf, "whole");
    buf[(1, 0)].set_symbol("b");
    assert!(fails(&|| every_row_is_full(&buf, "overwritten")));
    let mut buf = Buffer::with_lines(["abc"]);
    harmless(&buf, true, "whole");
    buf[(1, 0)].set_symbol("\u{200b}");
    assert!(fails(&|| harmless(&buf, false, "invisible")));
    let mut buf = Buffer::with_lines(["abc"]);
    buf[(1, 0)].set_symbol("ä");
    assert!(fails(&|| harmless(&buf, true, "no ASCII")));
}

/// What is planted reaches the screen: else the cases above would pass for want of text.
#[test]
fn what_is_planted_is_what_the_views_show() {
    let mut planter = Planter::default();
    let mut dice = Dice::new(7);
    let views = world::every_view(100, 32).into_iter();
    for (view, model) in views.filter(|(view, _)| ["fleet", "run-failed", "launch-plan"].contains(view)) {
        let planted = planter.plant(&model, &mut dice);
        assert_ne!(planted.fleet.hosts[0].device.name, model.fleet.hosts[0].device.name, "{view}");
        assert_eq!(planted.fleet.hosts.len(), model.fleet.hosts.len());
        let device = &planted.fleet.hosts[3].device;
        for text in [&device.model, &device.manufacturer, &device.status, device.rack.as_ref().unwrap()] {
            assert!(plant::is_planted(text), "{text:?} in {view}");
        }
        let same_popup = |a: &Option<Popup>, b: &Option<Popup>| a.is_some() == b.is_some();
        assert!(same_popup(&planted.popup, &model.popup), "{view}");
        for (run, before) in planted.runs.values().zip(model.runs.values()) {
            assert_eq!(run.events.len(), before.events.len());
            assert!(run.events.iter().all(|event| plant::is_planted(&event.text)), "{view}: {:?}", run.events);
        }
    }
    let places = planter.places();
    for place in ["switch", "port", "label", "message", "action", "observed", "expected", "asset_tag", "location"] {
        assert!(places.iter().any(|found| found.ends_with(place)), "nothing is planted at '{place}': {places:#?}");
    }
}

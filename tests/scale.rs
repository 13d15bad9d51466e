//! A thousand runs at once, and a hundred thousand devices in the lists. How fast, the benchmarks say.

#[path = "support/many.rs"]
mod many;
#[path = "support/engine.rs"]
mod support;

use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use muster::config::settings::Limits;
use muster::domain::request::EnrollRequest;
use muster::engine::{LocalCx, ManualClock, Workflows};
use muster::store::RunStatus;
use muster::tui::event::{Event, Key};
use muster::tui::glyphs::Glyphs;
use muster::tui::model::Model;
use muster::tui::paint::Painter;
use muster::tui::theme::Theme;
use muster::tui::update::update;
use muster::tui::view::{LogPane, draw};
use muster::tui::widgets::pen::Skin;
use muster::workflows::cx::Cx;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use support::*;

const RUNS: u64 = 1000;
const DEVICES: usize = 100_000;

async fn workflow(
    cx: LocalCx,
    request: EnrollRequest,
) -> Result<muster::domain::event::EnrollResult, muster::workflows::cx::ActivityError> {
    let a = cx.activity::<A>(request.host, options()).await?;
    cx.sleep_until(cx.now() + Duration::from_secs(3600), reason("an hour")).await?;
    result(cx.activity::<B>(a, options()).await?)
}

/// Proves: N1, G6
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thousand_runs_are_under_way_at_once_are_resumed_and_end_each_with_its_own_result() {
    let (_folder, store) = store();
    let mut runs = Vec::new();
    for n in 1..=RUNS {
        runs.push((n, submit(&store, request(n)).await));
    }
    let limits = Limits { runs: RUNS as usize, activities: 64, ..Limits::default() };
    let workflows = || Workflows::new().with("test", workflow);
    let clock = Arc::new(ManualClock::new(at(0)));
    let begin = |world: &Arc<World>| {
        limited(Arc::new(store.clone()), world, workflows(), Arc::clone(&clock) as _, limits.clone())
    };
    let world = World::new();
    let one = begin(&world);
    one.resume_all().await.unwrap();
    let wait = || store.runs().unwrap().iter().filter(|row| row.waiting.is_some()).count() as u64;
    until("all of them wait", || wait() == RUNS).await;
    assert_eq!(world.count("test.a") as u64, RUNS);
    assert!(store.runs().unwrap().iter().all(|row| row.status == RunStatus::Running));
    one.shutdown().await;

    // Another process, an hour later.
    clock.advance(Duration::from_secs(3600));
    let world = World::new();
    let two = begin(&world);
    two.resume_all().await.unwrap();
    until("all of them end", || store.active_runs().unwrap().is_empty()).await;
    assert_eq!((world.count("test.a"), world.count("test.b") as u64), (0, RUNS), "what was done is not done again");
    for (n, run) in runs {
        assert_eq!(said(&store, run).await, format!("test.b(test.a(gpu-{n}))"));
    }
    two.shutdown().await;
}

/// Proves: U8
#[test]
fn a_key_that_moves_the_selection_writes_six_hundred_bytes_at_most() {
    let mut model = Model::new(Timestamp::now(), 100, 32);
    update(&mut model, Event::Fleet((0..1000).map(|n| many::host(many::device(n))).collect()));
    let theme = Theme::named("dark").unwrap();
    let skin = Skin { theme, glyphs: Glyphs { ascii: false } };
    let frame = |model: &Model| {
        let mut buffer = Buffer::empty(Rect::new(0, 0, model.width, model.height));
        draw(model, &skin, &LogPane::new(true), &mut buffer);
        buffer
    };
    let mut painter = Painter::default();
    let mut before = frame(&model);
    let mut whole = Vec::new();
    painter.paint(None, &before, &mut whole);
    assert!(whole.len() > 3_000, "{}", whole.len());
    for (key, times) in [("j", 200), ("k", 200), ("j", 10), ("k", 5)] {
        for n in 0..times {
            let at = model.now + SignedDuration::from_millis(300);
            update(&mut model, Event::Key { key: key.parse::<Key>().unwrap(), at });
            let after = frame(&model);
            let mut bytes = Vec::new();
            painter.paint(Some(&before), &after, &mut bytes);
            // The synchronized update around it is the terminal's.
            assert!(
                bytes.len() + 16 <= 600,
                "{} bytes for {key} number {n}: {:?}",
                bytes.len(),
                String::from_utf8_lossy(&bytes)
            );
            before = after;
        }
    }
}

/// Proves: N1
#[test]
fn a_hundred_thousand_devices_are_in_the_lists_and_every_one_is_found() {
    let hosts: Vec<_> = (0..DEVICES).map(|n| many::host(many::device(n))).collect();
    let mut model = Model::new(Timestamp::now(), 200, 60);
    update(&mut model, Event::Fleet(hosts));
    assert_eq!(model.fleet.shown.len(), DEVICES);
    let press = |model: &mut Model, keys: &str| {
        for key in keys.split(' ') {
            let at = model.now + SignedDuration::from_millis(300);
            update(model, Event::Key { key: key.parse::<Key>().unwrap(), at });
            update(model, Event::Tick(at));
        }
    };
    press(&mut model, "G");
    let last = model.fleet.host().unwrap().device.clone();
    assert_eq!((last.site.as_str(), last.rack.as_deref()), ("site09", Some("R4999")));
    press(&mut model, "/ g p u - 3 2 1 7 - 0 4 enter");
    let names: Vec<&str> =
        model.fleet.shown.iter().map(|at| model.fleet.hosts[*at as usize].device.name.as_str()).collect();
    assert_eq!(names, ["gpu-3217-04"]);
    assert_eq!(model.fleet.host().unwrap().device.name, "gpu-3217-04");
}

//! The fleet's table: its orders, the terms of its filter, and which columns stay when the screen narrows.

#[allow(dead_code, reason = "each test binary uses its part of the support")]
#[path = "support/world.rs"]
mod world;

use jiff::Span;
use muster::domain::event::{Event as Journal, Outcome};
use muster::domain::failure::Owner;
use muster::domain::run_view::RunState;
use muster::tui::effect::Effect;
use muster::tui::event::Event;
use muster::tui::glyphs::Glyphs;
use muster::tui::model::Model;
use muster::tui::model::host::Host;
use muster::tui::model::sort::By;
use muster::tui::theme::Theme;
use muster::tui::update::update;
use muster::tui::view::{LogPane, draw};
use muster::tui::widgets::pen::Skin;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use world::{console, hosts, press, run_id};

fn rows(model: &Model) -> Vec<String> {
    let mut buf = Buffer::empty(Rect::new(0, 0, model.width, model.height));
    let skin = Skin { theme: Theme::named("dark").unwrap(), glyphs: Glyphs { ascii: false } };
    draw(model, &skin, &LogPane::new(false), &mut buf);
    let rows = buf.content.chunks(usize::from(model.width));
    rows.map(|r| r.iter().map(|c| c.symbol()).collect()).collect()
}

fn shown(model: &Model) -> Vec<&Host> {
    (0..model.fleet.shown.len()).map(|row| model.fleet.row(row).unwrap()).collect()
}

fn names(model: &Model) -> Vec<&str> {
    shown(model).iter().map(|host| host.device.name.as_str()).collect()
}

/// The whole fleet in the table, on the host that failed.
fn everywhere() -> Model {
    let mut model = console(200, 60);
    press(&mut model, "tab h h h h h");
    assert_eq!(model.fleet.place.depth(), 0);
    press(&mut model, "tab");
    model
}

/// Types a filter and keeps it.
fn filtered(text: &str) -> Vec<String> {
    let mut model = everywhere();
    let keys: Vec<String> = text.chars().map(|c| if c == ' ' { "space".to_owned() } else { c.to_string() }).collect();
    press(&mut model, &format!("/ {} enter", keys.join(" ")));
    names(&model).into_iter().map(str::to_owned).collect()
}

/// Proves: U1
#[test]
fn each_press_sorts_by_the_next_column_says_so_and_moves_no_cursor() {
    let mut model = console(100, 32);
    let walk: Vec<String> = names(&model).into_iter().map(str::to_owned).collect();
    for (by, says) in
        [(By::Name, "by name ▾"), (By::Status, "by netbox ▾"), (By::Ironic, "by ironic ▾"), (By::Need, "by need ▾")]
    {
        press(&mut model, "s");
        assert_eq!(model.fleet.sort.by, by);
        assert_eq!(model.fleet.host().unwrap().device.name, "gpu-b07-37", "{by:?}");
        let rows = rows(&model);
        assert!(rows[1].contains(says), "{by:?}: {}", rows[1]);
        let cursor = rows.iter().find(|row| row.contains('▌') && row.contains("gpu-b07-37"));
        assert!(cursor.is_some(), "the cursor is in view:\n{}", rows.join("\n"));
    }
    press(&mut model, "s");
    assert_eq!(names(&model), walk, "and round again to the walk");
    assert!(!rows(&model)[1].contains("by "));
    press(&mut model, "S");
    let mut back = walk.clone();
    back.reverse();
    assert_eq!(names(&model), back);
    assert!(rows(&model)[1].contains("by place ▴"));
}

/// Proves: U1
#[test]
fn the_orders_are_true_and_what_is_alike_stays_in_the_order_of_the_racks() {
    let mut model = everywhere();
    let at = |name: &str| model.fleet.hosts.iter().position(|host| host.device.name == name).unwrap();
    let walk: std::collections::BTreeMap<String, usize> =
        names(&model).into_iter().map(|name| (name.to_owned(), at(name))).collect();
    let alike_keep_their_order = |model: &Model, key: &dyn Fn(&Host) -> String, what: &str| {
        for pair in shown(model).windows(2) {
            if key(pair[0]) == key(pair[1]) {
                assert!(
                    walk[pair[0].device.name.as_str()] < walk[pair[1].device.name.as_str()],
                    "{what}: {}",
                    pair[1].device.name
                );
            }
        }
    };
    press(&mut model, "s");
    let sorted = names(&model);
    assert!(
        sorted.iter().position(|n| *n == "gpu-r2-40") < sorted.iter().position(|n| *n == "gpu-r10-40"),
        "as one counts"
    );
    let status = |host: &Host| host.device.status.to_string();
    for keys in ["s", "S"] {
        press(&mut model, keys);
        let mut statuses: Vec<String> = shown(&model).into_iter().map(status).collect();
        if keys == "S" {
            statuses.reverse();
        }
        assert!(statuses.is_sorted(), "{statuses:?}");
        alike_keep_their_order(&model, &status, "status");
    }
    press(&mut model, "s");
    let ironic = |host: &Host| host.ironic.as_ref().map_or("~".to_owned(), |ironic| ironic.state.to_string());
    let states: Vec<String> = shown(&model).into_iter().map(ironic).collect();
    assert!(states.is_sorted(), "hosts without a node come last: {states:?}");
    alike_keep_their_order(&model, &ironic, "ironic");
    press(&mut model, "s");
    let order = names(&model);
    assert_eq!(order[..2], ["gpu-b07-37", "gpu-b07-29"], "hands first, then failures for others");
    let place = |name: &str| order.iter().position(|n| *n == name).unwrap();
    let expected = [
        "gpu-b07-29",
        "gpu-b07-35",
        "gpu-b07-21",
        "gpu-b07-27",
        "gpu-b07-33",
        "gpu-b07-17",
        "gpu-b07-41",
        "leaf-b07-1",
    ];
    assert!(expected.map(place).is_sorted(), "refused, running, queued, never, cancelled, done, no host: {order:?}");
}

/// Proves: U1
#[test]
fn the_order_stays_while_a_filter_narrows_and_when_a_run_ends_under_it() {
    let mut model = everywhere();
    press(&mut model, "s s s s / b 0 7");
    assert_eq!(names(&model)[..2], ["gpu-b07-37", "gpu-b07-29"]);
    press(&mut model, "enter esc");
    assert_eq!(model.fleet.sort.by, By::Need, "clearing the filter keeps the order");
    // A run that was under way fails for the hands: at the next frame it stands among the first.
    let view = &model.runs[&run_id(0xb21)];
    assert_eq!(view.state(), RunState::Running);
    let n = view.next_n;
    let body = muster::domain::event::Body::Journal(Journal::Finished {
        outcome: Outcome::Failed { failure: Box::new(world::swapped()) },
    });
    let record = muster::domain::event::RunRecord { run: run_id(0xb21), n, at: model.now, body };
    update(&mut model, Event::Record(record));
    let later = model.now.checked_add(Span::new().milliseconds(40)).unwrap();
    update(&mut model, Event::Tick(later));
    assert_eq!(names(&model)[..3], ["gpu-b07-21", "gpu-b07-37", "gpu-b07-29"], "the newest of its kind first");
    assert_eq!(model.fleet.host().unwrap().device.name, "gpu-b07-37");
    assert_eq!(
        press(&mut model, "j f")
            .iter()
            .filter(|e| matches!(e, Effect::Retry { host, .. } if host == "gpu-b07-29"))
            .count(),
        1
    );
}

/// Proves: U6
#[test]
fn every_term_of_the_filter_finds_what_its_column_says() {
    let all = hosts();
    let of = |is: &dyn Fn(&Host) -> bool| {
        let mut names: Vec<String> = all.iter().filter(|h| is(h)).map(|h| h.device.name.to_string()).collect();
        names.sort();
        names
    };
    let last = |host: &Host| host.last_run.as_ref().map(|last| last.state);
    let ironic = |host: &Host, state: &str| host.ironic.as_ref().is_some_and(|ironic| ironic.state.as_str() == state);
    let cases: Vec<(&str, Vec<String>)> = vec![
        ("site:ams2", of(&|h| h.device.site == "ams2")),
        ("SITE:AMS", of(&|h| h.device.site == "ams2")),
        ("!site:osl1", of(&|h| h.device.site == "ams2")),
        ("location:\"hall c\"", of(&|h| h.device.location.as_deref() == Some("hall C"))),
        ("rack:r2", of(&|h| h.device.rack.as_deref() == Some("R2"))),
        ("u:37", of(&|h| h.device.position == Some(37.0))),
        ("status:offline", of(&|h| h.device.status == "offline")),
        ("ironic:-", of(&|h| h.ironic.is_none())),
        ("state:\"clean wait\"", of(&|h| ironic(h, "clean wait"))),
        ("state:fail", of(&|h| last(h) == Some(RunState::Failed))),
        ("state:running", of(&|h| last(h) == Some(RunState::Running))),
        ("!state:available !state:never rack:b07", {
            of(&|h| h.device.rack.as_deref() == Some("B07") && last(h).is_some() && !ironic(h, "available"))
                .into_iter()
                .chain(of(&|h| h.refusal.is_some() && last(h).is_none()))
                .collect()
        }),
        ("run:queued", of(&|h| last(h) == Some(RunState::Queued))),
        ("owner:you", of(&|h| h.failure().is_some_and(|f| f.owner == Owner::Onsite))),
        ("owner:ONSITE", of(&|h| h.failure().is_some_and(|f| f.owner == Owner::Onsite))),
        ("owner:infra-eng", of(&|h| h.owner() == Some(Owner::InfraEng))),
        ("code:cables", of(&|h| h.failure().is_some_and(|f| f.code.as_str() == "CABLES_WRONG"))),
        ("code:not_placed", vec!["gpu-b07-35".to_owned()]),
        ("serial:j3-114-37", vec!["gpu-b07-37".to_owned()]),
        ("serial:A-2033", vec!["gpu-b07-33".to_owned()]),
        ("class:switch", vec!["leaf-b07-1".to_owned()]),
        ("model:edgecore", vec!["leaf-b07-1".to_owned()]),
        ("b0739", vec!["gpu-b07-39".to_owned()]),
        ("!gpu", vec!["leaf-b07-1".to_owned()]),
        ("b07 !run:never owner:you serial:114", vec!["gpu-b07-37".to_owned()]),
        ("owner:", of(&|_| true)),
    ];
    for (typed, mut expected) in cases {
        let mut found = filtered(typed);
        found.sort();
        expected.sort();
        assert!(!expected.is_empty(), "{typed}: a case that finds nothing proves nothing");
        assert_eq!(found, expected, "{typed}");
    }
    let mut refused = filtered("owner:infra");
    refused.sort();
    assert_eq!(refused, ["gpu-b07-19", "gpu-b07-35"], "who is refused has an owner in the column too");
}

/// Proves: U6
#[test]
fn letters_of_other_scripts_are_found_whatever_their_case() {
    let mut model = everywhere();
    let mut hosts = hosts();
    hosts[0].device.location = Some("Østhallen".into());
    update(&mut model, Event::Fleet(hosts));
    press(&mut model, "/ l o c a t i o n : ø s t");
    assert_eq!(model.fleet.shown.len(), 1);
}

/// Proves: U1, U6
#[test]
fn columns_fold_by_their_worth_and_name_and_standing_never_do() {
    let mut hosts = hosts();
    for host in &mut hosts {
        host.device.name =
            format!("{}-{}", host.device.name.replace("gpu", "gpu-hyperscale"), host.device.netbox_id).into();
        host.device.rack = host.device.rack.as_ref().map(|rack| format!("row-9-{rack}").into());
    }
    let columns = ["rack", " U ", "device", "netbox", "ironic", "last run", " for"];
    let mut before: Option<(u16, usize)> = None;
    for width in 60..=220u16 {
        let mut model = console(100, 32);
        update(&mut model, Event::Fleet(hosts.clone()));
        press(&mut model, "tab h h h h h tab");
        update(&mut model, Event::Resize { width, height: 32 });
        let rows = rows(&model);
        // Beside the tree from 100 columns on.
        let heading: String = rows[2].chars().skip(if width >= 100 { 26 } else { 0 }).collect();
        let shown: Vec<&str> = columns.into_iter().filter(|name| format!("{heading} ").contains(name)).collect();
        assert!(shown.contains(&"device") && shown.contains(&"last run"), "{width}: {heading}");
        let folded: Vec<&str> = columns.into_iter().filter(|name| !shown.contains(name)).collect();
        // What is worth less leaves first.
        let worth = [" for", "netbox", "ironic", "rack", " U "];
        assert_eq!(
            worth.into_iter().filter(|c| folded.contains(c)).collect::<Vec<_>>(),
            worth[..folded.len()],
            "{width}"
        );
        let standing =
            rows.iter().filter(|row| row.contains("cables wrong") || row.contains("eth0 and eth1 are swapped"));
        assert!(standing.count() >= 1, "{width}: what is wrong shows\n{}", rows.join("\n"));
        if let Some((narrower, count)) = before
            && (width < 100) == (narrower < 100)
        {
            assert!(shown.len() >= count, "{width} shows less than {narrower}");
        }
        before = Some((width, shown.len()));
    }
}

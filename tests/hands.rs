//! What hands do at the rack, as scripts of keys against the model: power, scans, ends of runs, the demo's mending.

#[path = "support/world.rs"]
mod world;

use std::collections::BTreeSet;

use jiff::{Span, Timestamp};
use muster::domain::event::{Body, Event as Journal, Outcome, RunRecord};
use muster::domain::ids::RunId;
use muster::domain::rack::PowerWish;
use muster::tui::action::{TABLE, Where, here};
use muster::tui::effect::Effect;
use muster::tui::event::{Event, Key, Refused};
use muster::tui::glyphs::Glyphs;
use muster::tui::model::power::Looked;
use muster::tui::model::{Keeping, Model, Popup};
use muster::tui::theme::Theme;
use muster::tui::update::update;
use muster::tui::view::{LogPane, draw};
use muster::tui::widgets::pen::Skin;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use world::{console, failed_run, go, live_run, press, run_id};

fn screen(model: &Model) -> String {
    let mut buf = Buffer::empty(Rect::new(0, 0, model.width, model.height));
    let skin = Skin { theme: Theme::named("dark").unwrap(), glyphs: Glyphs { ascii: false } };
    draw(model, &skin, &LogPane::new(false), &mut buf);
    let rows = buf.content.chunks(usize::from(model.width));
    rows.map(|r| r.iter().map(|c| c.symbol()).collect::<String>().trim_end().to_owned()).collect::<Vec<_>>().join("\n")
}

#[track_caller]
fn assert_shows(model: &Model, text: &str) {
    let screen = screen(model);
    assert!(screen.contains(text), "'{text}' is not on the screen:\n{screen}");
}

fn later(at: Timestamp, ms: i64) -> Timestamp {
    at.checked_add(Span::new().milliseconds(ms)).unwrap()
}

/// Characters and Enter as a scanner sends them, so many milliseconds apart; nothing comes for a while afterwards.
fn scan(model: &mut Model, code: &str, gap: i64) -> Vec<Effect> {
    let mut effects = Vec::new();
    let mut at = later(model.now, 1000);
    let chars = code.chars().map(|c| if c == ' ' { "space".to_owned() } else { c.to_string() });
    for key in chars.chain(["enter".to_owned()]) {
        effects.extend(update(model, Event::Key { key: key.parse::<Key>().unwrap(), at }));
        at = later(at, gap);
    }
    effects.extend(update(model, Event::Tick(later(at, 500))));
    effects
}

fn target(model: &Model) -> &str {
    &model.target().unwrap().device.name
}

/// Whether an effect only reads.
fn reads(effect: &Effect) -> bool {
    matches!(
        effect,
        Effect::LoadRun(_)
            | Effect::LoadTape(_)
            | Effect::LoadHistory { .. }
            | Effect::LoadRack(_)
            | Effect::Plan { .. }
            | Effect::ScrollLog(_)
    )
}

/// Proves: U10
#[test]
fn a_scan_selects_the_device_by_serial_or_asset_tag_wherever_somebody_is() {
    let views = world::every_view(100, 32);
    for (code, host) in
        [("J3-114-33", "gpu-b07-33"), ("j3-114-33", "gpu-b07-33"), ("A-2039", "gpu-b07-39"), ("a-2037", "gpu-b07-37")]
    {
        for gap in [0, 1, 8, 20] {
            let views = views.iter().cloned();
            for (view, mut model) in views.filter(|(_, m)| m.popup.is_none() && here(m) != Where::Filter) {
                let effects = scan(&mut model, code, gap);
                assert!(effects.iter().all(reads), "{view}: {effects:?}");
                assert_eq!(target(&model), host, "{view}, {code}, {gap} ms");
                assert!(model.popup.is_none(), "{view}");
            }
        }
    }
}

/// Proves: U10
#[test]
fn among_the_stops_a_scan_goes_to_the_stop() {
    let mut model = console(100, 32);
    press(&mut model, "w");
    assert_eq!(target(&model), "gpu-b07-37");
    scan(&mut model, "A-2029", 3);
    assert_eq!((here(&model), target(&model)), (Where::Walk, "gpu-b07-29"));
    // A device that is no stop is looked at in its rack.
    scan(&mut model, "A-2041", 3);
    assert_eq!((here(&model), target(&model)), (Where::Fleet, "gpu-b07-41"));
}

/// A code may begin with any key there is, and its Enter would do a lot.
///
/// Case: C-45. Proves: U6, U10
#[test]
fn a_scan_that_names_nothing_says_so_and_presses_no_key() {
    let bound =
        TABLE.iter().flat_map(|def| def.keys).filter_map(|keys| keys.chars().next().filter(|_| keys.len() == 1));
    let firsts: BTreeSet<char> = bound.filter(|c| c.is_alphanumeric()).chain(['b', 'S', '0']).collect();
    for (view, before) in world::every_view(100, 32) {
        let types = matches!(&before.popup, Some(Popup::Confirm(confirm)) if confirm.typed.is_some());
        if types || matches!(here(&before), Where::Filter | Where::Palette) {
            continue;
        }
        for c in &firsts {
            let mut model = before.clone();
            let code = format!("{c}e7-x{c}");
            let effects = scan(&mut model, &code, 4);
            assert!(effects.iter().all(reads), "{code} in {view}: {effects:?}");
            assert_eq!(model.screens.len(), before.screens.len(), "{code} in {view}");
            assert_eq!(model.popup, before.popup, "{code} in {view}");
            let stands = |m: &Model| (m.fleet.place.clone(), m.fleet.selected, m.fleet.marks.clone(), m.fleet.pane);
            assert_eq!(stands(&model), stands(&before), "{code} in {view}");
            let told = match &before.popup {
                None => format!("no device with serial or asset tag '{code}'"),
                Some(_) => format!("'{code}' was scanned while a dialog is open"),
            };
            assert_eq!(model.toasts.last().map(|t| t.text.clone()), Some(told), "{view}");
        }
    }
    let mut model = live_run(100, 32, "gpu-b07-39");
    scan(&mut model, "xX-1", 2);
    assert_shows(&model, "no device with serial or asset tag 'xX-1'");
    assert_eq!(model.toasts.last().unwrap().action, None, "one line is enough");
}

/// Proves: U10
#[test]
fn a_key_that_comes_alone_acts_at_once_and_so_does_one_that_is_held_down() {
    let mut model = console(100, 32);
    let before = target(&model).to_owned();
    let at = later(model.now, 1000);
    update(&mut model, Event::Key { key: "j".parse().unwrap(), at });
    assert_ne!(target(&model), before, "without any tick");
    let second = target(&model).to_owned();
    update(&mut model, Event::Key { key: "j".parse().unwrap(), at: later(at, 12) });
    assert_ne!(target(&model), second, "a repeat waits for nothing");
    // Two keys that hands rolled over are two keys, a moment later.
    let at = later(at, 1000);
    update(&mut model, Event::Key { key: "k".parse().unwrap(), at });
    update(&mut model, Event::Key { key: "k".parse().unwrap(), at: later(at, 10) });
    assert_eq!(target(&model), before);
    let at = later(at, 1000);
    update(&mut model, Event::Key { key: "j".parse().unwrap(), at });
    update(&mut model, Event::Key { key: "?".parse().unwrap(), at: later(at, 10) });
    assert!(model.popup.is_none());
    update(&mut model, Event::Tick(later(at, 40)));
    assert!(matches!(model.popup, Some(Popup::Help { .. })));
    // A slow line of keys and Enter is none.
    press(&mut model, "esc");
    assert_eq!(press(&mut model, "e enter").len(), 1);
}

/// Proves: U10
#[test]
fn over_a_bad_line_a_scan_may_come_in_pieces_and_more_ends_than_one_are_one() {
    let mut model = console(100, 32);
    let mut at = later(model.now, 1000);
    let mut key = |model: &mut Model, key: &str, after: i64| {
        at = later(at, after);
        update(model, Event::Tick(at));
        update(model, Event::Key { key: key.parse().unwrap(), at })
    };
    for (name, after) in [("J", 0), ("3", 2), ("-", 3), ("1", 1), ("1", 120), ("4", 1), ("-", 90), ("3", 1), ("3", 1)] {
        key(&mut model, name, after);
    }
    key(&mut model, "enter", 150);
    assert_eq!(target(&model), "gpu-b07-33");
    assert_eq!(key(&mut model, "enter", 1), [], "the second end opens nothing");
    assert!(model.screens.is_empty());
    // Without an end it was a paste: nothing is done, and that is said.
    for (name, after) in [("j", 1000), ("e", 2), ("r", 2), ("x", 2)] {
        key(&mut model, name, after);
    }
    update(&mut model, Event::Tick(later(at, 1000)));
    assert_eq!(target(&model), "gpu-b07-33");
    assert!(model.popup.is_none());
    assert_shows(&model, "4 keys came at once, as from a paste: nothing was done");
}

/// Proves: U10
#[test]
fn a_serial_of_two_devices_selects_neither_and_a_field_takes_a_scan_as_text() {
    let mut hosts = world::hosts();
    for host in hosts.iter_mut().filter(|h| ["gpu-b07-33", "gpu-b07-23"].contains(&h.device.name.as_str())) {
        host.device.serial = Some("TWIN-1".into());
    }
    let mut model = console(100, 32);
    update(&mut model, Event::Fleet(hosts));
    scan(&mut model, "TWIN-1", 2);
    assert_eq!(target(&model), "gpu-b07-37");
    assert_shows(&model, "2 devices have the serial 'TWIN-1': gpu-b07-33, gpu-b07-23");
    press(&mut model, "/");
    scan(&mut model, "b07-41", 2);
    assert_eq!((model.fleet.filter.text.as_str(), target(&model)), ("b07-41", "gpu-b07-41"));
}

fn looked(power: &str, lives: Option<&str>) -> Looked {
    Looked { power: Ok(power.to_owned()), lives: lives.map(str::to_owned) }
}

fn look(model: &mut Model, host: &str, looked: Looked) {
    assert_eq!(update(model, Event::PowerLooked { host: host.to_owned(), looked }), []);
}

/// Proves: U10
#[test]
fn power_says_how_the_host_stands_and_asks_before_what_interrupts() {
    let mut model = console(100, 32);
    let host = "gpu-b07-37".to_owned();
    assert_eq!(press(&mut model, "P"), [Effect::LookPower { host: host.clone() }]);
    assert_eq!(here(&model), Where::Power);
    // Until it is known whose the host is, only what interrupts nothing can be gone on with.
    assert_eq!(press(&mut model, "j enter"), []);
    assert_shows(&model, "Ironic has not said yet whether somebody lives on gpu-b07-37");
    look(&mut model, "gpu-b07-33", looked("Off", Some("somebody")));
    assert!(matches!(&model.popup, Some(Popup::Power(dialog)) if dialog.looked.is_none()), "another host's answer");
    press(&mut model, "esc P j");
    look(&mut model, &host, looked("On", None));
    assert_shows(&model, "power is On");
    assert_shows(&model, "nobody lives on it");
    assert_eq!(press(&mut model, "enter"), []);
    assert_shows(&model, "power off · gpu-b07-37 · 1 host");
    assert_eq!(press(&mut model, "enter"), [], "the way out is focused");
    assert!(model.popup.is_none());

    for (keys, wish) in [
        ("j j", PowerWish::Off { hard: true }),
        ("j j j j", PowerWish::Cycle),
        ("G k k", PowerWish::Off { hard: false }),
    ] {
        press(&mut model, "P");
        look(&mut model, &host, looked("On", None));
        press(&mut model, keys);
        assert_eq!(press(&mut model, "enter tab enter"), [Effect::Power { host: host.clone(), wish, typed: None }]);
    }
    press(&mut model, "P");
    let on = Effect::Power { host: host.clone(), wish: PowerWish::On, typed: None };
    assert_eq!(press(&mut model, "enter"), [on], "what interrupts nothing asks nothing");
    assert_shows(&model, "asking the BMC of gpu-b07-37: power on");
    update(&mut model, Event::Answered(Ok("the power of gpu-b07-37 is On already".into())));
    assert_shows(&model, "is On already");
}

/// Proves: U10
#[test]
fn power_of_a_host_that_somebody_lives_on_wants_its_name_typed() {
    let mut model = console(100, 32);
    go(&mut model, "gpu-b07-25");
    press(&mut model, "P G");
    let lives = "an instance lives on 'gpu-b07-25'";
    look(&mut model, "gpu-b07-25", looked("On", Some(lives)));
    assert_shows(&model, lives);
    assert_shows(&model, "wants its name");
    press(&mut model, "enter");
    assert_shows(&model, "Type gpu-b07-25 to go on");
    update(&mut model, Event::Paste("gpu-b07-25".into()));
    assert_eq!(press(&mut model, "tab enter"), [], "a pasted name confirms nothing");
    // Nor does a scanned one.
    assert!(scan(&mut model, "gpu-b07-25", 2).iter().all(reads));
    press(&mut model, "ctrl-u");
    let effects = press(&mut model, "g p u - b 0 7 - 2 5 enter");
    let typed = Some("gpu-b07-25".to_owned());
    assert_eq!(effects, [Effect::Power { host: "gpu-b07-25".into(), wish: PowerWish::Cycle, typed }]);
}

/// Proves: U10
#[test]
fn power_is_refused_beside_a_run_and_a_failure_says_what_to_do() {
    let mut model = console(100, 32);
    for host in ["gpu-b07-39", "gpu-b07-27"] {
        go(&mut model, host);
        assert_eq!(press(&mut model, "P"), []);
        assert_shows(&model, &format!("is at work on {host}: its power is left alone until that has ended"));
    }
    let mut model = live_run(100, 32, "gpu-b07-39");
    assert_eq!(press(&mut model, "P"), []);
    assert!(model.popup.is_none());
    let mut model = failed_run(100, 32);
    assert_eq!(press(&mut model, "P").len(), 1);
    let why = Refused { code: "BMC_UNREACHABLE".into(), message: "no answer\u{1b}[2J".into(), action: "x".into() };
    look(&mut model, "gpu-b07-37", Looked { power: Err(why), lives: None });
    assert_shows(&model, "no answer\u{fffd}[2J");
    assert!(!world::hosts().is_empty());
    press(&mut model, "esc");
    update(
        &mut model,
        Event::Answered(Err(Refused { code: "x".into(), message: "m".into(), action: "look at it".into() })),
    );
    assert_shows(&model, "look at it");
}

/// A batch that is marked stays marked whatever happens to one host's power.
#[test]
fn a_change_of_power_takes_no_marks_off() {
    let mut model = console(100, 32);
    press(&mut model, "space P G");
    let host = target(&model).to_owned();
    look(&mut model, &host, looked("On", None));
    assert_eq!(press(&mut model, "enter tab enter").len(), 1);
    assert_eq!(model.fleet.marks.len(), 1);
}

fn finished(model: &Model, run: RunId, outcome: Outcome) -> Event {
    let n = model.runs[&run].next_n;
    Event::Record(RunRecord { run, n, at: model.now, body: Body::Journal(Journal::Finished { outcome }) })
}

fn told(effects: Vec<Effect>) -> Vec<String> {
    let tell = |effect| match effect {
        Effect::Tell(sentence) => Some(sentence),
        _ => None,
    };
    effects.into_iter().filter_map(tell).collect()
}

/// Proves: U10
#[test]
fn the_end_of_a_run_is_told_once_to_whoever_started_it_or_has_it_open() {
    let failed = || Outcome::Failed { failure: Box::new(world::swapped()) };
    let mut model = console(100, 32);
    model.user = "jo".to_owned();
    let last = |model: &Model, host: &str| model.fleet.by_name(host).unwrap().last_run.clone().unwrap();
    assert_eq!(last(&model, "gpu-b07-39").by, "jo");
    let event = finished(&model, run_id(0x4f2), failed());
    let said = told(update(&mut model, event.clone()));
    assert!(said[0].starts_with("gpu-b07-39 failed: eth0"), "{said:?}");
    assert!(told(update(&mut model, event)).is_empty(), "once");
    let read_again = world::hosts();
    assert!(told(update(&mut model, Event::Fleet(read_again))).is_empty());

    // Somebody else's is told only where it is open.
    assert_eq!(last(&model, "gpu-b07-31").by, "kim");
    let cancelled = || Outcome::Cancelled { by: "kim".into(), left: Vec::new(), why: None };
    for (open, tells) in [(false, 0), (true, 1)] {
        let mut model = console(100, 32);
        model.user = "ann".to_owned();
        if open {
            go(&mut model, "gpu-b07-31");
            press(&mut model, "enter");
        }
        let event = finished(&model, run_id(0xc31), cancelled());
        assert_eq!(told(update(&mut model, event)).len(), tells);
    }
}

/// Proves: U10
#[test]
fn a_batch_that_ends_is_one_word_and_an_end_whose_records_were_missed_is_told_too() {
    let failed = || Outcome::Failed { failure: Box::new(world::swapped()) };
    let mut model = console(100, 32);
    let mut hosts = world::hosts();
    for host in &mut hosts {
        if let Some(last) = &mut host.last_run {
            last.by = "jo".into();
        }
    }
    update(&mut model, Event::Fleet(hosts.clone()));
    model.user = "jo".to_owned();
    let start = model.now;
    let event = finished(&model, run_id(0x4f2), failed());
    assert_eq!(told(update(&mut model, event)).len(), 1);
    // Two more within the pause wait for its end, and are one.
    let over = hosts.iter_mut().filter(|h| ["gpu-b07-31", "gpu-b07-21"].contains(&h.device.name.as_str()));
    for host in over {
        let run = host.last_run.as_mut().unwrap().run;
        model.runs.remove(&run);
        host.last_run.as_mut().unwrap().state = muster::domain::run_view::RunState::Succeeded;
    }
    assert!(told(update(&mut model, Event::Fleet(hosts))).is_empty());
    assert!(told(update(&mut model, Event::Tick(later(start, 2000)))).is_empty());
    let said = told(update(&mut model, Event::Tick(later(start, 5100))));
    assert_eq!(said.len(), 1);
    assert!(said[0].starts_with("2 runs ended, gpu-b07-"), "{said:?}");
    assert!(told(update(&mut model, Event::Tick(later(start, 60_000)))).is_empty());
}

/// Proves: U6
#[test]
fn a_chosen_theme_is_kept_where_the_configuration_names_none() {
    for (keeping, kept) in [(Keeping::Kept, true), (Keeping::Configured, false), (Keeping::Nowhere, false)] {
        let mut model = console(100, 32);
        model.look.keeping = keeping;
        let effects = press(&mut model, "T down enter");
        assert_eq!(effects == [Effect::KeepTheme("light".into())], kept, "{effects:?}");
        assert_eq!(model.look.theme, "light");
        assert_eq!(model.toasts.last().unwrap().action.is_none(), kept, "what is not kept is said");
    }
}

#[test]
fn only_the_demo_has_hands_and_only_for_what_waits_for_hands() {
    let mut model = console(100, 32);
    assert_eq!(press(&mut model, "M"), []);
    assert_shows(&model, "only the demo has hands of its own");
    press(&mut model, "esc ?");
    assert!(!screen(&model).contains("plug the host's cables"), "{}", screen(&model));
    let mut model = console(100, 32);
    model.hands = true;
    assert_shows(&model, "M mend");
    assert_eq!(press(&mut model, "M"), [Effect::Mend { host: "gpu-b07-37".into() }]);
    go(&mut model, "gpu-b07-29");
    assert!(!screen(&model).contains("M mend"));
    assert_eq!(press(&mut model, "M"), []);
    assert_shows(&model, "nothing at gpu-b07-29 waits for hands");
}

/// The table says of every action whether keys that come too fast may do it.
#[test]
fn nothing_that_reaches_outside_is_done_by_the_first_key_of_a_scan() {
    let views = world::every_view(100, 32);
    for def in TABLE.iter().filter(|def| !def.acts) {
        for keys in def.keys {
            for (view, before) in &views {
                if !def.works_in(here(before)) || keys.chars().count() != 1 {
                    continue;
                }
                let mut model = before.clone();
                let at = later(model.now, 1000);
                let effects = update(&mut model, Event::Key { key: keys.parse().unwrap(), at });
                assert!(effects.iter().all(reads), "{} in {view}: {effects:?}", def.name);
            }
        }
    }
}

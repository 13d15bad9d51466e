//! Every view in three sizes and two themes, as text with styles and as a picture; and every view at any size at all.

#[path = "support/picture.rs"]
mod picture;
#[path = "support/states.rs"]
mod states;
#[path = "support/styled.rs"]
mod styled;
#[path = "support/world.rs"]
mod world;

use std::fmt::Write;
use std::path::PathBuf;
use std::sync::Once;

use muster::tui::event::Event;
use muster::tui::glyphs::Glyphs;
use muster::tui::model::Model;
use muster::tui::theme::Theme;
use muster::tui::view::{LogPane, draw};
use muster::tui::widgets::pen::Skin;
use proptest::prelude::*;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use states::{State, View};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

const SIZES: [(u16, u16); 3] = [(60, 20), (100, 32), (200, 60)];

fn skin(theme: &str, ascii: bool) -> Skin {
    Skin { theme: Theme::named(theme).unwrap(), glyphs: Glyphs { ascii } }
}

/// What a console has in its log, once for all tests of this process: the log pane is of the process.
fn log_something() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        tracing_subscriber::registry().with(muster::tui::log_layer()).init();
        tracing::info!(target: "muster::app", runs = 4, "runs of before go on");
        tracing::debug!(target: "muster::clients::http", method = "GET", path = "/api/dcim/devices/", status = 200, ms = 48, "request");
        tracing::info!(target: "muster::inventory::netbox", devices = 50, changed = 2, "devices read");
        tracing::warn!(target: "muster::activities::bmc", host = "gpu-b07-21", status = 503, "the BMC is busy, asking again");
        tracing::error!(
            target: "muster::inventory::ironic",
            instance = "cpu",
            error = "connect to ironic-cpu.osl1:6385: connection refused \u{1b}[31m(os error 111)",
            "the nodes could not be read",
        );
    });
}

fn frame(model: &Model, skin: &Skin) -> Buffer {
    log_something();
    let mut buf = Buffer::empty(Rect::new(0, 0, model.width, model.height));
    let log = LogPane::new(false);
    log.collect();
    draw(model, skin, &log, &mut buf);
    buf
}

/// Compares a frame with its text and with its picture. Both are accepted by environment: `INSTA_UPDATE=always` and
/// `MUSTER_UPDATE_PNG=1`.
fn compare(name: &str, buf: &Buffer, problems: &mut Vec<String>) {
    insta::assert_snapshot!(name, styled::styled(buf));
    compare_picture(name, buf, problems);
}

/// As [`compare`], for frames that are accepted already as text.
fn compare_picture(name: &str, buf: &Buffer, problems: &mut Vec<String>) {
    let path = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/snapshots")).join(format!("{name}.png"));
    let png = picture::png(buf, picture::DARK);
    if std::env::var_os("MUSTER_UPDATE_PNG").is_some() {
        std::fs::write(&path, &png).unwrap();
    } else if std::fs::read(&path).ok().as_deref() != Some(&png[..]) {
        problems.push(format!("snapshots/{name}.png is not the picture of this frame"));
    }
}

/// Each view in a state: one text with the styles of all sizes and themes, and a picture of those that are looked at first.
/// What does not exist is named.
fn accepted(state: State, missing: &[View]) {
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path(concat!(env!("CARGO_MANIFEST_DIR"), "/snapshots/states"));
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    let skins = ["dark", "mono"].map(|theme| (theme, skin(theme, false)));
    let (mut problems, mut none) = (Vec::new(), Vec::new());
    for view in states::VIEWS {
        let name = states::name(view, state);
        let mut text = String::new();
        for (width, height) in SIZES {
            let Some(model) = states::scene(view, state, width, height) else { continue };
            for (theme, skin) in &skins {
                let buf = frame(&model, skin);
                writeln!(text, "== {width}x{height} {theme}\n{}", styled::styled(&buf)).unwrap();
                let pictured = matches!(view, View::Fleet | View::Rack | View::Run | View::ForYou);
                if pictured && (width, *theme) == (100, "dark") {
                    compare_picture(&format!("states/{name}_{width}x{height}_{theme}"), &buf, &mut problems);
                }
            }
        }
        if text.is_empty() {
            none.push(view);
        } else {
            settings.bind(|| insta::assert_snapshot!(name, text));
        }
    }
    assert_eq!(none, missing);
    assert!(problems.is_empty(), "{}\naccept with MUSTER_UPDATE_PNG=1 after looking at them", problems.join("\n"));
}

/// A run has at least the record of its submission, and a program its keys.
///
/// Proves: U9
#[test]
fn every_view_with_nothing_in_it_is_as_it_was_accepted() {
    accepted(State::Empty, &[View::Help, View::Replay]);
}

/// The launch dialog is made of what the fleet has: before that there is nothing to launch.
///
/// Proves: U9
#[test]
fn every_view_that_is_not_read_yet_is_as_it_was_accepted() {
    accepted(State::Loading, &[View::Launch]);
}

/// Proves: U9
#[test]
fn every_view_of_old_readings_is_as_it_was_accepted() {
    accepted(State::Stale, &[]);
}

/// Proves: U9
#[test]
fn every_view_of_what_fails_is_as_it_was_accepted() {
    accepted(State::Failing, &[]);
}

/// Proves: U9
#[test]
fn every_view_of_more_than_a_screen_holds_is_as_it_was_accepted() {
    accepted(State::Full, &[]);
}

fn all_views(width: u16, height: u16) {
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path(concat!(env!("CARGO_MANIFEST_DIR"), "/snapshots"));
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    let mut problems = Vec::new();
    settings.bind(|| {
        for theme in ["dark", "mono"] {
            let skin = skin(theme, false);
            for (view, model) in world::every_view(width, height) {
                compare(&format!("{view}_{width}x{height}_{theme}"), &frame(&model, &skin), &mut problems);
            }
        }
    });
    assert!(problems.is_empty(), "{}\naccept with MUSTER_UPDATE_PNG=1 after looking at them", problems.join("\n"));
}

/// Proves: U1, U2, U3, U9
#[test]
fn every_view_at_60_by_20_is_as_it_was_accepted() {
    all_views(SIZES[0].0, SIZES[0].1);
}

/// Proves: U1, U2, U3, U9
#[test]
fn every_view_at_100_by_32_is_as_it_was_accepted() {
    all_views(SIZES[1].0, SIZES[1].1);
}

/// Proves: U1, U2, U3, U9
#[test]
fn every_view_at_200_by_60_is_as_it_was_accepted() {
    all_views(SIZES[2].0, SIZES[2].1);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// No view and no dialog panics at any size, and growing back restores it (C-43).
    ///
    /// Proves: U6
    #[test]
    fn every_view_can_be_drawn_at_any_size(width in 1u16..260, height in 1u16..90, theme in 0usize..6, ascii: bool) {
        let skin = skin(Theme::names()[theme], ascii);
        for (view, mut model) in world::every_view(100, 32) {
            let before = frame(&model, &skin);
            muster::tui::update::update(&mut model, Event::Resize { width, height });
            frame(&model, &skin);
            muster::tui::update::update(&mut model, Event::Resize { width: 100, height: 32 });
            prop_assert_eq!(frame(&model, &skin), before, "{}", view);
        }
    }
}

/// Sizes that broke other consoles, with every dialog open (C-43).
///
/// Proves: U6
#[test]
fn the_smallest_sizes_say_calmly_what_is_needed() {
    let skin = skin("dark", false);
    for (width, height) in [(1, 1), (14, 54), (46, 10), (20, 5), (59, 20), (60, 19), (200, 1), (1, 60)] {
        for (view, mut model) in world::every_view(100, 32) {
            muster::tui::update::update(&mut model, Event::Resize { width, height });
            let buf = frame(&model, &skin);
            if width >= 20 && height >= 3 {
                let text: String = buf.content.iter().map(|c| c.symbol()).collect();
                assert!(text.contains("muster needs 60×20"), "{view} at {width}×{height}: {text}");
                assert!(text.contains("go on."), "{view} at {width}×{height}: {text}");
            }
        }
    }
}

/// At every size and in every view and dialog that is about a site, also over what waits and what fails.
///
/// Proves: B20
#[test]
fn that_a_site_checks_no_certificates_stands_on_the_screen_at_all_times() {
    let mark = |model: &Model, ascii: bool| {
        let buf = frame(model, &skin(if ascii { "mono" } else { "dark" }, ascii));
        let first: String = (0..buf.area.width).map(|x| buf[(x, 0)].symbol()).collect();
        first.contains("! TLS unchecked") || (model.width < 80 && first.contains("! TLS?"))
    };
    let osl1 = [("osl1".to_owned(), vec!["BMCs".to_owned()])];
    let crowded = states::VIEWS.into_iter().flat_map(|view| {
        [State::Failing, State::Full, State::Stale]
            .into_iter()
            .filter_map(move |state| states::scene(view, state, 60, 20))
    });
    let sizes = SIZES.into_iter().chain([(61, 20), (80, 24), (99, 30)]);
    let views = sizes.flat_map(|(width, height)| world::every_view(width, height)).map(|(_, model)| model);
    let (mut marked, mut elsewhere) = (0, 0);
    for mut model in views.chain(crowded) {
        model.unchecked.clear();
        assert!(!mark(&model, false), "there is nothing to say");
        // The site of what shows has none: another's is not said of it.
        model.unchecked = [("far9".to_owned(), vec!["BMCs".to_owned()])].into();
        elsewhere += usize::from(!mark(&model, false));
        model.unchecked = osl1.clone().into();
        let says = mark(&model, false);
        let concerns = model.sites_shown().is_none_or(|sites| sites.contains("osl1"));
        assert_eq!(says, concerns, "{}x{} {:?} {:?}", model.width, model.height, model.screens.last(), model.popup);
        assert_eq!(says, mark(&model, true), "in ASCII too");
        marked += usize::from(says);
    }
    assert!(marked > 150 && elsewhere > 100, "{marked} {elsewhere}");

    // Where all sites show, it is said which.
    let mut everywhere = world::console(200, 60);
    world::press(&mut everywhere, "tab g g enter");
    everywhere.unchecked = osl1.into();
    let buf = frame(&everywhere, &skin("dark", false));
    let first: String = (0..200).map(|x| buf[(x, 0)].symbol()).collect();
    assert!(first.contains("! TLS unchecked: osl1 BMCs"), "{first}");
}

/// Proves: U6
#[test]
fn ascii_glyphs_are_all_that_an_ascii_terminal_gets() {
    let skin = skin("mono", true);
    for (width, height) in SIZES {
        for (view, model) in world::every_view(width, height) {
            let buf = frame(&model, &skin);
            let other: String = buf.content.iter().flat_map(|c| c.symbol().chars()).filter(|c| !c.is_ascii()).collect();
            assert_eq!(other, "", "{view} at {width}×{height}");
        }
    }
}

/// Proves: U6
#[test]
fn without_colour_every_view_has_the_same_letters() {
    let letters = |model: &Model, theme: &str| -> String {
        frame(model, &skin(theme, false)).content.iter().map(|c| c.symbol()).collect()
    };
    for (view, model) in world::every_view(100, 32) {
        assert_eq!(letters(&model, "mono"), letters(&model, "dark"), "{view}");
    }
}

/// Proves: U8
#[test]
fn hostile_text_reaches_no_cell() {
    let mut hosts = world::hosts();
    let hostile = "x\u{1b}[2J\u{202e}\u{200b}\u{9b}31m\u{7}";
    for host in &mut hosts {
        let d = &mut host.device;
        (d.rack, d.location) = (Some(format!("B07{hostile}").into()), Some(hostile.into()));
        (d.status, d.model) = (hostile.into(), hostile.into());
        d.name = format!("{hostile}{}", d.name).into();
        if let Some(failure) = host.last_run.as_mut().and_then(|r| r.failure.as_mut()) {
            (failure.message, failure.action) = (hostile.repeat(3), hostile.to_owned());
        }
    }
    for (width, height) in SIZES {
        for (_, mut model) in world::every_view(width, height) {
            muster::tui::update::update(&mut model, Event::Fleet(hosts.clone()));
            let buf = frame(&model, &skin("dark", false));
            let hostile = |c: char| c.is_control() || matches!(c, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}');
            let found: Vec<char> =
                buf.content.iter().flat_map(|c| c.symbol().chars()).filter(|c| hostile(*c)).collect();
            assert!(found.is_empty(), "{found:?}");
        }
    }
}

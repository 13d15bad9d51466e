//! The rack as the console shows it: units, faces, what stands at none, and keys that do there what they do in the table.

#[allow(dead_code, reason = "each test binary uses its part of the support")]
#[path = "support/world.rs"]
mod world;

use muster::domain::elevation::{Elevation, Face, Heard, Units};
use muster::tui::action::{Where, here};
use muster::tui::effect::Effect;
use muster::tui::event::{Event, Refused};
use muster::tui::glyphs::Glyphs;
use muster::tui::model::place::Place;
use muster::tui::model::{Model, Popup};
use muster::tui::theme::Theme;
use muster::tui::update::update;
use muster::tui::view::{LogPane, draw};
use muster::tui::widgets::pen::Skin;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use world::{console, go, hosts, press, rack, rack_of, show_rack};

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

/// The line that has a text.
#[track_caller]
fn line_of(model: &Model, text: &str) -> String {
    let screen = screen(model);
    let found = screen.lines().find(|line| line.contains(text));
    found.unwrap_or_else(|| panic!("'{text}' is not on the screen:\n{screen}")).to_owned()
}

fn b07() -> Place {
    Place(["osl1", "hall B", "B07"].map(str::to_owned).into())
}

fn selected(model: &Model) -> &str {
    &model.rack_screen().unwrap().device().unwrap().1.device.name
}

/// Proves: U1
#[test]
fn a_key_opens_the_rack_of_the_host_from_table_run_and_walk_and_the_tree_opens_its_own() {
    for keys in ["u", "enter u", "w u", "esc u"] {
        let mut model = console(100, 32);
        let effects = press(&mut model, keys);
        assert!(effects.contains(&Effect::LoadRack(b07())), "{keys}: {effects:?}");
        assert_eq!(here(&model), Where::Rack, "{keys}");
        assert_shows(&model, "reading the rack from the store");
        show_rack(&mut model, rack_of(&hosts()));
        assert_eq!(selected(&model), "gpu-b07-37", "{keys}");
    }
    let mut model = console(100, 32);
    press(&mut model, "tab k k");
    let place = model.fleet.place.clone();
    assert_eq!(place.depth(), 3);
    assert_eq!(press(&mut model, "u"), [Effect::LoadRack(place)]);
    let mut model = console(100, 32);
    press(&mut model, "/ z z z enter tab h h h u");
    assert_shows(&model, "choose a rack in the tree, or a host");
}

/// Proves: U1
#[test]
fn units_are_those_of_netbox_and_devices_stand_at_theirs_in_their_height() {
    let mut model = rack(200, 60);
    // A host of two units: its name at the upper one, and the number that it is looked for by at the lower one.
    let rows: Vec<String> = screen(&model).lines().map(str::to_owned).collect();
    let at = rows.iter().position(|row| row.contains("gpu-b07-37  eth0 and eth1")).unwrap();
    assert!(rows[at].trim_start().starts_with("38 ┌"), "{}", rows[at]);
    assert!(rows[at + 1].trim_start().starts_with("37 └"), "{}", rows[at + 1]);
    assert!(rows[at + 2].trim_start().starts_with("36 ┊"), "an empty unit is empty: {}", rows[at + 2]);
    // One unit high, and at the front only; what is mounted behind it is another device.
    let row = line_of(&model, "panel-b07");
    assert!(row.trim_start().starts_with("45 [") && row.contains("45 [ oob-b07"), "{row}");
    assert_shows(&model, "shelf-b07  Shelf · height unknown");
    press(&mut model, "G");
    for text in ["no unit in NetBox", "beside the units", "at units that this rack does not have", "U50    console-b07"]
    {
        assert_shows(&model, text);
    }
    for name in ["pdu-b07-a", "pdu-b07-b", "gpu-b07-35"] {
        assert_shows(&model, name);
    }
}

/// Proves: U1
#[test]
fn a_rack_that_is_counted_from_the_top_and_halves_of_units_are_drawn_as_they_are() {
    let (_, model) = world::every_view(100, 32).into_iter().find(|(view, _)| *view == "rack-halves").unwrap();
    assert_shows(&model, "10 U from 5 down");
    let rows: Vec<String> = screen(&model).lines().skip(2).take(20).map(|row| row.chars().take(6).collect()).collect();
    let numbers: Vec<&str> = rows.iter().map(|row| row[..3].trim()).collect();
    let printed: Vec<&str> = numbers.iter().copied().filter(|n| !n.is_empty()).collect();
    assert_eq!(
        printed,
        ["5", "6", "7", "8", "9", "10", "11", "12", "13", "14"],
        "two lines a unit:\n{}",
        screen(&model)
    );
    let sides: String = rows.iter().map(|row| row.chars().nth(4).unwrap()).collect();
    assert_eq!(sides, "┌└┌││└[┌│└┊┊┌││││││└", "{}", screen(&model));
}

/// Proves: U1
#[test]
fn the_rear_says_of_each_cable_what_is_known_and_that_nothing_is_known() {
    let mut model = rack(200, 60);
    press(&mut model, "g g");
    assert_shows(&model, "eth0   UP      ✓ leaf-b07-1 swp16");
    assert_shows(&model, "eth0   UP      ✗ leaf-b07-2 swp14");
    // The run under way has just read it; what is in the store is older.
    assert_shows(&model, "eth0   DOWN    ? leaf-b07-1 swp15");
    assert_shows(&model, "eth0   UNKNOWN ? leaf-b07-1 swp12");
    assert_shows(&model, "W-0413 blue   2h ago");
    assert_shows(&model, "eth1   UNKNOWN ! no cable in NetBox");
    assert_shows(&model, "eth1   DOWN    ✗ not in leaf-b07-2 swp4");
    assert_shows(&model, "no cable in NetBox");
}

/// Proves: U1, U6
#[test]
fn at_60_by_20_one_face_shows_a_key_turns_the_rack_and_every_device_can_be_reached() {
    let mut model = rack(60, 20);
    assert_shows(&model, "B07 front");
    assert_shows(&model, "tab › rear");
    press(&mut model, "tab");
    assert_eq!(model.rack_screen().unwrap().face, Face::Rear);
    assert_shows(&model, "B07 rear");
    let row = line_of(&model, "✗ leaf-b07-2 swp14");
    assert!(row.contains("gpu-b07-37"), "whose cable it is stands before it: {row}");
    press(&mut model, "h");
    assert_shows(&model, "B07 front");
    press(&mut model, "g g");
    let mut seen = vec![selected(&model).to_owned()];
    for _ in 0..40 {
        press(&mut model, "j");
        let name = selected(&model).to_owned();
        assert_shows(&model, &name);
        if seen.last() != Some(&name) {
            seen.push(name);
        }
    }
    let all: Vec<String> = rack_of(&hosts()).devices.iter().map(|racked| racked.device.name.clone()).collect();
    assert_eq!(seen, all, "from the top down, then what stands at no unit");
}

/// Proves: U1
#[test]
fn keys_do_in_the_rack_what_they_do_in_the_table() {
    let mut model = rack(100, 32);
    assert_eq!(press(&mut model, "L"), [Effect::Locate { host: "gpu-b07-37".into() }]);
    assert!(matches!(&press(&mut model, "f")[..], [Effect::Retry { force_inspection: true, .. }]));
    assert!(matches!(&press(&mut model, "p")[..], [Effect::Plan { host, .. }] if host == "gpu-b07-37"));
    assert!(matches!(model.popup, Some(Popup::Plan(_))));
    press(&mut model, "esc esc space");
    assert_eq!(selected(&model), "gpu-b07-33", "a mark goes on to the next device");
    press(&mut model, "space e");
    let Some(Popup::Launch(launch)) = &model.popup else { panic!("{:?}", model.popup) };
    assert_eq!(launch.hosts.iter().map(|host| host.host.as_str()).collect::<Vec<_>>(), ["gpu-b07-37", "gpu-b07-33"]);
    press(&mut model, "esc esc esc");
    assert_eq!((model.fleet.marks.len(), here(&model)), (0, Where::Rack), "marks leave before the view does");
    press(&mut model, "k k enter");
    assert_eq!(here(&model), Where::Run);
    press(&mut model, "esc esc");
    assert_eq!(here(&model), Where::Fleet);
    assert_eq!(model.fleet.host().unwrap().device.name, "gpu-b07-37", "the table stands on the same host");
}

#[test]
fn what_is_no_host_says_so_instead_of_doing_nothing() {
    let mut model = rack(100, 32);
    press(&mut model, "g g");
    assert!(press(&mut model, "j L").is_empty());
    assert_eq!(selected(&model), "leaf-b07-2");
    assert_shows(&model, "leaf-b07-2 is a Switch: nothing of this is done to it");
    assert_shows(&model, "Edgecore AS4610-54T · Switch");
}

#[test]
fn the_mouse_selects_a_device_and_turns_to_its_face() {
    let mut model = rack(100, 32);
    let row = screen(&model).lines().position(|line| line.contains("leaf-b07-2 swp14")).unwrap() as u16;
    press(&mut model, "g g");
    let row_now = screen(&model).lines().position(|line| line.contains("swp16")).unwrap_or(usize::from(row)) as u16;
    update(&mut model, Event::Click { column: 70, row: row_now, at: world::now() });
    assert_eq!((selected(&model), model.rack_screen().unwrap().face), ("gpu-b07-41", Face::Rear));
    update(&mut model, Event::Wheel { column: 70, row: row_now, notches: 1 });
    assert_eq!(selected(&model), "gpu-b07-39");
}

/// Proves: U1
#[test]
fn a_rack_is_read_anew_when_the_fleet_changed_and_once_only_while_it_is_being_read() {
    let mut model = rack(100, 32);
    let asked = |effects: Vec<Effect>| effects.into_iter().filter(|e| matches!(e, Effect::LoadRack(_))).count();
    assert_eq!(asked(update(&mut model, Event::Fleet(hosts()))), 1);
    assert_eq!(asked(update(&mut model, Event::Fleet(hosts()))), 0);
    let mut moved = rack_of(&hosts());
    moved.devices.retain(|racked| racked.device.name != "gpu-b07-37");
    let answer = Ok(Box::new(moved));
    let place = b07();
    assert_eq!(asked(update(&mut model, Event::Rack { place: place.clone(), answer })), 1, "it changed meanwhile");
    assert_eq!(asked(update(&mut model, Event::Rack { place, answer: Ok(Box::new(rack_of(&hosts()))) })), 0);
}

#[test]
fn a_store_that_fails_and_a_rack_that_is_not_known_say_what_they_are() {
    let mut model = console(100, 32);
    press(&mut model, "u");
    let refused =
        Refused { code: "store_failed".into(), message: "disk I/O error".into(), action: "look at the disk".into() };
    update(&mut model, Event::Rack { place: b07(), answer: Err(refused) });
    assert_shows(&model, "the rack could not be read: disk I/O error");
    let here: Elevation = rack_of(&hosts());
    show_rack(&mut model, Elevation { is_measured: false, ..here.clone() });
    assert_shows(&model, "height not in NetBox's list");
    show_rack(&mut model, Elevation { is_numbered: false, ..here.clone() });
    assert_shows(&model, "numbering not read yet");
    let units = Units { height: 42, first: 1, top_down: false };
    show_rack(&mut model, Elevation { units, devices: Vec::new(), ..here });
    assert_shows(&model, "NetBox has no device in this rack any more");
    // Nothing that keys do there breaks anything.
    press(&mut model, "j k G tab space L enter");
    go(&mut model, "gpu-b07-33");
}

/// Proves: U8
#[test]
fn hostile_text_of_a_rack_reaches_no_cell() {
    let hostile = "x\u{1b}[2J\u{202e}\u{200b}\u{9b}31m\u{7}";
    for (width, height) in [(60, 20), (100, 32), (200, 60)] {
        for keys in ["j", "tab", "G", "tab G"] {
            let mut model = rack(width, height);
            let mut elevation = rack_of(&hosts());
            for racked in &mut elevation.devices {
                let device = &mut racked.device;
                (device.name, device.role) = (format!("{hostile}{}", device.name), hostile.to_owned());
                (device.model, device.serial) = (hostile.repeat(40), Some(hostile.to_owned()));
                for link in &mut racked.links {
                    link.interface = format!("{hostile}{}", link.interface);
                    link.heard = Heard::Elsewhere { port: Some((hostile.into(), hostile.into())), at: world::now() };
                }
            }
            show_rack(&mut model, elevation);
            press(&mut model, keys);
            let screen = screen(&model);
            let hostile =
                |c: char| c.is_control() && c != '\n' || matches!(c, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}');
            let found: Vec<char> = screen.chars().filter(|c| hostile(*c)).collect();
            assert!(found.is_empty(), "{found:?}");
        }
    }
}

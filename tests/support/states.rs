//! Every view in the states that a console meets: nothing there, not read yet, old, failing, full.

use jiff::Timestamp;
use muster::domain::elevation::{Elevation, Units, arrange};
use muster::domain::ids::RunId;
use muster::tui::event::{Event, Refused};
use muster::tui::model::host::{Host, SystemHealth};
use muster::tui::model::{Model, Popup};
use muster::tui::update::update;

use super::world::past::pasts;
use super::world::{self, Story, before, console, go, hosts, load, now, plan_of, press, rack_of, run_id, show_rack};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum View {
    Fleet,
    Rack,
    Launch,
    Plan,
    Run,
    ForYou,
    Help,
    Palette,
    Replay,
    History,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// The store was read and has nothing of it.
    Empty,
    /// Nothing was read yet.
    Loading,
    /// No system was heard for a while.
    Stale,
    /// Systems and store fail.
    Failing,
    /// More than a screen holds, with long names.
    Full,
}

pub const VIEWS: [View; 10] = [
    View::Fleet,
    View::Rack,
    View::Launch,
    View::Plan,
    View::Run,
    View::ForYou,
    View::Help,
    View::Palette,
    View::Replay,
    View::History,
];

/// `rack-failing`.
pub fn name(view: View, state: State) -> String {
    let view = match view {
        View::ForYou => "for-you".to_owned(),
        other => format!("{other:?}").to_lowercase(),
    };
    format!("{view}-{}", format!("{state:?}").to_lowercase())
}

/// The console in a state, on its fleet.
fn base(state: State, width: u16, height: u16) -> Model {
    let health = |model: &mut Model, name: &str, ok_at: Option<Timestamp>, error: Option<&str>| {
        let health = SystemHealth { name: name.into(), ok_at, error: error.map(str::to_owned) };
        update(model, Event::Health(health));
    };
    match state {
        State::Loading => Model { look: console(width, height).look, ..Model::new(now(), width, height) },
        State::Empty => {
            let mut model = base(State::Loading, width, height);
            update(&mut model, Event::Fleet(Vec::new()));
            health(&mut model, "netbox", Some(before(3)), None);
            model
        }
        State::Stale => {
            let mut model = console(width, height);
            for (name, age) in [("netbox", 1500), ("ironic:gpu", 1260), ("ironic:cpu", 4000)] {
                health(&mut model, name, Some(before(age)), None);
            }
            model
        }
        State::Failing => {
            let mut model = console(width, height);
            health(&mut model, "netbox", Some(before(600)), Some("connect to netbox.osl1:443: connection refused"));
            health(&mut model, "ironic:gpu", Some(before(90)), Some("503 from ironic-gpu.osl1"));
            health(&mut model, "ironic:cpu", None, Some("no such host"));
            health(&mut model, "store", None, Some("run 0004f2 waits: disk I/O error"));
            update(&mut model, Event::Answered(Err(failed())));
            model
        }
        State::Full => {
            let mut model = console(width, height);
            update(&mut model, Event::Fleet(many()));
            model
        }
    }
}

fn failed() -> Refused {
    Refused {
        code: "store_failed".into(),
        message: "the store at '/var/lib/muster/muster.db' can't be read: disk I/O error".into(),
        action: "look at the disk of this machine; nothing is lost that was written".into(),
    }
}

/// The invented site twenty times over, with names that are as long as names get.
fn many() -> Vec<Host> {
    let mut all = hosts();
    let b07: Vec<Host> = all.iter().filter(|host| host.device.rack.as_deref() == Some("B07")).cloned().collect();
    for n in 10..30u64 {
        for host in &b07 {
            let mut copy = host.clone();
            let device = &mut copy.device;
            device.netbox_id += n * 1000;
            device.rack = Some(format!("B{n}-row-{n}").into());
            device.location = Some("hall B, second floor, cage 4".into());
            device.name = device.name.replace("b07", &format!("hyperscale-b{n}")).into();
            if let Some(last) = &mut copy.last_run {
                last.run = RunId(uuid::Uuid::from_u128(last.run.0.as_u128() + (u128::from(n) << 32)));
            }
            all.push(copy);
        }
    }
    all
}

/// A rack without a free unit: hosts of one unit each, and what takes no unit.
fn packed(hosts: &[Host]) -> Elevation {
    let mut rack = rack_of(hosts);
    let like = rack.devices.iter().find(|racked| racked.device.name == "gpu-b07-37").unwrap().clone();
    rack.devices.retain(|racked| racked.device.position.is_none());
    for unit in 1..=48u32 {
        let mut racked = like.clone();
        let known = hosts.iter().find(|host| host.device.netbox_id == 7000 + u64::from(unit));
        racked.device.netbox_id = known.map_or(9000 + u64::from(unit), |host| host.device.netbox_id);
        racked.device.name = known.map_or(format!("gpu-hyperscale-b07-{unit:02}"), |host| host.device.name.to_string());
        (racked.device.position, racked.device.u_height) = (Some(f64::from(unit)), Some(1.0));
        rack.devices.push(racked);
    }
    let units = Units { height: 48, first: 1, top_down: false };
    Elevation { devices: arrange(units, rack.devices), units, ..rack }
}

fn story(n: u128, host: &str, ago_s: i64) -> Story {
    let host = hosts().into_iter().find(|h| h.device.name == host).unwrap();
    Story::of(n, &host, ago_s)
}

/// The run that failed, with its records.
fn failed_story() -> Story {
    story(0x3c7, "gpu-b07-37", 744).prepared().inspected(true).failed(704, world::swapped())
}

/// A run with more events than any screen has lines.
fn long_story() -> Story {
    let mut story = failed_story();
    let last = story.records.pop().unwrap();
    for n in 0..300 {
        story.note(
            90 + n,
            "ironic",
            "locked by conductor-2.ironic-gpu.osl1.example with a name of some length, tried again after 10s",
        );
    }
    story.records.push(last);
    for (n, record) in story.records.iter_mut().enumerate() {
        record.n = n as u64;
    }
    story
}

/// A view in a state; `None`: there is nothing of the kind.
pub fn scene(view: View, state: State, width: u16, height: u16) -> Option<Model> {
    let mut model = base(state, width, height);
    let on_host = matches!(state, State::Stale | State::Failing | State::Full);
    match (view, state) {
        (View::Fleet, _) => {}
        (View::Rack, State::Loading) => {
            // A rack is opened on a host, so the fleet is there.
            model = console(width, height);
            press(&mut model, "u");
        }
        (View::Rack, State::Empty) => {
            model = console(width, height);
            press(&mut model, "u");
            show_rack(&mut model, Elevation { devices: Vec::new(), ..rack_of(&hosts()) });
        }
        (View::Rack, State::Stale) => {
            press(&mut model, "u");
            show_rack(&mut model, Elevation { is_numbered: false, ..rack_of(&hosts()) });
        }
        (View::Rack, State::Failing) => {
            press(&mut model, "esc u");
            let place = model.rack_screen().unwrap().place.clone();
            update(&mut model, Event::Rack { place, answer: Err(failed()) });
        }
        (View::Rack, State::Full) => {
            press(&mut model, "u");
            show_rack(&mut model, packed(&hosts()));
        }
        (View::Launch, State::Loading) => return None,
        (View::Launch, State::Empty) => {
            model = console(width, height);
            go(&mut model, "gpu-b07-35");
            press(&mut model, "e");
        }
        (View::Launch, State::Stale) => drop(press(&mut model, "j e")),
        (View::Launch, State::Failing) => {
            press(&mut model, "j e");
            let refused = Refused {
                code: "busy".into(),
                message: "run 0004f2 by kim is under way on this host".into(),
                action: "open that run, or cancel it first".into(),
            };
            let answer = Err(refused);
            update(&mut model, Event::Submitted { host: "gpu-b07-33".into(), of: None, open: true, answer });
        }
        (View::Launch, State::Full) => {
            press(&mut model, "tab h h h enter");
            let ids: Vec<u64> = model.fleet.hosts.iter().map(|host| host.device.netbox_id).collect();
            model.fleet.marks.extend(ids);
            press(&mut model, "e");
        }
        (View::Plan, State::Loading) => {
            model = console(width, height);
            press(&mut model, "j p");
        }
        (View::Plan, State::Empty) => {
            model = console(width, height);
            press(&mut model, "j p");
            let mut plan = plan_of("gpu-b07-33");
            plan.phases.iter_mut().for_each(|phase| phase.steps.clear());
            plan.writes = 0;
            planned(&mut model, Ok(plan));
        }
        (View::Plan, State::Failing) => {
            press(&mut model, "j p");
            planned(&mut model, Err(failed()));
        }
        (View::Plan, State::Stale) => {
            press(&mut model, "j p");
            planned(&mut model, Ok(plan_of("gpu-b07-33")));
        }
        (View::Plan, State::Full) => {
            model = console(width, height);
            press(&mut model, "j p");
            let mut plan = plan_of("gpu-b07-33");
            let phases = plan.phases.clone();
            for _ in 0..4 {
                plan.phases.extend(phases.clone());
            }
            planned(&mut model, Ok(plan));
            press(&mut model, "G");
        }
        (View::Run, State::Empty) => {
            model = console(width, height);
            go(&mut model, "gpu-b07-27");
            press(&mut model, "enter");
        }
        (View::Run, State::Loading) => {
            model = console(width, height);
            go(&mut model, "gpu-b07-29");
            press(&mut model, "enter");
        }
        (View::Run, State::Stale) => {
            go(&mut model, "gpu-b07-31");
            press(&mut model, "enter");
        }
        (View::Run, State::Failing) => {
            press(&mut model, "esc");
            go(&mut model, "gpu-b07-29");
            press(&mut model, "enter");
            update(&mut model, Event::RunLost { run: run_id(0xd29), why: failed() });
        }
        (View::Run, State::Full) => {
            model = console(width, height);
            press(&mut model, "enter");
            load(&mut model, &long_story());
        }
        (View::ForYou, _) => drop(press(&mut model, if state == State::Full { "tab h h h enter w" } else { "w" })),
        (View::Help, State::Empty) => return None,
        (View::Help, _) => drop(press(&mut model, "?")),
        (View::Palette, State::Empty) => drop(press(&mut model, ": n o s u c h")),
        (View::Palette, State::Full) => drop(press(&mut model, ": h o s t space")),
        (View::Palette, _) => drop(press(&mut model, ":")),
        (View::Replay, State::Empty) => return None,
        (View::Replay, State::Failing) => {
            press(&mut model, "esc enter");
            load(&mut model, &failed_story());
            press(&mut model, "[");
            update(&mut model, Event::RunLost { run: run_id(0x3c7), why: failed() });
        }
        (View::History, State::Empty) => {
            model = console(width, height);
            press(&mut model, "H");
            of_host(&mut model, Ok(Vec::new()));
        }
        (View::History, State::Loading) => {
            model = console(width, height);
            press(&mut model, "H");
        }
        (View::History, State::Stale) => {
            press(&mut model, "H");
            of_host(&mut model, Ok(pasts()));
        }
        (View::History, State::Failing) => {
            press(&mut model, "esc H");
            of_host(&mut model, Err(failed()));
        }
        (View::History, State::Full) => {
            press(&mut model, "H");
            let days = (0..60u128).flat_map(|n| {
                pasts().into_iter().map(move |past| muster::tui::model::history::Past {
                    run: RunId(uuid::Uuid::from_u128(past.run.0.as_u128() + (n << 32))),
                    by: "automation-of-the-hall-team".to_owned(),
                    ..past
                })
            });
            of_host(&mut model, Ok(days.collect()));
        }
        (View::Replay, _) => {
            if !on_host || state == State::Full {
                model = console(width, height);
            }
            let story = if state == State::Full { long_story() } else { failed_story() };
            press(&mut model, "enter");
            load(&mut model, &story);
            press(&mut model, "[");
            if state != State::Loading {
                update(&mut model, Event::Tape { run: run_id(0x3c7), records: story.records });
                press(&mut model, "[ [");
            }
        }
    }
    Some(model)
}

fn of_host(model: &mut Model, runs: Result<Vec<muster::tui::model::history::Past>, Refused>) {
    let netbox_id = model.target().expect("a host is selected").device.netbox_id;
    update(model, Event::History { netbox_id, runs });
}

fn planned(model: &mut Model, plan: Result<muster::domain::plan::Plan, Refused>) {
    let Some(Popup::Plan(popup)) = &model.popup else { panic!("p opens the plan: {:?}", model.popup) };
    let (host, params) = ("gpu-b07-33".to_owned(), popup.launch.read_params());
    update(model, Event::Planned { plan, host, params });
}

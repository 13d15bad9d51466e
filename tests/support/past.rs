//! What was before: the earlier runs of a host, and what runs usually took.

use muster::domain::event::Observation;
use muster::domain::failure::{Failure, FailureCode};
use muster::domain::phase::Phase;
use muster::domain::run_view::RunState;
use muster::domain::usual::{Kind, Part, Took, Usual};
use muster::tui::event::Event;
use muster::tui::model::Model;
use muster::tui::model::history::Past;
use muster::tui::update::update;

use super::{Story, before, console, go, hosts, load, press, run_id, swapped};

/// What twelve runs of the site's platform class took.
pub fn usual() -> Usual {
    let kind = Kind {
        platform_class: Some("GB300_LENOVOHG635NV2_IB_01".to_owned()),
        device_type: Some("Lenovo HG635N V2".to_owned()),
        site: "osl1".to_owned(),
    };
    let phases = [
        (Phase::Dhcp, 4),
        (Phase::Bmc, 40),
        (Phase::Activation, 1),
        (Phase::Inspection, 540),
        (Phase::Cleaning, 780),
        (Phase::Finalize, 6),
    ];
    let parts = phases.into_iter().map(|(phase, seconds)| (Part::Phase(phase), seconds)).chain([(Part::Run, 1440)]);
    let took = |(part, seconds): (Part, u64)| {
        let kind = kind.clone();
        (0..12).map(move |n| Took { part, kind: kind.clone(), at: before(90_000 + n), seconds: seconds + n as u64 / 6 })
    };
    Usual::of(&parts.flat_map(took).collect::<Vec<_>>())
}

/// The runs of gpu-b07-37, the newest first.
pub fn pasts() -> Vec<Past> {
    let past = |n: u128, state: RunState, ago_s: i64, took_s: i64, phase: Phase, failure: Option<Failure>| Past {
        run: run_id(n),
        state,
        by: if n.is_multiple_of(2) { "jo" } else { "kim" }.to_owned(),
        submitted_at: before(ago_s),
        finished_at: Some(before(ago_s - took_s)),
        phase: Some(phase),
        attempts: 1,
        failure,
        retry_of: None,
    };
    let message = "'dhcp1.osl1' shows the key 'SHA256:hPq…w0', known_hosts has 'SHA256:Zt1…9A'";
    let key = Failure::new(FailureCode::DhcpHostKeyChanged, Phase::Dhcp, message, "find out why the host key changed");
    let clean = "cleaning of 'gpu-b07-37' failed 3 of 3 times: erase_devices_metadata: disk nvme3 did not answer";
    let clean = Failure::new(FailureCode::CleanFailed, Phase::Cleaning, clean, "replace nvme3, then retry");
    let mut out = vec![
        past(0x3c7, RunState::Failed, 744, 704, Phase::Inspection, Some(swapped())),
        past(0x3b2, RunState::Cancelled, 7_400, 95, Phase::Bmc, None),
        past(0x2d8, RunState::Failed, 86_000, 5, Phase::Dhcp, Some(key)),
        past(0x1f4, RunState::Failed, 1_900_000, 4_215, Phase::Cleaning, Some(clean)),
        past(0x1e3, RunState::Succeeded, 2_600_000, 1_480, Phase::Finalize, None),
    ];
    (out[3].attempts, out[0].retry_of) = (3, Some(run_id(0x3b2)));
    out
}

fn host() -> muster::tui::model::host::Host {
    hosts().into_iter().find(|h| h.device.name == "gpu-b07-37").unwrap()
}

/// The runs of gpu-b07-37 on the screen.
pub fn history(width: u16, height: u16) -> Model {
    let mut model = console(width, height);
    press(&mut model, "H");
    let netbox_id = host().device.netbox_id;
    update(&mut model, Event::History { netbox_id, runs: Ok(pasts()) });
    model
}

/// The run that succeeded, in its own time: inspected in ten minutes, cleaned in thirteen.
fn good(ago_s: i64) -> Story {
    let mut story = Story::of(0x1e3, &host(), ago_s).prepared().inspected(false);
    let done = |phase, note: &str| Observation::PhaseDone { phase, note: note.to_owned() };
    story.saw(706, done(Phase::Inspection, "31 checks pass on a fresh inspection"));
    let why = "the site keeps the driver (switch_to_ipmi_after_inspection is off)".to_owned();
    story.saw(706, Observation::PhaseSkipped { phase: Phase::DriverSwitch, why });
    story.saw(706, Observation::PhaseStarted { phase: Phase::Cleaning, attempt: 1 });
    story.saw(1474, done(Phase::Cleaning, "'available'"));
    story.saw(1474, Observation::PhaseStarted { phase: Phase::Finalize, attempt: 1 });
    story.saw(1480, done(Phase::Finalize, "tagged and proven"));
    story.ended_well(1480);
    story
}

/// The run of today beside the one that succeeded weeks ago.
pub fn compare(width: u16, height: u16) -> Model {
    let mut model = history(width, height);
    press(&mut model, "space G space c");
    load(&mut model, &Story::of(0x3c7, &host(), 744).prepared().inspected(true).failed(704, swapped()));
    load(&mut model, &good(2_600_000));
    model
}

/// How long a run's phases took, in a pane of its own where they have no column.
pub fn timeline(width: u16, height: u16) -> Model {
    let mut model = console(width, height);
    go(&mut model, "gpu-b07-31");
    press(&mut model, "enter tab");
    model
}

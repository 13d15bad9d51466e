//! One invented site with something wrong in it: hosts, runs as the engine journals them, and consoles that show them.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use jiff::Timestamp;
#[path = "past.rs"]
pub mod past;
#[path = "plan_page.rs"]
mod plan_page;
#[path = "rack_page.rs"]
mod rack_page;

use muster::app::{Leader, Role};
use muster::config::settings::default_options;
use muster::domain::device::{Device, IronicRef};
use muster::domain::elevation::Elevation;
use muster::domain::eligibility::Grounds;
use muster::domain::event::{
    Body, EnrollResult, Event as Journal, Observation, Outcome, RunRecord, WaitKind, WaitReason,
};
use muster::domain::failure::{Failure, FailureCode, Owner};
use muster::domain::ids::{NodeUuid, RunId};
use muster::domain::link::{CableEnd, LinkReading, LinkState};
use muster::domain::phase::Phase;
use muster::domain::provision::Power;
use muster::domain::queue::{Queued, Reason};
use muster::domain::request::{EnrollParams, EnrollRequest, Routing, SiteOptions};
use muster::domain::run_view::RunState;
use muster::domain::verify::{Check, Verdict, Verification};
use muster::tui::event::{Event, Key, Refused};
use muster::tui::model::host::{Host, LastRun, SystemHealth};
use muster::tui::model::power::Looked;
use muster::tui::model::{Model, Popup, ThemeName};
use muster::tui::theme::Theme;
use muster::tui::update::update;
pub use plan_page::plan_of;
pub use rack_page::{rack_of, small_rack_of};
use uuid::Uuid;

/// The moment of every picture.
pub fn now() -> Timestamp {
    // A quarter past the second: there the spinner shows most of itself.
    "2027-03-04T10:00:00.250Z".parse().unwrap()
}

/// So many seconds before now.
pub fn before(seconds: i64) -> Timestamp {
    Timestamp::from_second(now().as_second() - seconds).unwrap()
}

pub fn run_id(n: u128) -> RunId {
    // The time of submission stands in front, as in every id of version 7; the end tells them apart.
    RunId(Uuid::from_u128(0x0195_5c1f_0000_7000_8000_0000_0000_0000 + n))
}

fn node(n: u128) -> NodeUuid {
    NodeUuid(Uuid::from_u128(0x6a0e_4d1b_0000_4000_8000_0000_0000_0000 + n))
}

pub fn options() -> SiteOptions {
    SiteOptions { platform_class_activity_ready: true, ..default_options() }
}

/// A device of rack B07, unless it is moved.
fn device(unit: f64, name: &str, status: &str) -> Device {
    Device {
        netbox_id: 7000 + unit as u64,
        name: name.to_owned(),
        site: "osl1".to_owned(),
        location: Some("hall B".to_owned()),
        rack: Some("B07".to_owned()),
        position: Some(unit),
        face: Some("front".to_owned()),
        u_height: Some(2.0),
        status: status.to_owned(),
        role: "gpu-node".to_owned(),
        device_class: Some("COMPUTE_GPU".to_owned()),
        manufacturer: "Lenovo".to_owned(),
        model: "HG635N V2".to_owned(),
        serial: Some(format!("J3-114-{unit:02}")),
        asset_tag: Some(format!("A-20{unit:02}")),
        tags: Vec::new(),
        tenant: None,
        oob_ip: Some(format!("10.12.7.{unit}/24")),
        custom_fields: Default::default(),
        platform_class: Some("GB300_LENOVOHG635NV2_IB_01".to_owned()),
        last_updated: Some(before(3600)),
        read_at: before(12),
    }
}

fn host(device: Device) -> Host {
    Host::of(&device)
}

trait With: Sized {
    fn ironic(self, state: &str) -> Self;
    fn instance(self) -> Self;
    fn refused(self, code: &str, message: &str, action: &str) -> Self;
    fn last(self, n: u128, state: RunState, ago_s: i64, failure: Option<Failure>) -> Self;
    fn proven(self) -> Self;
}

impl With for Host {
    fn ironic(mut self, state: &str) -> Self {
        self.ironic = Some(Box::new(IronicRef {
            instance: "gpu".to_owned(),
            node: node(u128::from(self.device.netbox_id)),
            state: state.into(),
            maintenance: false,
            instance_uuid: None,
            read_at: before(3),
        }));
        self
    }

    fn instance(mut self) -> Self {
        if let Some(ironic) = &mut self.ironic {
            ironic.instance_uuid = Some("9f2d6c1e-66aa-4c0b-9a55-3d5f1f2b7c10".to_owned());
        }
        self
    }

    fn refused(mut self, code: &str, message: &str, action: &str) -> Self {
        self.refusal = Some(Arc::new(Grounds::new(code, message, action)));
        self
    }

    fn last(mut self, n: u128, state: RunState, ago_s: i64, failure: Option<Failure>) -> Self {
        let over = matches!(state, RunState::Succeeded | RunState::Failed | RunState::Cancelled);
        self.last_run = Some(Box::new(LastRun {
            run: run_id(n),
            state,
            by: if n.is_multiple_of(2) { "jo" } else { "kim" }.into(),
            submitted_at: before(ago_s + if over { 1480 } else { 0 }),
            finished_at: over.then(|| before(ago_s)),
            failure: failure.map(Box::new),
        }));
        self
    }

    fn proven(mut self) -> Self {
        self.is_proven = self.ironic.is_some() && self.last_run.is_some();
        self
    }
}

pub fn swapped() -> Failure {
    verification(true, 44).failure("gpu-b07-37", Phase::Inspection)
}

fn host_key() -> Failure {
    Failure::new(
        FailureCode::DhcpHostKeyChanged,
        Phase::Dhcp,
        "'dhcp1.osl1' shows the key 'SHA256:hPq…w0', known_hosts has 'SHA256:Zt1…9A'",
        "find out why the host key of dhcp1.osl1 changed; if it was meant, put the new key into the vault's ssh-config-dhcp",
    )
}

/// All hosts: rack B07 with its troubles, quiet racks around it, and a second site.
pub fn hosts() -> Vec<Host> {
    let b07 = |unit: f64, status: &str| host(device(unit, &format!("gpu-b07-{unit:02}"), status));
    let mut unplaced = b07(35.0, "staged").refused(
        "device_not_placed",
        "NetBox has 'gpu-b07-35' in rack 'B07' without a position",
        "set the position of 'gpu-b07-35' in NetBox; the inventory sees it within a minute",
    );
    unplaced.device.position = None;
    let mut out = vec![
        b07(41.0, "active").ironic("available").last(0xa41, RunState::Succeeded, 7300, None).proven(),
        b07(39.0, "active").ironic("inspect wait").last(0x4f2, RunState::Running, 432, None),
        b07(37.0, "staged").ironic("manageable").last(0x3c7, RunState::Failed, 40, Some(swapped())),
        unplaced,
        b07(33.0, "staged"),
        b07(31.0, "active").ironic("clean wait").last(0xc31, RunState::Running, 3190, None),
        b07(29.0, "staged").last(0xd29, RunState::Failed, 1500, Some(host_key())),
        b07(27.0, "staged").last(0xe27, RunState::Queued, 20, None),
        b07(25.0, "active").ironic("active").instance().last(0xa25, RunState::Succeeded, 700_000, None).proven(),
        b07(23.0, "active").ironic("available").last(0xa23, RunState::Succeeded, 260_000, None).proven(),
        b07(21.0, "staged").last(0xb21, RunState::Running, 95, None),
        b07(19.0, "offline").refused(
            "device_status_refused",
            "NetBox has 'gpu-b07-19' as 'offline', only staged and active devices are enrolled",
            "set the status of 'gpu-b07-19' to staged in NetBox once it is racked and cabled",
        ),
        b07(17.0, "staged").last(0xf17, RunState::Cancelled, 5400, None),
    ];
    let mut switch =
        b07(48.0, "active").refused("device_class_refused", "'leaf-b07-1' is a 'SWITCH'", "correct its role");
    (switch.device.name, switch.device.device_class) = ("leaf-b07-1".into(), Some("SWITCH".into()));
    (switch.device.manufacturer, switch.device.model) = ("Edgecore".into(), "AS7726-32X".into());
    switch.device.platform_class = None;
    out.push(switch);
    for (location, rack, n) in [("hall A", "A01", 4), ("hall B", "B05", 6), ("hall B", "B06", 8), ("hall C", "C02", 3)]
    {
        out.extend(quiet("osl1", location, rack, n));
    }
    for rack in ["R2", "R10", "R11"] {
        out.extend(quiet("ams2", "floor 1", rack, 5));
    }
    out
}

/// A rack in which everything is as it should be.
fn quiet(site: &str, location: &str, rack: &str, n: u32) -> Vec<Host> {
    let place = rack.bytes().fold(0u64, |sum, b| sum * 31 + u64::from(b));
    let one = |at: u32| {
        let unit = f64::from(40 - 2 * at);
        let mut d = device(unit, &format!("gpu-{}-{unit:02}", rack.to_lowercase()), "active");
        d.netbox_id = place * 100 + u64::from(at);
        d.site = site.to_owned();
        d.location = Some(location.to_owned());
        d.rack = Some(rack.to_owned());
        host(d).ironic("available").last(u128::from(place * 100) + u128::from(at), RunState::Succeeded, 90_000, None)
    };
    (0..n).map(one).collect()
}

/// A run as the engine would have journaled it.
pub struct Story {
    run: RunId,
    host: String,
    start_s: i64,
    seq: u32,
    pub records: Vec<RunRecord>,
}

impl Story {
    /// A run of a host, submitted so many seconds ago.
    pub fn of(n: u128, host: &Host, ago_s: i64) -> Story {
        let request = EnrollRequest {
            host: host.device.name.to_string(),
            netbox_id: host.device.netbox_id,
            site: host.device.site.to_string(),
            device_class: host.device.device_class.as_ref().map(ToString::to_string),
            params: EnrollParams::default(),
            options: options(),
            routing: Routing { by_class: [("COMPUTE_GPU".to_owned(), "gpu".to_owned())].into() },
            submitted_by: "jo".to_owned(),
            submitted_at: before(ago_s),
            retry_of: None,
            placement: Default::default(),
            canary: None,
        };
        let mut story =
            Story { run: run_id(n), host: host.device.name.to_string(), start_s: ago_s, seq: 0, records: Vec::new() };
        story.journal(0, Journal::Submitted { workflow: "enroll".into(), request: Box::new(request) });
        story
    }

    fn push(&mut self, second: i64, body: Body) {
        let at = before(self.start_s - second);
        self.records.push(RunRecord { run: self.run, n: self.records.len() as u64, at, body });
    }

    pub fn journal(&mut self, second: i64, event: Journal) {
        self.push(second, Body::Journal(event));
    }

    pub fn saw(&mut self, second: i64, observation: Observation) {
        self.push(second, Body::Observation(observation));
    }

    fn begin(&mut self, second: i64, name: &str, phase: Phase) -> u32 {
        self.seq += 1;
        let (seq, name) = (self.seq, name.to_owned());
        self.journal(second, Journal::ActivityScheduled { seq, name: name.clone(), phase, input: Default::default() });
        self.saw(second, Observation::Attempt { seq, name, attempt: 1, max_attempts: 3 });
        seq
    }

    fn activity(&mut self, from: i64, to: i64, name: &str, phase: Phase) {
        let seq = self.begin(from, name, phase);
        self.journal(to, Journal::ActivityDone { seq, output: Default::default() });
    }

    fn started(&mut self, second: i64, phase: Phase) {
        self.saw(second, Observation::PhaseStarted { phase, attempt: 1 });
    }

    fn done(&mut self, second: i64, phase: Phase, note: &str) {
        self.saw(second, Observation::PhaseDone { phase, note: note.into() });
    }

    pub fn note(&mut self, second: i64, system: &str, text: &str) {
        self.saw(second, Observation::Note { system: system.into(), text: text.into() });
    }

    fn wrote(&mut self, second: i64, system: &str, target: &str, what: &str, before: &str, after: &str) {
        self.saw(
            second,
            Observation::Wrote {
                system: system.into(),
                target: target.into(),
                what: what.into(),
                before: before.into(),
                after: after.into(),
            },
        );
    }

    fn node(&mut self, second: i64, state: &str, step: Option<&str>, error: Option<&str>) {
        self.saw(
            second,
            Observation::Node {
                state: state.into(),
                power: if state == "enroll" { Power::Off } else { Power::On },
                clean_step: step.map(str::to_owned),
                reservation: None,
                last_error: error.map(str::to_owned),
            },
        );
    }

    fn wait(&mut self, second: i64, for_s: i64, phase: Phase, kind: WaitKind, text: &str, gives_up_s: i64) -> u32 {
        self.seq += 1;
        let reason =
            WaitReason { phase, kind, text: text.into(), gives_up_at: Some(before(self.start_s - gives_up_s)) };
        let until = before(self.start_s - second - for_s);
        self.journal(second, Journal::TimerSet { seq: self.seq, until, reason });
        self.seq
    }

    /// From the preflight to the end of the activation.
    pub fn prepared(mut self) -> Story {
        let target = self.host.clone();
        let target = target.as_str();
        self.started(0, Phase::ResolveIronicInstance);
        self.done(0, Phase::ResolveIronicInstance, "Ironic 'gpu'");
        self.started(0, Phase::StatusGate);
        self.activity(0, 1, "netbox.status_gate", Phase::StatusGate);
        self.done(1, Phase::StatusGate, "'staged' in NetBox");
        self.started(1, Phase::PlatformClass);
        self.activity(1, 2, "netbox.platform_class", Phase::PlatformClass);
        self.done(2, Phase::PlatformClass, "GB300_LENOVOHG635NV2_IB_01");
        self.started(2, Phase::Dhcp);
        self.activity(2, 6, "dhcp.configure", Phase::Dhcp);
        self.wrote(5, "dhcp", "dhcp1.osl1", "entry", "", "b07-host.conf, 6 lines");
        self.wrote(6, "dhcp", "dhcp1.osl1", "restart of kea", "", "");
        self.done(6, Phase::Dhcp, "b07-host.conf uploaded, service restarted");
        self.started(6, Phase::Bmc);
        self.activity(6, 8, "bmc.prepare", Phase::Bmc);
        self.note(8, "bmc", "Lenovo XCC 3.20 answers, the vault's credential works");
        self.activity(8, 70, "bmc.configure", Phase::Bmc);
        self.wrote(31, "bmc", target, "NTPServers", "[]", "[\"ntp1.osl1\"]");
        self.wrote(44, "bmc", target, "BootOrder", "disk, nic1, nic2", "nic1, disk; nic2 off");
        self.wrote(70, "netbox", target, "tags", "", "ipmi_exporter");
        self.done(70, Phase::Bmc, "lenovo: NTPServers, BootOrder changed");
        self.started(70, Phase::Activation);
        self.activity(70, 71, "netbox.activate", Phase::Activation);
        self.wrote(71, "netbox", target, "status", "staged", "active");
        self.done(71, Phase::Activation, "'staged' → 'active'");
        self
    }

    /// Up to the moment at which the node boots for its inspection.
    fn booting(mut self) -> Story {
        self.started(71, Phase::Inspection);
        self.activity(71, 74, "ironic.prelude", Phase::Inspection);
        self.wrote(73, "ironic", "gpu", "node", "", "6a0e4d1b, driver redfish");
        self.node(74, "enroll", None, None);
        self.activity(74, 76, "ironic.networking", Phase::Inspection);
        self.wrote(75, "ironic", "6a0e4d1b", "portgroup bond0", "", "802.3ad, 2 ports");
        self.activity(76, 80, "ironic.manage", Phase::Inspection);
        self.node(90, "manageable", None, None);
        self.note(91, "ironic", "locked by conductor-2, tried again after 10s");
        self.activity(101, 103, "ironic.inspect", Phase::Inspection);
        self.node(104, "inspect wait", None, None);
        self
    }

    fn links(&mut self, second: i64, phase: Phase, states: [LinkState; 2], left_s: u64) {
        let readings = ["eth0", "eth1"].into_iter().zip(states).enumerate();
        let readings = readings.map(|(n, (interface, state))| reading(n, interface, state)).collect();
        self.saw(second, Observation::Links { phase, readings, budget_left_s: left_s });
    }

    /// Both links stay dark; the guard is at work.
    pub fn dark(self) -> Story {
        let mut story = self.booting();
        let mut second = 353;
        while second <= 430 {
            let left = 300 - (second - 353) as u64;
            story.activity(second, second + 1, "bmc.read_links", Phase::Inspection);
            story.links(second + 1, Phase::Inspection, [LinkState::Down, LinkState::Down], left);
            let gives_up = second + 1 + left as i64;
            let text = "eth0 DOWN eth1 DOWN";
            let seq = story.wait(second + 1, 4, Phase::Inspection, WaitKind::LinkGuard, text, gives_up);
            if second + 5 <= 430 {
                story.journal(second + 5, Journal::TimerFired { seq });
            }
            second += 5;
        }
        story
    }

    /// Inspected, and the neighbours are not the recorded ones.
    pub fn inspected(self, swapped: bool) -> Story {
        let mut story = self.booting();
        story.links(340, Phase::Inspection, [LinkState::Down, LinkState::Down], 300);
        story.links(345, Phase::Inspection, [LinkState::Up, LinkState::Down], 295);
        story.note(345, "bmc", "link of eth0 is UP");
        let gives_up = 2500;
        let seq = story.wait(350, 60, Phase::Inspection, WaitKind::Inspection, "Ironic inspects", gives_up);
        story.journal(700, Journal::TimerFired { seq });
        story.node(701, "manageable", None, None);
        story.activity(701, 704, "ironic.verify", Phase::Inspection);
        story.saw(704, Observation::Verified { verification: verification(swapped, story.start_s - 700), fresh: true });
        story
    }

    /// In its second clean, after one that failed.
    pub fn cleaning(self) -> Story {
        let mut story = self.inspected(false);
        story.done(706, Phase::Inspection, "31 checks pass on a fresh inspection");
        let why = "the site keeps the driver (switch_to_ipmi_after_inspection is off)";
        story.saw(706, Observation::PhaseSkipped { phase: Phase::DriverSwitch, why: why.into() });
        story.started(706, Phase::Cleaning);
        let deadline = before(story.start_s - 706 - 5656);
        let steps =
            [(760, "cleaning", None), (770, "clean wait", None), (1200, "clean wait", Some("erase_devices_metadata"))];
        for (second, state, step) in steps {
            story.node(second, state, step, None);
            story.saw(
                second,
                Observation::Cleaning {
                    attempt: 1,
                    max_attempts: 3,
                    next_look_at: before(story.start_s - second - 10),
                    deadline,
                },
            );
        }
        story.node(2100, "clean failed", None, Some("erase_devices_metadata: disk nvme3 did not answer"));
        let message = "clean 1 of 3 failed: erase_devices_metadata: disk nvme3 did not answer";
        story.saw(2100, Observation::Warned { phase: Phase::Cleaning, message: message.into() });
        story.saw(2101, Observation::PhaseStarted { phase: Phase::Cleaning, attempt: 2 });
        story.links(2130, Phase::Cleaning, [LinkState::Up, LinkState::Up], 300);
        story.node(2110, "manageable", None, None);
        story.node(2120, "cleaning", None, None);
        let looks = [(2140, 5), (2150, 10), (2170, 20), (3150, 60)];
        for (second, pause) in looks {
            story.node(second, "clean wait", Some("erase_devices_metadata"), None);
            let next_look_at = before(story.start_s - second - pause);
            story.saw(second, Observation::Cleaning { attempt: 2, max_attempts: 3, next_look_at, deadline });
        }
        let text = "node is 'clean wait' · step erase_devices_metadata";
        story.wait(3150, 60, Phase::Cleaning, WaitKind::Cleaning, text, 706 + 5656);
        story
    }

    pub fn failed(mut self, second: i64, failure: Failure) -> Story {
        self.journal(second, Journal::Finished { outcome: Outcome::Failed { failure: Box::new(failure) } });
        self
    }

    pub fn succeeded(mut self, second: i64) -> Story {
        for phase in [Phase::Inspection, Phase::Cleaning, Phase::Finalize] {
            self.started(second - 5, phase);
            self.done(second - 1, phase, "done");
        }
        self.ended_well(second);
        self
    }

    pub fn ended_well(&mut self, second: i64) {
        let result = EnrollResult {
            node: Some(node(7041)),
            ironic: Some("gpu".into()),
            platform_class: Some("GB300_LENOVOHG635NV2_IB_01".into()),
            already_enrolled: false,
            qualifying: true,
        };
        self.journal(second, Journal::Finished { outcome: Outcome::Succeeded { result: Some(result) } });
    }

    /// A BMC that is busy: the second attempt of a step is waited for.
    fn retrying(mut self) -> Story {
        let before_bmc = [Phase::ResolveIronicInstance, Phase::StatusGate, Phase::PlatformClass, Phase::Dhcp];
        for (at, phase) in before_bmc.into_iter().enumerate() {
            self.started(at as i64, phase);
            self.done(at as i64 + 1, phase, "");
        }
        self.started(6, Phase::Bmc);
        let seq = self.begin(8, "bmc.configure", Phase::Bmc);
        let message = "the BMC answered '503' to PATCH /redfish/v1/Managers/1/NetworkProtocol for 60 s: 'Busy'";
        let failure = Failure::new(FailureCode::BmcHttpServiceUnavailable, Phase::Bmc, message, "wait, then retry");
        let retry_at = before(self.start_s - 99);
        self.saw(91, Observation::AttemptFailed { seq, attempt: 1, failure: Box::new(failure), retry_at });
        self
    }
}

fn reading(n: usize, interface: &str, state: LinkState) -> LinkReading {
    LinkReading {
        interface: interface.to_owned(),
        mac: format!("9c:6b:00:4a:07:{:02x}", n + 1).parse().ok(),
        state,
        slot: Some(format!("slot 3 port {n}")),
        cable: Some(CableEnd {
            switch: format!("leaf-b07-{}", n + 1),
            port: "swp15".to_owned(),
            label: Some(format!("W-{:04}", 398 + n)),
            color: Some("2196f3".to_owned()),
        }),
        raw: None,
    }
}

/// The judgement of an inventory: 31 checks, and where the cables are swapped two of them differ.
pub fn verification(swapped: bool, inspected_ago_s: i64) -> Verification {
    let check = |kind: &str, subject: &str, expected: &str, observed: &str, verdict, rule: &str| Check {
        kind: kind.into(),
        subject: subject.into(),
        expected: expected.into(),
        observed: observed.into(),
        verdict,
        rule: rule.into(),
        hint: None,
        owner: None,
        action: None,
    };
    let pass =
        |kind: &str, subject: &str, value: &str, rule: &str| check(kind, subject, value, value, Verdict::Pass, rule);
    let mut checks = Vec::new();
    for (eth, right, wrong) in
        [("eth0", "leaf-b07-1 swp14", "leaf-b07-2 swp14"), ("eth1", "leaf-b07-2 swp14", "leaf-b07-1 swp14")]
    {
        let (observed, verdict) = if swapped { (wrong, Verdict::Fail) } else { (right, Verdict::Pass) };
        let mut lldp = check("lldp", eth, right, observed, verdict, "V8: switch and port equal the cable's far end");
        if swapped {
            lldp.owner = Some(Owner::Onsite);
            lldp.hint = Some("eth0 and eth1 are swapped".into());
            lldp.action = Some("swap the two cables at the host: eth0 and eth1".into());
        }
        checks.push(lldp);
        checks.push(pass("carrier", eth, "up", "V1: not reported passes"));
    }
    checks.push(check("carrier", "eth3", "up", "", Verdict::Unknown, "V1: not reported passes"));
    checks.push(pass("cpu", "cores", "144", "V2: cores of all sockets"));
    checks.push(pass("cpu", "sockets", "2", "V2: sockets that are populated"));
    checks.push(pass("cpu", "arch", "aarch64", "V2: one architecture under its one name"));
    checks.push(pass("gpu", "10de:2941", "8", "V7: exact vendor and product"));
    checks.push(pass("memory", "", "2 048 GiB", "V5: installed DIMMs decide"));
    checks.push(pass("memory", "dimms", "32 × 64 GiB", "V5: all of one size"));
    checks.push(pass("bios", "version", "U8E128D-1.32", "V6: on the list, not blocked"));
    for n in 0..8 {
        checks.push(pass("disk", &format!("nvme{n}"), "3.84 TB KIOXIA CM7", "V4: one per WWN"));
    }
    for n in 0..11 {
        checks.push(pass("nic", &format!("port {n}"), "15b3 up", "V3: vendor and link"));
    }
    let diagnosis = swapped.then(|| "eth0 and eth1 are swapped".to_owned());
    Verification { checks, inspected_at: Some(before(inspected_ago_s)), diagnosis, place: Some("B07 U37".to_owned()) }
}

/// A console of a size with the whole fleet, as it comes up: place and host are chosen, runs under way are loaded.
pub fn console(width: u16, height: u16) -> Model {
    // Made once a size: tests take hundreds of them.
    static MADE: Mutex<BTreeMap<(u16, u16), Model>> = Mutex::new(BTreeMap::new());
    let mut made = MADE.lock().unwrap_or_else(PoisonError::into_inner);
    made.entry((width, height)).or_insert_with(|| new_console(width, height)).clone()
}

fn new_console(width: u16, height: u16) -> Model {
    let mut model = Model::new(now(), width, height);
    let named = |name: &str| (name.to_owned(), Theme::named(name).unwrap().about);
    model.look.themes = Theme::names().into_iter().map(named).map(|(name, about)| ThemeName { name, about }).collect();
    model.sites = [("osl1".to_owned(), options()), ("ams2".to_owned(), default_options())].into();
    let hosts = hosts();
    let find = |name: &str| hosts.iter().find(|h| h.device.name == name).unwrap().clone();
    let stories = [
        Story::of(0x4f2, &find("gpu-b07-39"), 432).prepared().dark(),
        Story::of(0xc31, &find("gpu-b07-31"), 3190).prepared().cleaning(),
        Story::of(0xb21, &find("gpu-b07-21"), 95).retrying(),
        Story::of(0xe27, &find("gpu-b07-27"), 20),
    ];
    update(&mut model, Event::Fleet(hosts.clone()));
    update(&mut model, Event::Usual(past::usual()));
    for (name, ok_at, error) in [
        ("netbox", Some(before(12)), None),
        ("ironic:gpu", Some(before(3)), None),
        ("ironic:cpu", Some(before(75)), Some("connection refused")),
    ] {
        let health = SystemHealth { name: name.into(), ok_at, error: error.map(str::to_owned) };
        update(&mut model, Event::Health(health));
    }
    let reason = Reason::Rack { rack: "B07".into(), under_way: 3, limit: 3 };
    update(&mut model, Event::Queue(vec![Queued { run: run_id(0xe27), place: 1, reason }]));
    for story in stories {
        load(&mut model, &story);
    }
    press(&mut model, "tab G");
    // Into rack B07, on the host that failed. Its run is read where the size shows it.
    go(&mut model, "gpu-b07-37");
    if model.loading.contains(&run_id(0x3c7)) {
        let story = Story::of(0x3c7, &find("gpu-b07-37"), 744).prepared().inspected(true).failed(704, swapped());
        load(&mut model, &story);
    }
    model
}

/// Gives a run's records to the console.
pub fn load(model: &mut Model, story: &Story) {
    let event = Event::RunLoaded { run: story.run, records: story.records.clone() };
    update(model, event);
}

/// Goes to a host by the palette.
pub fn go(model: &mut Model, host: &str) {
    press(model, ":");
    press(
        model,
        &"host ".chars().map(|c| if c == ' ' { "space".into() } else { c.to_string() }).collect::<Vec<_>>().join(" "),
    );
    press(model, &host.chars().map(|c| c.to_string()).collect::<Vec<_>>().join(" "));
    press(model, "enter");
    model.palette_history.clear();
}

/// Presses keys as a person does: one after the other, with time between them. Returns what was asked of the outside.
pub fn press(model: &mut Model, keys: &str) -> Vec<muster::tui::effect::Effect> {
    let mut effects = Vec::new();
    let start = model.now;
    for key in keys.split(' ') {
        let key: Key = key.parse().unwrap();
        effects.extend(update(model, Event::Key { key, at: model.now }));
        // The clock of a picture stands still; only the keys see time go on.
        let later = model.now.checked_add(jiff::Span::new().milliseconds(100)).unwrap();
        effects.extend(update(model, Event::Tick(later)));
    }
    update(model, Event::Tick(start));
    model.keys.last_at = None;
    effects
}

/// The run that failed for swapped cables, on the screen.
pub fn failed_run(width: u16, height: u16) -> Model {
    let mut model = console(width, height);
    let host = hosts().into_iter().find(|h| h.device.name == "gpu-b07-37").unwrap();
    let story = Story::of(0x3c7, &host, 744).prepared().inspected(true).failed(704, swapped());
    press(&mut model, "enter");
    load(&mut model, &story);
    model
}

/// A run under way on the screen.
pub fn live_run(width: u16, height: u16, host: &str) -> Model {
    let mut model = console(width, height);
    go(&mut model, host);
    press(&mut model, "enter");
    model
}

/// A run that ended well, on the screen.
pub fn good_run(width: u16, height: u16) -> Model {
    let mut model = console(width, height);
    go(&mut model, "gpu-b07-41");
    press(&mut model, "enter");
    let host = hosts().into_iter().find(|h| h.device.name == "gpu-b07-41").unwrap();
    load(&mut model, &Story::of(0xa41, &host, 8780).prepared().inspected(false).succeeded(1480));
    model
}

/// The rack of the selected host on the screen, as it is read from the store.
pub fn rack(width: u16, height: u16) -> Model {
    let mut model = console(width, height);
    press(&mut model, "u");
    show_rack(&mut model, rack_of(&hosts()));
    model
}

/// Gives the rack that was asked for to the console.
pub fn show_rack(model: &mut Model, elevation: Elevation) {
    let place = model.rack_screen().expect("u opens the rack").place.clone();
    update(model, Event::Rack { place, answer: Ok(Box::new(elevation)) });
    if model.loading.contains(&run_id(0x3c7)) {
        let host = hosts().into_iter().find(|h| h.device.name == "gpu-b07-37").unwrap();
        load(model, &Story::of(0x3c7, &host, 744).prepared().inspected(true).failed(704, swapped()));
    }
}

type Views = Vec<(&'static str, Model)>;

/// Every view and dialog of the console, by name.
pub fn every_view(width: u16, height: u16) -> Views {
    static MADE: Mutex<BTreeMap<(u16, u16), Views>> = Mutex::new(BTreeMap::new());
    let mut made = MADE.lock().unwrap_or_else(PoisonError::into_inner);
    made.entry((width, height)).or_insert_with(|| all_views(width, height)).clone()
}

fn all_views(width: u16, height: u16) -> Views {
    let with = |keys: &str| {
        let mut model = console(width, height);
        press(&mut model, keys);
        model
    };
    let batch = || {
        let mut model = console(width, height);
        for host in ["gpu-b07-37", "gpu-b07-33", "gpu-b07-31", "gpu-b07-25", "gpu-b07-19", "gpu-b07-35"] {
            go(&mut model, host);
            press(&mut model, "space");
        }
        press(&mut model, "e");
        model
    };
    let cancel = || {
        let mut model = live_run(width, height, "gpu-b07-39");
        press(&mut model, "x");
        model
    };
    let toasts = || {
        let mut model = console(width, height);
        let refused = Refused {
            code: "busy".into(),
            message: "run 0004f2 by kim is under way on this host".into(),
            action: "open that run, or cancel it first".into(),
        };
        let answer = Err(refused);
        update(&mut model, Event::Submitted { host: "gpu-b07-39".into(), of: None, open: true, answer });
        update(&mut model, Event::Paste("r\ne\n".into()));
        model
    };
    let plan = || {
        let mut model = console(width, height);
        press(&mut model, "j e p");
        let Some(Popup::Plan(popup)) = &model.popup else { unreachable!("p opens the plan") };
        let (host, params) = ("gpu-b07-33".to_owned(), popup.launch.read_params());
        update(&mut model, Event::Planned { plan: Ok(plan_of(&host)), host, params });
        model
    };
    let follows = || {
        let mut model = console(width, height);
        let leader = Leader { pid: 4711, host: "ops-1".into(), since: before(5400), user: Some("eve".into()) };
        update(&mut model, Event::Role(Role::Following { leader: Some(leader) }));
        model
    };
    let walk = || {
        let mut model = console(width, height);
        press(&mut model, "w");
        let host = hosts().into_iter().find(|h| h.device.name == "gpu-b07-37").unwrap();
        load(&mut model, &Story::of(0x3c7, &host, 744).prepared().inspected(true).failed(704, swapped()));
        model
    };
    let replay = || {
        let mut model = failed_run(width, height);
        press(&mut model, "[");
        let host = hosts().into_iter().find(|h| h.device.name == "gpu-b07-37").unwrap();
        let records = Story::of(0x3c7, &host, 744).prepared().inspected(true).failed(704, swapped()).records;
        update(&mut model, Event::Tape { run: run_id(0x3c7), records });
        press(&mut model, "{");
        model
    };
    let power = |keys: &str| {
        let mut model = console(width, height);
        press(&mut model, "P");
        let looked = Looked { power: Ok("On".into()), lives: None };
        update(&mut model, Event::PowerLooked { host: "gpu-b07-37".into(), looked });
        press(&mut model, keys);
        model
    };
    let power_typed = || {
        let mut model = console(width, height);
        go(&mut model, "gpu-b07-25");
        press(&mut model, "P j");
        let lives = "an instance lives on 'gpu-b07-25' (9f2d6c1e-66aa-4c0b-9a55-3d5f1f2b7c10)";
        let looked = Looked { power: Ok("On".into()), lives: Some(lives.into()) };
        update(&mut model, Event::PowerLooked { host: "gpu-b07-25".into(), looked });
        press(&mut model, "enter g p u");
        model
    };
    let nothing_waits = || {
        let mut model = console(width, height);
        go(&mut model, "gpu-b06-40");
        press(&mut model, "w");
        model
    };
    let rear = || {
        let mut model = rack(width, height);
        press(&mut model, "tab");
        model
    };
    let halves = || {
        let mut model = console(width, height);
        go(&mut model, "gpu-r10-40");
        press(&mut model, "u");
        let here: Vec<Host> = hosts().into_iter().filter(|h| h.device.rack.as_deref() == Some("R10")).collect();
        show_rack(&mut model, small_rack_of(&here));
        press(&mut model, "j");
        model
    };
    let sorted = || {
        let mut model = console(width, height);
        press(&mut model, "s s s s");
        model
    };
    let with_marks = || {
        let mut model = past::history(width, height);
        press(&mut model, "space j space");
        model
    };
    let all_rows = || {
        let mut model = past::compare(width, height);
        press(&mut model, "a G");
        model
    };
    // Certificates of the site's BMCs and of one of its Ironics are not looked at (B20).
    let unchecked = |mut model: Model| {
        model.unchecked = [("osl1".to_owned(), vec!["BMCs".to_owned(), "Ironic gpu".to_owned()])].into();
        model
    };
    let mut tree = console(width, height);
    press(&mut tree, "tab");
    vec![
        ("fleet-unchecked", unchecked(console(width, height))),
        ("run-unchecked", unchecked(live_run(width, height, "gpu-b07-39"))),
        ("launch-unchecked", unchecked(with("j e"))),
        ("fleet", console(width, height)),
        ("fleet-places", tree),
        ("fleet-sorted", sorted()),
        ("fleet-filter", with("/ r u n : f a")),
        ("fleet-nothing", with("/ z z z")),
        ("fleet-toasts", toasts()),
        ("fleet-follows", follows()),
        ("rack", rack(width, height)),
        ("rack-rear", rear()),
        ("rack-halves", halves()),
        ("for-you", walk()),
        ("for-you-nothing", nothing_waits()),
        ("launch", with("j e")),
        ("launch-batch", batch()),
        ("launch-plan", plan()),
        ("run-links", live_run(width, height, "gpu-b07-39")),
        ("run-retry", live_run(width, height, "gpu-b07-21")),
        ("run-cleaning", live_run(width, height, "gpu-b07-31")),
        ("run-failed", failed_run(width, height)),
        ("run-replay", replay()),
        ("run-done", good_run(width, height)),
        ("run-timeline", past::timeline(width, height)),
        ("history", past::history(width, height)),
        ("history-marked", with_marks()),
        ("compare", past::compare(width, height)),
        ("compare-all", all_rows()),
        ("confirm-cancel", cancel()),
        ("power", power("j j")),
        ("confirm-power", power_typed()),
        ("help", with("?")),
        ("palette", with(": t h")),
        ("log", with("v")),
    ]
}

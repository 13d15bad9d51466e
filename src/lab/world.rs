//! The world of the lab: machines as they are, time, and the agenda of what happens next.
//!
//! There is no thread per machine or node. What takes time is put on the agenda with the lab time at which it happens;
//! whoever looks at the world first carries out what has become due, in the order of the times. So the same requests at
//! the same lab times always meet the same world.
//!
//! # What a BMC server does (`bmc.rs`)
//! * Serve with [`super::http::serve`] and `Served { system: System::Bmc, device: Some(name), .. }`: that writes the
//!   ledger (redacted), applies the HTTP fault rules for the device, and cuts connections while the BMC is away.
//! * Check credentials against `machine.bmc.accounts`, through [`World::machine`].
//! * Per request that a busy BMC would refuse, ask [`World::bmc_busy`]: `true` → 503 with the vendor's busy body.
//! * Power: read `machine.power` (`on`, `target`), change by [`World::press`]. Links: `machine.link(nic, now)`.
//! * Reset itself: [`World::reset_bmc`].
//! * Settings, boot options, accounts: change `machine.bmc` through [`World::with_machine`]; `bmc.preset` says what the
//!   BMC starts with.
//! * Time: [`World::now`], [`World::sleep`] for delays, [`World::wall`] for stamps on the wire.
//!
//! # What the DHCP host does (`dhcp_host.rs`)
//! * Before each step ask `world.rules().meet(world.now(), Asked { system: System::Dhcp, method, path, device })`, and
//!   after it write [`World::note`]. `method` is `connect`, `login`, `exec`, `sftp_read`, `sftp_write`, `sftp_rename`,
//!   `sftp_remove`; `path` the command or remote path; `device` the host that the file name names, where it does.

use std::collections::BTreeMap;
use std::ops::{Deref, DerefMut};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jiff::Timestamp;

use super::clock::{Clock, LabTime, seconds};
use super::faults::{Fault, Rules};
use super::ironic::Ironic;
use super::ironic::task::{self, Step};
use super::ledger::{Ledger, Note};
use super::machine::{Machine, PowerAction, Spell};
use super::netbox::webhook::Webhook;
use super::records::Records;

/// How long things take, in lab seconds.
#[derive(Debug, Clone, Copy, PartialEq, serde::Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Timing {
    pub power_on_s: f64,
    pub power_off_s: f64,
    pub soft_off_s: f64,
    /// From power on to light on the links.
    pub link_up_s: f64,
    /// From power on to the first word of the ramdisk.
    pub boot_s: f64,
    /// What the ramdisk needs for an inspection.
    pub inspect_s: f64,
    /// Each clean step.
    pub clean_step_s: f64,
    /// Ironic's checks of a BMC in `verifying`.
    pub verify_s: f64,
    /// How long Ironic waits for the ramdisk.
    pub callback_timeout_s: f64,
    /// How long Ironic itself tries to get a lock before it answers 409.
    pub lock_patience_s: f64,
    /// How long a BMC is away after a reset.
    pub bmc_away_s: f64,
}

impl Default for Timing {
    fn default() -> Self {
        Timing {
            power_on_s: 8.0,
            power_off_s: 6.0,
            soft_off_s: 25.0,
            link_up_s: 12.0,
            boot_s: 70.0,
            inspect_s: 35.0,
            clean_step_s: 30.0,
            verify_s: 6.0,
            callback_timeout_s: 1800.0,
            lock_patience_s: 2.5,
            bmc_away_s: 90.0,
        }
    }
}

/// What happens at a time.
#[derive(Debug, Clone)]
pub(super) enum Event {
    /// A change of power shows; void where a newer request was made.
    Power { machine: String, on: bool, request: u64 },
    /// Off for a restart, then on.
    PowerCycle { machine: String, request: u64 },
    /// A fault begins.
    Fault(Box<Fault>),
    /// A step of what the conductor does with a node; void where the node has begun another task.
    Node { uuid: uuid::Uuid, task: u64, step: Step },
}

/// The state behind the lock.
#[derive(Debug)]
pub struct State {
    /// The time up to which everything due has happened. During an event: its own time.
    pub now: LabTime,
    pub timing: Timing,
    /// By name.
    pub machines: BTreeMap<String, Machine>,
    /// What NetBox has.
    pub records: Records,
    /// What Ironic has.
    pub ironic: Ironic,
    agenda: BTreeMap<(LabTime, u64), Event>,
    next: u64,
    clock: Arc<Clock>,
}

/// A handle on the world; clones share it.
#[derive(Debug, Clone)]
pub struct World {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    clock: Arc<Clock>,
    ledger: Ledger,
    rules: Rules,
    state: Mutex<State>,
    webhook: Mutex<Option<Webhook>>,
}

/// The locked world, brought up to date. Never held across an await.
pub struct Guard<'a>(MutexGuard<'a, State>);

impl Deref for Guard<'_> {
    type Target = State;

    fn deref(&self) -> &State {
        &self.0
    }
}

impl DerefMut for Guard<'_> {
    fn deref_mut(&mut self) -> &mut State {
        &mut self.0
    }
}

impl World {
    /// A world with these machines, whose clock starts now.
    pub fn new(machines: Vec<Machine>, records: Records, ironic: Ironic, timing: Timing, speed: f64) -> World {
        Self::with_clock(machines, records, ironic, timing, Clock::start(speed))
    }

    /// A world that goes by this clock.
    pub fn with_clock(machines: Vec<Machine>, records: Records, ironic: Ironic, timing: Timing, clock: Clock) -> World {
        let clock = Arc::new(clock);
        let machines = machines.into_iter().map(|m| (m.name.clone(), m)).collect();
        let state = State {
            now: LabTime::ZERO,
            timing,
            machines,
            records,
            ironic,
            agenda: BTreeMap::new(),
            next: 0,
            clock: clock.clone(),
        };
        let (ledger, rules, webhook) = (Ledger::default(), Rules::default(), Mutex::new(None));
        let inner = Inner { clock, ledger, rules, state: Mutex::new(state), webhook };
        World { inner: Arc::new(inner) }
    }

    /// The clock: lab time, speed, sleeping.
    pub fn clock(&self) -> &Clock {
        &self.inner.clock
    }

    /// Where NetBox tells of changes; nowhere in the beginning.
    pub fn webhook(&self) -> Option<Webhook> {
        self.inner.webhook.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub fn set_webhook(&self, webhook: Option<Webhook>) {
        *self.inner.webhook.lock().unwrap_or_else(PoisonError::into_inner) = webhook;
    }

    /// Lab time now.
    pub fn now(&self) -> LabTime {
        self.inner.clock.now()
    }

    /// Wall time, as services write it.
    pub fn wall(&self) -> Timestamp {
        Timestamp::now()
    }

    /// Sleeps for a span of lab time.
    pub async fn sleep(&self, span: Duration) {
        self.inner.clock.sleep(span).await;
    }

    pub fn ledger(&self) -> &Ledger {
        &self.inner.ledger
    }

    /// Writes a request into the ledger.
    pub fn note(&self, note: Note) {
        self.inner.ledger.note(self.wall(), self.now(), note);
    }

    /// The HTTP fault rules, which the DHCP host asks too.
    pub fn rules(&self) -> &Rules {
        &self.inner.rules
    }

    /// The whole state, brought up to date.
    pub fn lock(&self) -> Guard<'_> {
        let mut state = self.inner.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.advance(self.inner.clock.now(), &self.inner.rules);
        Guard(state)
    }

    /// A copy of a machine as it is now.
    pub fn machine(&self, name: &str) -> Option<Machine> {
        self.lock().machines.get(name).cloned()
    }

    /// Reads or changes a machine.
    pub fn with_machine<T>(&self, name: &str, f: impl FnOnce(&mut Machine, LabTime) -> T) -> Option<T> {
        let mut state = self.lock();
        let now = state.now;
        state.machines.get_mut(name).map(|machine| f(machine, now))
    }

    /// Presses the power button of a machine. The change shows after its time.
    pub fn press(&self, name: &str, action: PowerAction) {
        self.lock().press(name, action);
    }

    /// Restarts a BMC: it is away for a while from now on. Its accounts and settings stay.
    pub fn reset_bmc(&self, name: &str) {
        let mut state = self.lock();
        let away = seconds(state.timing.bmc_away_s);
        let now = state.now;
        if let Some(machine) = state.machines.get_mut(name) {
            machine.bmc.away = Some((now, now + away));
            machine.bmc.resets += 1;
        }
    }

    /// Whether a BMC is too busy for a request now. Asking begins the spell.
    pub fn bmc_busy(&self, name: &str) -> bool {
        self.with_machine(name, |machine, now| {
            machine.troubles.busy.retain(|s| s.until.is_none_or(|until| now < until));
            machine.troubles.busy.first_mut().is_some_and(|spell| spell.meet(now))
        })
        .unwrap_or(false)
    }

    /// Brings a fault into the world, at once or at its time counted from now.
    pub fn add_fault(&self, fault: Fault) {
        let mut state = self.lock();
        let at = state.now + fault.at().unwrap_or_default();
        if fault.at().is_none_or(|at| at.is_zero()) {
            state.begin_fault(fault, &self.inner.rules);
        } else {
            state.at(at, Event::Fault(Box::new(fault)));
        }
    }
}

impl State {
    /// Puts an event on the agenda.
    pub(super) fn at(&mut self, at: LabTime, event: Event) {
        self.next += 1;
        self.agenda.insert((at, self.next), event);
    }

    /// Wall time of `now`: what a service writes as the time of a change.
    pub fn stamp(&self) -> Timestamp {
        self.clock.stamp(self.now)
    }

    /// Carries out everything due.
    fn advance(&mut self, now: LabTime, rules: &Rules) {
        while let Some(entry) = self.agenda.first_entry() {
            if entry.key().0 > now {
                break;
            }
            let ((at, _), event) = entry.remove_entry();
            self.now = self.now.max(at);
            self.happen(event, rules);
        }
        self.now = self.now.max(now);
    }

    fn happen(&mut self, event: Event, rules: &Rules) {
        let (now, link_up) = (self.now, seconds(self.timing.link_up_s));
        match event {
            Event::Power { machine, on, request } => {
                if let Some(machine) = self.machines.get_mut(&machine)
                    && machine.power.request == request
                {
                    machine.set_power(on, now, link_up);
                }
            }
            Event::PowerCycle { machine, request } => {
                let due = now + seconds(self.timing.power_on_s);
                let Some(found) = self.machines.get_mut(&machine).filter(|m| m.power.request == request) else {
                    return;
                };
                found.set_power(false, now, link_up);
                found.power.target = Some((true, due));
                self.at(due, Event::Power { machine, on: true, request });
            }
            Event::Fault(fault) => self.begin_fault(*fault, rules),
            Event::Node { uuid, task, step } => task::happen(self, uuid, task, step),
        }
    }

    /// Presses the power button of a machine.
    pub fn press(&mut self, name: &str, action: PowerAction) {
        let timing = self.timing;
        let Some(machine) = self.machines.get_mut(name) else { return };
        let was_on = machine.power.on;
        machine.power.request += 1;
        let request = machine.power.request;
        machine.power.target = None;
        let (on, after) = match action {
            PowerAction::On => (true, timing.power_on_s),
            PowerAction::ForceOff => (false, timing.power_off_s),
            PowerAction::SoftOff => (false, timing.soft_off_s),
            PowerAction::Restart if was_on => (true, timing.power_off_s),
            PowerAction::Restart => (true, timing.power_on_s),
        };
        let restart = action == PowerAction::Restart && was_on;
        if was_on == on && !restart {
            return;
        }
        let due = self.now + seconds(after);
        machine.power.target = Some((on, due));
        let machine = name.to_owned();
        let event =
            if restart { Event::PowerCycle { machine, request } } else { Event::Power { machine, on, request } };
        self.at(due, event);
    }

    fn begin_fault(&mut self, fault: Fault, rules: &Rules) {
        let now = self.now;
        let scheduled = fault.at().is_some();
        if let Fault::Http(rule) = fault {
            return rules.add(rule, now);
        }
        let Some(machine) = fault.device().and_then(|name| self.machines.get_mut(name)) else { return };
        let spell = |for_s: f64| Spell { lasts: seconds(for_s), until: scheduled.then(|| now + seconds(for_s)) };
        match fault {
            Fault::Http(_) => {}
            Fault::DarkLink(f) if scheduled => machine.troubles.dark.push((f.interfaces, now + seconds(f.for_s))),
            Fault::DarkLink(f) => machine.troubles.dark_at_power_on.push((f.interfaces, seconds(f.for_s))),
            Fault::SwappedCables(f) => {
                let plug = |name: &str| machine.nic(name).map(|nic| nic.plugged.clone());
                if let (Some(first), Some(second)) = (plug(&f.interfaces[0]), plug(&f.interfaces[1])) {
                    for nic in &mut machine.nics {
                        if nic.name == f.interfaces[0] {
                            nic.plugged = second.clone();
                        } else if nic.name == f.interfaces[1] {
                            nic.plugged = first.clone();
                        }
                    }
                }
            }
            Fault::CableMoved(f) => {
                for nic in machine.nics.iter_mut().filter(|nic| nic.name == f.interface) {
                    nic.plugged.clone_from(&f.to);
                }
            }
            Fault::CablesMended(_) => {
                machine.troubles.dark.clear();
                machine.troubles.dark_at_power_on.clear();
                for nic in &mut machine.nics {
                    nic.plugged = nic.recorded.clone();
                }
            }
            Fault::CleanFails(f) => machine.troubles.clean_fails += f.times,
            Fault::InspectionFails(f) => machine.troubles.inspection_fails += f.times,
            Fault::InspectionSilent(f) => machine.troubles.inspection_silent += f.times,
            Fault::NodeLocked(f) => machine.troubles.locks.push(spell(f.for_s)),
            Fault::BmcBusy(f) => machine.troubles.busy.push(spell(f.for_s)),
            Fault::BmcPasswordUnknown(_) => {
                for password in machine.bmc.accounts.values_mut() {
                    *password = format!("unknown-{}", machine.serial);
                }
            }
        }
    }
}

//! The order of the fleet's table: by place as a person walks, or by what a column says. Hosts that are alike in it stay in
//! the order of the racks.

use std::cmp::Ordering;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::host::Host;
use super::place::natural;
use crate::domain::failure::Owner;
use crate::domain::run_view::RunState;

/// What the table is sorted by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Default)]
pub struct Sort {
    pub by: By,
    pub reversed: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Default)]
pub enum By {
    /// Place by place, in a rack from the top down.
    #[default]
    Place,
    Name,
    /// NetBox's status.
    Status,
    /// Ironic's provision state; hosts without a node come last.
    Ironic,
    /// What needs a person first, then what is under way, then what is done; the newest first.
    Need,
}

impl By {
    pub const ALL: [By; 5] = [By::Place, By::Name, By::Status, By::Ironic, By::Need];

    /// In the heading.
    pub fn words(self) -> &'static str {
        match self {
            By::Place => "place",
            By::Name => "name",
            By::Status => "netbox",
            By::Ironic => "ironic",
            By::Need => "need",
        }
    }
}

impl Sort {
    /// The order of the walk: nothing has to be said of it.
    pub fn is_usual(self) -> bool {
        self == Sort::default()
    }

    /// By the next column, in its own direction.
    pub fn next(self) -> Sort {
        let at = By::ALL.iter().position(|by| *by == self.by).unwrap_or(0);
        Sort { by: By::ALL[(at + 1) % By::ALL.len()], reversed: false }
    }

    /// Sorts places of hosts that are in the order of the walk.
    pub fn apply(self, shown: &mut [u32], hosts: &[Host]) {
        let of = |at: u32| &hosts[at as usize];
        let turn = |order: Ordering| if self.reversed { order.reverse() } else { order };
        match self.by {
            By::Place if self.reversed => shown.reverse(),
            By::Place => {}
            By::Name => shown.sort_by(|a, b| turn(natural(&of(*a).device.name, &of(*b).device.name))),
            By::Status => shown.sort_by(|a, b| turn(of(*a).device.status.cmp(&of(*b).device.status))),
            By::Ironic => shown.sort_by(|a, b| turn(ironic(of(*a)).cmp(&ironic(of(*b))))),
            By::Need => {
                // Worked out once a host: comparing asks for it many times.
                let mut keyed: Vec<(Need, u32)> = shown.iter().map(|at| (need(of(*at)), *at)).collect();
                keyed.sort_by(|(a, _), (b, _)| turn(a.cmp(b)));
                shown.iter_mut().zip(keyed).for_each(|(place, (_, at))| *place = at);
            }
        }
    }
}

fn ironic(host: &Host) -> (bool, &str) {
    let state = host.ironic.as_ref().map(|ironic| ironic.state.as_str());
    (state.is_none(), state.unwrap_or_default())
}

/// How much a host needs a person, and since when it stands as it does.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Need {
    rank: u8,
    /// Among failures: hands first, as in the walk.
    owner: Option<Owner>,
    newest: std::cmp::Reverse<Option<Timestamp>>,
}

fn need(host: &Host) -> Need {
    let last = host.last_run.as_ref();
    let rank = match last.map(|last| last.state) {
        Some(RunState::Failed) => 0,
        Some(RunState::Running | RunState::Cancelling) => 2,
        Some(RunState::Queued) => 3,
        _ if host.is_bystander() => 7,
        _ if host.refusal.is_some() => 1,
        None => 4,
        Some(RunState::Cancelled) => 5,
        Some(RunState::Succeeded) => 6,
    };
    let newest = last.map(|last| last.finished_at.unwrap_or(last.submitted_at));
    Need { rank, owner: host.failure().map(|failure| failure.owner), newest: std::cmp::Reverse(newest) }
}

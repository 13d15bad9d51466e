//! The fleet view's state: hosts, tree, filter, selection and marks. Selection is by id, so a refresh moves no cursor.

use std::collections::{BTreeMap, BTreeSet};
use std::mem;

use serde::{Deserialize, Serialize};

use super::filter::Query;
use super::host::Host;
use super::input::Input;
use super::place::{self, Node, Place};
use super::sort::{By, Sort};
use crate::domain::run_view::RunState;
use crate::tui::text;

/// Everything that decides how the fleet looks.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
pub struct Fleet {
    /// In the order of the racks; changed only by [`Fleet::set_hosts`] and [`Fleet::host_mut`].
    pub hosts: Vec<Host>,
    /// The store was read at least once.
    pub loaded: bool,
    pub tree: Vec<Node>,
    pub open: BTreeSet<Place>,
    /// The tree's cursor, and what the table shows.
    pub place: Place,
    /// The table's cursor: NetBox id.
    pub selected: Option<u64>,
    pub marks: BTreeSet<u64>,
    pub filter: Input,
    pub filtering: bool,
    pub pane: Pane,
    /// First visible line of the tree and of the table.
    pub tree_top: usize,
    pub table_top: usize,
    /// Hosts of the place that the filter lets through, as indexes, in the order of the table.
    pub shown: Vec<u32>,
    #[serde(default)]
    pub sort: Sort,
    /// A run began or ended since the table was sorted by that.
    #[serde(default)]
    pub is_unsorted: bool,
    /// How many hosts the place has.
    pub in_place: usize,
    /// Columns of the longest names, so that nothing jumps while scrolling.
    pub name_width: usize,
    pub rack_width: usize,
    pub status_width: usize,
    pub ironic_width: usize,
    /// Counted with the tree, so that no frame walks the whole fleet.
    pub totals: Totals,
    /// Hosts whose last run failed, as indexes: those for hands first, then by owner, each in the order of the racks (U5).
    #[serde(default)]
    pub waiting: Vec<u32>,
    /// Where each host is, by its NetBox id.
    by_id: BTreeMap<u64, u32>,
    by_name: BTreeMap<String, u32>,
    /// The row of each host, by its index; what doesn't show has none.
    rows: Vec<Option<u32>>,
}

/// What the header says of the whole fleet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Default)]
pub struct Totals {
    pub running: usize,
    pub queued: usize,
    /// Wait for the hands at the rack.
    pub for_hands: usize,
}

/// The two panes of the fleet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Default)]
pub enum Pane {
    Tree,
    #[default]
    Table,
}

impl Fleet {
    /// Takes the fleet as the store has it.
    pub fn set_hosts(&mut self, mut hosts: Vec<Host>) {
        let cursor = self.cursor();
        hosts.sort_by(place::by_place);
        self.by_id = hosts.iter().enumerate().map(|(at, h)| (h.device.netbox_id, at as u32)).collect();
        self.by_name = hosts.iter().enumerate().map(|(at, h)| (h.device.name.clone(), at as u32)).collect();
        self.name_width = hosts.iter().map(|h| text::width(&h.device.name)).max().unwrap_or(0).clamp(6, 24);
        let racks = hosts.iter().map(|h| h.device.rack.as_deref().map_or(0, text::width));
        self.rack_width = racks.max().unwrap_or(0).clamp(4, 10);
        let statuses = hosts.iter().map(|h| text::width(&h.device.status));
        self.status_width = statuses.max().unwrap_or(0).clamp(6, 8);
        let states = hosts.iter().map(|h| h.ironic.as_ref().map_or(0, |i| text::width(i.state.as_str())));
        self.ironic_width = states.max().unwrap_or(0).clamp(9, 14);
        self.hosts = hosts;
        let first = self.tree.iter().all(|n| n.hosts == 0) && !self.hosts.is_empty();
        self.loaded = true;
        let (ids, marks) = (&self.by_id, &mut self.marks);
        marks.retain(|id| ids.contains_key(id));
        self.count();
        if first {
            self.unfold();
        }
        while !self.tree.iter().any(|n| n.place == self.place) {
            self.place = self.place.parent().unwrap_or_default();
        }
        self.narrow();
        // The selected host left: its neighbour takes over.
        if self.cursor().is_none() {
            self.select_row(cursor.unwrap_or(0));
        }
    }

    /// Opens the way to the only place there is to look at; a few places are all opened.
    fn unfold(&mut self) {
        if self.tree.len() <= 40 {
            let inner = self.tree.iter().filter(|n| n.has_children).map(|n| n.place.clone());
            self.open.extend(inner);
        }
    }

    /// Counts hosts, failures and runs of every place anew.
    pub fn count(&mut self) {
        self.tree = place::tree(&self.hosts);
        self.totals = Totals::default();
        self.waiting.clear();
        for (at, host) in self.hosts.iter().enumerate() {
            self.waiting.extend(host.failure().map(|_| at as u32));
            let Some(last) = &host.last_run else { continue };
            match last.state {
                RunState::Queued => self.totals.queued += 1,
                RunState::Running | RunState::Cancelling => self.totals.running += 1,
                _ => self.totals.for_hands += usize::from(host.needs_hands()),
            }
        }
        // Stable: within an owner the racks' order stays.
        let hosts = &self.hosts;
        self.waiting.sort_by_key(|at| hosts[*at as usize].failure().map(|failure| failure.owner));
    }

    /// Works out which hosts the table shows.
    pub fn narrow(&mut self) {
        let query = Query::parse(&self.filter.text);
        self.shown.clear();
        self.in_place = 0;
        for (at, host) in self.hosts.iter().enumerate() {
            if self.place.holds(host) {
                self.in_place += 1;
                if query.matches(host) {
                    self.shown.push(at as u32);
                }
            }
        }
        self.sort.apply(&mut self.shown, &self.hosts);
        self.is_unsorted = false;
        self.rows.clear();
        self.rows.resize(self.hosts.len(), None);
        for (row, at) in self.shown.iter().enumerate() {
            self.rows[*at as usize] = Some(row as u32);
        }
    }

    /// Sorts by something else. The selection stays on its host.
    pub fn sort_by(&mut self, sort: Sort) {
        self.sort = sort;
        self.narrow();
    }

    /// A host stands otherwise than before: a table that is sorted by that is sorted anew before it is drawn.
    pub fn stands_otherwise(&mut self) {
        self.is_unsorted |= self.sort.by == By::Need;
    }

    /// As [`Fleet::narrow`], and keeps the selection on a host that shows.
    pub fn narrow_and_select(&mut self) {
        let cursor = self.cursor();
        self.narrow();
        if self.cursor().is_none() {
            self.select_row(cursor.unwrap_or(0));
        }
    }

    /// The table's row of the selection.
    pub fn cursor(&self) -> Option<usize> {
        let at = *self.by_id.get(&self.selected?)?;
        self.rows.get(at as usize).copied().flatten().map(|row| row as usize)
    }

    /// Selects a row, or the nearest that there is.
    pub fn select_row(&mut self, row: usize) {
        let row = row.min(self.shown.len().saturating_sub(1));
        self.selected = self.shown.get(row).map(|at| self.hosts[*at as usize].device.netbox_id);
    }

    /// Selects a host, where it shows.
    pub fn select(&mut self, id: u64) {
        let before = self.selected.replace(id);
        if self.cursor().is_none() {
            self.selected = before;
        }
    }

    /// The selected host, where it shows.
    pub fn host(&self) -> Option<&Host> {
        self.row(self.cursor()?)
    }

    /// The host of a row of the table.
    pub fn row(&self, row: usize) -> Option<&Host> {
        self.hosts.get(*self.shown.get(row)? as usize)
    }

    pub fn by_id(&self, id: u64) -> Option<&Host> {
        self.hosts.get(*self.by_id.get(&id)? as usize)
    }

    pub fn by_name(&self, name: &str) -> Option<&Host> {
        self.hosts.get(*self.by_name.get(name)? as usize)
    }

    /// A host to be changed in place. What decides its order must not be.
    pub fn host_mut(&mut self, id: u64) -> Option<&mut Host> {
        let at = *self.by_id.get(&id)?;
        self.hosts.get_mut(at as usize)
    }

    /// The tree's visible lines.
    pub fn tree_lines(&self) -> Vec<&Node> {
        place::visible(&self.tree, &self.open).into_iter().map(|at| &self.tree[at]).collect()
    }

    /// The tree's line of the cursor.
    pub fn tree_cursor(&self) -> usize {
        self.tree_lines().iter().position(|n| n.place == self.place).unwrap_or(0)
    }

    /// Goes to a place, opening what is around it.
    pub fn go(&mut self, place: Place) {
        let mut around = place.parent();
        while let Some(p) = around {
            around = p.parent();
            self.open.insert(p);
        }
        self.place = place;
        self.table_top = 0;
        self.narrow();
        if self.cursor().is_none() {
            self.select_row(0);
        }
    }

    /// How it stands - place, cursor, marks, filter - without the hosts, so that it is quickly kept.
    pub fn stand(&mut self) -> Fleet {
        let (hosts, tree, shown) = (mem::take(&mut self.hosts), mem::take(&mut self.tree), mem::take(&mut self.shown));
        let (by_id, by_name) = (mem::take(&mut self.by_id), mem::take(&mut self.by_name));
        let waiting = mem::take(&mut self.waiting);
        let stand = self.clone();
        (self.hosts, self.tree, self.shown, self.waiting) = (hosts, tree, shown, waiting);
        (self.by_id, self.by_name) = (by_id, by_name);
        stand
    }

    /// Stands as it did, with the hosts that there are now.
    pub fn stand_again(&mut self, stand: &Fleet) {
        let moved = (&self.place, &self.filter, &self.sort) != (&stand.place, &stand.filter, &stand.sort);
        (self.open, self.place, self.selected) = (stand.open.clone(), stand.place.clone(), stand.selected);
        (self.marks, self.filter, self.filtering) = (stand.marks.clone(), stand.filter.clone(), stand.filtering);
        self.sort = stand.sort;
        (self.pane, self.tree_top, self.table_top) = (stand.pane, stand.tree_top, stand.table_top);
        if moved {
            self.narrow_and_select();
        }
    }

    /// Marked hosts in the order of the racks; without marks the selected one.
    pub fn chosen(&self) -> Vec<&Host> {
        if self.marks.is_empty() {
            return self.host().into_iter().collect();
        }
        self.hosts.iter().filter(|h| self.marks.contains(&h.device.netbox_id)).collect()
    }
}

//! The fleet view's state: hosts, tree, filter, selection and marks. Selection is by id, so a refresh moves no cursor.

use std::collections::BTreeSet;
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
    /// In the order of the racks; changed only by [`Fleet::set_hosts`], [`Fleet::set_first`], [`Fleet::change`] and
    /// [`Fleet::host_mut`].
    pub hosts: Vec<Host>,
    /// The store was read at least once.
    pub loaded: bool,
    /// Only the first hosts are here, and the others are being read: no number of them is known.
    #[serde(default)]
    pub is_partial: bool,
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
    pub widths: Widths,
    /// Counted with the tree, so that no frame walks the whole fleet.
    pub totals: Totals,
    /// Hosts whose last run failed, as indexes: those for hands first, then by owner, each in the order of the racks (U5).
    #[serde(default)]
    pub waiting: Vec<u32>,
    /// Where each host is, in the order of the NetBox ids, and of the names.
    by_id: Vec<u32>,
    by_name: Vec<u32>,
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

/// Columns of the longest names, so that nothing jumps while scrolling.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Widths {
    pub name: usize,
    pub rack: usize,
    pub status: usize,
    pub ironic: usize,
}

impl Default for Widths {
    fn default() -> Widths {
        Widths { name: 6, rack: 4, status: 6, ironic: 9 }
    }
}

impl Widths {
    fn of(hosts: &[Host]) -> Widths {
        let mut widths = Widths::default();
        widths.grow(hosts);
        widths
    }

    /// For these hosts too.
    fn grow(&mut self, hosts: &[Host]) {
        let fit = |width: &mut usize, text: &str, most: usize| {
            if *width < most {
                *width = text::width(text).clamp(*width, most);
            }
        };
        for host in hosts {
            fit(&mut self.name, &host.device.name, 24);
            fit(&mut self.rack, host.device.rack.as_deref().unwrap_or_default(), 10);
            fit(&mut self.status, &host.device.status, 8);
            fit(&mut self.ironic, host.ironic.as_ref().map_or("", |node| node.state.as_str()), 14);
        }
    }
}

/// Where the host of a NetBox id is, by the index of the ids.
fn found(by_id: &[u32], hosts: &[Host], id: u64) -> Option<u32> {
    let at = by_id.binary_search_by_key(&id, |at| hosts[*at as usize].device.netbox_id).ok()?;
    Some(by_id[at])
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
        let first = self.is_partial || self.hosts.is_empty();
        self.is_partial = false;
        self.hosts = hosts;
        self.index();
        self.widths = Widths::of(&self.hosts);
        let (ids, hosts) = (&self.by_id, &self.hosts);
        self.marks.retain(|id| found(ids, hosts, *id).is_some());
        self.count();
        if first && !self.hosts.is_empty() {
            self.unfold();
        }
        self.settle(cursor);
    }

    /// Takes the first hosts of a fleet whose others are still being read.
    pub fn set_first(&mut self, mut hosts: Vec<Host>) {
        let cursor = self.cursor();
        hosts.sort_by(place::by_place);
        self.is_partial = true;
        self.hosts = hosts;
        self.index();
        self.widths = Widths::of(&self.hosts);
        self.count();
        self.settle(cursor);
    }

    /// Takes the hosts that changed or came, and leaves out those that are gone. What none of them touches stays as it is,
    /// and nothing is sorted that stands in its order.
    pub fn change(&mut self, changed: Vec<Host>, gone: &[u64]) {
        let cursor = self.cursor();
        let first = self.hosts.is_empty();
        let gone: BTreeSet<u64> = gone.iter().copied().collect();
        let before = self.hosts.len();
        if !gone.is_empty() {
            self.hosts.retain(|host| !gone.contains(&host.device.netbox_id));
            self.marks.retain(|id| !gone.contains(id));
        }
        let mut moved = self.hosts.len() != before;
        if moved {
            self.index();
        }
        self.widths.grow(&changed);
        let mut came = Vec::new();
        for host in changed {
            match found(&self.by_id, &self.hosts, host.device.netbox_id) {
                Some(at) => {
                    let known = &mut self.hosts[at as usize];
                    moved |= place::by_place(known, &host).is_ne();
                    *known = host;
                }
                None => came.push(host),
            }
        }
        moved |= !came.is_empty();
        self.hosts.append(&mut came);
        if moved {
            self.hosts.sort_by(place::by_place);
            self.index();
        }
        self.count();
        if first && moved {
            self.unfold();
        }
        // A table in the order of the places, or of the names, shows what it showed.
        if moved || !self.filter.is_empty() || !matches!(self.sort.by, By::Place | By::Name) {
            self.settle(cursor);
        }
    }

    fn index(&mut self) {
        let hosts = &self.hosts;
        self.by_id.clear();
        self.by_id.extend(0..hosts.len() as u32);
        self.by_name.clone_from(&self.by_id);
        self.by_id.sort_by_key(|at| hosts[*at as usize].device.netbox_id);
        self.by_name.sort_by(|a, b| hosts[*a as usize].device.name.cmp(&hosts[*b as usize].device.name));
    }

    /// After the hosts have changed: the place is one that there is, and the selection is on a host that shows. Where the
    /// selected host left, its neighbour takes over.
    fn settle(&mut self, cursor: Option<usize>) {
        self.loaded = true;
        while !self.tree.iter().any(|n| n.place == self.place) {
            self.place = self.place.parent().unwrap_or_default();
        }
        self.narrow();
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
        let at = found(&self.by_id, &self.hosts, self.selected?)?;
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
        self.hosts.get(found(&self.by_id, &self.hosts, id)? as usize)
    }

    pub fn by_name(&self, name: &str) -> Option<&Host> {
        // Of several in several sites the last.
        let end = self.by_name.partition_point(|at| self.hosts[*at as usize].device.name.as_str() <= name);
        let at = *self.by_name.get(end.checked_sub(1)?)?;
        self.hosts.get(at as usize).filter(|host| host.device.name == name)
    }

    /// A host to be changed in place. What decides its order must not be.
    pub fn host_mut(&mut self, id: u64) -> Option<&mut Host> {
        let at = found(&self.by_id, &self.hosts, id)?;
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

//! Decides which of the runs that wait may begin, and says of every other where it stands and what holds it (G13).
//!
//! Pure: the engine admits by it, and every list that shows a place computes it from the store, so that a second process
//! shows the same without asking the first. Fair by max-min over sites: the next run comes from the site with the fewest
//! under way among those that have a run for which there is room; of equal sites from the one whose run has waited
//! longest. So the flood of one site never keeps another from its share.

use std::collections::BTreeMap;
use std::fmt;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::ids::RunId;

/// How many runs may be under way at once. `None`: as many as there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Caps {
    pub runs: Option<usize>,
    pub per_site: Option<usize>,
    pub per_rack: Option<usize>,
    pub per_switch: Option<usize>,
}

/// Where a host stands and hangs, as it was at submission: what the limits of rack and switch go by.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Placement {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub location: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rack: Option<String>,
    /// Switches at the far ends of its cables, by name. Read only where a limit needs them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub switches: Vec<String>,
}

impl Placement {
    /// Nothing is known: a run of a version that did not ask.
    pub fn is_unknown(&self) -> bool {
        *self == Placement::default()
    }
}

/// An active run, as far as admission goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    pub run: RunId,
    pub site: String,
    pub placement: Placement,
    /// With the id the order of submission.
    pub submitted_at: Timestamp,
    /// Something of it was begun. It keeps its room, over restarts and lowered limits too: a run is not left half done.
    pub begun: bool,
    /// The run that has to succeed before this one begins.
    pub canary: Option<Canary>,
}

/// The first host of a batch, on which the others wait.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Canary {
    pub run: RunId,
    pub host: String,
    pub verdict: Verdict,
}

/// What came of a canary.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    Pending,
    Succeeded,
    /// How it ended instead, in words: `failed: CABLES_WRONG`, `was cancelled`.
    Ended(String),
}

/// A run that waits: where it stands, and what holds it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Queued {
    pub run: RunId,
    /// From 1, in the order in which the runs come up as things stand.
    pub place: usize,
    pub reason: Reason,
}

/// What holds a run back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "held_by", rename_all = "snake_case")]
pub enum Reason {
    /// Nothing: it begins as soon as an engine looks.
    Next,
    Total {
        under_way: usize,
        limit: usize,
    },
    Site {
        site: String,
        under_way: usize,
        limit: usize,
    },
    Rack {
        rack: String,
        under_way: usize,
        limit: usize,
    },
    Switch {
        switch: String,
        under_way: usize,
        limit: usize,
    },
    Canary {
        run: RunId,
        host: String,
    },
}

impl Reason {
    /// In a few words, for a column.
    pub fn brief(&self) -> String {
        match self {
            Reason::Next => "next to begin".to_owned(),
            Reason::Total { .. } => "total limit".to_owned(),
            Reason::Site { site, .. } => format!("limit of site {site}"),
            Reason::Rack { rack, .. } => format!("limit of rack {rack}"),
            Reason::Switch { switch, .. } => format!("limit of switch {switch}"),
            Reason::Canary { host, .. } => format!("waits for canary {host}"),
        }
    }

    /// The word for scripts.
    pub fn kind(&self) -> &'static str {
        match self {
            Reason::Next => "next",
            Reason::Total { .. } => "total",
            Reason::Site { .. } => "site",
            Reason::Rack { .. } => "rack",
            Reason::Switch { .. } => "switch",
            Reason::Canary { .. } => "canary",
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Reason::Next => f.write_str("next to begin"),
            Reason::Total { under_way, limit } => write!(f, "total limit, {under_way} of {limit} under way"),
            Reason::Site { site, under_way, limit } => {
                write!(f, "limit of site {site}, {under_way} of {limit} under way")
            }
            Reason::Rack { rack, under_way, limit } => {
                write!(f, "limit of rack {rack}, {under_way} of {limit} under way")
            }
            Reason::Switch { switch, under_way, limit } => {
                write!(f, "limit of switch {switch}, {under_way} of {limit} under way")
            }
            Reason::Canary { host, .. } => write!(f, "waits for canary {host}"),
        }
    }
}

/// The runs that have not begun, in their order. Those with [`Reason::Next`] may begin now, all of them; they stand first.
/// A run whose canary ended without success is not among them: it is not to begin at all.
pub fn line(entries: &[Entry], caps: &Caps) -> Vec<Queued> {
    let mut room = Room::new(caps);
    entries.iter().filter(|entry| entry.begun).for_each(|entry| room.take(entry));
    let (mut free, mut held) = (Vec::new(), Vec::new());
    for entry in entries.iter().filter(|entry| !entry.begun) {
        match entry.canary.as_ref().map(|canary| &canary.verdict) {
            None | Some(Verdict::Succeeded) => free.push(entry),
            Some(Verdict::Pending) => held.push(entry),
            Some(Verdict::Ended(_)) => {}
        }
    }
    let (admitted, blocked) = admit(&mut room, by_site(free));
    let blocked = rank(&room, by_site(blocked));
    held.sort_by_key(|entry| order(entry));
    let ranked = admitted.into_iter().map(|entry| (entry, Reason::Next));
    let ranked = ranked.chain(blocked.into_iter().map(|entry| (entry, room.full(entry).unwrap_or(Reason::Next))));
    let ranked = ranked.chain(held.into_iter().map(|entry| (entry, waits(entry))));
    ranked.zip(1..).map(|((entry, reason), place)| Queued { run: entry.run, place, reason }).collect()
}

fn waits(entry: &Entry) -> Reason {
    match &entry.canary {
        Some(canary) => Reason::Canary { run: canary.run, host: canary.host.clone() },
        None => Reason::Next,
    }
}

/// The order of submission.
fn order(entry: &Entry) -> (Timestamp, RunId) {
    (entry.submitted_at, entry.run)
}

/// The runs of each site in reverse order of submission: the oldest is taken from the end.
type BySite<'a> = BTreeMap<&'a str, Vec<&'a Entry>>;

fn by_site<'a>(entries: Vec<&'a Entry>) -> BySite<'a> {
    let mut sites: BySite<'a> = BTreeMap::new();
    for entry in entries {
        sites.entry(&entry.site).or_default().push(entry);
    }
    sites.values_mut().for_each(|runs| runs.sort_by_key(|entry| std::cmp::Reverse(order(entry))));
    sites
}

/// Gives room to as many as there is room for, fairly. Room only becomes less on the way, so a run that finds none is not
/// asked again.
fn admit<'a>(room: &mut Room<'a>, mut sites: BySite<'a>) -> (Vec<&'a Entry>, Vec<&'a Entry>) {
    let (mut admitted, mut blocked) = (Vec::new(), Vec::new());
    loop {
        for runs in sites.values_mut() {
            while let Some(entry) = runs.pop_if(|entry| room.full(entry).is_some()) {
                blocked.push(entry);
            }
        }
        let Some(entry) = next(room, &mut sites) else { return (admitted, blocked) };
        room.take(entry);
        admitted.push(entry);
    }
}

/// The order in which runs without room come up, if what is under way stayed.
fn rank<'a>(room: &Room<'a>, mut sites: BySite<'a>) -> Vec<&'a Entry> {
    let mut after = Room { total: 0, racks: BTreeMap::new(), switches: BTreeMap::new(), ..room.clone() };
    let mut ranked = Vec::new();
    while let Some(entry) = next(&after, &mut sites) {
        *after.sites.entry(&entry.site).or_default() += 1;
        ranked.push(entry);
    }
    ranked
}

/// The oldest run of the site with the fewest; of equal sites of the one whose run is the oldest.
fn next<'a>(room: &Room<'a>, sites: &mut BySite<'a>) -> Option<&'a Entry> {
    let waiting = sites.iter().filter_map(|(site, runs)| Some((*site, *runs.last()?)));
    let (site, _) = waiting.min_by_key(|(site, oldest)| (room.of_site(site), order(oldest)))?;
    sites.get_mut(site)?.pop()
}

/// What is under way, and what may be.
#[derive(Clone)]
struct Room<'a> {
    caps: &'a Caps,
    total: usize,
    sites: BTreeMap<&'a str, usize>,
    /// Names of racks are unique within a location, those of switches within a site.
    racks: BTreeMap<(&'a str, &'a str, &'a str), usize>,
    switches: BTreeMap<(&'a str, &'a str), usize>,
}

impl<'a> Room<'a> {
    fn new(caps: &'a Caps) -> Self {
        Room { caps, total: 0, sites: BTreeMap::new(), racks: BTreeMap::new(), switches: BTreeMap::new() }
    }

    fn of_site(&self, site: &str) -> usize {
        self.sites.get(site).copied().unwrap_or(0)
    }

    fn take(&mut self, entry: &'a Entry) {
        self.total += 1;
        *self.sites.entry(&entry.site).or_default() += 1;
        if let Some(rack) = rack(entry) {
            *self.racks.entry(rack).or_default() += 1;
        }
        for switch in &entry.placement.switches {
            *self.switches.entry((&entry.site, switch)).or_default() += 1;
        }
    }

    /// What holds a run back, the narrowest limit first: it still holds when a wider one gives room.
    fn full(&self, entry: &Entry) -> Option<Reason> {
        let over = |limit: Option<usize>, under_way: usize| limit.filter(|limit| under_way >= *limit);
        for switch in &entry.placement.switches {
            let under_way = self.switches.get(&(entry.site.as_str(), switch.as_str())).copied().unwrap_or(0);
            if let Some(limit) = over(self.caps.per_switch, under_way) {
                return Some(Reason::Switch { switch: switch.clone(), under_way, limit });
            }
        }
        if let Some(rack) = rack(entry) {
            let under_way = self.racks.get(&rack).copied().unwrap_or(0);
            if let Some(limit) = over(self.caps.per_rack, under_way) {
                return Some(Reason::Rack { rack: rack.2.to_owned(), under_way, limit });
            }
        }
        let under_way = self.of_site(&entry.site);
        if let Some(limit) = over(self.caps.per_site, under_way) {
            return Some(Reason::Site { site: entry.site.clone(), under_way, limit });
        }
        over(self.caps.runs, self.total).map(|limit| Reason::Total { under_way: self.total, limit })
    }
}

fn rack(entry: &Entry) -> Option<(&str, &str, &str)> {
    let placement = &entry.placement;
    Some((&entry.site, placement.location.as_deref().unwrap_or_default(), placement.rack.as_deref()?))
}

#[cfg(test)]
#[path = "queue/tests.rs"]
mod tests;

//! The fleet as the console keeps it: hosts, slim, the first of the walk at once, and later no more than what changed.

use std::cmp::Ordering;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};

use super::feed::SystemHealth;
use super::handle::{App, AppError};
use super::runs::RunSummary;
use crate::domain::device::IronicRef;
use crate::domain::eligibility::{self, Grounds, Rules};
use crate::domain::listed::{Alike, Listed};
use crate::domain::word::Word;
use crate::store::{Around, Brief, Mark, Store};

/// Of so many devices or fewer node, run and proof are looked up one by one, of more they are read as a whole.
const SINGLY: usize = 1000;
/// Clocks of processes that write to one store are no further apart, nor is a commit longer under way.
const SLACK: SignedDuration = SignedDuration::from_mins(2);

/// One host with what stands beside it.
#[derive(Debug, Clone)]
pub struct Entry {
    pub device: Listed,
    pub ironic: Option<Box<IronicRef>>,
    /// Without its place in the line.
    pub last_run: Option<Box<RunSummary>>,
    /// Why it may not be enrolled; `None` where it may.
    pub refusal: Option<Arc<Grounds>>,
    pub is_proven: bool,
}

/// Reads the fleet, and remembers how far it has read.
pub struct Roster {
    store: Store,
    rules: Rules,
    /// Only this site is read.
    site: Option<String>,
    mark: Option<Mark>,
    /// Since when ends of runs were not read.
    runs_read: Timestamp,
    kinds: HashMap<Arc<Alike>, Judged>,
}

/// What becomes of devices that are alike.
#[derive(Clone)]
struct Judged {
    is_listed: bool,
    /// Refused with a unit, and without one.
    placed: Option<Arc<Grounds>>,
    loose: Option<Arc<Grounds>>,
}

/// What changed since the last reading.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Changes {
    /// The devices with these NetBox ids are in no list of hosts any more; what else changed was handed over.
    Without(Vec<u64>),
    /// It can't be told, and the whole has to be read.
    Unknown,
}

/// How names of a place are ordered.
pub type Order = fn(Option<&str>, Option<&str>) -> Ordering;

impl App {
    /// A reader of the fleet for a list of hosts, of one site or of all.
    pub fn roster(&self, site: Option<String>) -> Roster {
        Roster {
            store: self.inner.store.clone(),
            rules: self.inner.rules.clone(),
            site,
            mark: None,
            runs_read: self.now(),
            kinds: HashMap::new(),
        }
    }

    /// When each system was last heard.
    pub fn systems(&self) -> Result<Vec<SystemHealth>, AppError> {
        Ok(self.inner.store.syncs()?.into_iter().map(SystemHealth::from).collect())
    }
}

impl Roster {
    /// How many devices there are, whatever they are: tells how long the whole will take.
    pub fn size(&self) -> Result<u64, AppError> {
        Ok(self.store.device_count()?)
    }

    /// The first hosts in the order of the places, rack by rack, until there are so many. Reads nothing of the others.
    pub fn first(&mut self, count: usize, order: Order) -> Result<Vec<Entry>, AppError> {
        let store = self.store.clone();
        let sorted = |around: Around<'_>| {
            let mut names = store.places_within(around)?;
            names.sort_by(|a, b| order(a.as_deref(), b.as_deref()));
            Ok::<_, AppError>(names)
        };
        let sites = match &self.site {
            Some(site) => vec![Some(Word::from(&**site))],
            None => sorted(Around::Everywhere)?,
        };
        let mut found = Vec::new();
        'enough: for site in sites.iter().flatten() {
            for location in sorted(Around::Site(site))? {
                for rack in sorted(Around::Location(site, location.as_deref()))?.iter().flatten() {
                    store
                        .briefs_of_rack((site, location.as_deref(), rack), |brief| found.extend(self.listed(brief)))?;
                    if found.len() >= count {
                        break 'enough;
                    }
                }
            }
        }
        let mut entries = Vec::with_capacity(found.len());
        self.beside(found, |entry| entries.push(entry))?;
        Ok(entries)
    }

    /// Hands over every host, one at a time, in no order.
    pub fn whole(&mut self, mut take: impl FnMut(Entry)) -> Result<(), AppError> {
        self.kinds.retain(|kind, _| Arc::strong_count(kind) > 1);
        let store = self.store.clone();
        let now = Timestamp::now();
        // Before anything is read: what changes meanwhile is read again.
        let mark = store.fleet_mark()?;
        let mut beside = Beside::all(&store)?;
        store.each_brief(|brief| {
            if let Some((device, refusal)) = self.listed(brief) {
                take(beside.join(device, refusal));
            }
        })?;
        (self.mark, self.runs_read) = (Some(mark), now);
        Ok(())
    }

    /// Hands over what changed since the last reading.
    pub fn changes(&mut self, take: impl FnMut(Entry)) -> Result<Changes, AppError> {
        let Some(since) = self.mark else { return Ok(Changes::Unknown) };
        let store = self.store.clone();
        let (mut found, mut left) = (Vec::new(), Vec::new());
        let read = store.briefs_since(since, |brief| {
            let id = brief.netbox_id;
            match self.listed(brief) {
                Some(host) => found.push(host),
                None => left.push(id),
            }
        })?;
        let Some((mut gone, mark)) = read else { return Ok(Changes::Unknown) };
        // One that was taken out and came again under its id is there.
        let here: HashSet<u64> = found.iter().map(|(device, _)| device.netbox_id).collect();
        gone.retain(|id| !here.contains(id));
        gone.append(&mut left);
        self.beside(found, take)?;
        self.mark = Some(mark);
        Ok(Changes::Without(gone))
    }

    /// Runs that are under way, and those that ended since the fleet or they were read last; the older first.
    pub fn runs(&mut self) -> Result<Vec<RunSummary>, AppError> {
        let now = Timestamp::now();
        let since = self.runs_read.checked_sub(SLACK).unwrap_or(Timestamp::UNIX_EPOCH);
        let runs = self.store.runs_since(since)?;
        self.runs_read = now;
        Ok(runs)
    }

    /// A host of the list with why it is refused; `None`: it is none, or stands in no rack, or in another site.
    fn listed(&mut self, brief: Brief) -> Option<(Listed, Option<Arc<Grounds>>)> {
        let (kind, judged) = match self.kinds.get_key_value(&brief.alike) {
            Some((kind, judged)) => (Arc::clone(kind), judged),
            None => {
                let judged = self.judge(&brief.alike);
                let kind = Arc::new(brief.alike);
                (Arc::clone(&kind), &*self.kinds.entry(kind).or_insert(judged))
            }
        };
        let refusal = if brief.position.is_some() { &judged.placed } else { &judged.loose };
        let device = Listed {
            netbox_id: brief.netbox_id,
            name: brief.name,
            position: brief.position,
            serial: brief.serial,
            asset_tag: brief.asset_tag,
            oob_ip: brief.oob_ip,
            alike: kind,
        };
        judged.is_listed.then(|| (device, refusal.clone()))
    }

    fn judge(&self, alike: &Alike) -> Judged {
        let here = self.site.as_ref().is_none_or(|site| alike.site == *site);
        let is_host = eligibility::is_of_hosts(alike.device_class.as_deref(), &self.rules);
        let grounds = |has_unit| eligibility::grounds(alike, has_unit, &self.rules).map(Arc::new);
        Judged { is_listed: here && is_host && alike.rack.is_some(), placed: grounds(true), loose: grounds(false) }
    }

    fn beside(&self, found: Vec<(Listed, Option<Arc<Grounds>>)>, mut take: impl FnMut(Entry)) -> Result<(), AppError> {
        let mut beside = if found.len() > SINGLY {
            Beside::all(&self.store)?
        } else {
            Beside::of(&self.store, found.iter().map(|(device, _)| &device.name))?
        };
        for (device, refusal) in found {
            take(beside.join(device, refusal));
        }
        Ok(())
    }
}

/// What stands beside devices, by their names.
#[derive(Default)]
struct Beside {
    nodes: HashMap<Word, Box<IronicRef>>,
    runs: HashMap<Word, Box<RunSummary>>,
    proven: HashSet<Word>,
}

impl Beside {
    fn all(store: &Store) -> Result<Beside, AppError> {
        let mut beside = Beside::default();
        store.each_ironic_ref(|device, node| {
            // Of several instances the first is shown.
            beside.nodes.entry(device).or_insert_with(|| Box::new(node));
        })?;
        store.each_last_run(|run| {
            beside.runs.insert(Word::from(&*run.host), Box::new(run));
        })?;
        beside.proven.extend(store.proofs()?.into_iter().map(|(device, _)| Word::from(device)));
        Ok(beside)
    }

    fn of<'a>(store: &Store, names: impl Iterator<Item = &'a Word>) -> Result<Beside, AppError> {
        let mut beside = Beside::default();
        for name in names {
            beside.nodes.extend(store.ironic_ref_of(name)?.map(|node| (name.clone(), Box::new(node))));
            beside.runs.extend(store.last_run_row(name)?.map(|run| (name.clone(), Box::new(run))));
            beside.proven.extend(store.proof(name)?.map(|_| name.clone()));
        }
        Ok(beside)
    }

    /// Several devices may have one name, in several sites: each is shown with what is known under it.
    fn join(&mut self, device: Listed, refusal: Option<Arc<Grounds>>) -> Entry {
        Entry {
            ironic: self.nodes.get(&device.name).cloned(),
            last_run: self.runs.get(&device.name).cloned(),
            is_proven: self.proven.contains(&device.name),
            refusal,
            device,
        }
    }
}

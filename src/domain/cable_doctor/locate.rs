//! Says of every cable where it is, and of which of them nobody can say it.

use std::collections::{BTreeMap, BTreeSet};

use super::{HeardCable, HeardHost, Port, Spot, Survey};
use crate::domain::checks::spelling;
use crate::domain::lldp::{self, Neighbour};
use crate::domain::text::neutralize_to;

/// A cable of the survey.
pub(super) struct Located<'a> {
    pub host: &'a HeardHost,
    pub cable: &'a HeardCable,
    /// Where it belongs; `None`: NetBox has no place for it, or has that place twice.
    pub target: Option<Port>,
    pub state: State,
}

/// Where a cable is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum State {
    /// Where NetBox has it, by strict equality (V8).
    Right,
    /// In this port; `spelling`: by another spelling than NetBox's, and how the two differ.
    At { port: Port, is_known: bool, spelling: Option<String> },
    /// In nothing: the NIC says that it has no carrier.
    Dark,
    /// Nobody can say it.
    Unknown(String),
}

impl Located<'_> {
    pub fn spot(&self) -> Spot {
        Spot { host: self.host.host.clone(), interface: self.cable.interface.clone() }
    }

    /// The port that it fills.
    pub fn fills(&self) -> Option<&Port> {
        match &self.state {
            State::Right => self.target.as_ref(),
            State::At { port, .. } => Some(port),
            State::Dark | State::Unknown(_) => None,
        }
    }
}

/// All cables, in the order of the survey.
pub(super) fn locate(survey: &Survey) -> Vec<Located<'_>> {
    let known = Known::of(survey);
    let mut cables: Vec<Located<'_>> = survey
        .hosts
        .iter()
        .flat_map(|host| host.cables.iter().map(move |cable| (host, cable)))
        .map(|(host, cable)| Located {
            host,
            cable,
            target: cable.recorded.as_ref().map(Port::from),
            state: state(cable, &known),
        })
        .collect();
    let macs: Vec<_> = cables.iter().map(|c| c.cable.mac.filter(|_| c.cable.seen)).collect();
    settle(&mut cables, &macs, "its MAC");
    let filled: Vec<Option<Port>> = cables.iter().map(|c| c.fills().cloned()).collect();
    settle(&mut cables, &filled, "the same port");
    forget_shared_targets(&mut cables);
    cables
}

/// Of several that claim one thing the one that was inspected last has it; what was heard before is out of date. Where two
/// are equally fresh nobody knows.
fn settle<K: Ord>(cables: &mut [Located<'_>], claims: &[Option<K>], what: &str) {
    let mut by_claim: BTreeMap<&K, Vec<usize>> = BTreeMap::new();
    for (n, claim) in claims.iter().enumerate() {
        if let Some(claim) = claim {
            by_claim.entry(claim).or_default().push(n);
        }
    }
    for members in by_claim.into_values().filter(|members| members.len() > 1) {
        let Some(newest) = members.iter().map(|n| cables[*n].host.inspected_at).max() else { continue };
        let freshest: Vec<usize> = members.iter().copied().filter(|n| cables[*n].host.inspected_at == newest).collect();
        let holder = if let [only] = freshest[..] { Some(only) } else { None };
        for n in members.iter().copied().filter(|n| Some(*n) != holder) {
            let of = |m: usize| format!("{} of {}", cables[m].cable.interface, cables[m].host.host);
            let why = match holder {
                Some(holder) => format!("{what} was seen later at {}: inspect this host again", of(holder)),
                None => {
                    let others: Vec<String> = freshest.iter().filter(|m| **m != n).map(|m| of(*m)).collect();
                    format!("{what} is seen at {} too", others.join(" and "))
                }
            };
            cables[n].state = State::Unknown(neutralize_to(&why, 300));
        }
    }
}

/// A place that NetBox gives to two interfaces is no place to move a cable to.
fn forget_shared_targets(cables: &mut [Located<'_>]) {
    let mut seen: BTreeMap<Port, Vec<usize>> = BTreeMap::new();
    for (n, cable) in cables.iter().enumerate() {
        if let Some(target) = &cable.target {
            seen.entry(target.clone()).or_default().push(n);
        }
    }
    for (port, members) in seen.into_iter().filter(|(_, members)| members.len() > 1) {
        for n in members {
            if cables[n].state == State::Right {
                continue;
            }
            let why = format!("NetBox has more than one interface at {} {}", port.switch, port.port);
            cables[n].target = None;
            cables[n].state = State::Unknown(neutralize_to(&why, 300));
        }
    }
}

fn state(cable: &HeardCable, known: &Known) -> State {
    let unknown = |why: &str| State::Unknown(why.to_owned());
    if !cable.seen {
        return unknown("its NIC was not in the inventory");
    }
    let recorded = cable.recorded.as_ref();
    if recorded.is_some_and(|end| lldp::is_only(&cable.neighbours, &end.switch, &end.port)) {
        return State::Right;
    }
    let heard = match &cable.neighbours[..] {
        [] if cable.carrier == Some(false) => return State::Dark,
        [] => return unknown("no LLDP heard"),
        [one] => one,
        several => match several.iter().find(|n| several.iter().all(|other| other == *n || other.is_below(n))) {
            Some(whole) => whole,
            None => {
                let all: Vec<String> = several.iter().map(Neighbour::shown).collect();
                return State::Unknown(format!("several neighbours are heard: {}", all.join(" and ")));
            }
        },
    };
    if heard.contradicts {
        return unknown("what the switch says of itself it says twice, with two values");
    }
    let Some(system) = heard.system_name.as_deref() else { return unknown("the switch sends no system name") };
    match &known.exactly(system, heard)[..] {
        [port] => return State::At { port: (*port).clone(), is_known: true, spelling: None },
        [] => {}
        _ => return unknown("the port ID is one port of the switch, and the description another"),
    }
    if let Some(what) = spelling::nameless(heard) {
        return State::Unknown(format!("the switch sends {what} and no port name"));
    }
    match &known.by_spelling(system, heard)[..] {
        [(port, hint)] => {
            return State::At { port: (*port).clone(), is_known: true, spelling: Some(hint.clone()) };
        }
        [] => {}
        _ => return unknown("what is heard is near to more than one port that NetBox has"),
    }
    if spelling::is_factory_name(system) {
        return unknown("the switch still has its factory name");
    }
    let port = heard.port_id.as_deref().filter(|id| spelling::tells_no_name(id).is_none());
    let port = port.or(heard.port_description.as_deref()).unwrap_or("?");
    let switch = known.switch_by_spelling(system).unwrap_or(system);
    State::At { port: Port::new(switch, port), is_known: false, spelling: None }
}

/// The ports that NetBox has, as far as they are known here.
struct Known {
    ports: BTreeSet<Port>,
    /// By what is left of a switch's name when spellings are put aside.
    by_gist: BTreeMap<String, Vec<Port>>,
}

impl Known {
    fn of(survey: &Survey) -> Self {
        let recorded = survey.hosts.iter().flat_map(|host| &host.cables).filter_map(|cable| cable.recorded.as_ref());
        let ports: BTreeSet<Port> = survey.ports.keys().cloned().chain(recorded.map(Port::from)).collect();
        let mut by_gist: BTreeMap<String, Vec<Port>> = BTreeMap::new();
        for port in &ports {
            by_gist.entry(gist(&port.switch)).or_default().push(port.clone());
        }
        Known { ports, by_gist }
    }

    /// The ports that a neighbour is by strict equality.
    fn exactly(&self, system: &str, heard: &Neighbour) -> Vec<&Port> {
        let texts: BTreeSet<&String> = heard.port_id.iter().chain(&heard.port_description).collect();
        texts.into_iter().filter_map(|text| self.ports.get(&Port::new(system, text))).collect()
    }

    /// The one switch of NetBox that spells itself so, but for its spelling.
    fn switch_by_spelling(&self, system: &str) -> Option<&str> {
        let near = self.by_gist.get(&gist(system))?.iter().map(|port| port.switch.as_str());
        let names: BTreeSet<&str> =
            near.filter(|name| *name == system || spelling::switch(name, system).is_some()).collect();
        if names.len() == 1 { names.into_iter().next() } else { None }
    }

    /// The ports that a neighbour is but for its spelling.
    fn by_spelling(&self, system: &str, heard: &Neighbour) -> Vec<(&Port, String)> {
        let Some(near) = self.by_gist.get(&gist(system)) else { return Vec::new() };
        let texts = || heard.port_id.iter().chain(&heard.port_description);
        near.iter()
            .filter_map(|known| {
                let switch = (known.switch != system).then(|| spelling::switch(&known.switch, system));
                let port = match texts().any(|text| *text == known.port) {
                    true => None,
                    false => Some(texts().find_map(|text| spelling::port(&known.port, text))?),
                };
                let switch = match switch {
                    Some(hint) => Some(hint?),
                    None => None,
                };
                let hints: Vec<&str> = [switch, port].into_iter().flatten().collect();
                Some((known, hints.join(", ")))
            })
            .collect()
    }
}

/// A switch's name without case, blanks and domain: what spells alike has the same.
fn gist(switch: &str) -> String {
    let bare: String = switch.split_whitespace().collect();
    bare.split('.').next().unwrap_or_default().to_lowercase()
}

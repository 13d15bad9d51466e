//! Follows wrong cables from place to place: circles, rows, and single ones.

use std::collections::{BTreeMap, BTreeSet};

use super::locate::{Located, State};
use super::{Diagnosis, Findings, Kind, Member, Port, Spot, Survey, Unknown};

/// So many hosts with all their cables in each other's switch are no accident of single cables.
const MANY_HOSTS: usize = 3;

pub(super) fn findings(survey: &Survey, cables: &[Located<'_>]) -> Findings {
    let places = Places::of(survey, cables);
    let mut findings = Findings::default();
    let mut seen = vec![false; cables.len()];
    let mut found: Vec<(usize, Diagnosis)> = Vec::new();
    for n in 0..cables.len() {
        match &cables[n].state {
            State::Right => findings.right.push(cables[n].spot()),
            State::Unknown(why) => findings.unknown.push(Unknown {
                spot: cables[n].spot(),
                why: why.clone(),
                displaced_by: places.in_place_of(n).map(|other| cables[other].spot()),
            }),
            State::At { .. } | State::Dark if places.is_wrong(n) => {}
            State::At { port, .. } => {
                let is_spelling = cables[n].target.as_ref() == Some(port);
                if is_spelling {
                    let members = vec![places.member(n)];
                    found.push((n, Diagnosis { kind: Kind::Spelling, members, circles: vec![] }));
                } else {
                    findings.unknown.push(Unknown {
                        spot: cables[n].spot(),
                        why: format!("NetBox has no cable here; it sits in {} {}", port.switch, port.port),
                        displaced_by: None,
                    });
                }
            }
            State::Dark => findings.unknown.push(Unknown {
                spot: cables[n].spot(),
                why: "NetBox has no cable here, and there is no carrier".to_owned(),
                displaced_by: None,
            }),
        }
    }
    // Rows begin where nobody waits for the cable's port; what is left after them goes round.
    let waited_for: BTreeSet<usize> = (0..cables.len()).filter_map(|n| places.next(n)).collect();
    let starts = (0..cables.len()).filter(|n| !waited_for.contains(n));
    for start in starts.chain(0..cables.len()) {
        if seen[start] || !places.is_wrong(start) {
            continue;
        }
        let mut members = Vec::new();
        let mut at = Some(start);
        while let Some(n) = at.filter(|n| !seen[*n]) {
            seen[n] = true;
            members.push(n);
            at = places.next(n);
        }
        let goes_round = at == Some(start) && places.next(*members.last().unwrap_or(&start)) == Some(start);
        let first = members.iter().copied().min().unwrap_or(start);
        found.push((first, places.diagnosis(&members, goes_round)));
    }
    found.sort_by_key(|(first, _)| *first);
    findings.diagnoses = fabrics(found.into_iter().map(|(_, d)| d).collect(), cables);
    findings
}

/// Who is where, and whose place that is.
struct Places<'a> {
    cables: &'a [Located<'a>],
    /// Which cable fills a port.
    filled: BTreeMap<&'a Port, usize>,
    /// Whose place a port is.
    owners: BTreeMap<Port, Spot>,
    /// Switches that NetBox has, as far as they are known here.
    switches: BTreeSet<String>,
}

impl<'a> Places<'a> {
    fn of(survey: &Survey, cables: &'a [Located<'a>]) -> Self {
        let filled = cables.iter().enumerate().filter_map(|(n, cable)| Some((cable.fills()?, n))).collect();
        let mut owners: BTreeMap<Port, Spot> =
            survey.ports.iter().filter_map(|(port, owner)| Some((port.clone(), owner.clone()?))).collect();
        owners.extend(cables.iter().filter_map(|cable| Some((cable.target.clone()?, cable.spot()))));
        let switches = owners.keys().chain(survey.ports.keys()).map(|port| port.switch.clone()).collect();
        Places { cables, filled, owners, switches }
    }

    /// Whether the cable is known to be where it does not belong, with a place that it does belong to.
    fn is_wrong(&self, n: usize) -> bool {
        let cable = &self.cables[n];
        match (&cable.state, &cable.target) {
            (State::At { port, .. }, Some(target)) => port != target,
            (State::Dark, Some(_)) => true,
            // In somebody's way, and with no place of its own.
            (State::At { port, .. }, None) => self.owners.get(port).is_some_and(|owner| *owner != cable.spot()),
            (State::Right | State::Dark | State::Unknown(_), _) => false,
        }
    }

    /// The cable that sits in the place of this one.
    fn in_place_of(&self, n: usize) -> Option<usize> {
        let target = self.cables[n].target.as_ref()?;
        self.filled.get(target).copied().filter(|other| *other != n)
    }

    /// The cable that has to be moved before this one can be.
    fn next(&self, n: usize) -> Option<usize> {
        self.in_place_of(n).filter(|other| self.is_wrong(n) && self.is_wrong(*other))
    }

    fn member(&self, n: usize) -> Member {
        let cable = &self.cables[n];
        let recorded = cable.cable.recorded.as_ref();
        let (at, is_known, spelling) = match &cable.state {
            State::At { port, is_known, spelling } => (Some(port.clone()), *is_known, spelling.clone()),
            State::Right => (cable.target.clone(), true, None),
            State::Dark | State::Unknown(_) => (None, true, None),
        };
        let spot = cable.spot();
        Member {
            place: cable.host.place.clone(),
            label: recorded.and_then(|end| end.label.clone()),
            color: recorded.and_then(|end| end.color.clone()),
            owner_of_at: at.as_ref().and_then(|port| self.owners.get(port)).filter(|owner| **owner != spot).cloned(),
            at,
            is_known,
            to: cable.target.clone(),
            spelling,
            spot,
        }
    }

    fn diagnosis(&self, members: &[usize], goes_round: bool) -> Diagnosis {
        let members: Vec<Member> = members.iter().map(|n| self.member(*n)).collect();
        let one_host = members.windows(2).all(|pair| pair[0].spot.host == pair[1].spot.host);
        let kind = match (&members[..], goes_round) {
            ([only], _) => self.kind_of_one(only),
            ([_, _], true) if one_host => Kind::Swapped,
            ([_, _], true) => Kind::SwappedAcross,
            (several, goes_round) if is_shifted(several, goes_round) => Kind::Shifted,
            (_, true) => Kind::Rotated,
            (_, false) => Kind::Row,
        };
        let circles = if goes_round { vec![members.len()] } else { vec![] };
        Diagnosis { kind, members, circles }
    }

    fn kind_of_one(&self, member: &Member) -> Kind {
        let Some(at) = &member.at else { return Kind::Unplugged };
        if member.owner_of_at.is_some() {
            return Kind::OthersPlace;
        }
        let is_known = member.is_known || self.switches.contains(at.switch.as_str());
        match &member.to {
            Some(to) if is_known && to.switch != at.switch && to.port == at.port => Kind::WrongLeaf,
            _ if is_known => Kind::WrongPort,
            _ => Kind::Foreign,
        }
    }
}

/// Whether each cable sits one port beside its own, all in one direction on one switch; in a circle the last one sits where the
/// first one belongs.
fn is_shifted(members: &[Member], goes_round: bool) -> bool {
    let steps: Option<Vec<i64>> = members
        .iter()
        .map(|member| {
            let (at, to) = (member.at.as_ref()?, member.to.as_ref()?);
            let ((at_name, at_number), (to_name, to_number)) = (numbered(&at.port)?, numbered(&to.port)?);
            (at.switch == to.switch && at_name == to_name).then(|| at_number - to_number)
        })
        .collect();
    let Some(mut steps) = steps else { return false };
    let one_switch = members.windows(2).all(|pair| {
        let switch = |m: &Member| m.to.as_ref().map(|port| port.switch.clone());
        switch(&pair[0]) == switch(&pair[1])
    });
    if goes_round {
        let back = steps.iter().position(|step| step.unsigned_abs() as usize == members.len() - 1);
        match back {
            Some(back) => steps.swap_remove(back),
            None => return false,
        };
    }
    one_switch && steps.len() > 1 && (steps.iter().all(|s| *s == 1) || steps.iter().all(|s| *s == -1))
}

/// `swp14` as `swp` and 14.
fn numbered(port: &str) -> Option<(&str, i64)> {
    let at = port.trim_end_matches(|c: char| c.is_ascii_digit()).len();
    let (name, number) = port.split_at(at);
    Some((name, number.parse().ok()?))
}

/// Joins the swapped cables of many hosts, where all of them are between the same two switches and nothing else on these is
/// right: then it is likelier that the switches are exchanged than that each pair of cables is.
fn fabrics(diagnoses: Vec<Diagnosis>, cables: &[Located<'_>]) -> Vec<Diagnosis> {
    let pair = |d: &Diagnosis| -> Option<(String, String)> {
        let [a, b] = &d.members[..] else { return None };
        let (a, b) = (a.at.as_ref()?, b.at.as_ref()?);
        (d.kind == Kind::Swapped && a.switch != b.switch)
            .then(|| (a.switch.clone().min(b.switch.clone()), a.switch.clone().max(b.switch.clone())))
    };
    let mut pairs: BTreeMap<(String, String), usize> = BTreeMap::new();
    diagnoses.iter().filter_map(pair).for_each(|pair| *pairs.entry(pair).or_default() += 1);
    let right: BTreeSet<&str> = cables
        .iter()
        .filter(|cable| cable.state == State::Right)
        .filter_map(|cable| Some(cable.target.as_ref()?.switch.as_str()))
        .collect();
    pairs.retain(|(a, b), hosts| *hosts >= MANY_HOSTS && !right.contains(a.as_str()) && !right.contains(b.as_str()));
    let mut joined: Vec<Diagnosis> = Vec::new();
    let mut at: BTreeMap<(String, String), usize> = BTreeMap::new();
    for diagnosis in diagnoses {
        let Some(pair) = pair(&diagnosis).filter(|pair| pairs.contains_key(pair)) else {
            joined.push(diagnosis);
            continue;
        };
        match at.get(&pair) {
            Some(n) => {
                joined[*n].members.extend(diagnosis.members);
                joined[*n].circles.extend(diagnosis.circles);
            }
            None => {
                at.insert(pair, joined.len());
                joined.push(Diagnosis { kind: Kind::FabricsExchanged, ..diagnosis });
            }
        }
    }
    joined
}

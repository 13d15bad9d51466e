//! Says a finding as a sentence, and its moves as a person at the rack makes them.

use serde::ser::SerializeStruct;
use serde::{Serialize, Serializer};

use super::{Diagnosis, Kind, Member, Move, Port, Spot, Unknown};
use crate::domain::text::neutralize_to;

/// Moves that an action spells out one by one. `muster cables` has them all.
const SPELLED_OUT: usize = 6;

impl Diagnosis {
    /// What is wrong. With `from`, as it is said to whoever stands before that host: its own interfaces go without its name.
    pub fn sentence(&self, from: Option<&str>) -> String {
        let names: Vec<String> = self.members.iter().map(|m| name(&m.spot, from)).collect();
        let text = match (self.kind, &self.members[..]) {
            (Kind::Swapped, [first, _]) if from != Some(first.spot.host.as_str()) => {
                format!("{} of {} are swapped", self.interfaces(), first.spot.host)
            }
            (Kind::Swapped, _) => format!("{} are swapped", self.interfaces()),
            (Kind::SwappedAcross, [a, b]) => {
                let (own, other) = if from == Some(b.spot.host.as_str()) { (b, a) } else { (a, b) };
                let whose = match from {
                    Some(host) if host == own.spot.host => {
                        format!(": the cable in {} is {}'s", own.spot.interface, other.spot.host)
                    }
                    _ => String::new(),
                };
                format!("{} and {} are swapped{whose}", name(&own.spot, from), name(&other.spot, from))
            }
            (Kind::Rotated, [first, ..]) if self.is_of_one_host() && from != Some(first.spot.host.as_str()) => {
                format!("{} of {} are rotated", self.interfaces(), first.spot.host)
            }
            (Kind::Rotated, _) if self.is_of_one_host() => format!("{} are rotated", self.interfaces()),
            (Kind::SwappedAcross | Kind::Rotated, _) => format!("the cables of {} went round", and(&names)),
            (Kind::Shifted, members) => self.shifted(members, from),
            (Kind::Row, _) => {
                format!("{} sit in a row of wrong places, each in that of the one after it", and(&in_row(&names)))
            }
            (Kind::FabricsExchanged, members) => {
                let hosts = self.circles.len();
                let switches = switches(members);
                format!("the cables of {} are exchanged on all {hosts} hosts that were heard", and(&switches))
            }
            (Kind::OthersPlace, [only]) => self.others_place(only, from),
            (Kind::WrongLeaf, [only]) => {
                format!("{} sits in the right port of the wrong switch: {}", name(&only.spot, from), from_to(only))
            }
            (Kind::WrongPort, [only]) => {
                format!("{} sits in the wrong port: {}", name(&only.spot, from), from_to(only))
            }
            (Kind::Foreign, [only]) => {
                format!("{} sits in a port that NetBox does not have: {}", name(&only.spot, from), from_to(only))
            }
            (Kind::Unplugged, [only]) => {
                format!(
                    "{} has no carrier: it is not plugged in, or cable, optic or port are dead",
                    name(&only.spot, from)
                )
            }
            (Kind::Spelling, [only]) => format!(
                "{} is where it belongs, in '{}', which calls itself otherwise: {}",
                name(&only.spot, from),
                only.to.as_ref().map(port).unwrap_or_default(),
                only.spelling.as_deref().unwrap_or("another spelling")
            ),
            (_, _) => format!("the cables of {} are not where they belong", and(&names)),
        };
        neutralize_to(&text, 400)
    }

    /// What a person does about it, in one sentence.
    pub fn action(&self, from: Option<&str>) -> String {
        let text = match (self.kind, &self.members[..]) {
            (Kind::Swapped, [a, b]) => {
                let at = if from == Some(a.spot.host.as_str()) { "the host".to_owned() } else { a.spot.host.clone() };
                format!("swap the two cables at {at}: {} and {}", a.spot.interface, b.spot.interface)
            }
            (Kind::SwappedAcross, [a, b]) => match (&a.at, &b.at) {
                (Some(first), Some(second)) if first.switch == second.switch => format!(
                    "exchange the two cables at {}: {} ({}) and {} ({})",
                    first.switch,
                    first.port,
                    marked(a, from),
                    second.port,
                    marked(b, from)
                ),
                (Some(first), Some(second)) => format!(
                    "exchange the two cables in {} ({}) and {} ({})",
                    port(first),
                    marked(a, from),
                    port(second),
                    marked(b, from)
                ),
                _ => self.spelled_out(from),
            },
            (Kind::Rotated, members) if self.is_of_one_host() => {
                let belongs = |m: &Member| {
                    let whose = members.iter().find(|other| other.to == m.at)?;
                    Some(format!("the cable in {} belongs in {}", m.spot.interface, whose.spot.interface))
                };
                let mut sorted: Vec<&Member> = members.iter().collect();
                sorted.sort_by_key(|m| in_order(&m.spot.interface));
                let moves: Vec<String> = sorted.into_iter().filter_map(belongs).collect();
                format!("move the cables at the host: {}", moves.join(", "))
            }
            (Kind::FabricsExchanged, members) => {
                let mut hosts: Vec<&str> = members.iter().map(|m| m.spot.host.as_str()).collect();
                hosts.dedup();
                format!(
                    "look which of {} is which before a cable is moved; if they are where NetBox has them, swap the cables at {}",
                    and(&switches(members)),
                    hosts.join(", ")
                )
            }
            (Kind::Spelling, [only]) => format!(
                "rename {} in NetBox, or the switch; no cable is moved",
                only.to.as_ref().map(port).unwrap_or_default()
            ),
            (Kind::Unplugged, [only]) => format!(
                "plug the cable of {} into {}, or check cable, optic and switch port",
                marked(only, from),
                only.to.as_ref().map(port).unwrap_or_default()
            ),
            _ => format!("{}{}", self.spelled_out(from), self.guess()),
        };
        neutralize_to(&text, 900)
    }

    /// The moves one by one.
    pub fn steps(&self, from: Option<&str>) -> Vec<String> {
        let moves = self.moves();
        let mut steps = Vec::new();
        let mut rest = &moves[..];
        let circles = if self.circles.is_empty() { vec![moves.len()] } else { self.circles.clone() };
        for length in circles {
            let (some, after) = rest.split_at(length.min(rest.len()));
            rest = after;
            if let Some(held) = some.last().filter(|last| last.held) {
                steps.push(format!("pull the cable of {}{} and hold it", whose(held, from), out_of(held)));
            }
            for step in some {
                let to = step.to.as_ref().map(port);
                steps.push(match (&step.from, to, step.held) {
                    (_, Some(to), true) => format!("plug the cable that you hold into {to}"),
                    (Some(at), Some(to), false) => {
                        format!("move the cable of {} from {} to {to}", whose(step, from), port(at))
                    }
                    (None, Some(to), false) => format!("plug the cable of {} into {to}", whose(step, from)),
                    (_, None, _) => {
                        format!("pull the cable of {}{}: NetBox has no place for it", whose(step, from), out_of(step))
                    }
                });
            }
        }
        steps.into_iter().map(|step| neutralize_to(&step, 400)).collect()
    }

    fn spelled_out(&self, from: Option<&str>) -> String {
        let steps = self.steps(from);
        if let [only] = &steps[..] {
            return only.clone();
        }
        let shown: Vec<String> =
            steps.iter().take(SPELLED_OUT).enumerate().map(|(n, step)| format!("{}. {step}", n + 1)).collect();
        let more = match steps.len().saturating_sub(SPELLED_OUT) {
            0 => String::new(),
            more => format!(", and {more} more: see `muster cables`"),
        };
        format!("in this order: {}{more}", shown.join(", "))
    }

    /// Whose cable may be found in the place that is not known to be free.
    fn guess(&self) -> String {
        let (Some(first), Some(last)) = (self.members.first(), self.members.last()) else { return String::new() };
        match (&first.owner_of_at, &first.at, &last.to) {
            (Some(owner), Some(at), Some(to)) if self.circles.is_empty() => format!(
                "; a cable that is found in {} is most likely {}'s, and belongs in {}",
                port(to),
                name(owner, None),
                port(at)
            ),
            _ => String::new(),
        }
    }

    fn others_place(&self, only: &Member, from: Option<&str>) -> String {
        let owner = only.owner_of_at.as_ref();
        let at = only.at.as_ref().map(port).unwrap_or_default();
        match owner {
            Some(owner) if owner.host == only.spot.host => {
                format!("{} sits in the place of {}: {at}", name(&only.spot, from), owner.interface)
            }
            Some(owner) => format!(
                "the cable in {} is {}'s: {at} is the place of {}",
                name(&only.spot, from),
                owner.host,
                name(owner, None)
            ),
            None => format!("{} sits in {at}", name(&only.spot, from)),
        }
    }

    fn shifted(&self, members: &[Member], from: Option<&str>) -> String {
        let mut by_port: Vec<&Member> = members.iter().collect();
        by_port.sort_by_key(|m| m.to.as_ref().and_then(|port| number(&port.port)));
        let (Some(first), Some(last)) = (by_port.first(), by_port.last()) else { return String::new() };
        let switch = first.to.as_ref().map(|port| port.switch.clone()).unwrap_or_default();
        // In a circle one of them went the other way, all the way round.
        let step = |m: &&&Member| {
            let (at, to) = (m.at.as_ref()?, m.to.as_ref()?);
            Some(number(&at.port)? - number(&to.port)?)
        };
        let ups = by_port.iter().filter(|m| step(m).is_some_and(|s| s > 0)).count();
        let beside = if ups * 2 > by_port.len() { "above" } else { "below" };
        let round = if self.circles.is_empty() { "" } else { ", and the last one in the first place" };
        format!(
            "the {} cables in {switch} from {} to {} are shifted: each sits one port {beside} its own{round}",
            members.len(),
            name(&first.spot, from),
            name(&last.spot, from)
        )
    }

    fn is_of_one_host(&self) -> bool {
        self.members.windows(2).all(|pair| pair[0].spot.host == pair[1].spot.host)
    }

    fn interfaces(&self) -> String {
        let mut names: Vec<String> = self.members.iter().map(|m| m.spot.interface.clone()).collect();
        names.sort_by_key(|name| in_order(name));
        and(&names)
    }
}

impl Unknown {
    /// Why nothing can be said, and whose cable is in the way.
    pub fn sentence(&self) -> String {
        let displaced = self
            .displaced_by
            .as_ref()
            .map_or(String::new(), |other| format!("; its place is taken by the cable of {}", name(other, None)));
        neutralize_to(&format!("{}: {}{displaced}", name(&self.spot, None), self.why), 400)
    }
}

/// `eth0`, or `eth0 of gpu-b07-38` where that is another host than the one that is spoken of.
fn name(spot: &Spot, from: Option<&str>) -> String {
    match from == Some(spot.host.as_str()) {
        true => spot.interface.clone(),
        false => format!("{} of {}", spot.interface, spot.host),
    }
}

fn port(port: &Port) -> String {
    format!("{} {}", port.switch, port.port)
}

fn from_to(member: &Member) -> String {
    let at = member.at.as_ref().map(port).unwrap_or_else(|| "nothing".to_owned());
    let to = member.to.as_ref().map(port).unwrap_or_else(|| "no place".to_owned());
    format!("'{at}' instead of '{to}'")
}

/// The cable as a person finds it: whose it is, and what is written on it.
fn marked(member: &Member, from: Option<&str>) -> String {
    with_marks(&member.spot, member.label.as_deref(), member.color.as_deref(), from)
}

fn whose(step: &Move, from: Option<&str>) -> String {
    with_marks(&step.spot, step.label.as_deref(), step.color.as_deref(), from)
}

fn with_marks(spot: &Spot, label: Option<&str>, color: Option<&str>, from: Option<&str>) -> String {
    let label = label.map(|label| format!("label {label}"));
    let color = color.map(|color| format!("colour {color}"));
    let marks: Vec<String> = label.into_iter().chain(color).collect();
    let marks = if marks.is_empty() { String::new() } else { format!(", {}", marks.join(", ")) };
    format!("{}{marks}", name(spot, from))
}

fn out_of(step: &Move) -> String {
    step.from.as_ref().map_or(String::new(), |at| format!(" out of {}", port(at)))
}

fn switches(members: &[Member]) -> Vec<String> {
    let mut names: Vec<String> = members.iter().filter_map(|m| Some(m.at.as_ref()?.switch.clone())).collect();
    names.sort();
    names.dedup();
    names
}

/// The cables of a row as they wait for each other.
fn in_row(names: &[String]) -> Vec<String> {
    names.iter().rev().cloned().collect()
}

fn and(names: &[String]) -> String {
    match names.split_last() {
        Some((last, [])) => last.clone(),
        Some((last, first)) => format!("{} and {last}", first.join(", ")),
        None => String::new(),
    }
}

fn number(port: &str) -> Option<i64> {
    port[port.trim_end_matches(|c: char| c.is_ascii_digit()).len()..].parse().ok()
}

/// `eth2` before `eth10`.
fn in_order(interface: &str) -> (String, Option<i64>) {
    (interface.trim_end_matches(|c: char| c.is_ascii_digit()).to_owned(), number(interface))
}

impl Serialize for Diagnosis {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let cables: Vec<&Spot> = self.members.iter().map(|m| &m.spot).collect();
        let mut out = serializer.serialize_struct("Diagnosis", 6)?;
        out.serialize_field("kind", &self.kind)?;
        out.serialize_field("sentence", &self.sentence(None))?;
        out.serialize_field("action", &self.action(None))?;
        out.serialize_field("owner", &self.owner())?;
        out.serialize_field("cables", &cables)?;
        out.serialize_field("moves", &self.moves())?;
        out.end()
    }
}

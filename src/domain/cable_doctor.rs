//! Finds out of what hosts hear on their cables which cables sit in the wrong place, and the fewest moves that mend it (V12).
//!
//! A cable is known by the interface that it is plugged into. NetBox says where its other end should be, LLDP says where it
//! is. Each place has one owner and holds one cable, so that "the cable that sits in my place" leads from cable to cable:
//! round in a circle, where all of them are exchanged among themselves, or along a row to a place that is free. Each wrong
//! cable has to be touched once, and once is enough: in a row the one whose place is free goes first, in a circle one is
//! held in the hand meanwhile.
//!
//! Nothing here passes anything. A cable counts as right only where the rule of the verification says so (V8); what was not
//! heard, was heard in two ways, or is claimed by two hosts is unknown, and is never taken for right or moved.

mod locate;
mod rounds;
mod words;

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::failure::Owner;
use super::link::CableEnd;
use super::lldp::Neighbour;
use super::mac::Mac;

/// What a host's last inspection heard.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HeardHost {
    pub netbox_id: u64,
    pub host: String,
    pub site: String,
    #[serde(default)]
    pub rack: Option<String>,
    /// `B07 U37`, for whoever goes there.
    #[serde(default)]
    pub place: Option<String>,
    /// When the inspection ended, or, where Ironic does not tell, when it was first read.
    pub inspected_at: Timestamp,
    /// Its frontend interfaces.
    pub cables: Vec<HeardCable>,
}

/// One frontend interface: where NetBox has its cable, and what was heard on it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Default)]
pub struct HeardCable {
    /// NetBox's id of the interface.
    pub netbox_id: u64,
    pub interface: String,
    #[serde(default)]
    pub mac: Option<Mac>,
    /// The far end of its path, through patch panels; `None`: NetBox has none.
    #[serde(default)]
    pub recorded: Option<CableEnd>,
    /// Its NIC was in the inventory.
    pub seen: bool,
    /// `None`: not reported.
    #[serde(default)]
    pub carrier: Option<bool>,
    #[serde(default)]
    pub neighbours: Vec<Neighbour>,
}

/// A port of a switch, by the names that NetBox has.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct Port {
    pub switch: String,
    pub port: String,
}

/// An interface of a host: the end of a cable that stays where it is.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Spot {
    pub host: String,
    pub interface: String,
}

/// All that is known of the cables of a host, a rack or a site.
#[derive(Debug, Clone, Default)]
pub struct Survey {
    pub hosts: Vec<HeardHost>,
    /// The ports of the switches that NetBox has, each with whose place it is; `None`: nobody's.
    pub ports: BTreeMap<Port, Option<Spot>>,
}

/// What came of a survey.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Findings {
    /// In the order of the hosts.
    pub diagnoses: Vec<Diagnosis>,
    /// Cables that are where NetBox has them.
    pub right: Vec<Spot>,
    /// Cables of which nothing can be said.
    pub unknown: Vec<Unknown>,
}

/// A cable of which nothing can be said, and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Unknown {
    pub spot: Spot,
    pub why: String,
    /// Whose cable was heard in its place, so that it can't be there itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub displaced_by: Option<Spot>,
}

/// What is wrong with one cable, or with several that belong together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// Two cables of a host in each other's place.
    Swapped,
    /// Two cables of two hosts in each other's place.
    SwappedAcross,
    /// Three and more in a circle.
    Rotated,
    /// Three and more that each sit one port beside their own.
    Shifted,
    /// Each but the last in the place of the next.
    Row,
    /// Every cable of two switches in the other one.
    FabricsExchanged,
    /// In a place that is another interface's, whose own cable was not heard.
    OthersPlace,
    /// The right port number of the wrong switch.
    WrongLeaf,
    /// Another port of a switch that NetBox has, and nobody's place.
    WrongPort,
    /// A port that NetBox does not have.
    Foreign,
    /// No carrier.
    Unplugged,
    /// Where it belongs, by another spelling than NetBox's. No cable is moved for it.
    Spelling,
}

/// One finding: what is wrong, and the moves that mend it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diagnosis {
    pub kind: Kind,
    /// The cables in the order of the circle or the row: each sits in the place of the one before it.
    pub members: Vec<Member>,
    /// They go round in circles: of how many cables each.
    pub circles: Vec<usize>,
}

/// A cable of a diagnosis.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Member {
    pub spot: Spot,
    /// Where the host stands.
    pub place: Option<String>,
    /// What NetBox has on the cable of this interface.
    pub label: Option<String>,
    pub color: Option<String>,
    /// Where it sits; `None`: in nothing.
    pub at: Option<Port>,
    /// NetBox has this port.
    pub is_known: bool,
    /// Whose place that is, where it is somebody's.
    pub owner_of_at: Option<Spot>,
    /// Where it belongs; `None`: NetBox does not say.
    pub to: Option<Port>,
    /// How the switch's spelling differs from NetBox's.
    pub spelling: Option<String>,
}

/// One move of one cable's end at the switch, in the order in which they are to be made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Move {
    /// The end that stays.
    #[serde(flatten)]
    pub spot: Spot,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub color: Option<String>,
    /// `None`: it is in nothing.
    pub from: Option<Port>,
    /// `None`: it is only pulled.
    pub to: Option<Port>,
    /// It is pulled before the others are moved, held meanwhile, and plugged in as the last one.
    pub held: bool,
}

/// Finds what is wrong and what mends it.
pub fn diagnose(survey: &Survey) -> Findings {
    let cables = locate::locate(survey);
    rounds::findings(survey, &cables)
}

impl Survey {
    /// The survey of what one host heard, where nothing else is known.
    pub fn of_host(host: HeardHost) -> Survey {
        Survey { hosts: vec![host], ports: BTreeMap::new() }
    }
}

impl Findings {
    /// The diagnoses that a host has a part in.
    pub fn of<'a>(&'a self, host: &'a str) -> impl Iterator<Item = &'a Diagnosis> {
        self.diagnoses.iter().filter(move |d| d.members.iter().any(|m| m.spot.host == host))
    }
}

impl Diagnosis {
    /// The moves, in an order in which each finds its place free.
    pub fn moves(&self) -> Vec<Move> {
        let one = |member: &Member, held| Move {
            spot: member.spot.clone(),
            label: member.label.clone(),
            color: member.color.clone(),
            from: member.at.clone(),
            to: member.to.clone(),
            held,
        };
        if self.kind == Kind::Spelling {
            return Vec::new();
        }
        if self.circles.is_empty() {
            // The last one's place is free.
            return self.members.iter().rev().map(|member| one(member, false)).collect();
        }
        let mut moves = Vec::new();
        let mut rest = &self.members[..];
        for length in &self.circles {
            let (circle, after) = rest.split_at(*length);
            rest = after;
            // With the first one in the hand its port is free, which is the place of the last one.
            moves.extend(circle[1..].iter().rev().map(|member| one(member, false)));
            moves.push(one(&circle[0], true));
        }
        moves
    }

    /// Who mends it.
    pub fn owner(&self) -> Owner {
        match self.kind {
            Kind::Spelling => Owner::InfraEng,
            Kind::Swapped | Kind::SwappedAcross | Kind::Rotated | Kind::Shifted | Kind::Row => Owner::Onsite,
            Kind::FabricsExchanged | Kind::OthersPlace | Kind::WrongLeaf | Kind::WrongPort => Owner::Onsite,
            Kind::Foreign | Kind::Unplugged => Owner::Onsite,
        }
    }

    /// Whether it says more of a cable than its own expected and observed place do.
    pub fn explains(&self) -> bool {
        match self.kind {
            Kind::Swapped | Kind::SwappedAcross | Kind::Rotated | Kind::Shifted | Kind::Row => true,
            Kind::FabricsExchanged | Kind::OthersPlace => true,
            Kind::WrongLeaf | Kind::WrongPort | Kind::Foreign | Kind::Unplugged | Kind::Spelling => false,
        }
    }
}

impl Port {
    pub fn new(switch: &str, port: &str) -> Self {
        Port { switch: switch.to_owned(), port: port.to_owned() }
    }
}

impl From<&CableEnd> for Port {
    fn from(end: &CableEnd) -> Self {
        Port::new(&end.switch, &end.port)
    }
}

#[cfg(test)]
mod tests;

//! A rack as its units are numbered, what stands at which unit on which face, and what stands at none (U1).

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::device::Device;
use super::link::{CableEnd, LinkState};

/// How the units of a rack are numbered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Units {
    /// So many of them.
    pub height: u32,
    /// The lowest number.
    pub first: u32,
    /// The numbers grow from the top down.
    pub top_down: bool,
}

impl Units {
    /// The number of a unit, counted from 0 at the top.
    pub fn number(&self, below_top: u32) -> u32 {
        let from_bottom = self.height.saturating_sub(1 + below_top);
        self.first.saturating_add(if self.top_down { below_top } else { from_bottom })
    }
}

/// A face of a rack.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Face {
    Front,
    Rear,
}

impl Face {
    pub fn word(self) -> &'static str {
        match self {
            Face::Front => "front",
            Face::Rear => "rear",
        }
    }

    pub fn other(self) -> Face {
        match self {
            Face::Front => Face::Rear,
            Face::Rear => Face::Front,
        }
    }
}

/// Where a device stands: halves of a unit, counted from 0 at the top.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Span {
    pub top: u32,
    /// At least 1.
    pub height: u32,
}

impl Span {
    pub fn covers(&self, half: u32) -> bool {
        (self.top..self.end()).contains(&half)
    }

    /// The first half below it.
    pub fn end(&self) -> u32 {
        self.top.saturating_add(self.height)
    }

    /// Whether it begins and ends between two units.
    pub fn is_whole(&self) -> bool {
        self.top.is_multiple_of(2) && self.height.is_multiple_of(2)
    }
}

/// Why a device stands at no unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Loose {
    /// NetBox has no position for it.
    NoUnit,
    /// It takes no unit: its type is 0 units high.
    Beside,
    /// Its position is none of this rack.
    Outside,
    /// Another device is there already: the one with the lower NetBox id is shown there.
    Taken,
}

impl Loose {
    pub const ALL: [Loose; 4] = [Loose::NoUnit, Loose::Beside, Loose::Outside, Loose::Taken];

    /// As a heading over such devices.
    pub fn words(self) -> &'static str {
        match self {
            Loose::NoUnit => "no unit in NetBox",
            Loose::Beside => "beside the units",
            Loose::Outside => "at units that this rack does not have",
            Loose::Taken => "at units where another device stands",
        }
    }
}

/// A rack with what stands in it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Elevation {
    pub units: Units,
    /// The height is NetBox's; else this rack is not among those that are known here, and it is drawn as high as needed.
    pub is_measured: bool,
    /// The numbering was read; else the store is of a version that did not read it, and it is taken for the usual one.
    pub is_numbered: bool,
    /// In the order in which they are walked: from the top down, front before rear, then those at no unit.
    pub devices: Vec<Racked>,
}

/// The units of a rack of which nothing is told: as many as its devices need. `devices`: position and height.
pub fn as_high_as_needed(devices: impl Iterator<Item = (Option<f64>, Option<f64>)>) -> Units {
    let tops = devices.filter_map(|(position, height)| Some(position? + height.unwrap_or(1.0).max(0.5) - 1.0));
    let height = tops.fold(1.0, f64::max).ceil().min(f64::from(u16::MAX)) as u32;
    Units { height, first: 1, top_down: false }
}

/// A device of a rack.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Racked {
    pub device: Device,
    pub stand: Result<Span, Loose>,
    /// Where it is mounted.
    pub face: Face,
    /// It fills the rack from front to rear.
    pub is_full_depth: bool,
    /// It is something that is enrolled.
    pub is_host: bool,
    /// A host's frontend links.
    pub links: Vec<Link>,
}

impl Racked {
    /// Whether it is seen at a face.
    pub fn shows_at(&self, face: Face) -> bool {
        self.face == face || self.is_full_depth
    }

    /// NetBox does not say how high it is: one unit is drawn.
    pub fn height_is_guessed(&self) -> bool {
        self.device.u_height.is_none()
    }
}

/// A frontend link of a host, as last known.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Link {
    pub interface: String,
    /// Where NetBox has its cable; `None`: NetBox has none.
    pub recorded: Option<CableEnd>,
    /// What an inspection or a BMC told last.
    pub state: LinkState,
    /// When that was; `None`: never.
    pub state_at: Option<Timestamp>,
    pub heard: Heard,
}

/// What the last inspection heard of a cable's place.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Heard {
    /// It is where NetBox has it.
    Right { at: Timestamp },
    /// It is in another port, or in nothing (`None`).
    Elsewhere { port: Option<(String, String)>, at: Timestamp },
    /// Nothing can be said; a reason where there is one.
    Unknown { why: Option<String> },
}

/// The devices of a rack by where they stand. `devices`: with the face that they are mounted at, whether they fill the
/// rack's depth, and whatever else is known of them.
pub fn arrange(units: Units, mut devices: Vec<Racked>) -> Vec<Racked> {
    devices.sort_by_key(|racked| racked.device.netbox_id);
    let mut taken: Vec<(Span, [bool; 2])> = Vec::new();
    for racked in &mut devices {
        let faces = [Face::Front, Face::Rear].map(|face| racked.shows_at(face));
        racked.stand = span(units, racked.device.position, racked.device.u_height);
        let Ok(span) = racked.stand else { continue };
        let meets = |(other, theirs): &(Span, [bool; 2])| {
            let share_face = faces.iter().zip(theirs).any(|(ours, theirs)| *ours && *theirs);
            share_face && span.top < other.end() && other.top < span.end()
        };
        if taken.iter().any(meets) {
            racked.stand = Err(Loose::Taken);
        } else {
            taken.push((span, faces));
        }
    }
    let key = |racked: &Racked| match racked.stand {
        Ok(span) => (0, span.top, u32::from(racked.face == Face::Rear)),
        Err(loose) => (1, loose as u32, 0),
    };
    devices.sort_by(|a, b| key(a).cmp(&key(b)).then_with(|| a.device.name.cmp(&b.device.name)));
    devices
}

/// The span of a device with its lowest unit at `position`. NetBox has positions and heights in halves of a unit.
pub fn span(units: Units, position: Option<f64>, height: Option<f64>) -> Result<Span, Loose> {
    let halves = |units: f64| (units * 2.0).round() as i64;
    let height = halves(height.unwrap_or(1.0));
    let Some(position) = position else { return Err(if height == 0 { Loose::Beside } else { Loose::NoUnit }) };
    let (height, all) = (height.max(1), i64::from(units.height) * 2);
    let above_first = halves(position) - i64::from(units.first) * 2;
    let top = if units.top_down { above_first } else { all - above_first - height };
    if top < 0 || top + height > all {
        return Err(Loose::Outside);
    }
    Ok(Span { top: top as u32, height: height as u32 })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const USUAL: Units = Units { height: 48, first: 1, top_down: false };

    /// Proves: U1
    #[test]
    fn a_unit_has_the_number_that_is_printed_beside_it() {
        let from_five = Units { height: 10, first: 5, top_down: false };
        let down = Units { top_down: true, ..from_five };
        assert_eq!([USUAL.number(0), USUAL.number(47)], [48, 1]);
        assert_eq!([from_five.number(0), from_five.number(9)], [14, 5]);
        assert_eq!([down.number(0), down.number(9)], [5, 14]);
    }

    /// Proves: U1
    #[test]
    fn a_device_stands_where_its_lowest_number_is() {
        let at = |units, position, height| span(units, Some(position), Some(height));
        assert_eq!(at(USUAL, 37.0, 2.0), Ok(Span { top: 20, height: 4 }), "38 and 37 are units 10 and 11 from the top");
        assert_eq!(at(USUAL, 48.0, 1.0), Ok(Span { top: 0, height: 2 }));
        assert_eq!(at(USUAL, 12.5, 0.5), Ok(Span { top: 72, height: 1 }), "the upper half of unit 12");
        let down = Units { top_down: true, ..USUAL };
        assert_eq!(at(down, 37.0, 2.0), Ok(Span { top: 72, height: 4 }), "the lowest number is the highest unit");
        let from_five = Units { height: 10, first: 5, top_down: false };
        assert_eq!(at(from_five, 5.0, 1.0), Ok(Span { top: 18, height: 2 }));
    }

    /// Proves: U1
    #[test]
    fn what_has_no_place_in_the_rack_says_why() {
        assert_eq!(span(USUAL, None, Some(2.0)), Err(Loose::NoUnit));
        assert_eq!(span(USUAL, None, Some(0.0)), Err(Loose::Beside));
        assert_eq!(span(USUAL, Some(48.0), Some(2.0)), Err(Loose::Outside), "it would stand out at the top");
        assert_eq!(span(USUAL, Some(49.0), Some(1.0)), Err(Loose::Outside));
        let from_five = Units { height: 10, first: 5, top_down: false };
        assert_eq!(span(from_five, Some(4.0), Some(1.0)), Err(Loose::Outside));
        assert_eq!(
            span(USUAL, Some(1.0), None),
            Ok(Span { top: 94, height: 2 }),
            "a height that is unknown is drawn as one"
        );
    }

    proptest! {
        /// Turning the numbering round turns the rack round, and every device that fits stays within it.
        #[test]
        fn a_rack_that_is_counted_from_the_top_is_the_mirror_of_the_other(
            height in 1u32..60, first in 0u32..20, position in 0u32..160, tall in 0u32..20,
        ) {
            let up = Units { height, first, top_down: false };
            let down = Units { top_down: true, ..up };
            let at = |units| span(units, Some(f64::from(position) / 2.0), Some(f64::from(tall) / 2.0));
            match (at(up), at(down)) {
                (Ok(a), Ok(b)) => {
                    prop_assert_eq!(a.height, b.height);
                    prop_assert_eq!(a.top + a.height + b.top, 2 * height);
                    prop_assert!(a.end() <= 2 * height && b.end() <= 2 * height);
                }
                (a, b) => prop_assert_eq!(a, b),
            }
        }
    }
}

//! Places from large to small, the tree of them, and what each holds.

use std::cmp::Ordering;
use std::collections::BTreeSet;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::host::Host;

/// A place: nothing is everywhere, then site, location and rack. What NetBox leaves out is a name of its own.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, Default)]
pub struct Place(pub Vec<String>);

pub const NO_LOCATION: &str = "no location";
pub const NO_RACK: &str = "no rack";

impl Place {
    /// The rack that a host stands in.
    pub fn of(host: &Host) -> Place {
        Place(names(host).map(str::to_owned).into())
    }

    /// Whether a host stands here or in a place within.
    pub fn holds(&self, host: &Host) -> bool {
        self.0.iter().zip(names(host)).all(|(a, b)| a == b)
    }

    pub fn depth(&self) -> usize {
        self.0.len()
    }

    /// The place around this one; `None` for everywhere.
    pub fn parent(&self) -> Option<Place> {
        let (_, rest) = self.0.split_last()?;
        Some(Place(rest.to_vec()))
    }

    /// Its own name.
    pub fn name(&self) -> &str {
        self.0.last().map_or("all sites", String::as_str)
    }
}

/// Site, location and rack of a host.
fn names(host: &Host) -> [&str; 3] {
    let d = &host.device;
    [d.site.as_str(), d.location.as_deref().unwrap_or(NO_LOCATION), d.rack.as_deref().unwrap_or(NO_RACK)]
}

/// A line of the tree.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Node {
    pub place: Place,
    pub hosts: usize,
    pub failed: usize,
    pub live: usize,
    /// Places within; a rack has none.
    pub has_children: bool,
}

/// All places of hosts that are sorted by [`by_place`], each before those within it.
pub fn tree(hosts: &[Host]) -> Vec<Node> {
    let node = |place| Node { place, hosts: 0, failed: 0, live: 0, has_children: false };
    let mut nodes = vec![node(Place::default())];
    // Index of the open node of each depth.
    let mut open = vec![0];
    let mut former: Option<&Host> = None;
    for host in hosts {
        // Those that share their words are of one place: nothing has to be compared.
        if !former.replace(host).is_some_and(|former| Arc::ptr_eq(&former.device.alike, &host.device.alike)) {
            let path = names(host);
            let same = open.iter().skip(1).take_while(|at| nodes[**at].place.holds(host)).count();
            open.truncate(same + 1);
            for depth in same + 1..=3 {
                let parent = open[depth - 1];
                nodes[parent].has_children = true;
                nodes.push(node(Place(path[..depth].iter().map(|n| (*n).to_owned()).collect())));
                open.push(nodes.len() - 1);
            }
        }
        for at in &open {
            let n = &mut nodes[*at];
            n.hosts += 1;
            n.failed += usize::from(host.failure().is_some());
            n.live += usize::from(host.last_run.as_ref().is_some_and(|r| r.is_live()));
        }
    }
    nodes
}

/// The nodes that show, as indexes: those whose surrounding places are all open. Everywhere is always open.
pub fn visible(nodes: &[Node], open: &BTreeSet<Place>) -> Vec<usize> {
    let mut shown = Vec::new();
    let mut closed: Option<usize> = None;
    for (at, node) in nodes.iter().enumerate() {
        let depth = node.place.depth();
        if closed.is_some_and(|d| depth > d) {
            continue;
        }
        closed = (depth > 0 && !open.contains(&node.place)).then_some(depth);
        shown.push(at);
    }
    shown
}

/// Order of the fleet: place by place, in a rack from the top down, hosts without a unit last.
pub fn by_place(a: &Host, b: &Host) -> Ordering {
    let places = if Arc::ptr_eq(&a.device.alike, &b.device.alike) {
        Ordering::Equal
    } else {
        let mut names = names(a).into_iter().zip(names(b)).map(|(a, b)| natural(a, b));
        names.find(|order| order.is_ne()).unwrap_or(Ordering::Equal)
    };
    places
        .then_with(|| {
            let unit = |h: &Host| h.unit().unwrap_or(f64::NEG_INFINITY);
            unit(b).total_cmp(&unit(a))
        })
        .then_with(|| natural(&a.device.name, &b.device.name))
        .then_with(|| a.device.netbox_id.cmp(&b.device.netbox_id))
}

/// Compares as a person counts: `B2` before `B10`.
pub fn natural(a: &str, b: &str) -> Ordering {
    if a == b {
        return Ordering::Equal;
    }
    let (mut a, mut b) = (a.as_bytes(), b.as_bytes());
    while let (Some(x), Some(y)) = (a.first(), b.first()) {
        if x.is_ascii_digit() && y.is_ascii_digit() {
            let (n, m) = (digits(a), digits(b));
            let (trimmed_a, trimmed_b) = (trim_zeros(&a[..n]), trim_zeros(&b[..m]));
            let order = trimmed_a.len().cmp(&trimmed_b.len()).then_with(|| trimmed_a.cmp(trimmed_b));
            if order.is_ne() {
                return order;
            }
            (a, b) = (&a[n..], &b[m..]);
        } else {
            let order = x.to_ascii_lowercase().cmp(&y.to_ascii_lowercase()).then(x.cmp(y));
            if order.is_ne() {
                return order;
            }
            (a, b) = (&a[1..], &b[1..]);
        }
    }
    a.len().cmp(&b.len())
}

fn digits(text: &[u8]) -> usize {
    text.iter().take_while(|b| b.is_ascii_digit()).count()
}

fn trim_zeros(digits: &[u8]) -> &[u8] {
    let zeros = digits.iter().take_while(|b| **b == b'0').count();
    &digits[zeros..]
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn racks_are_counted_as_a_person_does() {
        let mut racks = ["B10", "B2", "b1", "A03", "B2a", "B02"];
        racks.sort_by(|a, b| natural(a, b));
        assert_eq!(racks, ["A03", "B2", "B02", "B2a", "B10", "b1"]);
    }

    proptest! {
        #[test]
        fn natural_order_is_an_order(a in "[ab01]{0,5}", b in "[ab01]{0,5}", c in "[ab01]{0,5}") {
            prop_assert_eq!(natural(&a, &b), natural(&b, &a).reverse());
            if natural(&a, &b).is_le() && natural(&b, &c).is_le() {
                prop_assert!(natural(&a, &c).is_le());
            }
        }
    }
}

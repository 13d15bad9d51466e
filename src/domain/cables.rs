//! Recognizes cables of one host that are plugged into each other's places (V12).

/// A frontend interface with the place where its cable should be, and the place of this host where it was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cable {
    pub interface: String,
    /// Index, in the same list, of the interface whose place this cable was found in: its own where it is right, `None`
    /// where it is in no place of this host or where nothing was heard.
    pub found_at: Option<usize>,
}

/// Interfaces whose cables went round among themselves: each sits in the place of the next one. Two are swapped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mixup {
    /// Indices into the list of cables.
    pub members: Vec<usize>,
}

impl Mixup {
    /// `eth0 and eth1 are swapped`, `eth0, eth1 and eth2 are rotated`.
    pub fn sentence(&self, cables: &[Cable]) -> String {
        let word = if self.members.len() == 2 { "swapped" } else { "rotated" };
        format!("{} are {word}", self.names(cables))
    }

    /// What a person does about it.
    pub fn action(&self, cables: &[Cable]) -> String {
        match self.members[..] {
            [a, b] => {
                format!("swap the two cables at the host: {} and {}", cables[a].interface, cables[b].interface)
            }
            _ => {
                let moves: Vec<String> = self
                    .members
                    .iter()
                    .filter_map(|n| Some((n, cables[*n].found_at?)))
                    .map(|(n, at)| format!("the cable in {} belongs in {}", cables[*n].interface, cables[at].interface))
                    .collect();
                format!("move the cables at the host: {}", moves.join(", "))
            }
        }
    }

    fn names(&self, cables: &[Cable]) -> String {
        let names: Vec<&str> = self.members.iter().map(|n| cables[*n].interface.as_str()).collect();
        match names.split_last() {
            Some((last, [])) => (*last).to_owned(),
            Some((last, first)) => format!("{} and {last}", first.join(", ")),
            None => String::new(),
        }
    }
}

/// All closed rounds of two and more cables, in the order of their first interface.
pub fn mixups(cables: &[Cable]) -> Vec<Mixup> {
    let mut seen = vec![false; cables.len()];
    let mut found = Vec::new();
    for start in 0..cables.len() {
        let mut members = Vec::new();
        let mut at = start;
        // Each step goes to the place where the cable was found; a round is closed when it comes back to its start.
        while !seen[at] && !members.contains(&at) {
            members.push(at);
            match cables[at].found_at {
                Some(next) if next < cables.len() => at = next,
                _ => break,
            }
        }
        let closed = members.last().is_some_and(|last| cables[*last].found_at == Some(start));
        if closed {
            for n in &members {
                seen[*n] = true;
            }
            if members.len() > 1 {
                members.sort_unstable();
                found.push(Mixup { members });
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cables(found_at: &[Option<usize>]) -> Vec<Cable> {
        let name = |n: usize| format!("eth{n}");
        found_at.iter().enumerate().map(|(n, at)| Cable { interface: name(n), found_at: *at }).collect()
    }

    fn sentences(found_at: &[Option<usize>]) -> Vec<String> {
        let cables = cables(found_at);
        mixups(&cables).iter().map(|m| m.sentence(&cables)).collect()
    }

    /// Proves: V12
    #[test]
    fn two_cables_in_each_others_places_are_swapped() {
        assert_eq!(sentences(&[Some(1), Some(0)]), ["eth0 and eth1 are swapped"]);
        assert_eq!(sentences(&[Some(0), Some(2), Some(1), None]), ["eth1 and eth2 are swapped"]);
        assert_eq!(
            sentences(&[Some(3), Some(2), Some(1), Some(0)]),
            ["eth0 and eth3 are swapped", "eth1 and eth2 are swapped"]
        );
    }

    #[test]
    fn a_round_of_three_is_rotated_and_says_where_each_belongs() {
        let cables = cables(&[Some(1), Some(2), Some(0)]);
        let found = mixups(&cables);
        assert_eq!(found[0].sentence(&cables), "eth0, eth1 and eth2 are rotated");
        assert_eq!(
            found[0].action(&cables),
            "move the cables at the host: the cable in eth0 belongs in eth1, the cable in eth1 belongs in eth2, the cable \
             in eth2 belongs in eth0"
        );
    }

    #[test]
    fn right_cables_open_ends_and_two_in_one_place_are_no_round() {
        for found_at in [&[Some(0), Some(1)][..], &[Some(1), None], &[None, None], &[Some(1), Some(1)], &[Some(9)], &[]]
        {
            assert!(sentences(found_at).is_empty(), "{found_at:?}");
        }
        assert_eq!(sentences(&[Some(1), Some(2), Some(1)]), ["eth1 and eth2 are swapped"]);
    }
}

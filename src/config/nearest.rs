//! Finds the name that was probably meant.

/// The nearest of some names, where one is near enough: a third of its letters may differ, two always, and what one is
/// the beginning of counts as near.
pub(crate) fn nearest<'a>(wrong: &str, names: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let wrong = wrong.to_ascii_lowercase();
    names
        .into_iter()
        .filter_map(|name| {
            let distance = distance(&wrong, name);
            let begins = wrong.len() >= 3 && (name.starts_with(&wrong) || wrong.starts_with(name));
            let near = distance <= 2.max(name.len() / 3) && distance < name.len();
            (near || begins).then_some((distance, name))
        })
        .min()
        .map(|(_, name)| name)
}

/// How many letters have to be put in, taken out, changed, or swapped with their neighbour.
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let mut rows = vec![vec![0; b.len() + 1]; a.len() + 1];
    for i in 0..=a.len() {
        for j in 0..=b.len() {
            if i == 0 || j == 0 {
                rows[i][j] = i + j;
                continue;
            }
            let changed = rows[i - 1][j - 1] + usize::from(a[i - 1] != b[j - 1]);
            let mut least = changed.min(rows[i - 1][j] + 1).min(rows[i][j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                least = least.min(rows[i - 2][j - 2] + 1);
            }
            rows[i][j] = least;
        }
    }
    rows[a.len()][b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_that_was_meant_is_found_and_a_stranger_is_not() {
        let names = ["url", "token", "timeout_s", "poll_s", "configure_dhcp", "configure_bmc"];
        for (wrong, meant) in [
            ("tokne", Some("token")),
            ("timeout", Some("timeout_s")),
            ("Token", Some("token")),
            ("configure_dchp", Some("configure_dhcp")),
            ("ulr", Some("url")),
            ("colour", None),
            ("x", None),
        ] {
            assert_eq!(nearest(wrong, names), meant, "{wrong}");
        }
    }
}

//! Lists of NetBox: order, pages by offset or by cursor, absolute links to the neighbours.

use std::cmp::Ordering;

use serde_json::{Value, json};
use url::form_urlencoded::Serializer;

use super::super::records::Records;
use super::filter;
use super::kind::Kind;
use super::render::Render;
use super::{Asked, Refusal};

/// The page size where the request names none.
const DEFAULT: usize = 50;

pub(super) struct Lister<'a> {
    pub records: &'a Records,
    pub base: &'a str,
    pub max: usize,
}

impl Lister<'_> {
    /// One page.
    pub fn list(&self, asked: &Asked) -> Result<Value, Refusal> {
        let get = |key: &str| asked.query.iter().rev().find(|(k, _)| k == key).map(|(_, v)| v.as_str());
        let kind = asked.kind;
        let mut ids = filter::rows(self.records, kind, &asked.query)?;
        let limit = match get("limit").and_then(|text| text.parse::<usize>().ok()) {
            None => DEFAULT,
            Some(0) => self.max,
            Some(n) => n.min(self.max),
        };
        let render = Render { records: self.records, base: self.base };
        let show =
            |ids: &[u64]| -> Vec<Value> { ids.iter().filter_map(|id| render.shown(kind, *id, &asked.query)).collect() };
        if let Some(start) = get("start").and_then(|text| text.parse::<u64>().ok()) {
            if get("offset").is_some() {
                return Err(Refusal::bad(json!(["'start' and 'offset' are mutually exclusive."])));
            }
            if get("ordering").is_some() {
                let text = "Ordering cannot be specified in conjunction with cursor-based pagination.";
                return Err(Refusal::bad(json!([text])));
            }
            ids.retain(|id| *id >= start);
            ids.sort_unstable();
            let page = &ids[..limit.min(ids.len())];
            let next = (page.len() < ids.len()).then(|| page.last().map_or(0, |id| id + 1));
            let next = next.map(|start| self.link(asked, limit, &[("start", Some(start))]));
            return Ok(json!({"count": null, "next": next, "previous": null, "results": show(page)}));
        }
        self.sort(kind, get("ordering"), &mut ids);
        let offset = get("offset").and_then(|text| text.parse::<usize>().ok()).unwrap_or(0);
        let count = ids.len();
        let page = &ids[offset.min(count)..(offset + limit).min(count)];
        let next =
            (offset + limit < count).then(|| self.link(asked, limit, &[("offset", Some((offset + limit) as u64))]));
        let previous = (offset > 0).then(|| {
            let before = offset.checked_sub(limit).filter(|n| *n > 0).map(|n| n as u64);
            self.link(asked, limit, &[("offset", before)])
        });
        Ok(json!({"count": count, "next": next, "previous": previous, "results": show(page)}))
    }

    /// The list's own URL with some parameters replaced, sorted as the real one sorts them.
    fn link(&self, asked: &Asked, limit: usize, replace: &[(&str, Option<u64>)]) -> String {
        let mut query: Vec<(String, String)> = asked
            .query
            .iter()
            .filter(|(k, _)| k != "limit" && !replace.iter().any(|(name, _)| name == k))
            .cloned()
            .collect();
        query.push(("limit".to_owned(), limit.to_string()));
        for (name, value) in replace {
            query.extend(value.map(|value| ((*name).to_owned(), value.to_string())));
        }
        query.sort_by(|a, b| a.0.cmp(&b.0));
        let query = Serializer::new(String::new()).extend_pairs(query).finish();
        format!("{}{}?{query}", self.base, asked.kind.path())
    }

    fn sort(&self, kind: Kind, ordering: Option<&str>, ids: &mut [u64]) {
        let records = self.records;
        let stamps = |id: u64| kind.stamps(records, id);
        let keys: Vec<(bool, &str)> = ordering
            .unwrap_or_default()
            .split(',')
            .map(|key| key.strip_prefix('-').map_or((false, key), |key| (true, key)))
            .filter(|(_, key)| ["id", "name", "created", "last_updated"].contains(key))
            .collect();
        ids.sort_by(|a, b| {
            for (down, key) in &keys {
                let order = match *key {
                    "id" => a.cmp(b),
                    "created" => stamps(*a).map(|s| s.created).cmp(&stamps(*b).map(|s| s.created)),
                    "last_updated" => stamps(*a).map(|s| s.last_updated).cmp(&stamps(*b).map(|s| s.last_updated)),
                    _ => natural(&kind.sort_name(records, *a), &kind.sort_name(records, *b)),
                };
                if order != Ordering::Equal {
                    return if *down { order.reverse() } else { order };
                }
            }
            natural(&kind.sort_name(records, *a), &kind.sort_name(records, *b)).then(a.cmp(b))
        });
    }
}

/// Order of names with their numbers read as numbers.
pub(super) fn natural(a: &str, b: &str) -> Ordering {
    let (mut a, mut b) = (a.chars().peekable(), b.chars().peekable());
    loop {
        match (a.peek().copied(), b.peek().copied()) {
            (None, None) => return Ordering::Equal,
            (None, _) => return Ordering::Less,
            (_, None) => return Ordering::Greater,
            (Some(x), Some(y)) if x.is_ascii_digit() && y.is_ascii_digit() => {
                let number = |chars: &mut std::iter::Peekable<std::str::Chars<'_>>| {
                    let mut n: u128 = 0;
                    while let Some(d) = chars.peek().and_then(|c| c.to_digit(10)) {
                        n = n.saturating_mul(10).saturating_add(u128::from(d));
                        chars.next();
                    }
                    n
                };
                let order = number(&mut a).cmp(&number(&mut b));
                if order != Ordering::Equal {
                    return order;
                }
            }
            (Some(x), Some(y)) => {
                let order = x.to_lowercase().cmp(y.to_lowercase());
                if order != Ordering::Equal {
                    return order;
                }
                a.next();
                b.next();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_in_names_sort_as_numbers() {
        let mut names = ["swp10", "swp9", "BMC", "bond0", "eth1", "eth0"];
        names.sort_by(|a, b| natural(a, b));
        assert_eq!(names, ["BMC", "bond0", "eth0", "eth1", "swp9", "swp10"]);
    }
}

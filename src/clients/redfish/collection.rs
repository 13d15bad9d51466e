//! Reads a collection to its end: pages, nulls, and members that are broken.

use serde_json::{Map, Value};

use super::error::RedfishError;
use super::resource::{Resource, link_of, same_path};
use super::service::Redfish;
use crate::domain::text::neutralize_to;

/// Pages and members that are read at most: an endless collection ends here (Z3).
const PAGES_MAX: usize = 64;
const MEMBERS_MAX: usize = 1024;
/// What all members of a collection together may take of the memory. Those of a whole server are a few megabytes.
const WEIGHT_MAX: usize = 128 * 1024 * 1024;

/// The members of a collection, and those that could not be used.
#[derive(Debug, Default)]
pub struct Listing {
    pub members: Vec<Resource>,
    pub skipped: Vec<Skipped>,
    /// What the collection itself takes, by its `Allow`; `None`: it does not say.
    pub methods: Option<Vec<String>>,
}

/// A resource that could not be used and was left out (C-33).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Skipped {
    pub path: String,
    pub why: String,
}

impl Redfish {
    /// Reads a collection and its members, singly.
    pub async fn list(&self, path: &str) -> Result<Listing, RedfishError> {
        self.read_list(path, None).await
    }

    /// As [`Redfish::list`], but asks for the members along with the collection. A BMC that does not know how answers
    /// with links, which are then followed.
    pub async fn list_expanded(&self, path: &str) -> Result<Listing, RedfishError> {
        self.read_list(path, Some("$expand=.($levels=1)")).await
    }

    async fn read_list(&self, path: &str, query: Option<&str>) -> Result<Listing, RedfishError> {
        let mut listing = Listing::default();
        let mut seen: Vec<String> = Vec::new();
        let mut pages: Vec<String> = Vec::new();
        let mut total = 0;
        let mut next = Some(match query {
            Some(query) if !path.contains('?') => format!("{path}?{query}"),
            _ => path.to_owned(),
        });
        while let Some(page_path) = next.take() {
            let (page, methods) = match self.get_with_methods(&page_path).await {
                // The query itself may be what is refused.
                Err(RedfishError::Refused { status: 400 | 501, .. }) if page_path != path && pages.is_empty() => {
                    self.get_with_methods(path).await?
                }
                other => other?,
            };
            listing.methods = listing.methods.or(methods);
            let members = page.body.get("Members").and_then(|m| m.as_array()).map_or(&[][..], Vec::as_slice);
            for member in members {
                if seen.len() >= MEMBERS_MAX {
                    break;
                }
                let Some(link) = link_of(member) else {
                    let why = "the member has no '@odata.id'".to_owned();
                    listing.skipped.push(Skipped { path: neutralize_to(&page.path, 200), why });
                    continue;
                };
                if seen.iter().any(|path| same_path(path, &link)) {
                    continue;
                }
                seen.push(link.clone());
                let embedded = member.as_object().filter(|body| body.contains_key("Id") && body.len() > 2);
                let read = match embedded {
                    Some(body) => Ok(Resource { path: link.clone(), body: body.clone(), etag: None }),
                    None => self.member(&link).await,
                };
                match read {
                    Ok(resource) if resource.is_whole() => {
                        total += members_weight(&resource.body);
                        if total > WEIGHT_MAX {
                            let what = format!("its members would take more than {} MB of memory", WEIGHT_MAX >> 20);
                            return Err(RedfishError::Unusable { path: neutralize_to(path, 200), what });
                        }
                        listing.members.push(resource);
                    }
                    Ok(_) => listing.skipped.push(Skipped {
                        path: neutralize_to(&link, 200),
                        why: "the resource lacks 'Id' and '@odata.id'".to_owned(),
                    }),
                    Err(e) if e.is_of_one_resource() => {
                        listing.skipped.push(Skipped { path: neutralize_to(&link, 200), why: e.to_string() });
                    }
                    Err(e) => return Err(e),
                }
            }
            pages.push(page_path);
            next = page
                .link("Members@odata.nextLink")
                .filter(|link| pages.len() < PAGES_MAX && !pages.iter().any(|page| page == link));
        }
        Ok(listing)
    }

    /// Reads a member, and once more where it can't be used: one spoilt answer must not make it look as if it weren't there.
    async fn member(&self, link: &str) -> Result<Resource, RedfishError> {
        match self.get(link).await {
            Err(e) if e.is_of_one_resource() => self.get(link).await,
            read => read,
        }
    }
}

/// About what a resource takes of the memory: a map is made for eleven members at least.
fn members_weight(members: &Map<String, Value>) -> usize {
    let texts = members.iter().map(|(name, value)| name.len() + 96 + weight(value));
    640 + texts.sum::<usize>()
}

fn weight(value: &Value) -> usize {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => 0,
        Value::String(text) => text.len(),
        Value::Array(items) => 64 * items.len() + items.iter().map(weight).sum::<usize>(),
        Value::Object(members) => members_weight(members),
    }
}

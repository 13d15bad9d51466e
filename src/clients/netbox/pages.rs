//! Reads whole lists: by id, several pages at once, and with a verdict whether the pages add up (C-38).

use std::collections::BTreeMap;

use futures::{StreamExt, TryStreamExt, stream};
use serde::de::DeserializeOwned;

use super::NetBox;
use super::error::NetBoxError;
use super::records::Page;

/// Rows of a page. NetBox lowers it silently to its own maximum, which the stride below follows.
const PAGE: usize = 1000;
/// Pages that are asked for at once.
pub(super) const AT_ONCE: usize = 4;
/// A list longer than this is refused: it would be a filter that the server ignored, or no NetBox.
const ROWS_MAX: usize = 500_000;
const PAGES_MAX: usize = 5_000;

/// A list that was read to its end.
#[derive(Debug, Clone, PartialEq)]
pub struct Listing<T> {
    /// By id, each once.
    pub rows: Vec<T>,
    /// Every page told the same count, and so many rows came: nothing was created or deleted while it was read. Only
    /// such a list may prove that something is gone.
    pub complete: bool,
}

/// A row that is joined by its id.
pub trait Identified {
    fn id(&self) -> u64;
}

macro_rules! identified {
    ($($record:ident),*) => {
        $(impl Identified for super::records::$record { fn id(&self) -> u64 { self.id } })*
    };
}

identified!(
    DeviceRecord,
    SiteRecord,
    DeviceTypeRecord,
    RoleRecord,
    InterfaceRecord,
    CableRecord,
    TagRecord,
    OnlyId,
    InterfaceOwner
);

impl NetBox {
    /// All rows of a list under a filter.
    pub(crate) async fn list<T: DeserializeOwned + Identified>(
        &self,
        path: &str,
        filter: Vec<(String, String)>,
    ) -> Result<Listing<T>, NetBoxError> {
        let first: Page<T> = self.page(path, &filter, PAGE, 0).await?;
        let count = first.count.unwrap_or(first.results.len());
        if count > ROWS_MAX {
            return Err(NetBoxError::TooLong { asked: format!("GET {path}"), host: self.http.host(), limit: ROWS_MAX });
        }
        let stride = first.results.len();
        let more = first.next.is_some() && stride > 0;
        let mut counts_agree = first.count.is_some();
        let mut rows: BTreeMap<u64, T> = first.results.into_iter().map(|row| (row.id(), row)).collect();
        if more {
            let pages = count.div_ceil(stride);
            if pages > PAGES_MAX {
                return Err(NetBoxError::TooLong {
                    asked: format!("GET {path}"),
                    host: self.http.host(),
                    limit: PAGES_MAX * stride,
                });
            }
            let filter = &filter;
            let mut others = stream::iter(1..pages)
                .map(|page| self.page::<T>(path, filter, stride, page * stride))
                .buffer_unordered(AT_ONCE);
            while let Some(page) = others.try_next().await? {
                counts_agree &= page.count == Some(count);
                rows.extend(page.results.into_iter().map(|row| (row.id(), row)));
            }
        }
        Ok(Listing { complete: counts_agree && rows.len() == count, rows: rows.into_values().collect() })
    }

    async fn page<T: DeserializeOwned>(
        &self,
        path: &str,
        filter: &[(String, String)],
        limit: usize,
        offset: usize,
    ) -> Result<Page<T>, NetBoxError> {
        let mut query = filter.to_vec();
        // The default order has ties, and rows that tie come twice or never.
        query.push(("ordering".into(), "id".into()));
        query.push(("limit".into(), limit.to_string()));
        if offset > 0 {
            query.push(("offset".into(), offset.to_string()));
        }
        self.get(path, query).await
    }
}

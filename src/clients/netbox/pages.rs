//! Reads whole lists: by id, several pages at once, and with a verdict whether the pages add up (C-38).
//!
//! A page is asked for by the id that the one before ended with, and never by an offset: rows that are made or deleted
//! meanwhile shift nothing. So that pages can be read side by side, a long list is cut into lanes at ids that are asked
//! for first.

use std::collections::BTreeMap;
use std::pin::Pin;

use futures::{Stream, StreamExt, TryStreamExt, stream};
use serde::de::DeserializeOwned;

use super::NetBox;
use super::error::NetBoxError;
use super::records::{OnlyId, Page};
use crate::clients::http::HttpError;

/// Rows of a page. NetBox lowers it silently to its own maximum, which the stride below follows.
const PAGE: usize = 1000;
/// Requests of one reading that are under way at once.
pub(super) const AT_ONCE: usize = 4;
/// Pages of a lane, about. A lane that ends makes room for the next: with few long ones the last would be read alone.
const LANE: usize = 2;
/// What it takes to cut a list is asked for lane by lane.
const LANES_MAX: usize = 32;
/// A list longer than this is refused: it would be a filter that the server ignored, or no NetBox.
const ROWS_MAX: usize = 500_000;
const PAGES_MAX: usize = 5_000;
/// All pages of a list together. Half a million interfaces are some 300 MB.
const BYTES_MAX: usize = 1024 * 1024 * 1024;

/// A list that was read to its end.
#[derive(Debug, Clone, PartialEq)]
pub struct Listing<T> {
    /// By id, each once.
    pub rows: Vec<T>,
    /// The counts that came with the pages agree with each other and with the rows: nothing was created or deleted while
    /// it was read. Only such a list may prove that something is gone.
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

identified!(DeviceRecord, SiteRecord, LocationRecord, RackRecord, DeviceTypeRecord, RoleRecord, TagRecord);
identified!(InterfaceRecord, MacAddressRecord, IpAddressRecord, CableRecord, CableDetail);
identified!(OnlyId, Stamped, ContextOf, PartOfDevice, InterfaceOwner);

/// A list on its way, page by page: whoever reads it never has all of it in memory.
pub struct Sweep<T> {
    first: Option<Vec<T>>,
    lanes: Lanes<T>,
    agrees: bool,
    count: usize,
    told: usize,
    /// Pages and bytes so far: a count is the server's own word, and its list need not end with it (Z3).
    pages: usize,
    bytes: usize,
    asked: String,
    host: String,
}

/// The pages of a lane in their order, or those of all lanes as they come.
type Lanes<T> = Pin<Box<dyn Stream<Item = Result<LanePage<T>, NetBoxError>> + Send>>;

/// A page of a lane, and whether it fits what the lane's first page counted.
struct LanePage<T> {
    rows: Vec<T>,
    agrees: bool,
    bytes: usize,
}

impl<T> Sweep<T> {
    /// The next page, from whichever lane has one first; `None` at the end.
    pub async fn next(&mut self) -> Result<Option<Vec<T>>, NetBoxError> {
        if let Some(first) = self.first.take() {
            self.told += first.len();
            return Ok(Some(first));
        }
        let Some(page) = self.lanes.try_next().await? else { return Ok(None) };
        self.agrees &= page.agrees;
        self.told += page.rows.len();
        (self.pages, self.bytes) = (self.pages + 1, self.bytes.saturating_add(page.bytes));
        let (asked, host) = (self.asked.clone(), self.host.clone());
        if self.bytes > BYTES_MAX {
            return Err(HttpError::TooLarge { asked, host, limit: BYTES_MAX }.into());
        }
        if self.told > ROWS_MAX || self.pages > self.pages_max() {
            let limit = self.told.min(ROWS_MAX);
            return Err(NetBoxError::TooLong { asked, host, limit });
        }
        Ok(Some(page.rows))
    }

    /// Lists grow while they are read, and servers lower the size of a page; a list of so many more pages than it told of
    /// rows has no end.
    fn pages_max(&self) -> usize {
        PAGES_MAX.min(self.count + 100)
    }

    /// After the end: whether the pages add up.
    pub fn is_complete(&self) -> bool {
        self.agrees && self.told == self.count
    }
}

/// What a lane still has to read.
struct Lane {
    netbox: NetBox,
    path: String,
    filter: Vec<(String, String)>,
    limit: usize,
    from: u64,
    until: Option<u64>,
    /// Rows of the lane, by the count of its first page.
    expected: Option<usize>,
    read: usize,
}

impl NetBox {
    /// All rows of a list under a filter.
    pub(crate) async fn list<T: DeserializeOwned + Identified + Send + 'static>(
        &self,
        path: &str,
        filter: Vec<(String, String)>,
    ) -> Result<Listing<T>, NetBoxError> {
        let mut sweep = self.begun_by_a_page::<T>(path, filter).await?;
        let mut rows = BTreeMap::new();
        while let Some(page) = sweep.next().await? {
            rows.extend(page.into_iter().map(|row| (row.id(), row)));
        }
        Ok(Listing { complete: sweep.is_complete() && rows.len() == sweep.told, rows: rows.into_values().collect() })
    }

    /// All rows page by page, for a list that is known to be long: what it takes to read it in lanes is asked for before its
    /// first page, which would keep the other lanes waiting.
    pub(crate) async fn sweep<T: DeserializeOwned + Identified + Send + 'static>(
        &self,
        path: &str,
        filter: Vec<(String, String)>,
    ) -> Result<Sweep<T>, NetBoxError> {
        let one: Page<OnlyId> = self.page(path, &ids_only(&filter), 1, &[]).await?;
        let count = one.count.unwrap_or(one.results.len());
        self.check_length(path, count, PAGE)?;
        let cuts = match count.div_ceil(PAGE) {
            0 | 1 => vec![(0, None)],
            pages => self.cut(path, &filter, 0, (0, PAGE), pages).await?,
        };
        Ok(Sweep {
            first: None,
            lanes: self.lanes(path, &filter, PAGE, cuts),
            agrees: one.count.is_some(),
            count,
            told: 0,
            pages: 0,
            bytes: 0,
            asked: format!("GET {path}"),
            host: self.http.host(),
        })
    }

    /// The same for a list that is mostly short: its first page says how long it is.
    async fn begun_by_a_page<T: DeserializeOwned + Identified + Send + 'static>(
        &self,
        path: &str,
        filter: Vec<(String, String)>,
    ) -> Result<Sweep<T>, NetBoxError> {
        let first: Page<T> = self.page(path, &filter, PAGE, &[]).await?;
        let count = first.count.unwrap_or(first.results.len());
        let (stride, agrees) = (first.results.len(), first.count.is_some());
        self.check_length(path, count, stride.max(1))?;
        let mut lanes = stream::empty().boxed();
        if first.next.is_some() && stride > 0 {
            let last = self.last_in_order(path, &first.results)?;
            let pages = count.div_ceil(stride).saturating_sub(1).max(1);
            let cuts = self.cut(path, &filter, last + 1, (stride, stride), pages).await?;
            lanes = self.lanes(path, &filter, stride, cuts);
        }
        let (asked, host) = (format!("GET {path}"), self.http.host());
        Ok(Sweep { first: Some(first.results), lanes, agrees, count, told: 0, pages: 0, bytes: 0, asked, host })
    }

    /// Reads lanes side by side, each begun when there is room for it.
    fn lanes<T: DeserializeOwned + Identified + Send + 'static>(
        &self,
        path: &str,
        filter: &[(String, String)],
        limit: usize,
        cuts: Vec<(u64, Option<u64>)>,
    ) -> Lanes<T> {
        let (netbox, path, filter) = (self.clone(), path.to_owned(), filter.to_vec());
        let lane = move |(from, until)| {
            let (netbox, path, filter) = (netbox.clone(), path.clone(), filter.clone());
            let lane = Lane { netbox, path, filter, limit, from, until, expected: None, read: 0 };
            stream::try_unfold(Some(lane), Lane::step).boxed()
        };
        stream::iter(cuts).map(lane).flatten_unordered(AT_ONCE).boxed()
    }

    fn check_length(&self, path: &str, rows: usize, stride: usize) -> Result<(), NetBoxError> {
        let limit = ROWS_MAX.min(PAGES_MAX * stride);
        let too_long = || NetBoxError::TooLong { asked: format!("GET {path}"), host: self.http.host(), limit };
        if rows > limit { Err(too_long()) } else { Ok(()) }
    }

    /// Cuts so many pages into lanes of about equal length. `from` is the first id of them; the rows before it, and those of
    /// a page, are `before` and `stride`.
    async fn cut(
        &self,
        path: &str,
        filter: &[(String, String)],
        from: u64,
        (before, stride): (usize, usize),
        pages: usize,
    ) -> Result<Vec<(u64, Option<u64>)>, NetBoxError> {
        let lanes = pages.div_ceil(LANE).clamp(AT_ONCE, LANES_MAX).min(pages);
        // At whole pages, so that no lane ends with a page that is nearly empty.
        let offsets = (1..lanes).map(|lane| before + stride * (pages * lane / lanes));
        let filter = &ids_only(filter);
        let mut cuts: Vec<u64> = stream::iter(offsets)
            .map(|offset| async move {
                let page: Page<OnlyId> = self.page(path, filter, 1, &[("offset", offset as u64)]).await?;
                Ok::<_, NetBoxError>(page.results.first().map(|row| row.id))
            })
            .buffer_unordered(AT_ONCE)
            .try_filter_map(async |cut| Ok(cut.filter(|id| *id > from)))
            .try_collect()
            .await?;
        cuts.sort_unstable();
        cuts.dedup();
        let starts = std::iter::once(from).chain(cuts.iter().copied());
        let ends = cuts.iter().copied().map(Some).chain(std::iter::once(None));
        Ok(starts.zip(ends).collect())
    }

    async fn page<T: DeserializeOwned>(
        &self,
        path: &str,
        filter: &[(String, String)],
        limit: usize,
        more: &[(&str, u64)],
    ) -> Result<Page<T>, NetBoxError> {
        self.get(path, page_of(filter, limit, more)).await
    }

    /// The id of a page's last row. A server that does not sort as it was asked can't be read by ids.
    fn last_in_order<T: Identified>(&self, path: &str, rows: &[T]) -> Result<u64, NetBoxError> {
        if !rows.is_sorted_by(|a, b| a.id() < b.id()) {
            return Err(self.ignored(path, "ordering=id"));
        }
        Ok(rows.last().map_or(0, Identified::id))
    }

    fn ignored(&self, path: &str, filter: impl Into<String>) -> NetBoxError {
        NetBoxError::Ignored { asked: format!("GET {path}"), host: self.http.host(), filter: filter.into() }
    }
}

/// The query for a page of a list under a filter.
fn page_of(filter: &[(String, String)], limit: usize, more: &[(&str, u64)]) -> Vec<(String, String)> {
    let mut query = filter.to_vec();
    // The default order has ties, and rows that tie come twice or never.
    query.push(("ordering".into(), "id".into()));
    query.push(("limit".into(), limit.to_string()));
    query.extend(more.iter().map(|(key, value)| ((*key).to_owned(), value.to_string())));
    query
}

/// The same filter for nothing but ids.
fn ids_only(filter: &[(String, String)]) -> Vec<(String, String)> {
    let others = filter.iter().filter(|(key, _)| key != "fields").cloned();
    others.chain([("fields".into(), "id".into())]).collect()
}

impl Lane {
    /// Reads the next page of the lane; the rest of the lane is `None` when it has ended.
    async fn step<T: DeserializeOwned + Identified>(
        lane: Option<Lane>,
    ) -> Result<Option<(LanePage<T>, Option<Lane>)>, NetBoxError> {
        let Some(mut lane) = lane else { return Ok(None) };
        let mut range = vec![("id__gte", lane.from)];
        range.extend(lane.until.map(|until| ("id__lt", until)));
        let query = page_of(&lane.filter, lane.limit, &range);
        let (page, bytes): (Page<T>, usize) = lane.netbox.get_page(&lane.path, query).await?;
        let last = lane.netbox.last_in_order(&lane.path, &page.results)?;
        let outside = |row: &T| row.id() < lane.from || lane.until.is_some_and(|until| row.id() >= until);
        if page.results.iter().any(outside) {
            return Err(lane.netbox.ignored(&lane.path, format!("id__gte={}", lane.from)));
        }
        let counted = page.count.map(|count| count + lane.read);
        let agrees = counted.is_some() && (lane.expected.is_none() || lane.expected == counted);
        lane.expected = lane.expected.or(counted);
        lane.read += page.results.len();
        let more = page.next.is_some() && !page.results.is_empty();
        let agrees = agrees && (more || lane.expected == Some(lane.read));
        lane.from = last + 1;
        Ok(Some((LanePage { rows: page.results, agrees, bytes }, more.then_some(lane))))
    }
}

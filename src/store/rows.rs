//! Values as columns: times, ids, JSON. Whatever can't be read back says where it stands.

use std::fmt::Display;
use std::str::FromStr;

use jiff::Timestamp;
use rusqlite::Row;
use rusqlite::types::FromSql;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::error::StoreError;
use crate::domain::ids::RunId;

/// A column's value; `place` names it in the error.
pub(super) fn get<T: FromSql>(row: &Row<'_>, column: &str, place: &str) -> Result<T, StoreError> {
    row.get(column).map_err(|e| bad(format!("{place}.{column}"), e))
}

/// Nanoseconds since 1970: the journal's times come back exactly as they went in, or replay would see other times.
pub(super) fn nanos(at: Timestamp) -> i64 {
    // Until the year 2262; beyond it the clock is broken, and the last moment that fits is as good as any.
    i64::try_from(at.as_nanosecond()).unwrap_or(i64::MAX)
}

pub(super) fn time(row: &Row<'_>, column: &str, place: &str) -> Result<Timestamp, StoreError> {
    let nanos: i64 = get(row, column, place)?;
    Timestamp::from_nanosecond(i128::from(nanos)).map_err(|e| bad(format!("{place}.{column}"), e))
}

pub(super) fn time_maybe(row: &Row<'_>, column: &str, place: &str) -> Result<Option<Timestamp>, StoreError> {
    let nanos: Option<i64> = get(row, column, place)?;
    nanos
        .map(|n| Timestamp::from_nanosecond(i128::from(n)).map_err(|e| bad(format!("{place}.{column}"), e)))
        .transpose()
}

/// NetBox's ids and places in a journal. SQLite's integers are signed; neither comes near that bound.
pub(super) fn signed(n: u64) -> i64 {
    i64::try_from(n).unwrap_or(i64::MAX)
}

pub(super) fn unsigned(row: &Row<'_>, column: &str, place: &str) -> Result<u64, StoreError> {
    let n: i64 = get(row, column, place)?;
    u64::try_from(n).map_err(|e| bad(format!("{place}.{column}"), e))
}

pub(super) fn key(run: RunId) -> [u8; 16] {
    *run.0.as_bytes()
}

pub(super) fn run_id(row: &Row<'_>, column: &str, place: &str) -> Result<RunId, StoreError> {
    let bytes: [u8; 16] = get(row, column, place)?;
    Ok(RunId(uuid::Uuid::from_bytes(bytes)))
}

/// A value that was written as its own text.
pub(super) fn parsed<T>(row: &Row<'_>, column: &str, place: &str) -> Result<T, StoreError>
where
    T: FromStr,
    T::Err: Display,
{
    let text: String = get(row, column, place)?;
    text.parse().map_err(|e| bad(format!("{place}.{column}"), e))
}

pub(super) fn json<T: Serialize>(value: &T, place: &str) -> Result<String, StoreError> {
    serde_json::to_string(value).map_err(|e| bad(place.to_owned(), e))
}

pub(super) fn from_json<T: DeserializeOwned>(row: &Row<'_>, column: &str, place: &str) -> Result<T, StoreError> {
    let text: String = get(row, column, place)?;
    serde_json::from_str(&text).map_err(|e| bad(format!("{place}.{column}"), e))
}

pub(super) fn bad(place: String, cause: impl Display) -> StoreError {
    StoreError::Value { place, cause: cause.to_string() }
}

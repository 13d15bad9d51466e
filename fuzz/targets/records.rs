//! What muster wrote itself, perhaps in another version, perhaps on a disk that has spoilt it: journals and rows of the store.

use muster::domain::cable_doctor::HeardHost;
use muster::domain::compare::Comparison;
use muster::domain::device::Device;
use muster::domain::event::RunRecord;
use muster::domain::plan::Plan;
use muster::domain::request::EnrollRequest;
use muster::domain::run_view::RunView;
use muster::domain::story::Story;
use muster::domain::verify::Verification;
use muster::domain::wiring::{Cable, IpAddress, MacAddress};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::is_safe;

/// A journal, a record a line, as an export and a view tell it.
pub fn journal(bytes: &[u8]) {
    let lines = bytes.split(|byte| *byte == b'\n');
    let records: Vec<RunRecord> = lines.filter_map(|line| serde_json::from_slice(line).ok()).collect();
    for record in &records {
        again::<RunRecord>(serde_json::to_string(record).unwrap().as_bytes());
    }
    let view = RunView::of(&records);
    Comparison::of(&view, &RunView::default());
    Comparison::of(&view, &view);
    if let Some(story) = Story::of(&records) {
        let page = story.markdown();
        assert!(page.lines().all(is_safe), "{page:?}");
        assert!(is_safe(&story.json().to_string()));
        assert!(story.lines().iter().all(|line| is_safe(line)));
        // Nothing in it loads anything or pings anybody.
        assert!(!page.contains("![") && !page.contains("<img"), "{page}");
        story.away_s();
        story.took_s();
    }
}

/// The bodies of rows.
pub fn rows(bytes: &[u8]) {
    again::<Device>(bytes);
    again::<Plan>(bytes);
    again::<EnrollRequest>(bytes);
    again::<Verification>(bytes);
    again::<Cable>(bytes);
    again::<MacAddress>(bytes);
    again::<IpAddress>(bytes);
    again::<HeardHost>(bytes);
}

/// What can be read can be written, and what was written is the same when it is read again. The first reading of a number may be
/// off by the last bit of it.
fn again<T: DeserializeOwned + Serialize + PartialEq + std::fmt::Debug>(bytes: &[u8]) {
    let Ok(row) = serde_json::from_slice::<T>(bytes) else { return };
    let read = |row: &T| -> T {
        let text = serde_json::to_string(row).unwrap();
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"))
    };
    let back = read(&read(&row));
    assert_eq!(read(&back), back);
}

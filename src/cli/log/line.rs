//! One event as one line of JSON. The names of its fields are a contract: whatever collects logs goes by them.

use std::fmt::Debug;
use std::io;

use jiff::Timestamp;
use serde::Serialize;
use serde_json::ser::{CharEscape, CompactFormatter, Formatter};
use serde_json::{Map, Value, json};
use tracing::field::{Field, Visit};
use tracing::{Event, Level};

use crate::domain::text::is_hostile;

/// Fields that every line has. A field of an event with one of these names stands behind `field.`.
const EVERY: [&str; 5] = ["at", "level", "pid", "target", "message"];

/// An event as it happens now.
pub(super) fn of(event: &Event<'_>) -> String {
    let mut fields = Fields::default();
    event.record(&mut fields);
    let target = fields.target.take().unwrap_or_else(|| event.metadata().target().to_owned());
    line(Timestamp::now(), *event.metadata().level(), &target, fields)
}

/// A line of the log's own.
pub(super) fn own(level: Level, message: &str, fields: &[(&str, Value)]) -> String {
    let all = fields.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect();
    let fields = Fields { message: message.to_owned(), all, target: None };
    line(Timestamp::now(), level, "muster::log", fields)
}

fn line(at: Timestamp, level: Level, target: &str, fields: Fields) -> String {
    let mut all = Map::new();
    // In microseconds, of one width: lines sort by their text.
    all.insert("at".to_owned(), json!(at.strftime("%Y-%m-%dT%H:%M:%S.%6fZ").to_string()));
    all.insert("level".to_owned(), json!(level.as_str().to_ascii_lowercase()));
    all.insert("pid".to_owned(), json!(std::process::id()));
    all.insert("target".to_owned(), json!(target));
    all.insert("message".to_owned(), json!(fields.message));
    all.extend(fields.all);
    let mut bytes = Vec::new();
    let mut writer = serde_json::Serializer::with_formatter(&mut bytes, Harmless);
    // A map of texts and numbers into memory: it always has a form.
    Value::Object(all).serialize(&mut writer).ok();
    bytes.push(b'\n');
    String::from_utf8_lossy(&bytes).into_owned()
}

#[derive(Default)]
struct Fields {
    message: String,
    all: Map<String, Value>,
    /// Of an event that came by the crate `log`.
    target: Option<String>,
}

impl Fields {
    fn put(&mut self, name: &str, value: Value) {
        match name {
            "message" => {
                self.message = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            }
            "log.target" => self.target = value.as_str().map(str::to_owned),
            "log.module_path" | "log.file" | "log.line" => {}
            name if EVERY.contains(&name) => drop(self.all.insert(format!("field.{name}"), value)),
            name => drop(self.all.insert(name.to_owned(), value)),
        }
    }
}

impl Visit for Fields {
    fn record_f64(&mut self, field: &Field, value: f64) {
        self.put(field.name(), json!(value));
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.put(field.name(), json!(value));
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.put(field.name(), json!(value));
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.put(field.name(), json!(value));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.put(field.name(), json!(value));
    }

    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.put(field.name(), json!(format!("{value:?}")));
    }
}

/// JSON's own escapes, and one for every character that a terminal could act on: a log is read with `less`, too. What
/// parses the line gets the text as it was.
struct Harmless;

impl Formatter for Harmless {
    fn write_string_fragment<W: ?Sized + io::Write>(&mut self, writer: &mut W, fragment: &str) -> io::Result<()> {
        let mut begin = 0;
        for (at, c) in fragment.char_indices().filter(|(_, c)| is_hostile(*c)) {
            writer.write_all(&fragment.as_bytes()[begin..at])?;
            let mut units = [0; 2];
            for unit in c.encode_utf16(&mut units) {
                write!(writer, "\\u{unit:04x}")?;
            }
            begin = at + c.len_utf8();
        }
        writer.write_all(&fragment.as_bytes()[begin..])
    }

    fn write_char_escape<W: ?Sized + io::Write>(&mut self, writer: &mut W, escape: CharEscape) -> io::Result<()> {
        CompactFormatter.write_char_escape(writer, escape)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use tracing::Subscriber;
    use tracing_subscriber::layer::{Context, Layer, SubscriberExt};

    use super::*;

    #[derive(Clone, Default)]
    struct Kept(Arc<Mutex<Vec<String>>>);

    impl<S: Subscriber> Layer<S> for Kept {
        fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
            self.0.lock().unwrap().push(of(event));
        }
    }

    /// What documents the log names these fields.
    #[test]
    fn a_line_is_one_object_with_stable_names_whatever_is_in_its_values() {
        let kept = Kept::default();
        tracing::subscriber::with_default(tracing_subscriber::registry().with(kept.clone()), || {
            let hostile = "a\u{1b}[2J\n\u{9b}31m\u{202e}\u{e0041}\"\\é";
            tracing::warn!(host = hostile, tries = 3u32, ok = true, level = "mine", error = %"x", "a sentence");
        });
        let lines = kept.0.lock().unwrap();
        let [line] = lines.as_slice() else { panic!("{lines:?}") };
        assert!(line.ends_with("}\n") && line.matches('\n').count() == 1, "{line:?}");
        assert!(!line.trim_end().chars().any(is_hostile), "{line:?}");
        let read: Value = serde_json::from_str(line).unwrap();
        assert_eq!(read["host"], "a\u{1b}[2J\n\u{9b}31m\u{202e}\u{e0041}\"\\é");
        assert_eq!((&read["tries"], &read["ok"], &read["error"]), (&json!(3), &json!(true), &json!("x")));
        assert_eq!((&read["level"], &read["field.level"]), (&json!("warn"), &json!("mine")));
        assert_eq!((&read["message"], &read["pid"]), (&json!("a sentence"), &json!(std::process::id())));
        assert!(read["target"].as_str().unwrap().starts_with("muster"), "{line}");
        let at: Timestamp = read["at"].as_str().unwrap().parse().unwrap();
        assert!(Timestamp::now().duration_since(at).abs() < jiff::SignedDuration::from_secs(60));
        let own: Value = serde_json::from_str(&own(Level::WARN, "m", &[("lines", json!(3))])).unwrap();
        assert_eq!((&own["lines"], &own["level"]), (&json!(3), &json!("warn")));
    }
}

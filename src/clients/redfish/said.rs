//! Reads what a BMC says of an answer: the messages in an error body, whatever form its firmware gives them.

use serde_json::Value;

use crate::domain::text::neutralize_to;

/// The longest sentence that is taken from a BMC.
const TEXT_MAX: usize = 300;

/// What a BMC said, with the best sentence of it picked.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Said {
    /// The best text there is, safe to show; empty where the body was.
    pub text: String,
    pub entries: Vec<Entry>,
}

/// One message of `@Message.ExtendedInfo`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Entry {
    /// Last dot segment of the `MessageId`: registry names and versions differ between firmwares.
    pub id: String,
    pub message: String,
    pub args: Vec<String>,
    pub severity: String,
    pub resolution: String,
}

impl Entry {
    /// Says something of its own: not the frame that every error comes in.
    fn is_telling(&self) -> bool {
        !self.id.is_empty() && self.id != "GeneralError" && self.id != "Success"
    }

    fn is_bad(&self) -> bool {
        ["Critical", "Warning"].iter().any(|bad| self.severity.eq_ignore_ascii_case(bad))
    }
}

impl Said {
    /// What the body of an answer says. Takes any body: HTML, cut JSON, nothing.
    pub fn read(body: &[u8]) -> Said {
        let Ok(value) = serde_json::from_slice::<Value>(body) else {
            return Said { text: plain_text(body), entries: vec![] };
        };
        let error = &value["error"];
        let mut entries = entries_of(&error["@Message.ExtendedInfo"]);
        entries.extend(entries_of(&value["@Message.ExtendedInfo"]));
        let of_entry = |entry: &Entry| {
            [&entry.message, &entry.resolution, &entry.id].into_iter().find(|text| !text.is_empty()).cloned()
        };
        let text = entries
            .iter()
            .find(|entry| entry.is_telling())
            .and_then(of_entry)
            // Supermicro writes `Message` with a capital letter.
            .or_else(|| {
                ["message", "Message"].into_iter().find_map(|key| text_of(&error[key]).filter(|t| !is_hollow(t)))
            })
            // A lone GeneralError: its text is the same everywhere, its resolution may tell something.
            .or_else(|| entries.iter().map(|entry| entry.resolution.clone()).find(|text| !text.is_empty()))
            .or_else(|| text_of(&error["message"]).or_else(|| text_of(&error["Message"])))
            .unwrap_or_else(|| plain_text(body));
        Said { text, entries }
    }

    /// Whether one of the messages has this id.
    pub fn has(&self, id: &str) -> bool {
        self.entry(id).is_some()
    }

    /// The message with this id.
    pub fn entry(&self, id: &str) -> Option<&Entry> {
        self.entries.iter().find(|entry| entry.id.eq_ignore_ascii_case(id))
    }

    /// Whether the answer speaks of a lockdown mode. Which id the message has is not known of every firmware, so its words
    /// decide.
    pub fn tells_of_lockdown(&self) -> bool {
        let says = |text: &str| {
            let low = text.to_ascii_lowercase();
            ["lockdown", "lock down mode", "locked down"].iter().any(|words| low.contains(words))
        };
        says(&self.text) || self.entries.iter().any(|entry| says(&entry.message))
    }

    /// Whether the answer speaks of a member of the request: in its text or in the arguments of a message.
    pub fn mentions(&self, member: &str) -> bool {
        self.text.contains(member)
            || self.entries.iter().any(|e| e.message.contains(member) || e.args.iter().any(|arg| arg.contains(member)))
    }
}

/// The first note on a single property that calls its write failed: a 200 can carry such (DSP0266).
pub fn property_refused(body: &Value) -> Option<String> {
    let members = body.as_object()?;
    members.iter().find_map(|(key, value)| {
        let property = key.strip_suffix("@Message.ExtendedInfo").filter(|name| !name.is_empty())?;
        let bad = entries_of(value).into_iter().find(Entry::is_bad)?;
        let text = if bad.message.is_empty() { bad.id } else { bad.message };
        Some(format!("{}: {text}", neutralize_to(property, 60)))
    })
}

/// The sentence that stands in every error body and says nothing.
fn is_hollow(text: &str) -> bool {
    text.to_ascii_lowercase().starts_with("a general error has occurred")
}

/// Extended info is a list, or one object on some firmwares.
fn entries_of(value: &Value) -> Vec<Entry> {
    let list: Vec<&Value> = match value {
        Value::Array(list) => list.iter().take(32).collect(),
        Value::Object(_) => vec![value],
        _ => vec![],
    };
    list.into_iter()
        .filter(|entry| entry.is_object())
        .map(|entry| Entry {
            id: last_segment(entry["MessageId"].as_str().unwrap_or_default()),
            message: text_of(&entry["Message"]).unwrap_or_default(),
            args: entry["MessageArgs"]
                .as_array()
                .map(|args| args.iter().filter_map(text_of).take(16).collect())
                .unwrap_or_default(),
            severity: text_of(&entry["Severity"]).unwrap_or_default(),
            resolution: text_of(&entry["Resolution"]).filter(|text| text != "None").unwrap_or_default(),
        })
        .collect()
}

fn last_segment(id: &str) -> String {
    neutralize_to(id.rsplit('.').next().unwrap_or_default(), 80)
}

fn text_of(value: &Value) -> Option<String> {
    let text = match value {
        Value::String(text) => text.trim().to_owned(),
        Value::Number(number) => number.to_string(),
        _ => return None,
    };
    (!text.is_empty()).then(|| neutralize_to(&text, TEXT_MAX))
}

/// A body that is no JSON: the title of a page, else its first characters.
fn plain_text(body: &[u8]) -> String {
    let head = String::from_utf8_lossy(&body[..body.len().min(4096)]).into_owned();
    let low = head.to_ascii_lowercase();
    let title = low.find("<title>").and_then(|start| {
        let start = start + "<title>".len();
        let end = low[start..].find("</title>")? + start;
        Some(head[start..end].trim().to_owned())
    });
    neutralize_to(title.as_deref().unwrap_or(head.trim()), TEXT_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The captured and reported error bodies, each with the sentence that a person should see.
    #[test]
    fn the_best_sentence_of_each_known_error_body_is_picked() {
        let table: &[(&str, &str)] = &[
            (
                r#"{"error":{"code":"Base.1.8.GeneralError","message":"A general error has occurred.",
                "@Message.ExtendedInfo":[{"MessageId":"Base.1.8.ServiceTemporarilyUnavailable",
                "Message":"The service is temporarily unavailable. Retry in 30 seconds."}]}}"#,
                "The service is temporarily unavailable. Retry in 30 seconds.",
            ),
            (
                r#"{"error":{"@Message.ExtendedInfo":{"MessageId":"Base.1.5.GeneralError","Message":"A general error.",
                "Resolution":"Correct the request body and resubmit."}}}"#,
                "Correct the request body and resubmit.",
            ),
            (r#"{"error":{"code":"x","Message":"capital M"}}"#, "capital M"),
            (r#"{"error":{"@Message.ExtendedInfo":[{"MessageId":"Base.1.2.InternalError"}]}}"#, "InternalError"),
            (
                r#"{"@Message.ExtendedInfo":[{"MessageId":"Base.1.7.Success","Message":"ok"},
                {"MessageId":"IDRAC.2.4.SYS413","Message":"The operation successfully completed."}]}"#,
                "The operation successfully completed.",
            ),
            (
                "<html><head><TITLE> 503 Service Unavailable</TITLE></head><body>x</body></html>",
                "503 Service Unavailable",
            ),
            ("busy\u{1b}[2J", "busy\u{fffd}[2J"),
            ("", ""),
            ("[1,2", "[1,2"),
        ];
        for (body, text) in table {
            assert_eq!(Said::read(body.as_bytes()).text, *text, "{body}");
        }
    }

    #[test]
    fn ids_are_compared_by_their_last_segment_whatever_the_registry() {
        for id in ["Base.1.12.PasswordChangeRequired", "Base.v1_10_3.PasswordChangeRequired", "PasswordChangeRequired"]
        {
            let body = format!(
                r#"{{"error":{{"@Message.ExtendedInfo":[{{"MessageId":"{id}","MessageArgs":["/redfish/v1/x"]}}]}}}}"#
            );
            let said = Said::read(body.as_bytes());
            assert_eq!(said.entry("PasswordChangeRequired").unwrap().args, ["/redfish/v1/x"], "{id}");
        }
    }

    #[test]
    fn a_property_note_of_severity_warning_makes_a_200_a_failed_write() {
        let refused = serde_json::json!({"Password@Message.ExtendedInfo": [
            {"MessageId": "Base.1.8.PropertyValueFormatError", "Message": "too long", "Severity": "Warning"}]});
        assert_eq!(property_refused(&refused).unwrap(), "Password: too long");
        let fine = serde_json::json!({"Password@Message.ExtendedInfo": [{"MessageId": "x.Success", "Severity": "OK"}],
            "@Message.ExtendedInfo": [{"MessageId": "x.y", "Severity": "Critical"}]});
        assert_eq!(property_refused(&fine), None);
    }
}

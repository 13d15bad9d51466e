//! The ladder of preconditions: which `If-Match` a BMC accepts for a write.

use serde_json::Value;

/// One form of the header `If-Match`; `None` sends no header.
pub type IfMatch = Option<String>;

/// Which form a vendor is asked with first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum FirstForm {
    /// No header until the BMC asks for one.
    #[default]
    Nothing,
    /// `*`: AMI refuses writes without a header, and its own tags too (Q1, Q3).
    Any,
}

impl FirstForm {
    pub fn header(self) -> IfMatch {
        match self {
            FirstForm::Nothing => None,
            FirstForm::Any => Some("*".to_owned()),
        }
    }
}

/// The forms to try after a 412 or 428, in order and each once: the tag of the answer's header, the tag of its body, both
/// without their weakness, anything, nothing. What was tried already is left out.
pub fn ladder(header: Option<&str>, body: Option<&Value>, tried: &IfMatch) -> Vec<IfMatch> {
    let tags: Vec<String> = [header.map(str::to_owned), body.and_then(tag_of)].into_iter().flatten().collect();
    let exact = tags.iter().map(|tag| unquote_twice(tag));
    let strong = tags.iter().filter_map(|tag| unquote_twice(tag).strip_prefix("W/").map(str::to_owned));
    let mut forms: Vec<IfMatch> = Vec::new();
    for form in exact.chain(strong).map(Some).chain([Some("*".to_owned()), None]) {
        if form != *tried && !forms.contains(&form) {
            forms.push(form);
        }
    }
    forms
}

/// `@odata.etag`: a text, or a number on old firmware (Q6).
pub fn tag_of(value: &Value) -> Option<String> {
    match value {
        Value::String(tag) if !tag.trim().is_empty() => Some(tag.trim().to_owned()),
        Value::Number(tag) => Some(format!("\"{tag}\"")),
        _ => None,
    }
}

/// Some firmware quotes the header's value twice (Q5).
fn unquote_twice(tag: &str) -> String {
    let tag = tag.trim();
    match tag.strip_prefix("\"\"").and_then(|rest| rest.strip_suffix("\"\"")) {
        Some(inner) => format!("\"{inner}\""),
        None => tag.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn forms(header: Option<&str>, body: Option<Value>, tried: IfMatch) -> Vec<String> {
        ladder(header, body.as_ref(), &tried).into_iter().map(|form| form.unwrap_or_else(|| "-".to_owned())).collect()
    }

    #[test]
    fn the_ladder_goes_from_the_exact_tag_to_no_header_and_repeats_nothing() {
        assert_eq!(forms(Some("W/\"a1\""), None, None), ["W/\"a1\"", "\"a1\"", "*"]);
        assert_eq!(forms(Some("\"\"a1\"\""), Some(json!("\"a1\"")), None), ["\"a1\"", "*"]);
        assert_eq!(forms(None, Some(json!(17)), None), ["\"17\"", "*"]);
        assert_eq!(forms(Some("\"a1\""), Some(json!(null)), Some("*".into())), ["\"a1\"", "-"]);
        assert_eq!(forms(None, None, Some("*".into())), ["-"]);
    }
}

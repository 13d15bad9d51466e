//! Compares hints for the root device by their meaning, as Ironic reads them (E13, E14, C-18).

use serde_json::{Map, Value};

/// Whether two tables of hints pick the same disks, so that nothing is to be written.
pub fn same(a: &Map<String, Value>, b: &Map<String, Value>) -> bool {
    a.len() == b.len()
        && a.iter().all(|(key, value)| b.get(key).is_some_and(|other| meaning(key, value) == meaning(key, other)))
}

/// The hints that do not stay with the disk: a SCSI address or a device name may be another disk's after the next boot.
pub fn unstable(hints: &Map<String, Value>) -> Vec<&str> {
    hints.keys().map(String::as_str).filter(|key| matches!(*key, "hctl" | "name")).collect()
}

/// A hint as Ironic understands it.
#[derive(Debug, PartialEq)]
enum Meaning {
    /// An operator with its value, lower case, blanks collapsed.
    One {
        operator: &'static str,
        value: String,
    },
    /// Any of these (`<or>`), or all of them (`<all-in>`), in any order.
    Many {
        operator: &'static str,
        values: Vec<String>,
    },
    Flag(bool),
    /// What has no known form is equal to itself only.
    Raw(Value),
}

/// Operators on text and on numbers, longest first. `=` is "at least" in this grammar.
const TEXT: [&str; 6] = ["s==", "s!=", "s<=", "s>=", "s<", "s>"];
const NUMBER: [(&str, &str); 7] =
    [("==", "=="), ("!=", "!="), ("<=", "<="), (">=", ">="), ("=", ">="), ("<", "<"), (">", ">")];

fn meaning(key: &str, value: &Value) -> Meaning {
    match (key, value) {
        ("rotational", Value::Bool(flag)) => return Meaning::Flag(*flag),
        ("rotational", Value::String(text)) => match text.trim().to_ascii_lowercase().as_str() {
            "true" | "yes" | "on" | "1" => return Meaning::Flag(true),
            "false" | "no" | "off" | "0" => return Meaning::Flag(false),
            _ => {}
        },
        _ => {}
    }
    let text = match value {
        Value::String(text) => text.split_whitespace().collect::<Vec<_>>().join(" ").to_lowercase(),
        Value::Number(number) => number.to_string(),
        other => return Meaning::Raw(other.clone()),
    };
    for operator in ["<or>", "<all-in>"] {
        if text.starts_with(operator) {
            let mut values: Vec<String> =
                text.split(operator).map(str::trim).filter(|v| !v.is_empty()).map(str::to_owned).collect();
            values.sort();
            return Meaning::Many { operator, values };
        }
    }
    if let Some(rest) = text.strip_prefix("<in>") {
        return Meaning::One { operator: "<in>", value: rest.trim().to_owned() };
    }
    if let Some((operator, rest)) = TEXT.iter().find_map(|op| Some((*op, text.strip_prefix(op)?))) {
        return Meaning::One { operator, value: rest.trim().to_owned() };
    }
    if let Some((operator, rest)) = NUMBER.iter().find_map(|(op, means)| Some((*means, text.strip_prefix(op)?))) {
        return Meaning::One { operator, value: rest.trim().to_owned() };
    }
    // Without an operator it is equality: of numbers for a size, of text for the rest.
    let operator = if key == "size" || value.is_number() { "==" } else { "s==" };
    Meaning::One { operator, value: text }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn key_of(text: &str) -> &'static str {
        if text.contains("894") { "size" } else { "serial" }
    }

    fn hints(key: &str, value: &Value) -> Map<String, Value> {
        Map::from_iter([(key.to_owned(), value.clone())])
    }

    /// Case: C-18. Proves: E13
    #[test]
    fn hints_that_mean_the_same_are_equal_and_other_operators_are_not() {
        let case: Value =
            serde_json::from_str(include_str!("../../tests/fixtures/cases/c18-root-device-hints.json")).unwrap();
        for (group, equal) in [("equal", true), ("different", false)] {
            for pair in case[group].as_array().unwrap() {
                let key = key_of(pair[0].as_str().unwrap());
                assert_eq!(same(&hints(key, &pair[0]), &hints(key, &pair[1])), equal, "{pair}");
                assert_eq!(same(&hints(key, &pair[1]), &hints(key, &pair[0])), equal, "{pair}");
            }
        }
        assert!(same(&hints("size", &json!(894)), &hints("size", &json!("== 894"))));
        assert!(same(&hints("rotational", &json!(false)), &hints("rotational", &json!("False"))));
        assert!(same(&hints("model", &json!("<or> b <or> a")), &hints("model", &json!("<or> A <or> B"))));
        assert!(!same(&hints("size", &json!("= 894")), &hints("size", &json!("894"))), "`=` is at least");
        assert!(same(&hints("size", &json!("= 894")), &hints("size", &json!(">= 894"))));
    }

    #[test]
    fn another_key_or_one_more_is_another_table() {
        let (serial, wwn) = (hints("serial", &json!("a")), hints("wwn", &json!("a")));
        assert!(!same(&serial, &wwn));
        let mut both = serial.clone();
        both.extend(wwn);
        assert!(!same(&serial, &both) && !same(&both, &serial) && same(&both, &both.clone()));
    }

    /// Case: C-18. Proves: E14
    #[test]
    fn a_scsi_address_is_known_not_to_be_stable() {
        assert_eq!(unstable(&hints("hctl", &json!("s== 0:2:0:0"))), ["hctl"]);
        assert!(unstable(&hints("wwn", &json!("x"))).is_empty());
    }
}

//! An item of 1Password, as Connect and the program `op` tell it and take it.

use secrecy::{ExposeSecret, SecretString};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{Fields, VaultError, missing};

/// What is read of an item. Everything may be missing: it comes from outside.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Item {
    pub id: String,
    pub title: String,
    /// `ARCHIVED` or `DELETED`: nobody sees it in the vault any more.
    pub state: Option<String>,
    pub fields: Option<Vec<Field>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Field {
    pub id: String,
    pub label: Option<String>,
    pub value: Option<SecretString>,
}

/// A UUID of 1Password: 26 lower case letters and digits.
pub(super) fn is_uuid(text: &str) -> bool {
    text.len() == 26 && text.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit())
}

impl Item {
    /// The field with this label; else the one with this id, which the built-in fields of a category have. In two sections
    /// there may be two of one label.
    pub fn field(&self, item: &str, name: &str, place: &str) -> Result<Option<&Field>, VaultError> {
        let fields = self.fields.as_deref().unwrap_or_default();
        let labelled: Vec<&Field> = fields.iter().filter(|field| field.label.as_deref() == Some(name)).collect();
        match labelled[..] {
            [] => Ok(fields.iter().find(|field| field.id == name)),
            [one] => Ok(Some(one)),
            _ => Err(VaultError::Ambiguous {
                place: place.to_owned(),
                what: format!("fields with the label '{name}' in the item '{item}'"),
                count: labelled.len(),
            }),
        }
    }

    pub fn value(&self, item: &str, name: &str, place: &str) -> Result<SecretString, VaultError> {
        let value = self.field(item, name, place)?.and_then(|field| field.value.as_ref());
        let value = value.filter(|value| !value.expose_secret().is_empty());
        value.cloned().ok_or_else(|| missing(item, name, place))
    }

    /// Whether a read of it finds what was written.
    pub fn shows(&self, item: &str, fields: &Fields, place: &str) -> Result<bool, VaultError> {
        for (name, secret) in fields {
            let found = self.field(item, name, place)?.and_then(|field| field.value.as_ref());
            let found = found.map(ExposeSecret::expose_secret).filter(|value| !value.is_empty());
            if found != secret.as_ref().map(ExposeSecret::expose_secret) {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

/// One of the titles that fit, which have to be one.
pub(super) fn only<T>(mut found: Vec<T>, item: &str, place: &str) -> Result<Option<T>, VaultError> {
    match found.len() {
        0 | 1 => Ok(found.pop()),
        count => Err(VaultError::Ambiguous {
            place: place.to_owned(),
            what: format!("items with the title '{item}'"),
            count,
        }),
    }
}

/// A field that an item does not have yet.
pub(super) fn new_field(name: &str, secret: &SecretString) -> Value {
    let kind = if name == "username" { "STRING" } else { "CONCEALED" };
    json!({"label": name, "type": kind, "value": secret.expose_secret()})
}

/// A login with these fields.
pub(super) fn new_item(title: &str, fields: &Fields) -> Value {
    let fields: Vec<Value> = fields
        .iter()
        .filter_map(|(name, secret)| {
            let mut field = new_field(name, secret.as_ref()?);
            // A login has these two by itself.
            if let "username" | "password" = *name {
                field["id"] = (*name).into();
                field["purpose"] = name.to_ascii_uppercase().into();
            }
            Some(field)
        })
        .collect();
    json!({"title": title, "category": "LOGIN", "fields": fields})
}

/// The secrets among fields, to take them out of what others say.
pub(super) fn secrets(fields: &Fields) -> Vec<&str> {
    fields.iter().filter_map(|(_, secret)| Some(secret.as_ref()?.expose_secret())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_is_found_by_its_label_then_by_its_id_and_two_of_a_label_are_no_guess() {
        let item: Item = serde_json::from_value(json!({
            "id": "i", "title": "bmc-a", "vault": {"id": "v"}, "fields": [
                {"id": "username", "label": "Benutzername", "value": "root"},
                {"id": "x1", "label": "password", "value": "one"},
                {"id": "x2", "label": "token", "value": "a"}, {"id": "x3", "label": "token", "value": "b"},
                {"id": "x4", "label": "empty", "value": ""}, {"id": "x5", "label": null, "value": null}, {},
            ],
        }))
        .unwrap();
        let value = |name: &str| item.value("bmc-a", name, "the vault");
        assert_eq!(value("username").unwrap().expose_secret(), "root");
        assert_eq!(value("password").unwrap().expose_secret(), "one");
        assert!(matches!(value("token"), Err(VaultError::Ambiguous { count: 2, .. })));
        for name in ["empty", "x5", "none"] {
            assert!(matches!(value(name), Err(VaultError::Missing { .. })), "{name}");
        }
        assert!(!format!("{item:?}").contains("root"), "{item:?}");
    }
}

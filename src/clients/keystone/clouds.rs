//! Reads clouds.yaml with its secure.yaml, and the variables `OS_…`, as OpenStack's own clients do
//! (<https://docs.openstack.org/openstacksdk/latest/user/config/configuration.html>).
//!
//! `verify` and `cacert` of a cloud are not read: which certificates are trusted is said by `trust` of muster's own
//! configuration, so that a site that checks none can be seen.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use secrecy::zeroize::Zeroizing;
use serde_json::{Map, Value};

use super::KeystoneError;
use super::account::Fields;

/// More than that is no clouds.yaml.
const FILE_MAX: u64 = 1024 * 1024;
/// What nobody but its owner may read.
const SECRETS: [&str; 3] = ["password", "application_credential_secret", "token"];

/// What the variables say.
pub(super) enum Environment {
    /// `OS_CLOUD` names a cloud.
    Cloud(String),
    Fields(Fields),
}

/// The variables, in the words of clouds.yaml.
pub(super) fn environment() -> Environment {
    let var = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    if let (Some(cloud), None) = (var("OS_CLOUD"), var("OS_AUTH_URL")) {
        return Environment::Cloud(cloud);
    }
    let known = std::env::vars().filter_map(|(name, value)| {
        let field = name.strip_prefix("OS_")?.to_ascii_lowercase();
        Some((field, Zeroizing::new(value)))
    });
    Environment::Fields(known.collect())
}

/// A cloud of the first clouds.yaml that is there, with its place for messages. Reading may block: it is done on a thread.
pub(super) async fn cloud(name: &str, file: Option<&Path>) -> Result<(String, Fields), KeystoneError> {
    let (name, file) = (name.to_owned(), file.map(Path::to_owned));
    let read = tokio::task::spawn_blocking(move || read(&name, file));
    read.await.unwrap_or_else(|e| Err(KeystoneError::Account { place: "clouds.yaml".into(), what: e.to_string() }))
}

fn read(name: &str, file: Option<PathBuf>) -> Result<(String, Fields), KeystoneError> {
    let var = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let places = match file.or_else(|| var("OS_CLIENT_CONFIG_FILE")) {
        Some(file) => vec![file],
        None => {
            let own = directories::BaseDirs::new().map(|dirs| dirs.config_dir().join("openstack/clouds.yaml"));
            [Some(PathBuf::from("clouds.yaml")), own, Some(PathBuf::from("/etc/openstack/clouds.yaml"))]
                .into_iter()
                .flatten()
                .collect()
        }
    };
    let wrong =
        |place: &Path, what: String| Err(KeystoneError::Account { place: format!("'{}'", place.display()), what });
    let Some(path) = places.iter().find(|path| path.exists()) else {
        return wrong(&places[0], "is not there".to_owned());
    };
    let Some(found) = table(path, name)? else {
        return wrong(path, format!("has no cloud '{name}'"));
    };
    let secure = var("OS_CLIENT_SECURE_FILE").unwrap_or_else(|| path.with_file_name("secure.yaml"));
    let secret = if secure.exists() { table(&secure, name)? } else { None };
    let mut fields = Fields::new();
    for cloud in [Some(found), secret].into_iter().flatten() {
        // What stands in `auth` is one with what stands beside it.
        let auth = cloud.get("auth").and_then(Value::as_object);
        for (key, value) in cloud.iter().chain(auth.into_iter().flatten()) {
            if let Some(text) = text(value) {
                fields.insert(key.clone(), Zeroizing::new(text));
            }
        }
    }
    Ok((format!("the cloud '{name}' of '{}'", path.display()), fields))
}

/// The table of a cloud in a file. One that holds a secret has to be its owner's alone.
fn table(path: &Path, name: &str) -> Result<Option<Map<String, Value>>, KeystoneError> {
    let wrong = |what: String| KeystoneError::Account { place: format!("'{}'", path.display()), what };
    let meta = std::fs::metadata(path).map_err(|e| wrong(format!("can't be read: {e}")))?;
    if meta.len() > FILE_MAX {
        return Err(wrong(format!("is larger than {FILE_MAX} bytes")));
    }
    let text = Zeroizing::new(std::fs::read_to_string(path).map_err(|e| wrong(format!("can't be read: {e}")))?);
    // The parser's own words quote the text, which may be a secret.
    let whole: Value = serde_saphyr::from_str(&text).map_err(|_| wrong("is no YAML that can be read".to_owned()))?;
    let Some(cloud) = whole["clouds"][name].as_object() else { return Ok(None) };
    let has_secret = |table: &Map<String, Value>| SECRETS.iter().any(|key| table.contains_key(*key));
    let mode = meta.permissions().mode() & 0o7777;
    if mode & 0o077 != 0 && (has_secret(cloud) || cloud.get("auth").and_then(Value::as_object).is_some_and(has_secret))
    {
        let path = path.display();
        return Err(wrong(format!("holds a secret and has mode {mode:04o}: others can read it (chmod 600 '{path}')")));
    }
    Ok(Some(cloud.clone()))
}

fn text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        // A project that is all digits, and `system_scope: all`, are what people write without quotes.
        Value::Number(number) => Some(number.to_string()),
        Value::Bool(flag) => Some(flag.to_string()),
        _ => None,
    }
}

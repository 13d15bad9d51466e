//! Who logs in at Keystone, and with what: from the configuration and the vault, from a cloud of clouds.yaml, or from the
//! variables `OS_…`. Read anew at each login, so that what is rotated is seen.

use std::collections::BTreeMap;

use secrecy::ExposeSecret;
use secrecy::zeroize::Zeroizing;
use serde_json::{Value, json};
use url::Url;

use super::{KeystoneError, clouds};
use crate::clients::vault::Vault;
use crate::config::settings::{KeystoneAccount, KeystoneMethod, KeystoneScope};

/// What OpenStack's own clients know of an account, by the names that it has in clouds.yaml.
pub(super) type Fields = BTreeMap<String, Zeroizing<String>>;

/// A login, ready to be asked for.
pub(super) struct Account {
    pub auth_url: Url,
    /// For messages.
    pub who: String,
    /// The whole body, with its secret.
    pub body: Value,
    pub region: Option<String>,
    pub interface: Option<String>,
}

/// Reads the account.
pub(super) async fn read(from: &KeystoneAccount, vault: &Vault) -> Result<Account, KeystoneError> {
    match from {
        KeystoneAccount::Given { auth_url, method } => {
            let (who, body) = given(method, vault).await?;
            Ok(Account { auth_url: auth_url.clone(), who, body, region: None, interface: None })
        }
        KeystoneAccount::Cloud { name, file } => {
            let (place, fields) = clouds::cloud(name, file.as_deref()).await?;
            of_fields(&place, &fields)
        }
        KeystoneAccount::Environment => match clouds::environment() {
            clouds::Environment::Cloud(name) => {
                let (place, fields) = clouds::cloud(&name, None).await?;
                of_fields(&place, &fields)
            }
            clouds::Environment::Fields(fields) => of_fields("the environment (OS_…)", &fields),
        },
    }
}

async fn given(method: &KeystoneMethod, vault: &Vault) -> Result<(String, Value), KeystoneError> {
    Ok(match method {
        KeystoneMethod::Password { username, user_domain, password, scope } => {
            let password = vault.resolve(password).await?;
            let scope = match scope {
                KeystoneScope::System => json!({"system": {"all": true}}),
                KeystoneScope::Project { name, domain } => {
                    json!({"project": {"name": name, "domain": {"name": domain}}})
                }
            };
            let user = json!({"name": username, "domain": {"name": user_domain}, "password": password.expose_secret()});
            (username.clone(), by_password(user, scope))
        }
        // It has its scope in itself: one beside it is a 401.
        KeystoneMethod::ApplicationCredential { id, secret } => {
            let secret = vault.resolve(secret).await?;
            let credential = json!({"id": id, "secret": secret.expose_secret()});
            (format!("application credential {id}"), by_credential(credential))
        }
    })
}

fn by_password(user: Value, scope: Value) -> Value {
    json!({"auth": {"identity": {"methods": ["password"], "password": {"user": user}}, "scope": scope}})
}

fn by_credential(credential: Value) -> Value {
    json!({"auth": {"identity": {"methods": ["application_credential"], "application_credential": credential}}})
}

/// A login from the fields of a cloud. What is told of a wrong one is never a value.
pub(super) fn of_fields(place: &str, fields: &Fields) -> Result<Account, KeystoneError> {
    let get = |name: &str| fields.get(name).map(|text| text.trim()).filter(|text| !text.is_empty());
    let any = |names: &[&str]| names.iter().find_map(|name| get(name));
    let wrong = |what: String| KeystoneError::Account { place: place.to_owned(), what };
    let need = |name: &str| get(name).ok_or_else(|| wrong(format!("has no '{name}'")));
    let auth_url = need("auth_url")?.parse::<Url>().ok().filter(|url| matches!(url.scheme(), "http" | "https"));
    let auth_url = auth_url.ok_or_else(|| wrong("has an 'auth_url' that is no URL".to_owned()))?;
    let kind = get("auth_type").unwrap_or_default();
    if !matches!(kind, "" | "password" | "v3password" | "v3applicationcredential") {
        return Err(wrong(
            "has an 'auth_type' that muster does not make: 'password' or 'v3applicationcredential'".into(),
        ));
    }
    let named = |id: &[&str], name: &[&str], domain: [&str; 2]| -> Option<Value> {
        if let Some(id) = any(id) {
            return Some(json!({"id": id}));
        }
        let name = any(name)?;
        let domain = match (any(&[domain[0], "default_domain_id"]), any(&[domain[1], "default_domain_name"])) {
            (Some(id), _) => json!({"id": id}),
            (None, name) => json!({"name": name.or(get("default_domain")).unwrap_or("Default")}),
        };
        Some(json!({"name": name, "domain": domain}))
    };
    let user = || named(&["user_id"], &["username", "user_name"], ["user_domain_id", "user_domain_name"]);
    let is_credential = kind == "v3applicationcredential" || get("application_credential_secret").is_some();
    let (who, body) = if is_credential {
        let secret = need("application_credential_secret")?;
        match (get("application_credential_id"), get("application_credential_name")) {
            (Some(id), _) => {
                (format!("application credential {id}"), by_credential(json!({"id": id, "secret": secret})))
            }
            // By its name it is one of a user's.
            (None, Some(name)) => {
                let user =
                    user().ok_or_else(|| wrong("names an application credential, and not whose it is".into()))?;
                let credential = json!({"name": name, "secret": secret, "user": user});
                (format!("application credential {name}"), by_credential(credential))
            }
            (None, None) => return Err(wrong("has no 'application_credential_id'".to_owned())),
        }
    } else {
        let mut user = user().ok_or_else(|| wrong("has no 'username'".to_owned()))?;
        let who = any(&["username", "user_name", "user_id"]).unwrap_or_default().to_owned();
        user["password"] = json!(need("password")?);
        let project = named(
            &["project_id", "tenant_id"],
            &["project_name", "tenant_name"],
            ["project_domain_id", "project_domain_name"],
        );
        let scope = match (get("system_scope"), project) {
            (Some("all"), _) => json!({"system": {"all": true}}),
            (Some(_), _) => return Err(wrong("has a 'system_scope' other than 'all'".to_owned())),
            (None, Some(project)) => json!({"project": project}),
            (None, None) => return Err(wrong("has neither a project nor a 'system_scope'".to_owned())),
        };
        (who, by_password(user, scope))
    };
    let interface = any(&["interface", "endpoint_type"]).map(|word| word.trim_end_matches("URL").to_owned());
    Ok(Account { auth_url, who, body, region: get("region_name").map(str::to_owned), interface })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(fields: &[(&str, &str)]) -> Result<Account, KeystoneError> {
        let base = [("auth_url", "https://k.example.com/v3")];
        let all = base.iter().chain(fields);
        of_fields("cloud 'x'", &all.map(|(k, v)| ((*k).to_owned(), Zeroizing::new((*v).to_owned()))).collect())
    }

    /// Proves: K3
    #[test]
    fn accounts_are_read_as_openstacks_own_clients_read_them() {
        let user = [("username", "m"), ("password", "p")];
        let with = |more: &[(&str, &str)]| of(&[&user[..], more].concat()).unwrap().body["auth"].clone();
        let auth = with(&[("project_name", "enrol"), ("user_domain_id", "default")]);
        assert_eq!(
            auth["identity"]["password"]["user"],
            json!({"name": "m", "domain": {"id": "default"}, "password": "p"})
        );
        assert_eq!(auth["scope"], json!({"project": {"name": "enrol", "domain": {"name": "Default"}}}));
        assert_eq!(with(&[("tenant_name", "t")])["scope"]["project"]["name"], "t");
        assert_eq!(with(&[("project_id", "7")])["scope"], json!({"project": {"id": "7"}}));
        assert_eq!(with(&[("system_scope", "all")])["scope"], json!({"system": {"all": true}}));
        let by_id = of(&[("application_credential_id", "i"), ("application_credential_secret", "s")]).unwrap();
        assert_eq!(by_id.body["auth"]["identity"]["application_credential"], json!({"id": "i", "secret": "s"}));
        assert!(by_id.body["auth"]["scope"].is_null(), "it has its scope in itself");
        let by_name = [("application_credential_name", "n"), ("application_credential_secret", "s"), ("username", "m")];
        let by_name = of(&by_name).unwrap().body["auth"]["identity"]["application_credential"].clone();
        assert_eq!(by_name["user"], json!({"name": "m", "domain": {"name": "Default"}}));
        let place =
            of(&[&user[..], &[("project_id", "7"), ("region_name", "north"), ("endpoint_type", "internalURL")]]
                .concat());
        let place = place.unwrap();
        assert_eq!((place.region.as_deref(), place.interface.as_deref()), (Some("north"), Some("internal")));
    }

    /// Proves: K3, Z1
    #[test]
    fn what_an_account_lacks_is_named_and_no_value_of_it_is() {
        for (fields, lacks) in [
            (vec![("username", "m"), ("project_id", "7")], "'password'"),
            (vec![("username", "m"), ("password", "canary")], "neither a project nor"),
            (vec![("password", "canary"), ("project_id", "7")], "'username'"),
            (vec![("application_credential_secret", "canary")], "'application_credential_id'"),
            (vec![("application_credential_secret", "canary"), ("application_credential_name", "n")], "whose it is"),
            (vec![("auth_type", "v3oidcpassword"), ("password", "canary")], "'auth_type'"),
            (vec![("username", "m"), ("password", "canary"), ("system_scope", "some")], "'system_scope'"),
        ] {
            let error = of(&fields).err().unwrap_or_else(|| panic!("{fields:?}"));
            let text = format!("{error} {error:?}");
            assert!(text.contains(lacks) && text.contains("cloud 'x'") && !text.contains("canary"), "{text}");
        }
    }
}

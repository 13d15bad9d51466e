//! Accounts as most firmware keeps them: numbered, each with a role, some with types.

use axum::http::StatusCode;
use serde_json::{Map, Value};

use super::fields::{flag, text, texts};
use super::said::Refusal;
use super::settings::{Settings, User};
use crate::lab::machine::Machine;

/// The accounts of a BMC.
pub(super) const ACCOUNTS: &str = "/redfish/v1/AccountService/Accounts";

/// What a firmware takes.
pub(super) struct Rules {
    /// Shortest and longest password.
    pub password: (usize, usize),
    pub roles: &'static [&'static str],
    /// Types that can be chosen; empty where it has one table for all.
    pub types: &'static [&'static str],
    /// Those of an account that nobody chose any for.
    pub usual: &'static [&'static str],
    /// A type is added with the password in the same request only (Q46).
    pub types_want_password: bool,
}

impl Rules {
    /// An account as it is created where a request says nothing else.
    pub fn blank(&self) -> User {
        let types = self.usual.iter().map(|word| (*word).to_owned()).collect();
        User { name: String::new(), role: "ReadOnly".to_owned(), enabled: true, types }
    }

    /// Takes over the members of a request; the password, where there is one.
    pub fn merge(&self, user: &mut User, body: &Map<String, Value>) -> Result<Option<String>, Refusal> {
        let mut secret = None;
        for (key, value) in body {
            match key.as_str() {
                "UserName" => {
                    user.name = text(value, key)?;
                    let plain = user.name.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c));
                    if !plain || user.name.len() > 16 {
                        return Err(Refusal::value(key));
                    }
                }
                "Password" => secret = Some(self.password(value)?),
                "RoleId" => {
                    user.role = text(value, key)?;
                    if !self.roles.contains(&user.role.as_str()) {
                        return Err(Refusal::value(key));
                    }
                }
                "Enabled" => user.enabled = flag(value, key)?,
                "AccountTypes" if self.types.is_empty() => return Err(Refusal::read_only(key)),
                "AccountTypes" => {
                    let words = texts(value, key)?;
                    if words.is_empty() || words.iter().any(|word| !self.types.contains(&word.as_str())) {
                        return Err(Refusal::value(key));
                    }
                    let adds = words.iter().any(|word| !user.types.contains(word));
                    if adds && self.types_want_password && !body.contains_key("Password") {
                        return Err(Refusal::value("Password"));
                    }
                    user.types = words;
                }
                other => return Err(Refusal::unknown(other)),
            }
        }
        Ok(secret)
    }

    /// A password that is right in length, and has a letter and a digit.
    pub fn password(&self, value: &Value) -> Result<String, Refusal> {
        let password = text(value, "Password")?;
        let has = |kind: fn(&u8) -> bool| password.as_bytes().iter().any(kind);
        let (min, max) = self.password;
        let good = (min..=max).contains(&password.len())
            && password.bytes().all(|b| b.is_ascii_graphic())
            && has(u8::is_ascii_digit)
            && has(u8::is_ascii_alphabetic);
        if good { Ok(password) } else { Err(Refusal::value("Password")) }
    }
}

/// The number in the path of an account.
pub(super) fn number(path: &str) -> Option<u32> {
    path.strip_prefix(ACCOUNTS)?.strip_prefix('/')?.parse().ok()
}

/// Changes an account, or fills the place of one that has no user. Gives the user's name.
pub(super) fn change(
    machine: &mut Machine,
    settings: &mut Settings,
    number: u32,
    body: &Map<String, Value>,
    rules: &Rules,
) -> Result<String, Refusal> {
    let former = settings.users.get(&number).cloned();
    let mut user = former.clone().unwrap_or_else(|| rules.blank());
    let secret = rules.merge(&mut user, body)?;
    if user.name.is_empty() {
        return Err(Refusal::value("UserName"));
    }
    if settings.users.iter().any(|(other, u)| *other != number && u.name == user.name) {
        return Err(Refusal::exists(&user.name));
    }
    let known = former.and_then(|former| machine.bmc.accounts.remove(&former.name));
    let secret = secret.or(known).ok_or_else(|| Refusal::value("Password"))?;
    machine.bmc.accounts.insert(user.name.clone(), secret);
    let name = user.name.clone();
    settings.users.insert(number, user);
    Ok(name)
}

/// Deletes an account with its password.
pub(super) fn delete(machine: &mut Machine, settings: &mut Settings, number: u32) {
    if let Some(user) = settings.users.remove(&number) {
        machine.bmc.accounts.remove(&user.name);
    }
}

/// A password that has to be changed before anything else is answered.
pub(super) fn password_change(account: &str) -> Refusal {
    let message = format!(
        "The password provided for this account must be changed before access is granted. PATCH the Password property for this account located at the target URI '{account}' to complete this process."
    );
    Refusal::new(
        StatusCode::FORBIDDEN,
        "PasswordChangeRequired",
        &message,
        &[account],
        "Critical",
        "Change the password for this account using a PATCH to the Password property at the URI provided.",
    )
}

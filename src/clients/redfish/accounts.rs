//! Accounts of a BMC: finding one by its user name, and what the BMC demands of a password.

use secrecy::{ExposeSecret, SecretString};
use serde_json::{Value, json};

use super::collection::Skipped;
use super::error::RedfishError;
use super::resource::Resource;
use super::service::Redfish;

/// The account service, with all accounts that could be read.
#[derive(Debug)]
pub struct Accounts {
    pub service: Resource,
    /// The collection, to create in.
    pub path: String,
    pub members: Vec<Resource>,
    pub skipped: Vec<Skipped>,
    /// What the collection takes, by its `Allow`; `None`: it does not say.
    pub methods: Option<Vec<String>>,
}

/// An account as it is wanted. The password is not here: it is in the request only.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WantedAccount {
    pub username: String,
    pub role: &'static str,
    /// What an account says of its types is meant: see [`Dialect::has_account_types`](super::dialect::Dialect).
    pub typed: bool,
}

/// What a BMC demands of a password, as far as it says. What it says nothing of it may refuse all the same.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PasswordRules {
    pub min: Option<u64>,
    pub max: Option<u64>,
    pub letter: bool,
    pub upper: bool,
    pub digit: bool,
    /// Something that is neither letter nor digit.
    pub mark: bool,
}

impl PasswordRules {
    /// Why a password does not fit. Says the rule and never the password.
    pub fn why_not(&self, password: &str) -> Option<String> {
        let (length, min) = (password.len() as u64, self.min.unwrap_or(1));
        if length < min || self.max.is_some_and(|max| length > max) {
            let most = self.max.map_or("any number".to_owned(), |max| max.to_string());
            return Some(format!("it has {length} characters, {min} to {most} are allowed"));
        }
        if !password.bytes().all(|b| b.is_ascii_graphic()) {
            return Some("it has a blank, or a character that is not printable ASCII".to_owned());
        }
        let has = |kind: fn(&u8) -> bool| password.as_bytes().iter().any(kind);
        let lacks = [
            (self.letter && !has(u8::is_ascii_alphabetic), "letter"),
            (self.upper && !has(u8::is_ascii_uppercase), "upper case letter"),
            (self.digit && !has(u8::is_ascii_digit), "digit"),
            (self.mark && !has(u8::is_ascii_punctuation), "mark"),
        ];
        let lacks: Vec<&str> = lacks.into_iter().filter(|(lacks, _)| *lacks).map(|(_, what)| what).collect();
        (!lacks.is_empty()).then(|| format!("it has no {}, and the BMC says that it wants one", lacks.join(" and no ")))
    }
}

/// Reads the accounts; `None` where the BMC has no accounts to speak of.
pub async fn read(redfish: &Redfish, root: &Resource) -> Result<Option<Accounts>, RedfishError> {
    // Some AMI firmware loses its root's links until the BMC is reset (Q36).
    let path = root.link("AccountService").unwrap_or_else(|| "/redfish/v1/AccountService".to_owned());
    let service = match redfish.get(&path).await {
        Ok(service) => service,
        Err(e) if e.is_absent() => return Ok(None),
        Err(e) => return Err(e),
    };
    let Some(path) = service.link("Accounts") else { return Ok(None) };
    let listing = match redfish.list(&path).await {
        Ok(listing) => listing,
        Err(e) if e.is_absent() => return Ok(None),
        Err(e) => return Err(e),
    };
    let (members, skipped, methods) = (listing.members, listing.skipped, listing.methods);
    Ok(Some(Accounts { service, path, members, skipped, methods }))
}

impl Accounts {
    /// The account of a user. Names are compared exactly: BMCs tell `ADMIN` from `admin`.
    pub fn of(&self, username: &str) -> Option<&Resource> {
        self.members.iter().find(|account| account.text("UserName").as_deref() == Some(username))
    }

    /// The first account of a fixed number that nobody has.
    pub fn unused(&self) -> Option<&Resource> {
        self.members.iter().find(|account| account.text("UserName").is_none())
    }

    /// Whether accounts here say which interfaces they are for. Older firmware has one table for all and does not know
    /// the member.
    pub fn have_types(&self) -> bool {
        self.members.iter().any(|account| account.at("AccountTypes").is_some_and(Value::is_array))
    }

    /// What the standard's account service says of passwords: their length.
    pub fn password_rules(&self) -> PasswordRules {
        let limit = |name| self.service.number(name).filter(|n| *n > 0);
        PasswordRules { min: limit("MinPasswordLength"), max: limit("MaxPasswordLength"), ..PasswordRules::default() }
    }
}

/// The interfaces that an account is for; `None` where the firmware does not say.
pub fn types_of(account: &Resource) -> Option<Vec<String>> {
    let list = account.at("AccountTypes")?.as_array()?;
    Some(list.iter().filter_map(|word| Some(word.as_str()?.to_owned())).collect())
}

/// The members of an account that is right but for its password, with how they read now where they differ.
pub fn differences(account: &Resource, wanted: &WantedAccount) -> Vec<(&'static str, String, String)> {
    let mut found = Vec::new();
    let role = account.text("RoleId").unwrap_or_else(|| "-".to_owned());
    if role != wanted.role {
        found.push(("role", role, wanted.role.to_owned()));
    }
    if account.flag("Enabled") != Some(true) {
        let word = account.flag("Enabled").map_or("-", |_| "off");
        found.push(("enabled", word.to_owned(), "on".to_owned()));
    }
    if wanted.typed
        && let Some(types) = types_of(account)
        && !types.iter().any(|word| word.eq_ignore_ascii_case("IPMI"))
    {
        found.push(("types", types.join(", "), with_ipmi(&types).join(", ")));
    }
    found
}

/// The types with IPMI among them.
pub fn with_ipmi(types: &[String]) -> Vec<String> {
    let mut all = types.to_vec();
    if !all.iter().any(|word| word.eq_ignore_ascii_case("IPMI")) {
        all.push("IPMI".to_owned());
    }
    all
}

/// The body that creates an account. `types` is sent only to firmware that knows it.
pub fn creation(wanted: &WantedAccount, password: &str, types: Option<&[String]>) -> Value {
    let mut body = json!({"UserName": wanted.username, "Password": password, "RoleId": wanted.role, "Enabled": true});
    if let Some(types) = types {
        body["AccountTypes"] = json!(types);
    }
    body
}

/// The body that mends an account. The password goes along whatever else is changed: a type cannot be added without
/// it (Q46).
pub fn mending(account: &Resource, wanted: &WantedAccount, password: &str) -> Value {
    let mut body = json!({"Password": password});
    for (what, _, _) in differences(account, wanted) {
        match what {
            "role" => body["RoleId"] = json!(wanted.role),
            "enabled" => body["Enabled"] = json!(true),
            _ => body["AccountTypes"] = json!(with_ipmi(&types_of(account).unwrap_or_default())),
        }
    }
    body
}

/// Gives an account a password, by a write to the account itself. Nothing else is sent along: a forced change takes no
/// other member.
pub async fn set_password(redfish: &Redfish, account: &str, password: &SecretString) -> Result<(), RedfishError> {
    redfish.patch(account, &json!({"Password": password.expose_secret()})).await.map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn account(body: Value) -> Resource {
        Resource { path: "/a/5".into(), body: body.as_object().unwrap().clone(), etag: None }
    }

    fn wanted() -> WantedAccount {
        WantedAccount { username: "ipmi_exporter".into(), role: "ReadOnly", typed: true }
    }

    /// Case: C-26
    #[test]
    fn a_password_is_held_against_what_the_bmc_says_and_never_shown() {
        let all = PasswordRules { min: Some(10), max: Some(20), letter: true, upper: true, digit: true, mark: true };
        let table = [
            (&all, "Right-one-17", None),
            (&all, "Short-1", Some("7 characters, 10 to 20")),
            (&all, "Much-longer-than-all-1", Some("22 characters")),
            (&all, "right-one-17", Some("no upper case letter")),
            (&all, "Right-one-two", Some("no digit")),
            (&all, "RightOneTwo17", Some("no mark")),
            (&all, "0123456789", Some("no letter and no upper case letter and no mark")),
            (&all, "Right-\u{f6}ne-17", Some("printable ASCII")),
            (&PasswordRules::default(), "x", None),
            (&PasswordRules::default(), "", Some("0 characters, 1 to any number")),
        ];
        for (rules, password, why) in table {
            let told = rules.why_not(password);
            assert_eq!(told.is_some(), why.is_some(), "{password}: {told:?}");
            assert!(why.is_none_or(|why| told.as_ref().unwrap().contains(why)), "{password}: {told:?}");
            assert!(password.len() < 2 || told.is_none_or(|told| !told.contains(password)), "{password}");
        }
    }

    #[test]
    fn a_right_account_differs_in_nothing_and_a_wrong_one_in_each_member() {
        let right = account(json!({"UserName": "ipmi_exporter", "RoleId": "ReadOnly", "Enabled": true,
            "AccountTypes": ["IPMI"]}));
        assert!(differences(&right, &wanted()).is_empty());
        let old = account(json!({"UserName": "ipmi_exporter", "RoleId": "ReadOnly", "Enabled": true}));
        assert!(differences(&old, &wanted()).is_empty());
        // One table for all interfaces, whatever word stands there.
        let untyped = WantedAccount { typed: false, ..wanted() };
        let one = account(json!({"RoleId": "ReadOnly", "Enabled": true, "AccountTypes": ["Redfish"]}));
        assert!(differences(&one, &untyped).is_empty());
        assert_eq!(mending(&one, &untyped, "pw"), json!({"Password": "pw"}));
        let wrong = account(json!({"RoleId": "Administrator", "Enabled": false, "AccountTypes": ["Redfish"]}));
        let words: Vec<&str> = differences(&wrong, &wanted()).iter().map(|(what, _, _)| *what).collect();
        assert_eq!(words, ["role", "enabled", "types"]);
        assert_eq!(
            mending(&wrong, &wanted(), "pw"),
            json!({"Password": "pw", "RoleId": "ReadOnly", "Enabled": true, "AccountTypes": ["Redfish", "IPMI"]})
        );
    }
}

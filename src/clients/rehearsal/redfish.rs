//! A BMC in a rehearsal: resources with the members that would have been written, and the accounts that would be there.

use std::collections::{BTreeMap, BTreeSet};

use secrecy::SecretString;
use serde_json::{Value, json};

use super::{Ask, Met, merge};

#[derive(Default)]
pub(super) struct World {
    /// By path: what was written into a resource that exists.
    patches: BTreeMap<String, Vec<Value>>,
    /// By path: resources that do not exist yet.
    created: BTreeMap<String, Value>,
    /// By path: whose account it is.
    accounts: BTreeMap<String, String>,
    /// Users who would have another password now. As one of them nothing is asked: the BMC would count a wrong login.
    new_passwords: BTreeSet<String>,
    /// Of users who gave themselves another password: the one that works as long as nothing is changed, which they go on
    /// to ask with.
    former: BTreeMap<String, SecretString>,
}

impl World {
    pub fn meet(&mut self, ask: &Ask<'_>) -> Met {
        let path = bare(ask.path);
        match (ask.method, ask.body) {
            _ if ask.is_read() => {
                let is_new = |user| self.new_passwords.contains(user) && !self.former.contains_key(user);
                if ask.user.is_some_and(is_new) {
                    return Met::ok(json!({ "@odata.id": path }));
                }
                self.created.get(&path).map_or(Met::Send, |body| Met::ok(body.clone()))
            }
            ("PATCH", Some(change)) => {
                let change = self.without_password(&path, change);
                match self.created.get_mut(&path) {
                    Some(resource) => merge(resource, &change),
                    None => self.patches.entry(path).or_default().push(change),
                }
                Met::ok(Value::Null)
            }
            ("POST", _) if path.contains("/Actions/") => Met::Answer { status: 204, body: Value::Null },
            ("POST", Some(body)) => {
                self.create(&path, body);
                Met::Answer { status: 201, body: Value::Null }
            }
            _ => Met::Refuse,
        }
    }

    /// Remembers the password with which a user is about to change an account: its own, where that is the user's or where it
    /// can't be seen whose it is.
    pub fn asks_with(&mut self, path: &str, user: &str, password: &SecretString) {
        if self.accounts.get(&bare(path)).is_none_or(|of| of == user) {
            self.accounts.insert(bare(path), user.to_owned());
            self.former.entry(user.to_owned()).or_insert_with(|| password.clone());
        }
    }

    pub fn imagine(&mut self, path: &str, members: &Value) {
        self.patches.entry(bare(path)).or_default().push(members.clone());
    }

    /// The password that a user's requests have to have in the world as it is.
    pub fn former(&self, user: &str) -> Option<SecretString> {
        self.former.get(user).cloned()
    }

    pub fn amend(&mut self, ask: &Ask<'_>, body: &mut Value) -> bool {
        let path = bare(ask.path);
        if let Some(user) = body["UserName"].as_str() {
            self.accounts.insert(path.clone(), user.to_owned());
        }
        let mut changed = false;
        for change in self.patches.get(&path).into_iter().flatten() {
            merge(body, change);
            changed = true;
        }
        changed |= self.name_places(body);
        let members: Vec<Value> = self
            .created
            .keys()
            .filter(|member| member.rsplit_once('/').is_some_and(|(folder, _)| folder == path))
            .map(|member| json!({ "@odata.id": member }))
            .collect();
        let Some(list) = body.get_mut("Members").and_then(Value::as_array_mut) else { return changed };
        // Where members come with what they hold, that is amended too.
        for member in list.iter_mut().filter(|member| member.as_object().is_some_and(|member| member.len() > 1)) {
            let path = member["@odata.id"].as_str().map(bare).unwrap_or_default();
            for change in self.patches.get(&path).into_iter().flatten() {
                merge(member, change);
                changed = true;
            }
        }
        changed |= !members.is_empty();
        list.extend(members);
        changed
    }

    /// iDRACs show accounts among their attributes too: a place that was filled has its user's name there.
    fn name_places(&self, body: &mut Value) -> bool {
        let Some(attributes) = body.get_mut("Attributes").and_then(Value::as_object_mut) else { return false };
        let mut changed = false;
        for (path, changes) in &self.patches {
            let place = path.rsplit_once('/').filter(|(folder, _)| folder.ends_with("/Accounts"));
            let Some((_, place)) = place else { continue };
            let named = changes.iter().rev().find_map(|change| change["UserName"].as_str());
            if let (Some(name), Some(shown)) = (named, attributes.get_mut(&format!("Users.{place}.UserName"))) {
                *shown = json!(name);
                changed = true;
            }
        }
        changed
    }

    fn create(&mut self, collection: &str, body: &Value) {
        let id = format!("planned-{}", self.created.len() + 1);
        let path = format!("{collection}/{id}");
        if let Some(user) = body["UserName"].as_str() {
            self.accounts.insert(path.clone(), user.to_owned());
        }
        let mut body = self.without_password(&path, body);
        merge(&mut body, &json!({ "@odata.id": path, "Id": id }));
        self.created.insert(path, body);
    }

    /// The change without its password; that there was one is remembered.
    fn without_password(&mut self, path: &str, change: &Value) -> Value {
        let mut change = change.clone();
        let had_one = change.as_object_mut().is_some_and(|members| members.remove("Password").is_some());
        let user = change["UserName"].as_str().map(str::to_owned).or_else(|| self.accounts.get(path).cloned());
        if had_one && let Some(user) = user {
            self.new_passwords.insert(user);
        }
        change
    }
}

fn bare(path: &str) -> String {
    path.trim_end_matches('/').to_owned()
}

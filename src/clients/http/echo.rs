//! Takes out of an answer what the request was sent with and nobody may read: some servers quote in a refusal what they
//! refuse, a password among it (Z1).

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use secrecy::ExposeSecret;
use secrecy::zeroize::Zeroizing;
use serde_json::Value;

use super::message::{Auth, Request};

/// What stands in the place of a secret.
const HIDDEN: &[u8] = b"***";
/// Shorter ones are in any text, and what is in any text tells nothing.
const LEAST: usize = 6;
/// Small letters alone make a word of a language: below this length it is one (AMI's BMCs leave the factory with `password`).
const WORD_MAX: usize = 11;

type Text = Zeroizing<String>;

/// The secrets of a request, in every form in which a server may quote them.
pub(super) struct Sent {
    /// What it was asked with: told back by refusals only. A good answer may hold the same word for another reason.
    credential: Vec<Text>,
    /// What it carries.
    carried: Vec<Text>,
}

impl Sent {
    /// Reads a request before it is sent. In its body a secret is known by the name that it stands under.
    pub fn of(request: &Request) -> Sent {
        let mut credential = Vec::new();
        match &request.auth {
            Auth::None => {}
            Auth::Basic { username, password } => {
                let password = password.expose_secret();
                let pair = Zeroizing::new(format!("{username}:{password}"));
                credential.push(Zeroizing::new(STANDARD.encode(pair.as_bytes())));
                credential.extend(forms(password));
            }
            Auth::Authorization(value) | Auth::Header { value, .. } => {
                let value = value.expose_secret();
                // Without the word for its kind: `Bearer`, `Token`.
                credential.extend(forms(value.rsplit(' ').next().unwrap_or(value)));
            }
        }
        let mut carried = Vec::new();
        if let Some(body) = &request.body {
            collect(body, false, &mut carried);
        }
        // A longer one first: a part of it may be another.
        for texts in [&mut credential, &mut carried] {
            texts.sort_by_key(|text| std::cmp::Reverse(text.len()));
        }
        Sent { credential, carried }
    }

    /// The body of an answer without them.
    pub fn hidden_in(&self, body: Vec<u8>, is_refusal: bool) -> Vec<u8> {
        let credential = self.credential.iter().filter(|_| is_refusal);
        let mut found = credential.chain(&self.carried).filter(|secret| holds(&body, secret.as_bytes())).peekable();
        if found.peek().is_none() {
            return body;
        }
        let found: Vec<&[u8]> = found.map(|secret| secret.as_bytes()).collect();
        let body = Zeroizing::new(body);
        let mut out = Vec::with_capacity(body.len());
        let mut rest = &body[..];
        while let Some(first) = rest.first() {
            match found.iter().find(|secret| rest.starts_with(secret)) {
                Some(secret) => {
                    out.extend_from_slice(HIDDEN);
                    rest = &rest[secret.len()..];
                }
                None => {
                    out.push(*first);
                    rest = &rest[1..];
                }
            }
        }
        out
    }
}

/// Members whose name says that they hold a secret; of a JSON patch those whose path does.
fn collect(value: &Value, is_secret: bool, found: &mut Vec<Text>) {
    match value {
        Value::String(text) if is_secret => found.extend(forms(text)),
        Value::Array(items) => items.iter().for_each(|item| collect(item, is_secret, found)),
        Value::Object(members) => {
            let by_path = members.get("path").and_then(Value::as_str).is_some_and(names_secret);
            for (name, member) in members {
                collect(member, names_secret(name) || by_path && name == "value", found);
            }
        }
        Value::String(_) | Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

fn names_secret(name: &str) -> bool {
    let low = name.to_ascii_lowercase();
    ["password", "secret", "token", "private_key"].iter().any(|word| low.contains(word))
}

/// As it is, and as JSON writes it: once, and inside texts that are JSON themselves. Ironic quotes a patch in a fault in a message.
fn forms(secret: &str) -> Vec<Text> {
    let is_word = secret.bytes().all(|b| b.is_ascii_lowercase());
    if secret.len() < LEAST || is_word && secret.len() <= WORD_MAX {
        return vec![];
    }
    let escaped = |text: &str| {
        let quoted = Zeroizing::new(Value::String(text.to_owned()).to_string());
        Zeroizing::new(quoted[1..quoted.len() - 1].to_owned())
    };
    let mut all = vec![Zeroizing::new(secret.to_owned())];
    for depth in 0..3 {
        all.push(escaped(&all[depth]));
    }
    all.dedup();
    all
}

fn holds(body: &[u8], secret: &[u8]) -> bool {
    !secret.is_empty() && body.windows(secret.len()).any(|window| window == secret)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::clients::http::Method;

    fn hidden(request: &Request, body: &str, is_refusal: bool) -> String {
        String::from_utf8(Sent::of(request).hidden_in(body.as_bytes().to_vec(), is_refusal)).unwrap()
    }

    /// Proves: Z1
    #[test]
    fn what_a_server_quotes_of_a_request_is_taken_out_of_its_answer() {
        let secret = "n\"ew/P4ss";
        let body = json!([{"op": "add", "path": "/driver_info/redfish_password", "value": secret},
                          {"op": "add", "path": "/driver_info/redfish_username", "value": "administrator"}]);
        let patch = Request::new(Method::PATCH, "/v1/nodes/x").json(body.clone());
        let fault = json!({"faultstring": format!("Couldn't apply patch '{body}'")});
        let deep = json!({"error_message": json!({"faultstring": body.to_string()}).to_string()});
        for quoted in [fault.clone(), json!({"error_message": fault.to_string()}), deep] {
            let told = hidden(&patch, &quoted.to_string(), true);
            assert!(!told.contains("ew/P4ss") && told.contains("***") && told.contains("administrator"), "{told}");
            assert!(serde_json::from_str::<Value>(&told).is_ok(), "{told}");
        }
        // What was carried is hidden in a good answer too: a 200 can hold messages.
        let change = json!({"Attributes": {"Users.2.Password": secret}});
        let change = Request::new(Method::PATCH, "/redfish/v1/x").json(change);
        assert_eq!(
            hidden(&change, r#"{"Message":"the value 'n\"ew/P4ss'"}"#, false),
            r#"{"Message":"the value '***'"}"#
        );
        // An object under such a name holds other things as well.
        let login = json!({"password": {"user": {"name": "administrator", "password": secret}}});
        let login = Request::new(Method::POST, "/v3/auth/tokens").json(login);
        assert_eq!(hidden(&login, "administrator n\"ew/P4ss", true), "administrator ***");
    }

    /// Proves: Z1
    #[test]
    fn a_credential_is_taken_out_of_refusals_in_each_form_and_left_in_what_is_no_refusal() {
        let basic = Auth::Basic { username: "root".into(), password: "hunter2+x".to_owned().into() };
        let read = Request::get("/").auth(basic);
        let encoded = STANDARD.encode("root:hunter2+x");
        assert_eq!(hidden(&read, &format!("no hunter2+x by Basic {encoded}"), true), "no *** by Basic ***");
        assert_eq!(hidden(&read, "hunter2+x", false), "hunter2+x");
        let bearer = Request::get("/").auth(Auth::Authorization("Bearer nbt_abc.defghi".to_owned().into()));
        assert_eq!(hidden(&bearer, "Invalid token nbt_abc.defghi", true), "Invalid token ***");
        let header = Auth::Header { name: "x-auth-token", value: "gAAAAAB1".to_owned().into() };
        assert_eq!(hidden(&Request::get("/").auth(header), "expired: gAAAAAB1", true), "expired: ***");
        let word = Auth::Basic { username: "admin".into(), password: "password".to_owned().into() };
        let said = "The password must be changed";
        assert_eq!(hidden(&Request::get("/").auth(word), said, true), said);
    }
}

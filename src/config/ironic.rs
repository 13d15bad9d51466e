//! Reads `[ironic.NAME]`: one Ironic instance and how it is asked (K3).

use std::time::Duration;

use super::load::{DAY, REQUEST_MAX};
use super::settings::{IronicAuth, IronicInstance, KeystoneAccount, KeystoneAuth, KeystoneMethod, KeystoneScope};
use super::table::Section;

/// One instance. `None` only where a mistake was told.
pub(super) fn instance(t: Section<'_>) -> Option<IronicInstance> {
    // Left out where a catalogue says it; whether there is one is known below.
    let url = t.has("url").then(|| t.url("url"));
    if url.is_none() {
        t.item("url");
    }
    let device_classes = t.required("device_classes").and_then(|item| {
        let classes = item.texts()?;
        if classes.is_empty() { item.fault("is empty: the instance would manage nothing") } else { Some(classes) }
    });
    let auth = t.required("auth").and_then(|item| item.section()).and_then(auth);
    let trust = t.trust("trust");
    let project = t.optional_text("project");
    let timeout = t.seconds_or("timeout_s", Duration::from_secs(60), REQUEST_MAX);
    let poll = t.seconds_or("poll_s", Duration::from_secs(30), DAY);
    if url.is_none() && auth.as_ref().is_some_and(|auth| !matches!(auth, IronicAuth::Keystone(_))) {
        t.fault_at("url", "is missing: only Keystone has a catalogue to find it in");
    }
    t.finish();
    let url = match url {
        Some(url) => Some(url?),
        None => None,
    };
    Some(IronicInstance { url, auth: auth?, trust, timeout, device_classes: device_classes?, project, poll })
}

#[derive(Clone, Copy)]
enum Kind {
    None,
    HttpBasic,
    Keystone,
}

fn auth(t: Section<'_>) -> Option<IronicAuth> {
    let kinds = [("none", Kind::None), ("http_basic", Kind::HttpBasic), ("keystone", Kind::Keystone)];
    // Without the kind nobody knows which keys belong to it.
    let Some(kind) = t.choice("kind", &kinds) else {
        if t.item("kind").is_none() {
            t.fault_at("kind", "is missing: 'none', 'http_basic' or 'keystone'");
        }
        return None;
    };
    let auth = match kind {
        Kind::None => Some(IronicAuth::None),
        Kind::HttpBasic => {
            let (username, password) = (t.text("username"), t.secret("password"));
            username.zip(password).map(|(username, password)| IronicAuth::HttpBasic { username, password })
        }
        Kind::Keystone => keystone(&t).map(|auth| IronicAuth::Keystone(Box::new(auth))),
    };
    t.finish();
    auth
}

fn keystone(t: &Section<'_>) -> Option<KeystoneAuth> {
    let region = t.optional_text("region");
    let words = [("public", "public"), ("internal", "internal"), ("admin", "admin")];
    let interface = t.item("interface").and_then(|item| item.choice(&words)).map(str::to_owned);
    let account = match (t.item("cloud").is_some(), t.flag_or("environment", false)) {
        (true, true) => {
            t.fault("has both a cloud and the environment; one of them is enough");
            None
        }
        (true, false) => cloud(t),
        (false, true) => Some(KeystoneAccount::Environment),
        (false, false) => given(t),
    };
    Some(KeystoneAuth { account: account?, region, interface })
}

/// A cloud of clouds.yaml, which has the whole account.
fn cloud(t: &Section<'_>) -> Option<KeystoneAccount> {
    let name = t.text("cloud");
    let file = t.item("clouds_file").and_then(|item| Some(item.path(item.text()?)));
    Some(KeystoneAccount::Cloud { name: name?, file })
}

fn given(t: &Section<'_>) -> Option<KeystoneAccount> {
    let auth_url = t.url("auth_url");
    let by_credential = t.item("application_credential_id").is_some();
    let by_password = t.item("username").is_some() || t.item("password").is_some();
    let method = match (by_credential, by_password) {
        (true, true) => {
            t.fault("has both an application credential and a user; one of them is enough");
            // All of them are known keys all the same.
            credential(t);
            password(t);
            None
        }
        (true, false) => credential(t),
        (false, _) => password(t),
    };
    Some(KeystoneAccount::Given { auth_url: auth_url?, method: method? })
}

fn credential(t: &Section<'_>) -> Option<KeystoneMethod> {
    let id = t.text("application_credential_id");
    let secret = t.secret("application_credential_secret");
    Some(KeystoneMethod::ApplicationCredential { id: id?, secret: secret? })
}

fn password(t: &Section<'_>) -> Option<KeystoneMethod> {
    let (username, password) = (t.text("username"), t.secret("password"));
    let user_domain = t.text_or("user_domain", "Default");
    let system = t.flag_or("system_scope", false);
    let project = t.optional_text("project");
    let domain = t.text_or("project_domain", "Default");
    let scope = match (system, project) {
        (true, None) => Some(KeystoneScope::System),
        (false, Some(name)) => Some(KeystoneScope::Project { name, domain }),
        (true, Some(_)) => {
            t.fault_at("system_scope", "a token has one scope: leave out 'project' or 'system_scope'");
            None
        }
        (false, None) => {
            t.fault_at("project", "is missing: name a project, or set system_scope = true");
            None
        }
    };
    Some(KeystoneMethod::Password { username: username?, user_domain, password: password?, scope: scope? })
}

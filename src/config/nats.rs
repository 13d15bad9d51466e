//! Reads `[nats]`: where changes are told, and which (O10).

use url::Url;

use super::settings::{NatsAuth, NatsSettings};
use super::table::{Item, Section, is_loopback, shown};

/// Messages that wait for a server, at most.
const QUEUE: u64 = 10_000;

/// `None` only where a mistake was told.
pub(super) fn nats(t: Section<'_>) -> Option<NatsSettings> {
    let servers = t.required("servers").and_then(|item| servers(&item));
    let auth = t.section("auth").map_or(Some(NatsAuth::None), auth);
    if auth.as_ref().is_some_and(|auth| *auth != NatsAuth::None)
        && servers.iter().flatten().any(|url: &Url| url.scheme() == "nats" && !is_loopback(url))
    {
        t.warn("servers", "credentials travel in clear over nats:// unless the server asks for TLS; write tls://");
    }
    let trust = t.trust("trust");
    let prefix = t.item("prefix").map_or(Some("muster".to_owned()), |item| {
        let text = item.text()?;
        let plain = text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_');
        if plain {
            Some(text.to_owned())
        } else {
            item.fault(format!("{} is not one segment of a subject: letters, digits, '-' and '_'", shown(text)))
        }
    });
    let publish_devices = t.flag_or("publish_devices", false);
    let publish_cables = t.flag_or("publish_cables", false);
    let cable_sites = t.item("cable_sites").map_or(Some(Vec::new()), |item| item.texts());
    if publish_cables && cable_sites.as_ref().is_some_and(Vec::is_empty) {
        t.warn("publish_cables", "no cable is told without sites in cable_sites");
    }
    let queue = t.whole_or("queue", QUEUE, 1, 1_000_000) as usize;
    t.finish();
    Some(NatsSettings {
        servers: servers?,
        auth: auth?,
        trust,
        prefix: prefix?,
        publish_devices,
        publish_cables,
        cable_sites: cable_sites?,
        queue,
    })
}

fn servers(item: &Item<'_>) -> Option<Vec<Url>> {
    let texts = item.texts()?;
    if texts.is_empty() {
        return item.fault("is empty: name a server, as in 'tls://nats.example.com:4222'");
    }
    let mut servers = Vec::new();
    for text in &texts {
        let url = Url::parse(text).ok().filter(|url| {
            let bare = matches!(url.path(), "" | "/") && url.query().is_none() && url.fragment().is_none();
            matches!(url.scheme(), "nats" | "tls") && url.host_str().is_some_and(|host| !host.is_empty()) && bare
        });
        match url {
            Some(url) if url.username().is_empty() && url.password().is_none() => servers.push(url),
            Some(_) => return item.fault("has credentials in it, which do not belong in this file"),
            // With an '@' in it there may be a password in it.
            None if text.contains('@') => return item.fault("has a text in it that is no server"),
            None => return item.fault(format!("{} is not of the form 'tls://HOST:PORT'", shown(text))),
        }
    }
    Some(servers)
}

#[derive(Clone, Copy)]
enum Kind {
    None,
    User,
    Token,
    Creds,
}

fn auth(t: Section<'_>) -> Option<NatsAuth> {
    let kinds = [("none", Kind::None), ("user", Kind::User), ("token", Kind::Token), ("creds", Kind::Creds)];
    // Without the kind nobody knows which keys belong to it.
    let Some(kind) = t.choice("kind", &kinds) else {
        if t.item("kind").is_none() {
            t.fault_at("kind", "is missing: 'none', 'user', 'token' or 'creds'");
        }
        return None;
    };
    let auth = match kind {
        Kind::None => Some(NatsAuth::None),
        Kind::User => {
            let (username, password) = (t.text("username"), t.secret("password"));
            username.zip(password).map(|(username, password)| NatsAuth::User { username, password })
        }
        Kind::Token => t.secret("token").map(NatsAuth::Token),
        Kind::Creds => t.secret("creds").map(NatsAuth::Creds),
    };
    t.finish();
    auth
}

#[cfg(test)]
mod tests {
    use super::super::parse;
    use super::*;

    fn read(table: &str) -> Result<Option<NatsSettings>, String> {
        let text = format!(
            "[netbox]\nurl = \"http://127.0.0.1\"\ntoken = \"env:T\"\n{table}\n[sites.osl1.gates]\nconfigure_dhcp = false\n"
        );
        parse(&text, "c").map(|settings| settings.nats).map_err(|errors| errors.to_string())
    }

    /// Proves: O10
    #[test]
    fn every_flag_is_off_by_default_and_cables_need_their_sites_too() {
        assert_eq!(read("").unwrap(), None);
        let bare = "[nats]\nservers = [\"nats://127.0.0.1:4222\"]\n";
        let tells = |more: &str| {
            let nats = read(&format!("{bare}{more}")).unwrap().unwrap();
            (nats.publish_devices, nats.tells_cables(), nats.tells_anything())
        };
        assert_eq!(tells(""), (false, false, false));
        assert_eq!(tells("publish_devices = true"), (true, false, true));
        assert_eq!(tells("publish_cables = true"), (false, false, false));
        assert_eq!(tells("cable_sites = [\"osl1\"]"), (false, false, false));
        assert_eq!(tells("publish_cables = true\ncable_sites = [\"osl1\"]"), (false, true, true));
    }

    #[test]
    fn servers_credentials_and_prefixes_that_are_none_are_refused() {
        for (wrong, says) in [
            ("[nats]", "servers: is missing"),
            ("[nats]\nservers = []", "is empty"),
            ("[nats]\nservers = [\"nats.example.com\"]", "tls://HOST:PORT"),
            ("[nats]\nservers = [\"https://nats.example.com\"]", "tls://HOST:PORT"),
            ("[nats]\nservers = [\"tls://u:canary@nats.example.com\"]", "credentials"),
            ("[nats]\nservers = [\"tls://n\"]\nprefix = \"a.b\"", "one segment"),
            (
                "[nats]\nservers = [\"tls://n\"]\nauth = { kind = \"token\", token = \"canary\" }",
                "reference to a secret",
            ),
            ("[nats]\nservers = [\"tls://n\"]\nauth = { kind = \"user\", username = \"u\" }", "password: is missing"),
        ] {
            let error = read(wrong).unwrap_err();
            assert!(error.contains(says) && !error.contains("canary"), "{wrong}: {error}");
        }
    }
}

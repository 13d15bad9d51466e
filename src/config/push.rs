//! Reads `[netbox.push]`: by what NetBox tells of changes (O9).

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

use url::Url;

use super::load::DAY;
use super::settings::{PostgresSettings, PushSettings, SecretRef, Trust, WebhookSettings};
use super::table::{Item, Section, is_loopback, shown};

/// PostgreSQL cuts longer identifiers, silently.
const CHANNEL_MAX: usize = 63;

/// `poll` is the cadence without push. `None` only where a mistake was told.
pub(super) fn push(t: Section<'_>, poll: Duration) -> Option<PushSettings> {
    let stretched = t.seconds_or("poll_s", Duration::from_secs(600).max(poll), DAY);
    if stretched < poll {
        t.fault_at("poll_s", "is shorter than netbox.poll_s: push is there to ask less often");
    }
    let webhook = t.section("webhook").map_or(Some(None), |section| webhook(section).map(Some));
    let postgres = t.section("postgres").map_or(Some(None), |section| postgres(section).map(Some));
    if matches!((&webhook, &postgres), (Some(None), Some(None))) {
        t.fault("names no source: add [netbox.push.webhook] or [netbox.push.postgres], or leave the table out");
    }
    t.finish();
    Some(PushSettings { poll: stretched, webhook: webhook?, postgres: postgres? })
}

fn webhook(t: Section<'_>) -> Option<WebhookSettings> {
    let default = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 8975);
    let listen = t.item("listen").map_or(Some(default), |item| item.socket("127.0.0.1:8975"));
    if listen.is_some_and(|at| !at.ip().is_loopback()) {
        t.warn("listen", "events come in clear: let a proxy with TLS listen there, and muster on a loopback address");
    }
    let path = t.item("path").map_or(Some("/netbox".to_owned()), |item| {
        let text = item.text()?;
        let plain = |c: char| c.is_ascii_alphanumeric() || "/-_.~".contains(c);
        if text.starts_with('/') && text.chars().all(plain) {
            Some(text.to_owned())
        } else {
            item.fault(format!("{} is not a path of letters, digits and '-', '_', '.', '~' behind a '/'", shown(text)))
        }
    });
    let secret = t.secret("secret");
    let silence = t.seconds_or("silence_s", Duration::from_secs(3600), DAY);
    t.finish();
    Some(WebhookSettings { listen: listen?, path: path?, secret: secret?, silence })
}

fn postgres(t: Section<'_>) -> Option<PostgresSettings> {
    let dsn = t.required("dsn").and_then(|item| dsn(&item));
    if dsn.as_ref().is_some_and(|dsn| !dsn.tls && !dsn.local) {
        t.warn("dsn", "sslmode=disable: what the database tells travels in clear");
    }
    let password = t.secret("password");
    let trust = t.trust("trust");
    let channel = t.item("channel").map_or(Some("muster_netbox".to_owned()), |item| {
        let text = item.text()?;
        let begins = text.starts_with(|c: char| c.is_ascii_lowercase() || c == '_');
        let plain = text.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_');
        if begins && plain && text.len() <= CHANNEL_MAX {
            Some(text.to_owned())
        } else {
            item.fault(format!(
                "{} is not a channel: at most {CHANNEL_MAX} lower case letters, digits and '_', with no digit first",
                shown(text)
            ))
        }
    });
    t.finish();
    Some(settings(dsn?, password?, trust, channel?))
}

fn settings(dsn: Dsn, password: SecretRef, trust: Trust, channel: String) -> PostgresSettings {
    let Dsn { host, port, database, user, tls, .. } = dsn;
    PostgresSettings { host, port, database, user, password, tls, trust, channel }
}

struct Dsn {
    host: String,
    port: u16,
    database: String,
    user: String,
    tls: bool,
    local: bool,
}

/// `postgres://USER@HOST[:PORT]/DATABASE[?sslmode=disable|require]`. Without a mode it is TLS but on this machine. The
/// modes that fall back to clear text by themselves are refused; which certificate is believed is said by `trust`.
fn dsn(item: &Item<'_>) -> Option<Dsn> {
    let text = item.text()?;
    // It is not shown where it can't be taken apart: there may be a password in it.
    let form = "'postgres://USER@HOST:PORT/DATABASE'";
    let Ok(url) = Url::parse(text) else { return item.fault(format!("is not of the form {form}")) };
    if url.password().is_some() {
        return item.fault("has a password in it, which belongs in a secret that 'password' refers to");
    }
    let decoded = |text: &str| {
        let pairs = format!("x={}", text.replace('+', "%2B"));
        url::form_urlencoded::parse(pairs.as_bytes()).next().map(|(_, value)| value.into_owned())
    };
    let user = decoded(url.username()).filter(|user| !user.is_empty());
    let database = decoded(url.path().trim_start_matches('/')).filter(|name| !name.is_empty() && !name.contains('/'));
    let host = url.host_str().map(|host| host.trim_matches(['[', ']']).to_owned()).filter(|host| !host.is_empty());
    let (true, Some(user), Some(database), Some(host)) =
        (matches!(url.scheme(), "postgres" | "postgresql"), user, database, host)
    else {
        return item.fault(format!("is not of the form {form}"));
    };
    let local = is_loopback(&url);
    let mut tls = !local;
    for (key, value) in url.query_pairs() {
        tls = match (&*key, &*value) {
            ("sslmode", "disable") => false,
            ("sslmode", "require" | "verify-ca" | "verify-full") => true,
            ("sslmode", _) => {
                return item.fault(format!("sslmode {} is not one of 'disable', 'require'", shown(&value)));
            }
            _ => return item.fault(format!("has {} behind its '?'; only 'sslmode' is known there", shown(&key))),
        };
    }
    Some(Dsn { host, port: url.port().unwrap_or(5432), database, user, tls, local })
}

#[cfg(test)]
mod tests {
    use super::super::parse;
    use super::*;

    fn read(table: &str) -> Result<PushSettings, String> {
        let text = format!(
            "[netbox]\nurl = \"http://127.0.0.1\"\ntoken = \"env:T\"\n{table}\n[sites.osl1.gates]\nconfigure_dhcp = false\n"
        );
        parse(&text, "c").map(|settings| settings.push.unwrap()).map_err(|errors| errors.to_string())
    }

    fn dsn_of(dsn: &str) -> Result<PostgresSettings, String> {
        let table = format!("[netbox.push.postgres]\npassword = \"env:P\"\ndsn = \"{dsn}\"");
        read(&table).map(|push| push.postgres.unwrap())
    }

    /// Proves: O9
    #[test]
    fn a_dsn_says_where_and_whether_by_tls() {
        let far = dsn_of("postgres://muster%40hall@db.example.com/netbox").unwrap();
        assert_eq!((far.host.as_str(), far.port, far.database.as_str()), ("db.example.com", 5432, "netbox"));
        assert_eq!((far.user.as_str(), far.tls, far.channel.as_str()), ("muster@hall", true, "muster_netbox"));
        assert!(!dsn_of("postgresql://m@127.0.0.1:5433/netbox").unwrap().tls);
        assert!(!dsn_of("postgresql://m@[::1]:5433/netbox").unwrap().tls);
        assert!(dsn_of("postgres://m@127.0.0.1/netbox?sslmode=require").unwrap().tls);
        assert!(!dsn_of("postgres://m@db.example.com/netbox?sslmode=disable").unwrap().tls);
        for (wrong, says) in [
            ("postgres://m:canary@db/netbox", "password"),
            ("postgres://db/netbox", "USER"),
            ("postgres://m@db", "DATABASE"),
            ("https://m@db/netbox", "postgres://"),
            ("postgres://m@db/netbox?sslmode=prefer", "'prefer'"),
            ("postgres://m@db/netbox?target_session_attrs=any", "'target_session_attrs'"),
        ] {
            let error = dsn_of(wrong).unwrap_err();
            assert!(error.contains(says) && !error.contains("canary"), "{wrong}: {error}");
        }
    }

    #[test]
    fn a_webhook_needs_an_address_a_path_and_a_secret() {
        let hook = read("[netbox.push.webhook]\nsecret = \"env:S\"").unwrap().webhook.unwrap();
        assert_eq!((hook.listen.to_string().as_str(), hook.path.as_str()), ("127.0.0.1:8975", "/netbox"));
        for (wrong, says) in [
            ("[netbox.push]", "names no source"),
            ("[netbox.push.webhook]", "secret: is missing"),
            ("[netbox.push.webhook]\nsecret = \"env:S\"\nlisten = \"8975\"", "address and a port"),
            ("[netbox.push.webhook]\nsecret = \"env:S\"\nlisten = \"127.0.0.1:0\"", "address and a port"),
            ("[netbox.push.webhook]\nsecret = \"env:S\"\npath = \"netbox\"", "behind a '/'"),
            ("[netbox.push.webhook]\nsecret = \"canary\"", "reference to a secret"),
            ("[netbox.push]\npoll_s = 5\n[netbox.push.webhook]\nsecret = \"env:S\"", "shorter than netbox.poll_s"),
            (
                "[netbox.push.postgres]\ndsn = \"postgres://m@db/n\"\npassword = \"env:P\"\nchannel = \"x; DROP\"",
                "is not a channel",
            ),
        ] {
            let error = read(wrong).unwrap_err();
            assert!(error.contains(says) && !error.contains("canary"), "{wrong}: {error}");
        }
    }
}

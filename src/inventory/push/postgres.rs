//! Listens to NetBox's database: a trigger notifies, and its payload says only what to read again.

use std::sync::Arc;
use std::time::Duration;

use futures::{StreamExt, stream};
use secrecy::ExposeSecret;
use tokio::sync::watch;
use tokio::time::timeout;
use tokio_postgres::config::SslMode;
use tokio_postgres::{AsyncMessage, Client, Config};
use tokio_util::sync::CancellationToken;

use super::again::{Again, Sink};
use super::health::Health;
use super::tls::Tls;
use super::{cancelled_within, longer};
use crate::clients::http;
use crate::clients::vault::{Vault, without};
use crate::config::settings::{PostgresSettings, Trust};
use crate::domain::text::neutralize_to;

/// Of a connection with its login, and of a statement.
const CONNECT: Duration = Duration::from_secs(15);
const ANSWER: Duration = Duration::from_secs(10);
/// Between two proofs that what is notified arrives.
const PROOF: Duration = Duration::from_secs(20);
/// Between two tries to connect.
const RETRY: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(60));
/// The trigger of `contrib/netbox-notify.sql`.
const TRIGGER: &str = "muster_notify";
/// Tables whose changes have to be told; the script has more, which are no reason not to count on the source.
const TABLES: [&str; 6] =
    ["dcim_device", "dcim_interface", "ipam_ipaddress", "dcim_macaddress", "dcim_cable", "dcim_cabletermination"];
/// Which of the tables have no enabled trigger for this channel.
const WITHOUT_TRIGGER: &str = r"
SELECT c.relname::text FROM pg_catalog.pg_class c
WHERE c.relname = ANY ($1) AND c.relkind IN ('r', 'p') AND NOT EXISTS (
    SELECT FROM pg_catalog.pg_trigger t
    WHERE t.tgrelid = c.oid AND t.tgname = $2 AND t.tgenabled IN ('O', 'A')
      AND split_part(encode(t.tgargs, 'escape'), '\000', 1) = $3)
ORDER BY 1";
const KNOWN_TABLES: &str =
    "SELECT count(*) FROM pg_catalog.pg_class WHERE relname = ANY ($1) AND relkind IN ('r', 'p')";

/// Why a session ended: the fact, and what to do about it.
struct Trouble {
    fact: String,
    action: String,
}

/// Listens until cancelled. A connection that is lost is made again, and what was notified meanwhile is made up for.
pub(super) async fn run(
    settings: &PostgresSettings,
    vault: &Vault,
    sink: &Sink,
    health: &Health,
    cancel: &CancellationToken,
) {
    let mut wait = RETRY.0;
    // Whether something may have been notified that nobody heard. Before the first session the observer has just begun,
    // with a full read.
    let mut missed = false;
    loop {
        let mut listened = false;
        let session = session(settings, vault, sink, health, missed, &mut listened);
        let Trouble { fact, action } = tokio::select! {
            () = cancel.cancelled() => return,
            trouble = session => trouble,
        };
        health.trouble(&fact, &action).await;
        if listened {
            (missed, wait) = (true, RETRY.0);
        }
        if cancelled_within(cancel, wait).await {
            return;
        }
        wait = longer(wait, RETRY.1);
    }
}

/// One connection, to its end.
async fn session(
    settings: &PostgresSettings,
    vault: &Vault,
    sink: &Sink,
    health: &Health,
    missed: bool,
    listened: &mut bool,
) -> Trouble {
    let (client, mut connection) = match connect(settings, vault).await {
        Ok(connected) => connected,
        Err(trouble) => return trouble,
    };
    let (pinged, pings) = watch::channel(0u64);
    // Both in one task: what the client asks goes on only while the connection is polled.
    let receive = async {
        let mut messages = stream::poll_fn(|cx| connection.poll_message(cx));
        loop {
            match messages.next().await {
                Some(Ok(AsyncMessage::Notification(told))) if told.channel() == settings.channel => {
                    match ping(told.payload()) {
                        Some(nonce) => drop(pinged.send_replace(nonce)),
                        None => sink.take(read(told.payload())),
                    }
                }
                Some(Ok(AsyncMessage::Notice(notice))) => {
                    tracing::debug!(notice = %neutralize_to(notice.message(), 200), "NetBox's database says");
                }
                Some(Ok(_)) => {}
                Some(Err(error)) => return lost(settings, &error.to_string()),
                None => return lost(settings, "it was closed"),
            }
        }
    };
    let work = async {
        if let Err(cause) = listen(&client, settings).await {
            return Trouble {
                fact: format!("channel '{}' of {} can't be listened to: {cause}", settings.channel, at(settings)),
                action: "connect to the primary server itself, past any pooler in transaction mode".to_owned(),
            };
        }
        *listened = true;
        // Whatever changed between the last read and now.
        sink.take(Again { delta: true, everything: missed, ..Again::default() });
        prove(&client, settings, health, pings).await
    };
    tokio::select! {
        trouble = receive => trouble,
        trouble = work => trouble,
    }
}

type Connection = tokio_postgres::Connection<tokio_postgres::Socket, super::tls::Stream>;

async fn connect(settings: &PostgresSettings, vault: &Vault) -> Result<(Client, Connection), Trouble> {
    let trouble = |fact: String, action: &str| Trouble { fact, action: action.to_owned() };
    let password = vault.resolve(&settings.password).await.map_err(|error| {
        trouble(format!("the password of {} ({}): {error}", at(settings), settings.password), "provide that secret")
    })?;
    // Where there is no TLS, no certificate is believed.
    let trust = if settings.tls { &settings.trust } else { &Trust::Pinned([0; 32]) };
    let tls = http::tls(trust).map_err(|cause| {
        trouble(format!("certificates for {}: {cause}", at(settings)), "mend netbox.push.postgres.trust")
    })?;
    let mut config = Config::new();
    config
        .host(&settings.host)
        .port(settings.port)
        .dbname(&settings.database)
        .user(&settings.user)
        .password(password.expose_secret())
        .application_name("muster")
        .connect_timeout(ANSWER)
        .keepalives_idle(Duration::from_secs(30))
        .ssl_mode(if settings.tls { SslMode::Require } else { SslMode::Disable });
    match timeout(CONNECT, config.connect(Tls(Arc::new(tls)))).await {
        Ok(Ok(connected)) => Ok(connected),
        Ok(Err(error)) => {
            let action = match error.as_db_error() {
                Some(_) => "let the role log in with that password (pg_hba.conf, docs/push.md)",
                None => "look whether that server is there, and what netbox.push.postgres says of TLS and certificates",
            };
            let said = without(&words(&error), &[password.expose_secret()]);
            Err(trouble(format!("{} can't be connected to: {said}", at(settings)), action))
        }
        Err(_) => Err(trouble(
            format!("{} did not answer within {} s", at(settings), CONNECT.as_secs()),
            "look whether that server is there",
        )),
    }
}

async fn listen(client: &Client, settings: &PostgresSettings) -> Result<(), String> {
    // An identifier can't be a parameter; the configuration lets nothing else through (`config::push`).
    let listen = format!("LISTEN \"{}\"", settings.channel);
    match timeout(ANSWER, client.batch_execute(&listen)).await {
        Ok(outcome) => outcome.map_err(|error| words(&error)),
        Err(_) => Err(format!("no answer within {} s", ANSWER.as_secs())),
    }
}

/// Proves again and again that a notification arrives and that the triggers stand; ends when one does not arrive.
async fn prove(
    client: &Client,
    settings: &PostgresSettings,
    health: &Health,
    mut pings: watch::Receiver<u64>,
) -> Trouble {
    loop {
        let nonce = rand::random::<u64>().max(1);
        let proof = async {
            let payload = format!("{{\"ping\":{nonce}}}");
            client.execute("SELECT pg_notify($1, $2)", &[&settings.channel, &payload]).await?;
            // The sender lives as long as the session.
            pings.wait_for(|heard| *heard == nonce).await.ok();
            let known: i64 = client.query_one(KNOWN_TABLES, &[&TABLES.as_slice()]).await?.get(0);
            let rows = client.query(WITHOUT_TRIGGER, &[&TABLES.as_slice(), &TRIGGER, &settings.channel]).await?;
            Ok::<_, tokio_postgres::Error>((known, rows.iter().map(|row| row.get(0)).collect::<Vec<String>>()))
        };
        match timeout(ANSWER, proof).await {
            Ok(Ok((0, _))) => {
                let fact = format!("{} has none of NetBox's tables", at(settings));
                health.trouble(&fact, "name NetBox's own database in netbox.push.postgres.dsn").await;
            }
            Ok(Ok((_, without))) if without.is_empty() => health.well().await,
            Ok(Ok((_, without))) => {
                let fact = format!(
                    "{} has no trigger for channel '{}' on '{}'",
                    at(settings),
                    settings.channel,
                    without.join("', '")
                );
                health.trouble(&fact, "apply contrib/netbox-notify.sql there").await;
            }
            Ok(Err(error)) => return lost(settings, &words(&error)),
            Err(_) => {
                return Trouble {
                    fact: format!(
                        "a notification through {} did not arrive within {} s",
                        at(settings),
                        ANSWER.as_secs()
                    ),
                    action: "connect to the primary server itself, past any pooler in transaction mode".to_owned(),
                };
            }
        }
        tokio::time::sleep(PROOF).await;
    }
}

fn lost(settings: &PostgresSettings, cause: &str) -> Trouble {
    Trouble {
        fact: format!("the connection to {} was lost: {}", at(settings), neutralize_to(cause, 200)),
        action: "look whether that server is there; muster connects again by itself".to_owned(),
    }
}

/// The server, for sentences.
fn at(settings: &PostgresSettings) -> String {
    let PostgresSettings { host, port, database, user, .. } = settings;
    format!("'postgres://{user}@{host}:{port}/{database}'")
}

/// What the library says, with its causes and the server's own message.
fn words(error: &tokio_postgres::Error) -> String {
    let mut text = error.to_string();
    let mut cause = std::error::Error::source(error);
    while let Some(next) = cause {
        let said = next.to_string();
        if !text.contains(&said) {
            text = format!("{text}: {said}");
        }
        cause = next.source();
    }
    neutralize_to(&text, 300)
}

fn read(payload: &str) -> Again {
    Again::of_notification(payload).unwrap_or_else(|| {
        tracing::warn!(bytes = payload.len(), "a notification is not of the trigger's form");
        Again::delta()
    })
}

/// The number of one of our own proofs.
fn ping(payload: &str) -> Option<u64> {
    payload.strip_prefix("{\"ping\":")?.strip_suffix('}')?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn our_own_proofs_are_told_from_notifications() {
        assert_eq!(ping("{\"ping\":17}"), Some(17));
        assert_eq!(ping("{\"t\":\"dcim_device\",\"d\":[17]}"), None);
        assert!(read("{\"ping\":x}").delta);
    }
}

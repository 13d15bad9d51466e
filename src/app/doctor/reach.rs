//! Looks how a server is reached: its name, its port, its certificate, whether it answers, and its clock. One line each; the
//! first that is not well stands in the way of the others.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use jiff::fmt::rfc2822;
use tokio::net::TcpStream;
use url::{Host, Url};

use super::check::Cause;
use super::{Check, Level};
use crate::clients::http::{self, Answer, HttpError, HttpOptions};
use crate::clients::redfish::error::{TlsTrouble, tls_trouble};
use crate::config::settings::{ConnectVault, IronicInstance, Settings, Trust};
use crate::domain::failure::Owner;

/// How long a name, a connection and a handshake may each take.
const STEP: Duration = Duration::from_secs(10);
/// A certificate that ends within so long is told.
pub(super) const SOON: Duration = Duration::from_secs(14 * 24 * 3600);
/// Clocks that are further apart are told: certificates, tokens and times in logs are judged by them.
const APART_MAX: i64 = 60;

/// A server, and where the configuration has it.
pub(super) struct Server<'a> {
    /// Beginning of the names of its lines: `netbox`, `ironic.main`.
    pub prefix: String,
    /// In messages: `NetBox`.
    pub what: String,
    pub url: &'a Url,
    pub trust: &'a Trust,
    pub timeout: Duration,
    /// The table of the configuration.
    pub table: String,
    /// The key of its URL there.
    pub key: &'static str,
}

impl<'a> Server<'a> {
    pub fn netbox(settings: &'a Settings) -> Self {
        let netbox = &settings.netbox;
        Server {
            prefix: "netbox".to_owned(),
            what: "NetBox".to_owned(),
            url: &netbox.url,
            trust: &netbox.trust,
            timeout: netbox.timeout,
            table: "[netbox]".to_owned(),
            key: "url",
        }
    }

    pub fn ironic(name: &str, instance: &'a IronicInstance, url: &'a Url) -> Self {
        Server {
            prefix: format!("ironic.{name}"),
            what: format!("Ironic '{name}'"),
            url,
            trust: &instance.trust,
            timeout: instance.timeout,
            table: format!("[ironic.{name}]"),
            key: "url",
        }
    }

    pub fn keystone(name: &str, instance: &'a IronicInstance, auth_url: &'a Url) -> Self {
        Server {
            prefix: format!("ironic.{name}.keystone"),
            what: format!("the Keystone of Ironic '{name}'"),
            key: "auth_url",
            ..Server::ironic(name, instance, auth_url)
        }
    }

    pub fn connect(vault: &'a ConnectVault) -> Self {
        Server {
            prefix: "vault".to_owned(),
            what: "1Password Connect".to_owned(),
            url: &vault.url,
            trust: &vault.trust,
            timeout: vault.timeout,
            table: "[vault]".to_owned(),
            key: "url",
        }
    }

    fn name(&self, part: &str) -> String {
        format!("{}.{part}", self.prefix)
    }

    fn host(&self) -> &str {
        self.url.host_str().unwrap_or_default()
    }
}

/// The lines of a server that can't be looked for.
pub(super) fn blocked(prefix: &str, cause: &Cause, tell: &mut dyn FnMut(Check)) {
    ["dns", "tcp", "tls", "http", "clock"]
        .iter()
        .for_each(|part| tell(Check::blocked(format!("{prefix}.{part}"), cause)));
}

/// The five lines of an HTTP server. `Err`: what stands in the way of asking it anything.
pub(super) async fn http(server: &Server<'_>, tell: &mut dyn FnMut(Check)) -> Result<(), Cause> {
    let port = server.url.port_or_known_default().unwrap_or(443);
    let place = format!("{} of {}", server.key, server.table);
    let stream = tcp(&server.prefix, server.host(), port, STEP, (&place, Owner::InfraEng), tell).await;
    let rest = ["tls", "http", "clock"].map(|part| server.name(part));
    let stream = stream.inspect_err(|cause| rest.iter().for_each(|name| tell(Check::blocked(name, cause))))?;
    let check = tls(server, stream).await;
    let cause = check.cause();
    let passes = check.lets_pass();
    tell(check);
    if !passes {
        rest[1..].iter().for_each(|name| tell(Check::blocked(name, &cause)));
        return Err(cause);
    }
    let began = Instant::now();
    let answer = ask(server).await;
    let took = began.elapsed();
    let check = answers(server, answer.as_ref(), took);
    let cause = check.cause();
    let passes = check.lets_pass();
    tell(check);
    match answer {
        Ok(answer) if passes => {
            let told = answer.header("date").and_then(date);
            tell(clock(server.name("clock"), server.host(), told, Timestamp::now(), Owner::InfraEng));
            Ok(())
        }
        _ => {
            tell(Check::blocked(&rest[2], &cause));
            Err(cause)
        }
    }
}

/// The lines of a name and of its port. `place` is where the configuration has it, with who mends what is behind it.
pub(super) async fn tcp(
    prefix: &str,
    host: &str,
    port: u16,
    limit: Duration,
    (place, owner): (&str, Owner),
    tell: &mut dyn FnMut(Check),
) -> Result<TcpStream, Cause> {
    let (dns, tcp) = (format!("{prefix}.dns"), format!("{prefix}.tcp"));
    let found = http::resolve(host, port, limit).await;
    let addresses = match found {
        Ok(addresses) => addresses,
        Err(error) => {
            let action = format!("correct the name in {place}, or add '{host}' to DNS");
            let check = Check::to_mend(Level::Fail, dns, error.to_string(), action);
            let cause = check.cause();
            tell(check);
            tell(Check::blocked(tcp, &cause));
            return Err(cause);
        }
    };
    tell(Check::ok(dns, resolved(host, &addresses)));
    match http::connect(&addresses, limit).await {
        Ok(stream) => {
            tell(Check::ok(tcp, format!("'{host}' takes connections at port {port}")));
            Ok(stream)
        }
        Err(error) => {
            let action = format!("see that '{host}' runs, that nothing between blocks port {port}, or correct {place}");
            let check = Check::to_mend(Level::Fail, tcp, error.to_string(), action).owned_by(owner);
            let cause = check.cause();
            tell(check);
            Err(cause)
        }
    }
}

fn resolved(host: &str, addresses: &[SocketAddr]) -> String {
    let ips: Vec<String> = addresses.iter().map(|address| address.ip().to_string()).collect();
    match ips.iter().any(|ip| ip == host.trim_matches(['[', ']'])) {
        true => format!("'{host}' is an address"),
        false => format!("'{host}' is {}", ips.join(", ")),
    }
}

/// The line of the certificate, or of there being none (C-35).
async fn tls(server: &Server<'_>, stream: TcpStream) -> Check {
    let (name, host, table) = (server.name("tls"), server.host(), &server.table);
    if server.url.scheme() == "http" {
        return in_clear(name, is_here(server.url), &server.what, &format!("{} in {table}", server.key));
    }
    match http::handshake(stream, host, server.trust, SOON, STEP).await {
        Ok(good_for_long) => trusted(name, server.trust, good_for_long, host, table),
        Err(error) => {
            let action = untrusted(&error, host, table);
            Check::to_mend(Level::Fail, name, error.to_string(), action)
        }
    }
}

/// No TLS: fine on the same machine, and to be looked at elsewhere.
pub(super) fn in_clear(name: String, is_here: bool, what: &str, place: &str) -> Check {
    match is_here {
        true => Check::ok(name, format!("{what} is asked without TLS, on this machine")),
        false => Check::to_mend(
            Level::Warn,
            name,
            format!("{what} is asked without TLS: whoever is in between reads the credentials"),
            format!("give it TLS, and set {place} to https"),
        ),
    }
}

/// A handshake that ended well.
pub(super) fn trusted(name: String, trust: &Trust, good_for_long: bool, host: &str, table: &str) -> Check {
    let by = match trust {
        Trust::Anything => return opted_out(name, host, table),
        Trust::System => "the system's roots",
        Trust::Ca(_) => "the configured CA",
        Trust::Pinned(_) => "its pinned fingerprint",
    };
    if good_for_long {
        return Check::ok(name, format!("the certificate of '{host}' is trusted by {by}"));
    }
    let message = format!("the certificate of '{host}' ends within {} days", SOON.as_secs() / 86_400);
    Check::to_mend(Level::Warn, name, message, format!("give '{host}' a new certificate"))
}

/// A visible opt-out is told for as long as it is there.
pub(super) fn opted_out(name: String, host: &str, table: &str) -> Check {
    Check::to_mend(
        Level::Warn,
        name,
        format!("the certificate of '{host}' is not checked: {table} has trust = \"anything\""),
        format!("set trust in {table} to a CA or to the certificate's fingerprint"),
    )
}

/// What to do about a handshake that failed.
pub(super) fn untrusted(error: &HttpError, host: &str, table: &str) -> String {
    match (tls_trouble(error), error) {
        (_, HttpError::Setup { .. }) => format!("correct trust in {table}: it names a file that can't be used"),
        (Some(TlsTrouble::Untrusted), _) => {
            format!("set trust in {table} to the CA that signed the certificate of '{host}', or to its fingerprint")
        }
        (Some(TlsTrouble::Expired), _) => format!("give '{host}' a new certificate: this one has expired"),
        (Some(TlsTrouble::WrongName), _) => {
            format!("give '{host}' a certificate for that name, or name it in {table} as its certificate does")
        }
        (Some(TlsTrouble::NotTls) | None, _) => {
            format!("see that TLS is spoken at that port of '{host}', or correct the URL in {table}")
        }
    }
}

/// Whether a URL leads to this machine.
pub(super) fn is_here(url: &Url) -> bool {
    match url.host() {
        Some(Host::Ipv4(ip)) => ip.is_loopback(),
        Some(Host::Ipv6(ip)) => ip.is_loopback(),
        Some(Host::Domain(name)) => name == "localhost",
        None => false,
    }
}

async fn ask(server: &Server<'_>) -> Result<Answer, HttpError> {
    let options = HttpOptions {
        trust: server.trust.clone(),
        connect_timeout: STEP,
        timeout: server.timeout,
        ..HttpOptions::default()
    };
    http::knock(server.url, "/", &options).await
}

/// Whether anything answers. Which answer it is says nothing yet, unless the server itself is in trouble.
fn answers(server: &Server<'_>, answer: Result<&Answer, &HttpError>, took: Duration) -> Check {
    let (name, what) = (server.name("http"), &server.what);
    let look = format!("look into the log of {what} at '{}', and of what stands before it", server.host());
    match answer {
        Ok(answer) if answer.status.is_server_error() => {
            Check::to_mend(Level::Fail, name, format!("{what} answers {}", answer.status), look)
        }
        Ok(_) => Check::ok(name, format!("{what} answers, after {} ms", took.as_millis())),
        Err(error) => Check::to_mend(Level::Fail, name, error.to_string(), look),
    }
}

/// The time of a header `Date`.
fn date(text: &str) -> Option<Timestamp> {
    rfc2822::DateTimeParser::new().parse_timestamp(text).ok()
}

/// How far the clock of a server is from the one here. A server tells its time in whole seconds.
pub(super) fn clock(name: String, host: &str, told: Option<Timestamp>, now: Timestamp, owner: Owner) -> Check {
    let Some(told) = told else {
        let action = format!("see that '{host}' tells its time");
        return Check::to_mend(Level::Unknown, name, format!("'{host}' tells no time"), action).owned_by(owner);
    };
    let apart = told.duration_since(now).as_secs();
    if apart.abs() <= APART_MAX {
        return Check::ok(name, format!("the clock of '{host}' agrees with the one here"));
    }
    let way = if apart > 0 { "ahead of" } else { "behind" };
    Check::to_mend(
        Level::Warn,
        name,
        format!("the clock of '{host}' is {} s {way} the one here", apart.abs()),
        format!("set the clock that is wrong, by NTP: of '{host}' ({told}) or of this machine ({now})"),
    )
    .owned_by(owner)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves: K4
    #[test]
    fn clocks_agree_within_a_minute_and_no_clock_is_no_agreement() {
        let now: Timestamp = "2026-11-30T12:00:00Z".parse().unwrap();
        let of = |text: &str| clock("x.clock".into(), "h", date(text), now, Owner::InfraEng);
        assert_eq!(of("Mon, 30 Nov 2026 11:59:01 GMT").level, Level::Ok);
        let ahead = of("Mon, 30 Nov 2026 12:05:00 GMT");
        assert!(ahead.level == Level::Warn && ahead.message.contains("300 s ahead of"), "{ahead:?}");
        let behind = of("Mon, 30 Nov 2026 10:00:00 GMT");
        assert!(behind.level == Level::Warn && behind.message.contains("7200 s behind"), "{behind:?}");
        assert_eq!(of("yesterday").level, Level::Unknown);
    }

    #[test]
    fn what_is_on_this_machine_needs_no_tls() {
        let here = |url: &str| is_here(&url.parse().unwrap());
        assert!(here("http://127.0.4.2:8000/") && here("http://[::1]/") && here("http://localhost/"));
        assert!(!here("http://192.0.2.7/") && !here("http://netbox.example.com/"));
    }
}

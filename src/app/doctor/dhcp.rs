//! Looks at a site's DHCP host: the way to it, its host key, the login, the folder of entries, and whether the service
//! serves. The site's `test` and `validate` are run, which change nothing; `restart` never is.

use std::time::Duration;

use jiff::Timestamp;
use secrecy::ExposeSecret;

use super::check::Cause;
use super::reach::{clock, tcp};
use super::site::Place;
use super::vault::SshKeys;
use super::{Check, Level};
use crate::activities::dhcp::{command, meaning, refused_by_sudo, target};
use crate::clients::look_at_host;
use crate::clients::ssh::known_hosts::KnownHosts;
use crate::clients::ssh::{SshClient, SshError};
use crate::config::settings::DhcpSettings;
use crate::domain::failure::Owner;
use crate::domain::text::neutralize_to;

/// The lines behind the connection.
const REST: [&str; 6] = ["hostkey", "login", "clock", "sftp", "folder", "serves"];
/// Nobody waits for a name or a port as long as for a run's step.
const STEP: Duration = Duration::from_secs(10);

pub(super) async fn look(
    place: &Place<'_>,
    settings: &DhcpSettings,
    keys: Result<&SshKeys, Cause>,
    tell: &mut dyn FnMut(Check),
) {
    let (prefix, item) = (place.name("dhcp"), &place.settings.vault.dhcp_item);
    let name = |part: &str| format!("{prefix}.{part}");
    let host = format!("host in [sites.{}.dhcp]", place.slug);
    let limit = settings.connect.min(STEP);
    let reached = tcp(&prefix, &settings.host, settings.port, limit, (&host, Owner::Netops), tell).await;
    let mut rest: Vec<&str> = REST.to_vec();
    if settings.sudo {
        rest.push("sudo");
    }
    let blocked = |from: usize, cause: &Cause, tell: &mut dyn FnMut(Check)| {
        rest[from..].iter().for_each(|part| tell(Check::blocked(name(part), cause)));
    };
    let keys = match reached.and(keys) {
        Ok(keys) => keys,
        Err(cause) => return blocked(0, &cause, tell),
    };
    let (to, deadlines) = target(settings);
    let known_hosts = KnownHosts::parse(keys.known_hosts.expose_secret());
    let client = match look_at_host(&to, deadlines, &keys.private_key, known_hosts).await {
        Ok(client) => client,
        Err(error) => {
            // The key of the host is judged before the login; a private key that can't be read comes before both.
            let is_login = matches!(error, SshError::AuthFailed { .. });
            let is_key = matches!(error, SshError::PrivateKey(_));
            if is_login {
                tell(Check::ok(name("hostkey"), "the host shows a key of known_hosts"));
            }
            let part = if is_login || is_key { "login" } else { "hostkey" };
            let check = Check::of_failure(Level::Fail, name(part), &meaning(&error, settings, item));
            let cause = check.cause();
            if is_key {
                tell(Check::blocked(name("hostkey"), &cause));
            }
            tell(check);
            return blocked(if is_login || is_key { 2 } else { 1 }, &cause, tell);
        }
    };
    tell(Check::ok(name("hostkey"), format!("'{}' shows a key of known_hosts", client.server())));
    tell(Check::ok(name("login"), format!("'{}' is let in", settings.user)));
    let unasked =
        |part: &str, error: &SshError| Check::of_failure(Level::Unknown, name(part), &meaning(error, settings, item));
    tell(match client.clock().await {
        Ok(told) => {
            let told = told.and_then(|seconds| Timestamp::from_second(seconds).ok());
            clock(name("clock"), &settings.host, told, Timestamp::now(), Owner::Netops)
        }
        Err(error) => unasked("clock", &error),
    });
    tell(match client.sftp().await {
        Ok(_) => Check::ok(name("sftp"), "files can be uploaded by SFTP"),
        Err(error @ SshError::SftpMissing { .. }) => {
            Check::of_failure(Level::Fail, name("sftp"), &meaning(&error, settings, item))
        }
        Err(error) => unasked("sftp", &error),
    });
    tell(match client.folder(&settings.directory).await {
        Ok(found) => folder(name("folder"), settings, found),
        Err(error) => unasked("folder", &error),
    });
    tell(serves(name("serves"), settings, &client).await.unwrap_or_else(|error| unasked("serves", &error)));
    if settings.sudo {
        tell(sudo(name("sudo"), settings, &client).await.unwrap_or_else(|error| unasked("sudo", &error)));
    }
    client.close().await;
}

fn folder(name: String, settings: &DhcpSettings, found: Option<bool>) -> Check {
    let DhcpSettings { directory, user, host, .. } = settings;
    match found {
        Some(true) => Check::ok(name, format!("'{user}' may write into '{directory}'")),
        Some(false) => Check::to_mend(
            Level::Fail,
            name,
            format!("'{user}' may not write into '{directory}' on '{host}'"),
            format!("let '{user}' write into '{directory}' on {host}"),
        )
        .owned_by(Owner::Netops),
        None => Check::to_mend(
            Level::Warn,
            name,
            format!("there is no folder '{directory}' on '{host}': the first run there tries to make it"),
            format!("make '{directory}' on {host} for '{user}', and let the DHCP server read it"),
        )
        .owned_by(Owner::Netops),
    }
}

/// The server's own test of its configuration, where there is one, and whether it serves.
async fn serves(name: String, settings: &DhcpSettings, client: &SshClient) -> Result<Check, SshError> {
    for part in settings.test.iter().chain([&settings.validate]) {
        let run = command(settings, part);
        let ended = client.inspect(&run).await?;
        if ended.status == 0 {
            continue;
        }
        if let Some(failure) = refused_by_sudo(&ended.said(), &run, settings) {
            return Ok(Check::of_failure(Level::Fail, name, &failure));
        }
        let (host, part) = (&settings.host, neutralize_to(part, 120));
        let message = format!("'{part}' on '{host}' ended with status {}: '{}'", ended.status, ended.said());
        let action = format!("mend the DHCP service of {host} until '{part}' ends well");
        return Ok(Check::to_mend(Level::Fail, name, message, action).owned_by(Owner::Netops));
    }
    Ok(Check::ok(name, format!("the DHCP service of '{}' serves", settings.host)))
}

/// Whether the restart that a run makes would be let through.
async fn sudo(name: String, settings: &DhcpSettings, client: &SshClient) -> Result<Check, SshError> {
    let ended = client.may_sudo(&settings.restart).await?;
    if ended.status == 0 {
        return Ok(Check::ok(name, format!("'{}' may run the restart by sudo", settings.user)));
    }
    let run = command(settings, &settings.restart);
    if let Some(failure) = refused_by_sudo(&ended.said(), &run, settings) {
        return Ok(Check::of_failure(Level::Fail, name, &failure));
    }
    let restart = neutralize_to(&settings.restart, 120);
    Ok(Check::to_mend(
        Level::Fail,
        name,
        format!("sudo on '{}' does not let '{}' run '{restart}'", settings.host, settings.user),
        format!("allow '{}' to run '{restart}' without a password in the sudoers of {}", settings.user, settings.host),
    )
    .owned_by(Owner::Netops))
}

//! DHCP: the device's entry on the site's DHCP host, uploaded whole, tested, served, and undone where it is not (D1–D10).

mod delivery;
mod desk;
mod failures;
mod link;
mod round;

use secrecy::ExposeSecret;

use super::env::ActivityCx;
use super::facts;
use crate::clients::ssh::known_hosts::KnownHosts;
use crate::clients::ssh::{Deadlines, SshClient, SshError, SshTarget};
use crate::config::settings::DhcpSettings;
use crate::domain::dhcp::{Entry, EntryFile, render};
use crate::domain::failure::{Failure, FailureCode};
use crate::domain::host::HostFacts;
use crate::domain::phase::Phase;
use crate::workflows::defs::{DhcpOut, Target};

const PHASE: Phase = Phase::Dhcp;

/// An entry with the file that it makes.
#[derive(Clone)]
struct Wanted {
    entry: Entry,
    file: EntryFile,
}

/// Brings the device's entry to the site's DHCP host. On a host that has it already nothing is written at all (D6, G4).
pub async fn configure(cx: &ActivityCx, target: Target) -> Result<DhcpOut, Failure> {
    let settings = settings(cx, &target.site)?;
    let facts = facts::read(cx, &target, PHASE).await?;
    serve_entry(cx, settings, &entry_of(&facts)?).await
}

/// The same for an entry that is known already.
pub async fn serve_entry(cx: &ActivityCx, settings: &DhcpSettings, entry: &Entry) -> Result<DhcpOut, Failure> {
    let refused = |error| failures::entry(&error);
    let file = render(settings.server, entry).map_err(refused)?;
    settings.network.check(entry.address).map_err(refused)?;
    desk::deliver(cx, settings, Wanted { entry: entry.clone(), file }).await
}

fn settings<'a>(cx: &'a ActivityCx, site: &str) -> Result<&'a DhcpSettings, Failure> {
    cx.site(site, PHASE)?.dhcp.as_ref().ok_or_else(|| {
        Failure::new(
            FailureCode::ConfigurationIncomplete,
            PHASE,
            format!(
                "the configuration has no table '[sites.{site}.dhcp]', and the site's gate 'configure_dhcp' was on"
            ),
            format!(
                "add [sites.{site}.dhcp] to the configuration, or switch configure_dhcp off, and start muster again"
            ),
        )
    })
}

/// What an SSH error means where nothing but a connection was wanted; `item` is the vault's with key and known_hosts.
pub fn meaning(error: &SshError, settings: &DhcpSettings, item: &str) -> Failure {
    failures::ssh(error, FailureCode::DhcpConnectFailed, settings, item)
}

/// What is run for a configured command, and what it means where sudo does not let it.
pub fn command(settings: &DhcpSettings, command: &str) -> String {
    link::command(settings, command)
}

/// The failure that sudo's words are, where they are sudo's.
pub fn refused_by_sudo(said: &str, command: &str, settings: &DhcpSettings) -> Option<Failure> {
    link::refused_by_sudo(said).map(|why| failures::sudo(why, command, settings))
}

/// Where and as whom the site's DHCP host is asked, and how long each step may take (D5).
pub fn target(settings: &DhcpSettings) -> (SshTarget, Deadlines) {
    let target = SshTarget {
        host: settings.host.clone(),
        port: settings.port,
        user: settings.user.clone(),
        legacy_algorithms: settings.legacy_algorithms,
    };
    let deadlines = Deadlines {
        connect: settings.connect,
        login: settings.login,
        command: settings.command,
        transfer: settings.transfer,
    };
    (target, deadlines)
}

/// What the DHCP server is to know: the management interface's MAC and the out-of-band address (D1).
fn entry_of(facts: &HostFacts) -> Result<Entry, Failure> {
    let missing = |message: String, action: String| {
        Failure::new(FailureCode::NetboxDataMissing, PHASE, message, action)
            .with_evidence(format!("netbox /api/dcim/devices/{}/", facts.netbox_id), "read live".to_owned())
    };
    let name = &facts.name;
    let address = facts.oob_ip.ok_or_else(|| {
        missing(format!("'oob_ip' of '{name}' is empty"), format!("set the out-of-band IP of {name} in NetBox"))
    })?;
    let management = facts.management.as_ref().ok_or_else(|| {
        missing(
            format!("'{name}' has no management interface: none carries 'oob_ip', and not exactly one is 'mgmt_only'"),
            format!("assign the address {address} to the management interface of {name} in NetBox"),
        )
    })?;
    let mac = management.mac.ok_or_else(|| {
        missing(
            format!("'mac_address' of the management interface '{}' of '{name}' is empty or no MAC", management.name),
            format!("set the MAC address of {name} {} in NetBox", management.name),
        )
    })?;
    Ok(Entry { name: name.clone(), mac, address })
}

/// Connects with the vault's key. Key and known_hosts live only as long as this takes (D3).
async fn connect(cx: &ActivityCx, settings: &DhcpSettings) -> Result<SshClient, Failure> {
    let item = &cx.env.vault.settings().dhcp_item;
    let private_key = cx.secret(item, "private_key", PHASE).await?;
    let known_hosts = cx.secret(item, "known_hosts", PHASE).await?;
    let known_hosts = KnownHosts::parse(known_hosts.expose_secret());
    let (target, deadlines) = target(settings);
    cx.env
        .clients
        .ssh(&target, deadlines, &private_key, known_hosts)
        .await
        .map_err(|error| failures::ssh(&error, FailureCode::DhcpConnectFailed, settings, item))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::failure::Owner;
    use crate::domain::host::{HostInterface, SiteFacts};

    fn facts() -> HostFacts {
        let management = HostInterface {
            netbox_id: 3,
            name: "BMC".into(),
            mac: "02:aa:00:00:00:02".parse().ok(),
            mgmt_only: true,
            ..HostInterface::default()
        };
        HostFacts {
            netbox_id: 7,
            name: "gpu-b07-37".into(),
            status: "staged".into(),
            site: SiteFacts::default(),
            rack: None,
            position: None,
            serial: None,
            device_class: None,
            manufacturer: "Supermicro".into(),
            model: "SYS".into(),
            tags: vec![],
            oob_ip: "10.10.8.42".parse().ok(),
            management: Some(management),
            interfaces: vec![],
            ironic_settings: None,
        }
    }

    /// Proves: D1
    #[test]
    fn what_netbox_lacks_is_named_by_its_field() {
        let entry = entry_of(&facts()).unwrap();
        assert_eq!((entry.name.as_str(), entry.mac.to_string()), ("gpu-b07-37", "02:aa:00:00:00:02".to_owned()));
        let without_address = HostFacts { oob_ip: None, ..facts() };
        let mut without_mac = facts();
        without_mac.management.as_mut().unwrap().mac = None;
        let without_management = HostFacts { management: None, ..facts() };
        for (facts, field) in
            [(without_address, "'oob_ip'"), (without_mac, "'mac_address'"), (without_management, "'oob_ip'")]
        {
            let failure = entry_of(&facts).unwrap_err();
            assert_eq!((failure.code, failure.owner), (FailureCode::NetboxDataMissing, Owner::InfraEng));
            assert!(failure.message.contains(field) && !failure.retryable, "{}", failure.message);
        }
    }
}

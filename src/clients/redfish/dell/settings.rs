//! Where an iDRAC keeps settings: in its attributes, and where a firmware has none of a name in the standard's places.

use serde_json::{Map, Value, json};

use crate::clients::redfish::accounts::{Accounts, PasswordRules};
use crate::clients::redfish::converge::{Located, Spot, Wanted, standard_ntp};
use crate::clients::redfish::dialect::At;
use crate::clients::redfish::error::RedfishError;
use crate::clients::redfish::resource::{Resource, text_of};
use crate::clients::redfish::standard::{found, in_network_protocol, ipmi_over_lan, on_own_nic};
use crate::domain::text::neutralize_to;

/// Settings of the web server that have no TLS below 1.2, the widest first.
const TLS_WORDS: [&str; 3] = ["TLS 1.2 and Higher", "TLS 1.2 Only", "TLS 1.3 Only"];

/// What the monitoring user may do over IPMI: read sensors.
const LAN_PRIVILEGE: &str = "User";

pub(super) async fn locate(at: At<'_>, wanted: &Wanted) -> Result<Located, RedfishError> {
    let Some(resource) = attributes(at).await? else { return standard(at, wanted).await };
    let Some(Value::Object(all)) = resource.at("Attributes") else { return standard(at, wanted).await };
    if let Wanted::MonitoringPrivilege { username } = wanted
        && place_of(all, username).is_none()
    {
        return Ok(Located::Absent { why: format!("no account of the BMC is '{username}'") });
    }
    // One name that a firmware does not know spoils the whole request.
    let mut members = members(all, wanted);
    members.retain(|(name, _)| all.contains_key(name));
    if members.is_empty() {
        return standard(at, wanted).await;
    }
    let members = members.into_iter().map(|(name, value)| (format!("/Attributes/{name}"), value));
    let lockdown = locked_down(all);
    let spot = Spot::patch(resource, members);
    match lockdown {
        // What is right already needs no write.
        Some(reason) if !spot.is_satisfied_by(&spot.resource) => {
            let asked = format!("PATCH {}", neutralize_to(spot.path(), 200));
            Err(RedfishError::LockedDown { asked, reason })
        }
        _ => Ok(Located::At(spot)),
    }
}

/// The attribute of the mode in which an iDRAC takes no change but the one that ends it. Power and the locator LED go on
/// to work in it.
const LOCKDOWN: &str = "Lockdown.1.SystemLockdown";

fn locked_down(all: &Map<String, Value>) -> Option<String> {
    let word = all.get(LOCKDOWN).and_then(text_of).filter(|word| word.eq_ignore_ascii_case("Enabled"))?;
    Some(format!("{LOCKDOWN} is {word}"))
}

/// Whether the mode is on, by its attribute; a firmware that has none tells it by a refusal.
pub(super) async fn lockdown(at: At<'_>) -> Result<Option<String>, RedfishError> {
    let resource = attributes(at).await?;
    Ok(resource.and_then(|resource| locked_down(resource.at("Attributes")?.as_object()?)))
}

/// The attributes of the iDRAC itself; older firmware has them elsewhere.
async fn attributes(at: At<'_>) -> Result<Option<Resource>, RedfishError> {
    let id = at.manager.id();
    let listed = at.manager.links("/Links/Oem/Dell/DellAttributes");
    let own = listed.iter().find(|path| path.rsplit('/').next().is_some_and(|last| last.eq_ignore_ascii_case(&id)));
    if let Some(path) = own
        && let Some(resource) = found(at.redfish.get(path).await)?
    {
        return Ok(Some(resource));
    }
    found(at.redfish.get(&format!("{}/Attributes", at.manager.path.trim_end_matches('/'))).await)
}

/// What the attributes say of passwords, beside their length. Where they cannot be read, the length is all that is known.
pub(super) async fn password_rules(at: At<'_>, accounts: &Accounts) -> Result<PasswordRules, RedfishError> {
    let rules = accounts.password_rules();
    let attributes = match attributes(at).await {
        Ok(resource) => resource.and_then(|resource| resource.at("Attributes")?.as_object().cloned()),
        Err(error) if error.is_of_one_resource() => None,
        Err(error) => return Err(error),
    };
    let Some(attributes) = attributes else { return Ok(rules) };
    let on =
        |name: &str| attributes.get(name).and_then(text_of).is_some_and(|word| word.eq_ignore_ascii_case("Enabled"));
    Ok(PasswordRules {
        upper: on("Security.1.PasswordRequireUpperCase"),
        digit: on("Security.1.PasswordRequireNumbers"),
        mark: on("Security.1.PasswordRequireSymbols"),
        ..rules
    })
}

/// The attributes that make a setting, with the values they are to have.
fn members(all: &Map<String, Value>, wanted: &Wanted) -> Vec<(String, Value)> {
    let text = |name: &str| all.get(name).and_then(text_of);
    let is = |name: &str, word: &str| text(name).is_some_and(|text| text.eq_ignore_ascii_case(word));
    let pairs = match wanted {
        Wanted::Hostname { name, .. } => vec![("NIC.1.DNSRacName", json!(name))],
        Wanted::DhcpOnNic { .. } => vec![("IPv4.1.DHCPEnable", json!("Enabled"))],
        Wanted::Ntp { server } => {
            vec![("NTPConfigGroup.1.NTPEnable", json!("Enabled")), ("NTPConfigGroup.1.NTP1", json!(server))]
        }
        Wanted::Syslog { server, port } => vec![
            ("SysLog.1.SysLogEnable", json!("Enabled")),
            ("SysLog.1.Server1", json!(server)),
            ("SysLog.1.Port", json!(port)),
        ],
        Wanted::IpmiOverLan => vec![("IPMILan.1.Enable", json!("Enabled"))],
        Wanted::TlsMinimum => {
            let now = text("WebServer.1.TLSProtocol").unwrap_or_default();
            let stricter = TLS_WORDS.iter().find(|word| word.eq_ignore_ascii_case(&now));
            vec![("WebServer.1.TLSProtocol", json!(stricter.unwrap_or(&TLS_WORDS[0])))]
        }
        Wanted::PlainServicesOff => {
            let mut pairs = vec![("Telnet.1.Enable", json!("Disabled")), ("VNCServer.1.Enable", json!("Disabled"))];
            // Whoever asks by SNMPv3 still gets an answer.
            if all.contains_key("SNMP.1.SNMPProtocol") && !is("SNMP.1.AgentEnable", "Disabled") {
                pairs.push(("SNMP.1.SNMPProtocol", json!("SNMPv3")));
            } else {
                pairs.push(("SNMP.1.AgentEnable", json!("Disabled")));
            }
            pairs
        }
        Wanted::HostInterfaceOff => vec![("OS-BMC.1.AdminState", json!("Disabled"))],
        Wanted::MonitoringPrivilege { username } => {
            // A role of Redfish gives no right over IPMI (Q47).
            let Some(place) = place_of(all, username) else { return vec![] };
            return vec![
                (format!("Users.{place}.IpmiLanPrivilege"), json!(LAN_PRIVILEGE)),
                (format!("Users.{place}.SolEnable"), json!("Disabled")),
            ];
        }
        Wanted::VirtualMedia => vec![],
    };
    pairs.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

/// The number of a user's account.
fn place_of(all: &Map<String, Value>, username: &str) -> Option<u64> {
    all.iter().find_map(|(name, value)| {
        let place = name.strip_prefix("Users.")?.strip_suffix(".UserName")?;
        if value.as_str() == Some(username) { place.parse().ok() } else { None }
    })
}

async fn standard(at: At<'_>, wanted: &Wanted) -> Result<Located, RedfishError> {
    let At { redfish, manager, .. } = at;
    match wanted {
        Wanted::Hostname { name, address } => {
            on_own_nic(redfish, manager, *address, vec![("/HostName", json!(name))]).await
        }
        Wanted::DhcpOnNic { address } => {
            on_own_nic(redfish, manager, *address, vec![("/DHCPv4/DHCPEnabled", json!(true))]).await
        }
        Wanted::Ntp { server } => in_network_protocol(redfish, manager, "NTP", standard_ntp(server)).await,
        Wanted::IpmiOverLan => ipmi_over_lan(redfish, manager).await,
        Wanted::VirtualMedia => Ok(Located::not_here(wanted)),
        Wanted::Syslog { .. }
        | Wanted::TlsMinimum
        | Wanted::PlainServicesOff
        | Wanted::HostInterfaceOff
        | Wanted::MonitoringPrivilege { .. } => {
            Ok(Located::Absent { why: format!("the BMC has no attribute for {}", wanted.label()) })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(all: Value, wanted: Wanted) -> Vec<(String, Value)> {
        members(all.as_object().unwrap(), &wanted)
    }

    #[test]
    fn a_stricter_tls_than_asked_for_is_left_as_it_is() {
        let of = |word: &str| found(json!({"WebServer.1.TLSProtocol": word}), Wanted::TlsMinimum)[0].1.clone();
        assert_eq!(of("TLS 1.0 and Higher"), "TLS 1.2 and Higher");
        assert_eq!(of("TLS 1.1 and Higher"), "TLS 1.2 and Higher");
        assert_eq!(of("TLS 1.2 Only"), "TLS 1.2 Only");
        assert_eq!(of("TLS 1.3 Only"), "TLS 1.3 Only");
    }

    #[test]
    fn snmp_v1_is_off_where_the_agent_is_off_or_speaks_v3_only() {
        let of = |all: Value| found(all, Wanted::PlainServicesOff).pop().unwrap();
        let v3 = ("SNMP.1.SNMPProtocol".to_owned(), json!("SNMPv3"));
        let off = ("SNMP.1.AgentEnable".to_owned(), json!("Disabled"));
        assert_eq!(of(json!({"SNMP.1.AgentEnable": "Enabled", "SNMP.1.SNMPProtocol": "All"})), v3);
        assert_eq!(of(json!({"SNMP.1.AgentEnable": "Disabled", "SNMP.1.SNMPProtocol": "All"})), off);
        assert_eq!(of(json!({"SNMP.1.AgentEnable": "Enabled"})), off);
    }

    #[test]
    fn the_place_of_a_user_is_found_by_the_exact_name() {
        let all = json!({"Users.2.UserName": "root", "Users.12.UserName": "ipmi_exporter", "Users.3.UserName": ""});
        assert_eq!(place_of(all.as_object().unwrap(), "ipmi_exporter"), Some(12));
        assert_eq!(place_of(all.as_object().unwrap(), "ROOT"), None);
    }
}

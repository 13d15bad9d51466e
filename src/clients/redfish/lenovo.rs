//! Lenovo XCC: where its BMCs keep settings, and what they take for the next boot.

mod boot;

use serde_json::{Value, json};

use super::accounts::{Accounts, PasswordRules};
use super::condition::FirstForm;
use super::converge::{Located, Spot, Wanted, standard_ntp};
use super::dialect::{Asked, At, Change, Dialect, Job, Staged, Staging};
use super::error::RedfishError;
use super::firmware;
use super::resource::Resource;
use super::service::Redfish;
use super::standard::{in_network_protocol, ipmi_over_lan, linked, listed, network_protocol, on_own_nic};
use super::vendor::Vendor;
use crate::domain::bios::Bios;
use crate::domain::boot::BootSetup;

/// Its dialect.
pub struct Lenovo;

impl Dialect for Lenovo {
    fn vendor(&self) -> Vendor {
        Vendor::Lenovo
    }

    /// Some resources want a header (Q2), and newer firmware refuses its own tag now and then (Q4).
    fn first_form(&self) -> FirstForm {
        FirstForm::Any
    }

    fn reset_type(&self) -> &'static str {
        "GracefulRestart"
    }

    /// Complexity is one switch; a letter and a digit are what it means on every firmware.
    fn password_rules<'a>(&'a self, _at: At<'a>, accounts: &'a Accounts) -> Asked<'a, PasswordRules> {
        let complex = accounts.service.flag("/Oem/Lenovo/ComplexPassword") == Some(true);
        let rules = PasswordRules { letter: complex, digit: complex, ..accounts.password_rules() };
        Box::pin(async move { Ok(rules) })
    }

    fn locate<'a>(&'a self, at: At<'a>, wanted: &'a Wanted) -> Asked<'a, Located> {
        Box::pin(locate(at.redfish, at.manager, wanted))
    }

    /// `USERID`: the only resource that answers while its password has to be changed.
    fn forced_account(&self) -> Option<&'static str> {
        Some("/redfish/v1/AccountService/Accounts/1")
    }

    /// Older firmware lists twelve accounts, most without a name, and creates none. Newer firmware says by its `Allow` that
    /// it creates them.
    fn free_place<'a>(&self, accounts: &'a Accounts) -> Option<&'a Resource> {
        let creates = accounts.methods.as_ref().is_some_and(|methods| methods.iter().any(|method| method == "POST"));
        if creates { None } else { accounts.unused() }
    }

    fn staging(&self) -> Option<&dyn Staging> {
        Some(self)
    }
}

impl Staging for Lenovo {
    fn bios<'a>(&'a self, at: At<'a>, names: &'a [String]) -> Asked<'a, Option<Bios>> {
        Box::pin(firmware::read(at.redfish, at.root, at.system, names))
    }

    fn boot<'a>(&'a self, at: At<'a>) -> Asked<'a, Option<BootSetup>> {
        Box::pin(async move { Ok(boot::read(at).await?.map(boot::Order::into_setup)) })
    }

    fn stage<'a>(&'a self, at: At<'a>, change: &'a Change) -> Asked<'a, Staged> {
        Box::pin(async move {
            if !change.attributes.is_empty() {
                stage_attributes(at, change).await?;
            }
            if let Some(change) = &change.boot {
                boot::stage(at, change).await?;
            }
            Ok(Staged::default())
        })
    }

    /// It has no jobs for settings: they are pending until the next boot.
    fn job<'a>(&'a self, at: At<'a>, id: &'a str) -> Asked<'a, Job> {
        Box::pin(async move {
            let what = format!("this BMC has no job '{id}': it keeps settings for the next boot without one");
            Err(RedfishError::Unusable { path: at.manager.path.clone(), what })
        })
    }

    fn withdraw<'a>(&'a self, _: At<'a>, _: &'a str) -> Asked<'a, ()> {
        Box::pin(async { Ok(()) })
    }
}

async fn stage_attributes(at: At<'_>, change: &Change) -> Result<(), RedfishError> {
    let missing = |what: &str| RedfishError::Unusable { path: at.system.path.clone(), what: what.to_owned() };
    let bios = linked(at.redfish, at.system, "Bios").await?.ok_or_else(|| missing("the system has no 'Bios'"))?;
    let path = firmware::settings_object(&bios).ok_or_else(|| missing("its 'Bios' names no settings object"))?;
    let attributes: serde_json::Map<String, Value> = change.attributes.iter().cloned().collect();
    at.redfish.patch(&path, &json!({"Attributes": attributes})).await.map(drop)
}

async fn locate(redfish: &Redfish, bmc: &Resource, wanted: &Wanted) -> Result<Located, RedfishError> {
    match wanted {
        Wanted::Hostname { name, address } => {
            on_own_nic(redfish, bmc, *address, vec![("/HostName", json!(name))]).await
        }
        Wanted::Ntp { server } => in_network_protocol(redfish, bmc, "NTP", standard_ntp(server)).await,
        Wanted::Syslog { server, port } => syslog(redfish, bmc, server, *port).await,
        Wanted::IpmiOverLan => ipmi_over_lan(redfish, bmc).await,
        Wanted::DhcpOnNic { address } => {
            on_own_nic(redfish, bmc, *address, vec![("/DHCPv4/DHCPEnabled", json!(true))]).await
        }
        Wanted::TlsMinimum => tls_minimum(redfish, bmc).await,
        Wanted::PlainServicesOff => plain_services(redfish, bmc).await,
        Wanted::HostInterfaceOff => host_interface(redfish, bmc).await,
        Wanted::VirtualMedia | Wanted::MonitoringPrivilege { .. } => Ok(Located::not_here(wanted)),
    }
}

/// Events that a syslog server gets.
const EVENTS: [(&str, &[&str]); 3] = [
    ("CriticalEvents", &["AllCriticalEvents"]),
    ("WarningEvents", &["AllWarningEvents"]),
    ("SystemEvents", &["AllSystemEvents", "AllAuditEvents"]),
];

/// Recipients of alerts, one of which is the syslog server: there is no setting for syslog alone.
async fn syslog(redfish: &Redfish, bmc: &Resource, server: &str, port: u16) -> Result<Located, RedfishError> {
    let Some(path) = bmc.link("/Oem/Lenovo/Recipients") else {
        return Ok(Located::Absent { why: "the BMC has no 'Oem.Lenovo.Recipients'".to_owned() });
    };
    let Some(listing) = listed(redfish, &path).await? else {
        return Ok(Located::Absent { why: format!("the BMC names '{path}', and it is not there") });
    };
    let address = if server.contains(':') { format!("[{server}]:{port}") } else { format!("{server}:{port}") };
    let (kind_at, address_at) = ("/RecipientSettings/AlertType", "/RecipientSettings/Address");
    let is_ours = |recipient: &&Resource| {
        let says = |pointer, want: &str| recipient.text(pointer).is_some_and(|text| text.eq_ignore_ascii_case(want));
        says(kind_at, "Syslog") && says(address_at, &address)
    };
    let enabled = |read: Option<&Value>| match read {
        Some(Value::Bool(_)) => json!(true),
        _ => json!("Enabled"),
    };
    let state_at = "/RecipientSettings/Enabledstate";
    if let Some(recipient) = listing.members.iter().find(is_ours) {
        let on = enabled(recipient.at(state_at));
        let members = [(kind_at, json!("Syslog")), (address_at, json!(address)), (state_at, on)];
        return Ok(Located::At(Spot::patch(recipient.clone(), members)));
    }
    let taken: Vec<String> = listing.members.iter().map(Resource::id).collect();
    let Some(id) = (1..=RECIPIENTS_MAX).map(|n| n.to_string()).find(|id| !taken.contains(id)) else {
        return Ok(Located::Absent { why: format!("all {RECIPIENTS_MAX} alert recipients are taken") });
    };
    let key = vec![(kind_at.to_owned(), json!("Syslog")), (address_at.to_owned(), json!(address))];
    let body = |audit: &str| {
        let events = EVENTS.iter().map(|(name, words)| {
            let words: Vec<&str> = words.iter().map(|w| if *w == "AllAuditEvents" { audit } else { *w }).collect();
            ((*name).to_owned(), json!({"Enabled": true, "AcceptedEvents": words}))
        });
        json!({"Id": id, "RecipientSettings": {
            "Enabledstate": "Enabled",
            "RecipientName": "syslog",
            "Address": address,
            "AlertType": "Syslog",
            "IncludeEventLog": false,
            "EnabledAlerts": Value::Object(events.collect()),
        }})
    };
    let members = [(kind_at, json!("Syslog")), (address_at, json!(address)), (state_at, json!("Enabled"))];
    let spot = Spot::member(&path, key, members, body("AllAuditEvents"));
    // Firmware differs in what it calls the rest of the audit events.
    Ok(Located::At(spot.or(path, body("AllOtherAuditEvents"))))
}

/// Alert recipients that a BMC has room for.
const RECIPIENTS_MAX: u32 = 12;

/// The level is a word: `TLSLevel1_2`. A higher one stays.
async fn tls_minimum(redfish: &Redfish, bmc: &Resource) -> Result<Located, RedfishError> {
    let pointer = "/CryptographyManagement/MinTLSLevel";
    let Some(security) = linked(redfish, bmc, "/Oem/Lenovo/Security").await? else {
        return Ok(Located::Absent { why: "the BMC has no 'Oem.Lenovo.Security'".to_owned() });
    };
    let Some(level) = security.text(pointer) else {
        return Ok(Located::Absent { why: "'Oem.Lenovo.Security' has no 'MinTLSLevel'".to_owned() });
    };
    let enough = minor_of(&level).is_some_and(|minor| minor >= 2);
    let want = if enough { level } else { "TLSLevel1_2".to_owned() };
    Ok(Located::At(Spot::patch(security, [(pointer, json!(want))])))
}

fn minor_of(level: &str) -> Option<u32> {
    level.trim().to_ascii_lowercase().strip_prefix("tlslevel1_")?.parse().ok()
}

/// What is on in the clear, in the standard resource and in the vendor's own for SNMP. A service that a firmware does not
/// list is one that it does not have.
async fn plain_services(redfish: &Redfish, bmc: &Resource) -> Result<Located, RedfishError> {
    let mut spots = Vec::new();
    if let Some(protocols) = network_protocol(redfish, bmc).await? {
        let flags = [
            "/SSDP/ProtocolEnabled",
            "/Telnet/ProtocolEnabled",
            "/SNMP/EnableSNMPv1",
            "/Oem/Lenovo/SLP/ProtocolEnabled",
            "/Oem/Lenovo/CimOverHTTP/ProtocolEnabled",
        ];
        let snmp = protocols.link("/Oem/Lenovo/SNMP");
        spots.extend(off(protocols, &flags));
        if let Some(path) = snmp
            && let Some(snmp) = super::standard::found(redfish.get(&path).await)?
        {
            spots.extend(off(snmp, &["/SNMPTraps/SNMPv1TrapEnabled", "/SNMPv1Agent/ProtocolEnabled"]));
        }
    }
    Ok(match spots.len() {
        0 => Located::Absent { why: "the BMC lists no service in the clear".to_owned() },
        _ => Located::Each(spots),
    })
}

/// The flags of a resource that it has, all off; `None` where it has none of them.
fn off(resource: Resource, flags: &[&str]) -> Option<Spot> {
    let known: Vec<(String, Value)> = flags
        .iter()
        .filter(|pointer| resource.flag(pointer).is_some())
        .map(|pointer| ((*pointer).to_owned(), json!(false)))
        .collect();
    (!known.is_empty()).then(|| Spot::patch(resource, known))
}

/// The BMC's end of the network over USB.
async fn host_interface(redfish: &Redfish, bmc: &Resource) -> Result<Located, RedfishError> {
    let Some(path) = bmc.link("EthernetInterfaces") else {
        return Ok(Located::Absent { why: "the BMC lists no Ethernet interface of its own".to_owned() });
    };
    let nics = listed(redfish, &path).await?.map(|listing| listing.members).unwrap_or_default();
    Ok(match nics.into_iter().find(|nic| nic.id().eq_ignore_ascii_case("ToHost")) {
        Some(nic) => Located::At(Spot::patch(nic, [("/InterfaceEnabled", json!(false))])),
        None => Located::Absent { why: format!("no interface in '{path}' leads to the host") },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tls_level_is_read_by_its_number() {
        for (word, minor) in [("TLSLevel1_2", Some(2)), ("tlslevel1_3", Some(3)), ("TLSLevel1_0", Some(0)), ("x", None)]
        {
            assert_eq!(minor_of(word), minor, "{word}");
        }
    }
}

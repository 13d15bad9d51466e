//! The BMC's own resources: root, manager, network, accounts, recipients of alerts, tasks.

use serde_json::{Value, json};

use super::said::{list, said};
use super::state::State;
use crate::lab::bmc::login::{LOCKOUT_S, LOCKOUT_THRESHOLD, SESSION_TIMEOUT_S, SESSIONS};
use crate::lab::bmc::tree::{View, healthy, link, uuid_of};
use crate::lab::machine::Quirk;

/// Places for accounts.
pub(super) const PLACES: u32 = 12;

pub(super) fn root(view: &View<'_>) -> Value {
    let mut body = said(
        "/redfish/v1/",
        "ServiceRoot.v1_13_0.ServiceRoot",
        json!({
            "Id": "RootService",
            "Name": "Root Service",
            "Description": "This resource is used to represent a service root for a Redfish implementation.",
            "Vendor": "Lenovo",
            "RedfishVersion": "1.15.0",
            "UUID": uuid_of(&view.machine.serial),
            "Links": {"Sessions": link(SESSIONS)},
            "ProtocolFeaturesSupported": {
                "SelectQuery": true,
                "FilterQuery": true,
                "ExcerptQuery": true,
                "OnlyMemberQuery": true,
                "DeepOperations": {"MaxLevels": 2, "DeepPATCH": true, "DeepPOST": true},
                "ExpandQuery": {
                    "Levels": true, "ExpandAll": true, "Links": true, "NoLinks": true, "MaxLevels": 2,
                },
            },
        }),
    );
    for name in ["AccountService", "Systems", "Chassis", "Registries", "SessionService", "Managers"] {
        body[name] = link(format!("/redfish/v1/{name}"));
    }
    body["Tasks"] = link("/redfish/v1/TaskService");
    body
}

pub(super) fn manager(view: &View<'_>, state: &State, path: &str, rest: &[&str]) -> Option<Value> {
    match rest {
        [] => Some(the_manager(view, state)),
        ["ResetActionInfo"] => Some(said(
            path,
            "ActionInfo.v1_1_2.ActionInfo",
            json!({
                "Id": "Reset",
                "Name": "Reset",
                "Description": "Information of the action 'Reset' of Manager",
                "Parameters": [
                    {"Name": "ResetType", "Required": true, "DataType": "String", "AllowableValues": BMC_RESETS},
                ],
            }),
        )),
        ["EthernetInterfaces"] => Some(list(path, "EthernetInterface", ["NIC", "ToHost"].map(str::to_owned))),
        ["EthernetInterfaces", "NIC"] => Some(nic(view, path)),
        ["EthernetInterfaces", "ToHost"] => Some(to_host(state, path)),
        ["HostInterfaces"] => Some(list(path, "HostInterface", ["1".to_owned()])),
        ["HostInterfaces", "1"] => Some(said(
            path,
            "HostInterface.v1_3_0.HostInterface",
            json!({
                "Id": "1",
                "Name": "Host Interface",
                "HostInterfaceType": "NetworkHostInterface",
                "InterfaceEnabled": state.to_host,
                "ExternallyAccessible": false,
                "NetworkProtocol": link("/redfish/v1/Managers/1/NetworkProtocol"),
                "ManagerEthernetInterface": link("/redfish/v1/Managers/1/EthernetInterfaces/ToHost"),
                "Links": {"ComputerSystems": [link("/redfish/v1/Systems/1")]},
            }),
        )),
        ["NetworkProtocol"] => Some(network_protocol(view, state, path)),
        ["NetworkProtocol", "Oem", "Lenovo", "SNMP"] => Some(said(
            path,
            "LenovoSNMPProtocol.v1_0_0.LenovoSNMPProtocol",
            json!({
                "Id": "SNMP",
                "Name": "SNMP Protocol",
                "CommunityNames": [null],
                "SNMPv3Agent": {"ProtocolEnabled": false, "Port": 161, "Location": "", "ContactPerson": ""},
                "SNMPTraps": {
                    "Port": 162,
                    "ProtocolEnabled": state.snmp_v1_traps,
                    "SNMPv1TrapEnabled": state.snmp_v1_traps,
                    "Targets": [{"Addresses": [null]}],
                },
            }),
        )),
        ["Oem", "Lenovo", "Security"] => Some(said(
            path,
            "LenovoSecurityService.v1_0_0.LenovoSecurityService",
            json!({
                "Id": "Security",
                "Name": "Security",
                "CryptographyManagement": {"MinTLSLevel": state.tls},
                "Configurator": {"FWRollback": "Disabled"},
                "SSLSettings": {"EnableHttps": true, "EnableLDAPS": false, "EnableCIMOverHttps": false},
                "EncapSettings": {"EncapMode": "NormalMode", "WhiteList": []},
            }),
        )),
        ["Oem", "Lenovo", "Recipients"] => {
            Some(list(path, "LenovoAlertRecipient", state.recipients.keys().map(u32::to_string)))
        }
        ["Oem", "Lenovo", "Recipients", id] => recipient(state, path, id),
        _ => None,
    }
}

/// What the BMC itself takes as `ResetType`.
pub(super) const BMC_RESETS: [&str; 2] = ["GracefulRestart", "ForceRestart"];

fn recipient(state: &State, path: &str, id: &str) -> Option<Value> {
    let recipient = state.recipients.get(&id.parse().ok()?)?;
    Some(said(
        path,
        "LenovoAlertRecipient.v1_0_0.LenovoAlertRecipient",
        json!({
            "Id": id,
            "Name": format!("Recipient {id}"),
            "RecipientSettings": {
                "Enabledstate": if recipient.enabled { "Enabled" } else { "Disabled" },
                "RecipientName": recipient.name,
                "Address": recipient.address,
                "AlertType": recipient.kind,
                "IncludeEventLog": false,
                "EnabledAlerts": recipient.alerts,
            },
        }),
    ))
}

fn the_manager(view: &View<'_>, state: &State) -> Value {
    let path = "/redfish/v1/Managers/1";
    let kcs = match view.machine.has(Quirk::FlagsAsWords) {
        true => json!(if state.kcs { "Enabled" } else { "Disabled" }),
        false => json!(state.kcs),
    };
    said(
        path,
        "Manager.v1_14_0.Manager",
        json!({
            "Id": "1",
            "Name": "Manager",
            "Description": "This resource is used to represent a management subsystem for a Redfish implementation.",
            "ManagerType": "BMC",
            "Model": "Lenovo XClarity Controller",
            "UUID": uuid_of(&view.machine.serial),
            "ServiceEntryPointUUID": uuid_of(&view.machine.serial),
            "FirmwareVersion": view.machine.bmc.firmware,
            "DateTime": view.wall.strftime("%Y-%m-%dT%H:%M:%S+00:00").to_string(),
            "DateTimeLocalOffset": "+00:00",
            "AutoDSTEnabled": false,
            "PowerState": "On",
            "Status": {"State": "Enabled"},
            "EthernetInterfaces": link(format!("{path}/EthernetInterfaces")),
            "HostInterfaces": link(format!("{path}/HostInterfaces")),
            "NetworkProtocol": link(format!("{path}/NetworkProtocol")),
            "Links": {
                "ManagerForServers": [link("/redfish/v1/Systems/1")],
                "ManagerForServers@odata.count": 1,
                "ManagerForChassis": [link("/redfish/v1/Chassis/1")],
                "ManagerForChassis@odata.count": 1,
            },
            "Actions": {
                "#Manager.Reset": {
                    "title": "Reset",
                    "target": format!("{path}/Actions/Manager.Reset"),
                    "ResetType@Redfish.AllowableValues": BMC_RESETS,
                    "@Redfish.ActionInfo": format!("{path}/ResetActionInfo"),
                },
            },
            "Oem": {"Lenovo": {
                "@odata.type": "#LenovoManager.v1_0_0.LenovoManagerProperties",
                "KCSEnabled": kcs,
                "Recipients": link(format!("{path}/Oem/Lenovo/Recipients")),
                "Security": link(format!("{path}/Oem/Lenovo/Security")),
                "RecipientsSettings": {"RetryCount": 5, "RetryInterval": 0.5, "RntryRetryInterval": 0.5},
            }},
        }),
    )
}

fn nic(view: &View<'_>, path: &str) -> Value {
    let mac = view.machine.bmc.mac.to_string();
    said(
        path,
        "EthernetInterface.v1_8_0.EthernetInterface",
        json!({
            "Id": "NIC",
            "Name": "Manager Ethernet Interface",
            "Description": "Manager Ethernet Interface",
            "EthernetInterfaceType": "Physical",
            "Status": healthy(),
            "LinkStatus": "LinkUp",
            "InterfaceEnabled": true,
            "MACAddress": mac,
            "PermanentMACAddress": mac,
            "SpeedMbps": null,
            "AutoNeg": true,
            "FullDuplex": null,
            "MTUSize": 1500,
            "HostName": view.settings.hostname,
            "FQDN": view.settings.hostname,
            "VLAN": {"VLANEnable": false, "VLANId": 1},
            "DHCPv4": {
                "DHCPEnabled": view.settings.dhcp,
                "UseDNSServers": true,
                "UseDomainName": true,
                "UseGateway": null,
                "UseNTPServers": null,
                "UseStaticRoutes": null,
                "FallbackAddress": "Static",
            },
            "IPv4Addresses": [{
                "Address": view.machine.bmc.address.to_string(),
                "SubnetMask": "255.0.0.0",
                "AddressOrigin": if view.settings.dhcp { "DHCP" } else { "Static" },
                "Gateway": "127.0.0.1",
            }],
            "IPv6Addresses": [],
            "NameServers": ["0.0.0.0", "::"],
            "StaticNameServers": ["0.0.0.0", "::"],
            "Links": {"Chassis": link("/redfish/v1/Chassis/1")},
            "Oem": {"Lenovo": {
                "@odata.type": "#LenovoEthernetInterface.v1_0_0.LenovoEthernetInterfaceProperties",
                "IPv4Enabled": true,
                "IPv4AddressAssignedby": if view.settings.dhcp { "DHCPFirstThenStatic" } else { "Static" },
                "DomainName": "",
            }},
        }),
    )
}

/// The way to the host over USB; while it is off, its own address is nothing.
fn to_host(state: &State, path: &str) -> Value {
    let on = state.to_host;
    said(
        path,
        "EthernetInterface.v1_8_0.EthernetInterface",
        json!({
            "Id": "ToHost",
            "Name": "Manager Ethernet Over USB Interface",
            "Description": "Management Network Interface",
            "EthernetInterfaceType": "Physical",
            "Status": {"Health": "OK", "State": if on { "Enabled" } else { "Disabled" }},
            "LinkStatus": if on { "LinkUp" } else { "LinkDown" },
            "InterfaceEnabled": on,
            "HostName": "",
            "FQDN": "",
            "MTUSize": 1500,
            "SpeedMbps": null,
            "IPv4Addresses": [{
                "Address": if on { "169.254.95.118" } else { "0.0.0.0" },
                "SubnetMask": if on { "255.255.0.0" } else { "0.0.0.0" },
                "AddressOrigin": "Static",
                "Gateway": "0.0.0.0",
            }],
            "IPv6Addresses": [],
            "NameServers": [],
            "Links": {"Chassis": link("/redfish/v1/Chassis/1"), "HostInterface": link("/redfish/v1/Managers/1/HostInterfaces/1")},
        }),
    )
}

/// Four places for NTP servers, those that nobody filled empty.
fn network_protocol(view: &View<'_>, state: &State, path: &str) -> Value {
    let ntp = &view.settings.ntp;
    let mut servers: Vec<&str> = [&ntp.primary, &ntp.secondary].into_iter().flatten().map(String::as_str).collect();
    servers.resize(4, "");
    said(
        path,
        "ManagerNetworkProtocol.v1_8_0.ManagerNetworkProtocol",
        json!({
            "Id": "NetworkProtocol",
            "Name": "Manager Network Protocol",
            "Description": "The resource is used to represent the network service settings for the manager for a Redfish implementation.",
            "Status": healthy(),
            "HostName": view.settings.hostname,
            "FQDN": view.settings.hostname,
            "HTTP": {"ProtocolEnabled": true, "Port": 80},
            "SSH": {"ProtocolEnabled": true, "Port": 22},
            "IPMI": {"ProtocolEnabled": view.settings.ipmi_over_lan, "Port": 623},
            "NTP": {"ProtocolEnabled": ntp.enabled, "NTPServers": servers},
            "SNMP": {"EnableSNMPv3": false, "Port": 161},
            "SSDP": {
                "ProtocolEnabled": state.ssdp,
                "Port": 1900,
                "NotifyTTL": 2,
                "NotifyIPv6Scope": "Organization",
                "NotifyMulticastIntervalSeconds": 60,
            },
            "KVMIP": {"ProtocolEnabled": true, "Port": 3900},
            "VirtualMedia": {"ProtocolEnabled": true, "Port": 3900},
            "DHCP": {"ProtocolEnabled": true},
            "Oem": {"Lenovo": {
                "@odata.type": "#LenovoManagerNetworkProtocol.v1_0_0.LenovoManagerNetworkProtocolProperties",
                "SLP": {
                    "ProtocolEnabled": state.slp,
                    "Port": 427,
                    "AddressType": "Multicast",
                    "MulticastAddress": "239.255.255.253",
                },
                "CimOverHTTPS": {"ProtocolEnabled": false, "Port": 5989, "BackendEnabled": false},
                "SNMP": link(format!("{path}/Oem/Lenovo/SNMP")),
            }},
        }),
    )
}

pub(super) fn account_service(view: &View<'_>, state: &State, path: &str, rest: &[&str]) -> Option<Value> {
    match rest {
        [] => Some(said(
            path,
            "AccountService.v1_10_0.AccountService",
            json!({
                "Id": "AccountService",
                "Name": "AccountService",
                "Description": "This resource is used to represent a management account service for a Redfish implementation.",
                "ServiceEnabled": true,
                "LocalAccountAuth": "Enabled",
                "MinPasswordLength": 10,
                "MaxPasswordLength": 32,
                "AccountLockoutThreshold": LOCKOUT_THRESHOLD,
                "AccountLockoutDuration": LOCKOUT_S as u64,
                "AccountLockoutCounterResetAfter": LOCKOUT_S as u64,
                "AccountLockoutCounterResetEnabled": true,
                "Accounts": link(format!("{path}/Accounts")),
                "Roles": link(format!("{path}/Roles")),
                "Oem": {"Lenovo": {
                    "@odata.type": "#LenovoAccountService.v1_0_0.LenovoAccountServiceProperties",
                    "ComplexPassword": true,
                    "PasswordLength": 10,
                    "PasswordChangeOnFirstAccess": view.machine.has(Quirk::ForcedPasswordChange),
                    "PasswordExpirationPeriodDays": 0,
                    "PasswordExpirationWarningPeriod": 0,
                    "MinimumPasswordChangeIntervalHours": state.change_interval_h,
                    "MinimumPasswordReuseCycle": 0,
                    "WebInactivitySessionTimeout": 20,
                    "CurrentLoggedUsers": [],
                }},
            }),
        )),
        ["Accounts"] => {
            let listed = (1..=PLACES).filter(|id| fixed(view) || view.settings.users.contains_key(id));
            Some(list(path, "ManagerAccount", listed.map(|id| id.to_string())))
        }
        ["Accounts", id] => account(view, state, path, id.parse().ok()?),
        ["Roles"] => Some(list(path, "Role", ["Administrator", "Operator", "ReadOnly"].map(str::to_owned))),
        ["Roles", id] => {
            let privileges = match *id {
                "Administrator" => {
                    &["Login", "ConfigureManager", "ConfigureUsers", "ConfigureSelf", "ConfigureComponents"][..]
                }
                "Operator" => &["Login", "ConfigureSelf", "ConfigureComponents"],
                "ReadOnly" => &["Login", "ConfigureSelf"],
                _ => return None,
            };
            let body = json!({"Id": id, "Name": id, "IsPredefined": true, "AssignedPrivileges": privileges});
            Some(said(path, "Role.v1_3_1.Role", body))
        }
        _ => None,
    }
}

/// Whether accounts are places that are always there.
fn fixed(view: &View<'_>) -> bool {
    view.machine.has(Quirk::AccountsFixed)
}

/// An account as a resource; one that nobody has only where all places are listed.
fn account(view: &View<'_>, state: &State, path: &str, id: u32) -> Option<Value> {
    let user = view.settings.users.get(&id);
    if user.is_none() && !(fixed(view) && (1..=PLACES).contains(&id)) {
        return None;
    }
    let role = user.map_or("ReadOnly", |user| &user.role);
    let locked_until =
        user.and_then(|user| view.settings.logins.get(&user.name)).and_then(|logins| logins.locked_until_s);
    Some(said(
        path,
        "ManagerAccount.v1_8_1.ManagerAccount",
        json!({
            "Id": id.to_string(),
            "Name": format!("User{id}"),
            "Description": "This resource is used to represent an account for the manager for a Redfish implementation.",
            "UserName": user.map_or("", |user| &user.name),
            "Password": null,
            "RoleId": role,
            "Enabled": user.is_some_and(|user| user.enabled),
            "Locked": locked_until.is_some_and(|until| view.now.0.as_secs_f64() < until),
            "AccountTypes": user.map_or(&[][..], |user| &user.types),
            "PasswordChangeRequired": id == 1 && state.must_change,
            "PasswordExpiration": null,
            "HostBootstrapAccount": false,
            "Links": {"Role": link(format!("/redfish/v1/AccountService/Roles/{role}"))},
        }),
    ))
}

pub(super) fn session_service(path: &str) -> Value {
    said(
        path,
        "SessionService.v1_1_8.SessionService",
        json!({
            "Id": "SessionService",
            "Name": "SessionService",
            "Description": "This resource is used to represent a session service for a Redfish implementation.",
            "ServiceEnabled": true,
            "SessionTimeout": SESSION_TIMEOUT_S as u64,
            "Sessions": link(SESSIONS),
        }),
    )
}

/// Tasks are of changes that are done at once: their answers come before.
pub(super) fn task_service(state: &State, path: &str, rest: &[&str]) -> Option<Value> {
    match rest {
        [] => Some(said(
            path,
            "TaskService.v1_2_0.TaskService",
            json!({
                "Id": "TaskService",
                "Name": "Task Service",
                "Description": "This resource represents a task service for a Redfish implementation.",
                "ServiceEnabled": true,
                "CompletedTaskOverWritePolicy": "Oldest",
                "Status": {"Health": "OK", "HealthRollup": "OK", "State": "Enabled"},
                "Tasks": link(format!("{path}/Tasks")),
            }),
        )),
        ["Tasks"] => Some(list(path, "Task", (1..=state.tasks).map(|id| id.to_string()))),
        ["Tasks", id] => {
            let known = id.parse::<u32>().is_ok_and(|id| (1..=state.tasks).contains(&id));
            let body = json!({"Id": id, "Name": format!("Task {id}"), "TaskState": "Completed", "TaskStatus": "OK",
                "PercentComplete": 100, "Messages": []});
            known.then(|| said(path, "Task.v1_5_1.Task", body))
        }
        _ => None,
    }
}

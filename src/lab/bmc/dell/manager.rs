//! The iDRAC's own resources: root, manager, network, accounts, sessions, jobs.

use serde_json::{Value, json};

use super::state::{Dell, SLOTS};
use super::{ATTRIBUTES, CHASSIS, JOBS, MANAGER, SYSTEM, attributes, jobs};
use crate::lab::bmc::login::{SESSION_TIMEOUT_S, SESSIONS};
use crate::lab::bmc::tree::{View, described, healthy, link, list, uuid_of};
use crate::lab::machine::Quirk;

pub(super) fn root(view: &View<'_>) -> Value {
    json!({
        "@odata.context": "/redfish/v1/$metadata#ServiceRoot.ServiceRoot",
        "@odata.type": "#ServiceRoot.v1_10_0.ServiceRoot",
        "@odata.id": "/redfish/v1",
        "Id": "RootService",
        "Name": "Root Service",
        "Description": "Root Service",
        "Vendor": "Dell",
        "Product": "Integrated Dell Remote Access Controller",
        "RedfishVersion": "1.13.1",
        "Systems": link("/redfish/v1/Systems"),
        "Chassis": link("/redfish/v1/Chassis"),
        "Managers": link("/redfish/v1/Managers"),
        "JobService": link("/redfish/v1/JobService"),
        "Tasks": link("/redfish/v1/TaskService"),
        "SessionService": link("/redfish/v1/SessionService"),
        "AccountService": link("/redfish/v1/AccountService"),
        "Links": {"Sessions": link(SESSIONS)},
        "Oem": {"Dell": {
            "@odata.context": "/redfish/v1/$metadata#DellServiceRoot.DellServiceRoot",
            "@odata.type": "#DellServiceRoot.v1_0_0.DellServiceRoot",
            "IsBranded": 0,
            "ManagerMACAddress": view.machine.bmc.mac.to_string(),
            "ServiceTag": view.machine.serial,
        }},
        "ProtocolFeaturesSupported": {
            "DeepOperations": {"DeepPATCH": false, "DeepPOST": false},
            "ExcerptQuery": false,
            "ExpandQuery": {"ExpandAll": true, "Levels": true, "Links": true, "MaxLevels": 1, "NoLinks": true},
            "FilterQuery": true,
            "OnlyMemberQuery": true,
            "SelectQuery": true,
        },
    })
}

pub(super) fn manager(view: &View<'_>, path: &str, rest: &[&str]) -> Option<Value> {
    match rest {
        [] => Some(the_manager(view)),
        ["EthernetInterfaces"] => {
            let list = list(path, "EthernetInterface", "Ethernet Network Interface Collection", ["NIC.1".to_owned()]);
            Some(described(list, "Collection of EthernetInterfaces for this Manager"))
        }
        ["EthernetInterfaces", "NIC.1"] => Some(nic(view, path)),
        ["NetworkProtocol"] => Some(network_protocol(view, path)),
        ["Oem", "Dell", "DellAttributes", "iDRAC.Embedded.1"] => Some(attributes::resource(view, path)),
        ["Oem", "Dell", "DellLCService"] => Some(jobs::lc_service(path)),
        ["Oem", "Dell", "DellJobService"] => Some(jobs::service(view.machine, path)),
        ["Oem", "Dell", "Jobs"] => {
            let ids = Dell::of(view.machine).jobs.into_iter().map(|job| job.id);
            Some(described(list(path, "DellJob", "JobQueue", ids), "Collection of Job Instances"))
        }
        ["Oem", "Dell", "Jobs", id] => {
            let dell = Dell::of(view.machine);
            let job = dell.jobs.iter().find(|job| job.id == *id)?;
            Some(jobs::resource(view.machine, job, view.now, path))
        }
        _ => None,
    }
}

fn the_manager(view: &View<'_>) -> Value {
    let model = if view.machine.has(Quirk::Idrac10) { "17G Monolithic" } else { "15G Monolithic" };
    json!({
        "@odata.context": "/redfish/v1/$metadata#Manager.Manager",
        "@odata.type": "#Manager.v1_12_0.Manager",
        "@odata.id": MANAGER,
        "Id": "iDRAC.Embedded.1",
        "Name": "Manager",
        "Description": "BMC",
        "ManagerType": "BMC",
        "Model": model,
        "UUID": uuid_of(&view.machine.serial),
        "FirmwareVersion": view.machine.bmc.firmware,
        "DateTime": whole_seconds(view.wall),
        "DateTimeLocalOffset": "+00:00",
        "LastResetTime": whole_seconds(view.booted),
        "PowerState": "On",
        "Status": healthy(),
        "EthernetInterfaces": link(format!("{MANAGER}/EthernetInterfaces")),
        "NetworkProtocol": link(format!("{MANAGER}/NetworkProtocol")),
        "Links": {
            "ManagerForServers": [link(SYSTEM)],
            "ManagerForChassis": [link(CHASSIS)],
            "ManagerInChassis": link(CHASSIS),
            "Oem": {"Dell": {
                "@odata.type": "#DellOem.v1_3_0.DellOemLinks",
                "DellAttributes": [link(ATTRIBUTES)],
                "DellJobService": link(format!("{MANAGER}/Oem/Dell/DellJobService")),
                "DellLCService": link(format!("{MANAGER}/Oem/Dell/DellLCService")),
                "Jobs": link(JOBS),
            }},
        },
        "Actions": {"#Manager.Reset": {
            "target": format!("{MANAGER}/Actions/Manager.Reset"),
            "ResetType@Redfish.AllowableValues": ["GracefulRestart"],
        }},
    })
}

/// As BMCs write times: without fractions.
fn whole_seconds(at: jiff::Timestamp) -> String {
    at.strftime("%Y-%m-%dT%H:%M:%S+00:00").to_string()
}

/// The name that it has where nobody gave it one.
pub(super) fn hostname(view: &View<'_>) -> String {
    view.settings.hostname.clone().unwrap_or_else(|| format!("idrac-{}", view.machine.serial))
}

fn nic(view: &View<'_>, path: &str) -> Value {
    json!({
        "@odata.context": "/redfish/v1/$metadata#EthernetInterface.EthernetInterface",
        "@odata.type": "#EthernetInterface.v1_6_4.EthernetInterface",
        "@odata.id": path,
        "Id": "NIC.1",
        "Name": "Manager Ethernet Interface",
        "Description": "Management Network Interface",
        "EthernetInterfaceType": "Physical",
        "InterfaceEnabled": true,
        "AutoNeg": true,
        "FullDuplex": true,
        "FQDN": "",
        "HostName": hostname(view),
        "IPv4Addresses": [{
            "Address": view.machine.bmc.address.to_string(),
            "AddressOrigin": if view.settings.dhcp { "DHCP" } else { "Static" },
            "Gateway": "127.0.0.1",
            "SubnetMask": "255.0.0.0",
        }],
        "IPv6Addresses": [{"Address": "::", "AddressOrigin": null, "AddressState": null, "PrefixLength": 64}],
        "Links": {"Chassis": link(CHASSIS)},
        "MACAddress": view.machine.bmc.mac.to_string(),
        "PermanentMACAddress": view.machine.bmc.mac.to_string(),
        "MTUSize": 1500,
        "SpeedMbps": 1000,
        "Status": {"Health": "OK", "State": "Enabled"},
        "VLAN": {"VLANEnable": false, "VLANId": 1},
    })
}

fn network_protocol(view: &View<'_>, path: &str) -> Value {
    let ntp = &view.settings.ntp;
    let servers: Vec<&String> = [&ntp.primary, &ntp.secondary].into_iter().flatten().collect();
    let dell = Dell::of(view.machine);
    let is_on = |name: &str| dell.attributes.get(name).is_some_and(|word| word == "Enabled");
    json!({
        "@odata.context": "/redfish/v1/$metadata#ManagerNetworkProtocol.ManagerNetworkProtocol",
        "@odata.type": "#ManagerNetworkProtocol.v1_7_0.ManagerNetworkProtocol",
        "@odata.id": path,
        "Id": "NetworkProtocol",
        "Name": "Manager Network Protocol",
        "Description": "Manager Network Service Status",
        "Status": {"Health": "OK", "HealthRollup": "OK", "State": "Enabled"},
        "HostName": hostname(view),
        "FQDN": "",
        "HTTP": {"Port": 80, "ProtocolEnabled": true},
        "IPMI": {"ProtocolEnabled": view.settings.ipmi_over_lan},
        "NTP": {"NTPServers": servers, "NTPServers@odata.count": servers.len(), "ProtocolEnabled": ntp.enabled},
        "RFB": {"Port": 5901, "ProtocolEnabled": is_on("VNCServer.1.Enable")},
        "SNMP": {"Port": 161, "ProtocolEnabled": is_on("SNMP.1.AgentEnable")},
        "SSH": {"Port": 22, "ProtocolEnabled": true},
        "Telnet": {"Port": 23, "ProtocolEnabled": is_on("Telnet.1.Enable")},
    })
}

pub(super) fn account_service(view: &View<'_>, path: &str, rest: &[&str]) -> Option<Value> {
    match rest {
        [] => Some(json!({
            "@odata.context": "/redfish/v1/$metadata#AccountService.AccountService",
            "@odata.type": "#AccountService.v1_9_0.AccountService",
            "@odata.id": path,
            "Id": "RemoteAccountService",
            "Name": "Account Service",
            "Description": "BMC User Accounts",
            "Status": healthy(),
            "ServiceEnabled": true,
            // The iDRAC blocks addresses instead.
            "AccountLockoutCounterResetAfter": 0,
            "AccountLockoutDuration": 0,
            "AccountLockoutThreshold": 0,
            "AuthFailureLoggingThreshold": 2,
            "LocalAccountAuth": "Fallback",
            "MaxPasswordLength": 40,
            "MinPasswordLength": 0,
            "Accounts": link(format!("{path}/Accounts")),
            "Roles": link(format!("{path}/Roles")),
            "SupportedAccountTypes": TYPES,
        })),
        ["Accounts"] => {
            let ids = (1..=SLOTS).map(|slot| slot.to_string());
            Some(described(list(path, "ManagerAccount", "Accounts Collection", ids), "BMC User Accounts Collection"))
        }
        ["Accounts", id] => id.parse().ok().filter(|slot| (1..=SLOTS).contains(slot)).map(|n| account(view, path, n)),
        ["Roles"] => {
            let roles = ["Administrator", "Operator", "ReadOnly", "None"].map(str::to_owned);
            Some(list(path, "Role", "Roles Collection", roles))
        }
        ["Roles", id] => {
            let privileges = match *id {
                "Administrator" => {
                    &["Login", "ConfigureManager", "ConfigureUsers", "ConfigureSelf", "ConfigureComponents"][..]
                }
                "Operator" => &["Login", "ConfigureSelf", "ConfigureComponents"],
                "ReadOnly" => &["Login", "ConfigureSelf"],
                "None" => &[],
                _ => return None,
            };
            Some(json!({
                "@odata.type": "#Role.v1_3_1.Role",
                "@odata.id": path,
                "Id": id,
                "Name": "User Role",
                "Description": format!("{id} User Role"),
                "IsPredefined": true,
                "AssignedPrivileges": privileges,
                "RoleId": id,
            }))
        }
        _ => None,
    }
}

const TYPES: [&str; 9] =
    ["Redfish", "SNMP", "OEM", "HostConsole", "ManagerConsole", "IPMI", "KVMIP", "VirtualMedia", "WebUI"];

/// A place for an account, used or not. All say that they are for everything.
fn account(view: &View<'_>, path: &str, slot: u32) -> Value {
    let user = view.settings.users.get(&slot);
    let role = user.map_or("None", |user| user.role.as_str());
    json!({
        "@odata.context": "/redfish/v1/$metadata#ManagerAccount.ManagerAccount",
        "@odata.type": "#ManagerAccount.v1_8_0.ManagerAccount",
        "@odata.id": path,
        "Id": slot.to_string(),
        "Name": "User Account",
        "Description": "User Account",
        "UserName": user.map_or("", |user| user.name.as_str()),
        "Password": null,
        "PasswordChangeRequired": false,
        "PasswordExpiration": null,
        "RoleId": role,
        "Enabled": user.is_some_and(|user| user.enabled),
        "Locked": false,
        "AccountTypes": TYPES,
        "OEMAccountTypes": ["IPMI", "SOL", "WSMAN", "UI", "RACADM"],
        "StrictAccountTypes": false,
        "Links": {"Role": link(format!("/redfish/v1/AccountService/Roles/{role}"))},
    })
}

pub(super) fn session_service() -> Value {
    json!({
        "@odata.context": "/redfish/v1/$metadata#SessionService.SessionService",
        "@odata.type": "#SessionService.v1_1_8.SessionService",
        "@odata.id": "/redfish/v1/SessionService",
        "Id": "SessionService",
        "Name": "Session Service",
        "Description": "Session Service",
        "ServiceEnabled": true,
        "SessionTimeout": SESSION_TIMEOUT_S as u64,
        "Sessions": link(SESSIONS),
    })
}

/// The jobs in the standard's form.
pub(super) fn job_service(view: &View<'_>, path: &str, rest: &[&str]) -> Option<Value> {
    let dell = Dell::of(view.machine);
    match rest {
        [] => Some(json!({
            "@odata.context": "/redfish/v1/$metadata#JobService.JobService",
            "@odata.type": "#JobService.v1_0_4.JobService",
            "@odata.id": path,
            "Id": "JobService",
            "Name": "Job Service",
            "Description": "Represent a job service for a Redfish",
            "DateTime": whole_seconds(view.wall),
            "ServiceEnabled": true,
            "Status": {"State": "Enabled", "Health": "OK"},
            "Jobs": link(format!("{path}/Jobs")),
        })),
        ["Jobs"] => {
            let ids = dell.jobs.into_iter().map(|job| job.id);
            Some(described(list(path, "Job", "JobCollection", ids), "A Collection of Job resource instances"))
        }
        ["Jobs", id] => {
            let job = dell.jobs.iter().find(|job| job.id == *id)?;
            let own = jobs::resource(view.machine, job, view.now, path);
            Some(json!({
                "@odata.context": "/redfish/v1/$metadata#Job.Job",
                "@odata.type": "#Job.v1_0_7.Job",
                "@odata.id": path,
                "Id": id,
                "Name": "ConfigBIOS:BIOS.Setup.1-1",
                "Description": "Represent a job in Redfish",
                "JobState": own["JobState"],
                "JobStatus": "OK",
                "PercentComplete": own["PercentComplete"],
                "StartTime": own["StartTime"],
                "Messages": [{"Message": own["Message"], "MessageId": own["MessageId"], "MessageArgs": []}],
            }))
        }
        _ => None,
    }
}

pub(super) fn task_service(path: &str, rest: &[&str]) -> Option<Value> {
    match rest {
        [] => Some(json!({
            "@odata.context": "/redfish/v1/$metadata#TaskService.TaskService",
            "@odata.type": "#TaskService.v1_2_0.TaskService",
            "@odata.id": path,
            "Id": "TaskService",
            "Name": "Task Service",
            "ServiceEnabled": true,
            "Status": {"Health": "OK", "State": "Enabled"},
            "Tasks": link(format!("{path}/Tasks")),
        })),
        ["Tasks"] => Some(described(list(path, "Task", "Task Collection", []), "Collection of Tasks")),
        _ => None,
    }
}

//! The BMC's own resources: root, manager, network, accounts, sessions, tasks.

use serde_json::{Value, json};

use crate::lab::bmc::login::{LOCKOUT_S, LOCKOUT_THRESHOLD, SESSION_TIMEOUT_S, SESSIONS};
use crate::lab::bmc::tree::{View, described, healthy, link, list, uuid_of};

pub(super) fn root(view: &View<'_>) -> Value {
    json!({
        "@odata.type": "#ServiceRoot.v1_9_0.ServiceRoot",
        "@odata.id": "/redfish/v1",
        "Id": "ServiceRoot",
        "Name": "Root Service",
        "RedfishVersion": "1.11.0",
        "UUID": uuid_of(&view.machine.serial),
        "Systems": link("/redfish/v1/Systems"),
        "Chassis": link("/redfish/v1/Chassis"),
        "Managers": link("/redfish/v1/Managers"),
        "Tasks": link("/redfish/v1/TaskService"),
        "SessionService": link("/redfish/v1/SessionService"),
        "AccountService": link("/redfish/v1/AccountService"),
        "Links": {"Sessions": link(SESSIONS)},
        // No `Vendor`: this firmware is known by its Oem object only.
        "Oem": {"Supermicro": {"DumpService": link("/redfish/v1/Oem/Supermicro/DumpService")}},
        "ProtocolFeaturesSupported": {
            "FilterQuery": false,
            "SelectQuery": false,
            "ExcerptQuery": false,
            "OnlyMemberQuery": false,
            "DeepOperations": {"DeepPATCH": false, "DeepPOST": false, "MaxLevels": 1},
            "ExpandQuery": {"Links": false, "NoLinks": true, "ExpandAll": false, "Levels": true, "MaxLevels": 1},
        },
    })
}

pub(super) fn manager(view: &View<'_>, path: &str, rest: &[&str]) -> Option<Value> {
    match rest {
        [] => Some(the_manager(view)),
        ["EthernetInterfaces"] => {
            let list = list(
                path,
                "EthernetInterface",
                "Ethernet Network Interface Collection",
                ["1".to_owned(), "ToHost".to_owned()],
            );
            Some(described(list, "Collection of EthernetInterfaces for this Manager"))
        }
        ["EthernetInterfaces", "1"] => Some(nic(view, path)),
        ["EthernetInterfaces", "ToHost"] => Some(nic_to_host(path)),
        ["NetworkProtocol"] => Some(network_protocol(view, path)),
        ["Oem", "Supermicro", "NTP"] => {
            let ntp = &view.settings.ntp;
            Some(json!({
                "@odata.type": "#NTP.v1_0_3.NTP",
                "@odata.id": path,
                "Id": "NTP",
                "Name": "NTP Service",
                "NTPEnable": ntp.enabled,
                "PrimaryNTPServer": ntp.primary,
                "SecondaryNTPServer": ntp.secondary,
                "DaylightSavingTime": false,
            }))
        }
        ["Oem", "Supermicro", "Syslog"] => {
            let syslog = &view.settings.syslog;
            Some(json!({
                "@odata.type": "#Syslog.v1_0_1.Syslog",
                "@odata.id": path,
                "Id": "Syslog",
                "Name": "Syslog",
                "EnableSyslog": syslog.enabled,
                "SyslogServer": syslog.server,
                "SyslogPortNumber": syslog.port,
            }))
        }
        _ => None,
    }
}

fn the_manager(view: &View<'_>) -> Value {
    let path = "/redfish/v1/Managers/1";
    json!({
        "@odata.type": "#Manager.v1_11_0.Manager",
        "@odata.id": path,
        "Id": "1",
        "Name": "Manager",
        "Description": "BMC",
        "ManagerType": "BMC",
        "UUID": uuid_of(&view.machine.serial),
        "Model": "ASPEED",
        "FirmwareVersion": view.machine.bmc.firmware,
        "DateTime": whole_seconds(view.wall),
        "DateTimeLocalOffset": "+00:00",
        "LastResetTime": whole_seconds(view.booted),
        "AutoDSTEnabled": false,
        "TimeZoneName": "(UTC+00:00) Coordinated Universal Time",
        "Status": healthy(),
        "NetworkProtocol": link(format!("{path}/NetworkProtocol")),
        "EthernetInterfaces": link(format!("{path}/EthernetInterfaces")),
        "Links": {
            "ManagerForServers": [link("/redfish/v1/Systems/1")],
            "ManagerForChassis": [link("/redfish/v1/Chassis/1")],
            "ManagerInChassis": link("/redfish/v1/Chassis/1/"),
            "Oem": {},
        },
        "Actions": {
            "Oem": {},
            "#Manager.Reset": {
                "target": format!("{path}/Actions/Manager.Reset"),
                "ResetType@Redfish.AllowableValues": ["GracefulRestart"],
            },
        },
        "Oem": {"Supermicro": {
            "@odata.type": "#SmcManagerExtensions.v1_0_0.Manager",
            "NTP": link(format!("{path}/Oem/Supermicro/NTP")),
            "Syslog": link(format!("{path}/Oem/Supermicro/Syslog")),
        }},
    })
}

/// As BMCs write times: without fractions.
fn whole_seconds(at: jiff::Timestamp) -> String {
    at.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

fn nic(view: &View<'_>, path: &str) -> Value {
    let address = view.machine.bmc.address;
    json!({
        "@odata.type": "#EthernetInterface.v1_6_3.EthernetInterface",
        "@odata.id": path,
        "Id": "1",
        "Name": "Manager Ethernet Interface",
        "Description": "Management Network Interface",
        "Status": healthy(),
        "LinkStatus": "LinkUp",
        "MACAddress": view.machine.bmc.mac.to_string().to_uppercase(),
        "SpeedMbps": 1000,
        "AutoNeg": true,
        "FullDuplex": true,
        "MTUSize": 1500,
        "HostName": view.settings.hostname,
        "FQDN": null,
        "VLAN": {"VLANEnable": false, "VLANId": 1},
        "DHCPv4": {
            "DHCPEnabled": view.settings.dhcp,
            "UseDNSServers": false,
            "UseGateway": true,
            "UseNTPServers": false,
            "UseStaticRoutes": false,
            "UseDomainName": false,
            "FallbackAddress": "None",
        },
        "IPv4Addresses": [{
            "Address": address.to_string(),
            "SubnetMask": "255.0.0.0",
            "AddressOrigin": if view.settings.dhcp { "DHCP" } else { "Static" },
            "Gateway": "127.0.0.1",
        }],
        "IPv6Addresses": [],
        "NameServers": ["(null)"],
        "StaticNameServers": [],
        "Oem": {"Supermicro": {
            "@odata.type": "#SmcEthernetInterfaceExtensions.v1_0_2.EthernetInterface",
            "LANInterface": "Failover",
            "ActiveInterface": "Dedicated",
        }},
    })
}

fn nic_to_host(path: &str) -> Value {
    json!({
        "@odata.type": "#EthernetInterface.v1_6_3.EthernetInterface",
        "@odata.id": path,
        "Id": "ToHost",
        "Name": "Manager Ethernet Interface",
        "Description": "Management Network Interface",
        "Status": healthy(),
        "InterfaceEnabled": true,
        "SpeedMbps": 100,
        "AutoNeg": true,
        "FullDuplex": true,
        "MTUSize": 1500,
        "HostName": null,
        "IPv4Addresses": [{
            "Address": "169.254.3.254",
            "SubnetMask": "255.255.255.0",
            "AddressOrigin": "Static",
            "Gateway": "169.254.3.254",
        }],
        "Links": {},
        "Oem": {"Supermicro": {
            "@odata.type": "#SmcEthernetInterfaceExtensions.v1_0_2.EthernetInterface",
            "USBConnection": "RNDIS",
        }},
    })
}

fn network_protocol(view: &View<'_>, path: &str) -> Value {
    let ntp = &view.settings.ntp;
    let servers: Vec<&String> = [&ntp.primary, &ntp.secondary].into_iter().flatten().collect();
    json!({
        "@odata.type": "#ManagerNetworkProtocol.v1_6_2.ManagerNetworkProtocol",
        "@odata.id": path,
        "Id": "NetworkProtocol",
        "Name": "Manager Network Protocol",
        "Description": "Manager Network Service Status",
        "Status": healthy(),
        "HostName": view.settings.hostname,
        "FQDN": null,
        "HTTP": {"ProtocolEnabled": true, "Port": 80},
        "IPMI": {"ProtocolEnabled": view.settings.ipmi_over_lan, "Port": 623},
        "SSH": {"ProtocolEnabled": true, "Port": 22},
        "NTP": {"ProtocolEnabled": ntp.enabled, "NTPServers": servers},
    })
}

pub(super) fn account_service(view: &View<'_>, path: &str, rest: &[&str]) -> Option<Value> {
    match rest {
        [] => Some(json!({
            "@odata.type": "#AccountService.v1_7_2.AccountService",
            "@odata.id": path,
            "Id": "AccountService",
            "Name": "Account Service",
            "Description": "Account Service",
            "Status": healthy(),
            "ServiceEnabled": true,
            "MinPasswordLength": 8,
            "MaxPasswordLength": 20,
            "AuthFailureLoggingThreshold": LOCKOUT_THRESHOLD,
            "AccountLockoutThreshold": LOCKOUT_THRESHOLD,
            "AccountLockoutDuration": LOCKOUT_S as u64,
            "AccountLockoutCounterResetAfter": LOCKOUT_S as u64,
            "Accounts": link(format!("{path}/Accounts")),
            "Roles": link(format!("{path}/Roles")),
            "Oem": {"Supermicro": {"@odata.type": "#SmcAccountServiceExtensions.v1_0_1.AccountService"}},
        })),
        ["Accounts"] => {
            Some(list(path, "ManagerAccount", "Accounts Collection", view.settings.users.keys().map(u32::to_string)))
        }
        ["Accounts", id] => account(view, path, id.parse().ok()?),
        ["Roles"] => {
            let roles = ["Administrator", "Operator", "ReadOnly"].map(str::to_owned);
            Some(list(path, "Role", "Roles Collection", roles))
        }
        ["Roles", id] => {
            let privileges = match *id {
                "Administrator" => {
                    &["Login", "ConfigureManager", "ConfigureUsers", "ConfigureSelf", "ConfigureComponents"][..]
                }
                "Operator" => &["Login", "ConfigureSelf", "ConfigureComponents"],
                "ReadOnly" => &["Login", "ConfigureSelf"],
                _ => return None,
            };
            Some(json!({
                "@odata.type": "#Role.v1_2_5.Role",
                "@odata.id": path,
                "Id": id,
                "Name": "User Role",
                "IsPredefined": true,
                "Description": format!("{id} User Role"),
                "AssignedPrivileges": privileges,
                "OemPrivileges": [],
            }))
        }
        _ => None,
    }
}

/// An account as a resource; its password reads as nothing.
pub(super) fn account(view: &View<'_>, path: &str, id: u32) -> Option<Value> {
    let user = view.settings.users.get(&id)?;
    let logins = view.settings.logins.get(&user.name);
    let locked = logins.and_then(|l| l.locked_until_s).is_some_and(|until| view.now.0.as_secs_f64() < until);
    Some(json!({
        "@odata.type": "#ManagerAccount.v1_8_0.ManagerAccount",
        "@odata.id": path,
        "Id": id.to_string(),
        "Name": "User Account",
        "RoleId": user.role,
        "Description": "User Account",
        "UserName": user.name,
        "Password": null,
        "Locked": locked,
        "Enabled": user.enabled,
        "AccountTypes": user.types,
        "Links": {"Role": link(format!("/redfish/v1/AccountService/Roles/{}", user.role))},
        "HostBootstrapAccount": false,
    }))
}

pub(super) fn session_service() -> Value {
    json!({
        "@odata.type": "#SessionService.v1_1_7.SessionService",
        "@odata.id": "/redfish/v1/SessionService",
        "Id": "SessionService",
        "Name": "Session Service",
        "Description": "Session Service",
        "Status": healthy(),
        "ServiceEnabled": true,
        "SessionTimeout": SESSION_TIMEOUT_S as u64,
        "Sessions": link(SESSIONS),
    })
}

/// Only the last task is kept: that of the last change of NTP.
pub(super) fn task_service(view: &View<'_>, path: &str, rest: &[&str]) -> Option<Value> {
    let last = view.settings.tasks;
    match rest {
        [] => Some(json!({
            "@odata.type": "#TaskService.v1_1_5.TaskService",
            "@odata.id": path,
            "Id": "TaskService",
            "Name": "Tasks Service",
            "DateTime": whole_seconds(view.wall),
            "CompletedTaskOverWritePolicy": "Oldest",
            "LifeCycleEventOnTaskStateChange": false,
            "Status": healthy(),
            "ServiceEnabled": true,
            "Tasks": link(format!("{path}/Tasks")),
            "Oem": {},
        })),
        ["Tasks"] => {
            let ids = (last > 0).then(|| last.to_string());
            Some(list(path, "Task", "Task Collection", ids))
        }
        ["Tasks", id] if last > 0 && *id == last.to_string() => {
            let done = view.settings.ntp_next.is_none();
            Some(json!({
                "@odata.type": "#Task.v1_4_3.Task",
                "@odata.id": path,
                "Id": id,
                "Name": "Task",
                "TaskState": if done { "Completed" } else { "Running" },
                "TaskStatus": "OK",
                "PercentComplete": if done { 100 } else { 50 },
                "Messages": [],
            }))
        }
        _ => None,
    }
}

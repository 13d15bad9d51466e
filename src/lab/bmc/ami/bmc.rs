//! The BMC's own resources: root, manager, network, media, accounts.

use serde_json::{Map, Value, json};

use super::Ids;
use super::said::{list, said};
use super::state::State;
use crate::lab::bmc::login::{LOCKOUT_S, LOCKOUT_THRESHOLD, SESSIONS};
use crate::lab::bmc::tree::{View, healthy, link, uuid_of};
use crate::lab::machine::Quirk;

/// The place of an account that is listed and cannot be read (Q67).
const UNREADABLE: u32 = 9;

/// Some firmware loses the links of its root until the BMC is reset (Q36).
pub(super) fn root(view: &View<'_>) -> Value {
    let lenovo = view.machine.has(Quirk::VendorLenovo);
    let mut body = said(
        "/redfish/v1",
        "ServiceRoot.v1_13_0.ServiceRoot",
        json!({
            "Id": "RootService",
            "Name": "Root Service",
            "Description": "The service root for all Redfish requests on this host",
            "Vendor": if lenovo { "Lenovo" } else { "AMI" },
            "Product": "AMI Redfish Server",
            "RedfishVersion": "1.11.0",
            "UUID": uuid_of(&view.machine.serial),
            "Links": {"Sessions": link(SESSIONS)},
            "Oem": {"Ami": {"@odata.type": "#AMIServiceRoot.v1_0_0.AMIServiceRoot", "RtpVersion": "13.03"}},
            "ProtocolFeaturesSupported": {
                "DeepOperations": {"DeepPATCH": true, "DeepPOST": false, "MaxLevels": 6},
                "ExcerptQuery": true,
                "ExpandQuery": {"ExpandAll": true, "Levels": true, "Links": true, "MaxLevels": 5, "NoLinks": true},
                "FilterQuery": true,
                "OnlyMemberQuery": true,
                "SelectQuery": true,
            },
        }),
    );
    if lenovo {
        body["Product"] = Value::Null;
    }
    let lost = view.machine.has(Quirk::RootWithoutLinks) && view.machine.bmc.resets == 0;
    let kept = if lost {
        &["SessionService"][..]
    } else {
        &["AccountService", "Chassis", "Managers", "SessionService", "Systems"]
    };
    for name in kept {
        body[*name] = link(format!("/redfish/v1/{name}"));
    }
    if !lost {
        body["Tasks"] = link("/redfish/v1/TaskService");
    }
    body
}

pub(super) fn manager(view: &View<'_>, state: &State, ids: &Ids, path: &str, rest: &[&str]) -> Option<Value> {
    match rest {
        [] => Some(the_manager(view, state, ids)),
        ["ResetActionInfo"] => Some(action_info(
            path,
            "ResetAction",
            json!([{
                "Name": "ResetType", "Required": true, "DataType": "String", "AllowableValues": ["ForceRestart"],
            }]),
        )),
        ["Oem", "EnableRMediaActionInfo"] => Some(action_info(
            path,
            "RMediaSupportAction",
            json!([{
                "Name": "RMediaState", "Required": true, "DataType": "String", "AllowableValues": ["Enable", "Disable"],
            }]),
        )),
        ["EthernetInterfaces"] => Some(list(path, "EthernetInterface", ["eth0", "usb0"].map(str::to_owned))),
        ["EthernetInterfaces", "eth0"] => Some(nic(view, path)),
        ["EthernetInterfaces", "usb0"] => Some(said(
            path,
            "EthernetInterface.v1_6_2.EthernetInterface",
            json!({
                "Id": "usb0",
                "Name": "usb0",
                "InterfaceEnabled": true,
                "IPv4Addresses": [{"Address": "169.254.0.17", "SubnetMask": "255.255.0.0"}],
                "Status": healthy(),
            }),
        )),
        ["NetworkProtocol"] => Some(network_protocol(view, path)),
        ["VirtualMedia"] => {
            let ids = if state.shows_media(view.now) { &["CD1", "CD2", "CD3", "CD4"][..] } else { &[] };
            Some(list(path, "VirtualMedia", ids.iter().map(|id| (*id).to_owned())))
        }
        ["VirtualMedia", id] if state.shows_media(view.now) && ["CD1", "CD2", "CD3", "CD4"].contains(id) => Some(said(
            path,
            "VirtualMedia.v1_5_1.VirtualMedia",
            json!({"Id": id, "Name": id, "MediaTypes": ["CD", "DVD"], "Inserted": false, "Image": null}),
        )),
        _ => None,
    }
}

fn action_info(path: &str, id: &str, parameters: Value) -> Value {
    let body = json!({"Id": id, "Name": id, "Description": "An action", "Parameters": parameters});
    said(path, "ActionInfo.v1_1_2.ActionInfo", body)
}

fn the_manager(view: &View<'_>, state: &State, ids: &Ids) -> Value {
    let path = ids.manager();
    let seconds = |at: jiff::Timestamp| at.strftime("%Y-%m-%dT%H:%M:%S+00:00").to_string();
    let mut body = said(
        &path,
        "Manager.v1_14_0.Manager",
        json!({
            "Id": ids.manager,
            "Name": "Manager",
            "Description": "BMC",
            "ManagerType": "BMC",
            "Model": "77171220",
            "UUID": uuid_of(&view.machine.serial),
            "ServiceEntryPointUUID": uuid_of(&view.machine.serial),
            "FirmwareVersion": view.machine.bmc.firmware,
            "DateTime": seconds(view.wall),
            "DateTimeLocalOffset": "+00:00",
            "PowerState": "On",
            "Status": healthy(),
            "EthernetInterfaces": link(format!("{path}/EthernetInterfaces")),
            "NetworkProtocol": link(format!("{path}/NetworkProtocol")),
            "VirtualMedia": link(format!("{path}/VirtualMedia")),
            "Links": {"ManagerInChassis": link(ids.chassis())},
            "Oem": {"Ami": {
                "@odata.type": "#AMIManager.v1_0_0.AMIManager",
                "VirtualMedia": {"CDInstances": 4, "RMediaStatus": if state.media { "Enabled" } else { "Disabled" }},
            }},
        }),
    );
    let (reset, media) = ("#Manager.Reset", "#AMIVirtualMedia.EnableRMedia");
    let mut own = Map::new();
    own.insert(
        media.to_owned(),
        json!({
            "target": format!("{path}/Actions/Oem/AMIVirtualMedia.EnableRMedia"),
            "@Redfish.ActionInfo": format!("{path}/Oem/EnableRMediaActionInfo"),
        }),
    );
    // What it takes stands in the action's own resource only.
    body["Actions"] = json!({
        reset: {
            "target": format!("{path}/Actions/Manager.Reset"),
            "@Redfish.ActionInfo": format!("{path}/ResetActionInfo"),
        },
        "Oem": own,
    });
    body
}

fn nic(view: &View<'_>, path: &str) -> Value {
    let mac = view.machine.bmc.mac.to_string().to_uppercase();
    said(
        path,
        "EthernetInterface.v1_6_2.EthernetInterface",
        json!({
            "Id": "eth0",
            "Name": "eth0",
            "Description": "Ethernet Interface eth0",
            "InterfaceEnabled": true,
            "LinkStatus": "LinkUp",
            "MACAddress": mac,
            "PermanentMACAddress": mac,
            "SpeedMbps": 1000,
            "AutoNeg": true,
            "FullDuplex": true,
            "MTUSize": 1500,
            "HostName": view.settings.hostname,
            "DHCPv4": {"DHCPEnabled": view.settings.dhcp},
            "IPv4Addresses": [{
                "Address": view.machine.bmc.address.to_string(),
                "SubnetMask": "255.0.0.0",
                "AddressOrigin": if view.settings.dhcp { "DHCP" } else { "Static" },
                "Gateway": "127.0.0.1",
            }],
            "IPv6Addresses": [],
            "NameServers": ["::"],
            "Status": healthy(),
            "VLAN": {"VLANEnable": false, "VLANId": 0},
        }),
    )
}

/// Addresses come back with a blank before them, names do not.
fn network_protocol(view: &View<'_>, path: &str) -> Value {
    let ntp = &view.settings.ntp;
    let shown = |server: &String| match server.parse::<std::net::IpAddr>() {
        Ok(_) => format!(" {server}"),
        Err(_) => server.clone(),
    };
    let servers: Vec<String> = [&ntp.primary, &ntp.secondary].into_iter().flatten().map(shown).collect();
    said(
        path,
        "ManagerNetworkProtocol.v1_6_0.ManagerNetworkProtocol",
        json!({
            "Id": "NetworkProtocol",
            "Name": "Manager Network Protocol",
            "Description": "Network Protocol Details",
            "HostName": view.settings.hostname,
            "Status": healthy(),
            "IPMI": {"ProtocolEnabled": view.settings.ipmi_over_lan, "Port": 623},
            "NTP": {"ProtocolEnabled": ntp.enabled, "Port": 123, "NTPServers": servers},
            "SSH": {"ProtocolEnabled": true, "Port": 22},
            "SSDP": {"ProtocolEnabled": true, "Port": 1900},
            "KVMIP": {"ProtocolEnabled": true, "Port": 443},
            "VirtualMedia": {"ProtocolEnabled": true, "Port": 443},
        }),
    )
}

pub(super) fn account_service(view: &View<'_>, path: &str, rest: &[&str]) -> Option<Value> {
    let roles = ["Administrator", "HostInterfaceAdministrator", "Operator", "ReadOnly"];
    match rest {
        [] => Some(said(
            path,
            "AccountService.v1_8_0.AccountService",
            json!({
                "Id": "AccountService",
                "Name": "Account Service",
                "Description": "Redfish User Accounts",
                "Status": healthy(),
                "ServiceEnabled": true,
                "LocalAccountAuth": "LocalFirst",
                "MinPasswordLength": 13,
                "MaxPasswordLength": 20,
                "AuthFailureLoggingThreshold": LOCKOUT_THRESHOLD,
                "AccountLockoutThreshold": LOCKOUT_THRESHOLD,
                "AccountLockoutDuration": LOCKOUT_S as u64,
                "AccountLockoutCounterResetAfter": LOCKOUT_S as u64,
                "AccountLockoutCounterResetEnabled": true,
                "Accounts": link(format!("{path}/Accounts")),
                "Roles": link(format!("{path}/Roles")),
            }),
        )),
        ["Accounts"] => {
            let unreadable = view.machine.has(Quirk::UnreadableAccount).then(|| UNREADABLE.to_string());
            Some(list(path, "ManagerAccount", view.settings.users.keys().map(u32::to_string).chain(unreadable)))
        }
        ["Accounts", id] => account(view, path, id),
        ["Roles"] => Some(list(path, "Role", roles.map(str::to_owned))),
        ["Roles", id] if roles.contains(id) => {
            let privileges = match *id {
                "ReadOnly" => &["Login", "ConfigureSelf"][..],
                "Operator" => &["Login", "ConfigureSelf", "ConfigureComponents"],
                _ => &["ConfigureComponents", "Login", "ConfigureUsers", "ConfigureManager", "ConfigureSelf"],
            };
            let body = json!({"Id": id, "Name": id, "RoleId": id, "Description": id, "IsPredefined": true,
                "AssignedPrivileges": privileges});
            Some(said(path, "Role.v1_3_0.Role", body))
        }
        _ => None,
    }
}

fn account(view: &View<'_>, path: &str, id: &str) -> Option<Value> {
    let user = view.settings.users.get(&id.parse().ok()?)?;
    let internal = user.role == "HostInterfaceAdministrator";
    let locked_until = view.settings.logins.get(&user.name).and_then(|logins| logins.locked_until_s);
    Some(said(
        path,
        "ManagerAccount.v1_5_0.ManagerAccount",
        json!({
            "Id": id,
            "Name": if internal { "Internal Account" } else { &user.name },
            "Description": if internal { "Internal Account" } else { "User Account sync from IPMI" },
            "UserName": user.name,
            "Password": null,
            "PasswordChangeRequired": false,
            "RoleId": user.role,
            "Enabled": user.enabled,
            "Locked": locked_until.is_some_and(|until| view.now.0.as_secs_f64() < until),
            "AccountTypes": ["Redfish"],
            "Links": {"Role": link(format!("/redfish/v1/AccountService/Roles/{}", user.role))},
        }),
    ))
}

pub(super) fn session_service(path: &str) -> Value {
    said(
        path,
        "SessionService.v1_1_6.SessionService",
        json!({
            "Id": "SessionService",
            "Name": "Session Service",
            "Description": "Session Service",
            "ServiceEnabled": true,
            "SessionTimeout": 30,
            "Sessions": link(SESSIONS),
            "Status": healthy(),
        }),
    )
}

/// Nothing here takes so long that it has a task.
pub(super) fn task_service(path: &str, rest: &[&str]) -> Option<Value> {
    match rest {
        [] => Some(said(
            path,
            "TaskService.v1_1_5.TaskService",
            json!({
                "Id": "TaskService",
                "Name": "Task Service",
                "ServiceEnabled": true,
                "Status": healthy(),
                "Tasks": link(format!("{path}/Tasks")),
            }),
        )),
        ["Tasks"] => Some(list(path, "Task", [])),
        _ => None,
    }
}

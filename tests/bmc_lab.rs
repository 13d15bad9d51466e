//! The lab's BMCs: shaped like a captured one, and strict where a real one is.

use std::path::{Path, PathBuf};
use std::time::Duration;

use muster::clients::http::{Auth, HttpClient, HttpOptions, Method, Request};
use muster::lab::Lab;
use muster::lab::bmc::Settings;
use muster::lab::build::bmc_password;
use muster::lab::scenario::Scenario;
use serde_json::{Value, json};
use url::Url;

const HOST: &str = "gpu-b07-29";

/// Members of captured resources that lead to services which the lab does not have, or that only repeat choices.
const LEFT_OUT: &[&str] = &[
    "ActiveDirectory",
    "ActiveSoftwareImage",
    "Bios",
    "BootOptions",
    "CertificateService",
    "CommandShell",
    "DHCPv6",
    "EventService",
    "FanMode",
    "FixedBootOrder",
    "GraphicalConsole",
    "HTTPS",
    "HostInterface",
    "HostInterfaces",
    "IKVM",
    "IPAccessControl",
    "IPProtocolStatus",
    "DUID",
    "IPv4StaticAddresses",
    "IPv6DefaultGateway",
    "IPv6StaticAddresses",
    "IPv6StaticDefaultGateways",
    "JsonSchemas",
    "KCSInterface",
    "KVMIP",
    "LDAP",
    "LLDP",
    "LicenseManager",
    "LogServices",
    "MACAddress",
    "MaxIPv6StaticAddresses",
    "MaxPowerWatts",
    "Memory",
    "Metrics",
    "MouseMode",
    "NetworkInterfaces",
    "NetworkPorts",
    "NodeManager",
    "PCIeDevices",
    "PCIeFunction",
    "PCIeInterface",
    "PCIeSlots",
    "PermanentMACAddress",
    "PhysicalPortAssignment",
    "Power",
    "PowerCycleDelaySeconds",
    "PowerOffDelaySeconds",
    "PowerOnDelaySeconds",
    "Processors",
    "RADIUS",
    "Registries",
    "SMCRAKP",
    "SNMP",
    "SSDP",
    "SecureBoot",
    "Sensors",
    "SerialConsole",
    "SerialInterfaces",
    "SimpleStorage",
    "Snooping",
    "SoftwareImages",
    "StatelessAddressAutoConfig",
    "Storage",
    "SysLockdown",
    "TelemetryService",
    "Thermal",
    "UpdateService",
    "VLANs",
    "VirtualMedia",
    "VirtualMediaConfig",
    "#Manager.ResetToDefaults",
    "#SmcManagerConfig.Reset",
    "BoardID",
    "BoardSerialNumber",
    "GUID",
    "SpeedMbps@Redfish.AllowableValues",
    "AutoDSTEnabled@Redfish.AllowableValues",
    "TimeZoneName@Redfish.AllowableValues",
    "LANInterface@Redfish.AllowableValues",
    "PowerCycleDelaySeconds@Redfish.AllowableNumbers",
    "PowerOffDelaySeconds@Redfish.AllowableNumbers",
    "PowerOnDelaySeconds@Redfish.AllowableNumbers",
];

/// The folder of the captured trees.
fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/redfish")
}

/// A file of it as JSON.
fn fixture(path: &str) -> Value {
    serde_json::from_str(&std::fs::read_to_string(fixtures().join(path)).unwrap()).unwrap()
}

struct Bmc {
    lab: Lab,
    http: HttpClient,
}

impl Bmc {
    async fn start() -> Bmc {
        rustls::crypto::ring::default_provider().install_default().ok();
        let mut scenario = Scenario::demo().unwrap();
        scenario.hosts.retain(|host| host.name == HOST);
        scenario.faults.clear();
        let lab = Lab::start(scenario, 60.0).await.unwrap();
        let address = lab.world().machine(HOST).unwrap().bmc.address;
        let base = Url::parse(&format!("http://{address}:{}/", lab.bmc_port())).unwrap();
        let http = HttpClient::new("redfish", &base, &HttpOptions::default()).unwrap();
        Bmc { lab, http }
    }

    async fn ask(&self, request: Request) -> (u16, Value, Option<String>) {
        let answer = self.http.send(request).await.unwrap();
        let token = answer.header("x-auth-token").or(answer.header("location")).map(str::to_owned);
        (answer.status.as_u16(), answer.json().unwrap(), token)
    }

    async fn get(&self, path: &str) -> (u16, Value) {
        let (status, body, _) = self.ask(Request::get(path).auth(basic(&bmc_password(HOST)))).await;
        (status, body)
    }

    async fn write(&self, method: Method, path: &str, body: Value) -> (u16, Value) {
        let request = Request::new(method, path).auth(basic(&bmc_password(HOST))).json(body);
        let (status, body, _) = self.ask(request).await;
        (status, body)
    }
}

fn basic(password: &str) -> Auth {
    Auth::Basic { username: "ADMIN".into(), password: password.to_owned().into() }
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// How a resource of the lab differs from a captured one: members, and the types of their values.
fn differences(at: &str, lab: &Value, captured: &Value, found: &mut Vec<String>) {
    match (lab, captured) {
        (Value::Null, _) | (_, Value::Null) => {}
        (Value::Object(lab), Value::Object(captured)) => {
            for (key, value) in lab {
                match captured.get(key) {
                    Some(theirs) => differences(&format!("{at}/{key}"), value, theirs, found),
                    None => found.push(format!("{at}/{key}: not in the capture")),
                }
            }
            found.extend(
                captured.keys().filter(|key| !lab.contains_key(*key)).map(|key| format!("{at}/{key}: missing")),
            );
        }
        (Value::Array(lab), Value::Array(captured)) => {
            if let (Some(first), Some(theirs)) = (lab.first(), captured.first()) {
                differences(&format!("{at}/0"), first, theirs, found);
            }
        }
        _ if kind(lab) == kind(captured) => {}
        _ => found.push(format!("{at}: {} instead of {}", kind(lab), kind(captured))),
    }
}

#[tokio::test]
async fn each_resource_has_the_members_and_types_of_the_captured_one() {
    let bmc = Bmc::start().await;
    let mut queue = vec!["/redfish/v1".to_owned()];
    let mut seen: Vec<String> = vec![];
    let (mut compared, mut found) = (0, vec![]);
    while let Some(path) = queue.pop() {
        let path = path.trim_end_matches('/').to_owned();
        if seen.contains(&path) {
            continue;
        }
        seen.push(path.clone());
        let (status, body) = bmc.get(&path).await;
        // The one link that leads nowhere is what this vendor is known by.
        assert!(status == 200 || path == "/redfish/v1/Oem/Supermicro/DumpService", "{path}: {status}");
        links(&body, &mut queue);
        let file = format!("supermicro{path}/index.json");
        if status == 200 && fixtures().join(&file).exists() {
            compared += 1;
            differences(&path, &body, &fixture(&file), &mut found);
        }
    }
    let left_out = |line: &str| {
        line.strip_suffix(": missing").and_then(|path| LEFT_OUT.iter().find(|key| path.ends_with(&format!("/{key}"))))
    };
    let used: Vec<&str> = found.iter().filter_map(|line| left_out(line).copied()).collect();
    found.retain(|line| left_out(line).is_none());
    assert_eq!(found, Vec::<String>::new());
    let unused: Vec<&&str> = LEFT_OUT.iter().filter(|key| !used.contains(*key)).collect();
    assert!(unused.is_empty(), "the lab has these now: {unused:?}");
    assert!(compared > 25, "{compared} of {}", seen.len());
}

fn links(body: &Value, queue: &mut Vec<String>) {
    match body {
        Value::Object(members) => {
            for (key, value) in members {
                match value {
                    Value::String(path) if key == "@odata.id" || key == "@Redfish.ActionInfo" => {
                        queue.push(path.clone())
                    }
                    other => links(other, queue),
                }
            }
        }
        Value::Array(list) => list.iter().for_each(|value| links(value, queue)),
        _ => {}
    }
}

#[tokio::test]
async fn refusals_have_the_shape_of_the_reported_ones() {
    let bmc = Bmc::start().await;
    let (status, body, _) = bmc.ask(Request::get("/redfish/v1/Systems").auth(basic("wrong"))).await;
    let mut found = vec![];
    let envelope = fixture("errors/supermicro-unauthorized-401.json");
    differences("401", &body, &envelope["body"], &mut found);
    assert_eq!((status, &found), (401, &vec![]));
    let (status, body) = bmc.get("/redfish/v1/Nothing").await;
    differences("404", &body, &fixture("errors/supermicro-not-licensed-403.json")["body"], &mut found);
    assert_eq!((status, &found), (404, &vec![]));
    let (status, body) = bmc.write(Method::PATCH, "/redfish/v1/Systems/1", json!({"Model": "x"})).await;
    assert_eq!((status, body["error"]["@Message.ExtendedInfo"][0]["MessageArgs"][0].as_str()), (400, Some("Model")));
}

#[tokio::test]
async fn three_wrong_passwords_lock_the_account_and_time_unlocks_it() {
    let bmc = Bmc::start().await;
    let path = "/redfish/v1/Systems";
    for _ in 0..3 {
        assert_eq!(bmc.ask(Request::get(path).auth(basic("wrong"))).await.0, 401);
    }
    assert_eq!(bmc.get(path).await.0, 401);
    bmc.lab.world().sleep(Duration::from_secs(31)).await;
    assert_eq!(bmc.get(path).await.0, 200);
    assert_eq!(bmc.ask(Request::get("/redfish/v1/")).await.0, 200);
    assert_eq!(bmc.ask(Request::get(path)).await.0, 401);
}

#[tokio::test]
async fn a_session_works_until_it_is_deleted() {
    let bmc = Bmc::start().await;
    let sessions = "/redfish/v1/SessionService/Sessions";
    let login = json!({"UserName": "ADMIN", "Password": bmc_password(HOST)});
    let (status, body, token) = bmc.ask(Request::new(Method::POST, sessions).json(login)).await;
    assert_eq!(status, 201);
    let token = || Auth::Header { name: "x-auth-token", value: token.clone().unwrap().into() };
    assert_eq!(bmc.ask(Request::get("/redfish/v1/Systems/1").auth(token())).await.0, 200);
    let path = body["@odata.id"].as_str().unwrap().to_owned();
    assert_eq!(bmc.ask(Request::new(Method::DELETE, path).auth(token())).await.0, 200);
    assert_eq!(bmc.ask(Request::get("/redfish/v1/Systems/1").auth(token())).await.0, 401);
    // Logging in and out is no write.
    assert!(bmc.lab.world().ledger().writes().is_empty());
}

#[tokio::test]
async fn a_read_only_user_changes_nothing_and_an_ipmi_user_does_not_log_in() {
    let bmc = Bmc::start().await;
    let accounts = "/redfish/v1/AccountService/Accounts";
    let user = json!({"UserName": "reader", "Password": "read-the-book-1", "RoleId": "ReadOnly"});
    assert_eq!(bmc.write(Method::POST, accounts, user.clone()).await.0, 201);
    assert_eq!(bmc.write(Method::POST, accounts, user).await.0, 400);
    let reader = || Auth::Basic { username: "reader".into(), password: "read-the-book-1".to_owned().into() };
    let nic = "/redfish/v1/Managers/1/EthernetInterfaces/1";
    assert_eq!(bmc.ask(Request::get(nic).auth(reader())).await.0, 200);
    let change = Request::new(Method::PATCH, nic).auth(reader()).json(json!({"HostName": "x"}));
    assert_eq!(bmc.ask(change).await.0, 403);
    let id = bmc.lab.world().machine(HOST).map(|m| Settings::of(&m)).unwrap();
    let id = id.users.iter().find(|(_, user)| user.name == "reader").unwrap().0.to_owned();
    let types = json!({"AccountTypes": ["IPMI"]});
    assert_eq!(bmc.write(Method::PATCH, &format!("{accounts}/{id}"), types).await.0, 200);
    assert_eq!(bmc.ask(Request::get(nic).auth(reader())).await.0, 401);
    let long = json!({"UserName": "other", "Password": "twenty-one-characters"});
    assert_eq!(bmc.write(Method::POST, accounts, long).await.0, 400);
}

#[tokio::test]
async fn tags_change_with_what_they_tag_and_a_stale_one_is_refused() {
    let bmc = Bmc::start().await;
    let path = "/redfish/v1/Managers/1/EthernetInterfaces/1";
    let (_, before) = bmc.get(path).await;
    let tag = before["@odata.etag"].as_str().unwrap().to_owned();
    let request = |tag: &str, name: &str| {
        let request = Request::new(Method::PATCH, path).auth(basic(&bmc_password(HOST)));
        request.header("if-match", tag).json(json!({"HostName": name}))
    };
    assert_eq!(bmc.ask(request(&tag, "one")).await.0, 200);
    assert_eq!(bmc.ask(request(&tag, "two")).await.0, 412);
    assert_eq!(bmc.ask(request("*", "three")).await.0, 200);
    let (_, after) = bmc.get(path).await;
    assert_eq!(after["HostName"], "three");
    assert_ne!(after["@odata.etag"], before["@odata.etag"]);
    assert_eq!(bmc.write(Method::PATCH, path, json!({"HostName": "under_score"})).await.0, 400);
}

#[tokio::test]
async fn power_changes_after_its_time_and_links_after_that() {
    let bmc = Bmc::start().await;
    let (system, nic) = ("/redfish/v1/Systems/1", "/redfish/v1/Systems/1/EthernetInterfaces/1");
    assert_eq!(bmc.get(system).await.1["PowerState"], "Off");
    let reset = format!("{system}/Actions/ComputerSystem.Reset");
    assert_eq!(bmc.write(Method::POST, &reset, json!({"ResetType": "Sideways"})).await.0, 400);
    assert_eq!(bmc.write(Method::POST, &reset, json!({"ResetType": "On"})).await.0, 200);
    bmc.lab.world().sleep(Duration::from_secs(40)).await;
    assert_eq!(bmc.get(system).await.1["PowerState"], "On");
    let (_, up) = bmc.get(nic).await;
    assert_eq!((up["LinkStatus"].as_str(), up["SpeedMbps"].as_u64()), (Some("LinkUp"), Some(100_000)));
    let (_, expanded) = bmc.get("/redfish/v1/Systems/1/EthernetInterfaces?$expand=.($levels=1)").await;
    assert_eq!(expanded["Members"][0]["LinkStatus"], "LinkUp");
}

#[tokio::test]
async fn a_change_of_ntp_is_accepted_before_it_shows() {
    let bmc = Bmc::start().await;
    // Slow enough that the moment between the two can be seen.
    bmc.lab.world().clock().set_speed(1.0);
    let path = "/redfish/v1/Managers/1/Oem/Supermicro/NTP";
    let request = Request::new(Method::PATCH, path).auth(basic(&bmc_password(HOST)));
    let (status, _, task) = bmc.ask(request.json(json!({"NTPEnable": true}))).await;
    assert_eq!(status, 202);
    let task = task.unwrap();
    assert_eq!(bmc.get(path).await.1["NTPEnable"], false);
    assert_eq!(bmc.get(&task).await.1["TaskState"], "Running");
    bmc.lab.world().clock().set_speed(60.0);
    bmc.lab.world().sleep(Duration::from_secs(3)).await;
    assert_eq!(bmc.get(path).await.1["NTPEnable"], true);
    assert_eq!(bmc.get(&task).await.1["TaskState"], "Completed");
}

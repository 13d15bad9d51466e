//! The lab as a whole: its services start, nodes walk through Ironic's states, faults bite, and the ledger sees it all.

#[path = "support/http.rs"]
mod http;
#[path = "support/shapes.rs"]
mod shapes;

use std::time::Duration;

use http::{Answer, Http};
use muster::lab::Lab;
use muster::lab::build::{BMC_USER, bmc_password};
use muster::lab::faults::Fault;
use muster::lab::ledger::System;
use muster::lab::machine::{Link, PowerAction};
use muster::lab::scenario::{HostScenario, Scenario};
use serde_json::{Value, json};

const HOST: &str = "gpu-b07-37";
const V: (&str, &str) = ("x-openstack-ironic-api-version", "1.95");

/// A lab of one rack, and a client of its Ironic.
struct Site {
    lab: Lab,
    ironic: Http,
}

impl Site {
    /// Lab time runs a hundred times as fast as real time.
    async fn start() -> Site {
        Site::with(|_| {}).await
    }

    async fn with(change: impl FnOnce(&mut Scenario)) -> Site {
        let mut scenario = Scenario::rack().unwrap();
        change(&mut scenario);
        let lab = Lab::start(scenario, 100.0).await.unwrap();
        let ironic = Http::new(&lab.ironic_url()).with(V.0, V.1);
        Site { lab, ironic }
    }

    fn fault(&self, fault: Value) {
        self.lab.world().add_fault(serde_json::from_value::<Fault>(fault).unwrap());
    }

    fn address(&self) -> String {
        format!("http://{}:{}", self.lab.world().machine(HOST).unwrap().bmc.address, self.lab.bmc_port())
    }

    /// Creates the host's node as an enrollment does.
    async fn create(&self, password: &str) -> String {
        let body = json!({
            "name": HOST, "driver": "redfish", "boot_interface": "ipxe", "deploy_interface": "direct",
            "inspect_interface": "agent", "management_interface": "redfish", "power_interface": "redfish",
            "raid_interface": "no-raid", "bios_interface": "no-bios", "network_interface": "noop",
            "resource_class": "gpu-b200", "properties": {"cpu_arch": "x86_64", "capabilities": "boot_mode:uefi"},
            "driver_info": {
                "redfish_address": self.address(), "redfish_username": BMC_USER, "redfish_password": password,
            },
        });
        let answer = self.ironic.post("/v1/nodes", body).await;
        same("101-node-create", &answer);
        assert_eq!(answer.body["driver_info"]["redfish_password"], "******");
        answer.body["uuid"].as_str().unwrap().to_owned()
    }

    async fn verb(&self, node: &str, verb: &str) -> Answer {
        self.ironic.put(&format!("/v1/nodes/{node}/states/provision"), json!({"target": verb})).await
    }

    async fn node(&self, node: &str) -> Value {
        self.ironic.get(&format!("/v1/nodes/{node}")).await.body
    }

    /// Waits until the node is in a state and nobody holds it.
    async fn until(&self, node: &str, wanted: &str) -> Value {
        self.until_it(node, wanted, |n| n["provision_state"] == wanted && n["reservation"].is_null()).await
    }

    async fn until_it(&self, node: &str, what: &str, is: impl Fn(&Value) -> bool) -> Value {
        let mut last = Value::Null;
        for _ in 0..3000 {
            last = self.node(node).await;
            if is(&last) {
                return last;
            }
            tokio::time::sleep(Duration::from_millis(4)).await;
        }
        panic!("waited in vain for '{what}': {last:#}");
    }

    async fn manageable(&self) -> String {
        let node = self.create(&bmc_password(HOST)).await;
        assert_eq!(self.verb(&node, "manage").await.status, 202);
        self.until(&node, "manageable").await;
        node
    }
}

fn recorded(name: &str) -> Value {
    let path = format!("{}/tests/fixtures/ironic/{name}.json", env!("CARGO_MANIFEST_DIR"));
    serde_json::from_str(&std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{path}: {e}"))).unwrap()
}

fn same(name: &str, answer: &Answer) {
    let record = recorded(name);
    assert_eq!(answer.status, record["response"]["status"], "{name}: {}", answer.body);
    same_body(name, &answer.body);
}

fn same_body(name: &str, body: &Value) {
    let found = shapes::differences(&recorded(name)["response"]["body"], body);
    assert!(found.is_empty(), "{name}:\n  {}", found.join("\n  "));
}

#[tokio::test]
async fn the_demo_starts_and_its_configuration_can_be_read() {
    use std::os::unix::fs::PermissionsExt;
    let lab = Lab::start(Scenario::demo().unwrap(), 8.0).await.unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = lab.write_config(&folder.path().join("lab")).unwrap();
    let settings = muster::config::load(&path).unwrap();
    assert_eq!(settings.sites.len(), 2);
    for entry in std::fs::read_dir(path.parent().unwrap()).unwrap() {
        let mode = entry.unwrap().metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }
    let hosts = lab.scenario().hosts.len();
    assert!(hosts >= 28, "{hosts}");
    for fault in &lab.scenario().faults {
        assert!(lab.scenario().hosts.iter().any(|h| Some(h.name.as_str()) == fault.device()));
    }
    // A second lab finds its own ports.
    Lab::start(Scenario::demo().unwrap(), 8.0).await.unwrap();
}

#[tokio::test]
async fn a_node_walks_from_enroll_to_available_as_the_real_one_did() {
    let site = Site::start().await;
    let node = site.create(&bmc_password(HOST)).await;
    let machine = || site.lab.world().machine(HOST).unwrap();
    let group = json!({
        "node_uuid": node, "address": machine().nics[0].mac, "name": "gpu-b07-37-bond0", "mode": "802.3ad",
        "properties": {"miimon": "100", "xmit_hash_policy": "layer3+4"},
    });
    let group = site.ironic.post("/v1/portgroups", group).await;
    same("102-portgroup-create", &group);
    for (n, name) in ["103-port-create-1", "104-port-create-2"].iter().enumerate() {
        let link = json!({"switch_id": "00:00:00:00:00:00", "port_id": "bond14", "switch_info": "leaf-b07-1"});
        let port = json!({
            "node_uuid": node, "address": machine().nics[n].mac, "portgroup_uuid": group.body["uuid"],
            "pxe_enabled": n == 0, "local_link_connection": link,
        });
        same(name, &site.ironic.post("/v1/ports", port).await);
    }
    let patch = json!([{"op": "add", "path": "/properties/root_device", "value": {"serial": "x"}}]);
    same("105-node-patch-root-device", &site.ironic.patch(&format!("/v1/nodes/{node}"), patch).await);
    let one_trait = format!("/v1/nodes/{node}/traits/HW_ARCH_X86_64");
    assert_eq!(site.ironic.send("PUT", &one_trait, None, &[]).await.unwrap().status, 204);
    same("107-traits-list", &site.ironic.get(&format!("/v1/nodes/{node}/traits")).await);
    same("108-node-validate", &site.ironic.get(&format!("/v1/nodes/{node}/validate")).await);

    let answer = site.verb(&node, "manage").await;
    assert_eq!((answer.status, answer.body), (202, Value::Null));
    assert_eq!(site.node(&node).await["provision_state"], "verifying");
    site.until(&node, "manageable").await;
    let states = site.ironic.get(&format!("/v1/nodes/{node}/states")).await;
    same("110-states-manageable", &states);
    assert_eq!(states.body["power_state"], "power off");
    let none = site.ironic.get(&format!("/v1/nodes/{node}/inventory")).await;
    assert_eq!(none.status, 404);
    assert!(none.error()["faultstring"].as_str().unwrap().starts_with("Node inventory record for node "));

    assert_eq!(site.verb(&node, "inspect").await.status, 202);
    let waiting = site.until(&node, "inspect wait").await;
    same_body("113-node-inspect-wait", &waiting);
    assert_eq!((waiting["power_state"].as_str(), machine().power.on), (Some("power on"), true));
    let inspected = site.until(&node, "manageable").await;
    same_body("115-node-after-inspection", &inspected);
    assert_eq!(inspected["power_state"], "power off");
    let inventory = site.ironic.get(&format!("/v1/nodes/{node}/inventory")).await;
    same("114-inventory", &inventory);
    // The BMC reported a third NIC: Ironic made a port of it, without a link.
    same("116-ports-after-inspection", &site.ironic.get(&format!("/v1/nodes/{node}/ports")).await);
    let ports = site.ironic.get(&format!("/v1/ports/detail?node={node}")).await;
    same("117-ports-detail", &ports);
    assert_eq!(ports.body["ports"][2]["local_link_connection"], json!({}));
    assert_eq!(ports.body["ports"][2]["pxe_enabled"], false);

    let maintenance = format!("/v1/nodes/{node}/maintenance");
    assert_eq!(site.ironic.put(&maintenance, json!({"reason": "replacing a cable"})).await.status, 202);
    assert_eq!(site.verb(&node, "provide").await.status, 202);
    let stuck = site.until(&node, "clean wait").await;
    same_body("121-node-clean-wait-in-maintenance", &stuck);
    site.lab.world().sleep(Duration::from_secs(120)).await;
    let stuck = site.node(&node).await;
    assert_eq!((&stuck["provision_state"], &stuck["clean_step"]), (&json!("clean wait"), &json!({})));
    assert_eq!(site.ironic.delete(&maintenance).await.status, 202);
    let step = |n: &Value| n["clean_step"]["step"] == "erase_devices_metadata" && n["provision_state"] == "clean wait";
    same_body("123-node-clean-wait", &site.until_it(&node, "a clean step", step).await);
    let available = site.until(&node, "available").await;
    same_body("124-node-available", &available);
    assert_eq!((available["power_state"].as_str(), machine().power.on), (Some("power off"), false));

    let power = format!("/v1/nodes/{node}/states/power");
    assert_eq!(site.ironic.put(&power, json!({"target": "power on"})).await.status, 202);
    let pending = site.ironic.get(&format!("/v1/nodes/{node}/states")).await;
    same("126-states-power-pending", &pending);
    assert_eq!(pending.body["target_power_state"], "power on");
    let on = site.until_it(&node, "power on", |n| n["power_state"] == "power on" && n["reservation"].is_null()).await;
    assert_eq!(on["target_power_state"], Value::Null);
    same("128-history", &site.ironic.get(&format!("/v1/nodes/{node}/history")).await);
}

#[tokio::test]
async fn links_come_up_some_time_after_the_power_and_later_where_one_is_dark() {
    let site = Site::start().await;
    site.fault(json!({"kind": "dark_link", "device": HOST, "interfaces": ["eth1"], "for_s": 60.0}));
    let world = site.lab.world();
    let link = |name: &str| {
        let machine = world.machine(HOST).unwrap();
        machine.link(machine.nic(name).unwrap(), world.now())
    };
    assert_eq!((link("eth0"), link("eth1")), (Link::Down, Link::Down));
    world.press(HOST, PowerAction::On);
    let timing = world.lock().timing;
    world.sleep(Duration::from_secs_f64(timing.power_on_s + timing.link_up_s + 2.0)).await;
    assert_eq!((link("eth0"), link("eth1"), link("eth2")), (Link::Up, Link::Down, Link::Down));
    world.sleep(Duration::from_secs(60)).await;
    assert_eq!((link("eth0"), link("eth1")), (Link::Up, Link::Up));
    // The darkness was for one power on only.
    world.press(HOST, PowerAction::Restart);
    world.sleep(Duration::from_secs_f64(timing.power_off_s + timing.power_on_s + timing.link_up_s + 2.0)).await;
    assert_eq!((link("eth0"), link("eth1")), (Link::Up, Link::Up));
}

#[tokio::test]
async fn an_inspection_waits_for_light_and_times_out_in_the_dark() {
    let site = Site::with(|s| s.timing.callback_timeout_s = 300.0).await;
    let node = site.manageable().await;
    site.fault(json!({"kind": "dark_link", "device": HOST, "for_s": 5000.0}));
    site.verb(&node, "inspect").await;
    let failed = site.until(&node, "inspect failed").await;
    same_body("801-node-inspect-timeout", &failed);
    assert_eq!(failed["last_error"], recorded("801-node-inspect-timeout")["response"]["body"]["last_error"]);
    assert_eq!((&failed["maintenance"], &failed["power_state"]), (&json!(false), &json!("power off")));
    site.fault(json!({"kind": "cables_mended", "device": HOST}));
    assert_eq!(site.verb(&node, "manage").await.status, 202);
    site.until(&node, "manageable").await;
    site.verb(&node, "inspect").await;
    site.until_it(&node, "the end of it", |n| !n["inspection_finished_at"].is_null()).await;
}

#[tokio::test]
async fn swapped_cables_cross_in_lldp_and_a_missing_light_has_no_neighbour() {
    let site = Site::start().await;
    site.fault(json!({"kind": "swapped_cables", "device": HOST, "interfaces": ["eth0", "eth1"]}));
    let node = site.manageable().await;
    site.verb(&node, "inspect").await;
    site.until_it(&node, "an inspection", |n| !n["inspection_finished_at"].is_null()).await;
    let found = site.ironic.get(&format!("/v1/nodes/{node}/inventory")).await.body;
    let lldp = &found["plugin_data"]["parsed_lldp"];
    let seen = |nic: &str| (lldp[nic]["switch_system_name"].as_str(), lldp[nic]["switch_port_id"].as_str());
    assert_eq!(seen("eth0"), (Some("leaf-b07-2"), Some("swp14")));
    assert_eq!(seen("eth1"), (Some("leaf-b07-1"), Some("swp14")));
    // The switch's own description is what was meant for the port.
    assert_eq!(lldp["eth0"]["switch_port_description"], "gpu-b07-37 eth1");
    // Raw and parsed say the same.
    let name = &found["plugin_data"]["lldp_raw"]["eth0"][4];
    assert_eq!(name, &json!([5, "6c6561662d6230372d32"]));
    assert!(lldp.get("eth2").is_none());
    assert_eq!(found["inventory"]["interfaces"][2]["has_carrier"], false);
    let gpus =
        found["plugin_data"]["pci_devices"].as_array().unwrap().iter().filter(|d| d["product_id"] == "2901").count();
    assert_eq!(gpus, 8);
}

#[tokio::test]
async fn a_failed_clean_step_leaves_maintenance_and_a_fault_that_only_clearing_takes_away() {
    let site = Site::start().await;
    let node = site.manageable().await;
    site.fault(json!({"kind": "clean_fails", "device": HOST}));
    site.verb(&node, "provide").await;
    let failed = site.until(&node, "clean failed").await;
    same_body("610-node-clean-failed", &failed);
    assert_eq!((&failed["maintenance"], &failed["fault"]), (&json!(true), &json!("clean failure")));
    assert_eq!((&failed["power_state"], &failed["target_provision_state"]), (&json!("power on"), &json!("available")));
    let refused = site.verb(&node, "provide").await;
    assert_eq!(refused.status, 400);
    assert_eq!(site.verb(&node, "manage").await.status, 202);
    let recovered = site.until(&node, "manageable").await;
    assert_eq!((&recovered["maintenance"], &recovered["fault"]), (&json!(true), &json!("clean failure")));
    assert_eq!(recovered["last_error"], failed["last_error"]);
    site.ironic.delete(&format!("/v1/nodes/{node}/maintenance")).await;
    let cleared = site.node(&node).await;
    assert_eq!((&cleared["maintenance"], &cleared["fault"]), (&json!(false), &Value::Null));
    assert_eq!(cleared["last_error"], failed["last_error"]);
    // The fault was for one clean only.
    site.verb(&node, "provide").await;
    site.until(&node, "available").await;
}

#[tokio::test]
async fn inspections_fail_are_aborted_and_recover_as_the_real_ones_did() {
    let site = Site::start().await;
    let node = site.manageable().await;
    site.fault(json!({"kind": "inspection_fails", "device": HOST}));
    site.verb(&node, "inspect").await;
    let failed = site.until(&node, "inspect failed").await;
    same_body("601-node-inspect-failed", &failed);
    assert!(failed["last_error"].as_str().unwrap().ends_with("no disks found"), "{}", failed["last_error"]);
    site.verb(&node, "manage").await;
    same_body("604-node-recovered-from-inspect-failed", &site.until(&node, "manageable").await);

    site.verb(&node, "inspect").await;
    site.until(&node, "inspect wait").await;
    let uuid = &node;
    let refused = site.ironic.delete(&format!("/v1/nodes/{node}")).await;
    let words = |name: &str| {
        let text = recorded(name)["response"]["body"]["error_message"].as_str().unwrap().to_owned();
        let fault: Value = serde_json::from_str(&text).unwrap();
        fault["faultstring"].as_str().unwrap().replace("aaaaaaaa-0000-4000-8000-000000000003", uuid)
    };
    assert_eq!(
        (refused.status, refused.error()["faultstring"].as_str()),
        (409, Some(words("605-delete-in-inspect-wait").as_str()))
    );
    let refused = site.verb(&node, "manage").await;
    assert_eq!(
        (refused.status, refused.error()["faultstring"].as_str()),
        (400, Some(words("606-verb-manage-in-inspect-wait").as_str()))
    );
    assert_eq!(site.verb(&node, "abort").await.status, 202);
    let aborted = site.until(&node, "inspect failed").await;
    same_body("608-node-inspect-aborted", &aborted);
    assert_eq!(aborted["last_error"], "Inspection was aborted by request.");
    assert_eq!(aborted["power_state"], "power off");
    site.verb(&node, "manage").await;
    site.until(&node, "manageable").await;

    // An aborted clean fails without maintenance.
    site.verb(&node, "provide").await;
    site.until_it(&node, "a step", |n| !n["clean_step"]["step"].is_null() && n["provision_state"] == "clean wait")
        .await;
    assert_eq!(site.verb(&node, "abort").await.status, 202);
    let aborted = site.until(&node, "clean failed").await;
    same_body("618-node-clean-aborted", &aborted);
    assert_eq!((&aborted["maintenance"], &aborted["fault"]), (&json!(false), &Value::Null));
    // During a clean the node may not be changed, and that is no lock.
    site.verb(&node, "manage").await;
    site.until(&node, "manageable").await;
    site.verb(&node, "provide").await;
    site.until(&node, "clean wait").await;
    let patch = json!([{"op": "add", "path": "/extra/x", "value": 1}]);
    let refused = site.ironic.patch(&format!("/v1/nodes/{node}"), patch).await;
    assert_eq!(refused.status, 409);
    let text = format!("Node {node} can not be updated while a state transition is in progress.");
    assert_eq!(refused.error()["faultstring"], text.as_str());
}

#[tokio::test]
async fn a_wrong_credential_sends_the_node_back_to_enroll() {
    let site = Site::start().await;
    let node = site.create("wrong").await;
    site.verb(&node, "manage").await;
    let back = site.until_it(&node, "an error", |n| !n["last_error"].is_null()).await;
    same_body("621-node-manage-failed-auth", &back);
    assert_eq!((&back["provision_state"], &back["power_state"]), (&json!("enroll"), &Value::Null));
    assert!(back["last_error"].as_str().unwrap().contains("returned code 401"));
    site.ironic.put(&format!("/v1/nodes/{node}/states/power"), json!({"target": "power on"})).await;
    let failed = site.until_it(&node, "an error", |n| {
        n["target_power_state"].is_null() && n["last_error"].as_str().is_some_and(|t| t.starts_with("Failed to change"))
    });
    assert_eq!(failed.await["power_state"], Value::Null);
}

#[tokio::test]
async fn the_driver_changes_only_with_its_interfaces_and_in_the_right_state() {
    let site = Site::start().await;
    let node = site.manageable().await;
    let path = format!("/v1/nodes/{node}");
    let change = |name: &str| recorded(name)["request"]["body"].clone();
    let partial = site.ironic.patch(&path, change("503-patch-driver-to-ipmi-partial")).await;
    assert_eq!(partial.status, 400);
    assert!(
        partial.error()["faultstring"].as_str().unwrap().ends_with("is not supported by hardware type IPMIHardware.")
    );
    let alone = site
        .ironic
        .patch(&format!("{path}?reset_interfaces=true"), json!([{"op": "replace", "path": "/name", "value": "x"}]))
        .await;
    assert_eq!(alone.status, 400);
    let whole = site.ironic.patch(&format!("{path}?reset_interfaces=true"), change("504-patch-driver-to-ipmi")).await;
    same("504-patch-driver-to-ipmi", &whole);
    for (field, value) in [("driver", "ipmi"), ("firmware_interface", "no-firmware"), ("power_interface", "ipmitool")] {
        assert_eq!(whole.body[field], value);
    }
}

#[tokio::test]
async fn a_lock_begins_when_somebody_meets_it_and_ends_by_itself() {
    let site = Site::start().await;
    let node = site.manageable().await;
    site.fault(json!({"kind": "node_locked", "device": HOST, "for_s": 60.0}));
    assert_eq!(site.node(&node).await["reservation"], Value::Null);
    let locked = site.verb(&node, "inspect").await;
    assert_eq!(locked.status, 409);
    let text =
        format!("Node {node} is locked by host conductor-1, please retry after the current operation is completed.");
    assert_eq!(locked.error()["faultstring"], text.as_str());
    assert_eq!(site.node(&node).await["reservation"], "conductor-1");
    site.lab.world().sleep(Duration::from_secs(60)).await;
    assert_eq!(site.verb(&node, "inspect").await.status, 202);
}

#[tokio::test]
async fn http_faults_answer_cut_hang_and_lose_answers_of_what_was_done() {
    let site = Site::start().await;
    let control = Http::new(&site.lab.control_url());
    let rules = json!([
        {"kind": "http", "system": "ironic", "method": "GET", "path": "/v1/nodes/*", "count": 1, "status": 503, "body": "<html>busy</html>"},
        {"kind": "http", "system": "ironic", "method": "POST", "path": "/v1/nodes", "count": 1, "drop": true, "after_effect": true},
        {"kind": "http", "system": "ironic", "path": "/v1/drivers", "hang": true},
    ]);
    assert_eq!(control.post("/faults", rules).await.status, 200);
    assert_eq!(control.post("/ledger/reset", json!({})).await.status, 204);
    let first = site.ironic.get("/v1/nodes/gpu-b07-41").await;
    assert_eq!((first.status, first.header("content-type")), (503, Some("text/html")));
    assert_eq!(site.ironic.get("/v1/nodes/gpu-b07-41").await.status, 200);

    let body = json!({"name": "lost", "driver": "fake-hardware", "driver_info": {"password": "hunter2"}}).to_string();
    assert!(site.ironic.send("POST", "/v1/nodes", Some(body), &[]).await.is_err());
    assert_eq!(site.ironic.get("/v1/nodes/lost").await.status, 200);
    let hung = tokio::time::timeout(Duration::from_millis(300), site.ironic.get("/v1/drivers")).await;
    assert!(hung.is_err());

    let ledger = control.get("/ledger").await.body;
    let entries = ledger["entries"].as_array().unwrap();
    assert_eq!(entries[0]["injected"], true);
    let write = entries.iter().find(|e| e["write"] == true).unwrap();
    assert_eq!((&write["host"], &write["status"], &write["injected"]), (&json!("lost"), &Value::Null, &json!(true)));
    assert!(!ledger.to_string().contains("hunter2"), "a secret in the ledger");
    assert_eq!(ledger["writes"], 1);
    assert_eq!(control.delete("/faults").await.status, 204);
    assert_eq!(site.ironic.get("/v1/drivers").await.status, 200);
    let wrong = control.post("/faults", json!({"kind": "dark_link", "device": "nobody", "for_s": 1.0})).await;
    assert_eq!(wrong.status, 400);
}

#[tokio::test]
async fn the_clock_can_be_changed_and_scheduled_faults_come_at_their_time() {
    let site = Site::start().await;
    let control = Http::new(&site.lab.control_url());
    assert_eq!(control.post("/clock", json!({"speed": 1.0})).await.body, json!({"speed": 1.0}));
    assert_eq!(control.post("/clock", json!({"speed": -1})).await.status, 400);
    let rule = json!({"kind": "http", "system": "ironic", "status": 500, "at_s": 3600.0, "for_s": 3600.0});
    control.post("/faults", rule).await;
    assert_eq!(site.ironic.get("/v1/nodes").await.status, 200);
    control.post("/clock", json!({"speed": 50000})).await;
    let mut seen = vec![];
    while seen.len() < 3 {
        let status = site.ironic.get("/v1/nodes").await.status;
        if seen.last() != Some(&status) {
            seen.push(status);
        }
    }
    assert_eq!(seen, [200, 500, 200]);
}

#[tokio::test]
async fn bmcs_stand_at_their_own_addresses_and_go_away_when_they_restart() {
    let site = Site::start().await;
    let world = site.lab.world();
    let bmc = Http::new(&site.address());
    assert_eq!(bmc.get("/redfish/v1/").await.status, 200);
    world.reset_bmc(HOST);
    assert!(bmc.send("GET", "/redfish/v1/", None, &[]).await.is_err());
    let away = world.lock().timing.bmc_away_s;
    world.sleep(Duration::from_secs_f64(away)).await;
    assert_eq!(bmc.get("/redfish/v1/").await.status, 200);
    let entries = site.lab.world().ledger().select(|e| e.system == System::Bmc);
    assert!(entries.iter().all(|e| e.host.as_deref() == Some(HOST) && !e.write));
    let shown = Http::new(&site.lab.control_url()).get("/world").await.body;
    assert_eq!(shown["machines"][HOST]["bmc"]["resets"], 1);
    assert!(!shown.to_string().contains(&bmc_password(HOST)), "a password in the shown world");
}

#[tokio::test]
async fn nodes_that_a_scenario_has_are_as_an_enrollment_left_them() {
    let site = Site::start().await;
    let node = site.node("gpu-b07-41").await;
    same_body("124-node-available", &node);
    assert_eq!((&node["provision_state"], &node["power_state"]), (&json!("available"), &json!("power on")));
    let ports = site.ironic.get("/v1/nodes/gpu-b07-41/ports?detail=true").await.body;
    assert_eq!(ports["ports"][0]["local_link_connection"]["port_id"], "bond16");
    assert_eq!(ports["ports"][0]["pxe_enabled"], true);
    assert_eq!(site.ironic.get("/v1/nodes/gpu-b07-41/inventory").await.status, 200);
    same_body("102-portgroup-create", &site.ironic.get("/v1/portgroups/gpu-b07-41-bond0").await.body);
}

#[test]
fn a_scenario_with_a_mistake_says_where() {
    let error = |text: &str| Scenario::parse(text).unwrap_err().to_string();
    assert!(error("name = 1").contains("line 1"));
    let twice = muster::lab::scenario::RACK.replace("gpu-b07-39\"", "gpu-b07-41\"");
    let scenario = Scenario::parse(&twice).unwrap();
    let error = muster::lab::build::build(&scenario).unwrap_err().to_string();
    assert!(error.contains("'gpu-b07-41'"), "{error}");
}

#[tokio::test]
async fn hundreds_of_nodes_walk_at_once() {
    let mut scenario = Scenario::rack().unwrap();
    let model = scenario.hosts[2].clone();
    let site = scenario.sites.get_mut("osl1").unwrap();
    let rack = site.racks["B07"].clone();
    site.racks = (0..10).map(|n| (format!("T{n:02}"), rack.clone())).collect();
    let host = |n: usize| HostScenario {
        name: format!("gpu-{n:04}"),
        rack: format!("T{:02}", n % 10),
        unit: Some((n / 10 + 1) as u8),
        node: Some("manageable".into()),
        port: None,
        ..model.clone()
    };
    scenario.hosts = (0..400).map(host).collect();
    let lab = Lab::start(scenario, 100.0).await.unwrap();
    let ironic = Http::new(&lab.ironic_url()).with(V.0, V.1);
    let list = ironic.get("/v1/nodes?fields=uuid&limit=1000").await.body;
    let nodes = list["nodes"].as_array().unwrap();
    assert_eq!(nodes.len(), 400);
    for node in nodes {
        let path = format!("/v1/nodes/{}/states/provision", node["uuid"].as_str().unwrap());
        assert_eq!(ironic.put(&path, json!({"target": "provide"})).await.status, 202);
    }
    for _ in 0..600 {
        let left = ironic.get("/v1/nodes?fields=uuid&provision_state=available&limit=1000").await.body;
        if left["nodes"].as_array().unwrap().len() == 400 {
            return;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("not all nodes came to 'available'");
}

//! Many nodes at once on a real Ironic: `cargo bench --bench nodes [NODES [ROUNDS [BOOT_S]]]`. Prints figures, asserts none but that
//! all come out `available` (G13).
//!
//! muster and the barest client that there can be, by turns, each with an Ironic of its own, with emulated BMCs and ramdisks.
//! Both make the same changes; the difference is what muster looks at in between. A ramdisk of the rig boots within two seconds,
//! which no host does: BOOT_S makes it so many, at most 90.

#[allow(dead_code, reason = "each binary uses its part of the support")]
#[path = "../tests/support/binary.rs"]
mod binary;
#[allow(dead_code, reason = "each binary uses its part of the support")]
#[path = "../tests/real/second.rs"]
mod second;

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use muster::lab::Lab;
use muster::lab::scenario::Scenario;
use reqwest::Method;
use serde_json::{Value, json};

use binary::{Running, muster};
use second::Second;

/// Hosts in a rack, two units each.
const IN_A_RACK: usize = 20;

fn scenario(hosts: usize) -> Scenario {
    let mut racks = String::new();
    let mut list = Vec::new();
    for n in 0..hosts {
        let (rack, unit) = (n / IN_A_RACK + 1, 2 * (n % IN_A_RACK) + 1);
        if n % IN_A_RACK == 0 {
            racks.push_str(&format!("racks.R{rack} = {{ hall = \"hall\" }}\n"));
        }
        list.push(format!(
            "{{ name = \"cpu-r{rack}-{unit:02}\", site = \"t1\", rack = \"R{rack}\", unit = {unit}, type = \"small\", role = \"gpu\" }}"
        ));
    }
    let template = include_str!("../tests/ironic_steps/scenario.toml");
    let (head, rest) = template.split_once("[context.ironic_settings.inspection_validation]").unwrap();
    let (_, rest) = rest.split_once("[sites.t1]").unwrap();
    let text = format!("name = \"fifty\"\nhosts = [{}]\n{head}[sites.t1]{rest}", list.join(", "))
        .replace("#IRONIC#", "")
        .replace("#SETTINGS#", "")
        .replace("racks.R1 = { hall = \"hall\" }\n", &racks);
    Scenario::parse(&text).unwrap_or_else(|e| panic!("{e}\n{text}"))
}

/// The hosts of a lab as the rig's `systems.json` has them.
fn systems(lab: &Lab, names: &[String]) -> Value {
    let pattern: Value = serde_json::from_str(include_str!("../tests/real/ironic/systems.json")).unwrap();
    let hosts: Vec<Value> = names
        .iter()
        .enumerate()
        .map(|(n, name)| {
            let machine = lab.world().machine(name).unwrap();
            let nics = machine.nics.iter().filter(|nic| nic.frontend).map(|nic| {
                let plug = nic.plugged.as_ref().unwrap();
                json!({"name": nic.name, "mac": nic.mac, "switch": plug.switch, "port": plug.port})
            });
            json!({
                "name": name, "uuid": format!("f1f70000-05b1-4e00-9000-{n:012}"), "unit": n + 1, "build": "cpu",
                "serial": format!("F-{n:05}"), "bmc": {"mac": machine.bmc.mac, "ip": "198.51.100.11"},
                "nics": nics.collect::<Vec<_>>(),
            })
        })
        .collect();
    json!({"site": "t1", "rack": "R1", "switches": [], "builds": pattern["builds"], "hosts": hosts})
}

struct Rig<'f> {
    folder: &'f Path,
    env: Value,
}

impl Rig<'_> {
    fn up<'f>(folder: &'f Path, systems: &Path) -> Rig<'f> {
        let up =
            Command::new("tests/real/ironic/up").arg(folder).env("MUSTER_IRONIC_SYSTEMS", systems).output().unwrap();
        assert!(up.status.success(), "{}", String::from_utf8_lossy(&up.stderr));
        let env = serde_json::from_str(&std::fs::read_to_string(folder.join("env.json")).unwrap()).unwrap();
        Rig { folder, env }
    }
}

impl Rig<'_> {
    /// Has every ramdisk take so many seconds to its first word.
    async fn boots_within(&self, seconds: usize) {
        for stage in ["inspect", "clean"] {
            let url = format!("{}/faults/*/{stage}", text(&self.env, "ramdisk_url"));
            let set = reqwest::Client::new().put(url).json(&json!({ "boot_s": seconds })).send().await.unwrap();
            assert!(set.status().is_success(), "{set:?}");
        }
    }

    /// What a service of the rig has used of the processor so far, with the processes that it started, in seconds.
    fn cpu(&self, part: &str) -> f64 {
        let recorded = std::fs::read_to_string(self.folder.join(format!("run/{part}.pid"))).unwrap();
        let group = recorded.split(' ').next().unwrap();
        let stats = std::fs::read_dir("/proc")
            .unwrap()
            .filter_map(|entry| std::fs::read_to_string(entry.unwrap().path().join("stat")).ok());
        let ticks = |stat: String| -> u32 {
            // behind the name in brackets: field 5 is the group, 14 and 15 are its own time, user and system, in hundredths
            let fields: Vec<&str> = stat.rsplit(") ").next().unwrap().split(' ').collect();
            if fields[2] == group { fields[11..13].iter().map(|ticks| ticks.parse::<u32>().unwrap()).sum() } else { 0 }
        };
        f64::from(stats.map(ticks).sum::<u32>()) / 100.0
    }
}

impl Drop for Rig<'_> {
    fn drop(&mut self) {
        Command::new("tests/real/ironic/down").arg(self.folder).status().ok();
    }
}

/// As little as can be asked of Ironic for the same end: what has to be written, and one list for all nodes to look at.
async fn barest(second: &Second, rig: &Value, names: &[String]) -> Duration {
    let began = Instant::now();
    let create = async |name: &String| {
        let system = system_of(rig, name);
        let node = json!({
            "name": name, "driver": "redfish", "boot_interface": "redfish-virtual-media", "inspect_interface": "agent",
            "deploy_interface": "direct", "bios_interface": "no-bios", "raid_interface": "no-raid",
            "management_interface": "redfish", "power_interface": "redfish", "vendor_interface": "redfish",
            "network_interface": "noop", "resource_class": "gpu-small",
            "properties": {"cpu_arch": "x86_64", "capabilities": "boot_mode:uefi"},
            "driver_info": {
                "redfish_address": rig["redfish_url"], "redfish_verify_ca": false,
                "redfish_system_id": system["redfish_system_id"], "redfish_username": rig["bmc_user"],
                "redfish_password": rig["bmc_password"], "deploy_iso": rig["deploy_iso"],
            },
        });
        let made = second.must(Method::POST, "/v1/nodes", Some(node)).await;
        let uuid = text(&made, "uuid");
        second.must(Method::PUT, &format!("/v1/nodes/{uuid}/traits/HW_ARCH_X86_64"), None).await;
        for (n, nic) in system["nics"].as_array().unwrap().iter().enumerate() {
            let link = json!({"switch_id": "00:00:00:00:00:00", "switch_info": nic["switch"], "port_id": nic["port"]});
            let port =
                json!({"node_uuid": uuid, "address": nic["mac"], "pxe_enabled": n == 0, "local_link_connection": link});
            second.must(Method::POST, "/v1/ports", Some(port)).await;
        }
        let verb = format!("/v1/nodes/{uuid}/states/provision");
        second.must(Method::PUT, &verb, Some(json!({"target": "manage"}))).await;
        uuid.to_owned()
    };
    let nodes = futures::future::join_all(names.iter().map(create)).await;
    // What was asked of each node last.
    let mut asked: std::collections::BTreeMap<String, &str> =
        nodes.iter().map(|node| (node.clone(), "manage")).collect();
    let mut on = 0;
    while on < nodes.len() {
        tokio::time::sleep(Duration::from_millis(500)).await;
        let path = "/v1/nodes?fields=uuid,provision_state,power_state,reservation,last_error&limit=1000";
        let list = second.must(Method::GET, path, None).await;
        let mut orders = Vec::new();
        on = 0;
        for node in list["nodes"].as_array().unwrap() {
            let uuid = text(node, "uuid").to_owned();
            if !node["reservation"].is_null() {
                continue;
            }
            let (state, before) = (text(node, "provision_state"), asked[&uuid]);
            let next = match (state, before) {
                ("manageable", "manage") => "inspect",
                // Ironic's own trouble with its database under load: whoever asks again gets through.
                ("inspect failed", "inspect") => "manage",
                // Ironic leaves it off. Both halves have to end with the power on (I14, C7).
                ("manageable", "inspect") => "power on",
                ("manageable", "power on") if node["power_state"] == "power on" => "provide",
                ("available", "provide") => "power on at last",
                ("available", "power on at last") if node["power_state"] == "power on" => {
                    on += 1;
                    continue;
                }
                _ => continue,
            };
            asked.insert(uuid.clone(), next);
            orders.push((uuid, next));
        }
        let order = async |(uuid, target): &(String, &str)| {
            let (what, target) =
                if target.starts_with("power on") { ("power", "power on") } else { ("provision", *target) };
            second.must(Method::PUT, &format!("/v1/nodes/{uuid}/states/{what}"), Some(json!({"target": target}))).await;
        };
        futures::future::join_all(orders.iter().map(order)).await;
        assert!(began.elapsed() < Duration::from_secs(1800), "the barest client hangs: {asked:?}");
    }
    began.elapsed()
}

fn system_of<'v>(rig: &'v Value, name: &str) -> &'v Value {
    rig["systems"].as_array().unwrap().iter().find(|system| system["name"] == name).unwrap()
}

/// The configuration of muster: the lab's NetBox, the rig's Ironic.
fn configure(lab: &Lab, rig: &Value, names: &[String], folder: &Path) -> std::path::PathBuf {
    {
        let mut state = lab.world().lock();
        for name in names {
            let id = state.records.device_named(name).unwrap().id;
            let settings = &mut state.records.devices.get_mut(&id).unwrap().config_context["ironic_settings"];
            settings["redfish_address_override"] = rig["redfish_url"].clone();
            settings["ironic_driver_info"] = json!({"redfish_system_id": system_of(rig, name)["redfish_system_id"], "deploy_iso": rig["deploy_iso"]});
        }
    }
    private(&folder.join("token"), &lab.netbox_token());
    let vault: toml::Table = names
        .iter()
        .map(|name| {
            let field = |key: &str| toml::Value::from(text(rig, key));
            let item: toml::Table = [("username", field("bmc_user")), ("password", field("bmc_password"))]
                .map(|(k, v)| (k.to_owned(), v))
                .into_iter()
                .collect();
            (format!("bmc-{name}"), item.into())
        })
        .collect();
    private(&folder.join("vault.toml"), &vault.to_string());
    let config = folder.join("muster.toml");
    let text = format!(
        "[netbox]\nurl = \"{}\"\ntoken = \"file:token\"\n[vault]\nkind = \"file\"\npath = \"vault.toml\"\n\
         [limits]\nruns = 100\n\
         [ironic.rig]\nurl = \"{}\"\ndevice_classes = [\"COMPUTE_GPU\"]\nauth = {{ kind = \"none\" }}\npoll_s = 10\n\
         [sites.t1.gates]\nconfigure_bmc = false\nconfigure_dhcp = false\n\
         [sites.t1.deadlines]\npoll_first_s = 2\npoll_max_s = 4\nlink_poll_s = 1\n\
         [sites.t1.bmc]\ntrust = \"anything\"\n",
        lab.netbox_url(),
        text(rig, "ironic_url"),
    );
    std::fs::write(&config, text).unwrap();
    config
}

fn main() {
    let mut given = std::env::args().skip(1).filter_map(|arg| arg.parse::<usize>().ok());
    let (hosts, rounds) = (given.next().unwrap_or(50), given.next().unwrap_or(3));
    let boot_s = given.next();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let lab = runtime.block_on(Lab::start(scenario(hosts), 1.0)).unwrap();
    let names: Vec<String> = lab.scenario().hosts.iter().map(|host| host.name.clone()).collect();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("systems.json");
    std::fs::write(&file, systems(&lab, &names).to_string()).unwrap();
    let mut took = Vec::new();
    // In turn, so that a machine that gets busier or quieter does it for both.
    for round in 0..rounds {
        for with_muster in [false, true] {
            // A database that has grown is slower: each begins with an empty one.
            let home = folder.path().join(format!("rig-{round}-{with_muster}"));
            std::fs::create_dir_all(&home).unwrap();
            let rig = Rig::up(&home, &file);
            if let Some(seconds) = boot_s {
                runtime.block_on(rig.boots_within(seconds));
            }
            let elapsed = if with_muster {
                let config = configure(&lab, &rig.env, &names, &home);
                let mut command = muster(&[]);
                command.arg("--config").arg(&config).arg("--state-dir").arg(home.join("state"));
                command.arg("enroll").args(&names).arg("--json");
                let began = Instant::now();
                let ended = Running::start(command).end();
                assert_eq!(ended.code(), Some(0), "{ended}");
                began.elapsed()
            } else {
                let second = Second::of(text(&rig.env, "ironic_url"));
                runtime.block_on(barest(&second, &rig.env, &names))
            };
            let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
            println!(
                "{hosts} nodes, {}: {:.1} s (load {}; CPU of {})",
                if with_muster { "muster" } else { "the barest client" },
                elapsed.as_secs_f64(),
                load.split(' ').next().unwrap_or_default(),
                ["ironic", "database", "bmc", "ramdisk"]
                    .map(|part| format!("{part} {:.1} s", rig.cpu(part)))
                    .join(", ")
            );
            took.push((with_muster, elapsed));
        }
    }
    let best =
        |of: bool| took.iter().filter(|(with, _)| *with == of).map(|(_, took)| took.as_secs_f64()).reduce(f64::min);
    if let (Some(muster), Some(barest)) = (best(true), best(false)) {
        println!("the best of each: muster takes {:.0} % of the barest client's time", muster / barest * 100.0);
    }
}

fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value[key].as_str().unwrap_or_else(|| panic!("no '{key}' in {value}"))
}

/// A file that only its owner may read.
fn private(path: &Path, content: &str) {
    std::fs::write(path, content).unwrap();
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600)).unwrap();
}

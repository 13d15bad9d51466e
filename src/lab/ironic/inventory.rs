//! What an inspection brings: the machine as it really is, its links and neighbours included.

use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

use super::super::machine::{Disk, Machine, Nic, Plug};
use super::super::world::State;

/// Inventory and plugin data of a machine now.
pub(super) fn of(state: &State, machine: &Machine) -> Value {
    let boot_nic = machine.nics.first();
    let interfaces: Vec<Value> = machine.nics.iter().map(|nic| interface(state, machine, nic)).collect();
    let disks: Vec<Value> = machine.hardware.disks.iter().enumerate().map(|(n, d)| disk(machine, n, d)).collect();
    let (cpu, memory, bios) = (&machine.hardware.cpu, &machine.hardware.memory, &machine.hardware.bios);
    let physical_mb = memory.dimms * memory.dimm_gib * 1024;
    let root = disks.first().cloned().unwrap_or_default();
    let boot_mac = boot_nic.map(|nic| nic.mac.to_string());
    let mut named = Map::new();
    for (nic, shown) in machine.nics.iter().zip(&interfaces) {
        let mut shown = shown.clone();
        shown["pxe_enabled"] = json!(boot_mac.as_deref() == Some(nic.mac.to_string().as_str()));
        named.insert(nic.name.clone(), shown);
    }
    let lit = || machine.nics.iter().filter(|nic| machine.has_light(nic, state.now));
    let raw: Map<String, Value> =
        lit().filter_map(|nic| Some((nic.name.clone(), tlvs(state, nic.plugged.as_ref()?)))).collect();
    let local_gb = machine.hardware.disks.first().map_or(0, |d| (bytes(d) >> 30).saturating_sub(1));
    let mut plugin_data = json!({
        "root_disk": root,
        "boot_interface": boot_mac,
        "configuration": {
            "collectors": ["default", "logs", "pci-devices", "lldp", "dmi-decode"],
            "managers": [{"name": "generic_hardware_manager", "version": "1.2"}],
        },
        "pci_devices": pci_devices(machine),
        "lldp_raw": raw,
        "dmi": dmi(machine),
        "error": null,
        "all_interfaces": named,
        "valid_interfaces": named,
        "macs": machine.nics.iter().map(|nic| nic.mac.to_string()).collect::<Vec<_>>(),
        "local_gb": local_gb,
    });
    if state.ironic.settings.parse_lldp {
        let parsed: Map<String, Value> =
            lit().filter_map(|nic| Some((nic.name.clone(), parsed(state, nic.plugged.as_ref()?)))).collect();
        plugin_data["parsed_lldp"] = Value::Object(parsed);
    }
    json!({
        "inventory": {
            "interfaces": interfaces,
            "cpu": {
                "model_name": cpu.model, "frequency": format!("{:.4}", cpu.frequency_mhz), "count": cpu.count,
                "socket_count": cpu.sockets, "architecture": cpu.arch,
                "flags": ["fpu", "vme", "sse4_2", "avx512f", "aes"],
            },
            "disks": disks,
            // The kernel keeps a little for itself.
            "memory": {"total": physical_mb * 1024 * 1024 / 1000 * 985, "physical_mb": physical_mb},
            "bmc_address": machine.bmc.address.to_string(),
            "bmc_v6address": "::/0",
            "bmc_mac": machine.bmc.mac.to_string(),
            "system_vendor": {
                "product_name": machine.model, "serial_number": machine.serial, "manufacturer": machine.manufacturer,
                "firmware": {"vendor": bios.vendor, "version": bios.version, "build_date": bios.date},
            },
            "boot": {"current_boot_mode": "uefi", "pxe_interface": boot_mac},
            "hostname": machine.name,
            "usb_devices": [],
        },
        "plugin_data": plugin_data,
    })
}

fn interface(state: &State, machine: &Machine, nic: &Nic) -> Value {
    let light = machine.has_light(nic, state.now);
    let lldp = nic.plugged.as_ref().filter(|_| light).map_or(json!([]), |plug| tlvs(state, plug));
    json!({
        "name": nic.name, "mac_address": nic.mac.to_string(), "ipv4_address": null, "ipv6_address": null,
        "has_carrier": light, "lldp": lldp, "vendor": format!("0x{}", nic.vendor_id),
        "product": format!("0x{}", nic.product_id), "client_id": null, "biosdevname": null,
        "speed_mbps": light.then_some(nic.speed_mbps), "pci_address": nic.pci_address, "driver": "mlx5_core",
    })
}

fn bytes(disk: &Disk) -> u64 {
    // Sizes are made to whole mebibytes, as those of real drives nearly are.
    (disk.size_gb * 1_000_000_000).div_ceil(1 << 20) << 20
}

fn disk(machine: &Machine, n: usize, disk: &Disk) -> Value {
    let nvme = disk.name.contains("nvme");
    let digest = Sha256::digest(format!("{} disk {n}", machine.serial));
    let wwn: String = digest.iter().take(8).map(|b| format!("{b:02x}")).collect();
    let wwn = if nvme { format!("eui.{wwn}") } else { format!("0x5{}", &wwn[1..]) };
    json!({
        "name": disk.name, "model": disk.model, "size": bytes(disk), "rotational": disk.rotational, "wwn": wwn,
        "serial": format!("{}-D{n}", machine.serial), "vendor": null, "wwn_with_extension": wwn,
        "wwn_vendor_extension": null, "hctl": null,
        "by_path": format!("/dev/disk/by-path/pci-0000:{:02x}:00.0-nvme-1", 0xc1 + n), "logical_sectors": 512,
        "physical_sectors": 512, "tran": if nvme { "nvme" } else { "sata" },
    })
}

fn pci_devices(machine: &Machine) -> Vec<Value> {
    let mut devices = vec![];
    let mut bus = 0x1b;
    for gpu in &machine.hardware.gpus {
        for n in 0..gpu.count {
            devices.push(json!({
                "vendor_id": gpu.vendor_id, "product_id": gpu.product_id, "class": "030200", "revision": "a1",
                "bus": format!("0000:{bus:02x}:00.0"), "numa_node_id": if n * 2 < gpu.count { "0" } else { "1" },
            }));
            bus += 1;
        }
    }
    for nic in &machine.nics {
        devices.push(json!({
            "vendor_id": nic.vendor_id, "product_id": nic.product_id, "class": "020000", "revision": "00",
            "bus": nic.pci_address, "numa_node_id": "0",
        }));
    }
    devices
}

fn dmi(machine: &Machine) -> Value {
    let (cpu, memory, bios) = (&machine.hardware.cpu, &machine.hardware.memory, &machine.hardware.bios);
    let cores = cpu.count / cpu.sockets.max(1) / 2;
    let sockets: Vec<Value> = (0..cpu.sockets)
        .map(
            |n| json!({"Socket Designation": format!("CPU{n}"), "Version": cpu.model, "Core Count": cores.to_string()}),
        )
        .collect();
    let dimms: Vec<Value> = (0..memory.dimms)
        .map(|n| {
            json!({
                "Locator": format!("DIMM_{}{}", if n % 2 == 0 { 'A' } else { 'B' }, n / 2 + 1), "Type": "DDR5",
                "Size": format!("{} GB", memory.dimm_gib), "Speed": format!("{} MT/s", memory.speed_mhz),
                "Manufacturer": memory.manufacturer, "Part Number": memory.part_number,
                "Serial Number": format!("{}-M{n:02}", machine.serial),
            })
        })
        .collect();
    json!({
        "bios": {"Vendor": bios.vendor, "Version": bios.version, "Release Date": bios.date},
        "cpu": sockets,
        "memory": {"Number Of Devices": memory.dimms, "devices": dimms},
    })
}

/// A switch's own address.
fn chassis(switch: &str) -> [u8; 6] {
    let digest = Sha256::digest(format!("switch {switch}"));
    [0x02, 0x53, 0x57, digest[0], digest[1], digest[2]]
}

/// Port id with its subtype, and port description, as the switch sends them.
fn port_words(state: &State, plug: &Plug) -> (u8, String, String) {
    // The description is what somebody wrote into the switch from NetBox.
    let meant = state.machines.values().find_map(|m| {
        m.nics.iter().find(|nic| nic.recorded.as_ref() == Some(plug)).map(|nic| format!("{} {}", m.name, nic.name))
    });
    match plug.port.strip_prefix("Ethernet") {
        // Numbers of its own as the id, the name as the description.
        Some(number) => (7, format!("{}", 500 + number.parse::<u32>().unwrap_or(0)), plug.port.clone()),
        None => (5, plug.port.clone(), meant.unwrap_or_default()),
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

fn system(plug: &Plug) -> &'static str {
    if plug.port.starts_with("Ethernet") { "Example EOS 4.33" } else { "Example NOS 5.9" }
}

/// The TLVs of the switch at the other end of a cable.
fn tlvs(state: &State, plug: &Plug) -> Value {
    let (subtype, port, description) = port_words(state, plug);
    let with = |subtype: u8, text: &[u8]| hex(&[&[subtype], text].concat());
    json!([
        [1, with(4, &chassis(&plug.switch))],
        [2, with(subtype, port.as_bytes())],
        [3, "0078"],
        [4, hex(description.as_bytes())],
        [5, hex(plug.switch.as_bytes())],
        [6, hex(system(plug).as_bytes())],
        [7, "00140014"],
        [0, ""],
    ])
}

/// The same as the `parse-lldp` hook reads it.
fn parsed(state: &State, plug: &Plug) -> Value {
    let (_, port, description) = port_words(state, plug);
    let chassis: Vec<String> = chassis(&plug.switch).iter().map(|b| format!("{b:02x}")).collect();
    json!({
        "switch_chassis_id": chassis.join(":"), "switch_port_id": port, "switch_port_description": description,
        "switch_system_name": plug.switch, "switch_system_description": system(plug),
        "switch_capabilities_support": ["Bridge", "Router"], "switch_capabilities_enabled": ["Bridge", "Router"],
    })
}

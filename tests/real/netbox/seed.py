#!/usr/bin/env python3
"""Writes the hosts of systems.json into an empty NetBox, over its REST API, and describes the result.

    NETBOX_RIG_TOKEN=… seed.py NETBOX_URL SYSTEMS IRONIC_ENV|"" OUT

What NetBox says here and what the emulated ramdisks report comes from one file, so a host that nobody
tampered with passes verification. Everything is written in lists: a write costs NetBox 0.2 s and more.
"""
import json
import os
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
from rest import Rest  # noqa: E402

# what muster needs, and nothing more: a right that is missing should show here and not in the field
VIEW = ["dcim.site", "dcim.location", "dcim.rack", "dcim.manufacturer", "dcim.devicetype", "dcim.devicerole",
        "dcim.device", "dcim.interface", "dcim.macaddress", "dcim.cable", "dcim.platform", "ipam.ipaddress",
        "ipam.prefix", "extras.tag", "extras.customfield", "extras.configcontext"]
UNREACHABLE = "http://127.0.0.1:9"


class Seed:
    def __init__(self, url, token):
        self.netbox = Rest(url, headers={"Authorization": f"Bearer {token}"})

    def make(self, kind, rows, key="name"):
        """Creates objects of one kind; their ids by `key`, in the order of the rows."""
        made = self.netbox.must("POST", f"/api/{kind}/", rows)
        return {row[key]: row["id"] for row in made}

    def change(self, kind, rows):
        self.netbox.must("PATCH", f"/api/{kind}/", rows)


def main(url, systems, ironic_env, out):
    seed = Seed(url, os.environ["NETBOX_RIG_TOKEN"])
    fleet = json.loads(pathlib.Path(systems).read_text())
    ironic = json.loads(pathlib.Path(ironic_env).read_text()) if ironic_env else {}
    place = places(seed, fleet)
    kinds = catalogue(seed, fleet)
    contexts(seed, kinds, ironic)
    devices = racked(seed, fleet, place, kinds, ironic)
    ports = interfaces(seed, fleet, devices)
    addresses(seed, fleet, devices, ports)
    cables(seed, fleet, ports)
    env = {
        "url": url, "token": reader(seed), "admin_token": os.environ["NETBOX_RIG_TOKEN"],
        "site": fleet["site"], "rack": fleet["rack"], "ironic": bool(ironic),
        "devices": [{"name": name, "id": ident} for name, ident in devices.items()],
    }
    pathlib.Path(out).write_text(json.dumps(env, indent=1))


def places(seed, fleet):
    seed.make("extras/custom-fields", [
        {"name": name, "type": kind, "object_types": [owner]} for name, kind, owner in (
            ("syslog_server", "text", "dcim.site"), ("ntp_server_1", "text", "dcim.site"),
            ("device_class", "text", "dcim.devicerole"), ("gpu_type", "text", "dcim.devicetype"),
            ("platform_class", "text", "dcim.device"), ("expected_hw_description", "longtext", "dcim.device"))])
    seed.make("extras/tags", [{"name": "Ironic", "slug": "ironic", "color": "4caf50"},
                              {"name": "IPMI exporter", "slug": "ipmi_exporter", "color": "2196f3"}])
    site = seed.make("dcim/sites", [{
        "name": "Oslo 1", "slug": fleet["site"], "status": "active", "time_zone": "Europe/Oslo",
        "custom_fields": {"syslog_server": "192.0.2.20", "ntp_server_1": "192.0.2.21"}}])["Oslo 1"]
    hall = seed.make("dcim/locations", [{"site": site, "name": "Hall 2", "slug": "hall-2", "status": "active"}])["Hall 2"]
    rack = seed.make("dcim/racks", [{"site": site, "location": hall, "name": fleet["rack"], "status": "active",
                                     "u_height": 48, "width": 19}])[fleet["rack"]]
    seed.make("ipam/prefixes", [{"prefix": "198.51.100.0/24", "status": "active",
                                 "scope_type": "dcim.site", "scope_id": site}], key="prefix")
    return {"site": site, "location": hall, "rack": rack, "face": "front"}


def catalogue(seed, fleet):
    """Device types and roles; a host's role follows from whether its build has GPUs."""
    makers = sorted({b["maker"] for b in fleet["builds"].values()} | {"Skerry Networks"})
    maker = seed.make("dcim/manufacturers", [{"name": m, "slug": m.lower().replace(" ", "-")} for m in makers])
    types = [{"manufacturer": maker[b["maker"]], "model": b["model"], "slug": b["model"].lower(), "u_height": 2,
              "custom_fields": {"gpu_type": "H200" if b["pci"] else None}} for b in fleet["builds"].values()]
    types += [{"manufacturer": maker["Skerry Networks"], "model": model, "slug": model.lower(), "u_height": 1}
              for model in ("SK-48Q", "SK-48T")]
    roles = (("GPU compute", "gpu-compute", "COMPUTE_GPU"), ("CPU compute", "cpu-compute", "COMPUTE_CPU"),
             ("Switch", "switch", "SWITCH"))
    return {
        "type": seed.make("dcim/device-types", types, key="model"),
        "role": seed.make("dcim/device-roles", [
            {"name": name, "slug": slug, "color": "607d8b", "custom_fields": {"device_class": value}}
            for name, slug, value in roles], key="slug"),
    }


def contexts(seed, kinds, ironic):
    role = kinds["role"]
    settings = {
        "driver": "redfish", "boot_interface": "redfish-virtual-media", "inspect_interface": "agent",
        "deploy_interface": "direct", "bios_interface": "no-bios", "management_interface": "redfish",
        "power_interface": "redfish", "raid_interface": "no-raid", "network_interface": "noop",
        "resource_class": "baremetal", "cpu_arch": "x86_64", "interface_type": "frontend",
        "interfaces": ["eth0", "eth1"],
        "bond": {"name": "bond0", "mode": "active-backup", "miimon": 100},
        "redfish_address_override": ironic.get("redfish_url", UNREACHABLE),
        "inspection_validation": {"cpu": {"arch": "x86_64", "sockets": 1}, "disks": {"min_count": 2},
                                  "nics": {"min_count": 2}, "memory": {"min_gib": 384}},
    }
    gpu = {"resource_class": "gpu-h200",
           # a LAG on both ends: the switch link of these ports is the switch's LAG
           "bond": {"mode": "802.3ad", "xmit_hash_policy": "layer3+4"},
           "inspection_validation": {"cpu": {"sockets": 2}, "gpus": {"count": 8}, "memory": {"min_gib": 768}}}
    seed.make("extras/config-contexts", [
        {"name": "ironic", "weight": 1000, "roles": [role["gpu-compute"], role["cpu-compute"]],
         "data": {"ironic_settings": settings}},
        {"name": "ironic gpu", "weight": 2000, "roles": [role["gpu-compute"]],
         "data": {"ironic_settings": gpu, "ztp": {"infiniband": {"rails": 8}}}}])


def racked(seed, fleet, place, kinds, ironic):
    """Switches at the top of the rack, hosts at their units and `staged`."""
    rows = [{"name": name, "device_type": kinds["type"]["SK-48Q"], "role": kinds["role"]["switch"],
             "position": 46 - n, "status": "active", **place} for n, name in enumerate(fleet["switches"])]
    rows.append({"name": oob_switch(fleet), "device_type": kinds["type"]["SK-48T"], "role": kinds["role"]["switch"],
                 "position": 48, "status": "active", **place})
    for host in fleet["hosts"]:
        build = fleet["builds"][host["build"]]
        extras = {"redfish_verify_ca": False, "redfish_system_id": f"/redfish/v1/Systems/{host['uuid']}"}
        if ironic:
            extras["deploy_iso"] = ironic["deploy_iso"]
        rows.append({
            "name": host["name"], "device_type": kinds["type"][build["model"]], "serial": host["serial"],
            "role": kinds["role"]["gpu-compute" if build["pci"] else "cpu-compute"], "position": host["unit"],
            "status": "staged", "custom_fields": {"expected_hw_description": f"{build['model']} as ordered"},
            "local_context_data": {"ironic_settings": {"ironic_driver_info": extras}}, **place})
    return seed.make("dcim/devices", rows)


def oob_switch(fleet):
    return f"oob-{fleet['rack'].lower()}-1"


def lags(fleet, host):
    return bool(fleet["builds"][host["build"]]["pci"])


def interfaces(seed, fleet, devices):
    """Ids by (device, interface). LAGs first, since members name them."""
    cabled = [(h, n) for h in fleet["hosts"] for n in h["nics"] if "switch" in n]
    parents = [{"device": devices[h["name"]], "name": "bond0", "type": "lag"} for h in fleet["hosts"]]
    parents += [{"device": devices[n["switch"]], "name": f"bond{h['unit']}", "type": "lag"} for h, n in cabled if lags(fleet, h)]
    device_name = {ident: name for name, ident in devices.items()}

    def make(rows):
        made = seed.netbox.must("POST", "/api/dcim/interfaces/", rows)
        return {(device_name[row["device"]["id"]], row["name"]): row["id"] for row in made}

    ids = make(parents)
    rows = []
    for host in fleet["hosts"]:
        device = devices[host["name"]]
        rows.append({"device": device, "name": "bmc", "type": "1000base-t", "mgmt_only": True})
        rows += [{"device": device, "name": n["name"], "type": "100gbase-x-qsfp28", "label": f"slot {i + 1}",
                  "lag": ids[host["name"], "bond0"] if "switch" in n else None,
                  "description": "frontend" if "switch" in n else "spare"} for i, n in enumerate(host["nics"])]
        rows.append({"device": devices[oob_switch(fleet)], "name": f"swp{host['unit']}", "type": "1000base-t"})
    rows += [{"device": devices[n["switch"]], "name": n["port"], "type": "100gbase-x-qsfp28",
              "lag": ids.get((n["switch"], f"bond{h['unit']}"))} for h, n in cabled]
    return {**ids, **make(rows)}


def addresses(seed, fleet, devices, ports):
    macs = [(ports[h["name"], name], mac) for h in fleet["hosts"]
            for name, mac in [("bmc", h["bmc"]["mac"]), *((n["name"], n["mac"]) for n in h["nics"])]]
    made = seed.netbox.must("POST", "/api/dcim/mac-addresses/", [
        {"mac_address": mac, "assigned_object_type": "dcim.interface", "assigned_object_id": port} for port, mac in macs])
    seed.change("dcim/interfaces", [{"id": port, "primary_mac_address": row["id"]}
                                    for (port, _), row in zip(macs, made, strict=True)])
    oob = seed.make("ipam/ip-addresses", [
        {"address": h["bmc"]["ip"] + "/24", "status": "active", "dns_name": f"{h['name']}-bmc.example.net",
         "assigned_object_type": "dcim.interface", "assigned_object_id": ports[h["name"], "bmc"]}
        for h in fleet["hosts"]], key="dns_name")
    seed.change("dcim/devices", [{"id": devices[h["name"]], "oob_ip": oob[f"{h['name']}-bmc.example.net"]}
                                 for h in fleet["hosts"]])


def cables(seed, fleet, ports):
    def end(device, name):
        return [{"object_type": "dcim.interface", "object_id": ports[device, name]}]

    rows = []
    for h in fleet["hosts"]:
        rows.append({"a_terminations": end(h["name"], "bmc"), "b_terminations": end(oob_switch(fleet), f"swp{h['unit']}"),
                     "type": "cat6", "status": "connected", "label": f"{h['name']}-bmc", "color": "9e9e9e"})
        rows += [{"a_terminations": end(h["name"], n["name"]), "b_terminations": end(n["switch"], n["port"]),
                  "type": "dac-passive", "status": "connected", "label": f"{h['name']}-{n['name']}",
                  "color": "2196f3" if n["switch"].endswith("1") else "ff9800"} for n in h["nics"] if "switch" in n]
    seed.make("dcim/cables", rows, key="label")


def reader(seed):
    """A token that may read the fleet, change devices, and nothing else."""
    user = seed.netbox.must("POST", "/api/users/users/", {"username": "muster", "password": "Rig-muster-0000"})["id"]
    seed.netbox.must("POST", "/api/users/permissions/", [
        {"name": "muster reads", "users": [user], "object_types": VIEW, "actions": ["view"]},
        {"name": "muster writes", "users": [user], "object_types": ["dcim.device"], "actions": ["change"]}])
    token = seed.netbox.must("POST", "/api/users/tokens/", {"user": user, "description": "muster"})
    return f"nbt_{token['key']}.{token['token']}"


if __name__ == "__main__":
    main(*sys.argv[1:])

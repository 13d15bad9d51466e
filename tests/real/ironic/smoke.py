#!/usr/bin/env python3
"""Proves the Ironic rig through its API: the walk to `available`, and each fault that can be set.

    smoke.py DIR/env.json [--boot ipxe|redfish-virtual-media] [--only PART]

Every part walks a host of its own, so a failing part leaves the others meaningful.
"""
import argparse
import json
import pathlib
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
from rest import Rest  # noqa: E402


class Walk:
    """One node of one emulated host."""

    def __init__(self, env, system, boot):
        self.env, self.system, self.boot, self.name = env, system, boot, system["name"]
        self.ironic = Rest(env["ironic_url"], env["ironic_user"], env["ironic_password"],
                           {"X-OpenStack-Ironic-API-Version": "1.95"})
        self.ramdisk = Rest(env["ramdisk_url"])
        self.ramdisk.must("DELETE", f"/faults/{self.name}")
        self.remove()

    def enroll(self, password=None):
        self.ironic.must("POST", "/v1/nodes", {
            "name": self.name, "driver": "redfish", "boot_interface": self.boot,
            "inspect_interface": "agent", "deploy_interface": "direct", "bios_interface": "no-bios",
            "raid_interface": "no-raid", "network_interface": "noop",
            "driver_info": {
                "redfish_address": self.env["redfish_url"], "redfish_verify_ca": False,
                "redfish_system_id": self.system["redfish_system_id"],
                "redfish_username": self.env["bmc_user"],
                "redfish_password": password or self.env["bmc_password"],
                "deploy_iso": self.env["deploy_iso"],
            }})
        nic = self.system["nics"][0]
        self.ironic.must("POST", "/v1/ports", {
            "node_uuid": self.node()["uuid"], "address": nic["mac"], "pxe_enabled": True,
            "local_link_connection": {"switch_id": "00:00:00:00:00:00", "switch_info": nic["switch"],
                                      "port_id": nic["port"]}})

    def node(self):
        return self.ironic.must("GET", f"/v1/nodes/{self.name}")

    def target(self, verb, expected, seconds=90):
        """Sends a provision verb and waits for the state and for the end of the reservation."""
        self.ironic.must("PUT", f"/v1/nodes/{self.name}/states/provision", {"target": verb})
        return self.wait(expected, seconds)

    def wait(self, expected, seconds=90):
        deadline, seen = time.time() + seconds, []
        while True:
            node = self.node()
            if not seen or seen[-1] != node["provision_state"]:
                seen.append(node["provision_state"])
            # a failed state keeps its target; a reservation outlives the change of state for a moment
            at_rest = node["target_provision_state"] is None or node["provision_state"].endswith("failed")
            if at_rest and node["reservation"] is None:
                assert node["provision_state"] == expected, (
                    f"{self.name} ended in '{node['provision_state']}', expected '{expected}': {node['last_error']}")
                print(f"  {self.name}: {' → '.join(seen)}", flush=True)
                return node
            assert time.time() < deadline, f"{self.name} hangs: {seen}, {node['last_error']}"
            time.sleep(0.3)

    def fault(self, stage, **fault):
        self.ramdisk.must("PUT", f"/faults/{self.name}/{stage}", fault)

    def inventory(self):
        return self.ironic.must("GET", f"/v1/nodes/{self.name}/inventory")

    def remove(self):
        status, node = self.ironic.ask("GET", f"/v1/nodes/{self.name}")
        if status == 404:
            return
        # an inspection or cleaning that a failed part left behind is ended first
        if node["provision_state"].endswith("wait"):
            self.ironic.ask("PUT", f"/v1/nodes/{self.name}/states/provision", {"target": "abort"})
        self.ironic.ask("PUT", f"/v1/nodes/{self.name}/maintenance", {"reason": "smoke test ends"})
        for _ in range(30):
            status, answer = self.ironic.ask("DELETE", f"/v1/nodes/{self.name}")
            if status in (204, 404):
                return
            time.sleep(1)
        raise RuntimeError(f"cannot delete {self.name}: {answer}")


def walk_to_available(walk):
    walk.enroll()
    walk.target("manage", "manageable")
    walk.target("inspect", "manageable")
    found = walk.inventory()
    seen = found["plugin_data"]["parsed_lldp"]
    for nic in walk.system["nics"]:
        reported = next(i for i in found["inventory"]["interfaces"] if i["name"] == nic["name"])
        assert reported["mac_address"] == nic["mac"]
        assert reported["has_carrier"] is (nic["switch"] is not None), reported
        if nic["switch"]:
            assert seen[nic["name"]]["switch_system_name"] == nic["switch"], seen
            assert seen[nic["name"]]["switch_port_id"] == nic["port"], seen
            assert found["plugin_data"]["lldp_raw"][nic["name"]], "raw TLVs are missing"
    gpus = [d for d in found["plugin_data"]["pci_devices"] if (d["vendor_id"], d["product_id"]) == ("10de", "2335")]
    assert len(gpus) == (8 if walk.system["build"] == "gpu" else 0), gpus
    assert found["plugin_data"]["dmi"]["memory"]["devices"]
    node = walk.target("provide", "available")
    assert node["power_state"] == "power off", "a cleaned node is powered off"
    walk.ironic.must("PUT", f"/v1/nodes/{walk.name}/states/power", {"target": "power on"})
    for _ in range(60):
        if walk.node()["power_state"] == "power on":
            break
        time.sleep(0.5)
    assert walk.node()["power_state"] == "power on"
    bmc = Rest(walk.env["redfish_url"], walk.env["bmc_user"], walk.env["bmc_password"])
    assert bmc.must("GET", walk.system["redfish_system_id"])["PowerState"] == "On"


def wrong_bmc_password(walk):
    walk.enroll(password="not-it")
    node = walk.target("manage", "enroll")
    assert node["last_error"], "a failed manage says why"


def wrong_cable_and_no_carrier(walk):
    walk.enroll()
    walk.target("manage", "manageable")
    walk.fault("inspect", times=1, nics={"eth0": {"switch": "leaf-b07-2", "port": "swp40"},
                                         "eth1": {"has_carrier": False}})
    walk.target("inspect", "manageable")
    found = walk.inventory()
    assert found["plugin_data"]["parsed_lldp"]["eth0"]["switch_system_name"] == "leaf-b07-2"
    assert found["plugin_data"]["parsed_lldp"]["eth0"]["switch_port_id"] == "swp40"
    assert "eth1" not in found["plugin_data"]["parsed_lldp"]
    assert found["inventory"]["interfaces"][1]["has_carrier"] is False
    # good for one boot: the next inspection sees the truth
    walk.target("inspect", "manageable")
    assert walk.inventory()["plugin_data"]["parsed_lldp"]["eth0"]["switch_port_id"] == walk.system["nics"][0]["port"]


def ramdisk_reports_an_error(walk):
    walk.enroll()
    walk.target("manage", "manageable")
    walk.fault("inspect", times=1, error="collector default failed: no disks found")
    node = walk.target("inspect", "inspect failed")
    assert "no disks found" in node["last_error"], node["last_error"]
    walk.target("manage", "manageable")
    walk.target("inspect", "manageable")


def silent_ramdisk_is_aborted(walk):
    walk.enroll()
    walk.target("manage", "manageable")
    walk.fault("inspect", silent=True)
    walk.ironic.must("PUT", f"/v1/nodes/{walk.name}/states/provision", {"target": "inspect"})
    for _ in range(100):
        if walk.node()["provision_state"] == "inspect wait" and walk.node()["reservation"] is None:
            break
        time.sleep(0.3)
    walk.target("abort", "inspect failed")


def clean_step_fails_once(walk):
    walk.enroll()
    walk.target("manage", "manageable")
    walk.fault("clean", times=1, fail="erase_devices_metadata", message="/dev/nvme1n1 is busy")
    node = walk.target("provide", "clean failed")
    assert "/dev/nvme1n1 is busy" in node["last_error"], node["last_error"]
    assert node["maintenance"] and node["fault"] == "clean failure", node["fault"]
    walk.ironic.must("DELETE", f"/v1/nodes/{walk.name}/maintenance")
    walk.target("manage", "manageable")
    walk.target("provide", "available")
    # ready-made evidence for a test: both cleanings stand in the events
    steps = [e["fails"] for e in walk.ramdisk.must("GET", "/events")
             if e["host"] == walk.name and e["what"] == "clean step"]
    assert steps[-2:] == [True, False], steps


PARTS = (walk_to_available, wrong_bmc_password, wrong_cable_and_no_carrier, ramdisk_reports_an_error,
         silent_ramdisk_is_aborted, clean_step_fails_once)


def main():
    parser = argparse.ArgumentParser(description="proves the Ironic rig")
    parser.add_argument("env", help="the env.json that `up` wrote")
    parser.add_argument("--boot", default="redfish-virtual-media")
    parser.add_argument("--only", help="a part: " + ", ".join(p.__name__ for p in PARTS))
    args = parser.parse_args()
    env = json.loads(pathlib.Path(args.env).read_text())
    failed = []
    for n, part in enumerate(p for p in PARTS if args.only in (None, p.__name__)):
        began = time.time()
        try:
            walk = Walk(env, env["systems"][n % len(env["systems"])], args.boot)
            part(walk)
            print(f"ok      {part.__name__}  {time.time() - began:.1f} s", flush=True)
            walk.remove()
        except (AssertionError, RuntimeError, OSError) as error:
            failed.append(part.__name__)
            print(f"FAILED  {part.__name__}  {time.time() - began:.1f} s: {error}", flush=True)
    # whoever uses the rig next starts with hosts that nothing is wrong with
    Walk(env, env["systems"][0], args.boot).ramdisk.must("DELETE", "/faults")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

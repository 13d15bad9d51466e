#!/usr/bin/env python3
"""Proves the NetBox rig with the token that muster gets: reads a host whole, makes the writes of an enrollment.

    smoke.py DIR/env.json
"""
import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
from parts import prove  # noqa: E402
from rest import Rest  # noqa: E402

SYSTEMS = pathlib.Path(__file__).resolve().parent.parent / "ironic/systems.json"


def hosts_are_read_whole(netbox, fleet):
    devices = netbox.must("GET", f"/api/dcim/devices/?site={fleet['site']}&role=gpu-compute&role=cpu-compute")["results"]
    assert [d["name"] for d in devices] == [h["name"] for h in fleet["hosts"]], devices
    for device, host in zip(devices, fleet["hosts"], strict=True):
        settings = device["config_context"]["ironic_settings"]
        assert settings["interfaces"] == ["eth0", "eth1"] and settings["driver"] == "redfish"
        assert settings["ironic_driver_info"]["redfish_system_id"].endswith(host["uuid"])
        assert (settings["bond"]["mode"] == "802.3ad") is (host["build"] == "gpu")
        assert device["oob_ip"]["address"] == host["bmc"]["ip"] + "/24"
        assert device["position"] == host["unit"] and device["status"]["value"] == "staged"
        ports = {p["name"]: p for p in netbox.must("GET", f"/api/dcim/interfaces/?device_id={device['id']}")["results"]}
        assert ports["bmc"]["mgmt_only"] and ports["bmc"]["mac_address"].lower() == host["bmc"]["mac"]
        for nic in host["nics"]:
            port = ports[nic["name"]]
            assert port["mac_address"].lower() == nic["mac"]
            ends = [(e["device"]["name"], e["name"]) for e in port["connected_endpoints"] or []]
            assert ends == ([(nic["switch"], nic["port"])] if "switch" in nic else []), ends


def sites_carry_what_a_bmc_needs(netbox, fleet):
    site = netbox.must("GET", f"/api/dcim/sites/?slug={fleet['site']}")["results"][0]
    assert site["custom_fields"]["ntp_server_1"] and site["custom_fields"]["syslog_server"], site


def writes_of_an_enrollment_are_allowed(netbox, fleet):
    device = netbox.must("GET", f"/api/dcim/devices/?name={fleet['hosts'][0]['name']}")["results"][0]
    path = f"/api/dcim/devices/{device['id']}/"
    done = netbox.must("PATCH", path, {"status": "active", "tags": [{"slug": "ironic"}, {"slug": "ipmi_exporter"}],
                                       "custom_fields": {"platform_class": "H200_FJORDBYTEGX8_IB_01"}})
    assert {t["slug"] for t in done["tags"]} == {"ironic", "ipmi_exporter"}, done["tags"]
    # put back, so that the tests find the fleet as it was seeded
    netbox.must("PATCH", path, {"status": "staged", "tags": [], "custom_fields": {"platform_class": None}})


def other_writes_are_refused(netbox, fleet):
    site = netbox.must("GET", f"/api/dcim/sites/?slug={fleet['site']}")["results"][0]
    status, _ = netbox.ask("PATCH", f"/api/dcim/sites/{site['id']}/", {"facility": "elsewhere"})
    assert status == 403, status


def main():
    env = json.loads(pathlib.Path(sys.argv[1]).read_text())
    netbox = Rest(env["url"], headers={"Authorization": f"Bearer {env['token']}"})
    fleet = json.loads(SYSTEMS.read_text())
    parts = (
        hosts_are_read_whole,
        sites_carry_what_a_bmc_needs,
        writes_of_an_enrollment_are_allowed,
        other_writes_are_refused,
    )
    return prove(parts, netbox, fleet)


if __name__ == "__main__":
    sys.exit(main())

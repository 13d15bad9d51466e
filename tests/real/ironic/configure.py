"""Writes the configuration of one Ironic rig: ironic.conf, bmc.conf, the password files, env.json.new.

    configure.py RIG SYSTEMS IRONIC_PORT BMC_PORT RAMDISK_PORT noauth|http_basic IPMITOOL(0|1) DATABASE

Run by the venv's interpreter, which has bcrypt. `up` makes env.json of env.json.new when all answers.
"""
import configparser
import json
import pathlib
import sys

import bcrypt

ACCOUNTS = {"ironic": ("muster", "rig-secret"), "bmc": ("root", "rig-bmc-secret")}


def main(rig, systems, ironic_port, bmc_port, ramdisk_port, auth, ipmitool, database):
    rig = pathlib.Path(rig)
    etc, var = rig / "etc", rig / "var"
    for folder in (etc, *(var / d for d in ("state", "tmp", "http", "tftp/master", "images", "masters", "bmc"))):
        folder.mkdir(parents=True, exist_ok=True)
    urls = {"ironic": f"http://127.0.0.1:{ironic_port}", "redfish": f"http://127.0.0.1:{bmc_port}",
            "ramdisk": f"http://127.0.0.1:{ramdisk_port}"}
    hosts = json.loads(pathlib.Path(systems).read_text())["hosts"]
    for name, (user, password) in ACCOUNTS.items():
        line = bcrypt.hashpw(password.encode(), bcrypt.gensalt(4)).decode()
        secret = etc / f"{name}.htpasswd"
        secret.touch(mode=0o600)
        secret.write_text(f"{user}:{line}\n")

    conf = configparser.RawConfigParser()
    conf.optionxform = str
    conf.read_dict(ironic_settings(rig, urls, ironic_port, auth, ipmitool == "1", database))
    with open(etc / "ironic.conf", "w") as out:
        conf.write(out)
    (etc / "bmc.conf").write_text(bmc_settings(hosts, etc, var, bmc_port))
    (rig / "env.json.new").write_text(json.dumps(described(hosts, urls, auth, ipmitool == "1"), indent=1))


def ironic_settings(rig, urls, port, auth, ipmitool, database):
    etc, var = rig / "etc", rig / "var"
    # the conductor does not start with a hardware type whose tool is missing
    ipmi = (["ipmi"], ["ipmitool"]) if ipmitool else ([], [])

    def offered(*names):
        return ",".join(names)

    return {
        "DEFAULT": {
            "auth_strategy": auth,
            "http_basic_auth_user_file": etc / "ironic.htpasswd",
            # API and conductor are one process: they need no message bus
            "rpc_transport": "none",
            "host": "rig-conductor",
            "my_ip": "127.0.0.1",
            "state_path": var / "state",
            "tempdir": var / "tmp",
            "log_file": rig / "log/ironic.log",
            "minimum_required_memory": 64,
            "hash_ring_reset_interval": 5,
            "enabled_hardware_types": offered("redfish", *ipmi[0], "idrac", "fake-hardware"),
            "enabled_bios_interfaces": offered("no-bios", "redfish", "idrac-redfish", "fake"),
            "enabled_boot_interfaces": offered(
                "ipxe", "pxe", "redfish-virtual-media", "idrac-redfish-virtual-media", "fake"),
            "enabled_console_interfaces": offered("no-console", "fake"),
            "enabled_deploy_interfaces": offered("direct", "ramdisk", "fake"),
            "enabled_firmware_interfaces": offered("no-firmware", "redfish", "fake"),
            "enabled_inspect_interfaces": offered("agent", "redfish", "idrac-redfish", "no-inspect", "fake"),
            "enabled_management_interfaces": offered("redfish", *ipmi[1], "idrac-redfish", "noop", "fake"),
            # no Neutron here: `noop` is what a standalone site sets too
            "enabled_network_interfaces": "noop",
            "default_network_interface": "noop",
            "enabled_power_interfaces": offered("redfish", *ipmi[1], "idrac-redfish", "fake"),
            "enabled_raid_interfaces": offered("no-raid", "agent", "redfish", "idrac-redfish", "fake"),
            "enabled_rescue_interfaces": offered("no-rescue", "fake"),
            "enabled_storage_interfaces": offered("noop", "fake"),
            "enabled_vendor_interfaces": offered("no-vendor", "redfish", *ipmi[1], "idrac-redfish", "fake"),
        },
        "database": {"connection": database},
        "api": {"host_ip": "127.0.0.1", "port": port, "public_endpoint": urls["ironic"], "api_workers": 1},
        "service_catalog": {"endpoint_override": urls["ironic"]},
        "conductor": {
            "automated_clean": True,
            "workers_pool_size": 100,
            # a sync holds the node's lock for a moment, so a real NodeLocked can be met
            "sync_power_state_interval": 20,
            "check_provision_state_interval": 5,
            "inspect_wait_timeout": 120,
            "clean_callback_timeout": 120,
            # Ironic's own tries at a lock before it answers NodeLocked
            "node_locked_retry_attempts": 3,
            "node_locked_retry_interval": 1,
            "power_state_change_timeout": 30,
            "deploy_kernel": f"{urls['ramdisk']}/boot/kernel",
            "deploy_ramdisk": f"{urls['ramdisk']}/boot/ramdisk",
        },
        "agent": {"deploy_logs_collect": "never", "require_tls": False, "max_command_attempts": 3},
        "deploy": {
            "http_url": urls["ramdisk"],
            "http_root": var / "http",
            "ramdisk_image_download_source": "http",
            # one clean step keeps a cleaning short; the second is there for whoever sets it
            "erase_devices_priority": 0,
            "erase_devices_metadata_priority": 10,
        },
        "dhcp": {"dhcp_provider": "none"},
        "pxe": {"tftp_root": var / "tftp", "tftp_master_path": var / "tftp/master",
                "images_path": var / "images", "instance_master_path": var / "masters"},
        "inspector": {
            "require_managed_boot": True,
            "add_ports": "disabled",
            "keep_ports": "all",
            "hooks": "$default_hooks,parse-lldp,root-device,pci-devices",
        },
        "inventory": {"data_backend": "database"},
        "redfish": {"connection_attempts": 2, "connection_retry_interval": 1},
        "ipmi": {"command_retry_timeout": 4, "min_command_interval": 1},
        "sensor_data": {"send_sensor_data": False},
        "fake": {f"{kind}_delay": 1 for kind in ("power", "deploy", "inspect", "vendor", "raid")},
    }


def bmc_settings(hosts, etc, var, port):
    systems = [{"uuid": h["uuid"], "name": h["name"], "power_state": "Off", "external_notifier": False,
                "nics": [{"mac": n["mac"], "ip": None} for n in h["nics"]]} for h in hosts]
    return "".join(f"SUSHY_EMULATOR_{key} = {value!r}\n" for key, value in {
        "FAKE_DRIVER": True,
        "FAKE_SYSTEMS": systems,
        "LISTEN_IP": "127.0.0.1",
        "LISTEN_PORT": int(port),
        "STATE_DIR": str(var / "bmc"),
        "AUTH_FILE": str(etc / "bmc.htpasswd"),
    }.items())


def described(hosts, urls, auth, ipmitool):
    account = ACCOUNTS["ironic"] if auth == "http_basic" else (None, None)
    return {
        "ironic_url": urls["ironic"], "redfish_url": urls["redfish"], "ramdisk_url": urls["ramdisk"],
        "auth": auth, "ironic_user": account[0], "ironic_password": account[1],
        "bmc_user": ACCOUNTS["bmc"][0], "bmc_password": ACCOUNTS["bmc"][1],
        "deploy_iso": f"{urls['ramdisk']}/boot/deploy.iso", "ipmi": ipmitool,
        "systems": [{
            "uuid": h["uuid"], "name": h["name"], "redfish_system_id": f"/redfish/v1/Systems/{h['uuid']}",
            "build": h["build"], "unit": h["unit"], "serial": h["serial"],
            "nics": [{"name": n["name"], "mac": n["mac"], "switch": n.get("switch"), "port": n.get("port")}
                     for n in h["nics"]],
        } for h in hosts],
    }


if __name__ == "__main__":
    main(*sys.argv[1:])

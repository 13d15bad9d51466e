"""Makes the inspection report of an emulated host, in the shape that ironic-python-agent 13 sends.

Pure: a host of systems.json, its build and a fault go in, the body of continue_inspection comes out.
"""
import base64
import io
import tarfile

GIB = 1024 ** 3


def report(host, build, fault):
    """The whole body. `fault` is a fault of the inspect stage (see ramdisk.py), `{}` for none."""
    nics = [{**nic, **fault.get("nics", {}).get(nic["name"], {})} for nic in host["nics"]]
    where = fault.get("lldp", "both")
    disks = [disk(host, n, d) for n, d in enumerate(build["disks"])]
    body = {
        "inventory": overlay(inventory(host, build, nics, disks, where), fault.get("inventory", {})),
        "root_disk": disks[0],
        "boot_interface": nics[0]["mac"],
        "configuration": {
            "collectors": ["default", "logs", "lldp", "pci-devices", "dmi-decode"],
            "managers": [{"name": "generic_hardware_manager", "version": "1.2"}],
        },
        "lldp_raw": {nic["name"]: lldp(host, nic) for nic in nics if lldp(host, nic)}
        if where in ("both", "raw") else {},
        "pci_devices": pci(build),
        "dmi": dmi(host, build),
        "logs": logs(host),
        "error": fault.get("error"),
    }
    return overlay(body, fault.get("plugin_data", {}))


def inventory(host, build, nics, disks, where):
    cpu, dimms, bios = build["cpu"], build["dimms"], build["bios"]
    threads = cpu["sockets"] * cpu["cores_per_socket"] * cpu["threads_per_core"]
    installed = dimms["count"] * dimms["gib"] * GIB
    return {
        "hostname": host["name"],
        "interfaces": [interface(host, build, n, nic, where) for n, nic in enumerate(nics)],
        # `count` is what the kernel schedules on: threads, not cores
        "cpu": {"model_name": cpu["model"], "frequency": cpu["mhz"], "count": threads,
                "socket_count": cpu["sockets"], "architecture": cpu.get("arch", "x86_64"),
                "flags": ["fpu", "sse4_2", "aes", "avx512f"]},
        # the kernel keeps some memory, so `total` is never the sum of the DIMMs
        "memory": {"total": installed - 10 * GIB, "physical_mb": installed // 1024 ** 2},
        "disks": disks,
        "boot": {"current_boot_mode": "uefi", "pxe_interface": nics[0]["mac"]},
        "bmc_address": host["bmc"]["ip"], "bmc_v6address": "::/0", "bmc_mac": host["bmc"]["mac"],
        "system_vendor": {"manufacturer": build["maker"], "product_name": build["model"],
                          "serial_number": host["serial"],
                          "firmware": {"vendor": bios["vendor"], "version": bios["version"],
                                       "build_date": bios["date"]}},
        "usb_devices": [],
    }


def interface(host, build, n, nic, where):
    card, carrier = build["nic"], has_carrier(nic)
    return {
        "name": nic["name"], "mac_address": nic["mac"], "has_carrier": carrier,
        "speed_mbps": card["mbps"] if carrier else None,
        "lldp": lldp(host, nic) if where in ("both", "inventory") else None,
        "vendor": "0x" + card["vendor"], "product": "0x" + card["product"], "driver": card["driver"],
        "pci_address": f"0000:a1:00.{n}", "ipv4_address": None, "ipv6_address": None,
        "biosdevname": None, "client_id": None,
    }


def has_carrier(nic):
    """A NIC with a cable has a link unless a fault says otherwise; `null` stays "not reported"."""
    return nic["has_carrier"] if "has_carrier" in nic else "switch" in nic


def lldp(host, nic):
    """TLVs as the agent reports them, `[type, value in hex]`; none where nothing could be heard."""
    if has_carrier(nic) is False or not nic.get("switch") or nic.get("lldp") is False:
        return []
    chassis = bytes([4, 2, 0xB0, 7]) + nic["switch"].encode()[-3:]
    # as Cumulus does: the port ID is the port's name, its description names the host
    described = nic.get("description", f"{host['name']} {nic['name']}")
    return [
        [1, chassis.hex()],
        [2, (b"\x05" + nic["port"].encode()).hex()],
        [3, (120).to_bytes(2, "big").hex()],
        [4, described.encode().hex()],
        [5, nic["switch"].encode().hex()],
        [6, b"Fjord NOS 5.11".hex()],
        [7, "00140014"],
        [0, ""],
    ]


def disk(host, n, d):
    serial = f"{host['serial']}-N{n}"
    wwn = "eui." + serial.encode().hex()[-16:].rjust(16, "0")
    return {
        "name": d["dev"], "model": d["model"], "size": d["bytes"], "serial": serial,
        "rotational": False, "tran": "nvme", "vendor": None, "hctl": None,
        "wwn": wwn, "wwn_with_extension": wwn, "wwn_vendor_extension": None,
        "by_path": f"/dev/disk/by-path/pci-0000:{0x61 + n:02x}:00.0-nvme-1",
        "logical_sectors": 512, "physical_sectors": 4096,
    }


def pci(build):
    """GPUs and other cards, and the two functions of the NIC."""
    card = build["nic"]
    kinds = build["pci"] + [{"vendor": card["vendor"], "product": card["product"],
                             "class": "020000", "revision": "00", "count": 2}]
    found = []
    for kind in kinds:
        for n in range(kind["count"]):
            found.append({
                "vendor_id": kind["vendor"], "product_id": kind["product"], "class": kind["class"],
                "revision": kind["revision"], "bus": f"0000:{0x11 + len(found) * 8:02x}:00.0",
                "numa_node_id": str(n * 2 // kind["count"]),
            })
    return found


def dmi(host, build):
    cpu, dimms, bios = build["cpu"], build["dimms"], build["bios"]
    return {
        "bios": {"Vendor": bios["vendor"], "Version": bios["version"], "Release Date": bios["date"]},
        "cpu": [{"Socket Designation": f"P{n}", "Version": cpu["model"],
                 "Core Count": str(cpu["cores_per_socket"])} for n in range(cpu["sockets"])],
        "memory": {
            "Number Of Devices": dimms["count"],
            "devices": [{"Locator": f"P{n * cpu['sockets'] // dimms['count']}_DIMM{n:02d}",
                         "Size": f"{dimms['gib']} GB", "Type": "DDR5", "Speed": "4800 MT/s",
                         "Part Number": dimms["part"], "Serial Number": f"{host['serial']}-M{n:02d}"}
                        for n in range(dimms["count"])],
        },
    }


def logs(host):
    """The collected logs: a small tar archive in base64, as the agent packs its journal."""
    text, packed = f"emulated ramdisk of {host['name']}\n".encode(), io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as tar:
        entry = tarfile.TarInfo("journal")
        entry.size = len(text)
        tar.addfile(entry, io.BytesIO(text))
    return base64.b64encode(packed.getvalue()).decode()


def overlay(base, patch):
    """`base` with `patch` over it: objects key by key, everything else replaced whole."""
    if not (isinstance(base, dict) and isinstance(patch, dict)):
        return patch
    return {**base, **{key: overlay(base.get(key), value) for key, value in patch.items()}}

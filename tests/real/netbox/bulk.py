#!/usr/bin/env python3
"""Fills a rig's NetBox with many devices for measurements, by its own models and past its REST API.

    NETBOX_ROOT=RIG/home VENV/bin/python bulk.py DEVICES

Six interfaces a device: BMC, bond and four NICs. Of the first half of the devices two NICs are cabled to switches of 60 ports, so
that 5,000 devices come to 35,000 interfaces. A MAC address for each port but the bond, an IP address for each BMC.
"""
import datetime
import os
import random
import sys

os.environ["DJANGO_SETTINGS_MODULE"] = "netbox.settings"
import django  # noqa: E402

django.setup()
from dcim import models as dcim  # noqa: E402
from django.contrib.contenttypes.models import ContentType  # noqa: E402
from ipam.models import IPAddress  # noqa: E402

ROWS = 1000
PORTS = [("bmc", "1000base-t", True), ("bond0", "lag", False)] + [
    (f"eth{n}", "100gbase-x-qsfp28", False) for n in range(4)]
CABLED = (2, 3)  # eth0 and eth1
SWITCH_PORTS = 60


def made(model, rows):
    return model.objects.bulk_create(rows, batch_size=ROWS)


def fleet(count):
    """Racks of twenty, then the devices in them."""
    site = dcim.Site.objects.get_or_create(name="Bulk", slug="bulk", defaults={"status": "active"})[0]
    kind = dcim.DeviceType.objects.exclude(model__startswith="SK-").order_by("pk")[0]
    role = dcim.DeviceRole.objects.get(slug="cpu-compute")
    racks = made(dcim.Rack, [dcim.Rack(site=site, name=f"K{n:04}", u_height=44) for n in range(-(-count // 20))])
    devices = [dcim.Device(name=f"bulk-{n:05}", site=site, rack=racks[n // 20], position=1 + n % 20 * 2, face="front",
                           device_type=kind, role=role, status="staged", serial=f"K-{n:06}",
                           custom_field_data={"expected_hw_description": "as ordered", "platform_class": None})
               for n in range(count)]
    return site, made(dcim.Device, devices)


def ports_of(site, devices):
    rows = [dcim.Interface(device=device, name=name, type=kind, mgmt_only=managed, _site=site)
            for device in devices for name, kind, managed in PORTS]
    return made(dcim.Interface, rows)


def addresses(devices, ports):
    of_port = ContentType.objects.get_for_model(dcim.Interface)
    macs = made(dcim.MACAddress, [
        dcim.MACAddress(mac_address="06:" + ":".join(f"{n:010x}"[i:i + 2] for i in range(0, 10, 2)),
                        assigned_object_type=of_port, assigned_object_id=port.pk)
        for n, port in enumerate(ports) if port.type != "lag"])
    owner = {mac.assigned_object_id: mac for mac in macs}
    for at, port in enumerate(ports):
        port.primary_mac_address = owner.get(port.pk)
        if at % len(PORTS) in CABLED:
            port.lag = ports[at - at % len(PORTS) + 1]
    dcim.Interface.objects.bulk_update(ports, ["primary_mac_address", "lag"], batch_size=ROWS)
    ips = made(IPAddress, [
        IPAddress(address=f"100.{64 + (n >> 16)}.{n >> 8 & 255}.{n & 255}/16", assigned_object_type=of_port,
                  assigned_object_id=ports[n * len(PORTS)].pk) for n in range(len(devices))])
    for device, ip in zip(devices, ips, strict=True):
        device.oob_ip = ip
    dcim.Device.objects.bulk_update(devices, ["oob_ip"], batch_size=ROWS)


def switches(site, count):
    """One list of ports for as many cables."""
    kind, role = dcim.DeviceType.objects.get(model="SK-48Q"), dcim.DeviceRole.objects.get(slug="switch")
    boxes = made(dcim.Device, [dcim.Device(name=f"bulk-leaf-{n:03}", site=site, device_type=kind, role=role, status="active",
                                           custom_field_data={}) for n in range(-(-count // SWITCH_PORTS))])
    return made(dcim.Interface, [
        dcim.Interface(device=boxes[n // SWITCH_PORTS], name=f"swp{n % SWITCH_PORTS + 1}", type="100gbase-x-qsfp28", _site=site)
        for n in range(count)])


def cables(site, near):
    far = switches(site, len(near))
    of_port = ContentType.objects.get_for_model(dcim.Interface)
    rows = made(dcim.Cable, [dcim.Cable(label=f"bulk {n}", status="connected", color="2196f3") for n in range(len(near))])
    ends = []
    for cable, a, b in zip(rows, near, far, strict=True):
        for letter, port in (("A", a), ("B", b)):
            port.cable, port.cable_end = cable, letter
            ends.append(dcim.CableTermination(cable=cable, cable_end=letter, termination_type=of_port, termination_id=port.pk,
                                              _device=port.device, _site=site))
    made(dcim.CableTermination, ends)
    dcim.Interface.objects.bulk_update(near + far, ["cable", "cable_end"], batch_size=ROWS)
    return near + far


def paths(ends):
    """What NetBox computes when a cable is saved, in one piece: both directions of each cable."""
    from dcim.utils import object_to_path_node
    rows, pairs = [], {}
    for end in ends:
        pairs.setdefault(end.cable_id, []).append(end)
    for pair in pairs.values():
        for a, b in (pair, reversed(pair)):
            rows.append(dcim.CablePath(path=[[object_to_path_node(a)], [object_to_path_node(a.cable)], [object_to_path_node(b)]],
                                       is_active=True, is_complete=True, is_split=False))
    for row in rows:
        row._nodes = [node for step in row.path for node in step]
    made(dcim.CablePath, rows)
    for row, end in zip(rows, [end for pair in pairs.values() for end in pair], strict=True):
        end._path = row
    dcim.Interface.objects.bulk_update(ends, ["_path"], batch_size=ROWS)


def age(*models):
    """Stamps as of a fleet that grew in a year, and not in one minute."""
    now, chance = datetime.datetime.now(datetime.timezone.utc), random.Random(7)
    for model in models:
        rows = list(model.objects.only("pk"))
        for row in rows:
            row.last_updated = now - datetime.timedelta(seconds=chance.randrange(3600, 31_536_000))
        with_stamp = model._meta.get_field("last_updated")
        with_stamp.auto_now = False
        model.objects.bulk_update(rows, ["last_updated"], batch_size=ROWS)


def main(count):
    site, devices = fleet(count)
    ports = ports_of(site, devices)
    addresses(devices, ports)
    near = [port for at, port in enumerate(ports) if at % len(PORTS) in CABLED]
    # A switch port is an interface too.
    ends = cables(site, near[:len(near) // 2])
    paths(ends)
    age(dcim.Device, dcim.Interface, dcim.MACAddress, dcim.Cable, IPAddress)
    print(f"{count} devices, {dcim.Interface.objects.count()} interfaces, {dcim.Cable.objects.count()} cables")


if __name__ == "__main__":
    main(int(sys.argv[1]))

#!/usr/bin/env python3
"""Reads the devices and interfaces of one NetBox by several readers in one run, and prints wall, CPU and memory of each.

    bench.py ENV MUSTER_READER [ROUNDS [READERS]]    with an interpreter that has pynetbox; see `bench`

READERS are beginnings of names, with `+` between them (`muster+curl, 4`); all of them where it is left out.

All read the same rows with the same fields over at most four connections. curl writes the pages to a file and looks at
nothing; it is told where each page begins, muster and pynetbox find out by themselves. Where a round is asked for several
times the readers take turns, so that what else the machine does hits all of them.
"""
import json
import os
import sys
import tempfile
import time
import urllib.parse
import urllib.request

DEVICES = ("id,name,device_type,role,site,location,rack,position,face,status,serial,asset_tag,tenant,tags,oob_ip,"
           "custom_fields,last_updated")
INTERFACES = ("id,name,device,type,enabled,mgmt_only,label,description,lag,mac_address,mac_addresses,cable,link_peers,"
              "link_peers_type,connected_endpoints,connected_endpoints_type,last_updated")
LISTS = (("dcim/devices", DEVICES), ("dcim/interfaces", INTERFACES))
PAGE = 1000

PYNETBOX = """
import sys, pynetbox
url, token, threads = sys.argv[1:4]
lists = eval(sys.argv[4])
netbox = pynetbox.api(url, token=token, threading=threads == "yes")
if token.startswith("nbt_"):
    netbox.http_session.headers["Authorization"] = "Bearer " + token
for path, fields in lists:
    app, name = path.split("/")
    rows = list(getattr(getattr(netbox, app), name).filter(fields=fields, ordering="id", limit=%d))
    print(path, len(rows), "rows")
""" % PAGE

GRAPHQL = """{ interface_list(pagination: {offset: %d, limit: %d}) { id name type enabled mgmt_only label description last_updated
 device { id name } lag { id name } primary_mac_address { mac_address } mac_addresses { mac_address } cable { id label }
 link_peers { __typename ... on InterfaceType { id name device { id name } } }
 connected_endpoints { __typename ... on InterfaceType { id name device { id name } } } } }"""


def ask(env, path):
    request = urllib.request.Request(env["url"] + path, headers={"Authorization": "Bearer " + env["token"]})
    with urllib.request.urlopen(request, timeout=120) as answer:
        return json.load(answer)


def pages(env):
    """Where each page begins, list by list."""
    for path, fields in LISTS:
        fields = urllib.parse.quote(fields, safe="")
        count = ask(env, f"/api/{path}/?limit=1&fields=id")["count"]
        begins = [ask(env, f"/api/{path}/?ordering=id&fields=id&limit=1&offset={at}")["results"][0]["id"]
                  for at in range(0, count, PAGE)]
        for begin, end in zip(begins, [*begins[1:], None]):
            until = "" if end is None else f"&id__lt={end}"
            yield f"{env['url']}/api/{path}/?fields={fields}&ordering=id&limit={PAGE}&id__gte={begin}{until}"


def curl_file(folder, name, entries):
    path = os.path.join(folder, name)
    with open(path, "w") as file:
        for n, lines in enumerate(entries):
            file.write(("next\n" if n else "") + "\n".join([*lines, f'output = "{folder}/{name}.{n}"', "silent", "fail"]) + "\n")
    return ["curl", "--parallel", "--parallel-max", "4", "--parallel-immediate", "--config", path]


def graphql_pages(env):
    count = ask(env, "/api/dcim/interfaces/?limit=1&fields=id")["count"]
    for at in range(0, count, PAGE):
        yield json.dumps({"query": GRAPHQL % (at, PAGE)})


def measured(command, env=None):
    began = time.perf_counter()
    pid = os.posix_spawnp(command[0], command, {**os.environ, **(env or {})})
    _, status, usage = os.wait4(pid, 0)
    wall = time.perf_counter() - began
    if status != 0:
        sys.exit(f"{command[0]} ended with {os.waitstatus_to_exitcode(status)}")
    return wall, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def main(path, reader, rounds="1", only=""):
    env = json.load(open(path))
    header = f'header = "Authorization: Bearer {env["token"]}"'
    with tempfile.TemporaryDirectory() as folder:
        parallel = curl_file(folder, "rest", [[f'url = "{url}"', header] for url in pages(env)])
        posts = [[f'url = "{env["url"]}/graphql/"', header, 'header = "Content-Type: application/json"',
                  "data = " + json.dumps(body)] for body in graphql_pages(env)]
        graphql = curl_file(folder, "graphql", posts)
        script = os.path.join(folder, "read.py")
        with open(script, "w") as file:
            file.write(PYNETBOX)
        pynetbox = [sys.executable, script, env["url"], env["token"]]
        readers = [
            ("muster, into its store", [reader], {"MUSTER_REAL_NETBOX": path}),
            ("curl, 4 connections", parallel, None),
            ("muster, into its store", [reader], {"MUSTER_REAL_NETBOX": path}),
            ("pynetbox", [*pynetbox, "no", repr(LISTS)], None),
            ("pynetbox, threading", [*pynetbox, "yes", repr(LISTS)], None),
            ("curl, interfaces by GraphQL", graphql, None),
        ]
        wanted = tuple(only.split("+")) if only else ("",)
        readers = [reader for reader in readers if reader[0].startswith(wanted)]
        print(f"load {os.getloadavg()[0]:.1f} at the start, {os.cpu_count()} processors", flush=True)
        for _ in range(int(rounds)):
            for name, command, more in readers:
                wall, cpu, memory = measured(command, more)
                print(f"{name:30} {wall:7.1f} s wall {cpu:7.2f} s CPU {memory:6.0f} MB resident", flush=True)
        print(f"load {os.getloadavg()[0]:.1f} at the end")


if __name__ == "__main__":
    main(*sys.argv[1:])

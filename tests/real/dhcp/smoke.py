#!/usr/bin/env python3
"""Proves the DHCP rig by itself: each server leases an entry, refuses a bad one in its own test, and can be stopped by a fault.

    smoke.py DIR/env.json
"""
import json
import pathlib
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
from parts import prove  # noqa: E402

MAC = "02:aa:00:00:00:07"
FOUR = {
    "isc": 'host a {{ hardware ethernet {mac}; fixed-address {address}; option host-name "a"; }}\n',
    "kea": '{{"hw-address": "{mac}", "ip-address": "{address}", "hostname": "a"}}\n',
    "dnsmasq": "dhcp-host={mac},{address},a\n",
}
SIX = {
    "isc6": "host a {{ hardware ethernet {mac}; fixed-address6 {address}; }}\n",
    "kea6": '{{"hw-address": "{mac}", "ip-addresses": ["{address}"], "hostname": "a"}}\n',
    "dnsmasq": "dhcp-host={mac},[{address}],a\n",
}


class Server:
    def __init__(self, env, kind):
        self.env, self.folder = env["servers"][kind], pathlib.Path(env["servers"][kind]["directory"])
        self.file = self.folder / ("a.json" if kind.startswith("kea") else "a.conf")

    def verb(self, verb, *arguments):
        done = subprocess.run(" ".join((self.env[verb], *arguments)), shell=True, capture_output=True, text=True, timeout=60)
        return done.returncode, done.stdout + done.stderr

    def restart(self):
        assert self.verb("restart") == (0, ""), self.verb("validate")
        assert self.verb("validate")[0] == 0


def leases(env, kind, form, address, *family):
    server = Server(env, kind)
    server.file.write_text(form.format(mac=MAC, address=address))
    server.restart()
    code, said = server.verb("lease", MAC, *family)
    assert code == 0 and said.split()[0] == address, said
    server.file.unlink()
    server.restart()
    code, said = server.verb("lease", MAC, *family)
    assert code == 0 and said.split()[0] != address, said


def each_server_leases_what_its_entries_say(env):
    for kind, form in FOUR.items():
        leases(env, kind, form, "198.51.100.77")


def each_server_leases_ipv6_too(env):
    for kind, form in SIX.items():
        leases(env, kind, form, "2001:db8:8::77", *(["6"] if kind == "dnsmasq" else []))


def a_bad_entry_keeps_a_server_down_and_its_test_says_so(env):
    for kind in (*FOUR, "isc6", "kea6"):
        server = Server(env, kind)
        server.file.write_text("{ what is this\n")
        assert server.verb("test")[0] != 0
        assert server.verb("restart")[0] != 0 and "down" in server.verb("validate")[1]
        server.file.unlink()
        server.restart()


def faults_can_be_set(env):
    server = Server(env, "isc")
    faults = pathlib.Path(server.env["fault_dir"])
    (faults / "fail-restart-once").write_text("Job for isc-dhcp-server.service failed\n")
    code, said = server.verb("restart")
    assert code == 1 and "Job for" in said and server.verb("validate")[0] == 1, said
    (faults / "hang-test-once").write_text("1")
    began = time.monotonic()
    assert server.verb("test")[0] == 0 and time.monotonic() - began > 1
    server.restart()
    assert not list(faults.iterdir())


def main():
    env = json.loads(pathlib.Path(sys.argv[1]).read_text())
    parts = (
        each_server_leases_what_its_entries_say,
        each_server_leases_ipv6_too,
        a_bad_entry_keeps_a_server_down_and_its_test_says_so,
        faults_can_be_set,
    )
    return prove(parts, env)


if __name__ == "__main__":
    sys.exit(main())

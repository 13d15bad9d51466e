#!/usr/bin/env python3
"""Proves the SSH and DHCP rig with OpenSSH's own client: upload, test, restart, validate, and each refusal.

    smoke.py DIR/env.json
"""
import json
import pathlib
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
from parts import prove  # noqa: E402

ENTRY = ('host osl1-b07-u11-bmc {{ hardware ethernet 02:b0:07:11:bc:00; fixed-address {address}; '
         'option host-name "osl1-b07-u11-bmc"; }}\n')


class Client:
    def __init__(self, env):
        self.env, self.entry = env, env["entry_dir"] + "/osl1-b07-u11-bmc"

    def options(self, key="private_key", known="known_hosts"):
        return ["-F", "none", "-i", self.env[key], "-o", "IdentitiesOnly=yes", "-o", "BatchMode=yes",
                "-o", "StrictHostKeyChecking=yes", "-o", f"UserKnownHostsFile={self.env[known]}",
                "-o", f"Port={self.env['port']}"]

    def at(self):
        return f"{self.env['user']}@{self.env['host']}"

    def run(self, command, **options):
        done = subprocess.run(["ssh", "-T", *self.options(**options), self.at(), command],
                              capture_output=True, text=True, timeout=60)
        return done.returncode, done.stdout + done.stderr

    def verb(self, verb, *arguments):
        return self.run(" ".join((self.env[verb], *arguments)))

    def upload(self, text):
        """As a careful client does: another name first, which the server does not read, then a rename."""
        folder, name = self.entry.rsplit("/", 1)
        local = pathlib.Path(self.env["fault_dir"]) / "upload"
        local.write_text(text)
        batch = f"put {local} {folder}/.{name}.tmp\nrename {folder}/.{name}.tmp {self.entry}\n"
        subprocess.run(["sftp", "-b", "-", *self.options(), self.at()], input=batch, text=True, check=True,
                       capture_output=True, timeout=60)

    def restarts(self):
        return int(pathlib.Path(self.env["restarts_file"]).read_text())

    def fault(self, name, text):
        (pathlib.Path(self.env["fault_dir"]) / name).write_text(text)


def entry_is_served_after_one_restart(client):
    before = client.restarts()
    client.upload(ENTRY.format(address="198.51.100.11"))
    code, said = client.verb("validate")
    assert code == 1 and "serves other entries" in said, said
    assert client.verb("test")[0] == 0
    assert client.verb("restart") == (0, "")
    assert client.verb("validate")[0] == 0
    assert client.restarts() == before + 1
    if client.env["serving"]:
        code, said = client.verb("offer", "02:b0:07:11:bc:00")
        assert (code, said.strip()) == (0, "198.51.100.11 osl1-b07-u11-bmc"), said


def bad_entry_fails_the_test_and_keeps_the_server_down(client):
    client.upload("host broken { hardware ethernet 02:b0; \n")
    assert client.verb("test")[0] != 0
    assert client.verb("restart")[0] != 0
    code, said = client.verb("validate")
    assert code == 1 and "down" in said, said
    client.upload(ENTRY.format(address="198.51.100.11"))
    assert client.verb("restart")[0] == 0 and client.verb("validate")[0] == 0


def faults_can_be_set(client):
    client.fault("fail-restart-once", "Job for isc-dhcp-server.service failed\n")
    code, said = client.verb("restart")
    assert code == 1 and "Job for" in said, said
    assert client.verb("restart")[0] == 0
    client.fault("hang-test", "1.5")
    began = time.monotonic()
    assert client.verb("test")[0] == 0 and time.monotonic() - began > 1.5
    (pathlib.Path(client.env["fault_dir"]) / "hang-test").unlink()
    verbs = [line.split()[1:] for line in pathlib.Path(client.env["verbs_log"]).read_text().splitlines()]
    assert verbs[-3:] == [["restart", "1"], ["restart", "0"], ["test", "0"]], verbs


def keys_and_host_keys_are_checked(client):
    assert client.run("true", known="known_hosts_hashed")[0] == 0
    for options, reason in (
        ({"key": "stranger_key"}, "Permission denied"),
        ({"known": "known_hosts_changed"}, "HOST IDENTIFICATION HAS CHANGED"),
        ({"known": "known_hosts_revoked"}, "revoked"),
        ({"known": "known_hosts_empty"}, "No ED25519 host key is known"),
    ):
        code, said = client.run("true", **options)
        assert code == 255 and reason in said, (options, said)


def nothing_is_left_behind(client):
    """The host of this entry is enrolled later, under another file name: the old one would stand in its way."""
    assert client.run(f"rm {client.entry}")[0] == 0
    assert client.verb("restart")[0] == 0 and client.verb("validate")[0] == 0


def main():
    client = Client(json.loads(pathlib.Path(sys.argv[1]).read_text()))
    parts = (
        entry_is_served_after_one_restart,
        bad_entry_fails_the_test_and_keeps_the_server_down,
        faults_can_be_set,
        keys_and_host_keys_are_checked,
        nothing_is_left_behind,
    )
    return prove(parts, client)


if __name__ == "__main__":
    sys.exit(main())

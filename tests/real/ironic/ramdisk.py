#!/usr/bin/env python3
"""Emulated inspection and cleaning ramdisks for the hosts of systems.json. No image is ever booted.

Ironic is watched for nodes that are powered on and wait for a ramdisk; each of them gets a thread
that speaks the agent's side of the protocol:

  inspect wait   POST /v1/continue_inspection with the host's report (inventory.py)
  clean wait     GET /v1/lookup, POST /v1/heartbeat, and the command API that the conductor calls
                 back for the clean steps, served under /agent/HOST

A test steers it over the same port:

  GET    /hosts                  what runs now, and how often each host booted each stage
  GET    /events[?after=N]       what happened, numbered
  GET    /faults                 what is set
  PUT    /faults/HOST/inspect    {"nics": {"eth0": {"switch": …, "port": …, "description": …,
                                 "has_carrier": …, "lldp": false, "mac": …}}, "lldp": both|raw|
                                 inventory|none, "inventory": {…}, "plugin_data": {…}, "error": text}
  PUT    /faults/HOST/clean      {"fail": step name or "*", "message": text, "hang": true,
                                 "step_s": seconds}
                                 both: "silent": true, "boot_s": seconds, "times": boots it is good for
  DELETE /faults[/HOST[/STAGE]]

HOST is a name of systems.json or `*`; a fault of the host itself wins over one of `*`.
"""
import argparse
import collections
import http.server
import json
import os
import pathlib
import sys
import threading
import time
import urllib.parse
import uuid

import sqlalchemy

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import inventory  # noqa: E402
from rest import Rest  # noqa: E402

AGENT = "13.0.0"
FAULT_KEYS = {
    "inspect": {"nics", "lldp", "inventory", "plugin_data", "error", "silent", "boot_s", "times"},
    "clean": {"fail", "message", "hang", "step_s", "silent", "boot_s", "times"},
}
# what the generic hardware manager offers; Ironic decides which of them run
CLEAN_STEPS = [
    {"interface": interface, "step": step, "priority": priority, "abortable": True, "reboot_requested": False}
    for interface, step, priority in (
        ("deploy", "erase_devices_metadata", 99), ("deploy", "erase_devices", 10),
        ("deploy", "erase_devices_express", 0), ("raid", "create_configuration", 0),
        ("raid", "delete_configuration", 0))
]


class Rig:
    """What all ramdisks share: the hosts, the faults, the events, and the way to Ironic."""

    def __init__(self, args):
        data = json.loads(pathlib.Path(args.systems).read_text())
        self.builds, self.hosts = data["builds"], {h["name"]: h for h in data["hosts"]}
        self.boot_s, self.step_s = args.boot_s, args.step_s
        self.database = sqlalchemy.create_engine(args.database)
        self.heartbeat_s, self.url = args.heartbeat_s, f"http://127.0.0.1:{args.port}"
        # the agent calls without credentials; only the watching needs them
        self.public = Rest(args.ironic)
        self.admin = Rest(args.ironic, args.user, os.environ.get("MUSTER_RIG_PASSWORD"),
                          {"X-OpenStack-Ironic-API-Version": "1.81"})
        self.lock = threading.RLock()
        self.faults, self.events, self.running = {}, [], {}
        self.boots = collections.Counter()

    def event(self, host, what, **more):
        with self.lock:
            self.events.append({"n": len(self.events) + 1, "at": round(time.time(), 3),
                                "host": host, "what": what, **more})
        print(time.strftime("%H:%M:%S"), host, what, more or "", flush=True)

    def take_fault(self, host, stage):
        """The fault of this boot; one that is good for N boots is used up by the Nth."""
        with self.lock:
            self.boots[host, stage] += 1
            for name in (host, "*"):
                fault = self.faults.get((name, stage))
                if fault is None:
                    continue
                if "times" in fault:
                    fault["times"] -= 1
                    if fault["times"] <= 0:
                        del self.faults[name, stage]
                return {key: value for key, value in fault.items() if key != "times"}
        return {}

    # --- watching Ironic ---

    def watch(self):
        while True:
            try:
                self.look()
            except (OSError, RuntimeError) as error:
                print("watch:", error, flush=True)
            time.sleep(0.5)

    def look(self):
        fields = "uuid,name,driver_info,driver_internal_info,provision_state,power_state"
        nodes = self.admin.must("GET", "/v1/nodes?fields=" + fields)["nodes"]
        wanted = {}
        for node in nodes:
            stage = {"inspect wait": "inspect", "clean wait": "clean", "cleaning": "clean"}.get(node["provision_state"])
            # A failed cleaning can be recovered and begun anew between two looks; what tells the
            # boots apart is when the power last changed.
            boot = (stage, node["driver_internal_info"].get("last_power_state_change"))
            known = node["uuid"] in self.running and self.running[node["uuid"]].boot == boot
            # `cleaning` alone starts nothing: it is also the moment before the first boot
            if stage and node["power_state"] == "power on" and (known or node["provision_state"] != "cleaning"):
                wanted[node["uuid"]] = (node, boot)
        for ident, ramdisk in list(self.running.items()):
            if ident not in wanted or wanted[ident][1] != ramdisk.boot:
                ramdisk.gone.set()
                del self.running[ident]
                self.event(ramdisk.host["name"], "off", stage=ramdisk.stage)
        for ident, (node, boot) in wanted.items():
            if ident in self.running:
                self.running[ident].waiting = node["provision_state"].endswith("wait")
            elif host := self.host_of(node):
                fault = self.take_fault(host["name"], boot[0])
                self.event(host["name"], "boot", stage=boot[0], fault=fault)
                self.running[ident] = Ramdisk(self, ident, host, boot, fault)
                self.running[ident].start()

    def host_of(self, node):
        """By what the BMC was told to boot, else by name, else by the MAC of a port."""
        system = (node["driver_info"] or {}).get("redfish_system_id", "").rsplit("/", 1)[-1]
        for host in self.hosts.values():
            if system == host["uuid"] or (not system and node["name"] == host["name"]):
                return host
        macs = {p["address"] for p in self.admin.must("GET", "/v1/ports?node=" + node["uuid"])["ports"]}
        return next((h for h in self.hosts.values() if macs & {n["mac"] for n in h["nics"]}), None)

    def token_of(self, ident):
        """With virtual media the agent's token travels on the boot image. Nothing boots one here, so
        it is read from where the conductor keeps it."""
        wanted = sqlalchemy.text("select driver_internal_info from nodes where uuid = :node")
        with self.database.connect() as db:
            row = db.execute(wanted, {"node": ident}).fetchone()
        return json.loads(row[0] or "{}").get("agent_secret_token") if row else None


class Ramdisk(threading.Thread):
    """One boot of one host: lives from power on until Ironic waits for it no more."""

    def __init__(self, rig, node, host, boot, fault):
        super().__init__(daemon=True)
        self.rig, self.node, self.host, self.boot, self.fault = rig, node, host, boot, fault
        self.stage = boot[0]
        self.gone, self.wake = threading.Event(), threading.Event()
        self.waiting, self.token, self.commands = True, None, []

    def run(self):
        if self.gone.wait(self.fault.get("boot_s", self.rig.boot_s)) or self.fault.get("silent"):
            return
        (self.inspect if self.stage == "inspect" else self.clean)()

    def inspect(self):
        body = inventory.report(self.host, self.rig.builds[self.host["build"]], self.fault)
        while not self.gone.is_set():
            status, answer = self.call("POST", "/v1/continue_inspection", body)
            self.rig.event(self.host["name"], "report", status=status)
            if status == 202:
                return
            print(self.host["name"], "continue_inspection:", answer, flush=True)
            self.gone.wait(1)

    def clean(self):
        while not self.gone.is_set():
            if self.token is None:
                self.look_up()
            elif self.waiting:
                self.call("POST", f"/v1/heartbeat/{self.node}", {
                    "callback_url": f"{self.rig.url}/agent/{self.host['name']}",
                    "agent_token": self.token, "agent_version": AGENT}, version="1.68")
            # a step that ends is announced at once, as the agent does
            ends = [c.ends for c in self.commands if c.ends and c.ends > time.time()]
            pause = min([self.rig.heartbeat_s, *(e - time.time() + 0.05 for e in ends)])
            self.wake.wait(max(pause, 0.05))
            self.wake.clear()

    def look_up(self):
        macs = ",".join(nic["mac"] for nic in self.host["nics"])
        status, answer = self.call("GET", "/v1/lookup?addresses=" + macs, version="1.62")
        self.rig.event(self.host["name"], "lookup", status=status)
        if status == 200:
            token = answer["config"]["agent_token"]
            # a token that was given out before is shown as stars
            self.token = self.rig.token_of(self.node) if not token or token.startswith("*") else token

    def call(self, method, path, body=None, version=None):
        """The agent sends no version with its report, and one with everything else."""
        headers = {"X-OpenStack-Ironic-API-Version": version} if version else {}
        try:
            return self.rig.public.ask(method, path, body, **headers)
        except OSError as error:
            return 0, str(error)

    # --- the command API, called by the conductor ---

    def command(self, name, params):
        command = Command(name.rpartition(".")[2], params)
        if command.name == "get_clean_steps":
            command.result = {"clean_steps": {"GenericHardwareManager": CLEAN_STEPS},
                              "hardware_manager_version": {"generic_hardware_manager": "1.2"}}
        elif command.name == "execute_clean_step":
            step = command.step = params["step"]
            command.ends = time.time() + self.fault.get("step_s", self.rig.step_s)
            if self.fault.get("hang"):
                command.ends = float("inf")
            command.result = {"clean_result": None, "clean_step": step}
            if self.fault.get("fail") in ("*", step["step"]):
                command.error = self.fault.get("message", f"clean step {step['step']} failed: device is busy")
            self.rig.event(self.host["name"], "clean step", step=step["step"], fails=command.error is not None)
        else:
            command.result = {"result": f"{command.name}: done"}
        self.commands.append(command)
        self.wake.set()
        return command.public()


class Command:
    def __init__(self, name, params):
        self.id, self.name, self.params = str(uuid.uuid4()), name, params
        self.ends, self.result, self.error, self.step = 0, None, None, None

    def public(self):
        running = time.time() < self.ends
        failed = not running and self.error is not None
        return {
            "id": self.id, "command_name": self.name, "command_params": self.params,
            "command_status": "RUNNING" if running else "FAILED" if failed else "SUCCEEDED",
            "command_result": None if running or failed else self.result,
            "command_error": {"type": "CleaningError", "code": 500, "message": "Clean step failed",
                              "details": self.error} if failed else None,
        }


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    rig = None

    def serve(self):
        url = urllib.parse.urlsplit(self.path)
        parts = [urllib.parse.unquote(p) for p in url.path.split("/") if p]
        query = dict(urllib.parse.parse_qsl(url.query))
        raw = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        try:
            body = json.loads(raw) if raw else None
        except ValueError:
            return self.answer(400, {"error": "the body is no JSON"})
        area = {"hosts": self.hosts, "events": self.events, "faults": self.faults,
                "agent": self.agent, "boot": self.boot}.get(parts[0] if parts else "")
        if area is None:
            return self.answer(404, {"error": f"nothing at {url.path}"})
        area(parts[1:], query, body)

    do_GET = do_HEAD = do_POST = do_PUT = do_DELETE = serve

    def hosts(self, _parts, _query, _body):
        with self.rig.lock:
            alive = {r.host["name"]: r for r in self.rig.running.values()}
            self.answer(200, {name: {
                "stage": alive[name].stage if name in alive else None,
                "boots": {stage: self.rig.boots[name, stage] for stage in FAULT_KEYS},
                "commands": [c.public() for c in alive[name].commands] if name in alive else [],
            } for name in self.rig.hosts})

    def events(self, _parts, query, _body):
        with self.rig.lock:
            self.answer(200, [e for e in self.rig.events if e["n"] > int(query.get("after", 0))])

    def faults(self, parts, _query, body):
        host, stage = (parts + [None, None])[:2]
        faults = self.rig.faults
        if host not in (None, "*") and host not in self.rig.hosts:
            return self.answer(404, {"error": f"no host '{host}'", "hosts": sorted(self.rig.hosts)})
        if stage is not None and stage not in FAULT_KEYS:
            return self.answer(404, {"error": f"no stage '{stage}'", "stages": sorted(FAULT_KEYS)})
        with self.rig.lock:
            if self.command == "PUT":
                if stage is None or not isinstance(body, dict):
                    return self.answer(400, {"error": "PUT /faults/HOST/STAGE takes an object"})
                # a misspelt fault would be a test that passes for the wrong reason
                if unknown := set(body) - FAULT_KEYS[stage]:
                    return self.answer(400, {"error": f"unknown keys {sorted(unknown)}",
                                             "known": sorted(FAULT_KEYS[stage])})
                faults[host, stage] = body
            elif self.command == "DELETE":
                for key in [k for k in faults if host in (None, k[0]) and stage in (None, k[1])]:
                    del faults[key]
            shown = collections.defaultdict(dict)
            for (name, kind), fault in faults.items():
                shown[name][kind] = fault
            self.answer(200, shown)

    def agent(self, parts, query, body):
        with self.rig.lock:
            ramdisk = next((r for r in self.rig.running.values() if parts and r.host["name"] == parts[0]), None)
        if ramdisk is None:
            return self.answer(404, {"faultstring": "no ramdisk runs on this host"})
        if parts[1:3] != ["v1", "commands"]:
            return self.answer(404, {"faultstring": "only the command API is here"})
        if ramdisk.token is not None and query.get("agent_token", ramdisk.token) != ramdisk.token:
            return self.answer(401, {"faultstring": "the agent token is another one"})
        if self.command == "POST":
            return self.answer(200, ramdisk.command(body["name"], body.get("params") or {}))
        known = {c.id: c.public() for c in ramdisk.commands}
        if len(parts) > 3:
            return self.answer(200 if parts[3] in known else 404, known.get(parts[3]))
        self.answer(200, {"commands": list(known.values())})

    def boot(self, _parts, _query, _body):
        """Stands for kernel, ramdisk and ISO, which Ironic checks and copies."""
        self.answer(200, b"emulated boot image\n" * 50)

    def answer(self, status, body):
        raw = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/octet-stream" if isinstance(body, bytes) else "application/json")
        # Ironic keeps an image in its cache only where it can see that it has not changed
        self.send_header("Last-Modified", "Mon, 05 Jan 2026 06:00:00 GMT")
        self.send_header("Content-Length", str(len(raw)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(raw)

    def log_message(self, *_):
        pass


def main():
    parser = argparse.ArgumentParser(description="emulated ramdisks for the Ironic rig")
    parser.add_argument("--ironic", required=True, help="URL of the Ironic API")
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--systems", required=True, help="systems.json")
    parser.add_argument("--database", required=True, help="Ironic's SQLite file")
    parser.add_argument("--user", help="for HTTP basic; the password is in MUSTER_RIG_PASSWORD")
    parser.add_argument("--boot-s", type=float, default=0.5, help="from power on to the first call")
    parser.add_argument("--step-s", type=float, default=1, help="length of a clean step")
    parser.add_argument("--heartbeat-s", type=float, default=1)
    args = parser.parse_args()
    rig = Handler.rig = Rig(args)
    server = http.server.ThreadingHTTPServer(("127.0.0.1", args.port), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    rig.watch()


if __name__ == "__main__":
    main()

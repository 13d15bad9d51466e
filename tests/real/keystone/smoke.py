#!/usr/bin/env python3
"""Proves the Keystone rig: who gets a token, and what Ironic lets it do.

    smoke.py DIR/env.json
"""
import json
import pathlib
import sys
import urllib.error
import urllib.request

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
from parts import prove  # noqa: E402
from rest import Rest  # noqa: E402

PROJECT = {"project": {"name": "enrol", "domain": {"name": "Default"}}}


def token(env, identity, scope=None):
    body = {"auth": {"identity": identity, **({"scope": scope} if scope else {})}}
    request = urllib.request.Request(env["auth_url"] + "/auth/tokens", json.dumps(body).encode(),
                                     {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=60) as answer:
        return answer.headers["X-Subject-Token"], json.loads(answer.read())["token"]


def by_password(env, user, scope=PROJECT, password=None):
    who = {"name": user, "password": password or env["password"], "domain": {"name": "Default"}}
    return token(env, {"methods": ["password"], "password": {"user": who}}, scope)


def ironic(env, secret):
    return Rest(env["ironic_url"], headers={"X-Auth-Token": secret, "X-OpenStack-Ironic-API-Version": "1.81"})


def the_catalogue_names_ironic_by_region_and_interface(env):
    _, told = by_password(env, env["user"])
    found = [s for s in told["catalog"] if s["type"] == "baremetal"]
    places = {(e["region"], e["interface"]): e["url"] for e in found[0]["endpoints"]}
    assert places[("north", "public")] == places[("north", "internal")] == env["ironic_url"], places
    assert places[("south", "public")] != env["ironic_url"], places


def an_administrator_makes_a_node_and_a_reader_does_not(env):
    for scope in (PROJECT, {"system": {"all": True}}):
        secret, _ = by_password(env, env["user"], scope)
        node = ironic(env, secret).must("POST", "/v1/nodes", {"driver": "fake-hardware"})
        ironic(env, secret).must("DELETE", f"/v1/nodes/{node['uuid']}")
    secret, _ = by_password(env, "reader")
    assert ironic(env, secret).ask("GET", "/v1/nodes")[0] == 200
    assert ironic(env, secret).ask("POST", "/v1/nodes", {"driver": "fake-hardware"})[0] == 403


def a_credential_is_enough_and_a_wrong_one_is_refused(env):
    credential = {"id": env["credential_id"], "secret": env["credential_secret"]}
    secret, _ = token(env, {"methods": ["application_credential"], "application_credential": credential})
    assert ironic(env, secret).ask("GET", "/v1/nodes")[0] == 200
    for wrong in (lambda: by_password(env, env["user"], password="wrong"), lambda: by_password(env, "nobody")):
        try:
            wrong()
        except urllib.error.HTTPError as error:
            assert error.code == 401, error.code
        else:
            raise AssertionError("it was let in")


def without_a_token_ironic_answers_nothing(env):
    assert Rest(env["ironic_url"]).ask("GET", "/v1/nodes")[0] == 401


def main():
    env = json.loads(pathlib.Path(sys.argv[1]).read_text())
    sys.exit(prove([the_catalogue_names_ironic_by_region_and_interface,
                    an_administrator_makes_a_node_and_a_reader_does_not,
                    a_credential_is_enough_and_a_wrong_one_is_refused,
                    without_a_token_ironic_answers_nothing], env))


if __name__ == "__main__":
    main()

"""Fills a bootstrapped Keystone with what the tests log in as, and writes env.json.new and clouds.yaml.

    seed.py RIG AUTH_URL IRONIC_URL ADMIN_PASSWORD

Accounts of the domain Default: `muster` is admin of the project enrol and of the system, `member` and `reader` have that role in
enrol, `nobody` has none. The catalogue has the Ironic in the region north, by its interfaces public and internal, and in the
region south a port where nobody listens.
"""
import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
from rest import Rest  # noqa: E402

DOMAIN = {"domain": {"name": "Default"}}
PASSWORD = "rig-keystone-secret"
SERVICE_PASSWORD = "rig-service-secret"


def login(keystone, user, password, scope):
    """A token, with the client that uses it."""
    body = {"auth": {"identity": {"methods": ["password"], "password": {"user": {"name": user, "password": password, **DOMAIN}}},
                     "scope": scope}}
    # the token is in a header, which Rest does not give
    import urllib.request
    request = urllib.request.Request(keystone.url + "/auth/tokens", json.dumps(body).encode(),
                                     {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=60) as answer:
        return Rest(keystone.url, headers={"X-Auth-Token": answer.headers["X-Subject-Token"]})


def main(rig, auth_url, ironic_url, admin_password):
    rig = pathlib.Path(rig)
    keystone = Rest(auth_url)
    admin = login(keystone, "admin", admin_password, {"system": {"all": True}})
    roles = {role["name"]: role["id"] for role in admin.must("GET", "/roles")["roles"]}

    def made(path, kind, **fields):
        return admin.must("POST", path, {kind: fields})[kind]["id"]

    projects = {name: made("/projects", "project", name=name, domain_id="default") for name in ("enrol", "service")}
    users = {name: made("/users", "user", name=name, password=password, domain_id="default") for name, password in
             {"muster": PASSWORD, "member": PASSWORD, "reader": PASSWORD, "nobody": PASSWORD,
              "ironic": SERVICE_PASSWORD}.items()}
    for user, project, role in (("muster", "enrol", "admin"), ("member", "enrol", "member"), ("reader", "enrol", "reader"),
                                ("ironic", "service", "service")):
        admin.must("PUT", f"/projects/{projects[project]}/users/{users[user]}/roles/{roles[role]}")
    admin.must("PUT", f"/system/users/{users['muster']}/roles/{roles['admin']}")

    # the region north came with the bootstrap
    made("/regions", "region", id="south")
    service = made("/services", "service", name="ironic", type="baremetal")
    nobody = "http://127.0.0.1:9"
    for region, interface, url in (("north", "public", ironic_url), ("north", "internal", ironic_url),
                                   ("south", "public", nobody)):
        made("/endpoints", "endpoint", service_id=service, interface=interface, url=url, region_id=region)

    own = login(keystone, "muster", PASSWORD, {"project": {"name": "enrol", **DOMAIN}})
    credential = own.must("POST", f"/users/{users['muster']}/application_credentials",
                          {"application_credential": {"name": "muster", "roles": [{"name": "admin"}]}})
    credential = credential["application_credential"]
    account = {"user": "muster", "password": PASSWORD, "project": "enrol",
               "credential_id": credential["id"], "credential_name": credential["name"],
               "credential_secret": credential["secret"]}
    (rig / "env.json.new").write_text(json.dumps({"auth_url": auth_url, "ironic_url": ironic_url, "region": "north",
                                                  "clouds": str(rig / "clouds.yaml"), **account}, indent=1))
    (rig / "env.json.new").chmod(0o600)

    # as OpenStack's own clients read it: the passwords stand beside it
    clouds = rig / "clouds.yaml"
    clouds.touch(mode=0o600)
    clouds.write_text(f"""\
# made by the rig
clouds:
  project: &project
    auth: &auth
      auth_url: {auth_url}
      username: muster
      user_domain_name: Default
      project_name: enrol
      project_domain_name: Default
    region_name: north
    interface: internal
  system:
    auth:
      auth_url: {auth_url}
      username: muster
      password: {PASSWORD}
      user_domain_name: Default
      system_scope: all
    region_name: north
  credential:
    auth_type: v3applicationcredential
    auth:
      auth_url: {auth_url}
      application_credential_id: {credential["id"]}
      application_credential_secret: "{credential["secret"]}"
    region_name: north
  by-ids:
    auth:
      auth_url: {auth_url}
      user_id: {users["muster"]}
      password: {PASSWORD}
      project_id: {projects["enrol"]}
    region_name: north
  south:
    <<: *project
    region_name: south
    interface: public
    auth:
      <<: *auth
      password: {PASSWORD}
""")
    secure = rig / "secure.yaml"
    secure.touch(mode=0o600)
    secure.write_text(f"clouds:\n  project:\n    auth:\n      password: {PASSWORD}\n")


if __name__ == "__main__":
    main(*sys.argv[1:])

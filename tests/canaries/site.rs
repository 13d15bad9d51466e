//! A lab whose every secret is a canary, and configurations of muster on it: one for each kind of vault, with different ways
//! of logging in elsewhere.

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use muster::lab::faults::Fault;
use muster::lab::machine::{Quirk, Vendor};
use muster::lab::records::Token;
use muster::lab::scenario::{HostScenario, IronicAuth, Scenario};
use muster::lab::{IRONIC_USER, Lab, ironic_password};
use serde_json::{Value, json};
use toml::Table;

use super::connect_server::{Connect, VAULT};
use super::peers::{Front, program, quoting_nats, quoting_postgres};
use super::search::Search;

/// Lab seconds in a real one.
const SPEED: f64 = 120.0;

/// Hosts that end well, each with its own vendor and vault. Those of the factory's credential have it changed.
pub const GOOD: [(&str, Vendor, Option<Quirk>); 8] = [
    ("file-key", Vendor::Supermicro, Some(Quirk::IpmiBmcKey)),
    ("file-dell", Vendor::Dell, Some(Quirk::FactoryPassword)),
    ("file-lenovo", Vendor::Lenovo, Some(Quirk::ForcedPasswordChange)),
    ("file-ami", Vendor::Ami, Some(Quirk::FactoryPassword)),
    ("connect", Vendor::Dell, Some(Quirk::FactoryPassword)),
    ("op", Vendor::Lenovo, Some(Quirk::FactoryPassword)),
    ("age", Vendor::Supermicro, None),
    ("keyring", Vendor::Dell, Some(Quirk::FactoryPassword)),
];
/// Hosts that fail, with the phase that they fail in.
pub const BAD: [(&str, &str); 9] = [
    ("bad-netbox", "platform_class"),
    ("bad-dhcp", "dhcp"),
    ("bad-login", "bmc"),
    ("bad-user", "bmc"),
    ("bad-node", "inspection"),
    ("bad-cables", "inspection"),
    ("bad-inspection", "inspection"),
    ("bad-clean", "cleaning"),
    ("bad-power", "inspection"),
];

/// A canary: printable, different in every form of writing, short enough for IPMI, and what every vendor takes.
pub fn canary() -> String {
    format!("C4\"+/&%{:08x}xK", rand::random::<u32>())
}

/// One configuration of muster with its state.
pub struct Place {
    pub config: PathBuf,
    pub state: PathBuf,
    pub environment: Vec<(String, String)>,
}

pub struct Site {
    pub lab: Lab,
    pub folder: tempfile::TempDir,
    pub search: Search,
    pub places: BTreeMap<&'static str, Place>,
    pub connect: Connect,
    /// Of the Keystone: whether it quotes what it refuses.
    pub quotes: Arc<Mutex<bool>>,
    pub tokens_handed_out: Arc<Mutex<u32>>,
}

fn scenario() -> Scenario {
    let mut scenario = Scenario::parse(include_str!("../../scenarios/rack.toml")).unwrap();
    scenario.ironic.auth = IronicAuth::HttpBasic;
    scenario.timing.bmc_away_s = 480.0;
    let model = scenario.types["sys-222ge-nb"].clone();
    for vendor in [Vendor::Dell, Vendor::Lenovo, Vendor::Ami] {
        let mut other = model.clone();
        (other.bmc, other.model) = (vendor, format!("SYS-{vendor:?}"));
        scenario.types.insert(format!("sys-{vendor:?}").to_lowercase(), other);
    }
    let pattern = scenario.hosts.iter().find(|host| host.name == "gpu-b07-37").unwrap().clone();
    let site = scenario.sites.get_mut("osl1").unwrap();
    site.options.insert("prove_ipmi".into(), true.into());
    site.options.insert("switch_to_ipmi_after_inspection".into(), true.into());
    let good = GOOD.iter().map(|(name, vendor, quirk)| (*name, *vendor, *quirk));
    let bad = BAD.iter().map(|(name, _)| (*name, Vendor::Supermicro, None));
    scenario.hosts = good
        .chain(bad)
        .enumerate()
        .map(|(n, (name, vendor, quirk))| HostScenario {
            name: name.to_owned(),
            unit: Some(2 + 2 * n as u8),
            port: Some(1 + n as u32),
            device_type: match vendor {
                Vendor::Supermicro => "sys-222ge-nb".to_owned(),
                other => format!("sys-{other:?}").to_lowercase(),
            },
            bmc_quirks: quirk.into_iter().collect(),
            ..pattern.clone()
        })
        .collect();
    scenario
}

impl Site {
    pub async fn start() -> Site {
        let lab = Lab::start(scenario(), SPEED).await.unwrap();
        let folder = tempfile::tempdir().unwrap();
        let config = lab.write_config(&folder.path().join("lab")).unwrap();
        let mut base: Table = std::fs::read_to_string(&config).unwrap().parse().unwrap();
        // A machine that builds beside may take its time.
        base["sites"]["osl1"]["bmc"]["reset_budget_s"] = 60.0.into();
        let items: Table = std::fs::read_to_string(folder.path().join("lab/vault.toml")).unwrap().parse().unwrap();
        let connect_token = canary();
        let connect = Connect::start(&connect_token).await;
        let front = Front {
            token: canary(),
            password: canary(),
            application: canary(),
            ironic: lab.ironic_url(),
            basic: format!("Basic {}", STANDARD.encode(format!("{IRONIC_USER}:{}", ironic_password()))),
            client: reqwest::Client::builder().no_proxy().build().unwrap(),
            quotes: Arc::default(),
            handed_out: Arc::default(),
        };
        let (quotes, tokens_handed_out) = (Arc::clone(&front.quotes), Arc::clone(&front.handed_out));
        let mut site = Site {
            lab,
            folder,
            search: Search::default(),
            places: BTreeMap::new(),
            connect,
            quotes,
            tokens_handed_out,
        };
        let items = site.planted(items);
        site.search.plant("Ironic's password", &ironic_password());
        let keystone = [&front.token, &front.password, &front.application].map(Clone::clone);
        for (what, secret) in
            ["Keystone's token", "Keystone's password", "the application credential"].iter().zip(&keystone)
        {
            site.search.plant(*what, secret);
        }
        site.search.plant("the token of Connect", &connect_token);
        let front = front.serve().await;
        site.with_file(&base, &items);
        site.with_connect(&base, &items, &connect_token, &keystone[1], &front);
        site.with_op(&base, &items, &keystone[2], &front);
        site.with_age(&base, &items);
        site.with_keyring(&base, &items);
        site.spoil(&items);
        site
    }

    /// The lab's items with a canary for each password that is not the factory's, on the BMCs too.
    fn planted(&mut self, mut items: Table) -> Table {
        for (item, fields) in items.iter_mut().filter(|(item, _)| !item.starts_with("bmc-factory-")) {
            let fields = fields.as_table_mut().unwrap();
            if fields.contains_key("password") {
                let secret = canary();
                self.search.plant(format!("{item} password"), &secret);
                if let Some(host) = item.strip_prefix("bmc-") {
                    let (_, vendor, quirk) = GOOD
                        .into_iter()
                        .chain(BAD.map(|(name, _)| (name, Vendor::Supermicro, None)))
                        .find(|(name, ..)| *name == host)
                        .unwrap();
                    let is_factory = matches!(quirk, Some(Quirk::FactoryPassword | Quirk::ForcedPasswordChange));
                    // The vault of this one is wrong.
                    if !is_factory && host != "bad-login" {
                        let user = muster::lab::build::bmc_user(vendor).to_owned();
                        self.lab
                            .world()
                            .with_machine(host, |machine, _| machine.bmc.accounts.insert(user, secret.clone()));
                    }
                }
                fields.insert("password".into(), secret.into());
            }
            if let Some(key) = fields.get("ipmi_key").and_then(toml::Value::as_str) {
                self.search.plant(format!("{item} K_g"), key);
            }
            if let Some(key) = fields.get("private_key").and_then(toml::Value::as_str) {
                let lines = key.lines().filter(|line| line.len() > 30 && !line.contains("---"));
                // The first line of an OpenSSH key is the same in all of them.
                for (n, line) in lines.skip(1).enumerate() {
                    self.search.plant(format!("{item} private key, line {n}"), line);
                }
            }
        }
        items
    }

    fn secret(&mut self, what: &str) -> String {
        let secret = canary();
        self.search.plant(what, &secret);
        secret
    }

    /// A token that NetBox takes; what is secret of it.
    fn netbox_token(&mut self, whose: &str) -> String {
        let secret = self.secret(&format!("NetBox's token of {whose}"));
        let token = format!("nbt_abc{}.{secret}", self.places.len());
        self.lab.world().lock().records.tokens.push(Token { secret: token.clone(), write: true, view: true });
        token
    }

    fn private(&self, name: &str, text: &str) -> PathBuf {
        let folder = self.folder.path().join("etc");
        std::fs::create_dir_all(&folder).unwrap();
        let path = folder.join(name);
        std::fs::write(&path, text).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
        path
    }

    fn keep(&mut self, name: &'static str, config: &Table, environment: &[(&str, &str)]) {
        let config = self.private(&format!("{name}.toml"), &config.to_string());
        let state = self.folder.path().join("out").join(name);
        let environment = environment.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        self.places.insert(name, Place { config, state, environment });
    }

    /// The vault is a file; webhook, NATS if it is there, and figures beside it.
    fn with_file(&mut self, base: &Table, items: &Table) {
        let mut items = items.clone();
        // Its password is made when it is set up.
        items.remove("bmc-file-dell");
        let token = self.netbox_token("file");
        let (webhook, nats, postgres) =
            (self.secret("the webhook's secret"), self.secret("NATS's password"), self.secret("PostgreSQL's password"));
        let reference = |site: &Site, name: &str, text: &str| format!("file:{}", site.private(name, text).display());
        let mut config = base.clone();
        set(&mut config, "netbox.token", reference(self, "file.token", &token));
        set(&mut config, "vault.path", self.private("vault.toml", &items.to_string()).display().to_string());
        let at = quoting_postgres();
        let push = toml::toml! {
            webhook = { listen = "127.0.0.1:0", path = "/netbox", secret = "" }
            postgres = { dsn = "", password = "", channel = "muster_netbox" }
        };
        config["netbox"].as_table_mut().unwrap().insert("push".into(), push.into());
        set(&mut config, "netbox.push.webhook.secret", reference(self, "webhook", &webhook));
        let free = || std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
        set(&mut config, "netbox.push.webhook.listen", free());
        set(&mut config, "netbox.push.postgres.dsn", format!("postgres://muster@{at}/netbox?sslmode=disable"));
        set(&mut config, "netbox.push.postgres.password", reference(self, "postgres", &postgres));
        let auth =
            format!("{{ kind = \"user\", username = \"muster\", password = \"{}\" }}", reference(self, "nats", &nats));
        config.insert("nats".into(), nats_table(&quoting_nats(), &auth).into());
        config.insert("metrics".into(), toml::Table::from_iter([("listen".to_owned(), free().into())]).into());
        self.keep("file", &config, &[]);
    }

    /// 1Password Connect, and Keystone with a password.
    fn with_connect(&mut self, base: &Table, items: &Table, token: &str, keystone: &str, front: &str) {
        for (title, fields) in items {
            let fields = fields.as_table().unwrap().iter();
            let fields: Vec<(&str, &str)> =
                fields.map(|(name, value)| (name.as_str(), value.as_str().unwrap())).collect();
            if title != "bmc-connect" {
                self.connect.add(title, &fields);
            }
        }
        let netbox = self.netbox_token("connect");
        self.connect.add("netbox", &[("token", &netbox)]);
        self.connect.add("keystone", &[("password", keystone)]);
        let mut config = base.clone();
        set(&mut config, "netbox.token", "vault:netbox/token".to_owned());
        set(&mut config, "ironic.lab.url", front.to_owned());
        let auth: Table = format!(
            "auth_url = \"{front}\"\nkind = \"keystone\"\nusername = \"muster\"\npassword = \"vault:keystone/password\"\nproject = \"p\""
        )
        .parse()
        .unwrap();
        config["ironic"]["lab"].as_table_mut().unwrap().insert("auth".into(), auth.into());
        let vault: Table = format!(
            "kind = \"connect\"\nurl = \"{}\"\ntoken = \"env:CONNECT_TOKEN\"\nvault = \"{VAULT}\"",
            self.connect.server.uri()
        )
        .parse()
        .unwrap();
        config.insert("vault".into(), vault.into());
        self.keep("connect", &config, &[("CONNECT_TOKEN", token)]);
    }

    /// 1Password's program, and Keystone with an application credential.
    fn with_op(&mut self, base: &Table, items: &Table, application: &str, front: &str) {
        let mut items = items.clone();
        items.remove("bmc-op");
        let program = program(&self.folder.path().join("op"), "op", &items);
        let (token, service) = (self.netbox_token("op"), self.secret("the service account's token"));
        let mut config = base.clone();
        set(&mut config, "netbox.token", "env:NETBOX_TOKEN".to_owned());
        set(&mut config, "ironic.lab.url", front.to_owned());
        let auth: Table = format!(
            "auth_url = \"{front}\"\nkind = \"keystone\"\napplication_credential_id = \"i\"\napplication_credential_secret = \"env:APPLICATION\""
        )
        .parse()
        .unwrap();
        config["ironic"]["lab"].as_table_mut().unwrap().insert("auth".into(), auth.into());
        let vault: Table =
            format!("kind = \"op\"\nprogram = \"{}\"\nvault = \"x\"", program.display()).parse().unwrap();
        config.insert("vault".into(), vault.into());
        let environment =
            [("NETBOX_TOKEN", token.as_str()), ("APPLICATION", application), ("OP_SERVICE_ACCOUNT_TOKEN", &service)];
        self.keep("op", &config, &environment);
    }

    /// A file that is encrypted, its identity in the environment, and a NATS that quotes a token.
    fn with_age(&mut self, base: &Table, items: &Table) {
        use secrecy::ExposeSecret;
        let identity = age::x25519::Identity::generate();
        let text = identity.to_string().expose_secret().to_owned();
        self.search.plant("age's identity", &text);
        let sealed = age::encrypt(&identity.to_public(), items.to_string().as_bytes()).unwrap();
        let vault = self.private("vault.toml.age", "");
        std::fs::write(&vault, sealed).unwrap();
        let (token, nats) = (self.netbox_token("age"), self.secret("NATS's token"));
        let mut config = base.clone();
        set(&mut config, "netbox.token", "env:NETBOX_TOKEN".to_owned());
        set(&mut config, "ironic.lab.auth.password", "env:IRONIC_PASSWORD".to_owned());
        let table: Table =
            format!("kind = \"age\"\npath = \"{}\"\nidentity = \"env:IDENTITY\"", vault.display()).parse().unwrap();
        config.insert("vault".into(), table.into());
        let auth = "{ kind = \"token\", token = \"env:NATS_TOKEN\" }";
        config.insert("nats".into(), nats_table(&quoting_nats(), auth).into());
        let environment = [
            ("NETBOX_TOKEN", token.as_str()),
            ("IRONIC_PASSWORD", &ironic_password()),
            ("IDENTITY", &text),
            ("NATS_TOKEN", &nats),
        ];
        self.keep("age", &config, &environment);
    }

    /// A keyring's program, and a NATS that quotes credentials.
    fn with_keyring(&mut self, base: &Table, items: &Table) {
        let program = program(&self.folder.path().join("keyring"), "secret-tool", items);
        let token = self.netbox_token("keyring");
        let (user, account) = (nkeys::KeyPair::new_user(), nkeys::KeyPair::new_account());
        let (seed, jwt) = (user.seed().unwrap(), format!("eyJ0eXAi.{}.{}", hex(40), account.public_key()));
        self.search.plant("NATS's seed", &seed);
        self.search.plant("NATS's JWT", &jwt);
        let creds = format!(
            "-----BEGIN NATS USER JWT-----\n{jwt}\n------END NATS USER JWT------\n\n-----BEGIN USER NKEY SEED-----\n{seed}\n------END USER NKEY SEED------\n"
        );
        let mut config = base.clone();
        set(&mut config, "netbox.token", format!("file:{}", self.private("keyring.token", &token).display()));
        let vault: Table = format!("kind = \"keyring\"\nprogram = \"{}\"", program.display()).parse().unwrap();
        config.insert("vault".into(), vault.into());
        let auth = format!("{{ kind = \"creds\", creds = \"file:{}\" }}", self.private("creds", &creds).display());
        config.insert("nats".into(), nats_table(&quoting_nats(), &auth).into());
        self.keep("keyring", &config, &[]);
    }

    /// What goes wrong with the hosts that fail. Refusals quote what they refuse, as real ones do.
    fn spoil(&self, items: &Table) {
        let password = |item: &str| items[item]["password"].as_str().unwrap().to_owned();
        let fault = |fault: Value| self.lab.world().add_fault(serde_json::from_value::<Fault>(fault).unwrap());
        let token = self
            .lab
            .world()
            .lock()
            .records
            .tokens
            .iter()
            .find(|t| t.secret.starts_with("nbt_abc0"))
            .unwrap()
            .secret
            .clone();
        fault(json!({"kind": "http", "system": "netbox", "device": "bad-netbox", "method": "PATCH", "status": 403,
                     "body": {"detail": format!("Invalid token: 'Bearer {token}' may not change this")}}));
        fault(
            json!({"kind": "http", "system": "dhcp", "path": "*bad-dhcp*", "status": 1, "body": "Permission denied"}),
        );
        let admin = password("bmc-bad-login");
        let basic = STANDARD.encode(format!("ADMIN:{admin}"));
        fault(
            json!({"kind": "http", "system": "bmc", "device": "bad-login", "path": "/redfish/v1/Systems*", "status": 401,
                     "body": redfish(&format!("The credential '{admin}' of 'Basic {basic}' is not valid."))}),
        );
        let monitor = password("ipmi_exporter");
        fault(
            json!({"kind": "http", "system": "bmc", "device": "bad-user", "path": "/redfish/v1/AccountService/Accounts*",
                     "method": "POST", "status": 400,
                     "body": redfish(&format!("The value '{monitor}' for the property Password is of a different format."))}),
        );
        let node = password("bmc-bad-node");
        let patch = json!([{"path": "/driver_info/redfish_password", "value": node, "op": "add"}]);
        let inner =
            json!({"faultstring": format!("Couldn't apply patch '{patch}'. Reason: {node}"), "faultcode": "Client"});
        fault(json!({"kind": "http", "system": "ironic", "device": "bad-node", "path": "/v1/nodes", "method": "POST",
                     "status": 400, "body": {"error_message": inner.to_string()}}));
        fault(json!({"kind": "swapped_cables", "device": "bad-cables", "interfaces": ["eth0", "eth1"]}));
        fault(json!({"kind": "inspection_fails", "device": "bad-inspection", "times": 99}));
        fault(json!({"kind": "clean_fails", "device": "bad-clean", "times": 99}));
        let basic = STANDARD.encode(format!("{IRONIC_USER}:{}", ironic_password()));
        let page = format!("<html><body>proxy: Authorization: Basic {basic} ({})</body></html>", ironic_password());
        fault(
            json!({"kind": "http", "system": "ironic", "device": "bad-power", "path": "/v1/nodes/*/states/provision",
                     "method": "PUT", "status": 502, "body": page}),
        );
    }

    /// Every password that any BMC has by now: some were made while muster ran.
    pub fn plant_what_was_made(&mut self) -> usize {
        let mut made = 0;
        for (name, ..) in GOOD {
            let machine = self.lab.world().machine(name).unwrap();
            for (user, password) in machine.bmc.accounts.iter().filter(|(_, password)| password.len() >= 12) {
                let before = self.search.planted();
                self.search.plant(format!("{user}'s password on the BMC of {name}"), password);
                made += self.search.planted() - before;
            }
        }
        made
    }
}

fn redfish(message: &str) -> Value {
    json!({"error": {"code": "Base.1.10.GeneralError", "message": "A general error has occurred.",
        "@Message.ExtendedInfo": [{"MessageId": "Base.1.10.PropertyValueFormatError", "Message": message,
                                   "MessageArgs": [message], "Severity": "Warning", "Resolution": message}]}})
}

fn nats_table(address: &str, auth: &str) -> Table {
    format!("servers = [\"nats://{address}\"]\nauth = {auth}\npublish_devices = true").parse().unwrap()
}

/// Sets a text at a dotted place.
fn set(table: &mut Table, place: &str, text: String) {
    let mut parts: Vec<&str> = place.split('.').collect();
    let last = parts.pop().unwrap();
    let inner = parts.into_iter().fold(table, |table, part| table[part].as_table_mut().unwrap());
    inner.insert(last.to_owned(), text.into());
}

fn hex(n: usize) -> String {
    (0..n).map(|_| format!("{:x}", rand::random::<u8>() & 15)).collect()
}

/// All files below a folder.
pub fn files(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files(&path, found);
        } else {
            found.push(path);
        }
    }
}

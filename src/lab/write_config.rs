//! Writes a configuration with which muster works on the lab, and the secrets that it names.

use std::fs::{DirBuilder, OpenOptions};
use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use toml::{Table, Value};

use super::LabError;
use super::build::{BMC_USER, bmc_key, bmc_password, bmc_user, secret};
use super::dhcp_host;
use super::machine::{Quirk, Vendor};
use super::scenario::{HostScenario, IronicAuth, SiteScenario};
use super::start::{IRONIC_USER, Lab, ironic_password};

/// Whether a host's BMC has a key of its own for IPMI.
fn has_key(host: &HostScenario) -> bool {
    host.bmc_quirks.contains(&Quirk::IpmiBmcKey) || host.bmc_quirks.contains(&Quirk::IpmiBmcKeyUntold)
}

impl Lab {
    /// Writes `config.toml`, the vault and the token files into a folder, readable for their owner only. Returns the path
    /// of the configuration. Waits and deadlines are in real seconds and fit the speed that the lab has now.
    pub fn write_config(&self, folder: &Path) -> Result<PathBuf, LabError> {
        let failed = |path: &Path| {
            let path = path.to_owned();
            move |source| LabError::Write { path, source }
        };
        DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(failed(folder))?;
        let folder = folder.canonicalize().map_err(failed(folder))?;
        let file = |name: &str, text: &str| -> Result<PathBuf, LabError> {
            let path = folder.join(name);
            write_private(&path, text).map_err(failed(&path))?;
            Ok(path)
        };
        let token = file("netbox.token", &format!("{}\n", self.netbox_token()))?;
        let password = file("ironic.password", &format!("{}\n", ironic_password()))?;
        let vault = file("vault.toml", &self.vault().to_string())?;
        let head = "# Made by the lab. The services that it names end with the lab.\n\n";
        let config = self.config(&token, &password, &vault);
        file("config.toml", &format!("{head}{config}"))
    }

    fn vault(&self) -> Table {
        let mut vault = Table::new();
        for host in &self.scenario.hosts {
            let user = self.scenario.types.get(&host.device_type).map_or(BMC_USER, |model| bmc_user(model.bmc));
            let mut item = table([("username", user.into()), ("password", bmc_password(&host.name).into())]);
            if has_key(host) {
                item.insert("ipmi_key".into(), bmc_key(&host.name).into());
            }
            vault.insert(format!("bmc-{}", host.name), item.into());
        }
        for vendor in [Vendor::Lenovo, Vendor::Dell, Vendor::Ami] {
            let (user, password) = vendor.factory_login();
            let word = serde_json::to_value(vendor).unwrap_or_default();
            let item = format!("bmc-factory-{}", word.as_str().unwrap_or_default());
            vault.insert(item, table([("username", user.into()), ("password", password.into())]).into());
        }
        let monitor = table([("username", "ipmi_exporter".into()), ("password", secret(&["ipmi"], 8).into())]);
        vault.insert("ipmi_exporter".into(), monitor.into());
        let ssh =
            table([("private_key", self.dhcp.private_key().into()), ("known_hosts", self.dhcp.known_hosts().into())]);
        vault.insert("ssh-config-dhcp".into(), ssh.into());
        vault
    }

    fn config(&self, token: &Path, password: &Path, vault: &Path) -> Table {
        let reference = |path: &Path| Value::from(format!("file:{}", path.display()));
        let ironic = &self.scenario.ironic;
        let auth = match ironic.auth {
            IronicAuth::None => table([("kind", "none".into())]),
            IronicAuth::HttpBasic => table([
                ("kind", "http_basic".into()),
                ("username", IRONIC_USER.into()),
                ("password", reference(password)),
            ]),
        };
        let classes: Vec<Value> = ironic.device_classes.iter().map(|c| c.as_str().into()).collect();
        let mut instance = table([
            ("url", self.ironic_url().into()),
            ("device_classes", classes.into()),
            ("auth", auth.into()),
            ("timeout_s", 30.0.into()),
            ("poll_s", self.real(30.0, 0.3, 5.0)),
        ]);
        if let Some(project) = &ironic.project {
            instance.insert("project".into(), project.as_str().into());
        }
        let mut sites = Table::new();
        for (slug, site) in &self.scenario.sites {
            sites.insert(slug.clone(), self.site(site).into());
        }
        table([
            (
                "netbox",
                table([
                    ("url", self.netbox_url().into()),
                    ("token", reference(token)),
                    ("timeout_s", 30.0.into()),
                    ("poll_s", self.real(60.0, 0.3, 5.0)),
                    ("resync_s", self.real(900.0, 5.0, 60.0)),
                ])
                .into(),
            ),
            (
                "vault",
                table([
                    ("kind", "file".into()),
                    ("path", vault.display().to_string().into()),
                    ("bmc_item", "bmc-{host}".into()),
                    ("dhcp_item", "ssh-config-dhcp".into()),
                    ("ipmi_item", "ipmi_exporter".into()),
                ])
                .into(),
            ),
            ("ironic", table([(ironic.name.as_str(), instance.into())]).into()),
            ("sites", sites.into()),
        ])
    }

    fn site(&self, site: &SiteScenario) -> Table {
        let addr = self.dhcp.addr();
        let mut bmc = table([
            ("scheme", "http".into()),
            ("port", i64::from(self.bmc_port).into()),
            ("ipmi_port", i64::from(self.ipmi_port).into()),
            ("trust", "anything".into()),
            ("connect_timeout_s", 5.0.into()),
            ("timeout_s", 15.0.into()),
            ("busy_budget_s", self.real(120.0, 3.0, 120.0)),
            ("reset_budget_s", self.real(600.0, 10.0, 600.0)),
        ]);
        if self.scenario.hosts.iter().any(has_key) {
            bmc.insert("ipmi_key".into(), "vault:bmc-{host}/ipmi_key".into());
        }
        let mut table_ = table([
            ("ironic", vec![Value::from(self.scenario.ironic.name.as_str())].into()),
            (
                "dhcp",
                table([
                    ("host", addr.ip().to_string().into()),
                    ("port", i64::from(addr.port()).into()),
                    ("user", dhcp_host::USER.into()),
                    ("server", "isc".into()),
                    ("directory", dhcp_host::DIRECTORY.into()),
                    ("test", dhcp_host::TEST.into()),
                    ("restart", dhcp_host::RESTART.into()),
                    ("validate", dhcp_host::VALIDATE.into()),
                ])
                .into(),
            ),
            ("bmc", bmc.into()),
            ("deadlines", self.deadlines().into()),
        ]);
        for (key, values) in [("gates", &site.gates), ("options", &site.options)] {
            if !values.is_empty() {
                table_.insert(key.into(), values.clone().into());
            }
        }
        table_
    }

    /// The house's deadlines at the speed of the lab, but never so short that a busy machine misses them.
    fn deadlines(&self) -> Table {
        table([
            ("node_lock_s", self.real(900.0, 8.0, 900.0)),
            ("stable_s", self.real(600.0, 10.0, 600.0)),
            ("inspection_s", self.real(2400.0, 30.0, 2400.0)),
            ("power_on_s", self.real(600.0, 10.0, 600.0)),
            ("link_guard_s", self.real(300.0, 1.5, 300.0)),
            ("link_poll_s", self.real(5.0, 0.03, 5.0)),
            ("cleaning_s", self.real(14_400.0, 60.0, 14_400.0)),
            ("poll_first_s", self.real(3.0, 0.02, 5.0)),
            ("poll_max_s", self.real(10.0, 0.05, 60.0)),
            ("proof_s", self.real(300.0, 10.0, 300.0)),
            ("outage_s", self.real(1800.0, 5.0, 1800.0)),
            ("staged_s", self.real(600.0, 5.0, 600.0)),
            ("applied_s", self.real(3600.0, 20.0, 3600.0)),
        ])
    }

    /// A span of lab seconds in real ones, to the millisecond.
    fn real(&self, lab_seconds: f64, least: f64, most: f64) -> Value {
        let span = (lab_seconds / self.world.clock().speed()).clamp(least, most);
        ((span * 1000.0).round() / 1000.0).into()
    }
}

fn table<const N: usize>(pairs: [(&str, Value); N]) -> Table {
    pairs.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()
}

/// Writes a file that only its owner can read, from its first byte on.
fn write_private(path: &Path, text: &str) -> std::io::Result<()> {
    // A file that is there keeps its mode: it goes first.
    match std::fs::remove_file(path) {
        Err(e) if e.kind() != std::io::ErrorKind::NotFound => return Err(e),
        _ => {}
    }
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    file.write_all(text.as_bytes())
}

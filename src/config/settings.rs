//! The settings as the program uses them: validated, with every default filled in.

use std::collections::BTreeMap;
use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use indexmap::IndexMap;
use url::Url;

pub use super::vault::{AgeVault, ConnectVault, KeyringVault, OpVault, VaultKind, VaultSettings};
/// The same type as the renderer's: a kind that one knows is a kind that the other knows.
pub use crate::domain::dhcp::Server as DhcpServerKind;
use crate::domain::dhcp::network::Network;
use crate::domain::eligibility::Rules;
use crate::domain::queue::Caps;
use crate::domain::request::{Budgets, Routing, SiteOptions};
pub use crate::domain::run_end::RunEnd;

/// All settings of one installation.
#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    pub netbox: NetboxSettings,
    /// `None`: NetBox is only polled (O9).
    pub push: Option<PushSettings>,
    /// `None`: nothing is told to NATS (O10).
    pub nats: Option<NatsSettings>,
    /// Who is told when a run ends, by a name of one's own, in the order of the file.
    pub webhooks: IndexMap<String, WebhookOut>,
    pub vault: VaultSettings,
    /// Ironic instances by name, in the order of the file.
    pub ironic: IndexMap<String, IronicInstance>,
    /// Sites by NetBox slug, in the order of the file.
    pub sites: IndexMap<String, SiteSettings>,
    /// Which devices may be enrolled (S1). Its sites are those of this file.
    pub eligibility: Rules,
    pub limits: Limits,
    pub console: ConsoleSettings,
    /// Where `muster serve` shows its figures; `None`: nowhere.
    pub metrics: Option<SocketAddr>,
    pub log: LogSettings,
}

/// Where a secret is. The configuration itself never holds one (K2).
#[derive(Clone, PartialEq, Eq)]
pub enum SecretRef {
    /// `env:NAME`
    Env(String),
    /// `file:PATH`, a file of mode 0600 whose whole content, less the last newline, is the secret.
    File(PathBuf),
    /// `vault:ITEM/FIELD`
    Vault { item: String, field: String },
}

impl fmt::Display for SecretRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SecretRef::Env(name) => write!(f, "env:{name}"),
            SecretRef::File(path) => write!(f, "file:{}", path.display()),
            SecretRef::Vault { item, field } => write!(f, "vault:{item}/{field}"),
        }
    }
}

impl fmt::Debug for SecretRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// `[netbox]`
#[derive(Debug, Clone, PartialEq)]
pub struct NetboxSettings {
    pub url: Url,
    /// A v1 token, or a v2 token (`nbt_…`); which one is read from the token itself.
    pub token: SecretRef,
    pub trust: Trust,
    /// Of one request.
    pub timeout: Duration,
    /// Between two delta reads of devices (O1).
    pub poll: Duration,
    /// Between two reads of all devices (O1).
    pub resync: Duration,
    /// The other cadences.
    pub cadences: Cadences,
    /// Custom fields, by their meaning here.
    pub fields: NetboxFields,
}

/// How often what is read of NetBox (O1, O2, O3).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cadences {
    /// Sites, locations, racks, device types, roles, config contexts.
    pub places: Duration,
    /// Which interfaces, IP and MAC addresses changed, and so which devices to read again.
    pub parts: Duration,
    /// Everything, as if nothing were known.
    pub refresh: Duration,
    /// Interfaces, addresses and the devices' own changes, for the projection of the wiring.
    pub wiring_poll: Duration,
    /// Cables, and what a cable far away changes for the interfaces at the ends of its path.
    pub wiring_cables: Duration,
    /// What is there at all, compared by id and time.
    pub wiring_resync: Duration,
    /// All of the wiring, as if nothing were known.
    pub wiring_refresh: Duration,
}

impl Default for Cadences {
    fn default() -> Self {
        Cadences {
            places: Duration::from_secs(30 * 60),
            parts: Duration::from_secs(60),
            refresh: Duration::from_secs(24 * 3600),
            wiring_poll: Duration::from_secs(15),
            wiring_cables: Duration::from_secs(120),
            wiring_resync: Duration::from_secs(5 * 60),
            wiring_refresh: Duration::from_secs(3600),
        }
    }
}

/// `[netbox.push]`: NetBox tells what to read again, and is polled less often while it does (O9).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PushSettings {
    /// Between two delta reads while a source is well; `[netbox] poll_s` where none is.
    pub poll: Duration,
    pub webhook: Option<WebhookSettings>,
    pub postgres: Option<PostgresSettings>,
}

/// `[netbox.push.webhook]`
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WebhookSettings {
    pub listen: SocketAddr,
    /// Where NetBox posts to; begins with a slash.
    pub path: String,
    /// What NetBox's webhook signs with.
    pub secret: SecretRef,
    /// Without an event for so long the receiver is not counted on.
    pub silence: Duration,
}

/// `[netbox.push.postgres]`
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PostgresSettings {
    pub host: String,
    pub port: u16,
    pub database: String,
    pub user: String,
    pub password: SecretRef,
    /// Whether the connection is TLS; there is no silent way back to clear text.
    pub tls: bool,
    pub trust: Trust,
    /// An identifier of lower case letters, digits and underscores: it stands in a statement.
    pub channel: String,
}

/// `[nats]`: what changed in the projection is told to others (O10).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NatsSettings {
    /// `nats://host:port` or `tls://host:port`; the first that answers is taken.
    pub servers: Vec<Url>,
    pub auth: NatsAuth,
    pub trust: Trust,
    /// First segment of every subject.
    pub prefix: String,
    pub publish_devices: bool,
    /// Asks for sites in `cable_sites`, too.
    pub publish_cables: bool,
    /// NetBox slugs of the sites whose cables are told; none: no cable is.
    pub cable_sites: Vec<String>,
    /// Messages that wait for a server; what comes beyond is dropped and counted.
    pub queue: usize,
}

/// How NATS is told who this is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NatsAuth {
    None,
    User {
        username: String,
        password: SecretRef,
    },
    Token(SecretRef),
    /// The content of a `.creds` file: a JWT and the seed that signs for it.
    Creds(SecretRef),
}

impl NatsSettings {
    /// Whether cables are told: both the flag and the filter ask for it.
    pub fn tells_cables(&self) -> bool {
        self.publish_cables && !self.cable_sites.is_empty()
    }

    pub fn tells_anything(&self) -> bool {
        self.publish_devices || self.tells_cables()
    }
}

/// `[webhooks.NAME]`: whoever leads tells this receiver when a run has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WebhookOut {
    pub url: Url,
    /// What deliveries are signed with.
    pub secret: SecretRef,
    pub trust: Trust,
    /// Of one delivery.
    pub timeout: Duration,
    /// The ends that are told.
    pub outcomes: Vec<RunEnd>,
    /// NetBox slugs of the sites whose runs are told; none: those of all sites.
    pub sites: Vec<String>,
    /// So long after the end of a run its delivery is tried again; each is tried once in any case.
    pub give_up: Duration,
}

impl WebhookOut {
    /// Whether this receiver wants to hear of a run's end.
    pub fn tells(&self, end: RunEnd, site: &str) -> bool {
        self.outcomes.contains(&end) && (self.sites.is_empty() || self.sites.iter().any(|wanted| wanted == site))
    }
}

/// `[log]`: the file in the state folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogSettings {
    /// A file that has grown to so many bytes is put aside and a new one begun.
    pub file_bytes: u64,
    /// So many files there are at most, the one that is written included.
    pub files: u32,
}

impl Default for LogSettings {
    fn default() -> Self {
        LogSettings { file_bytes: 10_000_000, files: 5 }
    }
}

/// Names of the NetBox custom fields that enrollment reads or writes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NetboxFields {
    /// On the device role.
    pub device_class: String,
    /// On the device type.
    pub gpu_type: String,
    /// On the device.
    pub platform_class: String,
    /// On the site.
    pub ntp_server: String,
    /// On the site.
    pub syslog_server: String,
}

/// Which certificates a system may show.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Trust {
    /// The roots of the platform.
    System,
    /// Only this CA (PEM).
    Ca(PathBuf),
    /// Exactly the certificate with this SHA-256 fingerprint (of the DER form).
    Pinned([u8; 32]),
    /// Any certificate: a visible opt-out.
    Anything,
}

/// `[ironic.NAME]`
#[derive(Debug, Clone, PartialEq)]
pub struct IronicInstance {
    /// `None`: Keystone's catalogue says where it is.
    pub url: Option<Url>,
    pub auth: IronicAuth,
    pub trust: Trust,
    pub timeout: Duration,
    /// The device classes that it manages (R1).
    pub device_classes: Vec<String>,
    /// The enrol project: owner and lessee of created nodes (E2). `None` leaves both unset.
    pub project: Option<String>,
    /// Between two reads of the node list for the fleet view.
    pub poll: Duration,
}

/// How Ironic is asked (K3).
#[derive(Debug, Clone, PartialEq)]
pub enum IronicAuth {
    None,
    HttpBasic { username: String, password: SecretRef },
    Keystone(Box<KeystoneAuth>),
}

/// Keystone v3 authentication.
#[derive(Debug, Clone, PartialEq)]
pub struct KeystoneAuth {
    pub account: KeystoneAccount,
    /// Of the catalogue; what the account itself says where these are left out.
    pub region: Option<String>,
    pub interface: Option<String>,
}

/// Where the account stands.
#[derive(Debug, Clone, PartialEq)]
pub enum KeystoneAccount {
    /// In the configuration and the vault; the URL with or without `/v3` at its end.
    Given { auth_url: Url, method: KeystoneMethod },
    /// In clouds.yaml, under a name; without a file in the first one that OpenStack's own clients would read.
    Cloud { name: String, file: Option<PathBuf> },
    /// In the variables `OS_…`.
    Environment,
}

#[derive(Debug, Clone, PartialEq)]
pub enum KeystoneMethod {
    Password { username: String, user_domain: String, password: SecretRef, scope: KeystoneScope },
    ApplicationCredential { id: String, secret: SecretRef },
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KeystoneScope {
    System,
    Project { name: String, domain: String },
}

/// `[sites.SLUG]`
#[derive(Debug, Clone, PartialEq)]
pub struct SiteSettings {
    /// Names of the Ironic instances that serve the site; all of them where the file names none.
    pub ironic: Vec<String>,
    pub options: SiteOptions,
    pub dhcp: Option<DhcpSettings>,
    pub bmc: BmcSettings,
}

/// `[sites.SLUG.dhcp]`
#[derive(Debug, Clone, PartialEq)]
pub struct DhcpSettings {
    pub host: String,
    pub port: u16,
    pub user: String,
    pub server: DhcpServerKind,
    /// Folder on the DHCP host that holds one entry file per device.
    pub directory: String,
    /// Shell commands on the DHCP host. `test` may be left out; `restart` and `validate` may not.
    pub test: Option<String>,
    pub restart: String,
    pub validate: String,
    /// The three commands are run by `sudo -n --`.
    pub sudo: bool,
    /// Also algorithms that OpenSSH 9 no longer offers by itself.
    pub legacy_algorithms: bool,
    /// Which addresses an entry may have; nothing of it has to be told (D9).
    pub network: Network,
    /// Independent deadlines (D5).
    pub connect: Duration,
    pub login: Duration,
    pub command: Duration,
    pub transfer: Duration,
}

/// `[sites.SLUG.bmc]`
#[derive(Debug, Clone, PartialEq)]
pub struct BmcSettings {
    /// `https` but for emulated BMCs.
    pub scheme: String,
    pub port: Option<u16>,
    pub trust: Trust,
    pub connect_timeout: Duration,
    /// Of one read; writes get twice that.
    pub timeout: Duration,
    /// How long a busy BMC (5xx) is waited for within one step (B18).
    pub busy_budget: Duration,
    /// How long a reset may take until Redfish is back (B4).
    pub reset_budget: Duration,
    pub syslog_port: u16,
    /// Where IPMI over LAN is asked, by UDP.
    pub ipmi_port: u16,
    /// The BMCs' own key for IPMI (K_g), where they have one; `{host}` in a vault's item stands for the device name.
    pub ipmi_key: Option<SecretRef>,
    /// Firmware attributes that the site wants, by vendor and name, over those that this program sets by itself. An empty
    /// value takes one of those away.
    pub bios: BTreeMap<String, BTreeMap<String, String>>,
}

/// `[limits]`
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// Runs under way at once (G13).
    pub runs: usize,
    /// Of these, of one site, of hosts in one rack, of hosts with a cable to one switch. `None`: as many as there are.
    pub runs_per_site: Option<usize>,
    pub runs_per_rack: Option<usize>,
    pub runs_per_switch: Option<usize>,
    /// Activities at work at once.
    pub activities: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Limits { runs: 64, runs_per_site: None, runs_per_rack: None, runs_per_switch: None, activities: 32 }
    }
}

impl Limits {
    /// The limits of runs, as admission goes by them.
    pub fn caps(&self) -> Caps {
        Caps {
            runs: Some(self.runs.max(1)),
            per_site: self.runs_per_site,
            per_rack: self.runs_per_rack,
            per_switch: self.runs_per_switch,
        }
    }
}

/// How the console tells that a run has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OnEnd {
    None,
    /// BEL: the terminal rings, flashes, or marks its window.
    #[default]
    Bell,
    /// A notification of the desktop, with a sentence, where the terminal knows OSC 9.
    Osc9,
    Both,
}

/// `[console]`
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConsoleSettings {
    pub theme: Option<String>,
    pub ascii: bool,
    pub mouse: bool,
    pub on_end: OnEnd,
    /// Keys by the names of actions, in place of those that the console comes with.
    pub keys: BTreeMap<String, Vec<String>>,
}

impl IronicInstance {
    /// Where it is, for messages.
    pub fn place(&self) -> String {
        self.url.as_ref().map_or("the endpoint of Keystone's catalogue".to_owned(), Url::to_string)
    }
}

impl Settings {
    /// The routing that a run of this site gets as its snapshot (R1, G3).
    pub fn routing(&self, site: &str) -> Routing {
        let serves =
            |name: &String| self.sites.get(site).is_none_or(|s| s.ironic.is_empty() || s.ironic.contains(name));
        let mut routing = Routing::default();
        for (name, instance) in self.ironic.iter().filter(|(name, _)| serves(name)) {
            for class in &instance.device_classes {
                routing.by_class.entry(class.clone()).or_insert_with(|| name.clone());
            }
        }
        routing
    }
}

/// The budgets of the house; every key of `[sites.SLUG.deadlines]` overrides one.
pub fn default_budgets() -> Budgets {
    Budgets {
        max_attempts: 3,
        node_lock: Duration::from_secs(15 * 60),
        stable: Duration::from_secs(10 * 60),
        inspection: Duration::from_secs(40 * 60),
        power_on: Duration::from_secs(10 * 60),
        link_guard: Duration::from_secs(5 * 60),
        link_poll: Duration::from_secs(5),
        cleaning: Duration::from_secs(4 * 60 * 60),
        poll_first: Duration::from_secs(5),
        poll_max: Duration::from_secs(60),
        proof: Duration::from_secs(5 * 60),
        outage: Duration::from_secs(30 * 60),
        staged: Duration::from_secs(10 * 60),
        applied: Duration::from_secs(60 * 60),
    }
}

/// A site's options where the file says nothing: all three groups on, every special case off.
pub fn default_options() -> SiteOptions {
    SiteOptions {
        configure_dhcp: true,
        configure_bmc: true,
        ironic_enrol: true,
        platform_class_activity_ready: false,
        switch_to_ipmi_after_inspection: false,
        restrict_boot: true,
        prove_ipmi: false,
        ironic_tag: "ironic".to_owned(),
        bmc_tag: "ipmi_exporter".to_owned(),
        budgets: default_budgets(),
    }
}

//! Reads the configuration file: TOML, then every table, then what the tables say of each other.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::Path;
use std::time::Duration;

use indexmap::IndexMap;
use toml::de::DeTable;

use super::error::{ConfigError, ConfigErrors};
use super::nearest::nearest;
use super::settings::{
    Cadences, ConsoleSettings, Limits, LogSettings, NetboxFields, NetboxSettings, OnEnd, PushSettings, Settings,
    SiteSettings,
};
use super::shape::Shape;
use super::table::{Doc, Section, shown};
use super::{eligibility, ironic, log, nats, push, site, vault, webhooks};
use crate::domain::eligibility::Rules;

/// A configuration is a page or two; a file beyond this is another one.
const FILE_MAX: usize = 1024 * 1024;
/// The longest time limit of a request.
pub(super) const REQUEST_MAX: Duration = Duration::from_secs(3600);
/// The most that a limit can be.
const LIMIT_MAX: u64 = 100_000;
/// The longest time between two looks.
pub(super) const DAY: Duration = Duration::from_secs(24 * 3600);

/// A configuration that can be used, and what should be looked at in it.
#[derive(Debug, Clone, PartialEq)]
pub struct Loaded {
    pub settings: Settings,
    pub warnings: Vec<ConfigError>,
    /// Keys that have their default since the file leaves them out.
    pub left_out: BTreeSet<String>,
    /// Keys that the file gives, with their lines.
    pub given: BTreeMap<String, usize>,
}

impl Loaded {
    /// Writes what should be looked at into the log.
    pub fn log_warnings(&self) {
        for warning in &self.warnings {
            tracing::warn!(file = %warning.file, line = warning.line, key = %warning.key, "{}", warning.message);
        }
    }
}

/// Reads the configuration at `path`. Warnings go to the log.
pub fn load(path: &Path) -> Result<Settings, ConfigErrors> {
    let loaded = read(path)?;
    loaded.log_warnings();
    Ok(loaded.settings)
}

/// Reads the configuration at `path`, warnings included.
pub fn read(path: &Path) -> Result<Loaded, ConfigErrors> {
    let file = path.display().to_string();
    let whole = |message: String| {
        ConfigErrors(vec![ConfigError { file: file.clone(), line: None, key: String::new(), message, excerpt: None }])
    };
    let bytes = std::fs::read(path).map_err(|e| match e.kind() {
        std::io::ErrorKind::NotFound => whole(
            "there is no configuration; copy config.example.toml there, name another file with --config, or try 'muster demo'"
                .to_owned(),
        ),
        _ => whole(format!("cannot be read: {e}")),
    })?;
    if bytes.len() > FILE_MAX {
        return Err(whole(format!("is larger than {FILE_MAX} bytes: it is no configuration")));
    }
    let text = String::from_utf8(bytes).map_err(|e| {
        let line = e.as_bytes()[..e.utf8_error().valid_up_to()].iter().filter(|b| **b == b'\n').count() + 1;
        whole(format!("line {line} is not UTF-8 text"))
    })?;
    let folder = path.parent().unwrap_or(Path::new(""));
    parse_all(&text, &file, folder)
}

/// Reads a configuration from its text. Relative paths in it stay relative.
pub fn parse(text: &str, file_name: &str) -> Result<Settings, ConfigErrors> {
    parse_all(text, file_name, Path::new("")).map(|loaded| loaded.settings)
}

fn parse_all(text: &str, file: &str, folder: &Path) -> Result<Loaded, ConfigErrors> {
    let doc = Doc::new(file, folder, text);
    let (table, broken) = DeTable::parse_recoverable(text);
    if !broken.is_empty() {
        // What the tables say is not judged: half of a table is not the one that was meant. The parser's own message
        // quotes nothing of the text, which may hold a secret.
        let finding = |e: &toml::de::Error| doc.finding(e.span().map_or(0, |s| s.start), "", e.message());
        return Err(ConfigErrors(broken.iter().map(finding).collect()));
    }
    let settings = whole_file(Section::root(&doc, &table));
    let mut errors = doc.errors.into_inner();
    match settings {
        Some(settings) if errors.is_empty() => Ok(Loaded {
            settings,
            warnings: doc.warnings.into_inner(),
            left_out: doc.absent.into_inner(),
            given: doc.given.into_inner(),
        }),
        _ => {
            errors.sort_by_key(|error| error.line);
            Err(ConfigErrors(errors))
        }
    }
}

/// What a text is asked for while it is read. For the example with every key on: all that can be asked for.
pub(super) fn shape_of(text: &str) -> Shape {
    let doc = Doc::new("", Path::new(""), text);
    let (table, _) = DeTable::parse_recoverable(text);
    whole_file(Section::root(&doc, &table));
    doc.shape.into_inner()
}

/// Every table, each with all of its mistakes. `None` only where a mistake was told.
fn whole_file(root: Section<'_>) -> Option<Settings> {
    let netbox = root.required("netbox").and_then(|item| item.section()).and_then(netbox);
    let nats = root.section("nats").map_or(Some(None), |section| nats::nats(section).map(Some));
    let vault = root.section("vault").map_or_else(|| Some(vault::default_vault()), vault::vault);
    let ironic_sections = root.named("ironic");
    let mut instances = IndexMap::new();
    let mut ironic_failed = false;
    for (name, section) in ironic_sections {
        match ironic::instance(section) {
            Some(instance) => {
                instances.insert(name, instance);
            }
            None => ironic_failed = true,
        }
    }
    let mut sites = IndexMap::new();
    let named = root.named("sites");
    if named.is_empty() {
        root.fault_at("sites", "no site: add a table [sites.SLUG] with the site's NetBox slug");
    }
    let mut sites_failed = false;
    for (slug, section) in named {
        match site::site(&slug, &section) {
            Some(site) => {
                if !ironic_failed {
                    check_ironic(&slug, &section, &site, &instances);
                }
                sites.insert(slug, site);
            }
            None => sites_failed = true,
        }
        section.finish();
    }
    if instances.is_empty() && !ironic_failed {
        root.warn("ironic", "no table [ironic.NAME]: hosts can be looked at, and none can be enrolled");
    }
    let mut eligibility = Rules::for_sites(sites.keys().cloned());
    if let Some(section) = root.section("eligibility") {
        eligibility::read(&section, &mut eligibility);
        for (name, instance) in &instances {
            let lacks = |class: &&String| !eligibility.device_classes.contains(*class);
            if let Some(class) = instance.device_classes.iter().find(lacks) {
                let class = shown(class);
                section.warn(
                    "device_classes",
                    format!("lacks {class}, which ironic.{name} manages: none of these is enrolled"),
                );
            }
        }
        section.finish();
    }
    // Where a site could not be read, no name of one is judged.
    let known: Option<Vec<&str>> = (!sites_failed).then(|| sites.keys().map(String::as_str).collect());
    let mut webhooks = IndexMap::new();
    let mut webhooks_failed = false;
    for (name, section) in root.named("webhooks") {
        match webhooks::webhook(&name, section, known.as_deref()) {
            Some(webhook) => {
                webhooks.insert(name, webhook);
            }
            None => webhooks_failed = true,
        }
    }
    let limits = root.section("limits").map_or_else(Limits::default, limits);
    let console = root.section("console").map_or_else(default_console, console);
    let metrics = root.section("metrics").and_then(metrics);
    let log = root.section("log").map_or_else(LogSettings::default, log::log);
    root.finish();
    if ironic_failed || sites_failed || webhooks_failed {
        return None;
    }
    let (netbox, push) = netbox?;
    Some(Settings {
        netbox,
        push,
        nats: nats?,
        webhooks,
        vault: vault?,
        ironic: instances,
        sites,
        eligibility,
        limits,
        console,
        metrics,
        log,
    })
}

/// Names that a site gives have to exist, and each device class may have one owner at a site (R1).
fn check_ironic(
    slug: &str,
    section: &Section<'_>,
    site: &SiteSettings,
    instances: &IndexMap<String, super::settings::IronicInstance>,
) {
    for name in site.ironic.iter().filter(|name| !instances.contains_key(*name)) {
        let meant = nearest(name, instances.keys().map(String::as_str));
        let hint = meant.map_or_else(|| format!("add a table [ironic.{name}]"), |m| format!("is '{m}' meant?"));
        section.fault_at("ironic", format!("there is no Ironic instance {}; {hint}", shown(name)));
    }
    let serves = |name: &String| site.ironic.is_empty() || site.ironic.contains(name);
    let mut owners: IndexMap<&str, &str> = IndexMap::new();
    for (name, instance) in instances.iter().filter(|(name, _)| serves(name)) {
        for class in &instance.device_classes {
            if let Some(first) = owners.insert(class, name) {
                section.fault_at(
                    "ironic",
                    format!(
                        "both '{first}' and '{name}' manage the device class {} at site '{slug}'; name the one that does",
                        shown(class)
                    ),
                );
            }
        }
    }
}

fn netbox(t: Section<'_>) -> Option<(NetboxSettings, Option<PushSettings>)> {
    let (url, token) = (t.url("url"), t.secret("token"));
    let trust = t.trust("trust");
    let timeout = t.seconds_or("timeout_s", Duration::from_secs(30), REQUEST_MAX);
    let poll = t.seconds_or("poll_s", Duration::from_secs(60), DAY);
    let resync = t.seconds_or("resync_s", Duration::from_secs(15 * 60), DAY);
    if resync < poll {
        t.fault_at("resync_s", "is shorter than poll_s: every poll would be a full read");
    }
    let cadences = cadences(&t, resync);
    let fields = t.section("fields").map_or_else(default_fields, fields);
    let push = t.section("push").map_or(Some(None), |section| push::push(section, poll).map(Some));
    t.finish();
    let settings = NetboxSettings { url: url?, token: token?, trust, timeout, poll, resync, cadences, fields };
    Some((settings, push?))
}

/// How often what else is read. Each comparison of everything has to be rarer than the look at changes that it mends.
fn cadences(t: &Section<'_>, resync: Duration) -> Cadences {
    let default = Cadences::default();
    let week = DAY * 7;
    let refresh = t.seconds_or("refresh_s", default.refresh, week);
    if refresh < resync {
        t.fault_at("refresh_s", "is shorter than resync_s: every resync would be a refresh");
    }
    let places = t.seconds_or("places_s", default.places, DAY);
    let parts = t.seconds_or("parts_s", default.parts, DAY);
    let wiring = t.section("wiring");
    let Some(w) = wiring else { return Cadences { places, parts, refresh, ..default } };
    let cadences = Cadences {
        places,
        parts,
        refresh,
        wiring_poll: w.seconds_or("poll_s", default.wiring_poll, DAY),
        wiring_cables: w.seconds_or("cables_s", default.wiring_cables, DAY),
        wiring_resync: w.seconds_or("resync_s", default.wiring_resync, DAY),
        wiring_refresh: w.seconds_or("refresh_s", default.wiring_refresh, week),
    };
    if cadences.wiring_resync < cadences.wiring_poll {
        w.fault_at("resync_s", "is shorter than poll_s: every poll would be a resync");
    }
    if cadences.wiring_refresh < cadences.wiring_resync {
        w.fault_at("refresh_s", "is shorter than resync_s: every resync would be a refresh");
    }
    w.finish();
    cadences
}

fn default_fields() -> NetboxFields {
    NetboxFields {
        device_class: "device_class".to_owned(),
        gpu_type: "gpu_type".to_owned(),
        platform_class: "platform_class".to_owned(),
        ntp_server: "ntp_server_1".to_owned(),
        syslog_server: "syslog_server".to_owned(),
    }
}

fn fields(t: Section<'_>) -> NetboxFields {
    let default = default_fields();
    let fields = NetboxFields {
        device_class: t.text_or("device_class", &default.device_class),
        gpu_type: t.text_or("gpu_type", &default.gpu_type),
        platform_class: t.text_or("platform_class", &default.platform_class),
        ntp_server: t.text_or("ntp_server", &default.ntp_server),
        syslog_server: t.text_or("syslog_server", &default.syslog_server),
    };
    t.finish();
    fields
}

fn limits(t: Section<'_>) -> Limits {
    let default = Limits::default();
    let count = |key, default: usize| t.whole_or(key, default as u64, 1, LIMIT_MAX) as usize;
    // 0 is no limit: the example file shows each key with its default.
    let some = |key| Some(t.whole_or(key, 0, 0, LIMIT_MAX) as usize).filter(|n| *n > 0);
    let limits = Limits {
        runs: count("runs", default.runs),
        runs_per_site: some("runs_per_site"),
        runs_per_rack: some("runs_per_rack"),
        runs_per_switch: some("runs_per_switch"),
        activities: count("activities", default.activities),
    };
    for (key, narrow) in [
        ("runs_per_site", limits.runs_per_site),
        ("runs_per_rack", limits.runs_per_rack),
        ("runs_per_switch", limits.runs_per_switch),
    ] {
        if let Some(narrow) = narrow.filter(|narrow| *narrow > limits.runs) {
            t.warn(key, format!("{narrow} is more than runs ({}): it limits nothing", limits.runs));
        }
    }
    t.finish();
    limits
}

/// Where figures are shown. `None` also where a mistake was told.
fn metrics(t: Section<'_>) -> Option<SocketAddr> {
    let default = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 9464);
    let listen = t.item("listen").map_or(Some(default), |item| item.socket("127.0.0.1:9464"));
    if listen.is_some_and(|at| !at.ip().is_loopback()) {
        t.warn("listen", "whoever reaches this address reads the figures: sites, systems and failure codes, no hosts");
    }
    t.finish();
    listen
}

fn default_console() -> ConsoleSettings {
    ConsoleSettings { theme: None, ascii: false, mouse: true, on_end: OnEnd::default(), keys: BTreeMap::new() }
}

fn console(t: Section<'_>) -> ConsoleSettings {
    let default = default_console();
    let on_end = [("none", OnEnd::None), ("bell", OnEnd::Bell), ("osc9", OnEnd::Osc9), ("both", OnEnd::Both)];
    let console = ConsoleSettings {
        theme: t.optional_text("theme"),
        ascii: t.flag_or("ascii", default.ascii),
        mouse: t.flag_or("mouse", default.mouse),
        on_end: t.item("on_end").and_then(|item| item.choice(&on_end)).unwrap_or(default.on_end),
        keys: t.section("keys").map(|keys| keys.lists_by_name()).unwrap_or_default(),
    };
    t.finish();
    console
}

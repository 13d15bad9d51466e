//! Reads `[sites.SLUG]`: gates, options, deadlines, the DHCP host and the BMCs of a site.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::Duration;

use ipnet::IpNet;

use super::load::{DAY, REQUEST_MAX};
use super::settings::{
    BmcSettings, DhcpServerKind, DhcpSettings, SiteSettings, Trust, default_budgets, default_options,
};
use super::table::{Section, shown};
use crate::domain::dhcp::network::{Network, Pool};
use crate::domain::request::{Budgets, SiteOptions};

/// The longest patience of a run: a clean of many large disks takes days.
const BUDGET_MAX: Duration = Duration::from_secs(30 * 24 * 3600);

/// One site. `None` only where a mistake was told. The section's end is the caller's.
pub(super) fn site(slug: &str, t: &Section<'_>) -> Option<SiteSettings> {
    if !is_slug(slug) {
        t.fault("is no NetBox slug: letters, digits, hyphens and underscores");
    }
    let ironic = t.item("ironic").map_or_else(|| Some(Vec::new()), |item| item.texts());
    let options = options(t);
    let dhcp = match t.section("dhcp") {
        Some(section) => dhcp(section).map(Some),
        None if t.has("dhcp") => None,
        None => Some(None),
    };
    if options.configure_dhcp && dhcp == Some(None) {
        t.fault(format!(
            "configure_dhcp is on, and there is no table [sites.{slug}.dhcp]; add it, or set configure_dhcp = false in \
             [sites.{slug}.gates]"
        ));
    }
    let bmc = t.section("bmc").map_or_else(|| Some(default_bmc()), bmc);
    Some(SiteSettings { ironic: ironic?, options, dhcp: dhcp?, bmc: bmc? })
}

fn options(t: &Section<'_>) -> SiteOptions {
    let mut options = default_options();
    if let Some(gates) = t.section("gates") {
        let gate = |key, value: &mut bool| *value = gates.flag_or(key, *value);
        gate("configure_dhcp", &mut options.configure_dhcp);
        gate("configure_bmc", &mut options.configure_bmc);
        gate("ironic_enrol", &mut options.ironic_enrol);
        gate("platform_class_activity_ready", &mut options.platform_class_activity_ready);
        gates.finish();
    }
    if let Some(choices) = t.section("options") {
        options.switch_to_ipmi_after_inspection =
            choices.flag_or("switch_to_ipmi_after_inspection", options.switch_to_ipmi_after_inspection);
        options.restrict_boot = choices.flag_or("restrict_boot", options.restrict_boot);
        options.prove_ipmi = choices.flag_or("prove_ipmi", options.prove_ipmi);
        for (key, tag) in [("ironic_tag", &mut options.ironic_tag), ("bmc_tag", &mut options.bmc_tag)] {
            *tag = choices.text_or(key, tag);
            if !is_slug(tag) {
                choices.fault_at(key, format!("{} is no NetBox slug", shown(tag)));
            }
        }
        choices.finish();
    }
    if let Some(deadlines) = t.section("deadlines") {
        options.budgets = budgets(deadlines);
    }
    options
}

fn budgets(t: Section<'_>) -> Budgets {
    let default = default_budgets();
    let span = |key, default| t.seconds_or(key, default, BUDGET_MAX);
    let budgets = Budgets {
        max_attempts: t.whole_or("max_attempts", default.max_attempts.into(), 1, 100) as u32,
        node_lock: span("node_lock_s", default.node_lock),
        stable: span("stable_s", default.stable),
        inspection: span("inspection_s", default.inspection),
        power_on: span("power_on_s", default.power_on),
        link_guard: span("link_guard_s", default.link_guard),
        link_poll: span("link_poll_s", default.link_poll),
        cleaning: span("cleaning_s", default.cleaning),
        poll_first: span("poll_first_s", default.poll_first),
        poll_max: span("poll_max_s", default.poll_max),
        proof: span("proof_s", default.proof),
        outage: span("outage_s", default.outage),
        staged: span("staged_s", default.staged),
        applied: span("applied_s", default.applied),
    };
    if budgets.poll_first > budgets.poll_max {
        t.fault_at("poll_first_s", "is longer than poll_max_s");
    }
    if budgets.link_poll > budgets.link_guard {
        t.fault_at("link_poll_s", "is longer than link_guard_s: the guard would look only once");
    }
    t.finish();
    budgets
}

fn dhcp(t: Section<'_>) -> Option<DhcpSettings> {
    let host = t.required("host").and_then(|item| {
        let text = item.text()?;
        let plain = !text.contains(|c: char| c.is_whitespace() || matches!(c, '/' | '@' | '[' | ']'));
        if plain {
            Some(text.to_owned())
        } else {
            item.fault(format!("{} is not the name or address of a host", shown(text)))
        }
    });
    let port = t.whole_or("port", 22, 1, 65535) as u16;
    let user = t.text("user");
    let kinds = DhcpServerKind::ALL.map(|kind| (kind.as_str(), kind));
    let server = t.choice("server", &kinds);
    let directory = t.required("directory").and_then(|item| {
        let text = item.text()?;
        if text.starts_with('/') && text.len() > 1 {
            Some(text.trim_end_matches('/').to_owned())
        } else {
            item.fault(format!("{} is not an absolute path of the DHCP host", shown(text)))
        }
    });
    let test = t.optional_text("test");
    let (restart, validate) = (t.text("restart"), t.text("validate"));
    let sudo = t.flag_or("sudo", false);
    let legacy_algorithms = t.flag_or("legacy_algorithms", false);
    if legacy_algorithms {
        t.warn("legacy_algorithms", "SHA-1 and CBC are offered too: whoever is in between may choose them");
    }
    let network = network(&t);
    let limit = |key| t.seconds_or(key, Duration::from_secs(120), REQUEST_MAX);
    let (connect, login) = (limit("connect_s"), limit("login_s"));
    let (command, transfer) = (limit("command_s"), limit("transfer_s"));
    t.finish();
    Some(DhcpSettings {
        host: host?,
        port,
        user: user?,
        server: server?,
        directory: directory?,
        test,
        restart: restart?,
        validate: validate?,
        sudo,
        legacy_algorithms,
        network: network?,
        connect,
        login,
        command,
        transfer,
    })
}

/// What is left out is not checked.
fn network(t: &Section<'_>) -> Option<Network> {
    let subnets: Option<Vec<IpNet>> = each(t, "subnets", |text| match text.parse::<IpNet>() {
        Ok(net) if net == net.trunc() => Ok(net),
        Ok(net) => Err(format!("has bits behind its prefix; '{}' is the network", net.trunc())),
        Err(_) => Err("is not a network such as '10.10.8.0/24'".to_owned()),
    });
    let reserved: Option<Vec<IpAddr>> =
        each(t, "reserved_addresses", |text| text.parse().map_err(|_| "is not an IP address".to_owned()));
    let pools: Option<Vec<Pool>> = each(t, "pools", |text| text.parse().map_err(str::to_owned));
    let (subnets, pools) = (subnets?, pools?);
    for pool in &pools {
        let is_served = |net: &IpNet| net.contains(&pool.first) && net.contains(&pool.last);
        if !subnets.is_empty() && !subnets.iter().any(is_served) {
            t.fault_at("pools", format!("'{pool}' lies in none of the subnets"));
        }
    }
    Some(Network { subnets, reserved: reserved?, pools })
}

/// A list of texts that each have a meaning; empty where it is left out.
fn each<T>(t: &Section<'_>, key: &'static str, read: impl Fn(&str) -> Result<T, String>) -> Option<Vec<T>> {
    let Some(item) = t.item(key) else { return Some(Vec::new()) };
    let mut values = Vec::new();
    for text in item.texts()? {
        match read(text.trim()) {
            Ok(value) => values.push(value),
            Err(why) => return item.fault(format!("{} {why}", shown(&text))),
        }
    }
    Some(values)
}

fn default_bmc() -> BmcSettings {
    BmcSettings {
        scheme: "https".to_owned(),
        port: None,
        trust: Trust::System,
        connect_timeout: Duration::from_secs(10),
        timeout: Duration::from_secs(30),
        busy_budget: Duration::from_secs(120),
        reset_budget: Duration::from_secs(10 * 60),
        syslog_port: 514,
        ipmi_port: 623,
        ipmi_key: None,
        bios: BTreeMap::new(),
    }
}

fn bmc(t: Section<'_>) -> Option<BmcSettings> {
    let default = default_bmc();
    let scheme = match t.item("scheme") {
        Some(item) => item.choice(&[("https", "https"), ("http", "http")]),
        None => Some("https"),
    };
    if scheme == Some("http") {
        t.warn("scheme", "BMC credentials travel in clear over http");
    }
    let port = t.item("port").and_then(|item| item.whole(1, 65535)).map(|port| port as u16);
    let trust = t.trust("trust");
    let connect_timeout = t.seconds_or("connect_timeout_s", default.connect_timeout, REQUEST_MAX);
    let timeout = t.seconds_or("timeout_s", default.timeout, REQUEST_MAX);
    let busy_budget = t.seconds_or("busy_budget_s", default.busy_budget, DAY);
    let reset_budget = t.seconds_or("reset_budget_s", default.reset_budget, DAY);
    let syslog_port = t.whole_or("syslog_port", default.syslog_port.into(), 1, 65535) as u16;
    let ipmi_port = t.whole_or("ipmi_port", default.ipmi_port.into(), 1, 65535) as u16;
    let ipmi_key = t.item("ipmi_key").and_then(|item| item.secret());
    let bios = t.section("bios").map(bios).unwrap_or_default();
    t.finish();
    let scheme = scheme?.to_owned();
    Some(BmcSettings {
        scheme,
        port,
        trust,
        connect_timeout,
        timeout,
        busy_budget,
        reset_budget,
        syslog_port,
        ipmi_port,
        ipmi_key,
        bios,
    })
}

/// `[sites.SLUG.bmc.bios.VENDOR]`: attributes under names that only a machine knows, so that any are taken.
fn bios(t: Section<'_>) -> BTreeMap<String, BTreeMap<String, String>> {
    let vendors = ["dell", "lenovo"].into_iter().filter_map(|vendor| {
        let attributes = t.section(vendor)?;
        Some((vendor.to_owned(), attributes.texts_by_name())).filter(|(_, attributes)| !attributes.is_empty())
    });
    let bios = vendors.collect();
    t.finish();
    bios
}

/// Whether NetBox would have the text as a slug.
pub(super) fn is_slug(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_'))
}

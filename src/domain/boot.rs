//! The host's boot options: which one is the provisioning NIC's, and what its restriction changes (B12–B15).
//!
//! What a BMC tells of an option is evidence. An option is the NIC's only where there is evidence, all of it agrees, and no
//! other option has an equal claim: in all other cases nothing is touched, since a host whose options are disabled in error
//! boots nothing any more.

use super::mac::Mac;
use super::text::neutralize_to;

/// All boot options of a host, in the order in which they are tried.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct BootSetup {
    pub options: Vec<BootOption>,
    /// Options that exist and are not in the order: AMI drops disabled ones, XCC its disks (Q10).
    pub aside: Vec<BootOption>,
    /// What is staged for the next boot, where it differs.
    pub staged: Option<Vec<String>>,
    /// The order that the BMC gives has options that could not be read: it may be moved about, but nothing is disabled.
    pub incomplete: Option<String>,
}

/// One boot option.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BootOption {
    /// As the boot order has it, with all that firmware adds to it (`Boot0019: Ubuntu`).
    pub reference: String,
    /// The name that people see.
    pub name: String,
    /// `None`: the BMC does not say.
    pub enabled: Option<bool>,
    pub kind: Kind,
    pub evidence: Vec<Evidence>,
}

/// What an option boots from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    PxeV4,
    HttpV4,
    PxeV6,
    HttpV6,
    /// A NIC, by a way that is not told.
    Network,
    /// Disk, virtual media, shell and all else: never disabled.
    Other,
}

impl Kind {
    pub fn is_network(self) -> bool {
        match self {
            Kind::PxeV4 | Kind::HttpV4 | Kind::PxeV6 | Kind::HttpV6 | Kind::Network => true,
            Kind::Other => false,
        }
    }
}

/// What says that an option is a NIC's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Evidence {
    /// Where it was read: `UefiDevicePath`.
    pub source: String,
    pub mac: Mac,
}

impl BootOption {
    /// An option from what a BMC tells of it. A MAC in the device path or in the name becomes evidence.
    pub fn new(reference: &str, name: &str, path: Option<&str>, alias: Option<&str>, enabled: Option<bool>) -> Self {
        let path = path.unwrap_or_default();
        let mut evidence = Vec::new();
        if let Some(mac) = mac_of_path(path) {
            evidence.push(Evidence { source: "UefiDevicePath".to_owned(), mac });
        }
        if let Some(mac) = mac_of_name(name) {
            evidence.push(Evidence { source: "DisplayName".to_owned(), mac });
        }
        let kind = kind(name, path, alias.unwrap_or_default());
        BootOption { reference: reference.to_owned(), name: neutralize_to(name, 120), enabled, kind, evidence }
    }

    /// The NIC behind it, where all evidence agrees; the disagreement otherwise. `Ok(None)`: there is none.
    pub fn nic(&self) -> Result<Option<Mac>, String> {
        let Some(first) = self.evidence.first() else { return Ok(None) };
        match self.evidence.iter().find(|e| e.mac != first.mac) {
            None => Ok(Some(first.mac)),
            Some(other) => Err(format!(
                "option '{}' is {} by {} and {} by {}",
                self.name, first.mac, first.source, other.mac, other.source
            )),
        }
    }
}

/// What an option boots from. The alias alone says little: firmware calls USB NICs `Usb` and HTTP boot `PXE`.
fn kind(name: &str, path: &str, alias: &str) -> Kind {
    let (name, path, alias) = (name.to_ascii_uppercase(), path.to_ascii_uppercase(), alias.to_ascii_uppercase());
    let has_mac = path.contains("MAC(");
    let says_http = path.contains("/URI(") || name.contains("HTTP IPV") || name.starts_with("HTTP DEVICE");
    let says_pxe = name.contains("PXE IPV") || name.starts_with("PXE DEVICE") || alias == "PXE";
    let is_network = has_mac || says_http || says_pxe || alias == "UEFIHTTP" || name == "NETWORK";
    if !is_network {
        return Kind::Other;
    }
    let six = path.contains("/IPV6(") || name.contains("IPV6");
    let four = path.contains("/IPV4(") || name.contains("IPV4");
    let http = says_http || alias == "UEFIHTTP";
    match (http, six, four || says_pxe || http) {
        (true, true, _) => Kind::HttpV6,
        (true, false, _) => Kind::HttpV4,
        (false, true, _) => Kind::PxeV6,
        (false, false, true) => Kind::PxeV4,
        (false, false, false) => Kind::Network,
    }
}

/// The MAC of a `MAC(AABBCCDDEEFF,0x1)` node: its first twelve digits, since some firmware pads them to 64.
fn mac_of_path(path: &str) -> Option<Mac> {
    let upper = path.to_ascii_uppercase();
    let (_, rest) = upper.split_once("MAC(")?;
    let digits: String = rest.chars().take_while(char::is_ascii_hexdigit).collect();
    let padded = digits.len() == 12 || digits.len() > 12 && digits[12..].bytes().all(|b| b == b'0');
    if padded { digits[..12].parse().ok() } else { None }
}

/// A MAC among the words of a name (`... - AA:BB:CC:DD:EE:FF - IPv4`).
fn mac_of_name(name: &str) -> Option<Mac> {
    let words = name.split(|c: char| c.is_whitespace() || "()[],;".contains(c));
    words.filter(|word| word.len() == 17).find_map(|word| word.parse().ok())
}

/// What the restriction changes (B12).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Restriction {
    /// The option that is kept, by its name.
    pub keeps: String,
    /// The whole order, the kept option first.
    pub order: Vec<String>,
    /// References that are disabled and have to be enabled: the kept one, or none.
    pub enable: Vec<String>,
    /// References that are enabled, or may be, and have to be disabled.
    pub disable: Vec<String>,
}

impl Restriction {
    /// Whether the options are as it wants them already.
    pub fn is_satisfied_by(&self, setup: &BootSetup) -> bool {
        let staged_or_now = setup.staged.clone().unwrap_or_else(|| setup.order());
        self.enable.is_empty() && self.disable.is_empty() && staged_or_now == self.order
    }
}

impl BootSetup {
    /// The references in their order.
    pub fn order(&self) -> Vec<String> {
        self.options.iter().map(|option| option.reference.clone()).collect()
    }
}

/// Restricts the options to one NIC; the reason where it is not positively identified (B14).
pub fn restrict(setup: &BootSetup, nic: Mac) -> Result<Restriction, String> {
    let keep = identify(setup, nic)?;
    let others = setup.options.iter().filter(|option| option.reference != keep.reference);
    Ok(Restriction {
        keeps: keep.name.clone(),
        order: [keep.reference.clone()].into_iter().chain(others.clone().map(|o| o.reference.clone())).collect(),
        enable: if keep.enabled == Some(false) { vec![keep.reference.clone()] } else { vec![] },
        disable: others
            .chain(setup.aside.iter().filter(|option| option.reference != keep.reference))
            .filter(|option| option.kind.is_network() && option.enabled != Some(false))
            .map(|option| option.reference.clone())
            .collect(),
    })
}

/// The option to boot from by a NIC: PXE by IPv4, else HTTP by IPv4. One in the order goes before one aside.
fn identify(setup: &BootSetup, nic: Mac) -> Result<&BootOption, String> {
    if let Some(why) = &setup.incomplete {
        return Err(format!("not all boot options could be read: {why}"));
    }
    let mut claims: Vec<&BootOption> = Vec::new();
    for option in setup.options.iter().chain(&setup.aside).filter(|option| option.kind.is_network()) {
        match option.nic() {
            Ok(Some(mac)) if mac == nic => claims.push(option),
            Ok(_) => {}
            // Only a doubt about this NIC matters.
            Err(doubt) if option.evidence.iter().any(|e| e.mac == nic) => return Err(doubt),
            Err(_) => {}
        }
    }
    let best = [Kind::PxeV4, Kind::HttpV4].into_iter().find(|kind| claims.iter().any(|option| option.kind == *kind));
    let Some(best) = best else {
        return Err(match claims.first() {
            Some(option) => format!("{nic} has no option for PXE or HTTP by IPv4, only '{}'", option.name),
            None => format!("no boot option is proven to be {nic}{}", networks(setup)),
        });
    };
    let candidates: Vec<&&BootOption> = claims.iter().filter(|option| option.kind == best).collect();
    match candidates[..] {
        [keep] => Ok(keep),
        _ => {
            let names: Vec<&str> = candidates.iter().map(|option| option.name.as_str()).collect();
            Err(format!("{} options claim to be {nic}: '{}'", names.len(), names.join("', '")))
        }
    }
}

/// The network options that there are, for whoever has to find out.
fn networks(setup: &BootSetup) -> String {
    let all: Vec<String> = setup
        .options
        .iter()
        .chain(&setup.aside)
        .filter(|option| option.kind.is_network())
        .map(|option| match option.nic() {
            Ok(Some(mac)) => format!("'{}' is {mac}", option.name),
            Ok(None) => format!("'{}' tells no MAC", option.name),
            Err(doubt) => doubt,
        })
        .collect();
    if all.is_empty() { "; the host has no network option".to_owned() } else { format!(": {}", all.join(", ")) }
}

/// The order with network options first, each group as it was: what runs where no NIC is to be singled out (B7, B15).
/// Disables nothing, and takes options back in that the firmware has dropped though they are not disabled (Q10).
pub fn network_first(setup: &BootSetup) -> Vec<String> {
    let dropped = setup.aside.iter().filter(|option| option.enabled != Some(false));
    let (network, other): (Vec<&BootOption>, Vec<&BootOption>) =
        setup.options.iter().chain(dropped).partition(|option| option.kind.is_network());
    network.into_iter().chain(other).map(|option| option.reference.clone()).collect()
}

/// As [`network_first`], with the option of one NIC before all others; the reason where that is not positively identified.
pub fn nic_first(setup: &BootSetup, nic: Mac) -> Result<Vec<String>, String> {
    let first = identify(setup, nic)?.reference.clone();
    let others = network_first(setup).into_iter().filter(|reference| *reference != first);
    Ok([first.clone()].into_iter().chain(others).collect())
}

#[cfg(test)]
mod tests;

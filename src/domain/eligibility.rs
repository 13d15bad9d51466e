//! Says whether a device may be enrolled, and if not, what to mend where (S1).

use std::borrow::Cow;
use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::device::Device;
use super::listed::Alike;
use super::text::neutralize;

/// What the policy goes by.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rules {
    /// NetBox slugs of the sites that the configuration has.
    pub sites: BTreeSet<String>,
    /// The compute and hypervisor classes.
    pub device_classes: BTreeSet<String>,
    /// Slugs of tags that say that a customer has the device.
    pub custody_tags: BTreeSet<String>,
    /// Slugs of tenants whose devices are in their own custody.
    pub custody_tenants: BTreeSet<String>,
    /// Slugs of tags that say that a device is not to be enrolled.
    pub blocking_tags: BTreeSet<String>,
}

impl Rules {
    /// The rules of the house for these sites.
    pub fn for_sites(sites: impl IntoIterator<Item = String>) -> Self {
        let set = |words: &[&str]| words.iter().map(|&word| word.to_owned()).collect();
        Rules {
            sites: sites.into_iter().collect(),
            device_classes: set(&["COMPUTE_GPU", "COMPUTE_CPU", "HYPERVISOR"]),
            custody_tags: set(&["customer-custody", "in-customer-custody"]),
            custody_tenants: BTreeSet::new(),
            blocking_tags: set(&["do-not-enroll"]),
        }
    }
}

/// Why a device may not be enrolled.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Refusal {
    /// `device_not_placed`, …: a contract of `inventory list --json`.
    pub code: &'static str,
    pub message: String,
    pub action: String,
}

/// As [`Refusal`], with the device's name left out: devices that are alike are refused in the same words.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Grounds {
    pub code: Cow<'static, str>,
    message: String,
    action: String,
}

/// Where the name goes. No neutralized text has this character.
const NAME: &str = "\0";

impl Grounds {
    /// Grounds in words of their own.
    pub fn new(code: impl Into<String>, message: impl Into<String>, action: impl Into<String>) -> Grounds {
        Grounds { code: Cow::Owned(code.into()), message: message.into(), action: action.into() }
    }

    /// The fact about the device of this name.
    pub fn message(&self, name: &str) -> String {
        self.message.replace(NAME, &neutralize(name))
    }

    /// What mends it for the device of this name.
    pub fn action(&self, name: &str) -> String {
        self.action.replace(NAME, &neutralize(name))
    }
}

/// Whether a device is of the kind that is enrolled at all: of a compute class, or of none, which is a hole in NetBox that
/// has to be seen. Lists of hosts leave everything else out.
pub fn is_host(device: &Device, rules: &Rules) -> bool {
    is_of_hosts(device.device_class.as_deref(), rules)
}

/// As [`is_host`], by the class alone.
pub fn is_of_hosts(device_class: Option<&str>, rules: &Rules) -> bool {
    device_class.is_none_or(|class| rules.device_classes.contains(class))
}

/// Judges the inventory's view of a device. That view may lag; the run itself reads NetBox live (S2).
pub fn check(device: &Device, rules: &Rules) -> Result<(), Refusal> {
    match judge(&Alike::from(device), device.position.is_some(), rules) {
        None => Ok(()),
        Some((code, message, action)) => {
            let grounds = Grounds { code: Cow::Borrowed(code), message, action };
            Err(Refusal { code, message: grounds.message(&device.name), action: grounds.action(&device.name) })
        }
    }
}

/// As [`check`], once for all devices that are alike: those with a unit, or those without one.
pub fn grounds(alike: &Alike, has_unit: bool, rules: &Rules) -> Option<Grounds> {
    let (code, message, action) = judge(alike, has_unit, rules)?;
    Some(Grounds { code: Cow::Borrowed(code), message, action })
}

/// Code, message and action of a refusal, the name left out.
fn judge(device: &Alike, has_unit: bool, rules: &Rules) -> Option<(&'static str, String, String)> {
    let name = NAME;
    let refuse = |code: &'static str, message: String, action: String| Some((code, message, action));
    if !rules.sites.contains(&*device.site) {
        let site = neutralize(&device.site);
        return refuse(
            "site_not_configured",
            format!("'{name}' is in site '{site}', which the configuration does not have"),
            format!("add [sites.{site}] to the configuration, or correct the device's site in NetBox"),
        );
    }
    if !matches!(device.status.as_str(), "staged" | "active") {
        return refuse(
            "device_status_refused",
            format!(
                "NetBox has '{name}' as '{}', only staged and active devices are enrolled",
                neutralize(&device.status)
            ),
            format!("set the status of '{name}' to staged in NetBox once it is racked and cabled"),
        );
    }
    let role = neutralize(&device.role);
    let classes = || rules.device_classes.iter().map(String::as_str).collect::<Vec<_>>().join(", ");
    match device.device_class.as_deref() {
        None => {
            return refuse(
                "device_class_missing",
                format!("the role '{role}' of '{name}' has no device_class"),
                format!(
                    "set device_class on the role '{role}' in NetBox ({}), or give '{name}' another role",
                    classes()
                ),
            );
        }
        Some(class) if !rules.device_classes.contains(class) => {
            return refuse(
                "device_class_refused",
                format!("'{name}' is a '{}', only {} are enrolled", neutralize(class), classes()),
                format!("correct the role of '{name}' in NetBox if it is a compute node or a hypervisor"),
            );
        }
        Some(_) => {}
    }
    if let Some(tag) = device.tags.iter().find(|tag| rules.custody_tags.contains(tag.as_str())) {
        let tag = neutralize(tag);
        return refuse(
            "device_in_customer_custody",
            format!("'{name}' is in customer custody (tag '{tag}')"),
            format!("take '{name}' back from the customer first, then remove the tag '{tag}' in NetBox"),
        );
    }
    if let Some(tenant) = device.tenant.as_ref().filter(|tenant| rules.custody_tenants.contains(tenant.as_str())) {
        let tenant = neutralize(tenant);
        return refuse(
            "device_in_customer_custody",
            format!("'{name}' is in customer custody (tenant '{tenant}')"),
            format!("take '{name}' back from the customer first, then clear its tenant '{tenant}' in NetBox"),
        );
    }
    if let Some(tag) = device.tags.iter().find(|tag| rules.blocking_tags.contains(tag.as_str())) {
        let tag = neutralize(tag);
        return refuse(
            "device_blocked",
            format!("'{name}' carries the tag '{tag}'"),
            format!("find out in NetBox why '{name}' has the tag '{tag}', and remove it there when that is settled"),
        );
    }
    let Some(rack) = &device.rack else {
        return refuse(
            "device_not_racked",
            format!("NetBox has '{name}' in no rack"),
            format!("set rack and position of '{name}' in NetBox"),
        );
    };
    if !has_unit {
        // S3
        let rack = neutralize(rack);
        return refuse(
            "device_not_placed",
            format!("NetBox has '{name}' in rack '{rack}' without a position"),
            format!(
                "set the position (U) of '{name}' in rack '{rack}' in NetBox; it counts once the inventory has read it"
            ),
        );
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn device() -> Device {
        Device {
            netbox_id: 7,
            name: "gpu-b07-37".into(),
            site: "osl1".into(),
            location: Some("Hall B".into()),
            rack: Some("B07".into()),
            position: Some(37.0),
            face: Some("front".into()),
            u_height: Some(2.0),
            status: "staged".into(),
            role: "GPU compute".into(),
            device_class: Some("COMPUTE_GPU".into()),
            manufacturer: "Supermicro".into(),
            model: "SYS".into(),
            serial: None,
            asset_tag: None,
            tags: vec![],
            tenant: None,
            oob_ip: None,
            custom_fields: Default::default(),
            platform_class: None,
            last_updated: None,
            read_at: jiff::Timestamp::UNIX_EPOCH,
        }
    }

    fn rules() -> Rules {
        let mut rules = Rules::for_sites(["osl1".to_owned()]);
        rules.custody_tenants.insert("customer-a".into());
        rules
    }

    /// Proves: S1
    #[test]
    fn staged_and_active_compute_and_hypervisor_devices_in_a_unit_are_eligible() {
        for status in ["staged", "active"] {
            for class in ["COMPUTE_GPU", "COMPUTE_CPU", "HYPERVISOR"] {
                let device = Device { status: status.into(), device_class: Some(class.into()), ..device() };
                assert_eq!(check(&device, &rules()), Ok(()), "{status} {class}");
            }
        }
    }

    /// Proves: S1, S3
    #[test]
    fn every_refusal_has_its_code_and_says_what_to_mend() {
        let cases: [(&str, Device, &str); 10] = [
            ("site_not_configured", Device { site: "lon9".into(), ..device() }, "[sites.lon9]"),
            ("device_status_refused", Device { status: "planned".into(), ..device() }, "staged in NetBox"),
            ("device_status_refused", Device { status: "Active".into(), ..device() }, "staged in NetBox"),
            (
                "device_class_missing",
                Device { device_class: None, ..device() },
                "device_class on the role 'GPU compute'",
            ),
            (
                "device_class_refused",
                Device { device_class: Some("SWITCH".into()), ..device() },
                "role of 'gpu-b07-37'",
            ),
            (
                "device_in_customer_custody",
                Device { tags: vec!["ironic".into(), "customer-custody".into()], ..device() },
                "remove the tag 'customer-custody'",
            ),
            (
                "device_in_customer_custody",
                Device { tenant: Some("customer-a".into()), ..device() },
                "tenant 'customer-a'",
            ),
            ("device_blocked", Device { tags: vec!["do-not-enroll".into()], ..device() }, "tag 'do-not-enroll'"),
            ("device_not_racked", Device { rack: None, position: None, ..device() }, "set rack and position"),
            ("device_not_placed", Device { position: None, ..device() }, "position (U) of 'gpu-b07-37' in rack 'B07'"),
        ];
        for (code, device, action) in cases {
            let refusal = check(&device, &rules()).unwrap_err();
            assert_eq!(refusal.code, code, "{refusal:?}");
            assert!(refusal.action.contains(action), "{refusal:?}");
            assert!(refusal.message.contains("'gpu-b07-37'"), "{refusal:?}");
        }
    }

    #[test]
    fn a_tenant_without_a_rule_is_no_custody() {
        assert_eq!(check(&Device { tenant: Some("lab".into()), ..device() }, &rules()), Ok(()));
    }

    /// Proves: U1
    #[test]
    fn a_switch_is_no_host_and_a_device_without_a_class_is_one_to_be_seen() {
        let with = |class: Option<&str>| Device { device_class: class.map(str::to_owned), ..device() };
        let rules = Rules::for_sites(["osl1".to_owned()]);
        assert!(is_host(&with(Some("HYPERVISOR")), &rules) && is_host(&with(None), &rules));
        assert!(!is_host(&with(Some("SWITCH")), &rules));
    }
}

//! Tells vendors apart by the service root, and gives each known one its dialect.

use super::dialect::Dialect;
use super::resource::Resource;
use super::supermicro::Supermicro;
use super::{ami::Ami, dell::Dell, lenovo::Lenovo};

/// Whose firmware a BMC runs, where muster knows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Vendor {
    Supermicro,
    Lenovo,
    Dell,
    Ami,
}

impl Vendor {
    /// The product as people call it.
    pub fn label(self) -> &'static str {
        match self {
            Vendor::Supermicro => "Supermicro",
            Vendor::Lenovo => "Lenovo XCC",
            Vendor::Dell => "Dell iDRAC",
            Vendor::Ami => "AMI MegaRAC",
        }
    }

    /// The vendor of a label.
    pub fn of_label(label: &str) -> Option<Vendor> {
        [Vendor::Supermicro, Vendor::Lenovo, Vendor::Dell, Vendor::Ami]
            .into_iter()
            .find(|vendor| vendor.label() == label)
    }

    /// How this vendor is asked.
    pub fn dialect(self) -> &'static dyn Dialect {
        match self {
            Vendor::Supermicro => &Supermicro,
            Vendor::Lenovo => &Lenovo,
            Vendor::Dell => &Dell,
            Vendor::Ami => &Ami,
        }
    }

    /// iDRAC reports `LinkUp` for dark ports, then with a speed of 0 (Q57).
    pub fn doubts_link_up_without_speed(self) -> bool {
        self == Vendor::Dell
    }
}

/// What a service root says of its vendor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Detected {
    Known(Vendor),
    /// With what was read, for the person who has to make sense of it.
    Unknown {
        read: String,
    },
}

/// Reads the vendor from the service root. First hit wins, and the order matters: some Lenovo machines run AMI firmware
/// and still call themselves Lenovo.
pub fn detect(root: &Resource) -> Detected {
    let vendor = root.text("Vendor");
    let product = root.text("Product");
    let oem: Vec<&str> =
        root.at("Oem").and_then(|oem| oem.as_object()).into_iter().flatten().map(|(k, _)| &**k).collect();
    let is = |text: &Option<String>, word: &str| text.as_deref().is_some_and(|t| t.eq_ignore_ascii_case(word));
    let has_oem = |word: &str| oem.iter().any(|key| key.eq_ignore_ascii_case(word));
    if has_oem("Ami") || is(&vendor, "AMI") || is(&vendor, "Giga Computing") || is(&product, "AMI Redfish Server") {
        return Detected::Known(Vendor::Ami);
    }
    if is(&vendor, "Lenovo") {
        return Detected::Known(Vendor::Lenovo);
    }
    if is(&vendor, "Dell") || has_oem("Dell") {
        return Detected::Known(Vendor::Dell);
    }
    // "GB NVL" boards carry another maker's stack under Supermicro's name.
    let foreign = product.as_deref().is_some_and(|p| p.to_ascii_uppercase().contains("GB NVL"));
    if !foreign && (is(&vendor, "Supermicro") || vendor.is_none() && has_oem("Supermicro")) {
        return Detected::Known(Vendor::Supermicro);
    }
    let word = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
    let oem = if oem.is_empty() { "-".to_owned() } else { oem.join(", ") };
    let read = format!("Vendor '{}', Product '{}', Oem '{oem}'", word(vendor), word(product));
    Detected::Unknown { read: crate::domain::text::neutralize_to(&read, 200) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn detected(body: serde_json::Value) -> Detected {
        let body = body.as_object().unwrap().clone();
        detect(&Resource { path: "/redfish/v1/".into(), body, etag: None })
    }

    /// Proves: B1
    #[test]
    fn vendors_are_told_apart_in_the_order_of_the_table() {
        let table = [
            (json!({"Oem": {"Ami": {}}}), Vendor::Ami),
            (json!({"Vendor": "Lenovo", "Oem": {"ami": {}}}), Vendor::Ami),
            (json!({"Vendor": "Giga Computing"}), Vendor::Ami),
            (json!({"Product": "AMI Redfish Server"}), Vendor::Ami),
            (json!({"Vendor": "lenovo"}), Vendor::Lenovo),
            (json!({"Vendor": "Dell"}), Vendor::Dell),
            (json!({"Oem": {"Dell": {}}}), Vendor::Dell),
            (json!({"Vendor": "Supermicro", "Product": null}), Vendor::Supermicro),
            (json!({"Oem": {"Supermicro": {}}}), Vendor::Supermicro),
        ];
        for (root, vendor) in table {
            assert_eq!(detected(root.clone()), Detected::Known(vendor), "{root}");
        }
    }

    /// Proves: B1
    #[test]
    fn an_unknown_vendor_is_told_with_what_was_read() {
        let contoso = json!({"Vendor": "Contoso", "Product": "Box\u{1b}", "Oem": {"Contoso": {}}});
        assert_eq!(
            detected(contoso),
            Detected::Unknown { read: "Vendor 'Contoso', Product 'Box\u{fffd}', Oem 'Contoso'".into() }
        );
        assert_eq!(detected(json!({})), Detected::Unknown { read: "Vendor '-', Product '-', Oem '-'".into() });
        let nvl = json!({"Vendor": "Supermicro", "Product": "GB NVL"});
        assert!(matches!(detected(nvl), Detected::Unknown { .. }));
    }
}

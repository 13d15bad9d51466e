//! The catalogue of a token: where services are, by region and interface.

use serde::Deserialize;
use url::Url;

use crate::domain::text::neutralize_to;

/// What Ironic is called in a catalogue, by its official name first.
const TYPES: [&str; 2] = ["baremetal", "bare-metal"];

/// What a token says beside itself.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(super) struct Facts {
    pub roles: Vec<Named>,
    pub project: Option<Named>,
    pub system: Option<serde_json::Value>,
    pub catalog: Vec<Service>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(super) struct Named {
    pub name: String,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(super) struct Service {
    #[serde(rename = "type")]
    pub kind: String,
    pub endpoints: Vec<Endpoint>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(super) struct Endpoint {
    pub interface: String,
    pub region: Option<String>,
    pub region_id: Option<String>,
    pub url: String,
}

impl Endpoint {
    fn region(&self) -> &str {
        self.region_id.as_deref().or(self.region.as_deref()).unwrap_or_default()
    }
}

/// Ironic's endpoint. A catalogue with several regions wants one to be named: a guess may be another site's. `Err` says what
/// is offered instead.
pub(super) fn ironic(services: &[Service], region: Option<&str>, interface: &str) -> Result<Url, String> {
    let endpoints: Vec<&Endpoint> = TYPES
        .iter()
        .find_map(|kind| services.iter().find(|service| service.kind == *kind))
        .map(|service| service.endpoints.iter().collect())
        .unwrap_or_default();
    if endpoints.is_empty() {
        let kinds: Vec<&str> = services.iter().map(|service| service.kind.as_str()).collect();
        return Err(format!("it has no service 'baremetal', only '{}'", neutralize_to(&kinds.join("', '"), 200)));
    }
    let fits = |endpoint: &&&Endpoint| {
        endpoint.interface == interface && region.is_none_or(|region| endpoint.region() == region)
    };
    let mut found: Vec<&&Endpoint> = endpoints.iter().filter(fits).collect();
    found.dedup_by(|a, b| a.url == b.url);
    match found[..] {
        [one] => {
            let url = one.url.parse::<Url>().ok().filter(|url| matches!(url.scheme(), "http" | "https"));
            url.ok_or_else(|| format!("its endpoint for 'baremetal' is no URL: '{}'", neutralize_to(&one.url, 100)))
        }
        _ => {
            let offered: Vec<String> =
                endpoints.iter().map(|e| format!("{} in '{}'", e.interface, e.region())).collect();
            let wanted = region.map_or("no region".to_owned(), |region| format!("the region '{region}'"));
            let count = if found.is_empty() { "none" } else { "more than one" };
            Err(format!(
                "of {wanted} it has {count} with the interface '{interface}'; there are {}",
                neutralize_to(&offered.join(", "), 300)
            ))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn catalogue() -> Vec<Service> {
        let at = |interface: &str, region: &str, url: &str| Endpoint {
            interface: interface.into(),
            region: None,
            region_id: Some(region.into()),
            url: url.into(),
        };
        let endpoints = vec![
            at("public", "north", "https://ironic.north.example.com"),
            at("internal", "north", "http://10.0.0.7:6385"),
            at("public", "south", "https://ironic.south.example.com"),
        ];
        let identity = Service { kind: "identity".into(), endpoints: vec![] };
        vec![identity, Service { kind: "baremetal".into(), endpoints }]
    }

    /// Proves: K3
    #[test]
    fn an_endpoint_is_chosen_by_region_and_interface_and_never_guessed() {
        let of = |region, interface| ironic(&catalogue(), region, interface).map(|url| url.to_string());
        assert_eq!(of(Some("north"), "internal").unwrap(), "http://10.0.0.7:6385/");
        assert_eq!(of(Some("south"), "public").unwrap(), "https://ironic.south.example.com/");
        assert_eq!(of(None, "internal").unwrap(), "http://10.0.0.7:6385/", "there is one only");
        let two = of(None, "public").unwrap_err();
        assert!(two.contains("more than one") && two.contains("public in 'south'"), "{two}");
        let none = of(Some("west"), "public").unwrap_err();
        assert!(none.contains("'west'") && none.contains("internal in 'north'"), "{none}");
        let other = ironic(&catalogue()[..1], None, "public").unwrap_err();
        assert!(other.contains("no service 'baremetal', only 'identity'"), "{other}");
    }
}

//! Where the standard keeps settings: what most vendors share.

use std::net::IpAddr;
use std::time::Duration;

use serde_json::{Value, json};

use super::collection::Listing;
use super::converge::{Located, Spot};
use super::error::RedfishError;
use super::resource::Resource;
use super::service::Redfish;

/// A setting of the BMC's own NIC, by its members there.
pub async fn on_own_nic(
    redfish: &Redfish,
    bmc: &Resource,
    address: Option<IpAddr>,
    members: Vec<(&'static str, Value)>,
) -> Result<Located, RedfishError> {
    let Some(path) = bmc.link("EthernetInterfaces") else {
        return Ok(Located::Absent { why: "the BMC lists no Ethernet interface of its own".to_owned() });
    };
    let Some(listing) = listed(redfish, &path).await? else {
        return Ok(Located::Absent { why: format!("the BMC names '{path}', and it is not there") });
    };
    let left_out: Vec<String> = listing.skipped.iter().map(|s| format!("; left out: {}: {}", s.path, s.why)).collect();
    Ok(match own_nic(listing.members, address) {
        Some(resource) => Located::At(Spot::patch(resource, members)),
        None => Located::Absent { why: format!("no interface in '{path}' is the BMC's NIC{}", left_out.concat()) },
    })
}

/// The BMC's NIC: the interface with the address in use, else the first that does not lead to the host.
fn own_nic(members: Vec<Resource>, address: Option<IpAddr>) -> Option<Resource> {
    let outward: Vec<Resource> = members.into_iter().filter(leads_outward).collect();
    let in_use = outward.iter().position(|nic| address.is_some_and(|a| addresses(nic).contains(&a)));
    outward.into_iter().nth(in_use.unwrap_or(0))
}

fn leads_outward(nic: &Resource) -> bool {
    let to_host = nic.id().eq_ignore_ascii_case("ToHost") || nic.id().to_ascii_lowercase().starts_with("usb");
    let link_local = addresses(nic).iter().any(|a| matches!(a, IpAddr::V4(v4) if v4.is_link_local()));
    !to_host && !link_local && nic.flag("InterfaceEnabled") != Some(false)
}

fn addresses(nic: &Resource) -> Vec<IpAddr> {
    let lists = ["IPv4Addresses", "IPv6Addresses"].into_iter().filter_map(|list| nic.at(list)?.as_array());
    lists.flatten().filter_map(|entry| entry["Address"].as_str()?.trim().parse().ok()).collect()
}

/// A protocol of `NetworkProtocol`, by its members there; absent where the BMC does not list the object `of`.
pub async fn in_network_protocol(
    redfish: &Redfish,
    bmc: &Resource,
    of: &str,
    members: Vec<(&'static str, Value)>,
) -> Result<Located, RedfishError> {
    match network_protocol(redfish, bmc).await? {
        Some(resource) if resource.at(of).is_some_and(Value::is_object) => {
            Ok(Located::At(Spot::patch(resource, members)))
        }
        _ => Ok(Located::Absent { why: format!("the BMC has no 'NetworkProtocol.{of}'") }),
    }
}

/// IPMI over LAN.
pub async fn ipmi_over_lan(redfish: &Redfish, bmc: &Resource) -> Result<Located, RedfishError> {
    in_network_protocol(redfish, bmc, "IPMI", vec![("/IPMI/ProtocolEnabled", json!(true))]).await
}

/// A resource behind a link of another one, or `None` where the model lacks it.
pub async fn linked(redfish: &Redfish, from: &Resource, pointer: &str) -> Result<Option<Resource>, RedfishError> {
    let Some(path) = from.link(pointer) else { return Ok(None) };
    found_linked(redfish, &path).await
}

/// The network protocols of a BMC, where it lists them.
pub async fn network_protocol(redfish: &Redfish, bmc: &Resource) -> Result<Option<Resource>, RedfishError> {
    let Some(path) = bmc.link("NetworkProtocol") else { return Ok(None) };
    found(redfish.get(&path).await)
}

/// The members of a collection that another resource links to, or `None` where the model lacks it.
pub async fn listed(redfish: &Redfish, path: &str) -> Result<Option<Listing>, RedfishError> {
    believed(redfish.list(path).await, redfish.list(path)).await
}

/// A resource that another one links to; `None` where there is nothing behind the link.
pub async fn found_linked(redfish: &Redfish, path: &str) -> Result<Option<Resource>, RedfishError> {
    believed(redfish.get(path).await, redfish.get(path)).await
}

/// What is behind a link, asked for once and, where there was nothing, once more after a moment; `None` where there is
/// nothing then either. Firmware builds some of it when it is asked for (Q9), and what is taken for missing is left out of a
/// change.
pub async fn believed<T>(
    first: Result<T, RedfishError>,
    again: impl Future<Output = Result<T, RedfishError>>,
) -> Result<Option<T>, RedfishError> {
    match first {
        Err(e) if e.is_absent() => tokio::time::sleep(Duration::from_millis(200)).await,
        told => return told.map(Some),
    }
    match again.await {
        Err(e) if e.is_absent() => Ok(None),
        told => told.map(Some),
    }
}

/// What was read; `None` where there is nothing.
pub fn found(read: Result<Resource, RedfishError>) -> Result<Option<Resource>, RedfishError> {
    match read {
        Ok(resource) => Ok(Some(resource)),
        Err(e) if e.is_absent() => Ok(None),
        Err(e) => Err(e),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nic(body: Value) -> Resource {
        Resource { path: "/nic".into(), body: body.as_object().unwrap().clone(), etag: None }
    }

    #[test]
    fn the_bmcs_nic_is_the_one_with_the_address_in_use_and_never_the_one_to_the_host() {
        let to_host = nic(json!({"Id": "ToHost", "IPv4Addresses": [{"Address": "169.254.3.254"}]}));
        let usb = nic(json!({"Id": "usb0"}));
        let link_local = nic(json!({"Id": "3", "IPv4Addresses": [{"Address": "169.254.3.1"}]}));
        let off = nic(json!({"Id": "4", "InterfaceEnabled": false}));
        let first = nic(json!({"Id": "1", "IPv4Addresses": [{"Address": null}, {"Address": "192.0.2.1"}]}));
        let second = nic(json!({"Id": "2", "IPv6Addresses": [{"Address": "2001:db8::7"}]}));
        let all = vec![to_host.clone(), usb, link_local, off, first, second];
        assert_eq!(own_nic(all.clone(), "2001:db8::7".parse().ok()).unwrap().id(), "2");
        assert_eq!(own_nic(all.clone(), "198.51.100.1".parse().ok()).unwrap().id(), "1");
        assert_eq!(own_nic(all, None).unwrap().id(), "1");
        assert_eq!(own_nic(vec![to_host], None), None);
    }
}

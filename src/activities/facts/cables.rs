//! Follows a host's cables to their far ends: switch, port, the port's LAG, label and colour.

use std::collections::{BTreeMap, BTreeSet};

use crate::activities::env::ActivityCx;
use crate::clients::netbox::NetBox;
use crate::clients::netbox::error::NetBoxError;
use crate::clients::netbox::records::{CableRecord, Endpoint, InterfaceRecord};
use crate::domain::host::CablePeer;
use crate::domain::text::neutralize;

/// What is known of the far ends. The peer within an interface has no LAG and a cable there has no colour, so both are read
/// apart, all ends at once.
#[derive(Debug, Default)]
pub struct Cabling {
    /// Name of the LAG of a switch port, by the port's id.
    lags: BTreeMap<u64, String>,
    cables: BTreeMap<u64, CableRecord>,
}

impl Cabling {
    pub async fn read(cx: &ActivityCx, interfaces: &[InterfaceRecord]) -> Result<Self, NetBoxError> {
        let netbox = &cx.env.clients.netbox;
        let ports: BTreeSet<u64> = interfaces.iter().filter_map(far_end).map(|end| end.id).collect();
        let cables: BTreeSet<u64> = interfaces.iter().filter_map(|i| i.cable.as_ref()).map(|c| c.id).collect();
        for interface in interfaces.iter().filter(|i| i.cable.is_some() && far_end(i).is_none()) {
            let name = neutralize(&interface.name);
            cx.note("netbox", format!("the cable of '{name}' does not lead to an interface; {}", near_end(interface)));
        }
        let (ports, cables): (Vec<u64>, Vec<u64>) = (ports.into_iter().collect(), cables.into_iter().collect());
        let (ports, cables) = futures::join!(netbox.interfaces(&ports), netbox.cables(&cables));
        let cables = match cables {
            Ok(cables) => cables,
            Err(NetBoxError::Permission { .. }) => {
                // Only people at the rack miss the colour; nothing is decided by it.
                cx.note("netbox", "cable colours are unknown: the token may not view dcim.cable");
                Vec::new()
            }
            Err(error) => return Err(error),
        };
        Ok(Cabling::of(ports?, cables))
    }

    pub(super) fn of(ports: Vec<InterfaceRecord>, cables: Vec<CableRecord>) -> Self {
        Cabling {
            lags: ports.into_iter().filter_map(|port| Some((port.id, port.lag?.name))).collect(),
            cables: cables.into_iter().map(|cable| (cable.id, cable)).collect(),
        }
    }

    /// The far end of an interface's cable path, through patch panels.
    pub fn peer(&self, interface: &InterfaceRecord) -> Option<CablePeer> {
        let end = far_end(interface)?;
        let near = interface.cable.as_ref();
        let cable = near.and_then(|cable| self.cables.get(&cable.id));
        let label = cable.and_then(|c| c.label.clone()).or_else(|| near.and_then(|c| c.label.clone()));
        Some(CablePeer {
            switch: end.device.as_ref().and_then(|device| device.name.clone()).unwrap_or_default(),
            port: end.name.clone().unwrap_or_default(),
            port_lag: self.lags.get(&end.id).cloned(),
            cable_label: label.filter(|label| !label.is_empty()),
            cable_color: cable.and_then(|c| c.color.clone()).filter(|color| !color.is_empty()),
        })
    }
}

/// The switches at the far ends of a device's cables, through patch panels, each once. All its cables count, that of the
/// management interface too.
pub async fn switches(netbox: &NetBox, device: u64) -> Result<Vec<String>, NetBoxError> {
    let interfaces = netbox.interfaces_of(device).await?;
    let ends = interfaces.iter().filter_map(far_end);
    let names = ends.filter_map(|end| Some(neutralize(end.device.as_ref()?.name.as_deref()?).into_owned()));
    Ok(names.collect::<BTreeSet<String>>().into_iter().collect())
}

/// The interface at the end of the path. A cable that goes straight to an interface is its own path. Of several ends (a
/// breakout) the one with the lowest id, so that two reads agree.
fn far_end(interface: &InterfaceRecord) -> Option<&Endpoint> {
    let ends = |list: &'_ Option<Vec<Endpoint>>, kind: &Option<String>| -> bool {
        kind.as_deref() == Some("dcim.interface") && list.as_ref().is_some_and(|list| !list.is_empty())
    };
    let list = if ends(&interface.connected_endpoints, &interface.connected_endpoints_type) {
        &interface.connected_endpoints
    } else if ends(&interface.link_peers, &interface.link_peers_type) {
        &interface.link_peers
    } else {
        return None;
    };
    let named = |end: &&Endpoint| end.name.is_some() && end.device.as_ref().is_some_and(|d| d.name.is_some());
    list.iter().flatten().filter(named).min_by_key(|end| end.id)
}

/// What the cable itself goes to, in words.
fn near_end(interface: &InterfaceRecord) -> String {
    let Some(peer) = interface.link_peers.iter().flatten().next() else { return "its other end is open".to_owned() };
    let device = peer.device.as_ref().and_then(|d| d.name.as_deref()).unwrap_or("something without a device");
    format!("it goes to '{}' of '{}'", neutralize(peer.name.as_deref().unwrap_or("?")), neutralize(device))
}

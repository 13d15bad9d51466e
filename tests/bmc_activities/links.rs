//! The link guard's eyes: what the BMC says of each frontend link.

use std::time::Duration;

use muster::activities::bmc::read_links;
use muster::domain::failure::FailureCode;
use muster::domain::link::LinkState::{self, Down, Unknown, Up};
use muster::domain::phase::Phase;
use muster::lab::faults::{DarkLink, Fault, HttpRule};
use muster::lab::world::World;
use muster::workflows::defs::PhaseTarget;

use super::{HOST, Rig};

fn input(rig: &Rig) -> PhaseTarget {
    PhaseTarget { target: rig.target(), phase: Phase::Inspection }
}

async fn states(rig: &Rig) -> Vec<(String, LinkState)> {
    let readings = read_links(&rig.cx, input(rig)).await.unwrap().readings;
    readings.into_iter().map(|reading| (reading.interface, reading.state)).collect()
}

async fn power_on(world: &World) {
    world.press(HOST, muster::lab::machine::PowerAction::On);
    world.sleep(Duration::from_secs(40)).await;
}

fn both(state: LinkState) -> Vec<(String, LinkState)> {
    ["eth0", "eth1"].map(|name| (name.to_owned(), state)).to_vec()
}

#[tokio::test]
async fn each_frontend_link_is_read_with_its_mac_slot_and_cable() {
    let rig = Rig::start().await;
    assert_eq!(states(&rig).await, both(Down));
    power_on(rig.lab.world()).await;
    let readings = read_links(&rig.cx, input(&rig)).await.unwrap().readings;
    let machine = rig.machine();
    for reading in &readings {
        let nic = machine.nic(&reading.interface).unwrap();
        assert_eq!((reading.state, reading.mac), (Up, Some(nic.mac)));
        assert!(reading.slot.as_ref().is_some_and(|slot| slot.contains(&nic.slot)), "{reading:?}");
        let (cable, plug) = (reading.cable.as_ref().unwrap(), nic.recorded.as_ref().unwrap());
        assert_eq!((&cable.switch, &cable.port), (&plug.switch, &plug.port));
        assert!(cable.label.is_some() && cable.color.is_some(), "{cable:?}");
    }
    assert_eq!(readings.len(), 2);
    assert!(rig.asked().iter().all(|entry| !entry.write));
}

#[tokio::test]
async fn a_dark_link_is_down_beside_one_that_is_up() {
    let rig = Rig::start().await;
    power_on(rig.lab.world()).await;
    let interfaces = vec!["eth1".to_owned()];
    rig.lab.world().add_fault(Fault::DarkLink(DarkLink {
        device: HOST.into(),
        interfaces,
        for_s: 600.0,
        at_s: Some(0.0),
    }));
    assert_eq!(states(&rig).await, [("eth0".to_owned(), Up), ("eth1".to_owned(), Down)]);
}

/// Case: C-32
#[tokio::test]
async fn links_that_the_bmc_does_not_tell_are_unknown() {
    let rig = Rig::of(|scenario| scenario.hosts[0].links_unreported = true).await;
    power_on(rig.lab.world()).await;
    assert_eq!(states(&rig).await, both(Unknown));
}

/// Proves: L3
#[tokio::test]
async fn a_bmc_that_cannot_tell_links_at_all_fails_the_attempt() {
    let rig = Rig::start().await;
    for path in ["*/EthernetInterfaces", "*/NetworkAdapters"] {
        rig.rule(HttpRule { path: Some(path.into()), status: Some(404), ..HttpRule::default() });
    }
    let failure = read_links(&rig.cx, input(&rig)).await.unwrap_err();
    assert_eq!((failure.code, failure.phase), (FailureCode::BmcLinkUnsupported, Phase::Inspection));
}

/// Proves: L3
#[tokio::test]
async fn errors_of_the_bmc_are_not_unknown_links() {
    let rig = Rig::start().await;
    let path = Some("*/EthernetInterfaces".to_owned());
    rig.rule(HttpRule { path, status: Some(500), ..HttpRule::default() });
    let failure = read_links(&rig.cx, input(&rig)).await.unwrap_err();
    assert_eq!(failure.code, FailureCode::BmcHttpServiceUnavailable);
}

/// Proves: L3
/// Case: C-32
#[tokio::test]
async fn a_host_without_frontend_interfaces_is_an_error_and_not_all_down() {
    let rig = Rig::of(|scenario| {
        let text = "[ironic_settings]\ninterface_type = \"nothing\"\ninterfaces = []\n";
        scenario.hosts[0].context = text.parse().unwrap();
    })
    .await;
    let failure = read_links(&rig.cx, input(&rig)).await.unwrap_err();
    assert_eq!(failure.code, FailureCode::NetboxDataMissing);
    assert!(failure.message.contains("frontend"), "{failure}");
}

/// Proves: L4
#[tokio::test]
async fn links_are_read_from_the_bmc_of_a_host_whose_driver_is_ipmi() {
    let rig = Rig::of(|scenario| {
        scenario.hosts[0].context = "[ironic_settings]\ndriver = \"ipmi\"\n".parse().unwrap();
    })
    .await;
    power_on(rig.lab.world()).await;
    assert_eq!(states(&rig).await, both(Up));
}

/// A BMC of a vendor that cannot be configured by this version still tells its links.
#[tokio::test]
async fn links_are_read_whichever_vendor_it_is() {
    let rig = Rig::start().await;
    power_on(rig.lab.world()).await;
    let body = serde_json::json!({"Id": "Root", "Vendor": "Contoso", "Systems": {"@odata.id": "/redfish/v1/Systems"}});
    rig.rule(HttpRule {
        path: Some("/redfish/v1/".into()),
        status: Some(200),
        body: Some(body),
        ..HttpRule::default()
    });
    assert_eq!(states(&rig).await, both(Up));
}

/// A look costs few requests: it comes every few seconds.
#[tokio::test]
async fn a_look_asks_little() {
    let rig = Rig::start().await;
    states(&rig).await;
    // Root, two for the system, the interfaces at once, and two for each of two links.
    assert_eq!(rig.asked().len(), 8, "{:#?}", rig.asked().iter().map(|e| &e.path).collect::<Vec<_>>());
}

//! Boot options: their order, and the evidence of the NIC behind each.

use muster::clients::redfish::dell::Dell;
use muster::clients::redfish::dialect::{Change, Staging};
use muster::domain::boot::{BootSetup, Kind, restrict};
use muster::lab::machine::Quirk;
use serde_json::json;

use super::Rig;

fn evidence(setup: &BootSetup, name: &str) -> Vec<String> {
    let option = setup.options.iter().find(|option| option.name.starts_with(name)).unwrap();
    option.evidence.iter().map(|e| format!("{} {}", e.source, e.mac)).collect()
}

#[tokio::test]
async fn options_are_read_in_the_order_in_which_they_are_tried() {
    let rig = Rig::start().await;
    let setup = rig.boot().await;
    let names: Vec<&str> = setup.options.iter().map(|option| option.name.split(':').next().unwrap()).collect();
    assert_eq!(names, ["PCIe SSD in Slot 2 in Bay 1", "Virtual Optical Drive", "PXE Device 2", "PXE Device 1"]);
    let kinds: Vec<Kind> = setup.options.iter().map(|option| option.kind).collect();
    assert_eq!(kinds, [Kind::Other, Kind::Other, Kind::PxeV4, Kind::PxeV4]);
    assert_eq!((setup.incomplete.clone(), setup.staged.clone()), (None, None));
    // The collection has them by their numbers.
    let listed = rig.redfish.list("/redfish/v1/Systems/System.Embedded.1/BootOptions").await.unwrap();
    let listed: Vec<String> = listed.members.iter().map(|member| member.id()).collect();
    assert_ne!(listed, setup.order());
}

#[tokio::test]
async fn every_way_that_leads_to_a_nic_is_evidence() {
    let rig = Rig::start().await;
    let (setup, mac) = (rig.boot().await, rig.mac("eth0"));
    let ways = ["RelatedItem", "PxeDev1Interface", "DeviceDescription"].map(|way| format!("{way} {mac}"));
    assert_eq!(evidence(&setup, "PXE Device 1"), ways);
    assert!(evidence(&setup, "PCIe SSD").is_empty());
    let done = restrict(&setup, mac).unwrap();
    assert!(done.keeps.starts_with("PXE Device 1"));
    assert_eq!((done.enable.len(), done.disable.len()), (0, 1));
}

#[tokio::test]
async fn without_a_related_item_the_other_ways_are_left() {
    let rig = Rig::with(&[Quirk::RelatedItemNull]).await;
    let (setup, mac) = (rig.boot().await, rig.mac("eth1"));
    let ways = ["PxeDev2Interface", "DeviceDescription"].map(|way| format!("{way} {mac}"));
    assert_eq!(evidence(&setup, "PXE Device 2"), ways);
    assert!(restrict(&setup, mac).is_ok());
}

#[tokio::test]
async fn an_idrac10_has_the_address_in_the_name_and_no_path() {
    let rig = Rig::with(&[Quirk::Idrac10]).await;
    let (setup, mac) = (rig.boot().await, rig.mac("eth0"));
    let found = evidence(&setup, "PXE Device 1");
    assert_eq!(found, ["DisplayName", "PxeDev1Interface"].map(|way| format!("{way} {mac}")));
    assert!(restrict(&setup, mac).is_ok());
}

/// The firmware was told another NIC than the option's own name says: nothing may be concluded.
#[tokio::test]
async fn evidence_that_disagrees_is_no_identification() {
    let rig = Rig::with(&[Quirk::RelatedItemNull]).await;
    let fqdds = ["NIC.Slot.1-1", "NIC.Slot.2-1"];
    rig.change_machine(|machine| {
        let bios = &mut machine.bmc.settings.get_mut("dell").unwrap()["bios"];
        assert_eq!(bios["PxeDev1Interface"], fqdds[0]);
        bios["PxeDev1Interface"] = json!(fqdds[1]);
    });
    let setup = rig.boot().await;
    let why = restrict(&setup, rig.mac("eth0")).unwrap_err();
    assert!(why.contains("PxeDev1Interface") && why.contains("DeviceDescription"), "{why}");
}

/// The provisioning NIC has no option as long as no device of the firmware is that NIC.
#[tokio::test]
async fn a_nic_without_an_option_gets_one_by_attributes_and_can_be_restricted_to_after_the_boot() {
    let rig = Rig::of(&[], |scenario| {
        let model = scenario.types.get_mut(&scenario.hosts[0].device_type).unwrap();
        model.extra_nics = 1;
    })
    .await;
    let mac = rig.mac("eth2");
    let why = restrict(&rig.boot().await, mac).unwrap_err();
    assert!(why.contains("no boot option is proven"), "{why}");
    let parts = rig.parts().await;
    assert_eq!(Dell.make_bootable(rig.at(&parts), rig.mac("eth0")).await.unwrap(), []);
    let attributes = Dell.make_bootable(rig.at(&parts), mac).await.unwrap();
    let want = [("PxeDev3EnDis", "Enabled"), ("PxeDev3Interface", "NIC.Slot.3-1")];
    assert_eq!(attributes, want.map(|(name, value)| (name.to_owned(), json!(value))));
    assert_eq!(rig.carry_through(&Change { attributes, boot: None }).await, 1);
    let done = restrict(&rig.boot().await, mac).unwrap();
    assert!(done.keeps.starts_with("PXE Device 3"));
    assert_eq!(done.disable.len(), 2);
}

#[tokio::test]
async fn a_device_that_is_switched_on_becomes_an_option_by_the_next_boot() {
    let rig = Rig::start().await;
    let mac = rig.mac("eth0");
    let change = super::attributes(&[("HttpDev1EnDis", "Enabled"), ("HttpDev1Interface", "NIC.Slot.1-1")]);
    let parts = rig.parts().await;
    let bios = Dell.bios(rig.at(&parts), &["HttpDev1Interface".to_owned()]).await.unwrap().unwrap();
    // Its NIC can be set only with the device on.
    assert!(bios.rules["HttpDev1Interface"].read_only);
    assert_eq!(rig.carry_through(&change).await, 1);
    let setup = rig.boot().await;
    let http = setup.options.iter().find(|option| option.name.starts_with("HTTP Device 1")).unwrap();
    assert_eq!((http.kind, http.nic().unwrap()), (Kind::HttpV4, Some(mac)));
}

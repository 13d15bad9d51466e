//! What an XCC keeps for the next boot: firmware attributes, classes, and the NICs within their class.

use std::collections::BTreeMap;

use muster::clients::http::Method;
use muster::clients::redfish::RedfishError;
use muster::clients::redfish::dialect::{BootChange, Change};
use muster::domain::bios::{Bios, difference};
use muster::domain::boot::{Kind, network_first, nic_first};
use muster::lab::machine::Quirk;
use serde_json::json;

use super::bmc::Rig;
use super::{converged, fresh};

const PENDING: &str = "PATCH /redfish/v1/Systems/1/Pending";
const OWN: &str = "PATCH /redfish/v1/Systems/1/Oem/Lenovo/BootSettings/BootOrder";

fn wanted() -> BTreeMap<String, String> {
    let pairs = [
        ("BootModes_SystemBootMode", "UEFIMode"),
        ("DevicesandIOPorts_SRIOV", "Enabled"),
        ("LegacyBIOS_LegacyBIOS", "Disabled"),
        ("NetworkStackSettings_NetworkStack", "Enabled"),
        ("NetworkStackSettings_PXEbootwaittime", "3"),
        ("OperatingModes_ChooseOperatingMode", "Ludicrous"),
        ("Processors_SVMMode", "Enabled"),
    ];
    pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).into()
}

async fn bios(rig: &Rig) -> Bios {
    let parts = rig.parts().await;
    let names: Vec<String> = wanted().into_keys().collect();
    rig.staging().bios(parts.at(&rig.redfish), &names).await.unwrap().unwrap()
}

/// Staged once, pending until a boot, in force after it; the registry decides what is tried at all.
#[tokio::test]
async fn attributes_are_staged_pending_and_in_force_after_a_boot() {
    for quirks in [&[][..], &[Quirk::PendingListsChangesOnly, Quirk::AnnotationOnlyReplies, Quirk::IfMatchRequired]] {
        let rig = fresh(quirks).await;
        let found = difference(&bios(&rig).await, &wanted());
        let write: Vec<(&str, &serde_json::Value)> = found.write.iter().map(|(name, _, to)| (&**name, to)).collect();
        assert_eq!(
            write,
            [
                ("BootModes_SystemBootMode", &json!("UEFIMode")),
                ("DevicesandIOPorts_SRIOV", &json!("Enabled")),
                ("NetworkStackSettings_PXEbootwaittime", &json!(3)),
            ]
        );
        let skipped: Vec<&str> = found.skipped.iter().map(|(name, _)| &**name).collect();
        assert_eq!(skipped, ["LegacyBIOS_LegacyBIOS", "OperatingModes_ChooseOperatingMode", "Processors_SVMMode"]);
        rig.forget_requests();
        let attributes = found.write.into_iter().map(|(name, _, to)| (name, to)).collect();
        rig.stage(&Change { attributes, boot: None }).await;
        assert_eq!(rig.writes(), ["PATCH /redfish/v1/Systems/1/Bios/Pending"]);

        let staged = bios(&rig).await;
        assert_eq!(staged.staged.len(), 3, "{:?}", staged.staged);
        let found = difference(&staged, &wanted());
        assert!(found.write.is_empty());
        assert_eq!(found.awaits_boot.len(), 3);
        assert_eq!(staged.now["BootModes_SystemBootMode"], json!("LegacyMode"));

        rig.restart().await;
        let now = bios(&rig).await;
        assert!(now.staged.is_empty());
        let found = difference(&now, &wanted());
        assert!(found.write.is_empty() && found.awaits_boot.is_empty(), "{found:?}");
        assert_eq!(now.now["NetworkStackSettings_PXEbootwaittime"], json!(3));
    }
}

#[tokio::test]
async fn classes_and_the_entries_of_the_network_are_one_order() {
    let rig = fresh(&[]).await;
    let setup = rig.boot().await;
    let names: Vec<&str> = setup.options.iter().map(|option| option.name.as_str()).collect();
    assert_eq!(names[..3], ["CD_DVDRom", "HardDisk", "USBStorage"]);
    assert!(names[3].starts_with("UEFI:") && names[3].contains("PXE IPv6"), "{names:?}");
    let kinds: Vec<Kind> = setup.options.iter().map(|option| option.kind).collect();
    assert_eq!(kinds[..5], [Kind::Other, Kind::Other, Kind::Other, Kind::PxeV6, Kind::PxeV4]);
    let nics: Vec<_> = setup.options.iter().filter_map(|option| option.nic().unwrap()).collect();
    assert!(nics.contains(&rig.mac("eth0")) && nics.contains(&rig.mac("eth1")));
    // The firmware's own blanks are kept: they are part of what is written back.
    assert!(setup.options[3].reference.starts_with("Boot0003/UEFI:   SLOT"), "{}", setup.options[3].reference);
    assert!(setup.options[3].reference.contains("PXE IPv6  Nvidia"));
    assert_eq!((setup.staged, setup.aside, setup.incomplete), (None, vec![], None));
}

/// Which order is wanted is decided elsewhere.
#[tokio::test]
async fn an_order_is_staged_in_two_writes_pending_and_in_force_after_a_boot() {
    let rig = fresh(&[Quirk::IfMatchRequired, Quirk::AnnotationOnlyReplies]).await;
    let eth1 = rig.mac("eth1");
    let order = nic_first(&rig.boot().await, eth1).unwrap();
    rig.forget_requests();
    rig.stage_boot(order.clone(), vec![], vec![]).await;
    assert_eq!(rig.writes(), [format!("{OWN}.NetworkBootOrder"), PENDING.to_owned()]);

    let staged = rig.boot().await;
    assert_eq!(staged.staged.as_ref(), Some(&order));
    assert_ne!(staged.order(), order);
    rig.forget_requests();
    rig.stage_boot(order.clone(), vec![], vec![]).await;
    assert_eq!(rig.writes(), Vec::<String>::new(), "what is staged is not staged again");

    rig.restart().await;
    let now = rig.boot().await;
    assert_eq!((now.order(), now.staged.clone()), (order.clone(), None));
    assert_eq!(nic_first(&now, eth1).unwrap(), order);
    assert_eq!(now.options[0].nic(), Ok(Some(eth1)));
    assert_eq!(now.options[0].kind, Kind::PxeV4);
    rig.forget_requests();
    rig.stage_boot(order, vec![], vec![]).await;
    assert_eq!(rig.writes(), Vec::<String>::new());
}

#[tokio::test]
async fn a_host_that_was_enrolled_before_has_its_order_already() {
    let rig = converged().await;
    let setup = rig.boot().await;
    assert_eq!(nic_first(&setup, rig.mac("eth0")).unwrap(), setup.order());
    assert_eq!(network_first(&setup), setup.order());
}

/// The members of the vendor's collection are built by a read of it.
#[tokio::test]
async fn the_vendors_own_order_is_read_through_its_parent() {
    let rig = fresh(&[]).await;
    let child = "/redfish/v1/Systems/1/Oem/Lenovo/BootSettings/BootOrder.NetworkBootOrder";
    assert_eq!(rig.get(child).await.0, 404);
    assert!(rig.boot().await.options.iter().any(|option| option.kind == Kind::PxeV4));
    assert_eq!(rig.get(child).await.0, 200);
    rig.restart().await;
    assert_eq!(rig.get(child).await.0, 404, "a boot makes it forget them");
    // Staging reads for itself.
    let mut order = network_first(&rig.boot().await);
    rig.restart().await;
    order.rotate_left(1);
    rig.stage_boot(order, vec![], vec![]).await;
}

/// The firmware drops its disks from the order: without them the host boots nothing that was installed.
#[tokio::test]
async fn disks_that_the_firmware_dropped_are_taken_back() {
    let rig = fresh(&[Quirk::DropsHardDisk]).await;
    let order = network_first(&rig.boot().await);
    rig.stage_boot(order.clone(), vec![], vec![]).await;
    rig.restart().await;
    let dropped = rig.boot().await;
    assert!(!dropped.options.iter().any(|option| option.name == "HardDisk"));
    let aside: Vec<&str> = dropped.aside.iter().map(|option| option.name.as_str()).collect();
    assert_eq!(aside, ["Hard Disk"]);
    let order = network_first(&dropped);
    assert_eq!(order.last().map(String::as_str), Some("Hard Disk"));
    rig.forget_requests();
    rig.stage_boot(order.clone(), vec![], vec![]).await;
    assert_eq!(rig.writes(), [format!("{OWN}.BootOrder")]);
    assert!(rig.boot().await.staged.is_some());
    rig.restart().await;
    let now = rig.boot().await;
    assert!(now.options.iter().any(|option| option.name == "HardDisk") && now.aside.is_empty(), "{now:?}");
    assert_eq!(network_first(&now), now.order());
}

#[tokio::test]
async fn what_it_has_no_way_to_do_is_said_and_writes_nothing() {
    let rig = fresh(&[]).await;
    let parts = rig.parts().await;
    let order = rig.boot().await.order();
    let boot = Some(BootChange { disable: vec![order[3].clone()], order, enable: vec![] });
    rig.forget_requests();
    let refused = rig.staging().stage(parts.at(&rig.redfish), &Change { boot, attributes: vec![] }).await;
    assert!(matches!(refused, Err(RedfishError::Unusable { .. })));
    assert_eq!(rig.writes(), Vec::<String>::new());
    assert!(rig.staging().jobs(parts.at(&rig.redfish)).await.unwrap().is_empty());
    assert!(rig.staging().job(parts.at(&rig.redfish), "1").await.is_err());
    rig.staging().withdraw(parts.at(&rig.redfish), "1").await.unwrap();
    // A class that no longer has a boot option is unknown to the standard resource.
    let body = json!({"Boot": {"BootOrder": ["Boot0099"]}});
    let (status, _) = rig.ask(Method::PATCH, "/redfish/v1/Systems/1/Pending", Some(body), &[]).await;
    assert_eq!(status, 400);
}

/// An XCC3 has no resource for the order of its NICs: a firmware attribute for each place holds the entry in it.
#[tokio::test]
async fn an_xcc3_orders_its_nics_by_firmware_attributes_in_one_write() {
    let rig = fresh(&[Quirk::Xcc3, Quirk::PendingListsChangesOnly]).await;
    assert_eq!(rig.get("/redfish/v1/Systems/1/Oem/Lenovo/BootSettings").await.0, 404);
    let setup = rig.boot().await;
    let kinds: Vec<Kind> = setup.options.iter().skip(3).map(|option| option.kind).collect();
    assert_eq!(kinds[..3], [Kind::PxeV6, Kind::PxeV4, Kind::HttpV4]);
    let eth1 = rig.mac("eth1");
    let order = nic_first(&setup, eth1).unwrap();
    rig.forget_requests();
    rig.stage_boot(order.clone(), vec![], vec![]).await;
    assert_eq!(rig.writes(), ["PATCH /redfish/v1/Systems/1/Bios/Pending", PENDING]);
    let staged = rig.boot().await;
    assert_eq!((staged.staged.as_ref(), staged.order() == order), (Some(&order), false));
    rig.forget_requests();
    rig.stage_boot(order.clone(), vec![], vec![]).await;
    assert_eq!(rig.writes(), Vec::<String>::new(), "what is staged is not staged again");
    rig.restart().await;
    let now = rig.boot().await;
    assert_eq!((now.order(), now.staged.clone(), now.options[0].nic()), (order, None, Ok(Some(eth1))));
    // No two places hold one entry, and none is lost: the firmware takes nothing else.
    let body = json!({"Attributes": {"BootOrder_NetworkPriority_2": rig.kept("lenovo", "/network/0")}});
    let (status, _) = rig.ask(Method::PATCH, "/redfish/v1/Systems/1/Bios/Pending", Some(body), &[]).await;
    assert_eq!(status, 400);
}

/// Fails closed: entries that do not read as those of two public clients are not moved, and the run is told why.
#[tokio::test]
async fn an_xcc3_whose_entries_read_otherwise_has_its_classes_ordered_and_no_nic_singled_out() {
    let rig = fresh(&[Quirk::Xcc3]).await;
    let eth0 = rig.mac("eth0");
    let entries = rig.kept("lenovo", "/network");
    let foreign: Vec<String> = (0..entries.as_array().unwrap().len()).map(|n| format!("NIC {n}")).collect();
    rig.set("lenovo", "/network", json!(foreign));
    let setup = rig.boot().await;
    let why = nic_first(&setup, eth0).unwrap_err();
    assert!(why.contains("no boot option is proven to be"), "{why}");
    let order = network_first(&setup);
    rig.forget_requests();
    rig.stage_boot(order, vec![], vec![]).await;
    assert_eq!(rig.writes(), [PENDING]);
    // The same entry twice says nothing of either.
    rig.set("lenovo", "/network", entries.clone());
    rig.set("lenovo", "/network/1", entries[0].clone());
    let why = nic_first(&rig.boot().await, eth0).unwrap_err();
    assert!(why.contains("in two places"), "{why}");
}

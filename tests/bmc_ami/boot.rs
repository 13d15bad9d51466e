//! The boot restriction on a MegaRAC: evidence, staging, and what a boot makes of it.

use muster::clients::redfish::RedfishError;
use muster::clients::redfish::dialect::Change;
use muster::domain::boot::{BootSetup, Kind, Restriction, restrict};
use muster::lab::machine::Quirk;
use serde_json::json;

use super::bmc::Rig;
use super::{converged, fresh};

const SYSTEM: &str = "/redfish/v1/Systems/Self";

async fn restriction(rig: &Rig, nic: &str) -> (BootSetup, Restriction) {
    let setup = rig.boot().await;
    let restriction = restrict(&setup, rig.mac(nic)).unwrap();
    (setup, restriction)
}

async fn stage(rig: &Rig, change: &Restriction) {
    rig.stage_boot(change.order.clone(), change.enable.clone(), change.disable.clone()).await;
}

/// Which NIC an option is of is read from paths; names tell it of some only.
#[tokio::test]
async fn options_are_read_in_their_order_with_the_nic_of_each_path() {
    let rig = fresh(&[]).await;
    let setup = rig.boot().await;
    let (eth0, eth1) = (rig.mac("eth0"), rig.mac("eth1"));
    let first: Vec<&str> = setup.options.iter().map(|option| option.name.as_str()).take(3).collect();
    assert_eq!(first, ["ubuntu", "UEFI: Built-in EFI Shell", "UEFI: AMI Virtual CDROM0 1.00"]);
    let of = |mac| setup.options.iter().filter(|o| o.nic() == Ok(Some(mac))).map(|o| o.kind).collect::<Vec<_>>();
    assert_eq!(of(eth0), [Kind::PxeV4, Kind::HttpV4]);
    assert_eq!(of(eth1), [Kind::PxeV4, Kind::HttpV4]);
    let sources: Vec<usize> = setup.options.iter().map(|option| option.evidence.len()).collect();
    assert!(sources.contains(&1) && sources.contains(&2), "{sources:?}");
    // The BMC's own NIC is one too, and disabled from the start.
    let own: Vec<Option<bool>> =
        setup.options.iter().filter(|o| o.name.contains("American")).map(|o| o.enabled).collect();
    assert_eq!(own, [Some(false), Some(false)]);
}

/// The provisioning NIC first, all other NICs off, everything else bootable; pending until a boot, and then in force.
#[tokio::test]
async fn a_restriction_is_staged_once_and_in_force_after_a_boot() {
    for quirks in [
        &[][..],
        &[Quirk::CompositeBootOrder],
        &[Quirk::DisabledOptionsVanish],
        &[Quirk::NoSettingsAnnotation],
        &[Quirk::SettingsRefused],
        &[Quirk::CompositeBootOrder, Quirk::DisabledOptionsVanish, Quirk::ExpandDropsMembers],
    ] {
        let rig = fresh(quirks).await;
        let (before, change) = restriction(&rig, "eth1").await;
        rig.forget_requests();
        stage(&rig, &change).await;
        let writes = rig.writes();
        let refused = quirks.contains(&Quirk::SettingsRefused);
        let each = if refused { 2 } else { 1 };
        assert_eq!(writes.len(), (1 + change.disable.len()) * each, "{quirks:?} {writes:?}");
        // The order comes before what is disabled.
        assert!(writes[0].starts_with(&format!("PATCH {SYSTEM}")) && !writes[0].contains("BootOptions"), "{writes:?}");

        let staged = rig.boot().await;
        assert_eq!(staged.staged.as_ref(), Some(&change.order), "{quirks:?}");
        assert_eq!(staged.order(), before.order());
        rig.forget_requests();
        stage(&rig, &change).await;
        assert_eq!(rig.writes(), Vec::<String>::new(), "what is staged is not staged again");

        rig.restart().await;
        rig.pass(30).await;
        let (now, again) = restriction(&rig, "eth1").await;
        assert!(again.is_satisfied_by(&now), "{quirks:?} {now:#?}");
        assert_eq!((now.options[0].kind, now.options[0].nic()), (Kind::PxeV4, Ok(Some(rig.mac("eth1")))));
        for option in now.options.iter().chain(&now.aside) {
            let stays = option.reference == now.options[0].reference || option.kind == Kind::Other;
            assert_eq!(option.enabled, Some(stays), "{quirks:?} {option:?}");
        }
        let vanished = quirks.contains(&Quirk::DisabledOptionsVanish);
        assert_eq!(now.aside.is_empty(), !vanished, "{quirks:?}");
        rig.forget_requests();
        stage(&rig, &again).await;
        assert_eq!(rig.writes(), Vec::<String>::new());
    }
}

/// Entries with names keep them, and are told apart by what stands before.
#[tokio::test]
async fn decorated_entries_are_moved_and_not_rewritten() {
    let rig = fresh(&[Quirk::CompositeBootOrder]).await;
    let (_, change) = restriction(&rig, "eth0").await;
    assert!(change.order.iter().all(|entry| entry.contains(": ")), "{:?}", change.order);
    stage(&rig, &change).await;
    assert_eq!(rig.kept("ami", "/order_next"), json!(change.order));
    // Flags go by the option behind the entry.
    assert_eq!(rig.kept("ami", "/options/5/next"), json!(false));
}

/// Somebody has restricted the host to another NIC: its option is enabled and put back into the order.
#[tokio::test]
async fn an_option_that_vanished_is_enabled_and_taken_back() {
    let rig = fresh(&[Quirk::DisabledOptionsVanish]).await;
    for nic in ["eth0", "eth1"] {
        let (setup, change) = restriction(&rig, nic).await;
        assert_eq!(change.enable.len(), usize::from(nic == "eth1"), "{setup:#?}");
        rig.forget_requests();
        stage(&rig, &change).await;
        let enabled = rig.writes()[0].contains("BootOptions");
        assert_eq!(enabled, nic == "eth1", "what makes it boot comes first");
        rig.restart().await;
        rig.pass(30).await;
        let (now, again) = restriction(&rig, nic).await;
        assert!(again.is_satisfied_by(&now), "{nic} {now:#?}");
    }
}

#[tokio::test]
async fn a_host_that_was_enrolled_before_is_restricted_already() {
    let rig = converged().await;
    let (setup, change) = restriction(&rig, "eth0").await;
    assert!(change.is_satisfied_by(&setup), "{change:?}");
    assert!(change.disable.is_empty() && change.enable.is_empty());
}

/// An option that cannot be read may be the NIC's: then nothing is disabled.
#[tokio::test]
async fn an_option_that_cannot_be_read_makes_the_setup_incomplete() {
    let rig = fresh(&[]).await;
    rig.change_machine(|machine| {
        let order = machine.bmc.settings.get_mut("ami").unwrap();
        order["order"].as_array_mut().unwrap().push(json!("Boot0077"));
    });
    let setup = rig.boot().await;
    assert!(setup.incomplete.as_ref().unwrap().contains("'Boot0077'"), "{setup:?}");
    assert!(restrict(&setup, rig.mac("eth0")).is_err());
}

#[tokio::test]
async fn what_it_has_no_way_to_do_is_said_and_writes_nothing() {
    let rig = fresh(&[]).await;
    let parts = rig.parts().await;
    let staging = rig.staging();
    assert!(staging.bios(parts.at(&rig.redfish), &["SRIOVEnable".into()]).await.unwrap().is_none());
    let change = Change { attributes: vec![("SRIOVEnable".into(), json!("Enable"))], boot: None };
    let refused = staging.stage(parts.at(&rig.redfish), &change).await;
    assert!(matches!(refused, Err(RedfishError::Unusable { .. })));
    assert!(staging.jobs(parts.at(&rig.redfish)).await.unwrap().is_empty());
    assert!(staging.job(parts.at(&rig.redfish), "1").await.is_err());
    staging.withdraw(parts.at(&rig.redfish), "1").await.unwrap();
    assert_eq!(rig.writes(), Vec::<String>::new());
    // A reference of no option.
    let mut order = rig.boot().await.order();
    order.push("Boot0099".into());
    let boot = Some(muster::clients::redfish::dialect::BootChange { order, enable: vec![], disable: vec![] });
    let refused = staging.stage(parts.at(&rig.redfish), &Change { boot, attributes: vec![] }).await;
    assert!(matches!(refused, Err(RedfishError::Refused { status: 400, .. })), "{refused:?}");
}

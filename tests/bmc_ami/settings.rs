//! Settings and accounts of a MegaRAC: read, written where they differ, read back, and left alone afterwards.

use muster::clients::http::Method;
use muster::clients::redfish::ami::Ami;
use muster::clients::redfish::condition::FirstForm;
use muster::clients::redfish::converge::Wanted;
use muster::clients::redfish::dialect::Dialect;
use muster::clients::redfish::vendor::{Detected, Vendor, detect};
use muster::clients::redfish::{RedfishError, accounts, links};
use muster::domain::link::LinkState;
use muster::lab::machine::{PowerAction, Quirk};
use serde_json::json;

use super::bmc::{HOST, Rig};
use super::{converged, fresh};

const MANAGER: &str = "/redfish/v1/Managers/Self";

fn table(manager: &str) -> Vec<(Wanted, Vec<String>)> {
    let protocols = vec![format!("PATCH {manager}/NetworkProtocol")];
    vec![
        (
            Wanted::Hostname { name: HOST.into(), address: None },
            vec![format!("PATCH {manager}/EthernetInterfaces/eth0")],
        ),
        (Wanted::Ntp { server: "192.0.2.7".into() }, protocols.clone()),
        (Wanted::IpmiOverLan, protocols),
        (Wanted::VirtualMedia, vec![format!("POST {manager}/Actions/Oem/AMIVirtualMedia.EnableRMedia")]),
    ]
}

#[tokio::test]
async fn each_setting_of_a_fresh_host_is_written_once_and_then_left_alone() {
    for (quirks, manager) in [
        (&[][..], MANAGER),
        (&[Quirk::Dgx, Quirk::ExpandDropsMembers], "/redfish/v1/Managers/BMC"),
        (&[Quirk::RootWithoutLinks], MANAGER),
        (&[Quirk::VendorLenovo], MANAGER),
    ] {
        let rig = fresh(quirks).await;
        for (wanted, writes) in table(manager) {
            rig.forget_requests();
            assert_eq!(rig.converge(&wanted).await.len(), 1, "{quirks:?} {wanted:?}");
            // One each: the first form of the precondition is the one that it takes.
            assert_eq!(rig.writes(), writes, "{quirks:?}");
            rig.forget_requests();
            assert!(rig.converge(&wanted).await.is_empty(), "{quirks:?} {wanted:?}");
            assert_eq!(rig.writes(), Vec::<String>::new());
        }
        let settings = rig.settings();
        assert_eq!((settings.hostname.as_deref(), settings.ipmi_over_lan), (Some(HOST), true));
        assert_eq!(settings.ntp.primary.as_deref(), Some("192.0.2.7"));
    }
}

#[tokio::test]
async fn a_host_that_was_enrolled_before_is_written_nothing() {
    let rig = converged().await;
    let ntp = rig.lab.scenario().sites["osl1"].ntp_server.clone().unwrap();
    let all = [
        Wanted::Hostname { name: HOST.into(), address: Some(rig.machine().bmc.address.into()) },
        Wanted::Ntp { server: ntp },
        Wanted::IpmiOverLan,
        Wanted::VirtualMedia,
    ];
    for wanted in all {
        assert_eq!(rig.converge(&wanted).await, Vec::<String>::new(), "{wanted:?}");
    }
    assert_eq!(rig.writes(), Vec::<String>::new());
}

#[tokio::test]
async fn the_host_name_goes_to_whichever_of_two_resources_takes_it() {
    let rig = fresh(&[Quirk::HostnameInProtocol]).await;
    let wanted = Wanted::Hostname { name: HOST.into(), address: None };
    assert_eq!(rig.converge(&wanted).await.len(), 1);
    let tried = ["EthernetInterfaces/eth0", "NetworkProtocol"].map(|path| format!("PATCH {MANAGER}/{path}"));
    assert_eq!(rig.writes(), tried);
    assert_eq!(rig.settings().hostname.as_deref(), Some(HOST));
    rig.forget_requests();
    assert!(rig.converge(&wanted).await.is_empty());
    // One that neither takes is refused with the BMC's words.
    let bad = Wanted::Hostname { name: "under_score".into(), address: None };
    let spot = rig.spots(&bad).await.remove(0);
    assert!(matches!(spot.send(&rig.redfish).await, Err(RedfishError::Refused { status: 400, .. })));
}

/// An address comes back with a blank before it.
#[tokio::test]
async fn a_blank_before_an_ntp_server_is_no_difference() {
    let rig = fresh(&[]).await;
    rig.converge(&Wanted::Ntp { server: "192.0.2.7".into() }).await;
    let (_, body) = rig.get(&format!("{MANAGER}/NetworkProtocol")).await;
    assert_eq!(body["NTP"]["NTPServers"], json!([" 192.0.2.7"]));
    assert!(rig.converge(&Wanted::Ntp { server: "192.0.2.7".into() }).await.is_empty());
}

#[tokio::test]
async fn media_are_listed_some_time_after_they_were_enabled() {
    let rig = fresh(&[]).await;
    rig.lab.world().clock().set_speed(1.0);
    let list = format!("{MANAGER}/VirtualMedia");
    rig.converge(&Wanted::VirtualMedia).await;
    assert!(rig.redfish.list(&list).await.unwrap().members.is_empty());
    rig.lab.world().clock().set_speed(600.0);
    rig.pass(45).await;
    assert_eq!(rig.redfish.list(&list).await.unwrap().members.len(), 4);
}

#[tokio::test]
async fn settings_that_are_not_this_vendors_are_absent() {
    let rig = fresh(&[]).await;
    let none = [
        Wanted::Syslog { server: "192.0.2.9".into(), port: 514 },
        Wanted::DhcpOnNic { address: None },
        Wanted::TlsMinimum,
        Wanted::PlainServicesOff,
        Wanted::HostInterfaceOff,
        Wanted::MonitoringPrivilege { username: "x".into() },
    ];
    for wanted in none {
        assert!(rig.absent(&wanted).await.contains("this vendor"), "{wanted:?}");
    }
    let mut parts = rig.parts().await;
    parts.manager.body.remove("Oem");
    let found = Ami.locate(parts.at(&rig.redfish), &Wanted::VirtualMedia).await.unwrap();
    assert!(format!("{found:?}").contains("Oem.Ami.VirtualMedia"), "{found:?}");
}

/// A firmware of AMI's is AMI's, whatever name it gives.
#[tokio::test]
async fn the_vendor_is_told_by_the_firmware_and_not_by_the_name() {
    for quirks in [&[][..], &[Quirk::VendorLenovo]] {
        let root = fresh(quirks).await.redfish.root().await.unwrap();
        assert_eq!(detect(&root), Detected::Known(Vendor::Ami), "{quirks:?}");
    }
}

#[tokio::test]
async fn without_a_header_and_with_its_own_tag_nothing_is_taken() {
    let rig = fresh(&[]).await;
    let nic = format!("{MANAGER}/EthernetInterfaces/eth0");
    let body = || Some(json!({"HostName": "x"}));
    let (status, refusal) = rig.ask(Method::PATCH, &nic, body(), &[]).await;
    assert_eq!((status, refusal["error"]["code"].as_str()), (428, Some("Ami.1.0.PreconditionHeaderMissing")));
    // The ladder finds the one form that it takes, also where it starts elsewhere.
    rig.redfish.prefer(FirstForm::Nothing);
    rig.forget_requests();
    rig.redfish.patch(&nic, &body().unwrap()).await.unwrap();
    assert_eq!(rig.writes().len(), 3, "none, its own tag, any");
    rig.redfish.patch(&nic, &body().unwrap()).await.unwrap();
    assert_eq!(rig.writes().len(), 4, "it is remembered");
}

#[tokio::test]
async fn the_bmc_resets_itself_also_where_that_wants_a_precondition() {
    for quirks in [&[][..], &[Quirk::ResetWantsIfMatch, Quirk::Dgx]] {
        let rig = fresh(quirks).await;
        let parts = rig.parts().await;
        let info = parts.manager.text("/Actions/#Manager.Reset/@Redfish.ActionInfo").unwrap();
        let info = rig.redfish.get(&info).await.unwrap();
        assert_eq!(info.body["Parameters"][0]["AllowableValues"], json!([Ami.reset_type()]));
        let target = parts.manager.text("/Actions/#Manager.Reset/target").unwrap();
        assert!(rig.redfish.post(&target, &json!({"ResetType": "GracefulRestart"})).await.is_err());
        rig.redfish.post(&target, &json!({"ResetType": Ami.reset_type()})).await.unwrap();
        assert_eq!(rig.machine().bmc.resets, 1, "{quirks:?}");
    }
}

/// A root without links is read by the paths that the standard has, until a reset brings them back.
#[tokio::test]
async fn a_root_that_lost_its_links_is_read_all_the_same() {
    let rig = fresh(&[Quirk::RootWithoutLinks]).await;
    let parts = rig.parts().await;
    assert!(parts.root.link("Systems").is_none() && parts.root.link("AccountService").is_none());
    assert_eq!((parts.system.id().as_str(), parts.manager.id().as_str()), ("Self", "Self"));
    let found = accounts::read(&rig.redfish, &parts.root).await.unwrap().unwrap();
    assert_eq!(found.members.len(), 2);
    rig.lab.world().reset_bmc(HOST);
    rig.pass(120).await;
    assert!(rig.parts().await.root.link("Systems").is_some());
}

/// Ids, a board of accelerators beside the host, managers that are listed and not there.
#[tokio::test]
async fn the_host_of_a_dgx_is_the_system_that_can_boot() {
    let rig = fresh(&[Quirk::Dgx]).await;
    let parts = rig.parts().await;
    assert_eq!((parts.system.id().as_str(), parts.manager.id().as_str()), ("DGX", "BMC"));
}

#[tokio::test]
async fn a_slot_that_cannot_be_read_is_left_out_and_the_internal_account_is_left_alone() {
    let rig = fresh(&[Quirk::UnreadableAccount]).await;
    let root = rig.redfish.root().await.unwrap();
    let found = accounts::read(&rig.redfish, &root).await.unwrap().unwrap();
    assert_eq!((found.members.len(), found.skipped.len()), (2, 1));
    assert_eq!(
        {
            let r = found.password_rules();
            (r.min, r.max)
        },
        (Some(13), Some(20))
    );
    assert!(Ami.free_place(&found).is_none());
    let internal = found.of("hostif-internal").unwrap();
    let body = json!({"Password": "not-yours-to-change-1"});
    assert!(rig.redfish.patch(&internal.path, &body).await.is_err());
    // A user is created, and is one of all interfaces.
    let user =
        json!({"UserName": "ipmi_exporter", "Password": "sensors-2026-ok", "RoleId": "ReadOnly", "Enabled": true});
    rig.redfish.post(&found.path, &user).await.unwrap();
    let again = accounts::read(&rig.redfish, &root).await.unwrap().unwrap();
    let account = again.of("ipmi_exporter").unwrap();
    assert_eq!(accounts::types_of(account).unwrap(), ["Redfish"]);
    let typed = Ami.has_account_types();
    let wanted = accounts::WantedAccount { username: "ipmi_exporter".into(), role: "ReadOnly", typed };
    assert!(accounts::differences(account, &wanted).is_empty());
    rig.as_user("ipmi_exporter", "sensors-2026-ok").get(MANAGER).await.unwrap();
}

#[tokio::test]
async fn a_password_is_changed_by_the_account_itself() {
    for forced in [false, true] {
        let quirks: &[Quirk] = if forced { &[Quirk::ForcedPasswordChange] } else { &[Quirk::FactoryPassword] };
        let rig = fresh(quirks).await;
        let factory = || rig.as_user("admin", "password");
        assert_eq!(factory().get(MANAGER).await.is_err(), forced);
        let account = "/redfish/v1/AccountService/Accounts/1";
        let short = "short-1".to_owned().into();
        assert!(Ami.set_password(&factory(), account, &short).await.is_err());
        let new = "Much-better-than-17".to_owned().into();
        Ami.set_password(&factory(), account, &new).await.unwrap();
        rig.as_user("admin", "Much-better-than-17").get(MANAGER).await.unwrap();
        assert!(matches!(factory().get(MANAGER).await, Err(RedfishError::Unauthorized { .. })));
    }
}

/// While the host is in its POST, writes are refused as busy, in whatever form, and taken after it.
#[tokio::test]
async fn a_host_in_its_post_makes_the_bmc_busy_and_is_waited_for() {
    for quirks in [&[][..], &[Quirk::BootingPage]] {
        let rig = fresh(quirks).await;
        rig.lab.world().press(HOST, PowerAction::On);
        while !rig.machine().power.on {
            rig.pass(1).await;
        }
        rig.lab.world().clock().set_speed(10.0);
        let nic = format!("{MANAGER}/EthernetInterfaces/eth0");
        let (status, _) = rig.ask(Method::PATCH, &nic, Some(json!({"HostName": "x"})), &[("if-match", "*")]).await;
        assert_eq!(status, 503, "{quirks:?}");
        assert_eq!(rig.get(&nic).await.0, 200);
        let impatient = rig.redfish.impatient();
        impatient.prefer(FirstForm::Any);
        let error = impatient.patch(&nic, &json!({"HostName": "x"})).await.unwrap_err();
        assert!(matches!(error, RedfishError::Busy { status: 503, .. }), "{error}");
        assert!(error.to_string().to_lowercase().contains("unavailable"), "{error}");
        assert_eq!(rig.converge(&Wanted::IpmiOverLan).await.len(), 1);
        assert!(rig.settings().ipmi_over_lan);
    }
}

async fn states(rig: &Rig) -> Vec<LinkState> {
    let parts = rig.parts().await;
    let macs = [rig.mac("eth0"), rig.mac("eth1")];
    let read = links::read(&rig.redfish, &parts.root, &parts.system, Some(Vendor::Ami), &macs).await.unwrap();
    macs.iter().map(|mac| read.by_mac[mac].state).collect()
}

/// Ports name no address here: they are found by their functions.
#[tokio::test]
async fn links_are_read_from_the_labs_megarac() {
    for quirks in [&[][..], &[Quirk::Dgx, Quirk::ExpandDropsMembers]] {
        let rig = fresh(quirks).await;
        assert_eq!(states(&rig).await, [LinkState::Down; 2]);
        rig.lab.world().press(HOST, PowerAction::On);
        rig.pass(60).await;
        assert_eq!(states(&rig).await, [LinkState::Up; 2], "{quirks:?}");
        rig.change_machine(|machine| machine.nics.iter_mut().for_each(|nic| nic.unreported = true));
        assert_eq!(states(&rig).await, [LinkState::Unknown; 2]);
    }
}

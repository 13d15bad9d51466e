//! Settings: where each is, that a write shows, and that what is right is not written.

use muster::clients::redfish::converge::{Located, Spot, Wanted};
use muster::clients::redfish::dell::Dell;
use muster::clients::redfish::dialect::Dialect;
use muster::clients::redfish::links;
use muster::clients::redfish::vendor::Vendor;
use muster::domain::link::LinkState;
use muster::lab::bmc::User;
use muster::lab::clock::LabTime;
use muster::lab::machine::Quirk;
use serde_json::{Value, json};

use super::Rig;

const ATTRIBUTES: &str = "/redfish/v1/Managers/iDRAC.Embedded.1/Oem/Dell/DellAttributes/iDRAC.Embedded.1";

fn all() -> Vec<(Wanted, Value)> {
    vec![
        (Wanted::Hostname { name: "gpu-b07-29".into(), address: None }, json!({"NIC.1.DNSRacName": "gpu-b07-29"})),
        (Wanted::DhcpOnNic { address: None }, json!({"IPv4.1.DHCPEnable": "Enabled"})),
        (
            Wanted::Ntp { server: "192.0.2.21".into() },
            json!({"NTPConfigGroup.1.NTPEnable": "Enabled", "NTPConfigGroup.1.NTP1": "192.0.2.21"}),
        ),
        (
            Wanted::Syslog { server: "192.0.2.20".into(), port: 1514 },
            json!({"SysLog.1.SysLogEnable": "Enabled", "SysLog.1.Server1": "192.0.2.20", "SysLog.1.Port": 1514}),
        ),
        (Wanted::TlsMinimum, json!({"WebServer.1.TLSProtocol": "TLS 1.2 and Higher"})),
        (
            Wanted::PlainServicesOff,
            json!({"Telnet.1.Enable": "Disabled", "VNCServer.1.Enable": "Disabled", "SNMP.1.SNMPProtocol": "SNMPv3"}),
        ),
        (Wanted::HostInterfaceOff, json!({"OS-BMC.1.AdminState": "Disabled"})),
        (Wanted::IpmiOverLan, json!({"IPMILan.1.Enable": "Enabled"})),
        (
            Wanted::MonitoringPrivilege { username: "ipmi_exporter".into() },
            json!({"Users.3.IpmiLanPrivilege": "User", "Users.3.SolEnable": "Disabled"}),
        ),
    ]
}

async fn locate(rig: &Rig, wanted: &Wanted) -> Spot {
    let parts = rig.parts().await;
    match Dell.locate(rig.at(&parts), wanted).await.unwrap() {
        Located::At(spot) => spot,
        there => panic!("{wanted:?} is {there:?}"),
    }
}

/// A host on which nothing is as it is wanted.
async fn drifted(quirks: &[Quirk]) -> Rig {
    let rig = Rig::with(quirks).await;
    rig.change_machine(|machine| {
        let mut settings = muster::lab::bmc::Settings::of(machine);
        settings.dhcp = false;
        let types = vec!["Redfish".to_owned()];
        settings.add_user(User { name: "ipmi_exporter".into(), role: "ReadOnly".into(), enabled: true, types });
        settings.keep(machine);
        machine.bmc.accounts.insert("ipmi_exporter".into(), "read-the-sensors".into());
    });
    rig
}

async fn each_is_written_once(rig: &Rig) {
    for (wanted, body) in all() {
        let spot = locate(rig, &wanted).await;
        assert_eq!((spot.path(), &spot.body()), (ATTRIBUTES, &json!({"Attributes": body})), "{wanted:?}");
        assert!(!spot.is_satisfied_by(&spot.resource), "{wanted:?}: {}", spot.describe(&spot.resource));
        rig.forget_requests();
        rig.redfish.patch(spot.path(), &spot.body()).await.unwrap();
        assert_eq!(rig.writes(), [format!("PATCH {ATTRIBUTES}")], "{wanted:?}");
        let now = rig.redfish.get(spot.path()).await.unwrap();
        assert!(spot.is_satisfied_by(&now), "{wanted:?}: {}", spot.describe(&now));
        assert!(locate(rig, &wanted).await.is_satisfied_by(&now), "{wanted:?}");
    }
    let settings = rig.settings();
    assert_eq!(settings.hostname.as_deref(), Some("gpu-b07-29"));
    assert_eq!((settings.ntp.enabled, settings.ntp.primary.as_deref()), (true, Some("192.0.2.21")));
    assert_eq!((settings.syslog.enabled, settings.syslog.port), (true, 1514));
    assert!(settings.dhcp && settings.ipmi_over_lan);
}

#[tokio::test]
async fn each_setting_is_found_written_and_read_back() {
    each_is_written_once(&drifted(&[]).await).await;
}

#[tokio::test]
async fn an_idrac10_and_one_with_tags_that_are_numbers_are_no_different_in_this() {
    each_is_written_once(&drifted(&[Quirk::Idrac10]).await).await;
    each_is_written_once(&drifted(&[Quirk::NumericEtag]).await).await;
}

#[tokio::test]
async fn a_converged_idrac_has_nothing_to_be_written() {
    let rig = Rig::converged().await;
    let settings = rig.settings();
    for (wanted, _) in all() {
        let wanted = match wanted {
            Wanted::Hostname { .. } => Wanted::Hostname { name: settings.hostname.clone().unwrap(), address: None },
            Wanted::Ntp { .. } => Wanted::Ntp { server: settings.ntp.primary.clone().unwrap() },
            Wanted::Syslog { .. } => Wanted::Syslog { server: settings.syslog.server.clone().unwrap(), port: 514 },
            other => other,
        };
        let spot = locate(&rig, &wanted).await;
        assert!(spot.is_satisfied_by(&spot.resource), "{wanted:?}: {}", spot.describe(&spot.resource));
    }
    assert_eq!(rig.writes(), Vec::<String>::new());
}

#[tokio::test]
async fn what_an_idrac_has_no_setting_for_is_absent_with_the_reason() {
    let rig = Rig::start().await;
    let parts = rig.parts().await;
    let media = Dell.locate(rig.at(&parts), &Wanted::VirtualMedia).await.unwrap();
    assert_eq!(media, Located::not_here(&Wanted::VirtualMedia));
    let nobody = Wanted::MonitoringPrivilege { username: "ipmi_exporter".into() };
    let Located::Absent { why } = Dell.locate(rig.at(&parts), &nobody).await.unwrap() else { panic!() };
    assert_eq!(why, "no account of the BMC is 'ipmi_exporter'");
}

/// An iDRAC9 tells of links at its NetworkPorts, an iDRAC10 at its Ports.
#[tokio::test]
async fn links_are_read_from_the_ports_of_both_generations() {
    for quirks in [&[][..], &[Quirk::Idrac10]] {
        let rig = Rig::with(quirks).await;
        let (parts, mac) = (rig.parts().await, rig.mac("eth0"));
        let state = async || {
            let (root, system) = (&parts.root, &parts.system);
            let read = links::read(&rig.redfish, root, system, Some(Vendor::Dell), &[mac]).await.unwrap();
            (read.by_mac[&mac].state, read.by_mac[&mac].slot.clone())
        };
        assert_eq!(state().await, (LinkState::Down, Some("NIC.Slot.1-1".into())));
        rig.restart().await;
        rig.pass(60).await;
        assert_eq!(state().await.0, LinkState::Up);
        rig.change_machine(|machine| machine.nics[0].unreported = true);
        assert_eq!(state().await.0, LinkState::Unknown);
    }
}

#[tokio::test]
async fn the_lifecycle_controller_is_ready_a_while_after_a_reset_and_not_before() {
    let rig = Rig::start().await;
    let parts = rig.parts().await;
    assert_eq!(Dell.not_ready(rig.at(&parts)).await.unwrap(), None);
    rig.lab.world().clock().set_speed(5.0);
    // It has come back just now.
    let now = rig.lab.world().now();
    rig.change_machine(|machine| {
        machine.bmc.away = Some((LabTime::ZERO, now));
        machine.bmc.resets += 1;
    });
    let why = Dell.not_ready(rig.at(&parts)).await.unwrap().unwrap();
    assert_eq!(why, "the Lifecycle Controller is 'NotInitialized'");
    rig.lab.world().clock().set_speed(600.0);
    rig.pass(60).await;
    assert_eq!(Dell.not_ready(rig.at(&parts)).await.unwrap(), None);
    let held = Rig::with(&[Quirk::LcNotReady]).await;
    let parts = held.parts().await;
    assert_eq!(Dell.not_ready(held.at(&parts)).await.unwrap().unwrap(), "the Lifecycle Controller is 'InUse'");
    // Being asked is no write.
    assert_eq!(held.writes(), Vec::<String>::new());
}

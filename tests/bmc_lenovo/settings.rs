//! Settings of an XCC: read, written where they differ, read back, and left alone afterwards.

use muster::clients::http::Method;
use muster::clients::redfish::condition::FirstForm;
use muster::clients::redfish::converge::{Located, Spot, Wanted};
use muster::clients::redfish::dialect::Dialect;
use muster::clients::redfish::lenovo::Lenovo;
use muster::clients::redfish::vendor::Vendor;
use muster::clients::redfish::{Resource, links};
use muster::domain::link::LinkState;
use muster::lab::machine::{PowerAction, Quirk};
use serde_json::{Value, json};

use super::bmc::{HOST, Rig};
use super::{converged, fresh};

const NIC: &str = "PATCH /redfish/v1/Managers/1/EthernetInterfaces/NIC";
const PROTOCOLS: &str = "PATCH /redfish/v1/Managers/1/NetworkProtocol";
const RECIPIENTS: &str = "/redfish/v1/Managers/1/Oem/Lenovo/Recipients";

fn syslog(server: &str) -> Wanted {
    Wanted::Syslog { server: server.into(), port: 514 }
}

/// Each setting with the writes that bring it about on a host fresh from the factory.
fn table() -> Vec<(Wanted, Vec<String>)> {
    let one = |line: &str| vec![line.to_owned()];
    vec![
        (Wanted::Hostname { name: HOST.into(), address: None }, one(NIC)),
        (Wanted::DhcpOnNic { address: None }, one(NIC)),
        (Wanted::TlsMinimum, one("PATCH /redfish/v1/Managers/1/Oem/Lenovo/Security")),
        (Wanted::PlainServicesOff, vec![PROTOCOLS.into(), format!("{PROTOCOLS}/Oem/Lenovo/SNMP")]),
        (Wanted::HostInterfaceOff, one("PATCH /redfish/v1/Managers/1/EthernetInterfaces/ToHost")),
        (Wanted::Ntp { server: "192.0.2.7".into() }, one(PROTOCOLS)),
        (syslog("192.0.2.9"), vec![format!("POST {RECIPIENTS}")]),
        (Wanted::IpmiOverLan, one(PROTOCOLS)),
    ]
}

async fn each_is_written_once(rig: &Rig) {
    rig.change_settings(|settings| settings.dhcp = false);
    for (wanted, writes) in table() {
        rig.forget_requests();
        assert!(!rig.converge(&wanted).await.is_empty(), "{wanted:?} needed no write");
        let mut wrote = rig.writes();
        // A refused precondition is asked again.
        wrote.dedup();
        assert_eq!(wrote, writes, "{wanted:?}");
        rig.forget_requests();
        assert!(rig.converge(&wanted).await.is_empty(), "{wanted:?} is written again");
        assert_eq!(rig.writes(), Vec::<String>::new(), "{wanted:?}");
    }
}

#[tokio::test]
async fn each_setting_of_a_fresh_host_is_written_once_and_then_left_alone() {
    let rig = fresh(&[]).await;
    each_is_written_once(&rig).await;
    let settings = rig.settings();
    assert_eq!((settings.hostname.as_deref(), settings.dhcp, settings.ipmi_over_lan), (Some(HOST), true, true));
    assert_eq!((settings.ntp.enabled, settings.ntp.primary.as_deref()), (true, Some("192.0.2.7")));
    for pointer in ["/ssdp", "/slp", "/snmp_v1_traps", "/to_host"] {
        assert_eq!(rig.kept("lenovo", pointer), json!(false), "{pointer}");
    }
    // Inspection asks the BMC for its address by KCS.
    assert_eq!(rig.kept("lenovo", "/kcs"), json!(true));
    assert_eq!(rig.kept("lenovo", "/recipients/1/address"), json!("192.0.2.9:514"));
}

#[tokio::test]
async fn firmware_that_wants_tags_that_refuses_its_own_or_answers_otherwise_is_converged_all_the_same() {
    let odd = [
        &[Quirk::IfMatchRequired, Quirk::EtagNowAndThen][..],
        &[Quirk::AnnotationOnlyReplies],
        &[Quirk::HostnameTask],
        &[Quirk::FlagsAsWords],
    ];
    for quirks in odd {
        let rig = fresh(quirks).await;
        each_is_written_once(&rig).await;
        assert_eq!(rig.settings().hostname.as_deref(), Some(HOST), "{quirks:?}");
    }
}

/// An exact tag is refused though nothing has changed, and is good the next time.
#[tokio::test]
async fn a_tag_that_is_refused_now_and_then_is_fetched_and_tried_once_more() {
    for first in [FirstForm::Nothing, FirstForm::Any] {
        let rig = fresh(&[Quirk::IfMatchRequired, Quirk::EtagNowAndThen]).await;
        rig.redfish.prefer(first);
        for name in ["one", "two", "three"] {
            let wanted = Wanted::Hostname { name: name.into(), address: None };
            assert_eq!(rig.converge(&wanted).await.len(), 1, "{first:?}");
        }
        assert_eq!(rig.settings().hostname.as_deref(), Some("three"), "{first:?}");
    }
}

#[tokio::test]
async fn a_host_that_was_enrolled_before_is_written_nothing() {
    let rig = converged().await;
    let site = rig.lab.scenario().sites["osl1"].clone();
    let all = [
        Wanted::Hostname { name: HOST.into(), address: Some(rig.machine().bmc.address.into()) },
        Wanted::DhcpOnNic { address: None },
        Wanted::TlsMinimum,
        Wanted::PlainServicesOff,
        Wanted::HostInterfaceOff,
        Wanted::Ntp { server: site.ntp_server.unwrap() },
        syslog(&site.syslog_server.unwrap()),
        Wanted::IpmiOverLan,
    ];
    for wanted in all {
        assert_eq!(rig.converge(&wanted).await, Vec::<String>::new(), "{wanted:?}");
    }
    assert_eq!(rig.writes(), Vec::<String>::new());
}

/// A recipient of alerts is found by kind and address, whatever number it has; others stay as they are.
#[tokio::test]
async fn syslog_takes_the_first_free_number_and_mends_what_is_there() {
    let rig = fresh(&[]).await;
    let other = |address: &str, kind: &str| json!({"name": "x", "address": address, "kind": kind, "enabled": true, "alerts": {}});
    rig.set(
        "lenovo",
        "/recipients",
        json!({"1": other("192.0.2.9:514", "SNMP"), "3": other("192.0.2.8:514", "Syslog")}),
    );
    assert_eq!(rig.converge(&syslog("192.0.2.9")).await, ["- - - -> Syslog 192.0.2.9:514 Enabled"]);
    assert_eq!(rig.kept("lenovo", "/recipients/2/kind"), json!("Syslog"));
    assert_eq!(rig.kept("lenovo", "/recipients/3"), other("192.0.2.8:514", "Syslog"));

    rig.set("lenovo", "/recipients/2/enabled", json!(false));
    rig.forget_requests();
    assert_eq!(rig.converge(&syslog("192.0.2.9")).await.len(), 1);
    assert_eq!(rig.writes(), [format!("PATCH {RECIPIENTS}/2")]);

    let full: serde_json::Map<String, Value> =
        (1..=12).map(|id| (id.to_string(), other("192.0.2.1:514", "Email"))).collect();
    rig.set("lenovo", "/recipients", Value::Object(full));
    assert!(rig.absent(&syslog("192.0.2.9")).await.contains("all 12"));
}

#[tokio::test]
async fn audit_events_are_asked_for_in_the_firmwares_own_words() {
    let rig = fresh(&[Quirk::OtherAuditEvents]).await;
    rig.converge(&syslog("2001:db8::9")).await;
    assert_eq!(rig.writes().len(), 2, "{:?}", rig.writes());
    assert_eq!(rig.kept("lenovo", "/recipients/1/address"), json!("[2001:db8::9]:514"));
    let events = rig.kept("lenovo", "/recipients/1/alerts/SystemEvents/AcceptedEvents");
    assert_eq!(events, json!(["AllSystemEvents", "AllOtherAuditEvents"]));
    // A refusal that has another reason is not papered over.
    let spot = Spot::member(RECIPIENTS, vec![("/Id".into(), json!("9"))], [("/Id", json!("9"))], json!({"Id": "1"}))
        .or(RECIPIENTS, json!({}));
    assert!(spot.send(&rig.redfish).await.is_err());
}

#[tokio::test]
async fn a_higher_tls_level_stays_and_a_lower_one_is_raised() {
    let rig = fresh(&[]).await;
    for (level, writes) in [("TLSLevel1_3", 0), ("TLSLevel1_2", 0), ("TLSLevel1_1", 1), ("TLSLevel1_0", 1)] {
        rig.set("lenovo", "/tls", json!(level));
        assert_eq!(rig.converge(&Wanted::TlsMinimum).await.len(), writes, "{level}");
        assert_ne!(rig.kept("lenovo", "/tls"), json!("TLSLevel1_1"));
    }
}

/// Whatever a flag reads as is what is written: the wrong type is refused.
#[tokio::test]
async fn a_flag_is_written_in_the_type_that_was_read() {
    for quirks in [&[][..], &[Quirk::FlagsAsWords]] {
        let rig = fresh(quirks).await;
        let bmc = rig.redfish.get("/redfish/v1/Managers/1").await.unwrap();
        let spot = Spot::patch(bmc, [("/Oem/Lenovo/KCSEnabled", json!(false))]);
        assert!(!spot.is_satisfied_by(&spot.resource));
        spot.send(&rig.redfish).await.unwrap();
        assert!(spot.is_satisfied_by(&spot.read(&rig.redfish).await.unwrap()), "{quirks:?}");
        assert_eq!(rig.kept("lenovo", "/kcs"), json!(false), "{quirks:?}");
    }
}

#[tokio::test]
async fn what_a_model_lacks_is_absent_with_the_reason() {
    let rig = fresh(&[]).await;
    let mut parts = rig.parts().await;
    parts.manager.body.clear();
    for (wanted, _) in table() {
        let found = Lenovo.locate(parts.at(&rig.redfish), &wanted).await.unwrap();
        assert!(matches!(&found, Located::Absent { why } if !why.is_empty()), "{wanted:?}: {found:?}");
    }
    for wanted in [Wanted::VirtualMedia, Wanted::MonitoringPrivilege { username: "x".into() }] {
        assert!(rig.absent(&wanted).await.contains("this vendor"), "{wanted:?}");
    }
}

#[tokio::test]
async fn the_bmc_resets_itself_and_takes_power_as_its_resources_say() {
    let rig = fresh(&[]).await;
    let parts = rig.parts().await;
    let kinds = parts.manager.at("/Actions/#Manager.Reset/ResetType@Redfish.AllowableValues").unwrap();
    assert!(kinds.as_array().unwrap().contains(&json!(Lenovo.reset_type())));
    let target = parts.manager.text("/Actions/#Manager.Reset/target").unwrap();
    let reset = |kind: &str| json!({"ResetType": kind});
    assert!(rig.redfish.post(&target, &reset("Sideways")).await.is_err());
    rig.redfish.post(&target, &reset(Lenovo.reset_type())).await.unwrap();
    assert_eq!(rig.machine().bmc.resets, 1);
    rig.pass(120).await;
    let power = parts.system.text("/Actions/#ComputerSystem.Reset/target").unwrap();
    rig.redfish.post(&power, &reset("On")).await.unwrap();
    rig.pass(30).await;
    assert_eq!(rig.parts().await.system.text("PowerState").as_deref(), Some("On"));
}

#[tokio::test]
async fn links_are_read_from_the_labs_xcc() {
    let rig = fresh(&[]).await;
    rig.lab.world().press(HOST, PowerAction::On);
    rig.pass(60).await;
    let parts = rig.parts().await;
    let macs = [rig.mac("eth0"), rig.mac("eth1")];
    let read = |parts: super::bmc::Parts| {
        let (redfish, macs) = (&rig.redfish, macs);
        async move { links::read(redfish, &parts.root, &parts.system, Some(Vendor::Lenovo), &macs).await.unwrap() }
    };
    let up = read(parts).await;
    assert!(macs.iter().all(|mac| up.by_mac[mac].state == LinkState::Up), "{up:?}");
    rig.change_machine(|machine| machine.nics.iter_mut().for_each(|nic| nic.unreported = true));
    let silent = read(rig.parts().await).await;
    assert!(macs.iter().all(|mac| silent.by_mac[mac].state == LinkState::Unknown), "{silent:?}");
}

/// The order itself is read only: it is changed by what is pending.
#[tokio::test]
async fn the_labs_xcc_is_as_strict_as_a_real_one() {
    let rig = fresh(&[Quirk::IfMatchRequired]).await;
    let patch = |path: &'static str, body: Value, tag: Option<&'static str>| {
        let headers: Vec<(&'static str, &'static str)> = tag.into_iter().map(|tag| ("if-match", tag)).collect();
        let rig = &rig;
        async move { rig.ask(Method::PATCH, path, Some(body), &headers).await.0 }
    };
    let nic = "/redfish/v1/Managers/1/EthernetInterfaces/NIC";
    assert_eq!(patch(nic, json!({"HostName": "x"}), None).await, 428);
    assert_eq!(patch(nic, json!({"HostName": "x"}), Some("\"stale\"")).await, 412);
    assert_eq!(patch(nic, json!({"HostName": "under_score"}), Some("*")).await, 400);
    assert_eq!(patch(nic, json!({"HostName": "x"}), Some("*")).await, 200);
    let order = json!({"Boot": {"BootOrder": ["Boot0003"]}});
    assert_eq!(patch("/redfish/v1/Systems/1", order.clone(), Some("*")).await, 400);
    assert_eq!(patch("/redfish/v1/Systems/1/Pending", order, Some("*")).await, 200);
    let unknown = json!({"Attributes": {"No_Such": "x"}});
    assert_eq!(patch("/redfish/v1/Systems/1/Bios/Pending", unknown, Some("*")).await, 400);
    let locked = json!({"Attributes": {"LegacyBIOS_LegacyBIOS": "Disabled"}});
    assert_eq!(patch("/redfish/v1/Systems/1/Bios/Pending", locked, Some("*")).await, 400);
    let root: Resource = rig.redfish.root().await.unwrap();
    assert_eq!(root.text("@odata.id").as_deref(), Some("/redfish/v1/"));
}

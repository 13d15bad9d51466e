//! The iDRAC's dialect against trees captured from live iDRACs: everything is found, and nothing is written.

use muster::clients::redfish::converge::{Located, Wanted};
use muster::clients::redfish::dell::Dell;
use muster::clients::redfish::dialect::{At, Dialect, Staging};
use muster::clients::redfish::host::{find_manager, find_system};
use muster::clients::redfish::vendor::Vendor;
use muster::clients::redfish::{Resource, accounts, links};
use muster::domain::boot::{Kind, restrict};
use muster::domain::link::LinkState;
use serde_json::{Value, json};

use super::tree::{Tree, fixture, resources};

const TREES: [&str; 2] = ["dell-idrac", "dell-idrac-multi-nic"];

/// Resources that were answered with an error when they were captured.
fn is_error(body: &Value) -> bool {
    body["error"].is_object()
}

#[tokio::test]
async fn the_whole_captured_dell_trees_can_be_walked_read_only() {
    for folder in TREES {
        let tree = Tree::captured(folder).await;
        let client = tree.client();
        let paths = resources(folder);
        assert!(paths.len() > 80, "{folder}: {}", paths.len());
        let mut collections = 0;
        for path in paths.iter().filter(|path| *path != "/redfish") {
            let resource = client.get(path).await.unwrap_or_else(|e| panic!("{path}: {e}"));
            assert!(resource.is_whole() || is_error(&json!(resource.body)), "{path}");
            if resource.at("Members").is_some() {
                collections += 1;
                let listing = client.list(path).await.unwrap_or_else(|e| panic!("{path}: {e}"));
                for skipped in &listing.skipped {
                    let there = paths.contains(&skipped.path);
                    let broken = there && is_error(&json!(client.get(&skipped.path).await.unwrap().body));
                    assert!(!there || broken, "{path}: {skipped:?}");
                }
            }
        }
        assert!(collections > 5, "{folder}: {collections}");
        assert!(tree.requests().iter().all(|seen| seen.method == "GET"));
    }
}

async fn parts(tree: &Tree) -> (Resource, Resource, Resource) {
    let client = tree.client();
    let root = client.root().await.unwrap();
    // One of the captures lacks the collection.
    let path = "/redfish/v1/Systems/System.Embedded.1";
    let system = find_system(&client, &root, Some(path)).await.unwrap().system;
    let manager = find_manager(&client, &root, &system).await.unwrap();
    (root, system, manager)
}

#[tokio::test]
async fn each_setting_is_found_in_the_capture_with_what_would_be_written() {
    let tree = Tree::captured("dell-idrac").await;
    let (root, system, manager) = parts(&tree).await;
    let client = tree.client();
    let at = At { redfish: &client, root: &root, system: &system, manager: &manager };
    let name = || "gpu-b07-37".to_owned();
    // What reads as wanted already has `None`.
    let table = [
        (Wanted::Hostname { name: name(), address: None }, json!({"NIC.1.DNSRacName": name()}), Some("idrac-TAG0001")),
        (Wanted::DhcpOnNic { address: None }, json!({"IPv4.1.DHCPEnable": "Enabled"}), None),
        (
            Wanted::Ntp { server: "192.0.2.21".into() },
            json!({"NTPConfigGroup.1.NTPEnable": "Enabled", "NTPConfigGroup.1.NTP1": "192.0.2.21"}),
            Some("Disabled -"),
        ),
        (
            Wanted::Syslog { server: "192.0.2.20".into(), port: 514 },
            json!({"SysLog.1.SysLogEnable": "Enabled", "SysLog.1.Server1": "192.0.2.20", "SysLog.1.Port": 514}),
            Some("Disabled - 514"),
        ),
        (Wanted::TlsMinimum, json!({"WebServer.1.TLSProtocol": "TLS 1.2 and Higher"}), Some("TLS 1.1 and Higher")),
        // This firmware has no Telnet any more: naming it would spoil the request.
        (
            Wanted::PlainServicesOff,
            json!({"VNCServer.1.Enable": "Disabled", "SNMP.1.SNMPProtocol": "SNMPv3"}),
            Some("Disabled All"),
        ),
        (Wanted::HostInterfaceOff, json!({"OS-BMC.1.AdminState": "Disabled"}), None),
        (Wanted::IpmiOverLan, json!({"IPMILan.1.Enable": "Enabled"}), None),
        (
            Wanted::MonitoringPrivilege { username: "svcadmin".into() },
            json!({"Users.3.IpmiLanPrivilege": "User", "Users.3.SolEnable": "Disabled"}),
            Some("Administrator Enabled"),
        ),
    ];
    for (wanted, body, before) in table {
        let Located::At(spot) = Dell.locate(at, &wanted).await.unwrap() else { panic!("{wanted:?} is absent") };
        assert!(spot.path().ends_with("/DellAttributes/iDRAC.Embedded.1"), "{wanted:?}");
        assert_eq!(spot.body(), json!({"Attributes": body}), "{wanted:?}");
        let reads = (!spot.is_satisfied_by(&spot.resource)).then(|| spot.describe(&spot.resource));
        assert_eq!(reads.as_deref(), before, "{wanted:?}");
    }
    assert!(tree.requests().iter().all(|seen| seen.method == "GET"));
}

/// The smaller capture lacks the attributes: what the standard has no place for is absent, and nothing is an error.
#[tokio::test]
async fn without_attributes_the_standards_places_are_asked_and_the_rest_is_absent() {
    let tree = Tree::captured("dell-idrac-multi-nic").await;
    let (root, system, manager) = parts(&tree).await;
    let client = tree.client();
    let at = At { redfish: &client, root: &root, system: &system, manager: &manager };
    for wanted in [
        Wanted::Syslog { server: "192.0.2.20".into(), port: 514 },
        Wanted::TlsMinimum,
        Wanted::PlainServicesOff,
        Wanted::HostInterfaceOff,
        Wanted::IpmiOverLan,
        Wanted::MonitoringPrivilege { username: "svcadmin".into() },
    ] {
        assert!(matches!(Dell.locate(at, &wanted).await.unwrap(), Located::Absent { .. }), "{wanted:?}");
    }
    assert_eq!(Dell.jobs(at).await.unwrap(), vec![]);
    assert_eq!(Dell.bios(at, &[]).await.unwrap(), None);
    assert_eq!(Dell.not_ready(at).await.unwrap(), None);
}

/// Case: C-30
#[tokio::test]
async fn the_captured_boot_options_are_in_their_order_and_http_is_the_cards_by_every_way_that_is_there() {
    let mac = "02:00:5e:00:00:0f".parse().unwrap();
    let table = [
        ("dell-idrac", vec!["HttpDev1Interface", "DeviceDescription"], 5, mac),
        (
            "dell-idrac-multi-nic",
            // The BIOS was not captured there.
            vec!["RelatedItem", "DeviceDescription"],
            2,
            "02:00:5e:00:00:34".parse().unwrap(),
        ),
    ];
    for (folder, ways, count, mac) in table {
        let tree = Tree::captured(folder).await;
        let (root, system, manager) = parts(&tree).await;
        let client = tree.client();
        let at = At { redfish: &client, root: &root, system: &system, manager: &manager };
        let setup = Dell.boot(at).await.unwrap().unwrap();
        let order = system.at("/Boot/BootOrder").unwrap().as_array().unwrap().clone();
        assert_eq!(json!(setup.order()), json!(order), "{folder}");
        assert_eq!((setup.options.len(), &setup.incomplete, &setup.staged), (count, &None, &None), "{folder}");
        let http = &setup.options[0];
        let found: Vec<&str> = http.evidence.iter().map(|evidence| evidence.source.as_str()).collect();
        assert_eq!((http.kind, found), (Kind::HttpV4, ways), "{folder}");
        assert_eq!(http.nic().unwrap(), Some(mac), "{folder}");
        let done = restrict(&setup, mac).unwrap();
        assert_eq!((done.disable.len(), done.order), (0, setup.order()), "{folder}");
        assert!(tree.requests().iter().all(|seen| seen.method == "GET"));
    }
}

#[tokio::test]
async fn the_captured_firmware_has_attributes_rules_and_an_ended_job() {
    let tree = Tree::captured("dell-idrac").await;
    let (root, system, manager) = parts(&tree).await;
    let client = tree.client();
    let at = At { redfish: &client, root: &root, system: &system, manager: &manager };
    let names = ["LogicalProc", "PxeDev1Interface", "Missing"].map(str::to_owned);
    let bios = Dell.bios(at, &names).await.unwrap().unwrap();
    assert_eq!((bios.now.len(), bios.staged.len(), bios.rules.len()), (455, 0, 2));
    assert_eq!(bios.rules["LogicalProc"].values, ["Enabled", "Disabled"]);
    assert!(bios.rules["PxeDev1Interface"].read_only && !bios.rules["LogicalProc"].read_only);
    // The one job of the queue has ended.
    assert_eq!(Dell.jobs(at).await.unwrap(), vec![]);
    let accounts = accounts::read(&client, &root).await.unwrap().unwrap();
    assert_eq!(accounts.members.len(), 16);
    let place = Dell.free_place(&accounts).map(Resource::id);
    let used = |n: &str| fixture(&format!("dell-idrac/redfish/v1/AccountService/Accounts/{n}/index.json"));
    assert_eq!(used(&place.unwrap())["UserName"], "");
}

#[tokio::test]
async fn a_card_without_a_side_band_has_an_unknown_link_and_a_dark_port_is_down() {
    let tree = Tree::captured("dell-idrac").await;
    let (root, system, _) = parts(&tree).await;
    let macs = ["02:00:5e:00:00:0f".parse().unwrap(), "02:00:5e:00:00:0b".parse().unwrap()];
    let read = links::read(&tree.client(), &root, &system, Some(Vendor::Dell), &macs).await.unwrap();
    assert_eq!(read.by_mac[&macs[0]].state, LinkState::Unknown);
    assert_eq!(read.by_mac[&macs[1]].state, LinkState::Down);
}

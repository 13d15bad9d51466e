//! The Redfish client against trees captured from live BMCs.

use muster::clients::redfish::converge::{Located, Wanted};
use muster::clients::redfish::dialect::At;
use muster::clients::redfish::host::{find_manager, find_system};
use muster::clients::redfish::links::{self, LinksError};
use muster::clients::redfish::vendor::{Detected, Vendor, detect};
use muster::clients::redfish::{RedfishError, Resource, accounts};
use muster::domain::link::LinkState;
use muster::domain::mac::Mac;
use serde_json::json;

use super::tree::{Reply, Tree, fixture, fixtures, resources};

/// Every captured resource is read, and every collection listed to its end, without an error and without a write.
#[tokio::test]
async fn the_whole_captured_supermicro_tree_can_be_walked_read_only() {
    let tree = Tree::captured("supermicro").await;
    let paths = resources("supermicro");
    assert!(paths.len() > 150, "{}", paths.len());
    let collections = tree.walk(&paths).await;
    assert!(collections > 20, "{collections}");
}

/// One that is all refusals: a page in one place, a password that has to be changed in another, and a root.
#[tokio::test]
async fn a_tree_of_refusals_is_walked_with_the_errors_that_are_in_it_and_no_others() {
    let tree = Tree::captured("dell-forbidden").await;
    let client = tree.client();
    assert_eq!(detect(&client.root().await.unwrap()), Detected::Known(Vendor::Dell));
    let page = client.get("/redfish/v1/Systems").await.unwrap_err();
    assert!(matches!(&page, RedfishError::Forbidden { reason, .. } if reason == "403 - Forbidden"), "{page}");
    let change = client.get("/redfish/v1/Chassis").await.unwrap_err();
    assert!(matches!(change, RedfishError::PasswordChangeRequired { account: None, .. }), "{change}");
}

/// Each captured tree that there is has a test that walks it.
#[test]
fn no_captured_tree_is_forgotten() {
    let walked = [
        "ami-megarac",
        "dell-forbidden",
        "dell-idrac",
        "dell-idrac-multi-nic",
        "lenovo-xcc",
        "lenovo-xcc-sr670",
        "supermicro",
    ];
    let mut folders: Vec<String> = std::fs::read_dir(fixtures())
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.join("redfish").is_dir())
        .map(|path| path.file_name().unwrap().to_string_lossy().into_owned())
        .collect();
    folders.sort();
    assert_eq!(folders, walked);
}

/// Proves: B1
#[tokio::test]
async fn each_captured_root_is_its_vendors() {
    let table = [
        ("supermicro", Vendor::Supermicro),
        ("lenovo-xcc", Vendor::Lenovo),
        ("dell-idrac", Vendor::Dell),
        ("ami-megarac", Vendor::Ami),
    ];
    for (folder, vendor) in table {
        let tree = Tree::captured(folder).await;
        let root = tree.client().root().await.unwrap();
        assert_eq!(detect(&root), Detected::Known(vendor), "{folder}");
        let sent = &tree.requests()[0].headers;
        assert!(!sent.contains_key("authorization"), "the root is read without a login");
    }
}

#[tokio::test]
async fn requests_are_dressed_as_field_firmware_wants_them() {
    let tree = Tree::captured("supermicro").await;
    tree.client().get("/redfish/v1/Systems/1").await.unwrap();
    let headers = tree.requests()[0].headers.clone();
    assert_eq!(headers["accept"], "application/json");
    assert_eq!(headers["odata-version"], "4.0");
    assert_eq!(headers["accept-encoding"], "identity");
    assert!(headers["authorization"].starts_with("Basic "));
}

async fn host(tree: &Tree) -> (Resource, Resource, Resource) {
    let client = tree.client();
    let root = client.root().await.unwrap();
    let system = find_system(&client, &root, None).await.unwrap().system;
    let manager = find_manager(&client, &root, &system).await.unwrap();
    (root, system, manager)
}

/// The host is the system that can boot: on the AMI machine a baseboard of accelerators is listed beside it.
#[tokio::test]
async fn host_and_bmc_are_found_by_their_links_whatever_their_ids() {
    let table = [
        ("supermicro", "1", "1"),
        ("lenovo-xcc", "1", "1"),
        ("dell-idrac", "System.Embedded.1", "iDRAC.Embedded.1"),
        ("ami-megarac", "DGX", "BMC"),
    ];
    for (folder, system_id, manager_id) in table {
        let (_, system, manager) = host(&Tree::captured(folder).await).await;
        assert_eq!((system.id().as_str(), manager.id().as_str()), (system_id, manager_id), "{folder}");
    }
}

#[tokio::test]
async fn each_supermicro_setting_is_found_in_the_capture_with_what_would_be_written() {
    let tree = Tree::captured("supermicro").await;
    let (root, system, manager) = host(&tree).await;
    let (client, dialect) = (tree.client(), Vendor::Supermicro.dialect());
    let at = At { redfish: &client, root: &root, system: &system, manager: &manager };
    let address = "192.0.2.24".parse().ok();
    let table = [
        (
            Wanted::Hostname { name: "gpu-b07-37".into(), address },
            "/redfish/v1/Managers/1/EthernetInterfaces/1",
            json!({"HostName": "gpu-b07-37"}),
            Some("-"),
        ),
        (
            Wanted::Ntp { server: "ntp.example.com".into() },
            "/redfish/v1/Managers/1/Oem/Supermicro/NTP",
            json!({"NTPEnable": true, "PrimaryNTPServer": "ntp.example.com"}),
            Some("off localhost"),
        ),
        (
            Wanted::Syslog { server: "192.0.2.9".into(), port: 514 },
            "/redfish/v1/Managers/1/Oem/Supermicro/Syslog",
            json!({"EnableSyslog": true, "SyslogServer": "192.0.2.9", "SyslogPortNumber": 514}),
            Some("off - 0"),
        ),
        // On already.
        (
            Wanted::IpmiOverLan,
            "/redfish/v1/Managers/1/NetworkProtocol",
            json!({"IPMI": {"ProtocolEnabled": true}}),
            None,
        ),
    ];
    for (wanted, path, body, before) in table {
        let Located::At(spot) = dialect.locate(at, &wanted).await.unwrap() else {
            panic!("{wanted:?} is absent");
        };
        assert_eq!((spot.path(), spot.body()), (path, body), "{wanted:?}");
        assert_eq!(spot.is_satisfied_by(&spot.resource), before.is_none(), "{wanted:?}");
        if let Some(before) = before {
            assert_eq!(spot.describe(&spot.resource), before, "{wanted:?}");
        }
    }
    assert!(tree.requests().iter().all(|seen| seen.method == "GET"));
}

#[tokio::test]
async fn without_the_vendors_own_resource_ntp_is_set_the_standard_way_and_syslog_is_absent() {
    let tree = Tree::start(Some("supermicro"), |seen| {
        let gone = seen.path.contains("/Oem/Supermicro/NTP") || seen.path.contains("/Oem/Supermicro/Syslog");
        gone.then(|| Reply::json(404, json!({})))
    })
    .await;
    let (root, system, manager) = host(&tree).await;
    let (client, dialect) = (tree.client(), Vendor::Supermicro.dialect());
    let at = At { redfish: &client, root: &root, system: &system, manager: &manager };
    let ntp = Wanted::Ntp { server: "ntp.example.com".into() };
    let Located::At(spot) = dialect.locate(at, &ntp).await.unwrap() else { panic!("NTP is absent") };
    assert_eq!(spot.path(), "/redfish/v1/Managers/1/NetworkProtocol");
    assert_eq!(spot.body(), json!({"NTP": {"ProtocolEnabled": true, "NTPServers": ["ntp.example.com"]}}));
    let syslog = Wanted::Syslog { server: "192.0.2.9".into(), port: 514 };
    assert!(matches!(dialect.locate(at, &syslog).await.unwrap(), Located::Absent { .. }));
}

#[tokio::test]
async fn the_captured_accounts_are_read_with_the_limits_of_their_service() {
    let tree = Tree::captured("supermicro").await;
    let client = tree.client();
    let root = client.root().await.unwrap();
    let found = accounts::read(&client, &root).await.unwrap().unwrap();
    assert_eq!(found.members.len(), 2);
    assert!(found.of("svcadmin").is_some() && found.of("SVCADMIN").is_none() && found.have_types());
    assert_eq!(
        {
            let r = found.password_rules();
            (r.min, r.max)
        },
        (Some(8), Some(20))
    );
    let ipmi = fixture("states/supermicro/account-ipmi.json");
    let account = Resource { path: "/a".into(), body: ipmi.as_object().unwrap().clone(), etag: None };
    let wanted = accounts::WantedAccount { username: "ipmi_exporter".into(), role: "ReadOnly", typed: true };
    assert!(accounts::differences(&account, &wanted).is_empty());
}

fn mac(text: &str) -> Mac {
    text.parse().unwrap()
}

#[tokio::test]
async fn links_of_the_captured_supermicro_host_are_down_whether_or_not_a_port_says_so() {
    let tree = Tree::captured("supermicro").await;
    let (root, system, _) = host(&tree).await;
    let before = tree.requests().len();
    // The second one's port lacks the member, its interface has it; the third is on no NIC of the host.
    let macs = [mac("02:00:5e:00:00:1d"), mac("02:00:5e:00:00:26"), mac("02:00:5e:00:00:99")];
    let read = links::read(&tree.client(), &root, &system, Some(Vendor::Supermicro), &macs[..2]).await.unwrap();
    assert_eq!(read.by_mac[&macs[0]].state, LinkState::Down);
    assert_eq!(read.by_mac[&macs[1]].state, LinkState::Down);
    assert_eq!(read.by_mac[&macs[0]].slot.as_deref(), Some("AOC_NIC1 MCX75310AAS-NEAT #1"));
    let lines = &tree.lines()[before..];
    assert!(lines.iter().all(|line| line.starts_with("GET ")));
    let read = links::read(&tree.client(), &root, &system, Some(Vendor::Supermicro), &macs).await.unwrap();
    let unlisted = &read.by_mac[&macs[2]];
    assert_eq!((unlisted.state, unlisted.raw.as_deref()), (LinkState::Unknown, Some("not listed by the BMC")));
}

#[tokio::test]
async fn links_of_the_other_vendors_captures_read_as_their_ports_and_interfaces_say() {
    let table = [("lenovo-xcc", Vendor::Lenovo), ("dell-idrac", Vendor::Dell), ("ami-megarac", Vendor::Ami)];
    for (folder, vendor) in table {
        let tree = Tree::captured(folder).await;
        let (root, system, _) = host(&tree).await;
        let client = tree.client();
        let interfaces = client.list(&system.link("EthernetInterfaces").unwrap()).await.unwrap();
        let mut checked = 0;
        for nic in &interfaces.members {
            let Some(address) = nic.text("MACAddress").and_then(|text| text.parse::<Mac>().ok()) else { continue };
            if nic.id() == "ToManager" {
                continue;
            }
            let read = links::read(&client, &root, &system, Some(vendor), &[address]).await.unwrap();
            let state = read.by_mac[&address].state;
            match nic.text("LinkStatus").as_deref() {
                Some("LinkUp") => assert_eq!(state, LinkState::Up, "{folder} {}", nic.id()),
                Some("LinkDown" | "NoLink") => assert_eq!(state, LinkState::Down, "{folder} {}", nic.id()),
                _ => assert_ne!(state, LinkState::Down, "{folder} {}: a silent interface is not down", nic.id()),
            }
            checked += 1;
        }
        assert!(checked >= 2, "{folder}: {checked}");
    }
}

/// Proves: L3
#[tokio::test]
async fn a_bmc_without_any_source_of_links_is_unsupported_and_errors_are_errors() {
    let bare = json!({"@odata.id": "/redfish/v1/Systems/1", "Id": "1", "Boot": {},
        "EthernetInterfaces": {"@odata.id": "/redfish/v1/Systems/1/EthernetInterfaces"}});
    let system = Resource { path: "/redfish/v1/Systems/1".into(), body: bare.as_object().unwrap().clone(), etag: None };
    let root = Resource { path: "/redfish/v1/".into(), body: Default::default(), etag: None };
    let macs = [mac("02:00:5e:00:00:1d")];
    let tree = Tree::start(None, |_| Some(Reply::json(404, json!({})))).await;
    let error = links::read(&tree.client(), &root, &system, None, &macs).await.unwrap_err();
    assert!(matches!(error, LinksError::Unsupported { .. }), "{error}");
    let tree = Tree::start(None, |_| Some(Reply::json(500, json!({})))).await;
    let error = links::read(&tree.client(), &root, &system, None, &macs).await.unwrap_err();
    assert!(matches!(error, LinksError::Redfish(_)), "{error}");
}

/// Case: C-32
#[tokio::test]
async fn the_words_of_the_field_for_a_link_are_read_through_a_tree() {
    let text = std::fs::read_to_string("tests/fixtures/cases/c32-link-status-values.json").unwrap();
    let case: serde_json::Value = serde_json::from_str(&text).unwrap();
    let listed = case["EthernetInterfaces"].as_array().unwrap().clone();
    let states: Vec<&str> = case["states"].as_array().unwrap().iter().map(|s| s.as_str().unwrap()).collect();
    let macs: Vec<Mac> = (0..listed.len()).map(|n| mac(&format!("52:54:00:10:02:{n:02x}"))).collect();
    let members: Vec<serde_json::Value> = listed
        .into_iter()
        .zip(&macs)
        .map(|(mut nic, mac)| {
            nic["MACAddress"] = json!(mac.to_string().to_uppercase());
            nic["@odata.id"] =
                json!(format!("/redfish/v1/Systems/1/EthernetInterfaces/{}", nic["Id"].as_str().unwrap()));
            nic
        })
        .collect();
    let tree = Tree::start(None, move |_| {
        Some(Reply::json(200, json!({"@odata.id": "/redfish/v1/Systems/1/EthernetInterfaces", "Members": members})))
    })
    .await;
    let bare = json!({"@odata.id": "/redfish/v1/Systems/1", "Id": "1",
        "EthernetInterfaces": {"@odata.id": "/redfish/v1/Systems/1/EthernetInterfaces"}});
    let system = Resource { path: "/redfish/v1/Systems/1".into(), body: bare.as_object().unwrap().clone(), etag: None };
    let root = Resource { path: "/redfish/v1/".into(), body: Default::default(), etag: None };
    let read = links::read(&tree.client(), &root, &system, None, &macs).await.unwrap();
    let got: Vec<&str> = macs.iter().map(|mac| read.by_mac[mac].state.as_str()).collect();
    assert_eq!(got, states);
}

/// Shaped like the emulator of OpenStack's sushy-tools: one service for many hosts, NICs without a link state.
#[tokio::test]
async fn an_emulator_with_many_hosts_is_asked_for_the_named_one_and_its_links_are_unknown() {
    let uuid = "5b1e6c1a-0000-4000-8000-000000000011";
    let path = format!("/redfish/v1/Systems/{uuid}");
    let nics = format!("{path}/EthernetInterfaces");
    let tree = Tree::start(None, move |seen| {
        let nic = format!("{nics}/52:54:00:10:01:01");
        let body = match seen.path.as_str() {
            "/redfish/v1/" => json!({"Id": "RedvirtService", "Systems": {"@odata.id": "/redfish/v1/Systems"}}),
            at if at == path => json!({"Id": uuid, "Boot": {}, "EthernetInterfaces": {"@odata.id": nics},
                "Links": {"ManagedBy": [{"@odata.id": format!("/redfish/v1/Managers/{uuid}")}]}}),
            at if at == nics => json!({"Members": [{"@odata.id": nic}]}),
            at if at == nic => json!({"Id": "52:54:00:10:01:01", "MACAddress": "52:54:00:10:01:01"}),
            _ => return None,
        };
        Some(Reply::json(200, body))
    })
    .await;
    let client = tree.client();
    let root = client.root().await.unwrap();
    let system = find_system(&client, &root, Some(&format!("/redfish/v1/Systems/{uuid}"))).await.unwrap().system;
    let address = mac("52:54:00:10:01:01");
    let read = links::read(&client, &root, &system, None, &[address]).await.unwrap();
    assert_eq!(read.by_mac[&address].state, LinkState::Unknown);
    assert!(tree.lines().iter().all(|line| line != "GET /redfish/v1/Systems"), "{:?}", tree.lines());
}

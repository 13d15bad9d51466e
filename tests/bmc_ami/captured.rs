//! A captured MegaRAC (DGX H100), walked read-only, and the lab's own compared with it.

use muster::clients::redfish::accounts;
use muster::clients::redfish::ami::Ami;
use muster::clients::redfish::converge::{Located, Wanted};
use muster::clients::redfish::dialect::{Dialect, Staging};
use muster::domain::boot::{Kind, restrict};
use muster::lab::machine::Quirk;
use serde_json::json;

use super::bmc::Parts;
use super::fresh;
use super::resources::{differences, links};
use super::tree::{Reply, Tree, fixture, fixtures, resources};

const TREE: &str = "ami-megarac";

#[tokio::test]
async fn the_captured_tree_can_be_walked_read_only() {
    let paths = resources(TREE);
    assert!(paths.len() > 150, "{}", paths.len());
    Tree::captured(TREE).await.walk(&paths).await;
}

#[tokio::test]
async fn each_setting_is_found_in_the_capture_as_it_reads_there() {
    let tree = Tree::captured(TREE).await;
    let client = tree.client();
    let parts = Parts::read(&client).await;
    let bmc = "/redfish/v1/Managers/BMC";
    let hostname = Wanted::Hostname { name: "gpu-b07-37".into(), address: "192.0.2.21".parse().ok() };
    let table = [
        (hostname, format!("{bmc}/EthernetInterfaces/eth0"), "AMI0123456789AB", false),
        (
            Wanted::Ntp { server: "ntp.example.com".into() },
            format!("{bmc}/NetworkProtocol"),
            "on ntp.example.com, 198.51.100.4",
            true,
        ),
        (Wanted::IpmiOverLan, format!("{bmc}/NetworkProtocol"), "on", true),
        (Wanted::VirtualMedia, bmc.to_owned(), "Disabled", false),
    ];
    for (wanted, path, reads, satisfied) in table {
        let Located::At(spot) = Ami.locate(parts.at(&client), &wanted).await.unwrap() else { panic!("{wanted:?}") };
        assert_eq!((spot.path(), spot.describe(&spot.resource).as_str()), (path.as_str(), reads));
        assert_eq!(spot.is_satisfied_by(&spot.resource), satisfied, "{wanted:?}");
    }
    assert!(tree.requests().iter().all(|seen| seen.method == "GET"));
}

#[tokio::test]
async fn remote_media_that_are_enabled_are_satisfied() {
    let state = fixture("states/ami/manager-oem-rmedia-enabled.json");
    let mut manager = fixture("ami-megarac/redfish/v1/Managers/BMC/index.json");
    manager["Oem"]["Ami"]["VirtualMedia"] = state["Oem"]["Ami"]["VirtualMedia"].clone();
    let tree = Tree::start(Some(TREE), move |seen| {
        (seen.path == "/redfish/v1/Managers/BMC").then(|| Reply::json(200, manager.clone()))
    })
    .await;
    let client = tree.client();
    let parts = Parts::read(&client).await;
    let found = Ami.locate(parts.at(&client), &Wanted::VirtualMedia).await.unwrap();
    let Located::At(spot) = found else { panic!("{found:?}") };
    assert!(spot.is_satisfied_by(&spot.resource));
}

/// Names tell nothing of Intel's cards, and the aliases of some are wrong: paths tell all of them.
#[tokio::test]
async fn each_nic_of_the_capture_is_identified_by_its_path_and_everything_else_stays_bootable() {
    let tree = Tree::captured(TREE).await;
    let client = tree.client();
    let parts = Parts::read(&client).await;
    let setup = Ami.boot(parts.at(&client)).await.unwrap().unwrap();
    assert_eq!((setup.options.len(), setup.aside.len()), (21, 0));
    assert_eq!((setup.staged.clone(), setup.incomplete.clone()), (None, None));
    let named = [
        ("02:00:5e:00:00:14", "Boot0003"),
        ("02:00:5e:00:00:15", "Boot000A"),
        ("02:00:5e:00:00:16", "Boot000B"),
        ("02:00:5e:00:00:17", "Boot0006"),
        ("02:00:5e:00:00:18", "Boot0026"),
        ("02:00:5e:00:00:1b", "Boot0005"),
    ];
    for (mac, reference) in named {
        let change = restrict(&setup, mac.parse().unwrap()).unwrap();
        assert_eq!(change.order[0], reference, "{mac}");
        assert_eq!(change.order.len(), 21);
        // The 20 network options but the kept one and the four that are disabled already.
        assert_eq!(change.disable.len(), 15, "{mac}");
        assert!(!change.disable.contains(&"Boot0000".to_owned()), "the disk");
    }
    assert!(restrict(&setup, "02:00:5e:00:00:99".parse().unwrap()).is_err());
    let disks: Vec<&str> = setup.options.iter().filter(|o| o.kind == Kind::Other).map(|o| o.name.as_str()).collect();
    assert_eq!(disks, ["DGX OS"]);
    assert!(tree.requests().iter().all(|seen| seen.method == "GET"));
}

/// Entries with names, over the captured options.
#[tokio::test]
async fn decorated_entries_are_matched_with_their_options() {
    let state = fixture("states/ami/bootorder-composite-entries.json");
    let mut system = fixture("ami-megarac/redfish/v1/Systems/DGX/index.json");
    let mut order = state["Boot"]["BootOrder"].as_array().unwrap().clone();
    // The option of the first entry is in another machine.
    assert_eq!(order.remove(0), "Boot0019: Ubuntu");
    system["Boot"]["BootOrder"] = json!(order);
    let tree = Tree::start(Some(TREE), move |seen| {
        (seen.path == "/redfish/v1/Systems/DGX").then(|| Reply::json(200, system.clone()))
    })
    .await;
    let client = tree.client();
    let parts = Parts::read(&client).await;
    let setup = Ami.boot(parts.at(&client)).await.unwrap().unwrap();
    assert_eq!(setup.order(), ["Boot0005: UEFI: PXE IPv4 Nvidia Network Adapter - 02:00:5E:00:00:17", "Boot0000"]);
    assert_eq!((setup.options[0].kind, setup.options[1].kind), (Kind::PxeV4, Kind::Other));
    assert_eq!(setup.aside.len(), 19);
    // What is staged has other entries, and those are known too.
    assert_eq!(setup.staged.unwrap().len(), 21);
}

#[tokio::test]
async fn the_captured_accounts_are_read_and_the_internal_one_is_among_them() {
    let tree = Tree::captured(TREE).await;
    let client = tree.client();
    let root = client.root().await.unwrap();
    let found = accounts::read(&client, &root).await.unwrap().unwrap();
    assert_eq!(
        (found.members.len(), {
            let r = found.password_rules();
            (r.min, r.max)
        }),
        (3, (Some(13), Some(20)))
    );
    assert_eq!(found.of("hostif-internal").unwrap().text("RoleId").as_deref(), Some("HostInterfaceAdministrator"));
}

/// What the lab serves is shaped after the capture: no member that this lacks, and the same types.
#[tokio::test]
async fn each_resource_of_the_lab_has_members_and_types_of_the_captured_one() {
    let rig = fresh(&[Quirk::Dgx]).await;
    let mut queue = vec!["/redfish/v1".to_owned()];
    let (mut seen, mut found, mut compared) = (Vec::<String>::new(), vec![], 0);
    while let Some(path) = queue.pop() {
        if seen.contains(&path) {
            continue;
        }
        seen.push(path.clone());
        let (status, body) = rig.get(&path).await;
        // Listed, and not there: as in the capture.
        assert!(status == 200 || path.ends_with("/HGX_BMC_0"), "{path}: {status}");
        links(&body, &mut queue);
        let file = format!("ami-megarac{path}/index.json");
        if status == 200 && fixtures().join(&file).exists() {
            compared += 1;
            differences(&path, &body, &fixture(&file), &mut found);
        }
    }
    assert_eq!(found, Vec::<String>::new());
    assert!(compared > 25, "{compared} of {}", seen.len());
}

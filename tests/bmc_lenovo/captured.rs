//! Captured XCCs, walked read-only, and the lab's own compared with them.

use muster::clients::redfish::accounts;
use muster::clients::redfish::converge::{Located, Wanted};
use muster::clients::redfish::dialect::{Dialect, Staging};
use muster::clients::redfish::lenovo::Lenovo;
use muster::domain::boot::{Kind, network_first, nic_first};
use serde_json::json;

use super::bmc::Parts;
use super::fresh;
use super::resources::{differences, links};
use super::tree::{Tree, fixture, fixtures, resources};

const TREES: [&str; 2] = ["lenovo-xcc", "lenovo-xcc-sr670"];

#[tokio::test]
async fn the_captured_trees_can_be_walked_read_only() {
    for (folder, least) in [("lenovo-xcc", 90), ("lenovo-xcc-sr670", 35)] {
        let paths = resources(folder);
        assert!(paths.len() > least, "{folder}: {}", paths.len());
        Tree::captured(folder).await.walk(&paths).await;
    }
}

fn wanted() -> Vec<Wanted> {
    vec![
        Wanted::Hostname { name: "gpu-b07-37".into(), address: "192.0.2.15".parse().ok() },
        Wanted::Ntp { server: "ntp.example.com".into() },
        Wanted::Syslog { server: "192.0.2.9".into(), port: 514 },
        Wanted::IpmiOverLan,
        Wanted::DhcpOnNic { address: None },
        Wanted::TlsMinimum,
        Wanted::PlainServicesOff,
        Wanted::HostInterfaceOff,
    ]
}

/// How each setting reads in the two captures, spot by spot; `None` where the capture lacks it.
#[tokio::test]
async fn each_setting_is_found_in_the_captures_as_it_reads_there() {
    let table: [(&str, Vec<Option<&str>>); 2] = [
        (
            "lenovo-xcc",
            vec![
                Some("XCC-7Z23-SNEX0001"),
                Some("off -"),
                Some("- - -"),
                Some("off"),
                Some("on"),
                Some("TLSLevel1_2"),
                Some("on on; off"),
                Some("off"),
            ],
        ),
        (
            "lenovo-xcc-sr670",
            // Its own interfaces, its recipients and its security are not in the capture.
            vec![None, Some("off -"), None, Some("on"), None, None, Some("on on"), None],
        ),
    ];
    for (folder, reads) in table {
        let tree = Tree::captured(folder).await;
        let client = tree.client();
        let parts = Parts::read(&client).await;
        for (wanted, reads) in wanted().iter().zip(reads) {
            let found = match Lenovo.locate(parts.at(&client), wanted).await.unwrap() {
                Located::At(spot) => Some(spot.describe(&spot.resource)),
                Located::Each(spots) => {
                    Some(spots.iter().map(|spot| spot.describe(&spot.resource)).collect::<Vec<_>>().join("; "))
                }
                Located::Absent { .. } => None,
            };
            assert_eq!(found.as_deref(), reads, "{folder} {wanted:?}");
        }
        assert!(tree.requests().iter().all(|seen| seen.method == "GET"));
    }
}

#[tokio::test]
async fn what_would_be_written_is_what_the_firmware_knows() {
    let tree = Tree::captured("lenovo-xcc").await;
    let client = tree.client();
    let parts = Parts::read(&client).await;
    let body = |wanted: Wanted| {
        let (client, parts) = (&client, &parts);
        async move {
            match Lenovo.locate(parts.at(client), &wanted).await.unwrap() {
                Located::At(spot) => spot.body(),
                other => panic!("{other:?}"),
            }
        }
    };
    assert_eq!(
        body(Wanted::Ntp { server: "192.0.2.7".into() }).await,
        json!({"NTP": {"ProtocolEnabled": true, "NTPServers": ["192.0.2.7"]}})
    );
    assert_eq!(body(Wanted::DhcpOnNic { address: None }).await, json!({"DHCPv4": {"DHCPEnabled": true}}));
    assert_eq!(body(Wanted::HostInterfaceOff).await, json!({"InterfaceEnabled": false}));
}

#[tokio::test]
async fn the_captured_boot_orders_are_read_with_the_nics_that_name_themselves() {
    let tree = Tree::captured("lenovo-xcc").await;
    let client = tree.client();
    let parts = Parts::read(&client).await;
    let setup = Lenovo.boot(parts.at(&client)).await.unwrap().unwrap();
    // Five entries of the network, one of which has its address, then the disks.
    assert_eq!(setup.options.len(), 6);
    assert_eq!((setup.options[0].kind, setup.options[5].name.as_str()), (Kind::HttpV4, "HardDisk"));
    assert_eq!(setup.options[0].nic(), Ok("02:00:5e:00:00:07".parse().ok()));
    assert_eq!(setup.options[1].nic(), Ok(None));
    assert_eq!((setup.staged.clone(), setup.aside.clone(), setup.incomplete.clone()), (None, vec![], None));
    assert_eq!(network_first(&setup), setup.order());

    let tree = Tree::captured("lenovo-xcc-sr670").await;
    let client = tree.client();
    let parts = Parts::read(&client).await;
    let setup = Lenovo.boot(parts.at(&client)).await.unwrap().unwrap();
    let order = nic_first(&setup, "02:00:5e:00:00:2c".parse().unwrap()).unwrap();
    assert_eq!(order[0], "Boot0003/UEFI:   SLOT3 (31/0/1) PXE IPv4  Nvidia Network Adapter - 02:00:5E:00:00:2C");
    // Eight entries, then what is no network in its own order.
    let rest: Vec<&str> = order[8..].iter().map(String::as_str).collect();
    assert_eq!(rest, ["Boot0000", "Boot0001", "Boot0002", "Boot0004"]);
    assert!(tree.requests().iter().all(|seen| seen.method == "GET"));
}

#[tokio::test]
async fn the_captured_attributes_are_read_with_what_is_staged_and_what_the_registry_says() {
    let names: Vec<String> =
        ["BootModes_SystemBootMode", "NetworkStackSettings_PXEbootwaittime"].map(String::from).into();
    for (folder, staged) in TREES.into_iter().zip([0, 1]) {
        let tree = Tree::captured(folder).await;
        let client = tree.client();
        let parts = Parts::read(&client).await;
        let bios = Lenovo.bios(parts.at(&client), &names).await.unwrap().unwrap();
        assert!(bios.now.len() > 300, "{folder}");
        assert_eq!(bios.staged.len(), staged, "{folder}: {:?}", bios.staged);
        if folder == "lenovo-xcc" {
            assert_eq!(bios.rules["BootModes_SystemBootMode"].values, ["UEFIMode", "LegacyMode"]);
            assert!(!bios.rules["NetworkStackSettings_PXEbootwaittime"].read_only);
            assert_eq!(bios.rules.len(), 2);
        } else {
            // The capture lacks its registry.
            assert!(bios.rules.is_empty());
        }
    }
}

#[tokio::test]
async fn the_captured_accounts_are_read() {
    for (folder, members) in TREES.into_iter().zip([1, 4]) {
        let tree = Tree::captured(folder).await;
        let client = tree.client();
        let root = client.root().await.unwrap();
        let found = accounts::read(&client, &root).await.unwrap().unwrap();
        assert_eq!(
            (found.members.len(), {
                let r = found.password_rules();
                (r.min, r.max)
            }),
            (members, (Some(10), Some(32))),
            "{folder}"
        );
        assert!(Lenovo.free_place(&found).is_none(), "{folder}: all of them have a name");
    }
}

/// What the lab serves is shaped after the capture: no member that this lacks, and the same types.
#[tokio::test]
async fn each_resource_of_the_lab_has_members_and_types_of_the_captured_one() {
    let rig = fresh(&[]).await;
    let mut queue = vec!["/redfish/v1".to_owned()];
    let (mut seen, mut found, mut compared) = (Vec::<String>::new(), vec![], 0);
    // Lazily built: its members come after it.
    while let Some(path) = queue.pop() {
        if seen.contains(&path) {
            continue;
        }
        seen.push(path.clone());
        let (status, body) = rig.get(&path).await;
        // Only the registries' own collection is left out, as in the capture.
        assert!(status == 200 || path.ends_with("/Registries") || path.contains("HostEthernet"), "{path}: {status}");
        links(&body, &mut queue);
        let file = format!("lenovo-xcc{path}/index.json");
        if status == 200 && fixtures().join(&file).exists() {
            compared += 1;
            differences(&path, &body, &fixture(&file), &mut found);
        }
    }
    assert_eq!(found, Vec::<String>::new());
    assert!(compared > 30, "{compared} of {}", seen.len());
}

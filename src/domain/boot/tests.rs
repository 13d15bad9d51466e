use super::*;
use proptest::prelude::*;

fn mac(n: u8) -> Mac {
    format!("02:4d:00:00:00:{n:02x}").parse().unwrap()
}

fn pxe(reference: &str, nic: u8, enabled: bool) -> BootOption {
    let path = format!("PciRoot(0x0)/Pci(0x1,0x0)/MAC(024D000000{nic:02X},0x1)/IPv4(0.0.0.0,0x0,DHCP)");
    BootOption::new(reference, &format!("UEFI: PXE IPv4 Card {nic}"), Some(&path), Some("Pxe"), Some(enabled))
}

fn disk(reference: &str) -> BootOption {
    BootOption::new(reference, "ubuntu", Some("HD(1,GPT,aa)/\\EFI\\ubuntu\\shimx64.efi"), Some("Hdd"), Some(true))
}

fn setup(options: Vec<BootOption>) -> BootSetup {
    BootSetup { options, ..BootSetup::default() }
}

#[test]
fn options_are_told_apart_by_path_and_name() {
    let of =
        |name: &str, path: &str, alias: &str| BootOption::new("Boot0001", name, Some(path), Some(alias), None).kind;
    let table = [
        ("UEFI: PXE IPv4 Intel X550", "PciRoot(0)/MAC(B42E99AABBCC,0x1)/IPv4(0.0.0.0)", "Pxe", Kind::PxeV4),
        ("UEFI: PXE IPv6 Intel X550", "PciRoot(0)/MAC(B42E99AABBCC,0x1)/IPv6([::])", "Pxe", Kind::PxeV6),
        ("UEFI: HTTP IPv4 Intel", "PciRoot(0)/MAC(B42E99AABBCC,0x1)/IPv4(0.0.0.0)/Uri()", "UefiHttp", Kind::HttpV4),
        (
            "UEFI: PXE IPv4 USB NIC",
            "PciRoot(0)/USB(1,0)/MAC(B42E99AABBCC,0x0)/IPv4(0.0.0.0)/Uri()",
            "Usb",
            Kind::HttpV4,
        ),
        ("PXE Device 1: NIC in Slot 5 Port 1 Partition 1", "VenHw(3A191845)", "Pxe", Kind::PxeV4),
        ("HTTP Device 1: NIC in Slot 5 - aa - IPv6", "VenHw(3A191845)", "", Kind::HttpV6),
        ("Network", "VenHw_1", "", Kind::Network),
        ("UEFI: Built-in EFI Shell", "VenMedia(5023B95C)", "None", Kind::Other),
        ("HARD DISK", "HD(1,GPT)", "Hdd", Kind::Other),
        ("UEFI: Virtual CDROM", "PciRoot(0)/USB(2,1)", "Cd", Kind::Other),
    ];
    for (name, path, alias, kind) in table {
        assert_eq!(of(name, path, alias), kind, "{name}");
    }
}

#[test]
fn a_mac_is_read_from_a_whole_node_only() {
    let table = [
        ("x/MAC(b42e99aabbcc,0x1)/IPv4(0)", Some("b4:2e:99:aa:bb:cc")),
        ("x/Mac(B42E99AABBCC0000000000000000000000000000000000000000000000000000,0x1)", Some("b4:2e:99:aa:bb:cc")),
        ("x/MAC(B42E99AABBCCDD,0x20)", None),
        ("x/MAC(B42E99AABB,0x1)", None),
        ("x/MAC()", None),
        ("VenHw(B42E99AABBCC)", None),
    ];
    for (path, want) in table {
        assert_eq!(mac_of_path(path), want.map(|text| text.parse().unwrap()), "{path}");
    }
    assert_eq!(mac_of_name("NIC in Slot 2 - Broadcom - AA:BB:CC:DD:EE:FF - IPv4"), "aa:bb:cc:dd:ee:ff".parse().ok());
    assert_eq!(mac_of_name("UEFI: PXE IPv4 Intel(R) Ethernet Controller X550"), None);
}

/// Proves: B12
#[test]
fn the_nic_comes_first_other_nics_are_disabled_and_the_rest_stays() {
    let all =
        setup(vec![disk("Boot0000"), pxe("Boot0001", 1, true), pxe("Boot0002", 2, true), pxe("Boot0003", 3, false)]);
    let done = restrict(&all, mac(2)).unwrap();
    assert_eq!(done.order, ["Boot0002", "Boot0000", "Boot0001", "Boot0003"]);
    assert_eq!(done.disable, ["Boot0001"]);
    assert!(done.enable.is_empty());
    let off = restrict(&all, mac(3)).unwrap();
    assert_eq!((off.enable, off.disable), (vec!["Boot0003".to_owned()], vec!["Boot0001".into(), "Boot0002".into()]));
}

/// Proves: B14
#[test]
fn a_nic_that_is_not_positively_identified_leaves_everything_as_it_is() {
    let silent =
        BootOption::new("Boot0001", "PXE Device 1: NIC in Slot 5", Some("VenHw(GUID)"), Some("Pxe"), Some(true));
    let none = restrict(&setup(vec![silent.clone(), disk("Boot0000")]), mac(1)).unwrap_err();
    assert!(none.contains("tells no MAC"), "{none}");
    let twice = restrict(&setup(vec![pxe("Boot0001", 1, true), pxe("Boot0002", 1, true)]), mac(1)).unwrap_err();
    assert!(twice.contains("2 options"), "{twice}");
    let mut doubted = silent;
    for (source, nic) in [("RelatedItem", 1), ("PxeDev1Interface", 2)] {
        doubted.evidence.push(Evidence { source: source.to_owned(), mac: mac(nic) });
    }
    let doubt = restrict(&setup(vec![doubted]), mac(1)).unwrap_err();
    assert!(doubt.contains("RelatedItem") && doubt.contains("PxeDev1Interface"), "{doubt}");
    let part = BootSetup { incomplete: Some("Boot0007: 404".into()), ..setup(vec![pxe("Boot0001", 1, true)]) };
    assert!(restrict(&part, mac(1)).unwrap_err().contains("Boot0007"));
    let six = BootOption::new("Boot0001", "PXE IPv6", Some("MAC(024D00000001,0x1)/IPv6(0)"), None, Some(true));
    assert!(restrict(&setup(vec![six]), mac(1)).unwrap_err().contains("IPv4"));
}

/// Proves: B12
#[test]
fn pxe_is_preferred_to_http_and_what_is_done_is_done() {
    let http = "PciRoot(0)/MAC(024D00000001,0x1)/IPv4(0.0.0.0)/Uri()";
    let http = BootOption::new("Boot0004", "UEFI: HTTP IPv4 Card", Some(http), Some("UefiHttp"), Some(true));
    let all = setup(vec![http.clone(), pxe("Boot0001", 1, true), disk("Boot0000")]);
    let done = restrict(&all, mac(1)).unwrap();
    assert_eq!((done.order[0].as_str(), done.disable.as_slice()), ("Boot0001", &["Boot0004".to_owned()][..]));
    assert!(!done.is_satisfied_by(&all));
    let only = setup(vec![http, disk("Boot0000")]);
    assert!(restrict(&only, mac(1)).unwrap().is_satisfied_by(&only));
    let staged = BootSetup { staged: Some(vec!["Boot0000".into(), "Boot0004".into()]), ..only.clone() };
    assert!(!restrict(&staged, mac(1)).unwrap().is_satisfied_by(&staged), "the next boot would undo it");
}

/// Proves: B7, B15
#[test]
fn the_reorder_by_label_puts_nics_first_and_disables_nothing() {
    let all = setup(vec![disk("Boot0000"), pxe("Boot0001", 1, false), disk("Boot0002"), pxe("Boot0003", 2, true)]);
    assert_eq!(network_first(&all), ["Boot0001", "Boot0003", "Boot0000", "Boot0002"]);
}

#[test]
fn an_option_aside_is_found_enabled_and_taken_back_into_the_order() {
    let all = BootSetup {
        aside: vec![pxe("Boot0002", 2, false), pxe("Boot0003", 3, true)],
        ..setup(vec![pxe("Boot0001", 1, true), disk("Boot0000")])
    };
    let done = restrict(&all, mac(2)).unwrap();
    assert_eq!(done.order, ["Boot0002", "Boot0001", "Boot0000"]);
    assert_eq!((done.enable, done.disable), (vec!["Boot0002".into()], vec!["Boot0001".into(), "Boot0003".to_owned()]));
    // What is right in the order stays right, whatever disabled options lie aside.
    let vanished =
        BootSetup { aside: vec![pxe("Boot0002", 2, false)], ..setup(vec![pxe("Boot0001", 1, true), disk("Boot0000")]) };
    assert!(restrict(&vanished, mac(1)).unwrap().is_satisfied_by(&vanished));
}

#[test]
fn the_reorder_takes_back_what_was_dropped_and_leaves_aside_what_is_disabled() {
    let mut class = disk("Hard Disk");
    class.enabled = None;
    let all = BootSetup {
        aside: vec![class, pxe("Boot0009", 9, false)],
        ..setup(vec![pxe("Boot0001", 1, true), pxe("Boot0002", 2, true)])
    };
    assert_eq!(network_first(&all), ["Boot0001", "Boot0002", "Hard Disk"]);
    assert_eq!(nic_first(&all, mac(2)).unwrap(), ["Boot0002", "Boot0001", "Hard Disk"]);
    assert_eq!(nic_first(&all, mac(9)).unwrap(), ["Boot0009", "Boot0001", "Boot0002", "Hard Disk"]);
    assert!(nic_first(&all, mac(4)).unwrap_err().contains("no boot option is proven"));
}

proptest! {
    /// Proves: B12, B14
    #[test]
    fn after_a_restriction_one_nic_and_every_disk_can_boot(
        kinds in proptest::collection::vec((0u8..4, any::<bool>(), 0u8..6), 1..20),
        wanted in 0u8..6,
    ) {
        let options: Vec<BootOption> = kinds.iter().enumerate().map(|(n, (kind, enabled, nic))| {
            let reference = format!("Boot{n:04}");
            match kind {
                0 => disk(&reference),
                _ => pxe(&reference, *nic, *enabled),
            }
        }).collect();
        let before = setup(options);
        let Ok(change) = restrict(&before, mac(wanted)) else { return Ok(()) };
        let mut sorted = (before.order(), change.order.clone());
        sorted.0.sort();
        sorted.1.sort();
        prop_assert_eq!(sorted.0, sorted.1, "nothing is lost and nothing is made up");
        let after: Vec<BootOption> = before.options.iter().cloned().map(|mut option| {
            if change.disable.contains(&option.reference) { option.enabled = Some(false); }
            if change.enable.contains(&option.reference) { option.enabled = Some(true); }
            option
        }).collect();
        for option in &after {
            let kept = option.reference == change.order[0];
            prop_assert_eq!(option.enabled == Some(true), kept || option.kind == Kind::Other, "{:?}", option);
        }
        let again = BootSetup {
            options: change.order.iter().map(|r| after.iter().find(|o| o.reference == *r).unwrap().clone()).collect(),
            ..before
        };
        prop_assert!(restrict(&again, mac(wanted)).unwrap().is_satisfied_by(&again));
    }
}

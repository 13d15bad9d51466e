//! A rack from NetBox to the store to what the console asks for: numbering, heights, depths and faces, and what is known of
//! the cables of its hosts.

use std::time::{Duration, Instant};

use jiff::{SignedDuration, Timestamp};
use muster::app::{App, Opening};
use muster::domain::cable_doctor::{HeardCable, HeardHost};
use muster::domain::elevation::{Elevation, Face, Heard, Link, Loose, Racked, Span, Units};
use muster::domain::link::LinkState;
use muster::domain::lldp::Neighbour;
use muster::domain::wiring::Interface;
use muster::lab::Lab;
use muster::lab::scenario::Scenario;
use muster::store::Store;

const HOST: &str = "gpu-b07-37";
const OTHER: &str = "gpu-b07-29";
const UNPLACED: &str = "gpu-b07-35";

struct Site {
    lab: Lab,
    app: App,
    folder: tempfile::TempDir,
}

impl Site {
    /// Rack B07 counted from 5 at its top on, 45 units high, with three hosts and the lab's switches.
    async fn start() -> Site {
        rustls::crypto::ring::default_provider().install_default().ok();
        let mut scenario = Scenario::demo().unwrap();
        scenario.hosts.retain(|host| [HOST, OTHER, UNPLACED].contains(&host.name.as_str()));
        scenario.faults.clear();
        let rack = scenario.sites.get_mut("osl1").unwrap().racks.get_mut("B07").unwrap();
        (rack.u_height, rack.starting_unit, rack.desc_units) = (45, 5, true);
        let lab = Lab::start(scenario, 100.0).await.unwrap();
        let folder = tempfile::tempdir().unwrap();
        let config = lab.write_config(&folder.path().join("etc")).unwrap();
        let settings = muster::config::load(&config).unwrap();
        let opening = Opening { user: Some("jo".into()), aside: false };
        let app = App::open_as(settings, &folder.path().join("state"), opening).await.unwrap();
        Site { lab, app, folder }
    }

    fn read(&self) -> Elevation {
        self.app.elevation("osl1", Some("hall B"), "B07").unwrap()
    }

    /// Waits until the observers have read so far.
    async fn until(&self, ready: impl Fn(&Elevation) -> bool) -> Elevation {
        let deadline = Instant::now() + Duration::from_secs(30);
        loop {
            let read = self.read();
            if ready(&read) {
                return read;
            }
            assert!(Instant::now() < deadline, "{read:#?}");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }
}

fn device<'a>(elevation: &'a Elevation, name: &str) -> &'a Racked {
    let found = elevation.devices.iter().find(|racked| racked.device.name == name);
    found.unwrap_or_else(|| panic!("no '{name}' in {elevation:#?}"))
}

fn link<'a>(elevation: &'a Elevation, host: &str, interface: &str) -> &'a Link {
    let links = &device(elevation, host).links;
    links.iter().find(|link| link.interface == interface).unwrap_or_else(|| panic!("no '{interface}' in {links:#?}"))
}

/// Proves: U1
#[tokio::test(flavor = "multi_thread")]
async fn a_rack_stands_as_netbox_has_it_and_its_cables_as_last_known() {
    let site = Site::start().await;
    // Depths of types are read beside all else; until then a device counts as one that fills the rack.
    let all_read = |read: &Elevation| {
        let depths = read.devices.iter().any(|r| r.device.name == "leaf-b07-1" && !r.is_full_depth);
        let links = read.devices.iter().all(|r| !r.is_host || r.links.len() == 2);
        read.is_numbered && depths && read.devices.len() == 6 && links
    };
    let read = site.until(all_read).await;
    assert_eq!(read.units, Units { height: 45, first: 5, top_down: true });
    let order: Vec<&str> = read.devices.iter().map(|racked| racked.device.name.as_str()).collect();
    assert_eq!(
        order,
        ["leaf-b07-1", "leaf-b07-2", "oob-b07", OTHER, HOST, UNPLACED],
        "29 is above 37 where it counts down"
    );
    let host = device(&read, HOST);
    assert_eq!((host.stand, host.is_host, host.is_full_depth), (Ok(Span { top: 64, height: 4 }), true, true));
    let leaf = device(&read, "leaf-b07-1");
    assert_eq!((leaf.stand, leaf.is_host), (Ok(Span { top: 0, height: 2 }), false));
    assert!(leaf.shows_at(Face::Front) && !leaf.shows_at(Face::Rear), "a switch fills half of the depth");
    assert_eq!(device(&read, UNPLACED).stand, Err(Loose::NoUnit));

    // Nobody looked at a cable yet: where NetBox has it is known, and nothing else.
    let before = link(&read, HOST, "eth0");
    let port = before.recorded.clone().unwrap();
    assert_eq!((port.switch.as_str(), port.port.as_str()), ("leaf-b07-1", "swp14"));
    assert_eq!((before.state, before.state_at), (LinkState::Unknown, None));
    assert_eq!(before.heard, Heard::Unknown { why: None });

    // An inspection heard the two cables in each other's place, an hour ago.
    let store = Store::open(&site.folder.path().join("state")).unwrap();
    let (id, at) = (host.device.netbox_id, Timestamp::now() - SignedDuration::from_hours(1));
    let interfaces = store.objects_of::<Interface>(id).unwrap();
    let cable = |name: &str, switch: &str| HeardCable {
        netbox_id: interfaces.iter().find(|read| read.object.name == name).unwrap().object.netbox_id,
        interface: name.into(),
        seen: true,
        carrier: Some(true),
        neighbours: vec![Neighbour {
            system_name: Some(switch.into()),
            port_id: Some("swp14".into()),
            ..Default::default()
        }],
        ..Default::default()
    };
    let heard = HeardHost {
        netbox_id: id,
        host: HOST.into(),
        site: "osl1".into(),
        rack: Some("B07".into()),
        place: None,
        inspected_at: at,
        cables: vec![cable("eth0", "leaf-b07-2"), cable("eth1", "leaf-b07-1")],
    };
    store.put_heard(heard, true).await.unwrap();
    let read = site.read();
    let eth0 = link(&read, HOST, "eth0");
    let same_time = |told: Timestamp| told.as_second() == at.as_second();
    assert!(eth0.state == LinkState::Up && eth0.state_at.is_some_and(same_time), "{eth0:?}");
    let Heard::Elsewhere { port, at: heard_at } = &eth0.heard else { panic!("{eth0:?}") };
    assert_eq!(port, &Some(("leaf-b07-2".to_owned(), "swp14".to_owned())));
    assert!(same_time(*heard_at));
    assert_eq!(link(&read, OTHER, "eth0").heard, Heard::Unknown { why: None }, "the other host was not inspected");

    // NetBox moves a host by half a unit to the rear, and another one out of the rack's numbers.
    {
        let world = site.lab.world();
        let mut state = world.lock();
        let now = Timestamp::now();
        for device in state.records.devices.values_mut() {
            match device.name.as_str() {
                OTHER => (device.position, device.face) = (Some(12.5), Some("rear".to_owned())),
                HOST => device.position = Some(49.0),
                _ => continue,
            }
            device.stamps.last_updated = now;
        }
    }
    site.app.sync_now().await.unwrap();
    let read = site.until(|read| device(read, OTHER).device.position == Some(12.5)).await;
    assert_eq!((device(&read, OTHER).stand, device(&read, OTHER).face), (Ok(Span { top: 15, height: 4 }), Face::Rear));
    assert_eq!(device(&read, HOST).stand, Err(Loose::Outside), "two units from 49 on are more than the rack has");
    // A rack that the store knows nothing of is as high as its devices need, and has none.
    let none = site.app.elevation("osl1", None, "Z99").unwrap();
    assert_eq!((none.devices.len(), none.is_measured, none.is_numbered), (0, false, false));
    site.app.shutdown().await;
}

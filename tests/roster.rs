//! The fleet as the console reads it: what changed since brings the same list as reading all of it, and the first hosts are
//! those that the whole begins with.

use std::collections::BTreeMap;

use jiff::Timestamp;
use muster::app::{App, Changes, Entry, Opening, Roster};
use muster::domain::device::{Device, IronicRef, Proof};
use muster::domain::ids::{NodeUuid, RunId};
use muster::lab::Lab;
use muster::lab::scenario::Scenario;
use muster::store::Store;
use muster::tui::model::place::natural;
use serde_json::json;
use uuid::Uuid;

struct Rig {
    _lab: Lab,
    _folder: tempfile::TempDir,
    app: App,
    store: Store,
}

impl Rig {
    /// An application that only looks: nobody else writes to its store.
    async fn start() -> Rig {
        rustls::crypto::ring::default_provider().install_default().ok();
        let lab = Lab::start(Scenario::demo().unwrap(), 100.0).await.unwrap();
        let folder = tempfile::tempdir().unwrap();
        let config = lab.write_config(&folder.path().join("etc")).unwrap();
        let state = folder.path().join("state");
        let opening = Opening { user: None, aside: true };
        let app = App::open_as(muster::config::load(&config).unwrap(), &state, opening).await.unwrap();
        let store = Store::open(&state).unwrap();
        Rig { _lab: lab, _folder: folder, app, store }
    }
}

fn device(id: u64, name: &str, place: [&str; 3], class: Option<&str>, unit: Option<f64>) -> Device {
    let [site, location, rack] = place;
    let named = |name: &str| (!name.is_empty()).then(|| name.to_owned());
    serde_json::from_value(json!({
        "netbox_id": id, "name": name, "site": site, "location": named(location), "rack": named(rack), "position": unit,
        "status": "active", "role": "compute", "device_class": class, "manufacturer": "Lenovo", "model": "HG635N V2",
        "serial": format!("S{id}"), "last_updated": null, "read_at": "2026-11-30T06:00:00Z",
    }))
    .unwrap()
}

fn whole(roster: &mut Roster) -> BTreeMap<u64, String> {
    let mut all = BTreeMap::new();
    roster.whole(|entry: Entry| drop(all.insert(entry.device.netbox_id, format!("{entry:?}")))).unwrap();
    all
}

struct Dice(u64);

impl Dice {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % end
    }

    fn of<T: Copy>(&mut self, among: &[T]) -> T {
        among[self.below(among.len() as u64) as usize]
    }
}

fn node(n: u64) -> NodeUuid {
    NodeUuid(Uuid::from_u128(u128::from(n)))
}

/// Proves: N1, U1
#[tokio::test]
async fn whatever_changes_what_is_read_of_it_brings_the_same_fleet_as_reading_all_of_it() {
    let rig = Rig::start().await;
    let mut dice = Dice(8);
    let names = ["a", "b", "c", "d", "e", "f"];
    for site in [None, Some("osl1".to_owned())] {
        let mut roster = rig.app.roster(site.clone());
        assert_eq!(roster.changes(|_| ()).unwrap(), Changes::Unknown, "nothing was read before");
        let mut kept = whole(&mut roster);
        let mut told = 0;
        for _ in 0..150 {
            for _ in 0..=dice.below(2) {
                let id = dice.below(8) + 1;
                match dice.below(8) {
                    0..=2 => {
                        let place =
                            [dice.of(&["osl1", "ams2"]), dice.of(&["", "hall A"]), dice.of(&["", "B07", "B08"])];
                        let class = dice.of(&[Some("COMPUTE_GPU"), Some("SWITCH"), None]);
                        let unit = dice.of(&[None, Some(7.0)]);
                        rig.store.put_devices(vec![device(id, dice.of(&names), place, class, unit)]).await.unwrap();
                    }
                    3 => rig.store.remove_devices(vec![id]).await.unwrap(),
                    4 => drop(rig.store.set_platform_class(id, dice.of(&["X", "Y"])).await),
                    5 => {
                        let proof = Proof {
                            node: node(1),
                            instance: "one".into(),
                            run: RunId(Uuid::nil()),
                            at: Timestamp::UNIX_EPOCH,
                        };
                        rig.store.prove(dice.of(&names), proof).await.unwrap();
                    }
                    _ => {
                        let reference = |state: &str, n| IronicRef {
                            instance: "one".into(),
                            node: node(n),
                            state: state.into(),
                            maintenance: false,
                            instance_uuid: None,
                            read_at: Timestamp::UNIX_EPOCH,
                        };
                        let all: BTreeMap<&str, IronicRef> = (0..dice.below(4))
                            .map(|_| (dice.of(&names), reference(dice.of(&["available", "active"]), dice.below(2) + 1)))
                            .collect();
                        let refs = all.into_iter().map(|(name, reference)| (name.to_owned(), reference)).collect();
                        rig.store.put_ironic_refs(refs, "one").await.unwrap();
                    }
                }
            }
            let mut changed = Vec::new();
            let Changes::Without(gone) = roster.changes(|entry| changed.push(entry)).unwrap() else {
                panic!("the mark was of this store")
            };
            told += changed.len();
            gone.iter().for_each(|id| drop(kept.remove(id)));
            kept.extend(changed.into_iter().map(|entry| (entry.device.netbox_id, format!("{entry:?}"))));
            assert_eq!(kept, whole(&mut rig.app.roster(site.clone())));
        }
        assert!(told > 20, "{told}");
        assert_eq!(roster.changes(|entry| panic!("{entry:?} did not change")).unwrap(), Changes::Without(Vec::new()));
    }
    rig.app.shutdown().await;
}

/// Proves: N1, U1
#[tokio::test]
async fn the_first_hosts_are_those_that_the_whole_walk_begins_with() {
    let rig = Rig::start().await;
    let mut devices = Vec::new();
    for (site, location) in [("site2", "hall 10"), ("site2", "hall 9"), ("site10", ""), ("site10", "hall 1")] {
        for n in 0..60u64 {
            let (id, rack) = (devices.len() as u64 + 1, format!("R{}", n / 5));
            let class = if n % 5 == 4 { "SWITCH" } else { "COMPUTE_GPU" };
            let unit = Some((n % 5 + 1) as f64);
            devices.push(device(id, &format!("host-{id}"), [site, location, &rack], Some(class), unit));
        }
    }
    devices.push(device(999, "in-no-rack", ["site1", "hall 1", ""], Some("COMPUTE_GPU"), None));
    rig.store.put_devices(devices).await.unwrap();
    let order = |a: Option<&str>, b: Option<&str>| natural(a.unwrap_or("no location"), b.unwrap_or("no location"));
    let place = |entry: &Entry| {
        let device = &entry.device;
        let names = [Some(&device.site), device.location.as_ref(), device.rack.as_ref()];
        names.map(|name| name.map_or("no location".to_owned(), ToString::to_string))
    };
    let mut roster = rig.app.roster(None);
    assert_eq!(roster.size().unwrap(), 241);
    let mut all = Vec::new();
    roster.whole(|entry| all.push(place(&entry))).unwrap();
    all.sort_by(|a, b| {
        a.iter().zip(b).map(|(a, b)| natural(a, b)).find(|order| order.is_ne()).unwrap_or_else(|| a.cmp(b))
    });
    for count in [1, 7, 130, 500] {
        let first: Vec<_> = roster.first(count, order).unwrap().iter().map(place).collect();
        assert!(first.len() >= count.min(all.len()) && first.len() < count + 4, "{}", first.len());
        assert_eq!(first, all[..first.len()]);
    }
    let of_site: Vec<_> = rig.app.roster(Some("site10".into())).first(1, order).unwrap().iter().map(place).collect();
    assert_eq!(of_site[0], ["site10", "hall 1", "R0"]);
    rig.app.shutdown().await;
}

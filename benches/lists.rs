//! A fleet of 100,000 devices in the lists: `cargo bench --bench lists [DEVICES]`. Prints figures, asserts none (N1).
//!
//! The store is read as the console reads it; keys and frames go through the console's own model and view, without a
//! terminal behind them.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use jiff::{SignedDuration, Timestamp};
use muster::domain::device::Device;
use muster::store::Store;
use muster::tui::event::{Event, Key};
use muster::tui::glyphs::Glyphs;
use muster::tui::model::Model;
use muster::tui::model::host::Host;
use muster::tui::theme::Theme;
use muster::tui::update::update;
use muster::tui::view::{LogPane, draw};
use muster::tui::widgets::pen::Skin;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use serde_json::json;

const WIDTH: u16 = 200;
const HEIGHT: u16 = 60;

fn main() {
    let devices = std::env::args().skip(1).find_map(|arg| arg.parse().ok()).unwrap_or(100_000);
    let folder = PathBuf::from("target/bench-lists");
    std::fs::remove_dir_all(&folder).ok();
    let fleet: Vec<Device> = (0..devices).map(device).collect();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let store = Store::open(&folder).unwrap();
    let began = Instant::now();
    for some in fleet.chunks(5_000) {
        runtime.block_on(store.put_devices(some.to_vec())).unwrap();
    }
    println!("{devices} devices written in {:.2?}", began.elapsed());
    let began = Instant::now();
    runtime.block_on(store.put_devices(fleet)).unwrap();
    println!("{devices} devices compared and found the same in {:.2?}", began.elapsed());
    let began = Instant::now();
    let read = store.devices().unwrap();
    println!("{devices} devices read in {:.2?}", began.elapsed());

    let hosts: Vec<Host> = read.into_iter().map(host).collect();
    let mut console = Console::new();
    let began = Instant::now();
    update(&mut console.model, Event::Fleet(hosts.clone()));
    println!("taken into the lists in {:.2?}", began.elapsed());
    let began = Instant::now();
    update(&mut console.model, Event::Fleet(hosts));
    println!("taken again, as after each change, in {:.2?}", began.elapsed());

    console.keys("moving down and up", &["j", "j", "j", "k", "G", "g", "g", "ctrl-d", "ctrl-u"], 40);
    console.keys("typing a filter and clearing it", &["/", "7", "7", "-", "2", "backspace", "esc"], 8);
    console.keys("between tree and table", &["tab", "j", "j", "k", "tab"], 20);
    drop(store);
    std::fs::remove_dir_all(&folder).ok();
}

/// Twenty hosts a rack, fifty racks a hall, ten halls a site.
fn device(n: usize) -> Device {
    let (rack, hall, site) = (n / 20, n / 1_000, n / 10_000);
    serde_json::from_value(json!({
        "netbox_id": n + 1, "name": format!("gpu-{rack:04}-{:02}", n % 20 + 1), "site": format!("site{site:02}"),
        "location": format!("hall {hall:03}"), "rack": format!("R{rack:04}"), "position": (n % 20 + 1) * 2, "face": "front",
        "u_height": 2.0, "status": if n.is_multiple_of(9) { "staged" } else { "active" }, "role": "GPU compute",
        "device_class": "COMPUTE_GPU", "manufacturer": "Supermicro", "model": "SYS-222GE-NB",
        "serial": format!("S{n:08}"), "asset_tag": format!("A{n:08}"), "tags": ["ironic", "burn-in"],
        "oob_ip": format!("10.{}.{}.{}", n / 65_536, n / 256 % 256, n % 256),
        "custom_fields": {"platform_class": "B200_SUPERMICROSYS222GENB_IB_01", "owner": "infra"},
        "last_updated": "2026-11-01T10:00:00Z", "read_at": "2026-11-30T06:00:00Z",
    }))
    .unwrap()
}

fn host(device: Device) -> Host {
    Host { device, ironic: None, refusal: None, last_run: None, proof: None }
}

struct Console {
    model: Model,
    skin: Skin,
    log: LogPane,
    buffer: Buffer,
}

impl Console {
    fn new() -> Console {
        let skin = Skin { theme: Theme::named("dark").unwrap(), glyphs: Glyphs { ascii: false } };
        let buffer = Buffer::empty(Rect::new(0, 0, WIDTH, HEIGHT));
        Console { model: Model::new(Timestamp::now(), WIDTH, HEIGHT), skin, log: LogPane::new(false), buffer }
    }

    /// From each key to the whole frame after it.
    fn keys(&mut self, what: &str, keys: &[&str], times: usize) {
        let mut took: Vec<Duration> = Vec::new();
        for key in keys.iter().cycle().take(keys.len() * times) {
            let key: Key = key.parse().unwrap();
            // A person's keys, and not a paste.
            let at = self.model.now + SignedDuration::from_millis(300);
            let began = Instant::now();
            update(&mut self.model, Event::Key { key, at });
            update(&mut self.model, Event::Tick(at));
            self.buffer.reset();
            draw(&self.model, &self.skin, &self.log, &mut self.buffer);
            took.push(began.elapsed());
        }
        took.sort_unstable();
        println!(
            "{what}: key to frame p50 {:.2?}, p99 {:.2?}, at most {:.2?}",
            took[took.len() / 2],
            took[took.len() * 99 / 100],
            took[took.len() - 1]
        );
    }
}

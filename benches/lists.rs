//! A fleet of 100,000 devices in the lists: `cargo bench --bench lists [DEVICES]`. Prints figures, asserts none (N1).
//!
//! The store is read as the console reads it; keys and frames go through the console's own model and view, without a
//! terminal behind them.

#[path = "../tests/support/many.rs"]
mod many;

use std::path::PathBuf;
use std::time::{Duration, Instant};

use jiff::{SignedDuration, Timestamp};
use many::{device, host};
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

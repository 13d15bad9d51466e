//! Tells a scanner from hands. A barcode scanner types what it reads and Enter, faster than anybody: that looks a device up
//! by serial or asset tag, and presses no key (U10, C-45).
//!
//! The first character is done at once, as if it had come alone. When another one follows faster than hands, the rest waits
//! for what it becomes: with Enter at its end it is a scan, and what the first one did is taken back.

use jiff::Timestamp;

use super::keys::{self, ms};
use super::{BURST_MS, popups};
use crate::domain::text::neutralize_to;
use crate::tui::effect::Effect;
use crate::tui::event::{Code, Key};
use crate::tui::model::burst::{Burst, Waiting};
use crate::tui::model::host::Host;
use crate::tui::model::place::Place;
use crate::tui::model::walk::{self, rack_and_unit};
use crate::tui::model::{Model, Screen, ToastKind};
use crate::tui::text::count;

/// A burst that no hands can have typed is waited for so long: over a bad line a scan comes in pieces.
pub const SCAN_PAUSE_MS: i64 = 200;

/// Takes a key that belongs to a burst; `false`: it counts for itself.
pub(super) fn take(model: &mut Model, key: Key, at: Timestamp, gap: i64) -> (Vec<Effect>, bool) {
    let mut effects = Vec::new();
    if let Some(mut burst) = model.burst.take() {
        let goes_on = gap < patience(&burst);
        match key.typed() {
            Some(c) if goes_on => {
                burst.take(key, c, at);
                if burst.is_one_key() {
                    model.burst = Some(burst);
                    return (effects, false);
                }
                burst.held = burst.held.or(model.keys.held.take().map(|held| held.action));
                burst.waiting.push(Waiting { key, at, gap });
                model.burst = Some(burst);
                return (effects, true);
            }
            None if goes_on && key.code == Code::Enter && !burst.is_one_key() => return (scanned(model, &burst), true),
            _ => effects = settle(model, *burst),
        }
    }
    // Some scanners end with more than one key.
    if model.keys.scanned && gap < BURST_MS {
        return (effects, true);
    }
    model.keys.scanned = false;
    // What opens a field begins no code: the keys behind it are text, however fast they come.
    let begins = key.typed().filter(|c| c.is_alphanumeric() && !keys::takes_text(model));
    if let Some(c) = begins {
        model.burst = Some(Box::new(Burst::begin(model, key, c, at)));
    }
    (effects, false)
}

/// Time went on: keys that waited for more are done, or told to be none.
pub(super) fn release(model: &mut Model) -> Vec<Effect> {
    let now = model.now;
    match model.burst.take_if(|burst| ms(burst.at, now) >= patience(burst)) {
        Some(burst) => settle(model, *burst),
        None => Vec::new(),
    }
}

/// Milliseconds until a burst is over when no key comes.
pub fn patience(burst: &Burst) -> i64 {
    if burst.is_no_hand() { SCAN_PAUSE_MS } else { BURST_MS }
}

/// A burst that ended without Enter: two keys that hands rolled over are done, and more than that is no hand's.
fn settle(model: &mut Model, burst: Burst) -> Vec<Effect> {
    if burst.is_no_hand() {
        burst.undo(model);
        let said = format!("{} keys came at once, as from a paste: nothing was done", burst.text.chars().count());
        model.toast(ToastKind::Warning, said, Some("press a key again if you meant it".to_owned()));
        return Vec::new();
    }
    if let Some(action) = burst.held {
        keys::refuse_burst(model, action);
    }
    burst.waiting.into_iter().flat_map(|w| keys::alone(model, w.key, w.at, w.gap)).collect()
}

/// A whole scan: the device that it names is selected, and nothing else happens.
fn scanned(model: &mut Model, burst: &Burst) -> Vec<Effect> {
    burst.undo(model);
    model.keys.scanned = true;
    let code = burst.text.trim();
    let shown = neutralize_to(code, 40);
    if model.popup.is_some() {
        let action = Some("esc closes it; then scan again".to_owned());
        model.toast(ToastKind::Warning, format!("'{shown}' was scanned while a dialog is open"), action);
        return Vec::new();
    }
    let found: Vec<(u64, String, Place, String)> = (model.fleet.hosts.iter().filter(|host| is_called(host, code)))
        .map(|host| {
            let device = &host.device;
            (device.netbox_id, device.name.to_string(), Place::of(host), rack_and_unit(host))
        })
        .collect();
    match found.as_slice() {
        [] => model.toast(ToastKind::Warning, format!("no device with serial or asset tag '{shown}'"), None),
        [(id, name, place, unit)] => {
            focus(model, *id, place.clone());
            model.toast(ToastKind::Info, format!("{name} · {unit}"), None);
        }
        several => {
            let names: Vec<&str> = several.iter().take(4).map(|(_, name, ..)| name.as_str()).collect();
            let said = format!("{} have the serial '{shown}': {}", count(several.len(), "device"), names.join(", "));
            model.toast(ToastKind::Warning, said, Some("go to one by : and host".to_owned()));
        }
    }
    Vec::new()
}

fn is_called(host: &Host, code: &str) -> bool {
    let device = &host.device;
    [&device.serial, &device.asset_tag].into_iter().flatten().any(|known| known.eq_ignore_ascii_case(code))
}

/// Selects a host where it stands: among the stops, where it is one of them, in the rack that shows, else in the fleet.
fn focus(model: &mut Model, id: u64, place: Place) {
    let stop = walk::stops(model).iter().position(|host| host.device.netbox_id == id);
    if let (Some(Screen::Walk(walk)), Some(at)) = (model.screens.last_mut(), stop) {
        (walk.selected, walk.at) = (Some(id), at);
        return;
    }
    if let Some(Screen::Rack(rack)) = model.screens.last_mut()
        && rack.place == place
    {
        // Into the middle, wherever it stands.
        (rack.selected, rack.top) = (Some(id), None);
        return;
    }
    popups::go_to(model, place);
    model.fleet.selected = Some(id);
}

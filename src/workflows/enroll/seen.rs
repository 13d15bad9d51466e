//! What an attempt saw on the way, for whoever has to find out why it came to nothing (C-03).

use jiff::Timestamp;

use crate::domain::link::LinkReading;
use crate::domain::provision::Power;
use crate::workflows::defs::NodeLook;

/// Gathered while an attempt runs.
#[derive(Debug, Default)]
pub(super) struct Seen {
    power_on_at: Option<Timestamp>,
    links: Option<String>,
    heartbeat: Option<String>,
}

impl Seen {
    pub(super) fn node(&mut self, at: Timestamp, look: &NodeLook) {
        match look.power {
            Power::On => self.power_on_at = self.power_on_at.or(Some(at)),
            Power::Off | Power::Unknown => self.power_on_at = None,
        }
        self.heartbeat = look.last_heartbeat.clone().or(self.heartbeat.take());
    }

    pub(super) fn links(&mut self, readings: &[LinkReading]) {
        let links: Vec<String> = readings.iter().map(|l| format!("{} {}", l.interface, l.state.as_str())).collect();
        self.links = (!links.is_empty()).then(|| links.join(" "));
    }

    pub(super) fn words(&self) -> String {
        let power = match self.power_on_at {
            Some(at) => format!("power on since {}", at.strftime("%H:%M:%SZ")),
            None => "never powered on".to_owned(),
        };
        let links = self.links.as_ref().map_or("no link read".to_owned(), |links| format!("links {links}"));
        let heartbeat = match &self.heartbeat {
            Some(at) => format!("last heartbeat of the ramdisk {at}"),
            None => "no heartbeat of the ramdisk".to_owned(),
        };
        format!("{power}, {links}, {heartbeat}")
    }
}

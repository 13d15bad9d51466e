//! What a person asks of a host at the rack: to show itself, and power (U10).

use serde::{Deserialize, Serialize};

/// What the locator LED is to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LocatorWish {
    On,
    Off,
    /// The other of what it is.
    Toggle,
}

/// How the locator LED stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Located {
    /// `None`: the BMC does not say.
    pub on: Option<bool>,
    pub changed: bool,
    /// Resource and member that say so.
    pub by: String,
}

impl Located {
    /// `on`, `off` or `unknown`.
    pub fn word(&self) -> &'static str {
        match self.on {
            Some(true) => "on",
            Some(false) => "off",
            None => "unknown",
        }
    }
}

/// What is to become of a host's power.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PowerWish {
    On,
    /// The operating system is asked, and what does not go off by itself is put off. `hard`: at once.
    Off {
        hard: bool,
    },
    /// Off and on again; on, where it is off. The operating system is not asked.
    Cycle,
}

impl PowerWish {
    /// In a question and in messages.
    pub fn words(self) -> &'static str {
        match self {
            PowerWish::On => "power on",
            PowerWish::Off { hard: false } => "power off",
            PowerWish::Off { hard: true } => "power off hard",
            PowerWish::Cycle => "power cycle",
        }
    }

    /// Whether what runs on the host ends by it.
    pub fn interrupts(self) -> bool {
        self != PowerWish::On
    }
}

/// How a host's power stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Powered {
    /// As the BMC spells it: `On`, `Off`, `PoweringOn`; `-` where it does not say.
    pub before: String,
    pub after: String,
    /// The kinds of reset that were asked for, in their order. Empty: it was so already.
    pub asked: Vec<String>,
}

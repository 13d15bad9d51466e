//! The power dialog: what may be asked of the host's BMC, and what is known of the host before that (U10).

use serde::{Deserialize, Serialize};

use crate::domain::rack::PowerWish;
use crate::tui::event::Refused;

/// The dialog while it is open.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PowerDialog {
    pub host: String,
    /// Which of [`WISHES`] is chosen.
    pub choice: usize,
    /// What BMC and Ironic say now; `None`: they were asked and have not answered yet.
    pub looked: Option<Looked>,
}

/// How the host stands, read when the dialog opened.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Looked {
    /// As the BMC spells it.
    pub power: Result<String, Refused>,
    /// What lives on the host, or why that is not known; `None`: nobody does.
    pub lives: Option<String>,
}

/// What can be chosen, from the harmless down.
pub const WISHES: [PowerWish; 4] =
    [PowerWish::On, PowerWish::Off { hard: false }, PowerWish::Off { hard: true }, PowerWish::Cycle];

/// What a wish comes to.
pub fn about(wish: PowerWish) -> &'static str {
    match wish {
        PowerWish::On => "nothing where it is on already",
        PowerWish::Off { hard: false } => "its system is asked to end, and is cut off after a minute",
        PowerWish::Off { hard: true } => "cut off at once: what is not written is lost",
        PowerWish::Cycle => "off and on at once, without a word to its system",
    }
}

impl PowerDialog {
    pub fn of(host: &str) -> PowerDialog {
        PowerDialog { host: host.to_owned(), choice: 0, looked: None }
    }

    pub fn wish(&self) -> PowerWish {
        WISHES[self.choice.min(WISHES.len() - 1)]
    }

    /// Why the choice can't be gone on with. Whose the host is has to be known before anything interrupts it.
    pub fn obstacle(&self) -> Option<String> {
        let unknown = self.looked.is_none() && self.wish().interrupts();
        unknown.then(|| format!("a moment: Ironic has not said yet whether somebody lives on {}", self.host))
    }
}

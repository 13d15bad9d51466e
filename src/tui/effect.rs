//! What the console asks the outside to do, as values: `update` returns them, the runtime carries them out.

use serde::{Deserialize, Serialize};

use super::model::place::Place;
use crate::domain::ids::RunId;
use crate::domain::rack::PowerWish;
use crate::domain::request::EnrollParams;

/// Something to be done outside the model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Effect {
    /// Start a run; the answer comes as `Event::Submitted`.
    Submit {
        host: String,
        params: EnrollParams,
        open: bool,
    },
    /// Make the plan of a host's enrollment; it comes as `Event::Planned`.
    Plan {
        host: String,
        params: EnrollParams,
    },
    /// Start the first of these alone; the others begin when it has succeeded, and end with it when it has not. What became
    /// of each comes as `Event::Submitted`.
    SubmitBehindCanary {
        hosts: Vec<String>,
        params: EnrollParams,
    },
    /// Repeat a run, where `force_inspection` with a fresh inspection.
    Retry {
        run: RunId,
        host: String,
        force_inspection: bool,
        open: bool,
    },
    Cancel {
        run: RunId,
    },
    /// Make a host's locator LED the other of what it is; what came of it comes as `Event::Answered`.
    Locate {
        host: String,
    },
    /// Look how a host's power stands and who lives on it; it comes as `Event::PowerLooked`.
    LookPower {
        host: String,
    },
    /// Change a host's power; what came of it comes as `Event::Answered`. A person has said yes where that is needed, and
    /// typed the host's name where there is one.
    Power {
        host: String,
        wish: PowerWish,
        typed: Option<String>,
    },
    /// Let the demo's hands mend what is wrong at a host.
    Mend {
        host: String,
    },
    /// Tell whoever is not looking, as the configuration says how.
    Tell(String),
    /// Begin the next console with this theme.
    KeepTheme(String),
    /// Read a rack with all that stands in it; it comes as `Event::Rack`.
    LoadRack(Place),
    /// Read a run from its first record on.
    LoadRun(RunId),
    /// Read a run from its first record on, to look back at it; it comes as `Event::Tape`.
    LoadTape(RunId),
    /// Read the runs of a host; they come as `Event::History`.
    LoadHistory {
        netbox_id: u64,
    },
    /// Write a run's whole story into a file; where it is comes as `Event::Answered`.
    Export(RunId),
    /// Ask the systems now instead of at their next turn.
    SyncNow,
    /// Put a text on the clipboard of the person's own machine (OSC 52).
    Copy(String),
    /// Scroll the log pane, which keeps its own place.
    ScrollLog(LogScroll),
    /// Clear the terminal and draw everything anew.
    Redraw,
    /// Give the terminal back and stop until the shell brings the program to the front again.
    Suspend,
    /// Take the terminal anew: it was the shell's meanwhile.
    TakeAgain,
    /// Give the terminal back and end.
    Quit,
}

/// A move in the log pane.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum LogScroll {
    Older,
    Newer,
    /// Follow the newest line again.
    Newest,
}

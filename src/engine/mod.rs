//! Durable execution: workflows that survive the end of the process that runs them (G5–G8, G11, G12).
//!
//! A workflow is a pure function of its journal. The driver of a run polls it once for each event that became known,
//! in the order in which it became known; what the workflow asks for meanwhile is journaled before its effect starts,
//! and a result counts only with the commit that holds it. After a crash the same polls are made from the journal:
//! finished activities give their recorded results, timers keep their deadlines, and an activity with an intent and no
//! result is started again.
//!
//! ```text
//!   handle ──▶ supervisor (one thread: all workflows live here, they are not Send)
//!                 └─ driver, one a run ── replay ── history
//!                       ├─ attempts ──▶ activities, on the threads of the process
//!                       ├─ timers, which watch the wall clock
//!                       └─ journal (the store), then the feed
//! ```

mod admission;
mod attempts;
mod clock;
mod driver;
mod ending;
mod foresight;
mod handle;
mod history;
mod plan;
mod ports;
mod replay;
mod resume;
mod review;
mod slots;
mod supervisor;
mod timers;
mod trial;

pub use clock::{Clock, Clocks, Machine, ManualClock, SteadyClock, SystemClock};
pub use handle::{Engine, EngineError, Parts};
pub use plan::{Rehearsed, plan};
pub use ports::{Call, Dispatch, Journal, Registry, Workflow, Workflows};
pub use replay::LocalCx;
pub use review::{Review, Stand, review};

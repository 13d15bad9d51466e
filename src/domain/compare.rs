//! Two runs side by side: the same part of both in one row, and what differs marked.
//!
//! Pure and without a clock: a run under way is compared as far as its records tell.

use jiff::Timestamp;
use serde::Serialize;

use super::ids::RunId;
use super::lines::squeezed;
use super::run_view::{GuardView, LinkLine, PhaseStatus, PhaseView, RunState, RunView, WriteLine};
use super::text::neutralize_to;
use super::usual::{is_far, phase_s, run_s};
use super::verify::{Check, Verdict};

/// Two runs, row by row.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Comparison {
    pub left: Side,
    pub right: Side,
    pub sections: Vec<Section>,
}

/// Which run a side is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Side {
    pub run: Option<RunId>,
    pub host: String,
    pub status: RunState,
    pub by: String,
    pub submitted_at: Option<Timestamp>,
}

/// What rows are about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Topic {
    Run,
    Phases,
    Failure,
    Inspection,
    Links,
    Changes,
}

impl Topic {
    /// The heading.
    pub fn title(self) -> &'static str {
        match self {
            Topic::Run => "run",
            Topic::Phases => "phases",
            Topic::Failure => "failure",
            Topic::Inspection => "inspection diff",
            Topic::Links => "link guard",
            Topic::Changes => "changes",
        }
    }

    /// Has so many rows that the ones that agree are left out until they are asked for.
    pub fn is_long(self) -> bool {
        match self {
            Topic::Inspection | Topic::Changes => true,
            Topic::Run | Topic::Phases | Topic::Failure | Topic::Links => false,
        }
    }
}

/// The rows of one topic.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Section {
    pub topic: Topic,
    pub rows: Vec<Row>,
}

/// One part of both runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Row {
    pub name: String,
    /// `None`: that run has no such part.
    pub left: Option<Cell>,
    pub right: Option<Cell>,
    pub mark: Mark,
}

/// One side of a row.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Cell {
    pub text: String,
    /// The duration in it, where it has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seconds: Option<u64>,
    /// Something is wrong here.
    pub bad: bool,
}

/// How the two sides of a row stand to each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Mark {
    Same,
    Differs,
    OnlyLeft,
    OnlyRight,
}

impl Mark {
    pub fn word(self) -> &'static str {
        match self {
            Mark::Same => "same",
            Mark::Differs => "differs",
            Mark::OnlyLeft => "only 1",
            Mark::OnlyRight => "only 2",
        }
    }

    /// As it is from the other side.
    pub fn mirrored(self) -> Mark {
        match self {
            Mark::Same | Mark::Differs => self,
            Mark::OnlyLeft => Mark::OnlyRight,
            Mark::OnlyRight => Mark::OnlyLeft,
        }
    }
}

impl Comparison {
    /// Compares two runs.
    pub fn of(left: &RunView, right: &RunView) -> Comparison {
        let sections = [
            (Topic::Run, run_items as fn(&RunView) -> Vec<Item>),
            (Topic::Phases, phase_items),
            (Topic::Failure, failure_items),
            (Topic::Inspection, check_items),
            (Topic::Links, link_items),
            (Topic::Changes, change_items),
        ];
        let sections = sections.into_iter().filter_map(|(topic, items)| {
            let rows = rows(items(left), items(right));
            (!rows.is_empty()).then_some(Section { topic, rows })
        });
        Comparison { left: side(left), right: side(right), sections: sections.collect() }
    }

    /// How many rows differ in any way, of how many.
    pub fn differing(&self) -> (usize, usize) {
        let marks = || self.sections.iter().flat_map(|section| &section.rows).map(|row| row.mark);
        (marks().filter(|mark| *mark != Mark::Same).count(), marks().count())
    }
}

impl Section {
    /// How many of its rows differ.
    pub fn differing(&self) -> usize {
        self.rows.iter().filter(|row| row.mark != Mark::Same).count()
    }
}

/// A part of one run: what it is called, what decides whether it is the same, and what is said of it.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Item {
    name: String,
    /// What has to be equal. Durations are judged apart: no two runs take the same second.
    sense: String,
    cell: Cell,
}

impl Item {
    fn new(name: impl Into<String>, text: impl Into<String>) -> Item {
        let text = text.into();
        Item { name: name.into(), sense: text.clone(), cell: Cell { text, seconds: None, bad: false } }
    }
}

/// Puts what has the same name into one row, the second of a name beside the second of that name. The order is the left
/// one's; what only the right one has stands behind what it follows there.
fn rows(left: Vec<Item>, right: Vec<Item>) -> Vec<Row> {
    let left = numbered(left);
    let mut right: Vec<Option<((String, usize), Item)>> = numbered(right).into_iter().map(Some).collect();
    let places: Vec<Option<usize>> =
        left.iter().map(|(key, _)| right.iter().position(|of| of.as_ref().is_some_and(|(k, _)| k == key))).collect();
    let mut out = Vec::new();
    let is_paired = |place: usize| places.contains(&Some(place));
    // What only the right one has and what stands there before its first pair.
    let lone = |from: usize, right: &mut Vec<Option<((String, usize), Item)>>, out: &mut Vec<Row>| {
        for place in (from..right.len()).take_while(|place| !is_paired(*place)) {
            if let Some((_, item)) = right[place].take() {
                out.push(Row { name: item.name, left: None, right: Some(item.cell), mark: Mark::OnlyRight });
            }
        }
    };
    lone(0, &mut right, &mut out);
    for ((_, item), place) in left.into_iter().zip(&places) {
        let other = place.and_then(|place| Some((place, right[place].take()?.1)));
        let Some((place, other)) = other else {
            out.push(Row { name: item.name, left: Some(item.cell), right: None, mark: Mark::OnlyLeft });
            continue;
        };
        let mark = if is_same(&item, &other) { Mark::Same } else { Mark::Differs };
        out.push(Row { name: item.name, left: Some(item.cell), right: Some(other.cell), mark });
        lone(place + 1, &mut right, &mut out);
    }
    out
}

fn numbered(items: Vec<Item>) -> Vec<((String, usize), Item)> {
    let mut seen: std::collections::BTreeMap<String, usize> = Default::default();
    let number = |item: Item| {
        let n = seen.entry(item.name.clone()).or_default();
        *n += 1;
        ((item.name.clone(), *n), item)
    };
    items.into_iter().map(number).collect()
}

fn is_same(left: &Item, right: &Item) -> bool {
    let far = match (left.cell.seconds, right.cell.seconds) {
        (Some(a), Some(b)) => is_far(a.min(b), a.max(b)),
        (None, None) => false,
        (Some(_), None) | (None, Some(_)) => true,
    };
    left.sense == right.sense && !far
}

fn side(view: &RunView) -> Side {
    let request = view.request.as_deref();
    Side {
        run: view.run,
        host: request.map_or(String::new(), |request| request.host.clone()),
        status: view.state(),
        by: request.map_or(String::new(), |request| request.submitted_by.clone()),
        submitted_at: view.submitted_at(),
    }
}

/// Until when what is under way is known.
fn known_until(view: &RunView) -> Timestamp {
    view.finished_at.or(view.last_at).unwrap_or_default()
}

fn run_items(view: &RunView) -> Vec<Item> {
    let mut out = Vec::new();
    let mut add = |name: &str, text: Option<String>| out.extend(text.map(|text| Item::new(name, text)));
    let request = view.request.as_deref();
    add("host", request.map(|request| request.host.clone()));
    add("by", request.map(|request| request.submitted_by.clone()));
    add("switches", request.map(|request| switches(&request.params)));
    add("outcome", Some(view.state().as_str().to_owned()));
    add("platform class", view.result().and_then(|result| result.platform_class.clone()));
    add("node", view.result().and_then(|result| result.node).map(|node| node.to_string()));
    if let Some(outcome) = out.iter_mut().find(|item| item.name == "outcome") {
        outcome.cell.bad = matches!(view.state(), RunState::Failed | RunState::Cancelled);
    }
    if let Some(took) = run_s(view, known_until(view)) {
        let cell = Cell { text: span(took), seconds: Some(took), bad: false };
        out.push(Item { name: "duration".to_owned(), sense: String::new(), cell });
    }
    out
}

fn switches(params: &super::request::EnrollParams) -> String {
    let mut words = vec![if params.run_inspection { "inspection" } else { "no inspection" }.to_owned()];
    if params.force_inspection {
        words[0] = "forced inspection".to_owned();
    }
    if params.force_bmc_restart {
        words.push("BMC restart".to_owned());
    }
    words.extend(params.max_attempts.map(|n| format!("{n} attempts at most")));
    words.extend(params.node_uuid.map(|uuid| format!("node {uuid}")));
    words.join(", ")
}

fn phase_items(view: &RunView) -> Vec<Item> {
    view.phases.iter().map(|phase| phase_item(phase, view)).collect()
}

fn phase_item(phase: &PhaseView, view: &RunView) -> Item {
    let word = match phase.status {
        PhaseStatus::Pending => "not reached",
        PhaseStatus::Running => "running",
        PhaseStatus::Done => "done",
        PhaseStatus::Warned => "warned",
        PhaseStatus::Skipped => "skipped",
        PhaseStatus::Failed => "failed",
        PhaseStatus::Cancelled => "cancelled",
    };
    let seconds = phase_s(phase, known_until(view)).filter(|_| phase.status != PhaseStatus::Skipped);
    let mut sense = word.to_owned();
    if phase.attempt > 1 {
        sense.push_str(&format!(" · attempt {}", phase.attempt));
    }
    if phase.retries > 0 {
        let times = if phase.retries == 1 { "retry" } else { "retries" };
        sense.push_str(&format!(" · {} {times}", phase.retries));
    }
    let text = match seconds {
        Some(seconds) => format!("{} · {sense}", span(seconds)),
        None => sense.clone(),
    };
    let bad = matches!(phase.status, PhaseStatus::Failed | PhaseStatus::Cancelled);
    Item { name: phase.phase.label().to_owned(), sense, cell: Cell { text, seconds, bad } }
}

fn failure_items(view: &RunView) -> Vec<Item> {
    let mut out = Vec::new();
    if let Some(failure) = view.failure() {
        let parts = [
            ("code", failure.code.as_str().to_owned()),
            ("in", failure.phase.label().to_owned()),
            ("for", failure.owner.as_str().to_owned()),
            ("what", failure.message.clone()),
            ("to do", failure.action.clone()),
        ];
        out.extend(parts.map(|(name, text)| {
            let mut item = Item::new(name, text);
            item.cell.bad = true;
            item
        }));
    }
    out.extend(view.warnings().map(|(phase, text)| Item::new(format!("{} warning", phase.label()), text)));
    out
}

fn check_items(view: &RunView) -> Vec<Item> {
    let Some(judged) = &view.verification else { return Vec::new() };
    let mut out = Vec::new();
    if let Some(diagnosis) = &judged.verification.diagnosis {
        let mut item = Item::new("diagnosis", diagnosis.clone());
        item.cell.bad = true;
        out.push(item);
    }
    // Mismatches first, as in the pane of one run.
    let order = |check: &&Check| match check.verdict {
        Verdict::Fail => 0,
        Verdict::Unknown => 1,
        Verdict::Pass | Verdict::Skipped => 2,
    };
    let mut checks: Vec<&Check> = judged.verification.checks.iter().collect();
    checks.sort_by_key(order);
    out.extend(checks.into_iter().map(check_item));
    out
}

fn check_item(check: &Check) -> Item {
    let text = match check.verdict {
        Verdict::Pass => format!("agrees · {}", check.observed),
        Verdict::Fail => format!("{}, expected {}", check.observed, check.expected),
        Verdict::Unknown => "not reported".to_owned(),
        Verdict::Skipped => "not asked for".to_owned(),
    };
    let mut item = Item::new(check.title(), text);
    item.cell.bad = check.verdict == Verdict::Fail;
    item
}

fn link_items(view: &RunView) -> Vec<Item> {
    view.guards.iter().flat_map(guard_items).collect()
}

fn guard_items(guard: &GuardView) -> Vec<Item> {
    let phase = guard.phase.label();
    let item = |link: &LinkLine| {
        let states: Vec<&str> = link.spans.iter().map(|span| span.state.as_str()).collect();
        let cable = link.reading.cable.as_ref();
        let end = cable.map_or("no cable".to_owned(), |cable| format!("{} {}", cable.switch, cable.port));
        let spans = link.spans.iter().map(|s| format!("{} {}", s.state.as_str(), span(length(s.since, s.until))));
        // `DOWN 4:58 → UP 0:00`: what it was in the end has hardly begun.
        let told = match link.spans.as_slice() {
            [.., last] if link.spans.len() > 1 => {
                let before: Vec<String> = spans.take(link.spans.len() - 1).collect();
                format!("{} → {}", before.join(" → "), last.state.as_str())
            }
            _ => spans.collect::<Vec<_>>().join(" → "),
        };
        Item {
            name: format!("{phase} {}", link.reading.interface),
            sense: format!("{} · {end}", states.join(" ")),
            cell: Cell { text: format!("{told} · {end}"), seconds: None, bad: guard.over && guard.all_down() },
        }
    };
    guard.links.iter().map(item).collect()
}

fn change_items(view: &RunView) -> Vec<Item> {
    let host = view.request.as_ref().map(|request| request.host.as_str());
    view.writes.iter().map(|write| change_item(write, host)).collect()
}

fn change_item(write: &WriteLine, host: Option<&str>) -> Item {
    // Two hosts are compared by what was done to each of them, and not by their names.
    let of = match write.target.as_str() {
        target if target.is_empty() || Some(target) == host => String::new(),
        target => format!(" of {target}"),
    };
    let sense = match (write.before.as_str(), write.after.as_str()) {
        ("", "") => "done".to_owned(),
        ("", after) => after.to_owned(),
        (before, "") => format!("{before} removed"),
        (before, after) => format!("{before} → {after}"),
    };
    let text = if sense.contains('\n') { neutralize_to(&squeezed(&sense), 200) } else { sense.clone() };
    let name = format!("{} {}{of}", write.system, write.what);
    Item { name, sense, cell: Cell { text, seconds: None, bad: false } }
}

fn length(from: Timestamp, to: Timestamp) -> u64 {
    u64::try_from(to.duration_since(from).as_secs()).unwrap_or(0)
}

/// `0:07`, `7:12`, `1:02:03`.
fn span(seconds: u64) -> String {
    match seconds / 3600 {
        0 => format!("{}:{:02}", seconds / 60, seconds % 60),
        hours => format!("{hours}:{:02}:{:02}", seconds % 3600 / 60, seconds % 60),
    }
}

/// Which of the two was submitted first: the older one stands on the left.
pub fn older_first(a: (RunId, Option<Timestamp>), b: (RunId, Option<Timestamp>)) -> [RunId; 2] {
    match (a.1, b.1) {
        (Some(first), Some(second)) if first > second => [b.0, a.0],
        _ => [a.0, b.0],
    }
}

#[cfg(test)]
mod tests;

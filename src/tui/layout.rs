//! Where everything stands, from the size and the model alone: shared by drawing, scrolling and the mouse.

pub mod rack;

use ratatui::layout::Rect;

use super::action::{self, Action, Def};
use super::model::fleet::Pane;
use super::model::help;
use super::model::plan::PlanPopup;
use super::model::run_screen::{self, RunPane};
use super::model::{Model, Popup};
use super::text;
use super::view::phases;
use crate::domain::run_view::PhaseStatus;

/// Below this the console says what it needs.
pub const LEAST: (u16, u16) = (60, 20);
/// From this width on several panes stand side by side.
pub const WIDE: u16 = 100;
/// From this size on there is room for a column of details.
pub const HUGE: (u16, u16) = (160, 36);

/// Whether the console fits at all.
pub fn fits(model: &Model) -> bool {
    model.width >= LEAST.0 && model.height >= LEAST.1
}

fn is_huge(model: &Model) -> bool {
    model.width >= HUGE.0 && model.height >= HUGE.1
}

/// The screen without header and footer.
pub fn body(model: &Model) -> Rect {
    Rect::new(0, 1, model.width, model.height.saturating_sub(2))
}

/// A cut of a rectangle into a top of so many rows and the rest.
pub fn top(area: Rect, rows: u16) -> (Rect, Rect) {
    let rows = rows.min(area.height);
    (Rect { height: rows, ..area }, Rect { y: area.y.saturating_add(rows), height: area.height - rows, ..area })
}

/// A cut into the rest and a bottom of so many rows.
pub fn bottom(area: Rect, rows: u16) -> (Rect, Rect) {
    let rows = rows.min(area.height);
    top(area, area.height - rows)
}

/// A cut into a left part of so many columns and the rest.
pub fn left(area: Rect, columns: u16) -> (Rect, Rect) {
    let columns = columns.min(area.width);
    (Rect { width: columns, ..area }, Rect { x: area.x.saturating_add(columns), width: area.width - columns, ..area })
}

/// Whether a cell lies in a rectangle.
pub fn within(area: Rect, column: u16, row: u16) -> bool {
    area.contains(ratatui::layout::Position { x: column, y: row })
}

/// The fleet's parts. What doesn't show has no size.
#[derive(Debug, Clone, Copy, Default)]
pub struct FleetAreas {
    pub tree: Rect,
    /// The line between tree and table.
    pub divider: Rect,
    pub table: Rect,
    pub detail: Rect,
    /// Details stand at the side, with room for everything.
    pub detail_at_side: bool,
}

impl FleetAreas {
    /// The tree's lines, without its heading.
    pub fn tree_body(&self) -> Rect {
        top(self.tree, 1).1
    }

    /// The table's lines, without heading and column names.
    pub fn table_body(&self) -> Rect {
        top(self.table, 2).1
    }

    pub fn tree_rows(&self) -> usize {
        usize::from(self.tree_body().height)
    }

    pub fn table_rows(&self) -> usize {
        usize::from(self.table_body().height)
    }

    pub fn rows(&self, pane: Pane) -> usize {
        match pane {
            Pane::Tree => self.tree_rows(),
            Pane::Table => self.table_rows(),
        }
    }
}

/// Rows of the strip under the table, its rule among them.
fn strip(model: &Model) -> u16 {
    if model.height >= 28 { 6 } else { 5 }
}

/// Where the fleet's parts stand.
pub fn fleet(model: &Model) -> FleetAreas {
    let area = body(model);
    let none = Rect::new(area.x, area.y, 0, 0);
    if model.width < WIDE {
        let (list, detail) = bottom(area, strip(model));
        return match model.fleet.pane {
            Pane::Tree => FleetAreas { tree: area, table: none, detail: none, divider: none, detail_at_side: false },
            Pane::Table => FleetAreas { tree: none, table: list, detail, divider: none, detail_at_side: false },
        };
    }
    let huge = is_huge(model);
    let (main, detail) = if huge {
        let (main, side) = left(area, area.width - (area.width / 3).min(66));
        (main, side)
    } else {
        bottom(area, strip(model))
    };
    let (tree, rest) = left(main, if huge { 30 } else { 25 });
    let (divider, table) = left(rest, 1);
    FleetAreas { tree, divider, table, detail, detail_at_side: huge }
}

/// The lines of the stops, without their heading.
pub fn walk_body(model: &Model) -> Rect {
    top(body(model), 1).1
}

/// The parts of the list of a host's runs.
#[derive(Debug, Clone, Copy)]
pub struct HistoryAreas {
    pub heading: Rect,
    /// The names of the columns.
    pub columns: Rect,
    pub list: Rect,
    /// What is to be said of the selected run, its rule among it.
    pub strip: Rect,
}

impl HistoryAreas {
    pub fn rows(&self) -> usize {
        usize::from(self.list.height)
    }
}

/// Where the list of a host's runs stands.
pub fn history(model: &Model) -> HistoryAreas {
    let (heading, rest) = top(body(model), 1);
    let (columns, rest) = top(rest, 1);
    let (list, strip) = bottom(rest, strip(model));
    HistoryAreas { heading, columns, list, strip }
}

/// The lines of two runs side by side, below what says which they are.
pub fn compare_body(model: &Model) -> Rect {
    top(body(model), 4).1
}

/// The run view's parts.
#[derive(Debug, Clone, Default)]
pub struct RunAreas {
    pub title: Rect,
    pub phases: Rect,
    /// What it does or waits for, or how it ended.
    pub now: Rect,
    /// Names of all panes, where only one shows.
    pub tabs: Rect,
    /// Heading and lines of each pane that shows.
    pub panes: Vec<(RunPane, Rect)>,
    /// Phases and changes, one a line.
    pub side: Rect,
    /// Columns of a pane.
    pub width: u16,
}

impl RunAreas {
    /// Lines of a pane, without its heading.
    pub fn pane_rows(&self, pane: RunPane) -> usize {
        let area = self.panes.iter().find(|(p, _)| *p == pane).map(|(_, area)| *area);
        area.map_or(0, |a| usize::from(a.height.saturating_sub(1)))
    }
}

/// The panes of a run at this size.
pub fn run_panes(model: &Model) -> &'static [RunPane] {
    if is_huge(model) { &run_screen::BESIDE } else { &RunPane::ALL }
}

/// Where the run view's parts stand.
pub fn run(model: &Model) -> RunAreas {
    let mut areas = RunAreas::default();
    let area = body(model);
    let (Some(screen), Some(view)) = (model.run_screen(), model.open_run()) else { return areas };
    let mut focus = screen.focus(view);
    if !run_panes(model).contains(&focus) {
        focus = RunPane::Events;
    }
    let rest;
    (areas.title, rest) = top(area, 1);
    if is_huge(model) {
        let (side, main) = left(rest, (area.width / 3).clamp(56, 70));
        areas.side = side;
        let main = left(main, 1).1;
        areas.width = main.width;
        let rest;
        (areas.now, rest) = top(main, now_rows(model, main.width));
        areas.panes = stacked(model, rest, focus, &run_screen::BESIDE);
        return areas;
    }
    areas.width = area.width;
    let rows = if model.width < WIDE { 1 } else { phases_rows(model, area.width) };
    let (phases, rest) = top(rest, rows);
    areas.phases = phases;
    let (now, rest) = top(rest, now_rows(model, area.width));
    areas.now = now;
    if model.width < WIDE || rest.height < 15 {
        let (pane, tabs) = bottom(rest, 1);
        (areas.tabs, areas.panes) = (tabs, vec![(focus, pane)]);
    } else {
        areas.panes = stacked(model, rest, focus, &RunPane::ALL);
    }
    areas
}

/// Panes one on the other: each has its heading; the focused one has its lines first, then the others, and the events
/// take what is left.
fn stacked(model: &Model, area: Rect, focus: RunPane, panes: &[RunPane]) -> Vec<(RunPane, Rect)> {
    let want = RunPane::ALL.map(|p| pane_len(model, p, area.width));
    let mut left_over = usize::from(area.height).saturating_sub(panes.len());
    let events = RunPane::Events.index();
    let keep = if focus == RunPane::Events { left_over / 2 } else { 4 };
    let kept = keep.min(want[events]).min(left_over);
    left_over -= kept;
    let mut rows = [0; RunPane::ALL.len()];
    // How long everything took is told above in short: the others have their lines first.
    let last = panes.contains(&RunPane::Phases).then_some(RunPane::Phases);
    let others = panes.iter().copied().filter(|p| !matches!(p, RunPane::Events | RunPane::Phases));
    let order = Some(focus).filter(|p| *p != RunPane::Events).into_iter().chain(others).chain(last);
    for pane in order {
        let at = pane.index();
        // How long each phase took is told whole or not at all, unless somebody looks for it.
        let is_cut = pane == RunPane::Phases && pane != focus && want[at] > left_over;
        if rows[at] == 0 && !is_cut {
            rows[at] = want[at].min(left_over);
            left_over -= rows[at];
        }
    }
    rows[events] = kept + left_over;
    let mut rest = area;
    let mut out = Vec::new();
    for pane in panes {
        let (area, below) = top(rest, rows[pane.index()] as u16 + 1);
        out.push((*pane, area));
        rest = below;
    }
    out
}

/// How many lines a pane has to show.
pub fn pane_len(model: &Model, pane: RunPane, width: u16) -> usize {
    let (Some(screen), Some(view)) = (model.run_screen(), model.open_run()) else { return 0 };
    match pane {
        RunPane::Events => view.events.len(),
        _ => run_screen::rows(view, pane, screen.show_all, width).len(),
    }
}

/// Columns of a phase in the line of phases: sign, name, duration, what it usually takes.
pub fn phase_width(label: &str, time: &str, usually: &str) -> usize {
    let part = |text: &str| if text.is_empty() { 0 } else { 1 + text::width(text) };
    2 + text::width(label) + part(time) + part(usually) + 2
}

fn phases_rows(model: &Model, width: u16) -> u16 {
    let (Some(screen), Some(view)) = (model.run_screen(), model.open_run()) else { return 1 };
    let figures = model.figures(&screen.host);
    let (mut rows, mut used) = (1, 1);
    for phase in &view.phases {
        // Durations grow to `59:59` while a phase runs: room for the longest keeps everything in its place.
        let time = match phase.status {
            PhaseStatus::Running => "00:00".to_owned(),
            PhaseStatus::Pending
            | PhaseStatus::Skipped
            | PhaseStatus::Done
            | PhaseStatus::Warned
            | PhaseStatus::Failed
            | PhaseStatus::Cancelled => phases::duration(phase, model.moment()),
        };
        let usually = phases::usually(phase, &figures, model.moment(), true);
        let w = phase_width(phase.phase.label(), &time, &usually);
        if used + w > usize::from(width) {
            rows += 1;
            used = 1;
        }
        used += w;
    }
    rows
}

/// Rows of the box that says what the run does, waits for, or failed with.
fn now_rows(model: &Model, width: u16) -> u16 {
    let lines = super::view::now::lines(model, width.saturating_sub(4)).len() as u16;
    // A line of air around it, where there is room for air.
    lines + if model.height >= 28 { 2 } else { 0 }
}

/// A rectangle for a dialog in the middle, never larger than the screen.
pub fn popup(model: &Model, width: u16, height: u16) -> Rect {
    let area = body(model);
    let (w, h) = (width.min(area.width), height.min(area.height));
    let y = area.y.saturating_add((area.height - h) / 3);
    Rect::new(area.x.saturating_add((area.width - w) / 2), y, w, h)
}

/// The plan's frame: heading, lines, and what keys do.
pub fn plan(model: &Model, popup: &PlanPopup) -> Rect {
    self::popup(model, 110, u16::try_from(popup.rows()).unwrap_or(u16::MAX).saturating_add(4))
}

/// How many lines of a plan show.
pub fn plan_rows(model: &Model, popup: &PlanPopup) -> usize {
    usize::from(plan(model, popup).height.saturating_sub(4))
}

/// The help's frame.
pub fn help(model: &Model) -> Rect {
    let len = help_len(model) as u16 + 3;
    popup(model, 96, len)
}

/// How many lines the help has, and how many show.
pub fn help_len(model: &Model) -> usize {
    if matches!(model.popup, Some(Popup::Help { .. })) { help::lines(model).len() } else { 0 }
}

pub fn help_rows(model: &Model) -> usize {
    usize::from(help(model).height.saturating_sub(3))
}

/// A key of the footer and the columns that it takes.
#[derive(Debug, Clone, Copy)]
pub struct FooterItem {
    pub def: &'static Def,
    pub from: u16,
    pub to: u16,
}

/// The keys of the footer that fit, the help always among them.
pub fn footer(model: &Model) -> Vec<FooterItem> {
    let mut defs = action::footer(model);
    let width = usize::from(model.width);
    let size = |d: &Def| text::width(model.keymap.shown(d)) + 1 + text::width(d.name) + 2;
    while defs.iter().map(|d| size(d)).sum::<usize>() + 1 > width {
        // The last one that is not the help or the way out goes first.
        let Some(at) = defs.iter().rposition(|d| !matches!(d.action, Action::Help | Action::Back | Action::Start))
        else {
            defs.clear();
            break;
        };
        defs.remove(at);
    }
    let mut at = 1;
    defs.into_iter()
        .map(|def| {
            let from = at;
            at += size(def) as u16;
            FooterItem { def, from, to: at - 2 }
        })
        .collect()
}

/// The action of the footer under a cell.
pub fn footer_hit(model: &Model, column: u16, row: u16) -> Option<Action> {
    if row + 1 != model.height {
        return None;
    }
    footer(model).into_iter().find(|i| (i.from..i.to).contains(&column)).map(|i| i.def.action)
}

//! The fleet: places at the left, hosts at the right, the selected host's story below or at the side.

use ratatui::layout::Rect;

use super::{detail, table};
use crate::tui::glyphs::Status;
use crate::tui::layout;
use crate::tui::model::Model;
use crate::tui::model::fleet::Pane;
use crate::tui::model::place::Node;
use crate::tui::text::Keep;
use crate::tui::theme::Meaning;
use crate::tui::widgets::pen::{Pen, piece, row};

pub fn draw(pen: &mut Pen, model: &Model) {
    let areas = layout::fleet(model);
    if !areas.tree.is_empty() {
        tree(pen, model, areas.tree, areas.tree_body());
    }
    if !areas.divider.is_empty() {
        let bar = pen.skin.glyphs.bar();
        pen.fill(areas.divider, bar, Meaning::Rule);
    }
    if !areas.table.is_empty() {
        table::draw(pen, model, areas.table, areas.table_body());
    }
    if !areas.detail.is_empty() {
        detail::draw(pen, model, areas.detail, areas.detail_at_side);
    }
}

fn tree(pen: &mut Pen, model: &Model, area: Rect, lines: Rect) {
    let focused = model.fleet.pane == Pane::Tree && model.popup.is_none();
    pen.heading(row(area, 0), &[piece("places", Meaning::Accent)], &[], focused);
    let nodes = model.fleet.tree_lines();
    for (at, node) in nodes.iter().skip(model.fleet.tree_top).take(usize::from(lines.height)).enumerate() {
        let line = row(lines, at);
        let open = node.place.depth() == 0 || model.fleet.open.contains(&node.place);
        node_line(pen, node, line, open);
        if node.place == model.fleet.place {
            pen.tint(line, if focused { Meaning::Selection } else { Meaning::SelectionIdle });
        }
    }
}

fn node_line(pen: &mut Pen, node: &Node, line: Rect, open: bool) {
    let glyphs = pen.skin.glyphs;
    let depth = node.place.depth();
    let indent = 1 + 2 * depth.saturating_sub(1) as u16;
    let sign = match (depth, node.has_children, open) {
        (0, ..) | (_, false, _) => " ",
        (_, true, true) => glyphs.open(),
        (_, true, false) => glyphs.closed(),
    };
    // Numbers stand in columns at the end: hosts, then what is wrong, then what runs.
    let width = line.width;
    let (hosts, failed, live) = if width >= 30 { (6, 5, 5) } else { (5, 4, 4) };
    let numbers = width.saturating_sub(hosts + failed + live);
    let at = if depth == 0 { 1 } else { pen.write(line, indent, sign, Meaning::Muted) + 1 };
    let meaning = if depth == 0 || depth == 1 { Meaning::Strong } else { Meaning::Text };
    pen.column(line, at, numbers.saturating_sub(at), node.place.name(), meaning, Keep::End);
    pen.column_right(line, numbers, hosts, &node.hosts.to_string(), Meaning::Muted);
    if node.failed > 0 {
        let text = format!("{}{}", glyphs.status(Status::Failed, pen.now), node.failed);
        pen.column_right(line, numbers + hosts, failed, &text, Meaning::Fail);
    }
    if node.live > 0 {
        let text = format!("{}{}", glyphs.status(Status::Running, pen.now), node.live);
        pen.column_right(line, numbers + hosts + failed, live - 1, &text, Meaning::Run);
    }
}

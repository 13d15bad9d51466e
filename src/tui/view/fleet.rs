//! The fleet: places at the left, hosts at the right, the selected host's story below or at the side.

use ratatui::layout::Rect;

use super::{detail, table};
use crate::tui::glyphs::Status;
use crate::tui::layout;
use crate::tui::model::Model;
use crate::tui::model::fleet::Pane;
use crate::tui::model::place::Node;
use crate::tui::text::{self, Keep};
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
    // The numbers of a part would be wrong ones.
    let numbers = (!model.fleet.is_partial).then(|| Numbers::of(&model.fleet.tree));
    for (at, node) in nodes.iter().skip(model.fleet.tree_top).take(usize::from(lines.height)).enumerate() {
        let line = row(lines, at);
        let open = node.place.depth() == 0 || model.fleet.open.contains(&node.place);
        node_line(pen, node, line, open, numbers.as_ref());
        if node.place == model.fleet.place {
            pen.tint(line, if focused { Meaning::Selection } else { Meaning::SelectionIdle });
        }
    }
}

/// Columns of the numbers, each with a blank before it: wide enough for most, so that few new digits move anything.
#[derive(Clone, Copy, Default)]
struct Numbers {
    hosts: u16,
    failed: u16,
    live: u16,
}

impl Numbers {
    fn of(tree: &[Node]) -> Numbers {
        let widest = |of: fn(&Node) -> usize, sign: u16| {
            let most = tree.iter().map(of).max().unwrap_or(0);
            (text::short(most).len() as u16 + sign + 1).max(4)
        };
        Numbers { hosts: widest(|n| n.hosts, 0), failed: widest(|n| n.failed, 1), live: widest(|n| n.live, 1) }
    }
}

fn node_line(pen: &mut Pen, node: &Node, line: Rect, open: bool, columns: Option<&Numbers>) {
    let glyphs = pen.skin.glyphs;
    let depth = node.place.depth();
    let indent = 1 + 2 * depth.saturating_sub(1) as u16;
    let sign = match (depth, node.has_children, open) {
        (0, ..) | (_, false, _) => " ",
        (_, true, true) => glyphs.open(),
        (_, true, false) => glyphs.closed(),
    };
    // Numbers stand in columns at the end: hosts, then what is wrong, then what runs.
    let Numbers { hosts, failed, live } = columns.copied().unwrap_or_default();
    let numbers = line.width.saturating_sub(hosts + failed + live + 1);
    let at = if depth == 0 { 1 } else { pen.write(line, indent, sign, Meaning::Muted) + 1 };
    let meaning = if depth == 0 || depth == 1 { Meaning::Strong } else { Meaning::Text };
    pen.column(line, at, numbers.saturating_sub(at), node.place.name(), meaning, Keep::End);
    if columns.is_none() {
        return;
    }
    pen.column_right(line, numbers, hosts, &text::short(node.hosts), Meaning::Muted);
    if node.failed > 0 {
        let text = format!("{}{}", glyphs.status(Status::Failed, pen.now), text::short(node.failed));
        pen.column_right(line, numbers + hosts, failed, &text, Meaning::Fail);
    }
    if node.live > 0 {
        let text = format!("{}{}", glyphs.status(Status::Running, pen.now), text::short(node.live));
        pen.column_right(line, numbers + hosts + failed, live, &text, Meaning::Run);
    }
}

//! Where the parts of a rack stand: both faces side by side, or the one with the focus where the screen is narrow.

use ratatui::layout::Rect;

use super::{HUGE, WIDE, body, bottom, left, strip, top};
use crate::domain::elevation::Face;
use crate::tui::model::Model;

/// What doesn't show has no size.
#[derive(Debug, Clone, Copy, Default)]
pub struct RackAreas {
    pub front: Rect,
    /// The line between the faces.
    pub divider: Rect,
    pub rear: Rect,
    /// The selected device's story.
    pub detail: Rect,
    pub detail_at_side: bool,
}

impl RackAreas {
    /// The faces that show, each with its lines: without its heading.
    pub fn faces(&self) -> impl Iterator<Item = (Face, Rect)> {
        let faces = [(Face::Front, self.front), (Face::Rear, self.rear)];
        faces.into_iter().filter(|(_, area)| !area.is_empty()).map(|(face, area)| (face, top(area, 1).1))
    }

    /// Lines that show.
    pub fn rows(&self) -> usize {
        self.faces().next().map_or(0, |(_, area)| usize::from(area.height))
    }
}

/// Where the parts of the rack that shows stand.
pub fn areas(model: &Model) -> RackAreas {
    let area = body(model);
    let detail_at_side = model.width >= HUGE.0 && model.height >= HUGE.1;
    let mut areas = RackAreas { detail_at_side, ..RackAreas::default() };
    let main = if areas.detail_at_side {
        let (main, side) = left(area, area.width - (area.width / 3).min(66));
        areas.detail = side;
        main
    } else {
        let (main, below) = bottom(area, strip(model));
        areas.detail = below;
        main
    };
    if model.width < WIDE {
        match model.rack_screen().map_or(Face::Front, |screen| screen.face) {
            Face::Front => areas.front = main,
            Face::Rear => areas.rear = main,
        }
        return areas;
    }
    let (front, rest) = left(main, main.width / 2);
    areas.front = front;
    (areas.divider, areas.rear) = left(rest, 1);
    areas
}

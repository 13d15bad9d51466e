//! A story's timeline as plain lines, for a terminal.

use super::{Moment, MomentKind, Story, clean, span};

pub(super) fn lines(story: &Story) -> Vec<String> {
    story.timeline.iter().map(|moment| line(story, moment)).collect()
}

fn line(story: &Story, moment: &Moment) -> String {
    let glyph = match moment.kind {
        MomentKind::Info => "·",
        MomentKind::Wrote => "→",
        MomentKind::Done => "✓",
        MomentKind::Skipped => "–",
        MomentKind::Warned => "!",
        MomentKind::Failed => "✗",
        MomentKind::Begun => "»",
        MomentKind::Waited => "~",
        MomentKind::Interrupted => "◌",
    };
    let (at, place) = (super::clock(story, moment.at), clean::text(&moment.place));
    format!("{at}  {glyph} {place:<14} {}", clean::text(&sentence(moment)))
}

/// The text with the length that belongs to it.
pub(super) fn sentence(moment: &Moment) -> String {
    let text = &moment.text;
    match (moment.kind, moment.took_s) {
        (MomentKind::Waited, took) => {
            let looks = moment.looks.filter(|n| *n > 1).map_or(String::new(), |n| format!(", {n} looks"));
            let took = took.map_or("waits".to_owned(), |took| format!("waited {}", span(took)));
            format!("{took}{looks}: {text}")
        }
        (MomentKind::Interrupted, Some(away)) => format!("{text} after {}", span(away)),
        (_, Some(took)) => format!("{text} ({})", span(took)),
        (_, None) => text.clone(),
    }
}

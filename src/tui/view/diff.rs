//! The inspection diff: what was expected, what was found, mismatches first.

use ratatui::layout::Rect;

use crate::domain::run_view::RunView;
use crate::domain::verify::{Check, Verdict};
use crate::tui::glyphs::Status;
use crate::tui::model::run_screen::{DiffRow, ONE_LINE, RULE_BESIDE, Row, says_one};
use crate::tui::text::{self, Keep};
use crate::tui::theme::Meaning;
use crate::tui::widgets::pen::{Pen, Piece, meaning_of, piece};

/// What stands at the end of the heading.
pub fn end(pen: &Pen, view: &RunView) -> Vec<Piece<'static>> {
    let Some(judged) = &view.verification else { return vec![piece("not yet", Meaning::Muted)] };
    let (all, failed) = (judged.verification.checks.len(), judged.verification.failed().count());
    let unknown = judged.verification.checks.iter().filter(|c| c.verdict == Verdict::Unknown).count();
    let mut out = match failed {
        0 if unknown > 0 => vec![
            piece(format!("{} agree", all - unknown), Meaning::Ok),
            piece(format!(", {unknown} not reported"), Meaning::Unknown),
        ],
        0 => vec![piece(format!("all {all} agree"), Meaning::Ok)],
        n => vec![piece(format!("{n} of {all} differ"), Meaning::Fail)],
    };
    let when = match (judged.verification.inspected_at, judged.fresh) {
        (Some(at), _) => format!(" · inspected {}", text::ago(pen.now, at)),
        (None, true) => " · fresh inspection".to_owned(),
        (None, false) => " · data at hand".to_owned(),
    };
    out.push(piece(when, Meaning::Muted));
    out
}

pub fn line(pen: &mut Pen, view: &RunView, which: Row, line: Rect) {
    let Some(judged) = &view.verification else { return };
    let checks = &judged.verification.checks;
    match which {
        Row::Diff(DiffRow::Diagnosis) => {
            if let Some(diagnosis) = &judged.verification.diagnosis {
                pen.sign(line, 2, Status::Failed);
                pen.column(line, 4, line.width.saturating_sub(4), diagnosis, Meaning::Strong, Keep::Start);
            }
        }
        Row::Diff(DiffRow::Check(at)) => check_line(pen, &checks[at], line),
        Row::Diff(DiffRow::Hint(at)) => {
            let hint = checks[at].hint.as_deref().unwrap_or_default();
            pen.column(line, 4, line.width.saturating_sub(4), hint, Meaning::Muted, Keep::Start);
        }
        Row::Diff(DiffRow::Action(at)) => action_line(pen, &checks[at], line),
        Row::Diff(DiffRow::More(n)) => {
            let more = if n == checks.len() { "" } else { " more" };
            let at = pen.write(line, 4, &format!("{n}{more} agree  "), Meaning::Muted);
            let at = pen.write(line, at, "a", Meaning::Key);
            pen.write(line, at, " shows them", Meaning::Muted);
        }
        Row::Expected(at) => side_line(pen, "expected", &checks[at].expected, Meaning::Text, line),
        Row::Observed(at) => side_line(pen, "observed", &checks[at].observed, Meaning::Fail, line),
        Row::Rule(at) if line.width < ONE_LINE => side_line(pen, "rule", &checks[at].rule, Meaning::Muted, line),
        Row::Rule(at) => {
            pen.write(line, 21, "rule", Meaning::Muted);
            pen.column(line, 31, line.width.saturating_sub(32), &checks[at].rule, Meaning::Muted, Keep::Start);
        }
        _ => {}
    }
}

fn status(verdict: Verdict) -> Status {
    match verdict {
        Verdict::Pass => Status::Ok,
        Verdict::Fail => Status::Failed,
        Verdict::Unknown => Status::Unknown,
        Verdict::Skipped => Status::Skipped,
    }
}

fn check_line(pen: &mut Pen, check: &Check, line: Rect) {
    let status = status(check.verdict);
    pen.sign(line, 2, status);
    let name = format!("{} {}", check.kind, check.subject);
    let failed = check.verdict == Verdict::Fail;
    let meaning = if failed { Meaning::Strong } else { Meaning::Text };
    pen.column(line, 4, 16, name.trim(), meaning, Keep::End);
    if line.width < ONE_LINE {
        if !failed {
            let text = if check.observed.is_empty() { "not reported" } else { &check.observed };
            pen.column(line, 21, line.width.saturating_sub(21), text, meaning_of(status), Keep::Start);
        }
        return;
    }
    // Expected and observed stand under each other at one place, whatever the verdict.
    let side = (line.width.saturating_sub(21) / 2).clamp(20, 40);
    let value = side.saturating_sub(12);
    let observed_at = 21 + side;
    if says_one(check) && line.width < RULE_BESIDE {
        pen.write(line, 21, "agrees", Meaning::Muted);
        pen.column(line, 31, value, &check.observed, Meaning::Text, Keep::Start);
        pen.column(
            line,
            observed_at,
            line.width.saturating_sub(observed_at + 1),
            &check.rule,
            Meaning::Muted,
            Keep::Start,
        );
        return;
    }
    pen.write(line, 21, "expected", Meaning::Muted);
    pen.column(line, 31, value, &check.expected, Meaning::Text, Keep::Start);
    pen.write(line, observed_at, "observed", Meaning::Muted);
    let (text, observed_meaning) = match check.verdict {
        Verdict::Fail => (check.observed.as_str(), Meaning::Fail),
        Verdict::Unknown if check.observed.is_empty() => ("not reported", Meaning::Unknown),
        Verdict::Unknown => (check.observed.as_str(), Meaning::Unknown),
        Verdict::Skipped => ("not asked for", Meaning::Muted),
        Verdict::Pass => (check.observed.as_str(), Meaning::Text),
    };
    pen.column(line, observed_at + 10, value, text, observed_meaning, Keep::Start);
    let rule_at = observed_at + 10 + value + 1;
    if line.width >= RULE_BESIDE {
        pen.column(line, rule_at, line.width - rule_at, &check.rule, Meaning::Muted, Keep::Start);
    }
}

fn side_line(pen: &mut Pen, word: &str, value: &str, meaning: Meaning, line: Rect) {
    pen.write(line, 4, word, Meaning::Muted);
    pen.column(line, 14, line.width.saturating_sub(14), value, meaning, Keep::Start);
}

fn action_line(pen: &mut Pen, check: &Check, line: Rect) {
    let arrow = pen.skin.glyphs.arrow();
    pen.write(line, 4, arrow, Meaning::Action);
    let owner = check.owner.map(|o| o.as_str()).unwrap_or_default();
    let room = line.width.saturating_sub(6 + text::width(owner) as u16 + 2);
    let action = check.action.as_deref().unwrap_or_default();
    pen.column(line, 6, room, action, Meaning::Action, Keep::Start);
    pen.right(line, &[piece(owner, Meaning::Strong), piece(" ", Meaning::Muted)]);
}

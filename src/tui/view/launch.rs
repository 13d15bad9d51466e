//! The launch dialog: what will happen, to which hosts, before it happens.

use ratatui::layout::Rect;

use crate::config::settings::default_options;
use crate::domain::request::SiteOptions;
use crate::tui::glyphs::Status;
use crate::tui::layout;
use crate::tui::model::Model;
use crate::tui::model::launch::{Candidate, Field, Launch, Verdict};
use crate::tui::text::{self, Keep};
use crate::tui::theme::Meaning;
use crate::tui::widgets::field::field;
use crate::tui::widgets::frame::frame;
use crate::tui::widgets::pen::{Pen, Piece, meaning_of, piece, row};

pub fn draw(pen: &mut Pen, model: &Model, launch: &Launch) {
    let width = model.width.min(92);
    let inner = width.saturating_sub(4);
    let sites = sites(model, launch);
    // A refusal has its action under it.
    let host_rows: u16 = launch.hosts.iter().map(lines_of).sum::<u16>().max(1);
    let gate_rows = gate_rows(inner) * sites.len() as u16;
    let fields = launch.fields().len() as u16;
    // Two for the frame; air above the fields, the hosts, the gates and the last line.
    let wanted = 2 + 1 + fields + 2 + host_rows + 2 + gate_rows + 2;
    let area = layout::popup(model, width, wanted);
    let title = match launch.hosts.as_slice() {
        [one] => format!("enroll {}", one.host),
        many => format!("enroll {}", text::count(many.len(), "host")),
    };
    let inside = frame(pen, area, &title, Meaning::Accent);
    // Without room the air goes first, then the gates: the hosts are what it is about.
    let tight = area.height < wanted;
    let air = usize::from(!tight);
    let mut at = air;
    for which in launch.fields() {
        field_line(pen, launch, *which, row(inside, at));
        at += 1;
    }
    at += air;
    let height = usize::from(inside.height);
    let last = height.saturating_sub(1);
    let gates_height = usize::from(gate_rows) + 1;
    let with_gates = last >= at + 1 + usize::from(host_rows.min(4)) + gates_height + 2 * air;
    let below = if with_gates { last.saturating_sub(gates_height + air) } else { last };
    hosts(pen, launch, inside, at, below.saturating_sub(at + 1 + air));
    if with_gates {
        gates(pen, &sites, inside, below);
    }
    last_line(pen, launch, row(inside, last));
}

fn lines_of(candidate: &Candidate) -> u16 {
    match candidate.verdict {
        Verdict::Refused { .. } | Verdict::Deployed => 2,
        Verdict::Eligible | Verdict::Busy { .. } => 1,
    }
}

fn field_line(pen: &mut Pen, launch: &Launch, which: Field, line: Rect) {
    let glyphs = pen.skin.glyphs;
    let focused = launch.field == which;
    let params = &launch.params;
    let (on, name, about) = match which {
        Field::RunInspection => {
            (Some(params.run_inspection), "run inspection", "checks hardware and cables; off is a diagnostic bypass")
        }
        Field::ForceInspection if !params.run_inspection => {
            (Some(params.force_inspection), "force inspection", "has no meaning while inspections are off")
        }
        Field::ForceInspection => {
            (Some(params.force_inspection), "force inspection", "a fresh one, though the data at hand may pass")
        }
        Field::RestartBmc => {
            (Some(params.force_bmc_restart), "restart BMC", "a cold reset, though no password was rotated")
        }
        Field::Attempts => (None, "attempts", "of a failing step; 1 fails at once"),
        Field::Canary => (Some(launch.canary), "canary first", "the others wait, and go only if it succeeds"),
        Field::NodeUuid => (None, "node UUID", "pins it when the node is created: for a swapped tray"),
    };
    let name_meaning = if focused { Meaning::Strong } else { Meaning::Text };
    if let Some(on) = on {
        let meaning = if on { Meaning::Ok } else { Meaning::Muted };
        pen.write(line, 1, glyphs.checked(on), meaning);
    }
    pen.write(line, 5, name, name_meaning);
    let mut about_at = 24;
    match which {
        Field::Attempts => {
            let value = params.max_attempts.map_or("as the site has it".to_owned(), |n| n.to_string());
            let at = pen.write(line, 24, "‹ ", if focused { Meaning::Key } else { Meaning::Muted });
            let at = pen.write(line, at, &value, Meaning::Strong);
            about_at = pen.write(line, at, " ›", if focused { Meaning::Key } else { Meaning::Muted }) + 2;
        }
        Field::NodeUuid => {
            let width = 36.min(line.width.saturating_sub(26));
            if launch.node_uuid.is_empty() && !focused {
                about_at = pen.write(line, 24, "new", Meaning::Strong) + 2;
            } else {
                // A UUID and its cursor take the whole line.
                field(pen, line, 24, width + 1, &launch.node_uuid, focused);
                about_at = line.width;
            }
        }
        _ => {}
    }
    if line.width >= 70 {
        pen.column(line, about_at, line.width.saturating_sub(about_at), about, Meaning::Muted, Keep::Start);
    }
    if focused {
        pen.tint(Rect { width: line.width.min(22), ..line }, Meaning::Selection);
        pen.write(line, 0, glyphs.cursor(), Meaning::Accent);
    }
}

fn hosts(pen: &mut Pen, launch: &Launch, inside: Rect, at: usize, room: usize) {
    let may = launch.starting().count();
    let head = match launch.hosts.as_slice() {
        [_] => "host".to_owned(),
        many => format!("{may} of {} may go", many.len()),
    };
    let line = row(inside, at);
    pen.write(line, 1, &head, Meaning::Muted);
    let mut used = 0;
    for (n, candidate) in launch.hosts.iter().enumerate().skip(launch.top) {
        let lines = usize::from(lines_of(candidate));
        let last = n + 1 == launch.hosts.len();
        // The last line of the room says how many more there are, unless they all fit.
        if used + lines + usize::from(!last) > room {
            let text = format!("{} more  ", launch.hosts.len() - n);
            let next = pen.write(row(inside, at + 1 + used), 3, &text, Meaning::Muted);
            pen.write(row(inside, at + 1 + used), next, "pgdn", Meaning::Key);
            break;
        }
        candidate_lines(pen, launch, candidate, inside, at + 1 + used);
        used += lines;
    }
}

fn candidate_lines(pen: &mut Pen, launch: &Launch, candidate: &Candidate, inside: Rect, at: usize) {
    let line = row(inside, at);
    let status = candidate.status();
    pen.sign(line, 1, status);
    pen.column(line, 3, 20, &candidate.host, Meaning::Strong, Keep::End);
    let alone = launch.hosts.len() == 1;
    let (fact, action) = match &candidate.verdict {
        Verdict::Eligible => ("eligible".to_owned(), None),
        Verdict::Busy { run } => (format!("run {run} is under way"), None),
        Verdict::Deployed if alone => (
            "deployed: a workload may run on it".to_owned(),
            Some("drifted BMC settings restart it; its name will have to be typed".to_owned()),
        ),
        Verdict::Deployed => ("deployed: left out of a batch".to_owned(), Some("enroll it alone".to_owned())),
        Verdict::Refused { message, action, .. } => (message.clone(), Some(action.clone())),
    };
    let code = match &candidate.verdict {
        Verdict::Refused { code, .. } => code.as_str(),
        _ => "",
    };
    let code_at = pen.right(line, &[piece(code, Meaning::Muted)]);
    pen.column(line, 24, code_at.saturating_sub(25), &fact, meaning_of(status), Keep::Start);
    if let Some(action) = action {
        let line = row(inside, at + 1);
        let arrow = pen.skin.glyphs.arrow();
        let next = pen.write(line, 24, arrow, Meaning::Action);
        pen.column(line, next + 1, line.width.saturating_sub(next + 1), &action, Meaning::Action, Keep::Start);
    }
}

/// The sites of the dialog, each with its gates.
fn sites<'a>(model: &'a Model, launch: &Launch) -> Vec<(&'a str, &'a SiteOptions)> {
    let of = |site: &str| launch.hosts.iter().any(|h| h.site == site);
    model.sites.iter().filter(|(name, _)| of(name)).map(|(name, options)| (name.as_str(), options)).collect()
}

/// What a site can switch on and off, in the order of a run.
fn gates_of(options: &SiteOptions) -> [(bool, &'static str); 6] {
    [
        (options.platform_class_activity_ready, "platform class"),
        (options.configure_dhcp, "dhcp"),
        (options.configure_bmc, "bmc"),
        (options.restrict_boot, "boot restriction"),
        (options.ironic_enrol, "ironic"),
        (options.switch_to_ipmi_after_inspection, "ipmi switch"),
    ]
}

const GATES_AT: u16 = 10;

/// Where each gate stands: line and column.
fn gate_places(width: u16) -> [(u16, u16); 6] {
    let (mut line, mut column) = (0, GATES_AT);
    gates_of(&default_options()).map(|(_, name)| {
        let needs = 2 + text::width(name) as u16;
        if column + needs > width && column > GATES_AT {
            (line, column) = (line + 1, GATES_AT);
        }
        let place = (line, column);
        column += needs + 2;
        place
    })
}

fn gate_rows(width: u16) -> u16 {
    gate_places(width).last().map_or(1, |(line, _)| line + 1)
}

fn gates(pen: &mut Pen, sites: &[(&str, &SiteOptions)], inside: Rect, at: usize) {
    pen.write(row(inside, at), 1, "what the site has switched on", Meaning::Muted);
    let places = gate_places(inside.width);
    let rows = usize::from(gate_rows(inside.width));
    for (n, (site, options)) in sites.iter().enumerate() {
        let first = at + 1 + n * rows;
        pen.column(row(inside, first), 1, 8, site, Meaning::Text, Keep::Start);
        for ((on, name), (line, column)) in gates_of(options).into_iter().zip(places) {
            let line = row(inside, first + usize::from(line));
            let status = if on { Status::Ok } else { Status::Skipped };
            pen.sign(line, column, status);
            pen.write(line, column + 2, name, if on { Meaning::Text } else { Meaning::Muted });
        }
    }
}

/// What enter does now.
fn last_line(pen: &mut Pen, launch: &Launch, line: Rect) {
    let say: Vec<Piece> = match launch.obstacle() {
        Some(obstacle) => vec![piece(obstacle, Meaning::Warn)],
        None => {
            let starting: Vec<&Candidate> = launch.starting().collect();
            let what = match starting.as_slice() {
                [one] => one.host.clone(),
                many => text::count(many.len(), "host"),
            };
            vec![piece("enter", Meaning::Key), piece(" starts ", Meaning::Text), piece(what, Meaning::Action)]
        }
    };
    pen.pieces(line, 1, &say);
    pen.right(line, &[piece("esc", Meaning::Key), piece(" back ", Meaning::Text)]);
}

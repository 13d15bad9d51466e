//! `muster runs compare`: two runs side by side, for a person or for a script.

use super::exit::{Ending, Exit};
use super::output;
use super::runs::failed;
use crate::app::Runs;
use crate::domain::compare::{Cell, Comparison, Mark, Row, Side};
use crate::domain::ids::RunId;
use crate::domain::text::neutralize;

/// Prints the comparison. That runs differ is no failure: it is what was asked.
pub fn compare(runs: &Runs, one: RunId, other: RunId, all: bool, json: bool) -> Result<Exit, Ending> {
    let compared = runs.compare(one, other).map_err(failed)?;
    if json {
        output::object(&output::comparison(&compared));
    } else {
        lines(&compared, all).iter().for_each(|line| output::line(line));
    }
    Ok(Exit::Done)
}

fn lines(compared: &Comparison, all: bool) -> Vec<String> {
    let mut out = vec![side("1", &compared.left), side("2", &compared.right)];
    for section in &compared.sections {
        let (rows, differ) = (section.rows.len(), section.differing());
        out.push(String::new());
        out.push(format!("{}: {differ} of {rows} differ", section.topic.title()));
        out.extend(section.rows.iter().filter(|row| all || row.mark != Mark::Same).flat_map(row));
    }
    out.iter().map(|line| neutralize(line).into_owned()).collect()
}

fn side(n: &str, side: &Side) -> String {
    let run = side.run.map_or(String::new(), |run| run.short());
    let at = side.submitted_at.map_or(String::new(), |at| at.strftime("%Y-%m-%d %H:%M:%S").to_string());
    format!("{n}  run {run}  {}  {}  {at}  by {}", side.host, side.status.as_str(), side.by)
}

fn row(row: &Row) -> Vec<String> {
    let text = |cell: &Option<Cell>| cell.as_ref().map_or("–".to_owned(), |cell| cell.text.clone());
    let glyph = match row.mark {
        Mark::Same => " ",
        Mark::Differs => "≠",
        Mark::OnlyLeft => "<",
        Mark::OnlyRight => ">",
    };
    let head = format!("  {glyph} {:<7}  {}", row.mark.word(), row.name);
    if row.mark == Mark::Same && row.left == row.right {
        return vec![format!("{head}: {}", text(&row.left))];
    }
    vec![head, format!("      1  {}", text(&row.left)), format!("      2  {}", text(&row.right))]
}

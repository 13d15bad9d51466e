//! The decision table of the prelude: provision state × instance × maintenance × run_inspection × half, every row of it
//! lived through by the real workflow on the lab, and the page of the documentation made of what came of it.

#[path = "support/inside.rs"]
mod inside;
#[path = "support/prelude.rs"]
mod prelude;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use inside::{Ground, runtime};
use muster::domain::provision::ProvisionState;
use muster::workflows::defs::Half;
use prelude::{HOST, Outcome, Row, expected, outcome, scenario};

fn states() -> Vec<ProvisionState> {
    let mut states = ProvisionState::KNOWN.to_vec();
    states.push("a state of the future".into());
    states
}

/// All rows.
fn rows() -> Vec<Row> {
    let mut rows = Vec::new();
    for state in states() {
        for (instance, maintenance, run_inspection) in
            (0..8).map(|bits: u32| (bits & 4 != 0, bits & 2 != 0, bits & 1 == 0))
        {
            for half in [Half::Inspection, Half::Cleaning] {
                rows.push(Row { state: state.clone(), instance, maintenance, run_inspection, half });
            }
        }
    }
    rows
}

/// Proves: E6, E7, E8, E9, E10, E11, E12, I10
#[test]
fn every_row_of_the_prelude_comes_out_as_the_table_says_and_writes_nothing_else() {
    let ground = Arc::new(Ground::of(scenario(), HOST));
    let runtime = runtime();
    let mut wrong = Vec::new();
    let mut came = BTreeMap::new();
    let rows = rows();
    for row in &rows {
        let outcome = runtime.block_on(outcome(&ground, row, None));
        let wanted = expected(row);
        if outcome != wanted {
            wrong.push(format!("{row:?}\n  wanted {wanted:?}\n  came   {outcome:?}"));
        }
        came.insert(row.clone(), outcome);
    }
    assert!(wrong.is_empty(), "{} of {} rows:\n{}", wrong.len(), rows.len(), wrong.join("\n"));
    compare(&page(&came));
}

/// The table, states with the same outcomes in one row.
fn page(came: &BTreeMap<Row, Outcome>) -> String {
    let mut page = String::from(
        "| node | instance | maintenance | inspection half | the same with `--no-inspection` | cleaning half |\n\
         | --- | --- | --- | --- | --- | --- |\n",
    );
    let mut lines: Vec<([String; 5], Vec<String>)> = Vec::new();
    for (instance, maintenance) in [(false, false), (false, true), (true, false), (true, true)] {
        for state in states() {
            let of = |half, run_inspection| {
                let row = Row { state: state.clone(), instance, maintenance, run_inspection, half };
                came[&row].words()
            };
            let cleaning = of(Half::Cleaning, true);
            assert_eq!(cleaning, of(Half::Cleaning, false), "the cleaning half knows no inspection");
            let flag = |on: bool| if on { "yes" } else { "no" }.to_owned();
            let cells =
                [flag(instance), flag(maintenance), of(Half::Inspection, true), of(Half::Inspection, false), cleaning];
            let known = ProvisionState::KNOWN.contains(&state);
            let name = if known { format!("`{state}`") } else { "any other".to_owned() };
            match lines.iter_mut().find(|(known, _)| *known == cells) {
                Some((_, names)) => names.push(name),
                None => lines.push((cells, vec![name])),
            }
        }
    }
    // Where the flag makes no difference, one row says so.
    let mut merged: Vec<([String; 5], Vec<String>)> = Vec::new();
    for (cells, names) in lines {
        let twin = merged.iter_mut().find(|(other, them)| {
            *them == names && other[0] == cells[0] && other[2..] == cells[2..] && other[1] != cells[1]
        });
        match twin {
            Some((other, _)) => other[1] = "either".to_owned(),
            None => merged.push((cells, names)),
        }
    }
    for (cells, names) in merged {
        page.push_str(&format!("| {} | {} |\n", names.join(", "), cells.join(" | ")));
    }
    page
}

const BEGIN: &str = "<!-- the prelude's table begins -->\n";
const END: &str = "<!-- the prelude's table ends -->\n";

/// Holds the table against the page, or writes it there (`MUSTER_UPDATE_DOCS=1`).
fn compare(table: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/ironic.md");
    let text = std::fs::read_to_string(&path).unwrap();
    let (head, rest) = text.split_once(BEGIN).expect("docs/ironic.md has the mark of the table's beginning");
    let (written, tail) = rest.split_once(END).expect("docs/ironic.md has the mark of the table's end");
    if std::env::var_os("MUSTER_UPDATE_DOCS").is_some() {
        std::fs::write(&path, format!("{head}{BEGIN}{table}{END}{tail}")).unwrap();
        return;
    }
    assert_eq!(written, table, "run MUSTER_UPDATE_DOCS=1 cargo test --test ironic_table");
}

//! Keeps the documentation that is made from tables equal to those tables.

use std::fmt::Write;
use std::path::Path;

use muster::clients::ironic::{CALLS, Microversion, Write as IronicWrite};
use muster::domain::failure::FailureCode;
use muster::domain::phase::Phase;
use muster::domain::provision::ProvisionState;
use muster::tui::action::{Def, TABLE, Where};
use muster::tui::glyphs::{Glyphs, Status};
use muster::tui::theme::Theme;

fn failures_page() -> String {
    let mut page = String::from(
        "# Failures\n\n\
         Every run that ends without success ends with one of these. The console and `runs show` give the sentence, the owner and the\n\
         action; `enroll --json` gives all fields. *Retried* says whether the same step can succeed later: such a step is tried again\n\
         within the run's total attempts, the others never are. An owner here is the usual one; a run names another where what it read\n\
         says so.\n\n\
         This page is made from the table in `src/domain/failure.rs` (`MUSTER_UPDATE_DOCS=1 cargo test --test docs`).\n\n\
         | code | owner | retried | what it means |\n| --- | --- | --- | --- |\n",
    );
    for code in FailureCode::ALL {
        let retried = if code.retryable() { "yes" } else { "no" };
        writeln!(page, "| `{code}` | {} | {retried} | {} |", code.owner(), code.meaning()).unwrap();
    }
    page
}

#[test]
fn the_page_of_failures_is_the_table() {
    compare("docs/failures.md", &failures_page());
}

fn compare(name: &str, page: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(name);
    if std::env::var_os("MUSTER_UPDATE_DOCS").is_some() {
        std::fs::write(&path, page).unwrap();
    }
    let written = std::fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(written, page, "run MUSTER_UPDATE_DOCS=1 cargo test --test docs");
}

/// What stands between two marks of a page.
fn compare_part(name: &str, mark: &str, table: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(name);
    let (begin, end) = (format!("<!-- {mark} begins -->\n"), format!("<!-- {mark} ends -->\n"));
    let page = std::fs::read_to_string(&path).unwrap();
    let (head, rest) = page.split_once(&begin).unwrap_or_else(|| panic!("{name} has no '{begin}'"));
    let (_, tail) = rest.split_once(&end).unwrap_or_else(|| panic!("{name} has no '{end}'"));
    compare(name, &format!("{head}{begin}{table}{end}{tail}"));
}

#[test]
fn the_page_of_ironic_has_the_tables_of_its_guard_and_its_versions() {
    let mut table = String::from("| request | goes from | |\n| --- | --- | --- |\n");
    for write in IronicWrite::ALL {
        let states = ProvisionState::KNOWN.iter().filter(|state| write.goes_from(state));
        let states: Vec<String> = states.map(|state| format!("`{state}`")).collect();
        writeln!(table, "| {} | {} | {} |", write.words(), states.join(", "), write.why()).unwrap();
    }
    compare_part("docs/ironic.md", "the guard's table", &table);

    let mut table = String::from("| request | since | release | for |\n| --- | --- | --- | --- |\n");
    for need in &CALLS {
        let only = if need.always { "" } else { " (only hosts that ask for it)" };
        let (since, release) = (need.since, need.since.release());
        writeln!(table, "| `{}` | {since} | {release} | {}{only} |", need.request, need.feature).unwrap();
    }
    let needed = Microversion::needed();
    writeln!(table, "| a whole enrollment | {needed} | {} | |", needed.release()).unwrap();
    compare_part("docs/ironic.md", "the versions' table", &table);
}

#[test]
fn the_page_of_vaults_has_the_table_of_their_kinds() {
    let mut table = String::from("| `kind` | where a secret is | what muster can write | what it needs | its keys |\n");
    table.push_str("| --- | --- | --- | --- | --- |\n");
    for kind in &muster::config::vault::KINDS {
        let keys: Vec<String> = kind.keys.iter().map(|key| format!("`{key}`")).collect();
        let (word, keeps, writes, needs) = (kind.word, kind.keeps, kind.writes, kind.needs);
        writeln!(table, "| `{word}` | {keeps} | {writes} | {needs} | {} |", keys.join(", ")).unwrap();
    }
    compare_part("docs/vaults.md", "the vaults' table", &table);
}

/// The keys of a place, as the table of actions has them.
fn keys(page: &mut String, title: &str, here: impl Fn(&Def) -> bool) {
    write!(page, "\n### {title}\n\n| key | | |\n| --- | --- | --- |\n").unwrap();
    for def in TABLE.iter().filter(|d| here(d)) {
        let keys: Vec<String> = def.keys.iter().map(|k| format!("`{k}`")).collect();
        writeln!(page, "| {} | {} | {} |", keys.join(" "), def.name, def.about).unwrap();
    }
}

fn console_page() -> String {
    let mut page = String::from(
        "# The console\n\n\
         `muster` opens it. It draws from the store before it asks any system; what is old says how old it is. The footer shows the\n\
         keys that work here and now, `?` explains them with the signs and the failure codes on the screen.\n\n\
         ![The fleet: places, hosts, and what to do about the selected one](../snapshots/fleet_100x32_dark.png)\n\n\
         ![A run that failed: swapped cables](../snapshots/run-failed_100x32_dark.png)\n\n\
         ![A run that waits for a link](../snapshots/run-links_100x32_dark.png)\n\n\
         A status is a sign and a word; colour comes third. `NO_COLOR` takes the colours and leaves the signs; `--ascii`, or a locale\n\
         that is not UTF-8, takes the signs. Under 100 columns one pane shows at a time; 60×20 is the least. Quitting ends no run:\n\
         all of them are in the journal and go on at the next start.\n\n\
         Where a site takes any certificate (`trust = \"anything\"` of its BMCs, of an Ironic that serves it, of NetBox, a vault or\n\
         NATS), `! TLS unchecked` stands in the header of every view and above every dialog that is about that site, with the\n\
         systems where there is room, and as `! TLS?` where a host's name leaves none. `muster doctor` warns of it too.\n\n\
         `w` lists what waits for a person: with hands first, then for others, rack by rack from the top down. The selected stop says in full\n\
         what is wrong, what to do and by which cable; `f` repeats its run with a fresh inspection right there, and the stop leaves by itself.\n\n\
         ![What waits for a person](../snapshots/for-you_100x32_dark.png)\n\n\
         `u` shows the rack of a host, from the table, the tree, a run or a stop: every unit by the number that NetBox has for it, halves\n\
         too, and counted from the top where the rack is; empty ones empty, each device in its height. The front says how each host stands.\n\
         The rear says of each frontend link what an inspection or a BMC told last: `UP`, `DOWN` or `UNKNOWN`, and whether the cable is in\n\
         the port that NetBox has (`✓`), in the one that is named instead (`✗`), or was never heard (`?`). What stands at no unit, beside the\n\
         units, at a unit that the rack does not have or where another device is, stands below with that reason. Under 100 columns `tab` turns the\n\
         rack round. Keys act on the selected device as they do in the table.\n\n\
         ![A rack from both sides: two cables in each other's place](../snapshots/rack_100x32_dark.png)\n\n\
         `s` sorts the table: by place, as one walks; by name; by NetBox's status; by Ironic's state; by what needs you most, which is failures\n\
         with hands first, then refusals, what is under way, and what is done, the newest first. `S` turns it round. Hosts that are alike stay in\n\
         the order of the racks, and the cursor on its host.\n\n\
         In a run `[` and `]` go back and on in what happened, `{` and `}` from one phase to the next. The whole view is as it was then; what keys\n\
         start or end is the run as it is now. `esc` comes back to now.\n\n\
         Beside each phase stands what it usually takes: the median of the latest runs that succeeded in it, at most 30 of them, of hosts of the same\n\
         platform class, else of the same device type, else of the site, else of all. Of fewer than three nothing is said. What takes twice as long, and at least half a\n\
         minute longer, has a `!` and the words *longer than usual*. The pane `timeline` has all phases.\n\n\
         `E` writes the run's whole story as Markdown into `exports` in the state folder, and says where it is; `y` copies what the pane shows, of the\n\
         inspection diff every check with its verdict and its rule.\n\n\
         `H` lists the runs of a host: when, how each ended, in which phase and with which code, after how many attempts, how long it took, and who started it.\n\
         `enter` opens one, as it is now or to look back. `c` puts two side by side: those that are marked with `space`, else the selected one and the one before it.\n\n\
         ![The runs of a host](../snapshots/history_100x32_dark.png)\n\n\
         The older one stands on the left, or above where it is narrow. Rows that differ have a sign and a word: `≠` differs, `<` only the first has it, `>` only the second.\n\
         Two durations differ when one is twice the other and half a minute longer. `a` shows what agrees of checks and changes too.\n\n\
         ![Two runs side by side](../snapshots/compare_100x32_dark.png)\n\n\
         A paste never starts, cancels or ends anything: with bracketed paste it goes to a field or nowhere, and without it keys that\n\
         come faster than hands are recognised, so that what starts, cancels or ends something is not done.\n\n\
         A barcode scanner in place of hands selects the device whose serial or asset tag it reads, in the fleet, among the stops and in a\n\
         run ([rack.md](rack.md)). `P` asks what is to become of a host's power.\n\n\
         When a run ends that you started, or that is open, the terminal rings: `on_end` under `[console]` says `bell`, `osc9` (a\n\
         notification of the desktop with a sentence, where the terminal knows it), `both` or `none`. Runs that end within five seconds are\n\
         told as one. Inside tmux a notification needs `set -g allow-passthrough on`; a bell is shown as tmux is told to show bells.\n\n\
         [tour.md](tour.md) is a first walk through all this, in the demo.\n\n\
         ## Keys\n\nThis page is made from the table in `src/tui/action.rs` (`MUSTER_UPDATE_DOCS=1 cargo test --test docs`).\n",
    );
    let everywhere = |d: &Def| {
        [Where::Fleet, Where::Run, Where::Walk, Where::History, Where::Log].into_iter().all(|w| d.works_in(w))
    };
    keys(&mut page, "Everywhere", everywhere);
    keys(&mut page, "Fleet", |d| d.works_in(Where::Fleet) && !everywhere(d));
    keys(&mut page, "Run", |d| d.works_in(Where::Run) && !everywhere(d));
    keys(&mut page, "Rack", |d| d.works_in(Where::Rack) && !everywhere(d));
    keys(&mut page, "What waits for you", |d| d.works_in(Where::Walk) && !everywhere(d));
    keys(&mut page, "The runs of a host", |d| d.works_in(Where::History) && !everywhere(d));
    keys(&mut page, "Two runs side by side", |d| d.works_in(Where::Compare) && !everywhere(d));
    keys(&mut page, "Launch dialog", |d| d.works_in(Where::Launch) && !everywhere(d));
    keys(&mut page, "Power dialog", |d| d.works_in(Where::Power) && !everywhere(d) && !d.works_in(Where::Launch));
    keys(&mut page, "Questions", |d| d.works_in(Where::Confirm) && !everywhere(d));
    page.push_str(
        "\n## Filter\n\nWords find letters in their order (`b39` finds `gpu-b07-39`), `key:value` looks in one column, `!` in front inverts either,\n\
         quotes keep blanks together: `ironic:\"clean failed\" !rack:B07`.\n\n| key | |\n| --- | --- |\n",
    );
    for (key, about) in muster::tui::model::filter::KEYS {
        writeln!(page, "| `{key}:` | {about} |").unwrap();
    }
    page.push_str("\n## Signs\n\n| | ASCII | |\n| --- | --- | --- |\n");
    for status in Status::ALL {
        let sign = |ascii| Glyphs { ascii }.status(status, jiff::Timestamp::UNIX_EPOCH);
        writeln!(page, "| {} | `{}` | {} |", sign(false), sign(true), status.word()).unwrap();
    }
    page.push_str(
        "\n## Themes\n\n`[console] theme` in the configuration, or `T` while it runs. [themes.md](themes.md) says how to\n\
         make one, and how to set other keys.\n\n| | |\n| --- | --- |\n",
    );
    for name in Theme::names() {
        writeln!(page, "| `{name}` | {} |", Theme::named(name).unwrap().about).unwrap();
    }
    page
}

#[test]
fn the_page_of_the_console_is_its_tables() {
    compare("docs/console.md", &console_page());
}

#[test]
fn every_phase_has_a_page_and_the_readme_links_it() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let readme = std::fs::read_to_string(root.join("README.md")).unwrap();
    for phase in Phase::ALL {
        let page = match phase {
            Phase::ResolveIronicInstance => "preflight",
            Phase::StatusGate => "status-gate",
            Phase::PlatformClass => "platform-class",
            Phase::Dhcp => "dhcp",
            Phase::Bmc => "bmc",
            Phase::Activation => "activation",
            Phase::Inspection => "inspection",
            Phase::DriverSwitch => "driver-switch",
            Phase::Cleaning => "cleaning",
            Phase::Finalize => "finalize",
        };
        let path = root.join(format!("docs/{page}.md"));
        assert!(path.exists(), "{}", path.display());
        assert!(readme.contains(&format!("docs/{page}.md")), "the README does not link docs/{page}.md");
    }
}

#[test]
fn no_link_between_documents_leads_nowhere() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut pages = vec![root.join("README.md"), root.join("CONTRIBUTING.md")];
    for entry in std::fs::read_dir(root.join("docs")).unwrap() {
        pages.push(entry.unwrap().path());
    }
    let mut broken = Vec::new();
    for page in pages.iter().filter(|p| p.extension().is_some_and(|e| e == "md")) {
        let text = std::fs::read_to_string(page).unwrap();
        for part in text.split("](").skip(1) {
            let target = part.split([')', '#']).next().unwrap();
            if target.is_empty() || target.contains("://") {
                continue;
            }
            if !page.parent().unwrap().join(target).exists() {
                broken.push(format!("{}: {target}", page.display()));
            }
        }
    }
    assert!(broken.is_empty(), "{}", broken.join("\n"));
}

/// The words between backticks of a cell.
fn quoted(cell: &str) -> Vec<&str> {
    cell.split('`').skip(1).step_by(2).collect()
}

/// Each habit of the lab's BMCs has a line with a test, and each test and each habit of a line exists.
#[test]
fn the_page_of_odd_habits_names_every_habit_of_the_lab_and_tests_that_exist() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let page = std::fs::read_to_string(root.join("docs/bmc-quirks.md")).unwrap();
    let source = std::fs::read_to_string(root.join("src/lab/machine.rs")).unwrap();
    let (_, variants) = source.split_once("pub enum Quirk {").unwrap();
    let (variants, _) = variants.split_once("\n}").unwrap();
    let is_name = |line: &&str| line.ends_with(',') && line.starts_with(|c: char| c.is_ascii_uppercase());
    let habits: Vec<String> = variants
        .lines()
        .map(str::trim)
        .filter(is_name)
        .map(|line| {
            let mut word = String::new();
            for c in line.trim_end_matches(',').chars() {
                if c.is_ascii_uppercase() && !word.is_empty() {
                    word.push('_');
                }
                word.push(c.to_ascii_lowercase());
            }
            word
        })
        .collect();
    for habit in &habits {
        let known: Result<muster::lab::machine::Quirk, _> = serde_json::from_value(habit.as_str().into());
        assert!(known.is_ok(), "the scenario language has no '{habit}'");
    }
    // What a fault rule has, and what else stands in that column.
    let others =
        ["status", "body", "headers", "delay_s", "drop", "after_effect", "cut_body", "unreported", "dell-forbidden"];
    let (mut named, mut wrong) = (Vec::new(), Vec::new());
    for line in page.lines().filter(|line| line.starts_with("| ") && line.contains("rs` `")) {
        let cells: Vec<&str> = line.trim_matches('|').split(" | ").collect();
        let [_, _, lab, test] = cells[..] else { panic!("{line}") };
        for word in quoted(lab) {
            named.push(word.to_owned());
            let known = habits.iter().any(|habit| habit == word) || others.contains(&word);
            wrong.extend((!known).then(|| format!("no habit '{word}': {line}")));
        }
        let [file, name] = quoted(test)[..] else { panic!("{line}") };
        let text = std::fs::read_to_string(root.join(file)).unwrap_or_default();
        wrong.extend((!text.contains(&format!("fn {name}("))).then(|| format!("no test '{name}' in {file}")));
    }
    wrong.extend(habits.iter().filter(|habit| !named.contains(habit)).map(|habit| format!("'{habit}' has no line")));
    assert!(wrong.is_empty(), "{wrong:#?}");
}

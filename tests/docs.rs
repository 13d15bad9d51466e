//! Keeps the documentation that is made from tables equal to those tables.

use std::fmt::Write;
use std::path::Path;

use muster::domain::failure::FailureCode;
use muster::domain::phase::Phase;

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
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/failures.md");
    let page = failures_page();
    if std::env::var_os("MUSTER_UPDATE_DOCS").is_some() {
        std::fs::write(&path, &page).unwrap();
    }
    let written = std::fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(written, page, "run MUSTER_UPDATE_DOCS=1 cargo test --test docs");
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

//! What a store can suffer, at the real binary: a journal that fits no more, torn and scribbled files, a folder that can only
//! be read, a full disk, a newer version. Each is one clear sentence and an exit code, and never a damaged store or site.

#[allow(dead_code, reason = "each test binary uses its part of the support")]
#[path = "support/binary.rs"]
mod binary;

use std::collections::BTreeMap;
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use binary::{Ended, LabProcess, Running};
use rusqlite::Connection;
use serde_json::Value;

const HOST: &str = "gpu-b07-29";
const OTHER: &str = "gpu-b06-31";
const SPEED: u32 = 60;

fn store(lab: &LabProcess) -> PathBuf {
    lab.state().join("muster.db")
}

/// A run that was killed while its node is inspected; what it left is in the file itself, not beside it.
fn killed(lab: &LabProcess) {
    let mut running = Running::start(lab.command(&["enroll", HOST, "--json"]));
    assert!(running.wait_for("inspect wait", |line| line.contains("inspect wait")).is_some());
    running.kill();
}

/// Moves everything into the one file, as the last orderly end does.
fn settle(path: &Path) {
    let conn = Connection::open(path).unwrap();
    conn.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).unwrap();
    drop(conn);
    assert!(!path.with_extension("db-wal").exists());
}

/// One sentence that has all of this, this exit code, and no panic.
#[track_caller]
fn refused(ended: &Ended, code: i32, words: &[&str]) {
    assert_eq!(ended.code(), Some(code), "{ended}");
    let lines: Vec<&str> = ended.stderr.lines().filter(|line| line.starts_with("muster: ")).collect();
    assert_eq!(lines.len(), 1, "{ended}");
    for word in words {
        assert!(lines[0].contains(word), "'{word}' is missing: {ended}");
    }
    assert!(!ended.stderr.contains("panicked"), "{ended}");
}

/// What a site got that sets something off, by what it asks for.
fn set_off(lab: &LabProcess, host: &str) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for entry in lab.ledger().iter().filter(|entry| entry["host"] == host) {
        let path = entry["path"].as_str().unwrap_or_default();
        if path.contains("/states/provision") {
            *counts.entry(entry["body"]["target"].to_string()).or_insert(0) += 1;
        }
    }
    counts
}

#[track_caller]
fn nothing_twice(lab: &LabProcess) {
    let counts = set_off(lab, HOST);
    assert!(counts.values().all(|n| *n == 1), "{counts:?}");
    assert_eq!(counts.len(), 3, "{counts:?}");
}

fn run_of(lab: &LabProcess, host: &str) -> Value {
    let runs = lab.run(&["runs", "list", "--json"]).events();
    runs.into_iter().find(|run| run["host"] == host).unwrap_or_else(|| panic!("no run of {host}"))
}

/// Proves: G7, G12
#[test]
fn a_journal_that_fits_the_code_no_more_ends_its_run_alone_and_touches_nothing() {
    let lab = LabProcess::start(SPEED, None);
    killed(&lab);
    let conn = Connection::open(store(&lab)).unwrap();
    let changed = conn
        .execute("UPDATE recent SET body = replace(body, 'ironic.prelude', 'ironic.overture') WHERE observed = 0", [])
        .unwrap();
    assert!(changed > 0);
    drop(conn);
    lab.reset_ledger();
    let ended = lab.run(&["enroll", OTHER, "--json"]);
    assert_eq!(ended.code(), Some(0), "{ended}");
    let run = run_of(&lab, HOST);
    assert_eq!((&run["status"], &run["failure"]["code"]), (&"failed".into(), &"JOURNAL_DIVERGED".into()), "{run:#}");
    let message = run["failure"]["message"].as_str().unwrap();
    assert!(message.contains("ironic.overture") && message.contains("ironic.prelude"), "{message}");
    assert!(run["failure"]["action"].as_str().unwrap().contains("left half done"), "{run:#}");
    // Readings of whole lists are the inventory's; nothing else was asked about the host.
    let touched: Vec<Value> = lab.ledger().into_iter().filter(|e| e["host"] == HOST).collect();
    assert_eq!(touched, Vec::<Value>::new());
}

/// Proves: G5, G12
#[test]
fn a_log_whose_end_was_torn_off_is_gone_on_from_where_it_is_whole() {
    let lab = LabProcess::start(SPEED, None);
    killed(&lab);
    let wal = store(&lab).with_extension("db-wal");
    let bytes = std::fs::read(&wal).unwrap();
    assert!(bytes.len() > 8000, "{}", bytes.len());
    // Half a page is missing, and what stands before it is scribbled over.
    let mut torn = bytes[..bytes.len() - 2000].to_vec();
    let end = torn.len();
    torn[end - 500..].fill(0x5a);
    std::fs::write(&wal, &torn).unwrap();
    let ended = lab.run(&["enroll", HOST, "--json"]);
    assert_eq!(ended.code(), Some(0), "{ended}");
    nothing_twice(&lab);
    let checked: String =
        Connection::open(store(&lab)).unwrap().query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap();
    assert_eq!(checked, "ok");
}

/// Proves: G12
#[test]
fn a_file_that_is_torn_or_scribbled_over_or_of_a_newer_muster_is_refused_and_left_as_it_is() {
    let lab = LabProcess::start(SPEED, None);
    killed(&lab);
    settle(&store(&lab));
    let whole = std::fs::read(store(&lab)).unwrap();
    lab.reset_ledger();
    type Spoil = fn(&mut Vec<u8>);
    let kinds: [(&str, Spoil, &[&str]); 4] = [
        ("torn", |bytes| bytes.truncate(bytes.len() - 2000), &["is damaged", "put it aside", "--state-dir"]),
        ("garbage", |bytes| bytes[..100].fill(0xa5), &["is damaged or is no store", "--state-dir"]),
        ("first page", |bytes| bytes[100..4096].fill(0xa5), &["is damaged", "--state-dir"]),
        ("newer", |bytes| bytes[60..64].copy_from_slice(&99u32.to_be_bytes()), &["version 99", "use the newer muster"]),
    ];
    for (kind, spoil, words) in kinds {
        let mut bytes = whole.clone();
        spoil(&mut bytes);
        std::fs::write(store(&lab), &bytes).unwrap();
        for arguments in [&["enroll", HOST][..], &["serve"], &["runs", "list"], &["runs", "cancel", "abcd"]] {
            println!("{kind}: {arguments:?}");
            refused(&lab.run(arguments), 2, words);
            for left in ["db-wal", "db-shm"] {
                std::fs::remove_file(store(&lab).with_extension(left)).ok();
            }
            assert!(std::fs::read(store(&lab)).unwrap() == bytes, "{kind}: {arguments:?} changed the file");
        }
    }
    assert_eq!(lab.ledger(), Vec::<Value>::new());
    // The file was put aside and brought back: the run goes on.
    std::fs::write(store(&lab), &whole).unwrap();
    let ended = lab.run(&["enroll", HOST, "--json"]);
    assert_eq!(ended.code(), Some(0), "{ended}");
    // `manage` and `inspect` were asked for before; only what came behind them is.
    assert_eq!(set_off(&lab, HOST), BTreeMap::from([("\"provide\"".to_owned(), 1)]));
}

/// Proves: G12
#[test]
fn a_page_of_one_journal_that_is_scribbled_over_is_told_and_the_other_runs_go_on() {
    let lab = LabProcess::start(SPEED, None);
    killed(&lab);
    settle(&store(&lab));
    // A leaf of the newest records, which the lists don't need.
    let conn = Connection::open(store(&lab)).unwrap();
    let marker: String = conn
        .query_row("SELECT body FROM recent WHERE observed = 0 ORDER BY n LIMIT 1 OFFSET 6", [], |row| row.get(0))
        .unwrap();
    drop(conn);
    let mut bytes = std::fs::read(store(&lab)).unwrap();
    let needle = &marker.as_bytes()[..60.min(marker.len())];
    let at = bytes.windows(needle.len()).position(|window| window == needle).unwrap();
    let page = at / 4096 * 4096;
    bytes[page..page + 4096].fill(0xa5);
    std::fs::write(store(&lab), &bytes).unwrap();
    lab.reset_ledger();
    refused(&lab.run(&["enroll", HOST]), 2, &["is damaged", "put it aside"]);
    let run = run_of(&lab, HOST)["run"].as_str().unwrap().to_owned();
    refused(&lab.run(&["runs", "show", &run]), 1, &["is damaged", "put it aside"]);
    refused(&lab.run(&["runs", "watch", &run]), 1, &["is damaged", "put it aside"]);
    let ended = lab.run(&["enroll", OTHER, "--json"]);
    assert_eq!(ended.code(), Some(0), "{ended}");
    let writes: Vec<Value> = lab.ledger().into_iter().filter(|e| e["host"] == HOST && e["write"] == true).collect();
    assert_eq!(writes, Vec::<Value>::new());
}

fn is_root() -> bool {
    use std::os::unix::fs::MetadataExt;
    std::fs::metadata("/proc/self").unwrap().uid() == 0
}

/// A user who may do nothing.
const NOBODY: u32 = 65534;

/// As somebody whom modes of files bind: root reads and writes whatever it likes.
fn bound(lab: &LabProcess, arguments: &[&str]) -> Command {
    let mut command = lab.command(arguments);
    if is_root() {
        command.uid(NOBODY).gid(NOBODY);
    }
    command
}

fn give(path: &Path) {
    if !is_root() {
        return;
    }
    chown(path, Some(NOBODY), Some(NOBODY)).unwrap();
    if path.is_dir() {
        std::fs::read_dir(path).unwrap().for_each(|entry| give(&entry.unwrap().path()));
    }
}

/// Proves: G12
#[test]
fn a_state_that_can_only_be_read_is_refused_with_what_to_do() {
    let lab = LabProcess::start(SPEED, None);
    killed(&lab);
    settle(&store(&lab));
    give(lab.folder.path());
    let mode = |path: &Path, mode| std::fs::set_permissions(path, PermissionsExt::from_mode(mode)).unwrap();
    lab.reset_ledger();
    let before = std::fs::read(store(&lab)).unwrap();
    mode(&store(&lab), 0o400);
    for arguments in [&["enroll", HOST][..], &["runs", "list"]] {
        refused(&Running::start(bound(&lab, arguments)).end(), 2, &["can only be read", "the right to write"]);
    }
    mode(&store(&lab), 0o600);
    mode(&lab.state(), 0o500);
    for file in ["muster.log", "muster.lock"] {
        std::fs::remove_file(lab.state().join(file)).ok();
    }
    for arguments in [&["enroll", HOST][..], &["runs", "list"]] {
        let ended = Running::start(bound(&lab, arguments)).end();
        refused(&ended, 2, &[lab.state().to_str().unwrap()]);
        assert!(ended.stderr.contains("writ"), "{ended}");
    }
    mode(&lab.state(), 0o700);
    assert!(std::fs::read(store(&lab)).unwrap() == before);
    assert_eq!(lab.ledger(), Vec::<Value>::new());
}

/// A small disk with room for a whole log, given back when it is dropped. `None` where this user may mount nothing.
struct Disk(PathBuf);

impl Disk {
    fn new(place: &Path) -> Option<Disk> {
        std::fs::create_dir(place).unwrap();
        let mounted =
            Command::new("mount").args(["-t", "tmpfs", "-o", "size=48m", "tmpfs"]).arg(place).output().ok()?;
        mounted.status.success().then(|| Disk(place.to_owned()))
    }

    fn fill(&self) {
        use std::io::Write;
        let mut file = std::fs::File::create(self.0.join("ballast")).unwrap();
        while file.write_all(&[0; 4096]).is_ok() {}
        while file.write_all(&[0; 1]).is_ok() {}
    }

    fn make_room(&self) {
        std::fs::remove_file(self.0.join("ballast")).unwrap();
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        Command::new("umount").arg("-l").arg(&self.0).status().ok();
    }
}

/// Proves: G5, G12
#[test]
fn a_run_that_a_full_disk_stops_says_so_and_goes_on_when_there_is_room() {
    let lab = LabProcess::start(SPEED, None);
    let Some(disk) = Disk::new(&lab.folder.path().join("disk")) else {
        println!("not tried: nothing can be mounted here");
        return;
    };
    let on_disk = |arguments: &[&str]| {
        let mut command = binary::muster(&[]);
        command.arg("--config").arg(&lab.config).arg("--state-dir").arg(disk.0.join("state")).args(arguments);
        command
    };
    let mut running = Running::start(on_disk(&["enroll", HOST, "--json"]));
    assert!(running.wait_for("inspect wait", |line| line.contains("inspect wait")).is_some());
    disk.fill();
    running.wait_to_say("is full: free some space there");
    // What only looks is not kept from it.
    let list = Running::start(on_disk(&["runs", "list", "--json"])).end();
    assert_eq!((list.code(), list.events().len()), (Some(0), 1), "{list}");
    disk.make_room();
    let ended = running.end();
    assert_eq!(ended.code(), Some(0), "{ended}");
    assert_eq!(ended.stderr.matches("is full").count(), 1, "{ended}");
    assert!(ended.stdout.contains("goes on after"), "{ended}");
    nothing_twice(&lab);
    disk.fill();
    refused(&Running::start(on_disk(&["enroll", OTHER])).end(), 1, &["full", "free some space"]);
    disk.make_room();
    let path = disk.0.join("state/muster.db");
    let checked: String =
        Connection::open(path).unwrap().query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap();
    assert_eq!(checked, "ok");
}

/// Case: C-47. Proves: G5, G6
///
/// Stopped, the process sees nothing and the site goes on: as behind a closed lid.
#[test]
fn a_process_that_is_stopped_for_a_while_ends_its_run_as_if_it_had_not_been() {
    let lab = LabProcess::start(SPEED, None);
    let mut running = Running::start(lab.command(&["enroll", HOST, "--json"]));
    let signal = |name: &str, pid: u32| {
        assert!(Command::new("kill").args(["-s", name, &pid.to_string()]).status().unwrap().success());
    };
    for state in ["inspect wait", "clean wait"] {
        assert!(running.wait_for(state, |line| line.contains(state)).is_some());
        signal("STOP", running.pid());
        // In lab time longer than the phase takes: it ends unseen.
        std::thread::sleep(std::time::Duration::from_secs(4));
        signal("CONT", running.pid());
    }
    let ended = running.end();
    assert_eq!(ended.code(), Some(0), "{ended}");
    nothing_twice(&lab);
}

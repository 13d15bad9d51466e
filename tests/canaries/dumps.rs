//! A process that holds secrets leaves no memory of itself behind, whatever ends it.

use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, Stdio};

use super::binary::{Running, muster};

/// A command whose limit for dumps is as high as it may be, in a folder.
fn with_dumps(program: &str, arguments: &[&str], folder: &Path) -> Command {
    let mut command = Command::new("/bin/sh");
    command.args(["-c", "ulimit -c unlimited 2>/dev/null; exec \"$0\" \"$@\"", program]).args(arguments);
    command.current_dir(folder).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

fn files_in(folder: &Path) -> Vec<String> {
    std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect()
}

/// Proves: Z1
#[test]
fn a_muster_that_crashes_leaves_no_dump() {
    let folder = tempfile::tempdir().unwrap();
    let program = muster(&[]).get_program().to_str().unwrap().to_owned();
    let mut running = Running::start(with_dumps(&program, &["lab"], folder.path()));
    running.wait_for("the lab", |line| line.contains("\"ready\"")).unwrap();
    let id = running.pid();
    let limits = std::fs::read_to_string(format!("/proc/{id}/limits")).unwrap();
    let line = limits.lines().find(|line| line.starts_with("Max core file size")).unwrap();
    assert_eq!(line.split_whitespace().filter(|word| *word == "0").count(), 2, "{line}");
    // Marked as one that is not to be dumped: the kernel gives what is told of it to root.
    let owner = |what: &str| {
        use std::os::unix::fs::MetadataExt;
        std::fs::metadata(format!("/proc/{id}/{what}")).unwrap().uid()
    };
    assert_eq!(owner("environ"), 0);
    assert!(Command::new("kill").args(["-s", "ABRT", &id.to_string()]).status().unwrap().success());
    let ended = running.end();
    assert_eq!(ended.status.signal(), Some(6), "{ended}");
    assert!(!ended.status.core_dumped(), "{ended}");
    assert!(files_in(folder.path()).is_empty(), "{:?}", files_in(folder.path()));

    // That a dump would have been seen, where this machine lets anybody dump at all.
    let ended = with_dumps("/bin/sh", &["-c", "kill -s ABRT $$"], folder.path()).status().unwrap();
    match ended.core_dumped() {
        true => println!("a shell that crashes the same way is dumped"),
        false => {
            println!("this machine dumps nobody: {}", std::fs::read_to_string("/proc/sys/kernel/core_pattern").unwrap())
        }
    }
}

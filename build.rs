//! Puts into the binary what `muster --version` tells of its making: nothing that differs from build to build of one commit.

use std::path::Path;
use std::process::Command;

fn main() {
    let profile = std::env::var("PROFILE").unwrap_or_default();
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-env-changed=MUSTER_COMMIT");
    // Asked of git: in a linked worktree `.git` is a file, and a path that is not there would make every build a new one. What
    // is under work is not made anew at each commit, only at a checkout; a release always tells the commit that it is of.
    let watched: &[&str] = if profile == "release" { &["HEAD", "logs/HEAD"] } else { &["HEAD"] };
    for name in watched {
        if let Some(path) = git(&["rev-parse", "--git-path", name]).filter(|path| Path::new(path).exists()) {
            println!("cargo:rerun-if-changed={path}");
        }
    }
    // A source tree without its history is told by whoever packs it: hash and day of the commit.
    let given = std::env::var("MUSTER_COMMIT").ok().filter(|text| !text.trim().is_empty());
    let commit = given.or_else(|| git(&["log", "-1", "--abbrev=10", "--format=%h %cs"]));
    let commit = commit.unwrap_or_else(|| "no commit".to_owned());
    let target = std::env::var("TARGET").unwrap_or_default();
    let compiler = told(Command::new(std::env::var("RUSTC").unwrap_or_default()).arg("--version"));
    let compiler = compiler.as_deref().and_then(|text| text.split(' ').nth(1)).unwrap_or("unknown").to_owned();
    println!("cargo:rustc-env=MUSTER_BUILD={commit}, {profile}, {target}, rustc {compiler}");
}

fn git(arguments: &[&str]) -> Option<String> {
    told(Command::new("git").args(arguments))
}

/// What a program says; `None` where it isn't there, fails, or says nothing.
fn told(command: &mut Command) -> Option<String> {
    let out = command.output().ok().filter(|out| out.status.success())?;
    Some(String::from_utf8(out.stdout).ok()?.trim().to_owned()).filter(|text| !text.is_empty())
}

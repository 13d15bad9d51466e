//! Puts into the binary what `muster --version` tells of its making.

use std::process::Command;

fn main() {
    println!("cargo:rerun-if-changed=.git/HEAD");
    println!("cargo:rerun-if-changed=build.rs");
    let commit = Command::new("git").args(["rev-parse", "--short=10", "HEAD"]).output().ok();
    let commit = commit.filter(|out| out.status.success()).and_then(|out| String::from_utf8(out.stdout).ok());
    let commit = commit.map(|text| text.trim().to_owned()).filter(|text| !text.is_empty());
    let profile = std::env::var("PROFILE").unwrap_or_default();
    let target = std::env::var("TARGET").unwrap_or_default();
    println!("cargo:rustc-env=MUSTER_BUILD={} {profile} {target}", commit.as_deref().unwrap_or("no commit"));
}

//! The command itself: what it prints, and how it ends.

use std::process::{Command, Stdio};

use serde_json::Value;

use super::rig;

/// Proves: K4, G16
#[tokio::test]
async fn the_command_ends_by_what_it_found_and_each_line_of_json_is_one_check() {
    let rig = rig().await;
    let run = |more: &[&str]| {
        let config = rig.folder.path().join("etc/config.toml").display().to_string();
        let mut command = Command::new(env!("CARGO_BIN_EXE_muster"));
        command.args(["--config", &config, "doctor"]).args(more).stdin(Stdio::null()).env_remove("MUSTER_CONFIG");
        tokio::task::spawn_blocking(move || command.output().unwrap())
    };
    let well = run(&["--json"]).await.unwrap();
    let text = String::from_utf8(well.stdout).unwrap();
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let (summary, checks) = lines.split_last().unwrap();
    assert_eq!(well.status.code(), Some(0), "{text}");
    assert!(checks.iter().all(|check| check["level"] == "ok" && check["owner"].is_null()), "{text}");
    assert_eq!((&summary["ok"], &summary["fail"]), (&checks.len().into(), &0.into()));

    rig.lab.dhcp_host().change_host_key().unwrap();
    let ill = run(&[]).await.unwrap();
    let text = String::from_utf8(ill.stdout).unwrap();
    assert_eq!(ill.status.code(), Some(1), "{text}");
    let told: Vec<&str> = text.lines().filter(|line| line.starts_with("FAIL")).collect();
    assert!(told.len() == 1 && told[0].contains("site.osl1.dhcp.hostkey"), "{text}");
    assert!(text.contains("NETOPS: find out whether"), "{text}");
    assert!(text.contains("could not be looked at: site.osl1.dhcp.hostkey is not well"), "{text}");
    rig.wrote_nothing();
}

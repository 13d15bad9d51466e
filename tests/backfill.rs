//! `muster platform-class backfill` over the lab: dry by default, writes only what is missing, and a second time nothing.

#[allow(dead_code, reason = "each test binary uses its part of the support")]
#[path = "support/binary.rs"]
mod binary;

use binary::LabProcess;
use serde_json::Value;

fn outcomes(events: &[Value], word: &str) -> Vec<String> {
    let of_word = events.iter().filter(|event| event["outcome"] == word);
    of_word.map(|event| event["host"].as_str().unwrap().to_owned()).collect()
}

/// Proves: P12, P10
#[test]
fn a_backfill_is_dry_until_it_is_told_to_write_and_writes_once() {
    let lab = LabProcess::start(1, None);
    let dry = lab.run(&["platform-class", "backfill", "--json"]);
    assert_eq!(dry.code(), Some(0), "{dry}");
    assert_eq!(lab.writes(), Vec::<String>::new());
    let events = dry.events();
    let missing = outcomes(&events, "missing");
    assert!(missing.contains(&"gpu-b07-29".to_owned()) && !missing.contains(&"gpu-b06-41".to_owned()), "{missing:?}");
    let summary = events.last().unwrap();
    assert_eq!((&summary["apply"], &summary["failed"]), (&Value::Bool(false), &Value::from(0)));
    assert_eq!(summary["missing"], missing.len());
    assert_eq!(summary["gpu_type"]["devices"], summary["gpu_type"]["with"]);

    let applied = lab.run(&["platform-class", "backfill", "--apply", "--json"]);
    assert_eq!(applied.code(), Some(0), "{applied}");
    assert_eq!(outcomes(&applied.events(), "written"), missing, "what was said before, and in the same order");
    let writes = lab.writes();
    assert_eq!(writes.len(), missing.len(), "{writes:#?}");
    assert!(writes.iter().all(|write| write.starts_with("netbox PATCH /api/dcim/devices/")), "{writes:#?}");

    lab.reset_ledger();
    let again = lab.run(&["platform-class", "backfill", "--apply", "--json"]);
    assert_eq!(again.events().last().unwrap()["written"], 0);
    assert_eq!(lab.writes(), Vec::<String>::new());
}

/// Proves: P12
#[test]
fn a_backfill_takes_one_site_or_named_hosts_and_refuses_a_name_that_is_none() {
    let lab = LabProcess::start(1, None);
    let site = lab.run(&["--site", "ams2", "platform-class", "backfill", "--json"]).events();
    assert!(site.iter().all(|event| event["summary"] == true || event["site"] == "ams2"), "{site:#?}");
    let named = lab.run(&["platform-class", "backfill", "gpu-b07-29", "gpu-b07-29", "--json"]).events();
    assert_eq!((named.len(), &named[0]["effective"]), (2, &Value::from("B200_SUPERMICROSYS222GENB_IB_01")));
    let text = lab.run(&["platform-class", "backfill", "gpu-b07-29"]);
    assert!(text.stdout.contains("is missing and would be written"), "{text}");
    assert!(text.stdout.contains("gpu_type: known for 1 of 1 GPU devices"), "{text}");

    let refused = lab.run(&["platform-class", "backfill", "gpu-b07-29", "gpu-b99-99", "--apply"]);
    assert_eq!(refused.code(), Some(2), "{refused}");
    assert!(refused.stderr.contains("NetBox has no racked device 'gpu-b99-99'"), "{refused}");
    assert_eq!(lab.writes(), Vec::<String>::new());
}

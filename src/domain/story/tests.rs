//! Stories told from journals that are written by hand.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::*;
use crate::domain::event::RunRecord;

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(1_790_000_000 + second).unwrap()
}

/// Records from their wire form: second and body.
fn records(bodies: &[(i64, Value)]) -> Vec<RunRecord> {
    let first = json!({"event": "submitted", "workflow": "enroll", "request": {
        "host": "gpu|7", "netbox_id": 7, "site": "osl1", "device_class": "COMPUTE_GPU",
        "params": {}, "submitted_by": "jo", "submitted_at": at(0), "routing": {"by_class": {"COMPUTE_GPU": "main"}},
        "options": {"configure_dhcp": true, "configure_bmc": true, "ironic_enrol": true,
            "platform_class_activity_ready": false, "switch_to_ipmi_after_inspection": false, "restrict_boot": true,
            "ironic_tag": "ironic", "bmc_tag": "ipmi_exporter", "budgets": budgets()}}});
    let all = std::iter::once(&(0, first)).chain(bodies).cloned().collect::<Vec<_>>();
    let record = |(n, (second, body)): (usize, (i64, Value))| {
        let mut body = body;
        body["run"] = "0193b7c6-0000-7000-8000-000000000001".into();
        body["n"] = n.into();
        body["at"] = json!(at(second));
        serde_json::from_value(body.clone()).unwrap_or_else(|e| panic!("{body}: {e}"))
    };
    all.into_iter().enumerate().map(record).collect()
}

fn budgets() -> Value {
    let mut budgets = json!({"max_attempts": 3});
    for key in [
        "node_lock",
        "stable",
        "inspection",
        "power_on",
        "link_guard",
        "link_poll",
        "cleaning",
        "poll_first",
        "poll_max",
        "proof",
    ] {
        budgets[key] = json!({"secs": 90, "nanos": 500_000_000});
    }
    budgets
}

fn timer(seq: u32, until: i64, text: &str) -> Value {
    json!({"event": "timer_set", "seq": seq, "until": at(until),
           "reason": {"phase": "cleaning", "kind": "cleaning", "text": text}})
}

fn scheduled(seq: u32, name: &str) -> Value {
    json!({"event": "activity_scheduled", "seq": seq, "name": name, "phase": "cleaning", "input": {}})
}

/// A run that is killed twelve times while it cleans, at every odd moment.
fn killed_twelve_times() -> Vec<RunRecord> {
    let mut bodies = vec![
        (1, json!({"observed": "phase_started", "phase": "cleaning", "attempt": 1})),
        (1, timer(1, 10, "the node is clean wait")),
    ];
    for n in 0..6i64 {
        let second = 10 + n * 20;
        let seq = 2 + n as u32 * 2;
        bodies.extend([
            (second - 3, json!({"observed": "resumed", "by": "muster 0.1.0"})),
            (second, json!({"event": "timer_fired", "seq": seq - 1})),
            (second, scheduled(seq, "ironic.look")),
            (
                second,
                json!({"observed": "attempt", "seq": seq, "name": "ironic.look", "attempt": 1, "max_attempts": 3}),
            ),
            (second + 5, json!({"observed": "resumed", "by": "muster 0.1.0"})),
            (
                second + 5,
                json!({"observed": "attempt", "seq": seq, "name": "ironic.look", "attempt": 1, "max_attempts": 3}),
            ),
            (
                second + 6,
                json!({"observed": "requests", "seq": seq, "attempt": 1, "asked": [
                {"system": "ironic", "request": "GET /v1/nodes/x", "answer": "200", "times": 1}]}),
            ),
            (second + 6, json!({"event": "activity_done", "seq": seq, "output": {}})),
            (second + 6, timer(seq + 1, second + 20, "the node is clean wait")),
        ]);
    }
    bodies.extend([
        (130, json!({"event": "timer_fired", "seq": 13})),
        (131, json!({"observed": "phase_done", "phase": "cleaning", "note": "available"})),
        (132, json!({"event": "finished", "outcome": {"status": "succeeded"}})),
    ]);
    records(&bodies)
}

/// Proves: G15
#[test]
fn a_run_killed_twelve_times_reads_like_one_story() {
    let story = Story::of(&killed_twelve_times()).unwrap();
    assert_eq!(story.interruptions.len(), 12);
    let during: Vec<&str> = story.interruptions.iter().map(|i| i.during.as_str()).collect();
    assert_eq!(&during[..2], ["waiting: the node is clean wait", "looking at the node"]);
    let waits: Vec<&Moment> = story.timeline.iter().filter(|m| m.kind == MomentKind::Waited).collect();
    assert_eq!(waits.len(), 1, "all timers and interruptions are one wait: {waits:#?}");
    assert_eq!((waits[0].took_s, waits[0].looks), (Some(130), Some(7)));
    let lines = story.lines().join("\n");
    for part in ["waited 2:10, 7 looks: the node is clean wait", "interrupted while looking at the node", "after 0:05"]
    {
        assert!(lines.contains(part), "{part}: {lines}");
    }
    assert_eq!(story.steps.len(), 6);
    assert_eq!((story.steps[0].starts, story.steps[0].requests.len()), (2, 1));
    let page = story.markdown();
    assert!(page.contains("| interrupted | 12 times, "), "{page}");
    assert!(page.contains("| cleaning | ironic | `GET /v1/nodes/x` | 200 | 6 |"), "{page}");
    assert!(page.starts_with("# Enrollment of gpu\\|7 succeeded\n"), "{page}");
}

/// Proves: G15
#[test]
fn every_line_of_a_table_has_the_cells_of_its_head_whatever_the_texts_are() {
    let hostile = "a | b\n| c <script>x</script> ![p](http://x) @all #1 `|` \u{1b}[2J \u{202e}\\";
    let story = Story::of(&records(&[
        (1, json!({"observed": "phase_started", "phase": "inspection", "attempt": 1})),
        (2, json!({"observed": "note", "system": hostile, "text": hostile})),
        (3, json!({"observed": "wrote", "system": hostile, "target": hostile, "what": hostile, "before": hostile, "after": hostile})),
        (4, json!({"observed": "links", "phase": "inspection", "budget_left_s": 200, "readings": [
            {"interface": hostile, "mac": null, "state": "DOWN", "slot": hostile, "cable": {"switch": hostile, "port": hostile, "label": hostile}}]})),
        (5, json!({"observed": "node", "state": hostile, "power": "on", "last_error": hostile})),
        (6, json!({"observed": "cleaning", "attempt": 1, "max_attempts": 3, "next_look_at": at(9), "deadline": at(99)})),
        (7, json!({"observed": "verified", "fresh": true, "verification": {"diagnosis": hostile, "checks": [
            {"kind": "lldp", "subject": hostile, "expected": hostile, "observed": hostile, "verdict": "fail", "rule": hostile, "hint": hostile, "owner": "ONSITE", "action": hostile}]}})),
        (8, scheduled(1, hostile)),
        (8, json!({"observed": "requests", "seq": 1, "attempt": 1, "asked": [{"system": hostile, "request": hostile, "answer": hostile, "times": 1}]})),
        (9, json!({"event": "finished", "outcome": {"status": "failed", "failure": {"code": "CABLES_WRONG", "phase": "inspection",
            "owner": "ONSITE", "retryable": false, "message": hostile, "action": hostile, "evidence": [{"source": hostile, "read": hostile}]}}})),
    ]))
    .unwrap();
    let page = story.markdown();
    let mut cells = None;
    for line in page.lines() {
        assert!(line.chars().all(|c| !c.is_control() && c != '\u{202e}'), "{line:?}");
        assert!(!line.contains("<script") && !line.contains("!["), "{line}");
        if !line.starts_with('|') {
            cells = None;
            continue;
        }
        let found = unescaped_pipes(line);
        assert_eq!(*cells.get_or_insert(found), found, "{line}");
    }
    assert!(page.contains("CABLES_WRONG") && page.contains("**ONSITE**"), "{page}");
    let told = story.json().to_string();
    assert!(!told.contains("\\u001b") && !told.contains('\u{202e}'), "{told}");
}

/// As GFM counts cells: a backslash takes the pipe behind it away, but not one that is escaped itself.
fn unescaped_pipes(line: &str) -> usize {
    let (mut pipes, mut escaped) = (0, false);
    for c in line.chars() {
        pipes += usize::from(c == '|' && !escaped);
        escaped = c == '\\' && !escaped;
    }
    pipes
}

/// Proves: G15
#[test]
fn the_json_form_is_versioned_and_has_budgets_in_seconds() {
    let told = Story::of(&killed_twelve_times()).unwrap().json();
    assert_eq!(told["export"], 1);
    assert_eq!((&told["status"], &told["host"]), (&json!("succeeded"), &json!("gpu|7")));
    assert_eq!((&told["budgets"]["cleaning_s"], &told["budgets"]["max_attempts"]), (&json!(90.5), &json!(3)));
    assert_eq!(told["gates"]["configure_dhcp"], true);
    assert_eq!(told["options"]["ironic_tag"], "ironic");
    assert_eq!(told["routing"]["ironic"], "main");
    for key in
        ["params", "phases", "timeline", "interruptions", "steps", "changes", "guards", "states", "retried_by", "left"]
    {
        assert!(!told[key].is_null(), "{key}");
    }
    assert!(told["failure"].is_null() && told["inspection"].is_null());
}

#[test]
fn a_run_that_has_not_ended_is_told_as_far_as_it_got() {
    let story = Story::of(&killed_twelve_times()[..20]).unwrap();
    assert_eq!((story.status, story.finished_at), (RunState::Running, None));
    assert!(story.markdown().contains("not yet; this is as of"));
    assert!(story.lines().iter().any(|line| line.contains("waits")), "{:#?}", story.lines());
    assert_eq!(Story::of(&[]), None);
}

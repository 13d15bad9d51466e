//! The lab's iDRAC beside the captured ones: same members, same types.

use std::path::{Path, PathBuf};

use muster::clients::http::Method;
use muster::lab::machine::Quirk;
use serde_json::{Value, json};

use super::{JOBS, Rig, attributes};

/// Members of other firmware than the captured one: newer, but for Telnet.
const ELSEWHERE: &[&str] = &[
    "@Redfish.Settings",
    "@odata.etag",
    "LocationIndicatorActive",
    "RegistryVersion",
    "RelatedItem",
    "RoleId",
    "Telnet.1.Enable",
];

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/redfish")
}

fn fixture(path: &str) -> Option<Value> {
    serde_json::from_str(&std::fs::read_to_string(fixtures().join(path)).ok()?).ok()
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// Members of the lab that the capture lacks, and values of another type.
fn differences(at: &str, lab: &Value, captured: &Value, found: &mut Vec<String>) {
    match (lab, captured) {
        (Value::Null, _) | (_, Value::Null) => {}
        // Nothing was staged when it was captured.
        (Value::Object(_), Value::Object(captured)) if captured.is_empty() => {}
        (Value::Object(lab), Value::Object(captured)) => {
            for (key, value) in lab.iter().filter(|(key, _)| !ELSEWHERE.contains(&key.as_str())) {
                match captured.get(key) {
                    Some(theirs) => differences(&format!("{at}/{key}"), value, theirs, found),
                    None => found.push(format!("{at}/{key}: not in the capture")),
                }
            }
        }
        (Value::Array(lab), Value::Array(captured)) => {
            if let (Some(first), Some(theirs)) = (lab.first(), captured.first()) {
                differences(&format!("{at}/0"), first, theirs, found);
            }
        }
        _ if kind(lab) == kind(captured) => {}
        _ => found.push(format!("{at}: {} instead of {}", kind(lab), kind(captured))),
    }
}

/// The captured resource that a path of the lab is to look like: that of a NIC where another card was captured.
fn captured(path: &str) -> Option<Value> {
    let (mut it, slots) = (path.to_owned(), ["NIC.Slot.1", "NIC.Slot.2", "NIC.Slot.3"]);
    for slot in slots {
        it = it.replace(&format!("{slot}-1"), "NIC.Slot.5-1").replace(slot, "NIC.Slot.5");
    }
    ["dell-idrac", "dell-idrac-multi-nic"].iter().find_map(|tree| fixture(&format!("{tree}{it}/index.json")))
}

fn links(body: &Value, queue: &mut Vec<String>) {
    match body {
        Value::Object(members) => {
            for (key, value) in members {
                match value {
                    Value::String(path) if key == "@odata.id" => queue.push(path.clone()),
                    other => links(other, queue),
                }
            }
        }
        Value::Array(list) => list.iter().for_each(|value| links(value, queue)),
        _ => {}
    }
}

#[tokio::test]
async fn each_resource_has_only_members_and_types_of_the_captured_one_and_no_link_leads_nowhere() {
    let rig = Rig::start().await;
    rig.stage(&attributes(&[("LogicalProc", "Enabled")])).await;
    let mut queue = vec!["/redfish/v1".to_owned()];
    let (mut seen, mut compared, mut found): (Vec<String>, _, _) = (vec![], 0, vec![]);
    while let Some(path) = queue.pop() {
        if seen.contains(&path) {
            continue;
        }
        seen.push(path.clone());
        let (status, body, _) = rig.ask(Method::GET, &path, None).await;
        assert_eq!(status, 200, "{path}");
        links(&body, &mut queue);
        if let Some(captured) = captured(&path) {
            compared += 1;
            differences(&path, &body, &captured, &mut found);
        }
    }
    assert_eq!(found, Vec::<String>::new());
    assert!(compared > 40, "{compared} of {}", seen.len());
}

/// A job in each state, beside the recorded ones.
#[tokio::test]
async fn jobs_are_told_in_the_recorded_form() {
    let rig = Rig::start().await;
    // Slow enough that each state is seen.
    rig.lab.world().clock().set_speed(10.0);
    let staged = rig.stage(&attributes(&[("LogicalProc", "Enabled")])).await;
    let path = format!("{JOBS}/{}", staged.jobs[0]);
    for name in ["01-new", "02-scheduled", "03-running", "04-completed"] {
        let recorded = fixture(&format!("states/dell-jobs/{name}.json")).unwrap();
        let mut body = Value::Null;
        for _ in 0..200 {
            body = rig.ask(Method::GET, &path, None).await.1;
            if body["JobState"] == recorded["JobState"] {
                break;
            }
            if body["JobState"] == "Scheduled" && rig.machine().boots == 0 {
                rig.restart().await;
            }
            rig.pass(1).await;
        }
        rig.lab.world().clock().set_speed(60.0);
        let mut found = vec![];
        differences(name, &body, &recorded, &mut found);
        assert_eq!(found, Vec::<String>::new());
        for member in ["JobState", "JobType", "Message", "MessageId", "Name", "PercentComplete"] {
            assert_eq!(body[member], recorded[member], "{name} {member}");
        }
    }
}

#[tokio::test]
async fn refusals_have_the_form_of_the_reported_ones() {
    let rig = Rig::with(&[Quirk::ForcedPasswordChange]).await;
    let (mut found, mut ids) = (vec![], vec![]);
    let mut compare = |name: &str, status: u16, body: &Value| {
        let envelope = fixture(&format!("errors/{name}.json")).unwrap();
        assert_eq!(envelope["status"], status, "{name}");
        differences(name, body, &envelope["body"], &mut found);
        let id = |body: &Value| {
            let id = body["error"]["@Message.ExtendedInfo"][0]["MessageId"].as_str().unwrap().to_owned();
            id.rsplit('.').next().unwrap().to_owned()
        };
        assert_eq!(id(body), id(&envelope["body"]), "{name}");
        ids.push(id(body));
    };
    let (status, body, _) = rig.ask(Method::GET, "/redfish/v1/Systems", None).await;
    compare("dell-unauthorized-401", status, &body);
    let locked = Rig::with(&[Quirk::ForcedPasswordChange]).await;
    let auth = muster::clients::http::Auth::Basic { username: "root".into(), password: "calvin".to_owned().into() };
    let request = muster::clients::http::Request::get("/redfish/v1/Systems").auth(auth);
    let (status, body, _) = locked.send(request).await;
    compare("dell-default-password-must-change", status, &body);
    let rig = Rig::start().await;
    rig.stage(&attributes(&[("LogicalProc", "Enabled")])).await;
    let path = "/redfish/v1/Systems/System.Embedded.1/Bios/Settings";
    let again = json!({"Attributes": {"LogicalProc": "Disabled"}});
    let (status, body, _) = rig.ask(Method::PATCH, path, Some(again)).await;
    compare("dell-pending-already-committed-400", status, &body);
    assert_eq!((found, ids), (vec![], ["AccessDenied", "SWC1908", "SYS011"].map(String::from).to_vec()));
}

//! The lab's control interface: the ledger, faults now, the clock's speed, the world as it is.

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use axum::routing::{get, post};
use axum::{Json, Router};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use super::faults::Fault;
use super::http::json_answer;
use super::world::World;

/// Serves the control interface until the handle is aborted. Its own requests are not in the ledger.
pub fn spawn(world: &World, listener: TcpListener) -> JoinHandle<()> {
    let router = Router::new()
        .route("/ledger", get(ledger))
        .route("/ledger/reset", post(reset))
        .route("/faults", post(faults).delete(clear))
        .route("/clock", get(clock).post(set_clock))
        .route("/world", get(whole))
        .with_state(world.clone());
    tokio::spawn(async move {
        // Ends only by abort.
        axum::serve(listener, router).await.ok();
    })
}

async fn ledger(State(world): State<World>) -> Json<Value> {
    let entries = world.ledger().entries();
    let writes = entries.iter().filter(|e| e.write).count();
    Json(json!({"count": entries.len(), "writes": writes, "entries": entries}))
}

async fn reset(State(world): State<World>) -> StatusCode {
    world.ledger().reset();
    StatusCode::NO_CONTENT
}

/// One fault or a list of them, in the language of the scenarios.
async fn faults(State(world): State<World>, Json(body): Json<Value>) -> Response {
    let bodies = match body {
        Value::Array(items) => items,
        one => vec![one],
    };
    let mut faults = vec![];
    for body in bodies {
        match serde_json::from_value::<Fault>(body) {
            Ok(fault) => faults.push(fault),
            Err(e) => return json_answer(StatusCode::BAD_REQUEST, &json!({"error": e.to_string()})),
        }
    }
    if let Some(device) = faults.iter().filter_map(Fault::device).find(|d| !world.lock().machines.contains_key(*d)) {
        let text = format!("the scenario has no host '{device}'");
        return json_answer(StatusCode::BAD_REQUEST, &json!({"error": text}));
    }
    for fault in faults {
        world.add_fault(fault);
    }
    json_answer(StatusCode::OK, &json!({"ok": true}))
}

/// Ends every HTTP rule. Faults of the world itself stay.
async fn clear(State(world): State<World>) -> StatusCode {
    world.rules().clear();
    StatusCode::NO_CONTENT
}

async fn clock(State(world): State<World>) -> Json<Value> {
    Json(json!({"speed": world.clock().speed(), "lab_s": world.now()}))
}

async fn set_clock(State(world): State<World>, Json(body): Json<Value>) -> Response {
    match body.get("speed").and_then(Value::as_f64) {
        Some(speed) if speed > 0.0 => {
            world.clock().set_speed(speed);
            json_answer(StatusCode::OK, &json!({"speed": world.clock().speed()}))
        }
        _ => json_answer(StatusCode::BAD_REQUEST, &json!({"error": "'speed' is to be a number above 0"})),
    }
}

/// Machines, nodes and records, for tests: what really happened, whoever was told what.
async fn whole(State(world): State<World>) -> Json<Value> {
    let state = world.lock();
    let now = state.now;
    let machine = |m: &super::machine::Machine| {
        let mut shown = serde_json::to_value(m).unwrap_or_default();
        let links: serde_json::Map<String, Value> =
            m.nics.iter().map(|nic| (nic.name.clone(), json!(m.link(nic, now)))).collect();
        shown["links"] = Value::Object(links);
        shown
    };
    let machines: serde_json::Map<String, Value> =
        state.machines.values().map(|m| (m.name.clone(), machine(m))).collect();
    let node = |n: &super::ironic::Node| {
        json!({
            "uuid": n.uuid, "name": n.name(), "state": n.state.as_str(), "maintenance": n.in_maintenance(),
            "instance_uuid": n.text("instance_uuid"), "ports": state.ironic.ports.values().filter(|p| p.node == n.uuid).count(),
        })
    };
    let device = |d: &super::records::Device| {
        let tags: Vec<&str> =
            d.tags.iter().filter_map(|t| state.records.tags.get(t)).map(|t| t.slug.as_str()).collect();
        json!({"id": d.id, "name": d.name, "status": d.status, "tags": tags, "custom_fields": d.custom_fields})
    };
    Json(json!({
        "lab_s": now,
        "machines": machines,
        "nodes": state.ironic.nodes.values().map(node).collect::<Vec<_>>(),
        "devices": state.records.devices.values().map(device).collect::<Vec<_>>(),
    }))
}

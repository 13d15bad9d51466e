//! A NetBox of one device that a test can make old, forgetful or busy, and an activity's context on it.

use std::sync::{Arc, Mutex};

use jiff::Timestamp;
use muster::activities::env::{ActivityCx, Env};
use muster::clients::Clients;
use muster::clients::netbox::NetBox;
use muster::clients::vault::Vault;
use muster::domain::device::Device;
use muster::domain::event::Observation;
use muster::domain::ids::RunId;
use muster::store::Store;
use muster::workflows::defs::Target;
use serde_json::{Map, Value, json};
use tokio_util::sync::CancellationToken;
use wiremock::matchers::any;
use wiremock::{Mock, MockServer, Request, Respond, ResponseTemplate};

/// Somebody else's change.
pub type Change = Box<dyn FnOnce(&mut State) + Send>;

/// What the server holds and how it behaves.
pub struct State {
    pub device: Value,
    pub role: Value,
    pub device_type: Value,
    pub site: Value,
    /// Rows of lists, by path.
    pub lists: Map<String, Value>,
    /// Slugs of the tags that exist.
    pub tags: Vec<&'static str>,
    /// Moves with every write; the ETag is made from it.
    pub version: u32,
    pub offers_etags: bool,
    pub has_add_tags: bool,
    /// Accepts writes and forgets them.
    pub forgets: bool,
    /// Answers of the next requests, whatever they ask.
    pub answers: Vec<ResponseTemplate>,
    /// Done once, just before the next PATCH: somebody else's change.
    pub before_patch: Option<Change>,
    pub reads: Vec<String>,
    pub writes: Vec<Value>,
}

impl State {
    /// Somebody changes the device.
    pub fn change(&mut self, change: impl FnOnce(&mut Value)) {
        change(&mut self.device);
        self.version += 1;
    }

    pub fn slugs(&self) -> Vec<String> {
        let tags = self.device["tags"].as_array().unwrap();
        tags.iter().map(|tag| tag["slug"].as_str().unwrap().to_owned()).collect()
    }

    pub fn tag(&mut self, slug: &str) {
        self.change(|device| device["tags"].as_array_mut().unwrap().push(tag(slug)));
    }
}

pub fn tag(slug: &str) -> Value {
    json!({"id": slug.len(), "name": slug, "slug": slug})
}

#[derive(Clone)]
pub struct Server(pub Arc<Mutex<State>>);

impl Respond for Server {
    fn respond(&self, request: &Request) -> ResponseTemplate {
        let mut state = self.0.lock().unwrap();
        let path = request.url.path().to_owned();
        let asked = format!("{path}?{}", request.url.query().unwrap_or_default());
        if request.method.as_str() == "PATCH" {
            if let Some(change) = state.before_patch.take() {
                change(&mut state);
            }
            return state.patch(request);
        }
        state.reads.push(asked);
        if !state.answers.is_empty() {
            return state.answers.remove(0);
        }
        let id = state.device["id"].clone();
        let found = match path.as_str() {
            _ if path == format!("/api/dcim/devices/{id}/") => return state.shown(),
            "/api/dcim/devices/" => page(&json!([state.device])),
            "/api/dcim/device-roles/1/" => state.role.clone(),
            "/api/dcim/device-types/1/" => state.device_type.clone(),
            "/api/dcim/sites/1/" => state.site.clone(),
            _ => match state.lists.get(&path) {
                Some(rows @ Value::Array(_)) => page(rows),
                Some(object) => object.clone(),
                None => {
                    let body = json!({"detail": "No Device matches the given query."});
                    return ResponseTemplate::new(404).set_body_json(body);
                }
            },
        };
        ResponseTemplate::new(200).set_body_json(found)
    }
}

fn page(rows: &Value) -> Value {
    json!({"count": rows.as_array().map(Vec::len), "next": null, "previous": null, "results": rows})
}

impl State {
    fn etag(&self) -> String {
        format!("W/\"v{}\"", self.version)
    }

    fn shown(&self) -> ResponseTemplate {
        let answer = ResponseTemplate::new(200).set_body_json(&self.device);
        if self.offers_etags { answer.insert_header("etag", self.etag()) } else { answer }
    }

    fn patch(&mut self, request: &Request) -> ResponseTemplate {
        let body: Value = request.body_json().unwrap();
        self.writes.push(body.clone());
        if !self.answers.is_empty() {
            return self.answers.remove(0);
        }
        let if_match = request.headers.get("if-match").map(|value| value.to_str().unwrap().to_owned());
        if self.offers_etags && if_match.is_some_and(|etag| etag != self.etag()) {
            return ResponseTemplate::new(412).set_body_json(json!({"detail": "Precondition failed."}));
        }
        self.version += 1;
        if self.forgets {
            return self.shown();
        }
        let refuse = |body: Value| ResponseTemplate::new(400).set_body_json(body);
        if let Some(status) = body.get("status") {
            self.device["status"] = json!({"value": status, "label": status});
        }
        for (name, value) in body["custom_fields"].as_object().into_iter().flatten() {
            let fields = self.device["custom_fields"].as_object_mut().unwrap();
            if !fields.contains_key(name) {
                let text = format!("Custom field '{name}' does not exist for this object type.");
                return refuse(json!({"custom_fields": {name: text}}));
            }
            fields.insert(name.clone(), value.clone());
        }
        for key in ["tags", "add_tags"] {
            let Some(given) = body.get(key).and_then(Value::as_array) else { continue };
            if key == "add_tags" && !self.has_add_tags {
                continue;
            }
            let slugs: Vec<&str> = given.iter().map(|tag| tag["slug"].as_str().unwrap()).collect();
            if let Some(unknown) = slugs.iter().find(|slug| !self.tags.contains(slug)) {
                let text = format!("Related object not found using the provided attributes: {{'slug': '{unknown}'}}");
                // As NetBox 4.7.3 does: the older field is checked, the newer one throws.
                let thrown = json!({"error": format!("['{text}']"), "exception": "ValidationError"});
                return match key {
                    "tags" => refuse(json!({ key: [text] })),
                    _ => ResponseTemplate::new(500).set_body_json(thrown),
                };
            }
            let list = self.device["tags"].as_array_mut().unwrap();
            if key == "tags" {
                list.clear();
            }
            list.extend(slugs.into_iter().map(tag));
        }
        self.shown()
    }
}

/// A server, a store that knows the device, and what activities said.
pub struct Rig {
    pub server: Server,
    _listening: MockServer,
    pub cx: ActivityCx,
    pub said: Arc<Mutex<Vec<Observation>>>,
    _folder: tempfile::TempDir,
}

impl Rig {
    pub async fn start() -> Rig {
        let device = json!({
            "id": 41, "name": "gpu-b07-41", "position": 41.0, "serial": "S1", "asset_tag": null, "tenant": null,
            "device_type": {"id": 1, "manufacturer": {"id": 1, "name": "Lenovo"}, "model": "HG635N V2"},
            "role": {"id": 1, "name": "GPU compute", "slug": "gpu"}, "location": null,
            "site": {"id": 1, "name": "Oslo 1", "slug": "osl1"}, "rack": {"id": 1, "name": "B07"},
            "face": {"value": "front", "label": "Front"}, "status": {"value": "staged", "label": "Staged"},
            "tags": [tag("customer-a"), tag("do-not-power-off")], "oob_ip": null, "last_updated": "2026-11-29T08:00:00Z",
            "custom_fields": {"platform_class": null, "note": "kept"}, "config_context": {"ztp": {"infiniband": {}}},
        });
        let state = State {
            device,
            role: json!({"id": 1, "name": "GPU compute", "slug": "gpu", "custom_fields": {"device_class": "COMPUTE_GPU"}}),
            device_type: json!({"id": 1, "model": "HG635N V2", "manufacturer": {"id": 1, "name": "Lenovo"},
                                "u_height": 2.0, "custom_fields": {"gpu_type": "GB300"}}),
            site: json!({"id": 1, "name": "Oslo 1", "slug": "osl1", "custom_fields": {"ntp_server_1": "192.0.2.1"}}),
            lists: Map::new(),
            tags: vec!["customer-a", "do-not-power-off", "ironic", "ipmi_exporter", "rma"],
            version: 1,
            offers_etags: true,
            has_add_tags: true,
            forgets: false,
            answers: vec![],
            before_patch: None,
            reads: vec![],
            writes: vec![],
        };
        let server = Server(Arc::new(Mutex::new(state)));
        let listening = MockServer::start().await;
        Mock::given(any()).respond_with(server.clone()).mount(&listening).await;
        let folder = tempfile::tempdir().unwrap();
        let cx = context(&listening.uri(), folder.path()).await;
        let said = Arc::new(Mutex::new(vec![]));
        let sink = said.clone();
        let cx = ActivityCx { sink: Arc::new(move |seen| sink.lock().unwrap().push(seen)), ..cx };
        Rig { server, _listening: listening, cx, said, _folder: folder }
    }

    pub fn state<T>(&self, look: impl FnOnce(&mut State) -> T) -> T {
        look(&mut self.server.0.lock().unwrap())
    }

    pub fn writes(&self) -> Vec<Value> {
        self.state(|state| state.writes.clone())
    }

    /// The changes that were told: `system target what before after`.
    pub fn wrote(&self) -> Vec<String> {
        let said = self.said.lock().unwrap();
        said.iter()
            .filter_map(|seen| match seen {
                Observation::Wrote { system, target, what, before, after } => {
                    Some(format!("{system} {target} {what}: '{before}' -> '{after}'"))
                }
                _ => None,
            })
            .collect()
    }
}

pub fn target() -> Target {
    Target { host: "gpu-b07-41".into(), netbox_id: 41, site: "osl1".into(), ironic: "main".into() }
}

async fn context(url: &str, folder: &std::path::Path) -> ActivityCx {
    let text = format!(
        "[netbox]\nurl = \"{url}\"\ntoken = \"env:T\"\ntimeout_s = 2\n\
         [ironic.main]\nurl = \"http://127.0.0.1:9\"\ndevice_classes = [\"COMPUTE_GPU\"]\nauth = {{ kind = \"none\" }}\n\
         [sites.osl1.gates]\nconfigure_dhcp = false\n"
    );
    let settings = muster::config::parse(&text, "test.toml").unwrap_or_else(|e| panic!("{e}"));
    let store = Store::open(folder).unwrap();
    store.put_devices(vec![known_device()]).await.unwrap();
    let clients = Clients {
        netbox: NetBox::new(&settings.netbox, "nbt_key.secret".to_owned().into()).unwrap(),
        ironic: Default::default(),
    };
    let env = Env {
        vault: Vault::new(settings.vault.clone()),
        settings: Arc::new(settings),
        store,
        refresh_nodes: tokio::sync::Notify::new(),
        clients,
    };
    ActivityCx {
        env: Arc::new(env),
        run: RunId(uuid::Uuid::now_v7()),
        seq: 1,
        attempt: 1,
        stop: CancellationToken::new(),
        sink: Arc::new(|_| {}),
    }
}

fn known_device() -> Device {
    Device {
        netbox_id: 41,
        name: "gpu-b07-41".into(),
        site: "osl1".into(),
        location: None,
        rack: Some("B07".into()),
        position: Some(41.0),
        face: None,
        u_height: None,
        status: "staged".into(),
        role: "GPU compute".into(),
        device_class: Some("COMPUTE_GPU".into()),
        manufacturer: "Lenovo".into(),
        model: "HG635N V2".into(),
        serial: None,
        asset_tag: None,
        tags: vec![],
        tenant: None,
        oob_ip: None,
        custom_fields: Default::default(),
        platform_class: None,
        last_updated: None,
        read_at: Timestamp::UNIX_EPOCH,
    }
}

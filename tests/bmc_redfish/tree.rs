//! Serves a captured Redfish tree, read-only, with single answers laid over it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use muster::clients::redfish::{Credential, Redfish, RedfishOptions};
use muster::config::settings::Trust;
use serde_json::Value;
use url::Url;
use wiremock::{MockServer, Request, Respond, ResponseTemplate};

/// The folder of the captured trees.
pub fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/redfish")
}

/// The paths of all resources of a captured tree.
pub fn resources(tree: &str) -> Vec<String> {
    fn below(folder: &Path, prefix: &str, found: &mut Vec<String>) {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            if path.is_dir() {
                below(&path, &format!("{prefix}/{name}"), found);
            } else if name == "index.json" {
                found.push(prefix.to_owned());
            }
        }
    }
    let mut found = vec![];
    for top in ["redfish", "registries"] {
        let folder = fixtures().join(tree).join(top);
        if folder.is_dir() {
            below(&folder, &format!("/{top}"), &mut found);
        }
    }
    found
}

/// A file of the fixtures as JSON.
pub fn fixture(path: &str) -> Value {
    let path = fixtures().join(path);
    let text = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    serde_json::from_str(&text).unwrap()
}

/// An answer: status, headers, body.
#[derive(Debug, Clone)]
pub struct Reply {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Reply {
    pub fn json(status: u16, body: Value) -> Reply {
        Reply { status, headers: vec![], body: body.to_string().into_bytes() }
    }

    pub fn header(mut self, name: &str, value: &str) -> Reply {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// An envelope of `errors/`.
    pub fn envelope(name: &str) -> Reply {
        let value = fixture(&format!("errors/{name}.json"));
        let body = match &value["body"] {
            Value::String(text) => text.clone().into_bytes(),
            body => body.to_string().into_bytes(),
        };
        let headers = value["headers"].as_object().into_iter().flatten();
        let headers = headers.map(|(k, v)| (k.clone(), v.as_str().unwrap().to_owned())).collect();
        Reply { status: value["status"].as_u64().unwrap() as u16, headers, body }
    }
}

/// A request that was made.
#[derive(Debug, Clone)]
pub struct Seen {
    pub method: String,
    pub path: String,
    pub headers: BTreeMap<String, String>,
    pub body: Value,
}

type Answer = Arc<dyn Fn(&Seen) -> Option<Reply> + Send + Sync>;

/// A served tree.
pub struct Tree {
    pub server: MockServer,
    pub seen: Arc<Mutex<Vec<Seen>>>,
}

struct Served {
    folder: Option<PathBuf>,
    over: Answer,
    seen: Arc<Mutex<Vec<Seen>>>,
}

impl Respond for Served {
    fn respond(&self, request: &Request) -> ResponseTemplate {
        let path = match request.url.query() {
            Some(query) => format!("{}?{query}", request.url.path()),
            None => request.url.path().to_owned(),
        };
        let headers = request.headers.iter().map(|(k, v)| (k.to_string(), v.to_str().unwrap_or("").to_owned()));
        let seen = Seen {
            method: request.method.to_string(),
            path,
            headers: headers.collect(),
            body: serde_json::from_slice(&request.body).unwrap_or(Value::Null),
        };
        self.seen.lock().unwrap().push(seen.clone());
        let reply = (self.over)(&seen).unwrap_or_else(|| self.captured(&seen));
        let mut template = ResponseTemplate::new(reply.status);
        let kind = reply.headers.iter().find(|(name, _)| name.eq_ignore_ascii_case("content-type"));
        let kind = kind.map_or("application/json", |(_, value)| value).to_owned();
        template = template.set_body_raw(reply.body, &kind);
        for (name, value) in reply.headers.iter().filter(|(name, _)| !name.eq_ignore_ascii_case("content-type")) {
            template = template.append_header(name.as_str(), value.as_str());
        }
        template
    }
}

impl Served {
    fn captured(&self, seen: &Seen) -> Reply {
        let path = seen.path.split('?').next().unwrap().trim_matches('/');
        let read = |name: &str| {
            let file = self.folder.as_ref().filter(|_| seen.method == "GET")?.join(path).join(name);
            std::fs::read(file).ok()
        };
        match (read("index.json"), read("custom.json")) {
            (Some(body), _) => Reply { status: 200, headers: vec![], body },
            (None, Some(custom)) => {
                let custom: Value = serde_json::from_slice(&custom).unwrap();
                let body = custom["body"].as_str().unwrap().as_bytes().to_vec();
                Reply { status: custom["status"].as_u64().unwrap() as u16, headers: vec![], body }
            }
            (None, None) => Reply::json(404, serde_json::json!({"error": {"message": "not in the capture"}})),
        }
    }
}

impl Tree {
    /// Serves a captured tree (or nothing but what `over` answers, where it is `None`).
    pub async fn start(folder: Option<&str>, over: impl Fn(&Seen) -> Option<Reply> + Send + Sync + 'static) -> Tree {
        rustls::crypto::ring::default_provider().install_default().ok();
        let (server, seen) = (MockServer::start().await, Arc::new(Mutex::new(vec![])));
        let folder = folder.map(|folder| fixtures().join(folder));
        let served = Served { folder, over: Arc::new(over), seen: seen.clone() };
        wiremock::Mock::given(wiremock::matchers::any()).respond_with(served).mount(&server).await;
        Tree { server, seen }
    }

    /// A captured tree as it is.
    pub async fn captured(folder: &str) -> Tree {
        Tree::start(Some(folder), |_| None).await
    }

    /// Reads each of these resources, and each collection among them to its end, without an error and without a write; how
    /// many collections there are. Only what the capture leaves out may be missing.
    pub async fn walk(&self, paths: &[String]) -> usize {
        let client = self.client();
        let mut collections = 0;
        for path in paths {
            let resource = client.get(path).await.unwrap_or_else(|e| panic!("{path}: {e}"));
            let has_no_id = path == "/redfish" || path.starts_with("/registries/");
            assert!(has_no_id || resource.is_whole(), "{path}");
            if resource.at("Members").is_some() {
                collections += 1;
                let listing = client.list(path).await.unwrap_or_else(|e| panic!("{path}: {e}"));
                assert!(listing.skipped.iter().all(|s| !paths.contains(&s.path)), "{path}: {:?}", listing.skipped);
            }
        }
        assert!(self.requests().iter().all(|seen| seen.method == "GET"));
        collections
    }

    pub fn client(&self) -> Redfish {
        self.client_with(Duration::from_millis(400))
    }

    pub fn client_with(&self, busy_budget: Duration) -> Redfish {
        let credential = Credential { username: "ADMIN".into(), password: "s3cret-of-the-bmc".to_owned().into() };
        let options = RedfishOptions {
            trust: Trust::System,
            connect_timeout: Duration::from_secs(5),
            timeout: Duration::from_secs(20),
            busy_budget,
        };
        Redfish::new(&Url::parse(&self.server.uri()).unwrap(), Some(credential), options).unwrap()
    }

    pub fn requests(&self) -> Vec<Seen> {
        self.seen.lock().unwrap().clone()
    }

    /// Method and path of each request.
    pub fn lines(&self) -> Vec<String> {
        self.requests().iter().map(|seen| format!("{} {}", seen.method, seen.path)).collect()
    }
}

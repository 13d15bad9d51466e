//! What stands beside the lab: a Keystone before its Ironic, programs in the place of `op` and `secret-tool`, and a NATS and a
//! PostgreSQL that quote whatever secret they are told.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::{Request, State};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};

/// A Keystone that hands out one token for two credentials, and the lab's Ironic behind that token.
#[derive(Clone)]
pub struct Front {
    pub token: String,
    pub password: String,
    pub application: String,
    /// The lab's own Ironic, with the value of its `Authorization`.
    pub ironic: String,
    pub basic: String,
    pub client: reqwest::Client,
    /// Logins that come next are refused in words that quote them; so are nodes that are made.
    pub quotes: Arc<Mutex<bool>>,
    pub handed_out: Arc<Mutex<u32>>,
}

impl Front {
    /// Serves it; the URL of both.
    pub async fn serve(self) -> String {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let router = Router::new().fallback(pass).with_state(self);
        tokio::spawn(async move { axum::serve(listener, router).await });
        url
    }
}

async fn pass(State(front): State<Front>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let body = to_bytes(body, 8 << 20).await.unwrap_or_default();
    let quotes = *front.quotes.lock().unwrap();
    if parts.uri.path() == "/v3/auth/tokens" {
        let asked: Value = serde_json::from_slice(&body).unwrap_or_default();
        let identity = &asked["auth"]["identity"];
        let knows = identity["password"]["user"]["password"] == *front.password
            || identity["application_credential"]["secret"] == *front.application;
        if !knows || quotes {
            // Keystone's schema errors quote what they do not like.
            let text =
                format!("Invalid input for field 'identity': {identity} is not valid under any of the given schemas");
            let body = json!({"error": {"code": 401, "title": "Unauthorized", "message": text}});
            return (StatusCode::UNAUTHORIZED, axum::Json(body)).into_response();
        }
        *front.handed_out.lock().unwrap() += 1;
        let body = json!({"token": {"issued_at": "2026-01-01T00:00:00Z", "expires_at": "2026-01-01T01:00:00Z"}});
        let mut answer = (StatusCode::CREATED, axum::Json(body)).into_response();
        answer.headers_mut().insert("x-subject-token", HeaderValue::from_str(&front.token).unwrap());
        return answer;
    }
    let shown = parts.headers.get("x-auth-token").and_then(|value| value.to_str().ok());
    // Behind a proxy nothing but the root is told to strangers.
    let path = parts.uri.path_and_query().map_or("/", |path| path.as_str());
    if path.starts_with("/v1") && (shown != Some(front.token.as_str()) || quotes) {
        let text = format!("the token {} is not known", shown.unwrap_or("-"));
        return (StatusCode::UNAUTHORIZED, axum::Json(json!({"error": {"message": text}}))).into_response();
    }
    let mut headers = parts.headers.clone();
    headers.remove("x-auth-token");
    headers.remove("host");
    headers.insert("authorization", HeaderValue::from_str(&front.basic).unwrap());
    let sent = front.client.request(parts.method, format!("{}{path}", front.ironic)).headers(headers).body(body);
    let Ok(answer) = sent.send().await else { return StatusCode::BAD_GATEWAY.into_response() };
    let (status, mut headers) = (answer.status(), answer.headers().clone());
    headers.remove("transfer-encoding");
    let mut response = Response::new(Body::from(answer.bytes().await.unwrap_or_default()));
    (*response.status_mut(), *response.headers_mut()) = (status, headers);
    response
}

/// A program that keeps items as files, and writes down with which arguments and environment it is called. It speaks as `op`
/// and as `secret-tool` do. With a file `quote` beside it, it complains and quotes its input.
const PROGRAM: &str = r#"#!/usr/bin/env python3
import json, os, sys
home = os.path.dirname(os.path.abspath(__file__))
with open(home + "/argv", "a") as f: f.write(json.dumps(sys.argv) + "\n")
with open(home + "/environ", "a") as f: f.write(json.dumps(dict(os.environ)) + "\n")
args, path = sys.argv[1:], home + "/items.json"
items = json.load(open(path))
def keep():
    with open(path + ".new", "w") as f: json.dump(items, f)
    os.rename(path + ".new", path)
if os.path.exists(home + "/quote"):
    print("[ERROR] 2026/11/30 10:00:00 can't take " + sys.stdin.read(), file=sys.stderr)
    sys.exit(1)
if os.path.basename(sys.argv[0]) == "secret-tool":
    item, field = args[args.index("item") + 1], args[args.index("field") + 1]
    if args[0] == "lookup":
        if field not in items.get(item, {}): sys.exit(1)
        sys.stdout.write(items[item][field])
    elif args[0] == "store":
        items.setdefault(item, {})[field] = sys.stdin.read(); keep()
    else:
        items.get(item, {}).pop(field, None); keep()
    sys.exit(0)
if args[:2] == ["vault", "get"]:
    print(json.dumps({"id": "v", "name": args[2]})); sys.exit(0)
def shown(title):
    fields = [{"id": n, "label": n, "type": "CONCEALED", "value": v} for n, v in items[title].items()]
    return json.dumps({"id": title, "title": title, "category": "LOGIN", "fields": fields})
if args[:2] in (["item", "create"], ["item", "edit"]):
    given = json.load(sys.stdin)
    items[given["title"]] = {f["label"]: f["value"] for f in given["fields"] if f.get("value")}
    keep(); print(shown(given["title"])); sys.exit(0)
if args[2] not in items:
    print('[ERROR] 2026/11/30 10:00:00 "%s" isn\'t an item in the "x" vault.' % args[2], file=sys.stderr); sys.exit(1)
print(shown(args[2]))
"#;

/// Such a program with items in it, by its name; the path of it.
pub fn program(folder: &Path, name: &str, items: &toml::Table) -> PathBuf {
    std::fs::create_dir_all(folder).unwrap();
    std::fs::write(folder.join("items.json"), serde_json::to_string(items).unwrap()).unwrap();
    let path = folder.join(name);
    std::fs::write(&path, PROGRAM).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    path
}

/// A NATS that refuses every login and quotes it; its address.
pub fn quoting_nats() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().map_while(Result::ok) {
            std::thread::spawn(move || {
                let info = json!({"server_id": "N", "version": "2.10.0", "proto": 1, "max_payload": 1_048_576,
                                  "auth_required": true, "nonce": "abcdefghijk", "host": "127.0.0.1", "port": 4222});
                write!(stream, "INFO {info}\r\n").ok();
                let mut line = String::new();
                BufReader::new(stream.try_clone().unwrap()).read_line(&mut line).ok();
                write!(stream, "-ERR 'Authorization Violation: {}'\r\n", line.trim()).ok();
            });
        }
    });
    address
}

/// A PostgreSQL that asks for the password in clear, refuses it and quotes it; its address.
pub fn quoting_postgres() -> std::net::SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().map_while(Result::ok) {
            std::thread::spawn(move || {
                let mut exchange = || -> std::io::Result<()> {
                    let mut length = [0; 4];
                    stream.read_exact(&mut length)?;
                    let mut startup = vec![0; u32::from_be_bytes(length) as usize - 4];
                    stream.read_exact(&mut startup)?;
                    stream.write_all(&[b'R', 0, 0, 0, 8, 0, 0, 0, 3])?;
                    let mut head = [0; 5];
                    stream.read_exact(&mut head)?;
                    let mut password = vec![0; u32::from_be_bytes(head[1..].try_into().unwrap()) as usize - 4];
                    stream.read_exact(&mut password)?;
                    password.pop();
                    let text = format!("no role takes '{}'", String::from_utf8_lossy(&password));
                    let fields = format!("SFATAL\0VFATAL\0C28P01\0M{text}\0D{text}\0\0");
                    let mut answer = vec![b'E'];
                    answer.extend((fields.len() as u32 + 4).to_be_bytes());
                    answer.extend(fields.bytes());
                    stream.write_all(&answer)
                };
                exchange().ok(); // muster may go away at any time
            });
        }
    });
    address
}

//! Serves HTTP for every service of the lab: one ledger, one set of fault rules, connections that can be cut.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes, to_bytes};
use axum::extract::connect_info::{ConnectInfo, Connected};
use axum::extract::{Request, State};
use axum::http::{HeaderName, HeaderValue, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use axum::serve::{IncomingStream, Listener};
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;
use tower_service::Service;

use super::faults::{Asked, Instead, Shape};
use super::ledger::{Note, System};
use super::world::World;

/// The largest body that a service of the lab reads.
const BODY_MAX: usize = 8 * 1024 * 1024;

/// How much of a body that is filled up is sent at once.
const CHUNK: usize = 64 * 1024;

static BLANKS: [u8; CHUNK] = [b' '; CHUNK];

/// Whose requests these are, and how the ledger and the fault rules are to read them.
#[derive(Clone)]
pub struct Served {
    pub world: World,
    pub system: System,
    /// The device that the whole server stands for (a BMC).
    pub device: Option<String>,
    /// The device that a request is about, by its path with query and its JSON body, where the server stands for none.
    pub device_of: fn(&World, &str, Option<&Value>) -> Option<String>,
    /// Whether a request asks for a change, by its method and path.
    pub is_write: fn(&Method, &str) -> bool,
}

impl Served {
    /// A BMC's server. Logging in and out of a session is not a write, nor is an action that only tells something.
    pub fn bmc(world: &World, device: &str) -> Served {
        Served {
            world: world.clone(),
            system: System::Bmc,
            device: Some(device.to_owned()),
            device_of: |_, _, _| None,
            is_write: |method, path| {
                let asks = path.contains("/SessionService/Sessions") || path.ends_with(".GetRemoteServicesAPIStatus");
                !is_read(method) && !asks
            },
        }
    }
}

/// Whether a method promises to change nothing.
pub fn is_read(method: &Method) -> bool {
    matches!(*method, Method::GET | Method::HEAD | Method::OPTIONS)
}

/// Serves a router until the handle is aborted.
pub fn serve(listener: TcpListener, served: Served, router: Router) -> JoinHandle<()> {
    let gate = Gate { address: listener.local_addr(), listener: Some(listener), served: served.clone() };
    let app = watched(served, router).into_make_service_with_connect_info::<Cut>();
    tokio::spawn(async move {
        // Ends only by abort: accept errors are waited out by the listener.
        axum::serve(gate, app).await.ok();
    })
}

/// A router whose every request is seen.
pub fn watched(served: Served, router: Router) -> Router {
    router.layer(axum::middleware::from_fn_with_state(served, watch))
}

/// Asks a watched router without a connection. `None`: one would have been cut.
pub async fn ask(router: &Router, mut request: Request) -> Option<Response> {
    let cut = Cut(Arc::default());
    request.extensions_mut().insert(ConnectInfo(cut.clone()));
    let Ok(answer) = router.clone().call(request).await;
    (!cut.0.load(Ordering::Relaxed)).then_some(answer)
}

/// Sees every request: ledger, fault rules, a BMC that is away.
async fn watch(
    State(served): State<Served>,
    ConnectInfo(cut): ConnectInfo<Cut>,
    request: Request,
    next: Next,
) -> Response {
    let world = served.world.clone();
    let (parts, body) = request.into_parts();
    let Ok(bytes) = to_bytes(body, BODY_MAX).await else {
        return StatusCode::PAYLOAD_TOO_LARGE.into_response();
    };
    let json = serde_json::from_slice::<Value>(&bytes).ok();
    let path = parts.uri.path().to_owned();
    let whole = parts.uri.path_and_query().map_or(path.clone(), |p| p.as_str().to_owned());
    let host = served.device.clone().or_else(|| (served.device_of)(&world, &whole, json.as_ref()));
    let write = (served.is_write)(&parts.method, &path);
    let mut note = Note {
        system: served.system,
        method: parts.method.to_string(),
        path: whole,
        host: host.clone(),
        write,
        status: None,
        body: if write { json } else { None },
        injected: false,
    };
    if served.is_away() {
        world.note(note);
        return cut.now();
    }
    let asked = Asked { system: served.system, method: parts.method.as_str(), path: &path, device: host.as_deref() };
    let injected = world.rules().meet(world.now(), asked);
    note.injected = injected.is_some();
    let (mut instead, mut after_effect, mut shape) = (None, false, Shape::default());
    if let Some(injected) = injected {
        world.sleep(injected.delay).await;
        (instead, after_effect, shape) = (injected.instead, injected.after_effect, injected.shape);
    }
    let mut answer = None;
    if instead.is_none() || after_effect {
        answer = Some(next.run(Request::from_parts(parts, Body::from(bytes))).await);
    }
    match instead {
        None => {
            let answer = answer.unwrap_or_default();
            note.status = Some(answer.status().as_u16());
            world.note(note);
            shaped(answer, shape, &world).await
        }
        Some(Instead::Answer { status, headers, body }) => {
            note.status = Some(status);
            world.note(note);
            let mut answer = spoilt(status, body);
            for (name, value) in headers {
                // A scenario's word that is no header is left out.
                if let (Ok(name), Ok(value)) = (name.parse::<HeaderName>(), HeaderValue::from_str(&value)) {
                    answer.headers_mut().insert(name, value);
                }
            }
            shaped(answer, shape, &world).await
        }
        Some(Instead::Drop) => {
            world.note(note);
            cut.now()
        }
        Some(Instead::Hang) => {
            world.note(note);
            // Until the client goes away: its connection's end drops this future.
            std::future::pending().await
        }
    }
}

impl Served {
    /// Whether the BMC behind this server restarts itself now.
    fn is_away(&self) -> bool {
        let Some(device) = self.device.as_deref().filter(|_| self.system == System::Bmc) else { return false };
        self.world.with_machine(device, |machine, now| machine.bmc_is_away(now)).unwrap_or(false)
    }

    /// How long the web server of that BMC takes no connections from now on.
    fn web_is_away_for(&self) -> Option<Duration> {
        let device = self.device.as_deref().filter(|_| self.system == System::Bmc)?;
        self.world.with_machine(device, |machine, now| machine.web_is_away_for(now)).flatten()
    }
}

/// An answer that a rule gives instead of the service.
fn spoilt(status: u16, body: Option<Value>) -> Response {
    let status = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    match body {
        None => status.into_response(),
        Some(Value::String(text)) => {
            let kind = if text.trim_start().starts_with('<') { "text/html" } else { "text/plain" };
            (status, [(header::CONTENT_TYPE, HeaderValue::from_static(kind))], text).into_response()
        }
        Some(json) => json_answer(status, &json),
    }
}

/// An answer whose body is cut, filled up, or sent in drops.
async fn shaped(answer: Response, shape: Shape, world: &World) -> Response {
    // An answer that says that it has no body can't have one that is spoilt.
    if shape == Shape::default() || answer.status() == StatusCode::NO_CONTENT {
        return answer;
    }
    let (mut parts, body) = answer.into_parts();
    // The lab's own answers are whole and small.
    let mut body = to_bytes(body, BODY_MAX).await.unwrap_or_default();
    if shape.cut {
        body.truncate(body.len() / 2);
    }
    let blanks = shape.bytes.unwrap_or(0).saturating_sub(body.len() as u64);
    parts.headers.insert(header::CONTENT_LENGTH, HeaderValue::from(body.len() as u64 + blanks));
    let size = if shape.drip.is_some() { 1 } else { CHUNK };
    let body =
        futures::stream::unfold((body, blanks, world.clone()), move |(mut body, mut blanks, world)| async move {
            let chunk = if !body.is_empty() {
                body.split_to(size.min(body.len()))
            } else {
                let take = blanks.min(size as u64);
                blanks -= take;
                Bytes::from_static(&BLANKS[..take as usize])
            };
            if chunk.is_empty() {
                return None;
            }
            if let Some(drip) = shape.drip {
                world.sleep(drip).await;
            }
            Some((Ok::<_, std::convert::Infallible>(chunk), (body, blanks, world)))
        });
    Response::from_parts(parts, Body::from_stream(body))
}

/// A JSON answer.
pub fn json_answer(status: StatusCode, body: &Value) -> Response {
    let text = Bytes::from(body.to_string());
    (status, [(header::CONTENT_TYPE, HeaderValue::from_static("application/json"))], text).into_response()
}

/// The end of a connection, in the hands of whoever answers on it.
#[derive(Debug, Clone)]
pub struct Cut(Arc<AtomicBool>);

impl Cut {
    /// Cuts the connection: the answer returned here never reaches the client.
    pub fn now(&self) -> Response {
        self.0.store(true, Ordering::Relaxed);
        StatusCode::SERVICE_UNAVAILABLE.into_response()
    }
}

impl Connected<IncomingStream<'_, Gate>> for Cut {
    fn connect_info(stream: IncomingStream<'_, Gate>) -> Self {
        Cut(stream.io().cut.clone())
    }
}

/// A listener whose connections can be cut, and that takes none while its BMC is away.
struct Gate {
    /// None while the BMC's web server starts anew: then connections are refused.
    listener: Option<TcpListener>,
    address: io::Result<SocketAddr>,
    served: Served,
}

impl Gate {
    /// The listener; a new one at the same address where the last was given up.
    async fn listener(&mut self) -> io::Result<&TcpListener> {
        let listener = match self.listener.take() {
            Some(listener) => listener,
            None => TcpListener::bind(self.local_addr()?).await?,
        };
        Ok(self.listener.insert(listener))
    }
}

impl Listener for Gate {
    type Io = Wire;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Wire, SocketAddr) {
        loop {
            let accepted = match self.listener().await {
                Ok(listener) => listener.accept().await,
                Err(error) => Err(error),
            };
            match accepted {
                // Dropped at once: the client sees the connection reset or closed.
                Ok((stream, _)) if self.served.is_away() => drop(stream),
                Ok((stream, addr)) => {
                    if let Some(rest) = self.served.web_is_away_for() {
                        (self.listener, _) = (None, stream);
                        self.served.world.sleep(rest).await;
                        continue;
                    }
                    // Only latency depends on it.
                    stream.set_nodelay(true).ok();
                    return (Wire { stream, cut: Arc::default() }, addr);
                }
                // Out of descriptors, mostly: others have to be closed first.
                Err(_) => tokio::time::sleep(Duration::from_millis(50)).await,
            }
        }
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.address.as_ref().copied().map_err(|error| error.kind().into())
    }
}

/// A connection that refuses to write once it is cut.
struct Wire {
    stream: TcpStream,
    cut: Arc<AtomicBool>,
}

impl Wire {
    fn check(&self) -> io::Result<()> {
        if self.cut.load(Ordering::Relaxed) { Err(io::ErrorKind::ConnectionReset.into()) } else { Ok(()) }
    }
}

impl AsyncRead for Wire {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buf)
    }
}

impl AsyncWrite for Wire {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        self.check()?;
        Pin::new(&mut self.stream).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.check()?;
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

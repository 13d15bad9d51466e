//! Answers `GET /metrics`, and nothing else.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use http_body_util::Full;
use hyper::body::Bytes;
use hyper::header::{ALLOW, CONTENT_TYPE, HeaderValue};
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::broadcast::error::RecvError;
use tokio_util::sync::CancellationToken;

use super::tally::{Tally, is_end};
use crate::app::{App, FeedEvent};

/// Connections at once; others wait in the system's own queue.
const AT_ONCE: usize = 8;
/// For the head of a request, and for a whole connection.
const HEAD: Duration = Duration::from_secs(5);
const CONNECTION: Duration = Duration::from_secs(30);
/// Between two tries to take a connection where the system has none left.
const AGAIN: Duration = Duration::from_millis(200);

/// A listener that answers until it is dropped.
pub struct Listening {
    /// Where it listens: with port 0 in the configuration, the one that was free.
    pub at: SocketAddr,
    cancel: CancellationToken,
}

impl Drop for Listening {
    fn drop(&mut self) {
        self.cancel.cancel();
    }
}

impl App {
    /// Listens for a monitoring system, and counts what ends from now on.
    pub async fn expose(&self, listen: SocketAddr) -> std::io::Result<Listening> {
        let listener = TcpListener::bind(listen).await?;
        let (at, cancel) = (listener.local_addr()?, CancellationToken::new());
        let tally = Arc::<Mutex<Tally>>::default();
        // Subscribed before anybody can ask, so that no end is missed.
        let counting = count(self.clone(), Arc::clone(&tally));
        let answering = answer(self.clone(), tally, listener);
        let stop = cancel.clone();
        tokio::spawn(async move {
            tokio::select! {
                () = stop.cancelled() => {}
                () = counting => {}
                () = answering => {}
            }
        });
        Ok(Listening { at, cancel })
    }
}

fn count(app: App, tally: Arc<Mutex<Tally>>) -> impl Future<Output = ()> {
    let mut feed = app.feed();
    async move {
        loop {
            let run = match feed.recv().await {
                Ok(FeedEvent::Record(record)) if is_end(&record) => record.run,
                Ok(_) => continue,
                // Told as it is: a counter that lacks some is better than none.
                Err(RecvError::Lagged(missed)) => {
                    tracing::warn!(missed, "the figures lack what was heard too late");
                    continue;
                }
                Err(RecvError::Closed) => return std::future::pending().await,
            };
            match app.records(run) {
                Ok(records) => tally.lock().unwrap_or_else(PoisonError::into_inner).ended(&records),
                Err(error) => tracing::warn!(%run, %error, "a run is missing in the figures"),
            }
        }
    }
}

/// Takes connections, each with its own time limit.
async fn answer(app: App, tally: Arc<Mutex<Tally>>, listener: TcpListener) {
    let mut connections = futures::stream::FuturesUnordered::new();
    loop {
        tokio::select! {
            Some(()) = futures::StreamExt::next(&mut connections), if !connections.is_empty() => {}
            taken = listener.accept(), if connections.len() < AT_ONCE => match taken {
                Ok((stream, _)) => connections.push(converse(&app, &tally, stream)),
                Err(error) => {
                    tracing::warn!(%error, "a connection for the figures could not be taken");
                    tokio::time::sleep(AGAIN).await;
                }
            },
        }
    }
}

async fn converse(app: &App, tally: &Arc<Mutex<Tally>>, stream: TcpStream) {
    let service = service_fn(move |request: Request<hyper::body::Incoming>| async move {
        Ok::<_, Infallible>(match (request.method(), request.uri().path()) {
            (&Method::GET | &Method::HEAD, "/metrics") => {
                let (app, tally) = (app.clone(), Arc::clone(tally));
                // The store is read, which must not hold up what else is done here.
                let figures = move || app.figures(&tally.lock().unwrap_or_else(PoisonError::into_inner));
                match tokio::task::spawn_blocking(figures).await {
                    Ok(text) => {
                        let mut response = Response::new(Full::new(Bytes::from(text)));
                        let form = HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");
                        response.headers_mut().insert(CONTENT_TYPE, form);
                        response
                    }
                    Err(_) => status(StatusCode::INTERNAL_SERVER_ERROR),
                }
            }
            (_, "/metrics") => {
                let mut response = status(StatusCode::METHOD_NOT_ALLOWED);
                response.headers_mut().insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
                response
            }
            _ => status(StatusCode::NOT_FOUND),
        })
    });
    let served = hyper::server::conn::http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD)
        .keep_alive(false)
        .serve_connection(TokioIo::new(stream), service);
    match tokio::time::timeout(CONNECTION, served).await {
        Ok(Ok(())) => {}
        Ok(Err(error)) => tracing::debug!(%error, "a connection for the figures broke"),
        Err(_) => tracing::debug!("a connection for the figures took too long"),
    }
}

fn status(status: StatusCode) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::default());
    *response.status_mut() = status;
    response
}

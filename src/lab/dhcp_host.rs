//! The DHCP host of the lab: an SSH server with SFTP and the commands of a DHCP service.
//!
//! It lets user [`USER`] in with the lab's own key, keeps one entry file a device in [`DIRECTORY`], and knows the commands
//! `dhcp-test`, `dhcp-restart` and `dhcp-validate` beside a few of the shell. Every step is asked of the fault rules and
//! written into the ledger: `connect`, `login`, `exec`, `sftp_read`, `sftp_write`, `sftp_rename`, `sftp_remove`. What a
//! rule answers instead means: at `connect` and `login` a refusal, at `exec` the exit status with the body as its error
//! text, at SFTP a failure.

mod service;
mod sftp;
mod ssh;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use russh::keys::ssh_key::LineEnding;
use russh::keys::{Algorithm, PrivateKey};
use russh::server;
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::CancellationToken;

use self::service::Service;
use super::LabError;
use super::faults::{Asked, Injected};
use super::ledger::{Note, System};
use super::world::World;

/// The user that the lab's key lets in.
pub const USER: &str = "muster";
/// The folder with one entry file a device.
pub const DIRECTORY: &str = "/srv/dhcp/hosts.d";
/// The commands for a site's `test`, `restart` and `validate`.
pub const TEST: &str = "dhcp-test";
pub const RESTART: &str = "dhcp-restart";
pub const VALIDATE: &str = "dhcp-validate";

/// A running DHCP host. It ends with the value.
pub struct DhcpHost {
    shared: Arc<Shared>,
    addr: SocketAddr,
    private_key: String,
}

/// What all connections share.
struct Shared {
    world: World,
    service: Mutex<Service>,
    /// The key that is let in.
    client_key: russh::keys::PublicKey,
    host_key: Mutex<PrivateKey>,
    posix_rename: AtomicBool,
    stop: CancellationToken,
}

impl Drop for DhcpHost {
    fn drop(&mut self) {
        self.shared.stop.cancel();
    }
}

/// Starts the DHCP host on a free port of the loopback interface.
pub async fn serve(world: &World) -> Result<DhcpHost, LabError> {
    let failed = |what: &str| LabError::DhcpHost(what.to_owned());
    let random = || PrivateKey::random(&mut rand::rng(), Algorithm::Ed25519).map_err(|e| failed(&e.to_string()));
    let (host_key, client) = (random()?, random()?);
    let listen = |source| LabError::Listen { what: "127.0.0.1 for SSH".to_owned(), source };
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.map_err(listen)?;
    let addr = listener.local_addr().map_err(listen)?;
    let private_key = client.to_openssh(LineEnding::LF).map_err(|e| failed(&e.to_string()))?.to_string();
    let shared = Arc::new(Shared {
        world: world.clone(),
        service: Mutex::new(Service::new(DIRECTORY)),
        client_key: client.public_key().clone(),
        host_key: Mutex::new(host_key),
        posix_rename: AtomicBool::new(true),
        stop: CancellationToken::new(),
    });
    let accepting = Arc::clone(&shared);
    tokio::spawn(async move {
        loop {
            tokio::select! {
                () = accepting.stop.cancelled() => return,
                accepted = listener.accept() => match accepted {
                    Ok((stream, _)) => { tokio::spawn(Arc::clone(&accepting).connection(stream)); }
                    // Out of file handles: wait for some to come back.
                    Err(_) => tokio::time::sleep(Duration::from_millis(50)).await,
                },
            }
        }
    });
    Ok(DhcpHost { shared, addr, private_key })
}

impl DhcpHost {
    /// Where it listens.
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// The private key that is let in, in OpenSSH's form: the vault's field `private_key`.
    pub fn private_key(&self) -> &str {
        &self.private_key
    }

    /// The known_hosts line of this host: the vault's field `known_hosts`.
    pub fn known_hosts(&self) -> String {
        let key = lock(&self.shared.host_key);
        let public = key.public_key().to_openssh().unwrap_or_default();
        format!("[{}]:{} {public}\n", self.addr.ip(), self.addr.port())
    }

    /// The host shows another key from now on, as after a new installation.
    pub fn change_host_key(&self) -> Result<(), LabError> {
        let key =
            PrivateKey::random(&mut rand::rng(), Algorithm::Ed25519).map_err(|e| LabError::DhcpHost(e.to_string()))?;
        *lock(&self.shared.host_key) = key;
        Ok(())
    }

    /// Whether SFTP offers to rename over a file (as OpenSSH does), or leaves that to `mv`.
    pub fn offer_posix_rename(&self, offer: bool) {
        self.shared.posix_rename.store(offer, Ordering::Relaxed);
    }

    /// How often the service was restarted, in vain or not.
    pub fn restarts(&self) -> u64 {
        self.shared.service().restarts()
    }

    /// Names and contents of the files in the entry folder, those under a dot-name included.
    pub fn files(&self) -> BTreeMap<String, String> {
        self.shared.service().in_folder()
    }

    /// Puts a file into the entry folder, as if it had always been there.
    pub fn put_file(&self, name: &str, content: &str) {
        self.shared.service().put(&format!("{DIRECTORY}/{name}"), content.as_bytes().to_vec());
    }

    /// The address that the running service gives to a MAC; `None` also where the service is down.
    pub fn serves(&self, mac: crate::domain::mac::Mac) -> Option<std::net::IpAddr> {
        self.shared.service().serves(mac)
    }

    /// Whether the service runs.
    pub fn is_running(&self) -> bool {
        self.shared.service().is_running()
    }
}

impl Shared {
    /// Serves one connection until it ends, is cut by a fault, or the lab stops.
    async fn connection(self: Arc<Self>, mut stream: TcpStream) {
        stream.set_nodelay(true).ok();
        match self.step("connect", "", false).await {
            Met::Go => {}
            Met::Answer { .. } | Met::Cut { .. } => return,
            // Accepted, and never a word.
            Met::Hang { .. } => return self.stop.cancelled().await,
        }
        let config = server::Config {
            keys: vec![lock(&self.host_key).clone()],
            auth_rejection_time: Duration::ZERO,
            auth_rejection_time_initial: Some(Duration::ZERO),
            ..server::Config::default()
        };
        // Between the socket and the session stands a pipe, so that a fault can cut the connection at any moment.
        let (mut near, far) = tokio::io::duplex(256 * 1024);
        let cut = self.stop.child_token();
        let handler = ssh::Connection::new(Arc::clone(&self), cut.clone());
        let session = async {
            if let Ok(running) = server::run_stream(Arc::new(config), far, handler).await {
                running.await.ok(); // how a connection ends is its client's business
            }
        };
        tokio::select! {
            () = cut.cancelled() => {}
            _ = async { tokio::join!(session, tokio::io::copy_bidirectional(&mut stream, &mut near)) } => {}
        }
        cut.cancel();
    }

    /// Asks the fault rules about a step, and writes it into the ledger.
    async fn step(&self, method: &'static str, path: &str, write: bool) -> Met {
        let device = self.device_of(path);
        let asked = Asked { system: System::Dhcp, method, path, device: device.as_deref() };
        let injected = self.world.rules().meet(self.world.now(), asked);
        let is_injected = injected.is_some();
        let met = match injected {
            None => Met::Go,
            Some(Injected { delay, instead, after_effect, shape: _ }) => {
                tokio::select! {
                    () = self.stop.cancelled() => return Met::Cut { after_effect: false },
                    () = self.world.sleep(delay) => {}
                }
                Met::from(instead, after_effect)
            }
        };
        let status = if let Met::Answer { status, .. } = &met { Some(*status) } else { None };
        self.world.note(Note {
            system: System::Dhcp,
            method: method.to_owned(),
            path: path.to_owned(),
            host: device,
            write,
            status,
            body: None,
            injected: is_injected,
        });
        met
    }

    /// The device whose entry a path or a command names.
    fn device_of(&self, text: &str) -> Option<String> {
        let words = text.split(|c: char| c.is_whitespace() || matches!(c, '/' | '\'' | '"'));
        let state = self.world.lock();
        words
            .filter_map(|word| word.strip_prefix('.').unwrap_or(word).split('.').next())
            .find(|name| state.machines.contains_key(*name))
            .map(str::to_owned)
    }

    fn service(&self) -> MutexGuard<'_, Service> {
        lock(&self.service)
    }
}

/// What a fault rule makes of a step.
enum Met {
    Go,
    Answer { status: u16, text: String, after_effect: bool },
    Cut { after_effect: bool },
    Hang { after_effect: bool },
}

impl Met {
    fn from(instead: Option<super::faults::Instead>, after_effect: bool) -> Met {
        use super::faults::Instead;
        match instead {
            None => Met::Go,
            Some(Instead::Drop) => Met::Cut { after_effect },
            Some(Instead::Hang) => Met::Hang { after_effect },
            Some(Instead::Answer { status, body, headers: _ }) => {
                let text = match body {
                    Some(serde_json::Value::String(text)) => text,
                    Some(other) => other.to_string(),
                    None => String::new(),
                };
                Met::Answer { status, text, after_effect }
            }
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

//! One SSH connection to a host whose key is known, and the commands that run over it.
//!
//! russh has no deadline of its own on most steps: a port that accepts and stays silent would be waited for for ever. So
//! every step here has one, and names itself when it runs out (D5).

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use russh::client::{self, DisconnectReason, Handle};
use russh::keys::{Algorithm, HashAlg, PrivateKey, PrivateKeyWithHashAlg, PublicKeyOrCertificate};
use russh::{AlgorithmKind, ChannelMsg, Disconnect};
use secrecy::{ExposeSecret, SecretString};
use tokio::net::TcpStream;
use tokio::time::Instant;

use super::algorithms::offered;
use super::error::SshError;
use super::known_hosts::{KnownHosts, Verdict, exact_name};
use super::sftp::Sftp;
use super::sign;
use crate::clients::rehearsal::Rehearsal;
use crate::clients::trail;
use crate::domain::text::neutralize_to;

/// What is kept of a command's output, of each stream. The rest is read and dropped, so that the command can end.
const OUTPUT_MAX: usize = 64 * 1024;
/// The same for all files of a folder at once: some 100,000 entries.
const FOLDER_MAX: usize = 32 * 1024 * 1024;

/// Where to, and as whom.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SshTarget {
    pub host: String,
    pub port: u16,
    pub user: String,
    /// Also what OpenSSH 9 no longer offers by itself: SHA-1, CBC.
    pub legacy_algorithms: bool,
}

/// How long each kind of step may take; none is billed to another (D5).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Deadlines {
    /// From the name's resolution to the end of the key exchange.
    pub connect: Duration,
    pub login: Duration,
    /// Of one command.
    pub command: Duration,
    /// Of one file, from the opening of the channel to the rename.
    pub transfer: Duration,
}

/// A command that ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Output {
    pub status: u32,
    pub stdout: Vec<u8>,
    pub stderr: Vec<u8>,
    /// More was written than was kept.
    pub truncated: bool,
}

/// A connection that is logged in. Dropping it ends the session.
pub struct SshClient {
    handle: Handle<Verifier>,
    server: String,
    deadlines: Deadlines,
    lost: Shared<String>,
    /// A step over SFTP ran out of its time, and what it asked for may still be carried out.
    overdue: AtomicBool,
    /// Nothing that changes anything is run or written.
    rehearsal: Option<Rehearsal>,
}

type Shared<T> = Arc<Mutex<Option<T>>>;

/// Judges the host key, and keeps what russh's errors do not tell.
pub(super) struct Verifier {
    known_hosts: KnownHosts,
    host: String,
    port: u16,
    verdict: Shared<Verdict>,
    lost: Shared<String>,
}

impl client::Handler for Verifier {
    type Error = russh::Error;

    async fn check_server_key(&mut self, shown: &PublicKeyOrCertificate) -> Result<bool, russh::Error> {
        let verdict = match shown {
            PublicKeyOrCertificate::PublicKey { key, .. } => self.known_hosts.judge(&self.host, self.port, key),
            PublicKeyOrCertificate::Certificate(certificate) => {
                let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
                self.known_hosts.judge_certificate(&self.host, self.port, certificate, now)
            }
        };
        let known = matches!(verdict, Verdict::Match { .. });
        put(&self.verdict, verdict);
        Ok(known)
    }

    async fn disconnected(&mut self, reason: DisconnectReason<russh::Error>) -> Result<(), russh::Error> {
        match reason {
            DisconnectReason::ReceivedDisconnect(info) => {
                put(&self.lost, format!("the server says '{}'", neutralize_to(&info.message, 200)));
                Ok(())
            }
            DisconnectReason::Error(error) => {
                put(&self.lost, words(&error));
                Err(error)
            }
        }
    }
}

impl SshClient {
    /// Connects, checks the host's key against known_hosts, and logs in with a private key that is never on disk.
    pub async fn connect(
        target: &SshTarget,
        deadlines: Deadlines,
        private_key: &SecretString,
        known_hosts: KnownHosts,
    ) -> Result<SshClient, SshError> {
        let key = read_private_key(private_key);
        sign::scrub_stack();
        let key = key?;
        let server = exact_name(&target.host, target.port);
        let lost = Shared::default();
        let mut handle = open(target, deadlines.connect, known_hosts, &server, &lost).await?;
        let fingerprint = key.public_key().fingerprint(HashAlg::Sha256);
        let name = format!("{} {fingerprint}", key.algorithm());
        let step = "login";
        let login = async {
            let hash = match key.algorithm() {
                // A server that does not say what it takes is asked with what every one of the last ten years takes.
                Algorithm::Rsa { .. } => match handle.best_supported_rsa_hash().await? {
                    Some(None) if target.legacy_algorithms => None,
                    Some(None) => return Ok(None),
                    hash => hash.flatten().or(Some(HashAlg::Sha512)),
                },
                _ => None,
            };
            match hash {
                Some(HashAlg::Sha256) | None if matches!(key.algorithm(), Algorithm::Rsa { .. }) => {
                    let key = PrivateKeyWithHashAlg::new(Arc::clone(&key), hash);
                    handle.authenticate_publickey(target.user.as_str(), key).await.map(Some)
                }
                _ => sign::login(&mut handle, &target.user, &key, hash).await.map(Some),
            }
        };
        let answer = within(step, deadlines.login, login).await?.map_err(|error| cut(&server, step, &error, &lost))?;
        let Some(answer) = answer else {
            let what = "the signature of an RSA key";
            return Err(SshError::NoCommon { server, what, theirs: vec!["ssh-rsa".to_owned()] });
        };
        match answer {
            client::AuthResult::Success => {
                let overdue = AtomicBool::new(false);
                Ok(SshClient { handle, server, deadlines, lost, overdue, rehearsal: None })
            }
            // russh has a lost connection for a refusal without methods.
            client::AuthResult::Failure { .. } if handle.is_closed() => {
                Err(cut(&server, step, &russh::Error::Disconnect, &lost))
            }
            client::AuthResult::Failure { remaining_methods, .. } => Err(SshError::AuthFailed {
                server,
                user: target.user.clone(),
                key: name,
                methods: remaining_methods.iter().map(<&str>::from).map(str::to_owned).collect(),
            }),
        }
    }

    /// The same connection as a plan has it: it looks, and changes nothing (G14).
    pub fn rehearsed(mut self, rehearsal: &Rehearsal) -> Self {
        self.rehearsal = Some(rehearsal.clone());
        self
    }

    pub(super) fn rehearsal(&self) -> Option<&Rehearsal> {
        self.rehearsal.as_ref()
    }

    /// The host as known_hosts names it, for messages.
    pub fn server(&self) -> &str {
        &self.server
    }

    /// Runs a command by the user's shell and waits for its end. An exit status other than 0 is an [`Output`]; a command
    /// that could not be started, or that left no status, is an error. In a rehearsal it is not run and ends well: what
    /// only looks has methods of its own.
    pub async fn run(&self, command: &str) -> Result<Output, SshError> {
        if let Some(rehearsal) = &self.rehearsal {
            rehearsal.wrote_dhcp(&self.server, "exec", command);
            return Ok(Output { status: 0, stdout: vec![], stderr: vec![], truncated: false });
        }
        self.look(command).await
    }

    /// Runs a command that changes nothing.
    async fn look(&self, command: &str) -> Result<Output, SshError> {
        self.look_at_most(command, OUTPUT_MAX).await
    }

    async fn look_at_most(&self, command: &str, max: usize) -> Result<Output, SshError> {
        if let Some(rehearsal) = &self.rehearsal {
            rehearsal.read();
        }
        let step = format!("the command '{}'", brief(command));
        let ended = within(&step, self.deadlines.command, self.run_unbounded(command, &step, max)).await.flatten();
        let answer = ended.as_ref().map_or_else(|_| "no status".to_owned(), |output| format!("exit {}", output.status));
        trail::tell("ssh", &format!("run '{}'", brief(command)), answer);
        ended
    }

    async fn run_unbounded(&self, command: &str, step: &str, max: usize) -> Result<Output, SshError> {
        let cut = |error: russh::Error| cut(&self.server, step, &error, &self.lost);
        let not_run = |cause: String| SshError::Command { command: brief(command), cause };
        let mut channel = self.handle.channel_open_session().await.map_err(cut)?;
        channel.exec(true, command).await.map_err(cut)?;
        let mut output = Output { status: 0, stdout: Vec::new(), stderr: Vec::new(), truncated: false };
        let mut status = None;
        while let Some(message) = channel.wait().await {
            match message {
                ChannelMsg::Data { data } => keep(&mut output.stdout, &data, max, &mut output.truncated),
                ChannelMsg::ExtendedData { data, ext: 1 } => {
                    keep(&mut output.stderr, &data, max, &mut output.truncated);
                }
                ChannelMsg::ExitStatus { exit_status } => status = Some(exit_status),
                ChannelMsg::ExitSignal { signal_name, .. } => {
                    return Err(not_run(format!("it was ended by signal {signal_name:?}")));
                }
                ChannelMsg::Failure => return Err(not_run("the server refused to run it".to_owned())),
                _ => {}
            }
        }
        match status {
            Some(status) => Ok(Output { status, ..output }),
            None if self.is_lost() => Err(cut(russh::Error::Disconnect)),
            None => Err(not_run("it left no exit status".to_owned())),
        }
    }

    /// SHA-256 of a remote file, as hex. `None` where the command ended otherwise than with a digest: there may be no
    /// such file, or no such command (D8).
    pub async fn sha256(&self, path: &str) -> Result<Option<String>, SshError> {
        let output = self.look(&format!("sha256sum -- {}", quote(path))).await?;
        let digest = digest_in(&String::from_utf8_lossy(&output.stdout));
        Ok(digest.filter(|_| output.status == 0))
    }

    /// The files of a folder by their names, without those under a dot-name; none where there is no such folder. One
    /// command, however many they are. Names with a tab or a newline in them are not told apart from their content.
    pub async fn files(&self, folder: &str) -> Result<BTreeMap<String, String>, SshError> {
        let place = quote(folder);
        let command = format!(
            "test -d {place} || exit 0; \
             find -L {place} -maxdepth 1 -type f ! -name '.*' -exec awk '{{ print FILENAME \"\\t\" $0 }}' {{}} +"
        );
        let output = self.look_at_most(&command, FOLDER_MAX).await?;
        let unreadable = |cause: String| SshError::Folder { folder: folder.to_owned(), cause };
        if output.status != 0 {
            return Err(unreadable(format!("the command ended with status {}: '{}'", output.status, output.said())));
        }
        if output.truncated {
            return Err(unreadable(format!("it holds more than {} MiB", FOLDER_MAX >> 20)));
        }
        let mut files = BTreeMap::<String, String>::new();
        for line in String::from_utf8_lossy(&output.stdout).lines() {
            // What a profile says before is no line of a file.
            let of_folder = line.strip_prefix(folder).and_then(|rest| rest.strip_prefix('/'));
            if let Some((name, content)) = of_folder.and_then(|rest| rest.split_once('\t')) {
                let file = files.entry(name.to_owned()).or_default();
                file.push_str(content);
                file.push('\n');
            }
        }
        Ok(files)
    }

    /// Whether there is a file with this name.
    pub async fn exists(&self, path: &str) -> Result<bool, SshError> {
        if let Some(file) = self.rehearsal.as_ref().and_then(|rehearsal| rehearsal.file(&self.server, path)) {
            return Ok(file.is_some());
        }
        Ok(self.look(&format!("test -e {}", quote(path))).await?.status == 0)
    }

    /// Whether there is such a folder, and whether the user may write into it. Looks, and writes nothing.
    pub async fn folder(&self, path: &str) -> Result<Option<bool>, SshError> {
        let place = quote(path);
        if self.look(&format!("test -d {place}")).await?.status != 0 {
            return Ok(None);
        }
        Ok(Some(self.look(&format!("test -w {place}")).await?.status == 0))
    }

    /// Runs a command of the configuration that promises to change nothing, in a rehearsal too: a test, a validation.
    pub async fn inspect(&self, command: &str) -> Result<Output, SshError> {
        self.look(command).await
    }

    /// Whether sudo lets the user run a command without a password: sudo says so without running it.
    pub async fn may_sudo(&self, command: &str) -> Result<Output, SshError> {
        self.look(&format!("sudo -n -l -- {command}")).await
    }

    /// The seconds of the host's clock since 1970; `None` where it has no `date` that says them.
    pub async fn clock(&self) -> Result<Option<i64>, SshError> {
        let output = self.look("date -u +%s").await?;
        // A noisy profile may have said something before it.
        let text = String::from_utf8_lossy(&output.stdout);
        Ok(text.lines().rev().find_map(|line| line.trim().parse().ok()).filter(|_| output.status == 0))
    }

    /// Opens an SFTP session over this connection.
    pub async fn sftp(&self) -> Result<Sftp<'_>, SshError> {
        Sftp::open(self, self.deadlines.transfer).await
    }

    /// Says goodbye. Not needed for correctness: a dropped client ends the session too, only less politely.
    pub async fn close(self) {
        let goodbye = self.handle.disconnect(Disconnect::ByApplication, "", "en");
        tokio::time::timeout(Duration::from_secs(2), goodbye).await.ok();
    }

    pub(super) fn handle(&self) -> &Handle<Verifier> {
        &self.handle
    }

    /// Whether the connection is gone.
    pub(super) fn is_lost(&self) -> bool {
        self.handle.is_closed() || self.lost.lock().unwrap_or_else(PoisonError::into_inner).is_some()
    }

    /// Whether no file is read or written over this connection any more: it is gone, or a step over SFTP never ended.
    /// Commands have channels of their own.
    pub fn is_spent(&self) -> bool {
        self.overdue.load(Ordering::Relaxed) || self.is_lost()
    }

    /// Bounds a step over SFTP. A server works that channel off in order: what is asked behind a request that hangs is
    /// carried out when that ends, perhaps after another connection has set all right. So a step that runs out of its time
    /// is the last one.
    pub(super) async fn in_order<T>(
        &self,
        step: &str,
        limit: Duration,
        asked: impl Future<Output = T>,
    ) -> Result<T, SshError> {
        if self.overdue.load(Ordering::Relaxed) {
            let (server, step) = (self.server.clone(), step.to_owned());
            return Err(SshError::Cut { server, step, cause: "a step before it never ended".to_owned() });
        }
        let ended = within(step, limit, asked).await;
        if ended.is_err() {
            self.overdue.store(true, Ordering::Relaxed);
        }
        ended
    }

    pub(super) fn cut(&self, step: &str, error: &russh::Error) -> SshError {
        cut(&self.server, step, error, &self.lost)
    }
}

impl Output {
    /// What the command said, in one safe line: its errors, or else its output.
    pub fn said(&self) -> String {
        let stream = if self.stderr.iter().all(u8::is_ascii_whitespace) { &self.stdout } else { &self.stderr };
        neutralize_to(String::from_utf8_lossy(stream).trim(), 400)
    }
}

/// The digest in what sha256sum says. A noisy profile may have said something before it.
fn digest_in(text: &str) -> Option<String> {
    let digest = |line: &str| {
        // A path with a backslash or a newline makes sha256sum begin its line with a backslash.
        let (digest, path) = line.trim_start_matches('\\').split_once(' ')?;
        let is_digest = digest.len() == 64 && digest.bytes().all(|b| b.is_ascii_hexdigit());
        (is_digest && !path.is_empty()).then(|| digest.to_ascii_lowercase())
    };
    text.lines().rev().find_map(digest)
}

/// A text as one word of a POSIX shell.
pub fn quote(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

/// From the name to the end of the key exchange, within one deadline.
async fn open(
    target: &SshTarget,
    limit: Duration,
    known_hosts: KnownHosts,
    server: &str,
    lost: &Shared<String>,
) -> Result<Handle<Verifier>, SshError> {
    let deadline = Instant::now() + limit;
    let ran_out = |step: String| move |_| SshError::Timeout { step, limit };
    let resolve = tokio::net::lookup_host((target.host.as_str(), target.port));
    let step = format!("resolving the name '{}'", target.host);
    let addresses: Vec<SocketAddr> = tokio::time::timeout_at(deadline, resolve)
        .await
        .map_err(ran_out(step))?
        .map_err(|e| SshError::Dns { host: target.host.clone(), cause: neutralize_to(&e.to_string(), 200) })?
        .collect();
    let step = format!("connecting to '{server}'");
    let stream = tokio::time::timeout_at(deadline, TcpStream::connect(&addresses[..]))
        .await
        .map_err(ran_out(step))?
        .map_err(|e| match e.kind() {
            std::io::ErrorKind::ConnectionRefused => SshError::Refused { server: server.to_owned() },
            _ => SshError::Connect { server: server.to_owned(), cause: e.to_string() },
        })?;
    // Small packets go back and forth; waiting to fill them costs 40 ms each.
    stream.set_nodelay(true).ok();
    let verdict = Shared::default();
    let config = client::Config {
        preferred: offered(&known_hosts, &target.host, target.port, target.legacy_algorithms),
        keepalive_interval: Some(Duration::from_secs(10)),
        keepalive_max: 3,
        ..client::Config::default()
    };
    let verifier = Verifier {
        known_hosts,
        host: target.host.clone(),
        port: target.port,
        verdict: Arc::clone(&verdict),
        lost: Arc::clone(lost),
    };
    let step = format!("the key exchange with '{server}'");
    let exchange = client::connect_stream(Arc::new(config), stream, verifier);
    let outcome = tokio::time::timeout_at(deadline, exchange).await.map_err(ran_out(step))?;
    outcome.map_err(|error| match verdict.lock().unwrap_or_else(PoisonError::into_inner).take() {
        Some(verdict) if !matches!(verdict, Verdict::Match { .. }) => {
            SshError::HostKey { server: server.to_owned(), verdict }
        }
        _ => no_exchange(server, error, lost),
    })
}

/// A key exchange that failed before or after the key was judged.
fn no_exchange(server: &str, error: russh::Error, lost: &Shared<String>) -> SshError {
    match error {
        russh::Error::NoCommonAlgo { kind, theirs, .. } => {
            let server = server.to_owned();
            let theirs = theirs.iter().map(|name| neutralize_to(name, 60)).take(10).collect();
            let what = match kind {
                AlgorithmKind::Key => return SshError::HostKeyTypes { server, types: theirs },
                AlgorithmKind::Kex => "the key exchange",
                AlgorithmKind::Cipher => "encryption",
                AlgorithmKind::Mac => "message authentication",
                AlgorithmKind::Compression => "compression",
            };
            SshError::NoCommon { server, what, theirs }
        }
        error => {
            let said = lost.lock().unwrap_or_else(PoisonError::into_inner).take();
            SshError::Connect { server: server.to_owned(), cause: said.unwrap_or_else(|| words(&error)) }
        }
    }
}

/// Reads the private key and says in words why one cannot be used. Nothing of the key's text is ever in the message.
///
/// Only OpenSSH's own form is read, by the one reader that leaves no copy behind (D3): russh's, for all forms, drops the
/// decoded text as it is. For the same reason the key goes into its place at once and is never moved.
fn read_private_key(text: &SecretString) -> Result<Arc<PrivateKey>, SshError> {
    let unusable = |why: &str| SshError::PrivateKey(why.to_owned());
    let text = text.expose_secret().trim();
    if !text.starts_with("-----BEGIN OPENSSH PRIVATE KEY-----") {
        return Err(match text.contains("PRIVATE KEY-----") || text.starts_with("PuTTY-User-Key-File") {
            true => unusable("it is not in OpenSSH's own form ('ssh-keygen -p -f KEY' rewrites most others)"),
            false => unusable("it does not look like an OpenSSH private key"),
        });
    }
    let key = Arc::new(PrivateKey::from_openssh(text).map_err(|_| unusable("its content is damaged"))?);
    if key.is_encrypted() {
        return Err(unusable("it is protected by a passphrase"));
    }
    if matches!(key.algorithm(), Algorithm::Dsa) {
        return Err(unusable("it is a DSA key, which no server of today takes"));
    }
    Ok(key)
}

/// Runs a step within its own deadline.
async fn within<T>(step: &str, limit: Duration, future: impl Future<Output = T>) -> Result<T, SshError> {
    tokio::time::timeout(limit, future).await.map_err(|_| SshError::Timeout { step: step.to_owned(), limit })
}

fn cut(server: &str, step: &str, error: &russh::Error, lost: &Shared<String>) -> SshError {
    let said = lost.lock().unwrap_or_else(PoisonError::into_inner).clone();
    SshError::Cut { server: server.to_owned(), step: step.to_owned(), cause: said.unwrap_or_else(|| words(error)) }
}

/// russh's errors in words that a person can use.
fn words(error: &russh::Error) -> String {
    match error {
        russh::Error::Disconnect | russh::Error::HUP | russh::Error::SendError | russh::Error::RecvError => {
            "the server closed the connection".to_owned()
        }
        russh::Error::KeepaliveTimeout => "the server stopped answering".to_owned(),
        russh::Error::Version => "the server does not speak SSH".to_owned(),
        other => neutralize_to(&other.to_string(), 200),
    }
}

fn keep(kept: &mut Vec<u8>, more: &[u8], max: usize, truncated: &mut bool) {
    let room = max - kept.len();
    *truncated |= more.len() > room;
    kept.extend_from_slice(&more[..more.len().min(room)]);
}

fn brief(command: &str) -> String {
    neutralize_to(command, 120)
}

fn put<T>(place: &Shared<T>, value: T) {
    *place.lock().unwrap_or_else(PoisonError::into_inner) = Some(value);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key_error(text: &str) -> String {
        read_private_key(&text.to_owned().into()).unwrap_err().to_string()
    }

    #[test]
    fn a_key_that_cannot_be_used_says_why_and_shows_nothing_of_itself() {
        assert!(key_error("s3cret").contains("does not look like"));
        let pem = key_error("-----BEGIN RSA PRIVATE KEY-----\ns3cret\n-----END RSA PRIVATE KEY-----\n");
        assert!(pem.contains("OpenSSH's own form") && !pem.contains("s3cret"), "{pem}");
        let broken = key_error("-----BEGIN OPENSSH PRIVATE KEY-----\ns3cret\n-----END OPENSSH PRIVATE KEY-----\n");
        assert!(broken.contains("damaged") && !broken.contains("s3cret"), "{broken}");
    }

    #[test]
    fn a_digest_is_found_behind_what_a_profile_says() {
        let digest = "AB".repeat(32);
        let found = Some(digest.to_lowercase());
        for text in [format!("{digest}  /a/b\n"), format!("Welcome!\nquota 3 of 5\n\\{digest}  /a\\\\b\n")] {
            assert_eq!(digest_in(&text), found, "{text}");
        }
        assert_eq!(digest_in(&format!("{digest}\n")), None);
        assert_eq!(digest_in("sha256sum: /a/b: No such file or directory\n"), None);
    }

    #[test]
    fn a_word_of_a_shell_stays_one_word() {
        assert_eq!(quote("/etc/kea/a b"), "'/etc/kea/a b'");
        assert_eq!(quote("it's; rm -rf /"), r"'it'\''s; rm -rf /'");
    }

    #[test]
    fn output_is_kept_up_to_a_bound() {
        let (mut kept, mut truncated) = (Vec::new(), false);
        keep(&mut kept, &vec![b'a'; OUTPUT_MAX], OUTPUT_MAX, &mut truncated);
        assert!(!truncated);
        keep(&mut kept, b"b", OUTPUT_MAX, &mut truncated);
        assert!(truncated && kept.len() == OUTPUT_MAX);
    }
}

//! The SSH client against a real OpenSSH server, which the test starts itself on a free port as its own user.

#[path = "support/dhcp.rs"]
mod support;

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use muster::activities::dhcp::serve_entry;
use muster::clients::ssh::known_hosts::{KnownHosts, Verdict};
use muster::clients::ssh::{Deadlines, SshClient, SshError, SshTarget};
use muster::domain::dhcp::Entry;
use muster::domain::failure::FailureCode;
use russh::keys::ssh_key::LineEnding;
use russh::keys::{Algorithm, EcdsaCurve, PrivateKey};
use secrecy::SecretString;

const SSHD: &str = "/usr/sbin/sshd";
const DEADLINES: Deadlines = Deadlines {
    connect: Duration::from_secs(20),
    login: Duration::from_secs(20),
    command: Duration::from_secs(20),
    transfer: Duration::from_secs(20),
};

struct Sshd {
    child: Child,
    folder: tempfile::TempDir,
    port: u16,
    user: String,
    ed25519: PrivateKey,
    ecdsa: PrivateKey,
    client: PrivateKey,
}

impl Drop for Sshd {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

/// Starts a server; `None`, with a printed line, where the machine has none.
fn start(test: &str, extra: &str) -> Option<Sshd> {
    if !Path::new(SSHD).exists() {
        assert!(std::env::var_os("MUSTER_MUST_RUN").is_none(), "could not run: no {SSHD} (install openssh-server)");
        println!("skipped: {test}: no {SSHD} (install openssh-server)");
        return None;
    }
    // Only where sshd is started by root does it want its empty folder.
    std::fs::create_dir_all("/run/sshd").ok();
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let random = |algorithm| PrivateKey::random(&mut rand::rng(), algorithm).unwrap();
    let ed25519 = random(Algorithm::Ed25519);
    let ecdsa = random(Algorithm::Ecdsa { curve: EcdsaCurve::NistP256 });
    let client = random(Algorithm::Ed25519);
    write_private(&at("host_ed25519"), &ed25519.to_openssh(LineEnding::LF).unwrap());
    write_private(&at("host_ecdsa"), &ecdsa.to_openssh(LineEnding::LF).unwrap());
    write_private(&at("authorized_keys"), &client.public_key().to_openssh().unwrap());
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let place = folder.path().display();
    let config = format!(
        "ListenAddress 127.0.0.1\nPort {port}\nHostKey {place}/host_ed25519\nHostKey {place}/host_ecdsa\n\
         AuthorizedKeysFile {place}/authorized_keys\nPidFile {place}/pid\nUsePAM no\nStrictModes no\n\
         PasswordAuthentication no\nPermitRootLogin yes\n{extra}\n"
    );
    std::fs::write(at("sshd_config"), config).unwrap();
    let child = run(folder.path());
    let user = String::from_utf8(Command::new("id").arg("-un").output().unwrap().stdout).unwrap().trim().to_owned();
    let mut sshd = Sshd { child, folder, port, user, ed25519, ecdsa, client };
    sshd.wait();
    Some(sshd)
}

fn run(folder: &Path) -> Child {
    let mut command = Command::new(SSHD);
    command.args(["-D", "-f"]).arg(folder.join("sshd_config")).arg("-E").arg(folder.join("log"));
    command.stdin(Stdio::null()).spawn().unwrap()
}

fn write_private(path: &PathBuf, text: &str) {
    use std::os::unix::fs::OpenOptionsExt;
    let mut file = std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(path).unwrap();
    std::io::Write::write_all(&mut file, text.as_bytes()).unwrap();
}

fn line(marker: &str, port: u16, key: &PrivateKey) -> String {
    format!("{marker}[127.0.0.1]:{port} {}\n", key.public_key().to_openssh().unwrap())
}

impl Sshd {
    fn target(&self) -> SshTarget {
        SshTarget { host: "127.0.0.1".into(), port: self.port, user: self.user.clone(), legacy_algorithms: false }
    }

    /// Starts it again with one more line in its configuration.
    fn restart_with(&mut self, extra: &str) {
        self.child.kill().ok();
        self.child.wait().ok();
        let config = self.folder.path().join("sshd_config");
        let text = std::fs::read_to_string(&config).unwrap();
        std::fs::write(&config, format!("{text}{extra}\n")).unwrap();
        self.child = run(self.folder.path());
        self.wait();
    }

    /// Waits until it speaks. A child of the one before may hold the port for a moment after its end: then a connection
    /// is taken and dropped, and the new one finds no port and ends.
    fn wait(&mut self) {
        let until = Instant::now() + Duration::from_secs(20);
        while !self.speaks() {
            let log = || std::fs::read_to_string(self.folder.path().join("log")).unwrap_or_default();
            assert!(Instant::now() < until, "sshd did not start: {}", log());
            if self.child.try_wait().unwrap().is_some() {
                self.child = run(self.folder.path());
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    fn speaks(&self) -> bool {
        let Ok(mut stream) = std::net::TcpStream::connect(("127.0.0.1", self.port)) else { return false };
        stream.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
        let mut banner = [0; 4];
        std::io::Read::read_exact(&mut stream, &mut banner).is_ok() && banner == *b"SSH-"
    }

    async fn connect(&self, known_hosts: &str, key: &PrivateKey) -> Result<SshClient, SshError> {
        let target = self.target();
        let key: SecretString = key.to_openssh(LineEnding::LF).unwrap().to_string().into();
        SshClient::connect(&target, DEADLINES, &key, KnownHosts::parse(known_hosts)).await
    }

    async fn connected(&self) -> SshClient {
        self.connect(&line("", self.port, &self.ed25519), &self.client).await.unwrap()
    }

    fn path(&self, name: &str) -> String {
        self.folder.path().join(name).display().to_string()
    }
}

/// Proves: D4
#[tokio::test]
async fn openssh_is_let_in_by_a_known_key_only() {
    let Some(sshd) = start("openssh_is_let_in_by_a_known_key_only", "") else { return };
    let (port, ed25519, ecdsa) = (sshd.port, &sshd.ed25519, &sshd.ecdsa);
    let other = PrivateKey::random(&mut rand::rng(), Algorithm::Ed25519).unwrap();
    let good = [
        line("", port, ed25519),
        line("", port, ecdsa),
        line("", port, &other) + &line("", port, ed25519),
        format!("127.0.0.1 {}\n", ed25519.public_key().to_openssh().unwrap()),
        format!("[127.0.0.*]:{port}\t{}\n", ecdsa.public_key().to_openssh().unwrap()),
        // The Ed25519 key is revoked: the host's other key is asked for.
        line("@revoked ", port, ed25519) + &line("", port, ed25519) + &line("", port, ecdsa),
    ];
    for file in good {
        let connected = sshd.connect(&file, &sshd.client).await;
        assert!(connected.is_ok(), "{file}: {:?}", connected.err());
    }
    let sshd = &sshd;
    let verdict = |file: String| async move {
        match sshd.connect(&file, &sshd.client).await {
            Err(SshError::HostKey { verdict, .. }) => verdict,
            Err(other) => panic!("{file}: {other}"),
            Ok(_) => panic!("{file}: was let in"),
        }
    };
    assert!(matches!(verdict(String::new()).await, Verdict::Unknown { .. }));
    assert!(matches!(verdict(line("", port, &other)).await, Verdict::Changed { line: 1, .. }));
    let revoked = line("@revoked ", port, ed25519) + &line("@revoked ", port, ecdsa);
    assert!(matches!(verdict(revoked).await, Verdict::Revoked { .. }));
    let negated = format!("[127.0.0.1]:*,![127.0.0.1]:{port} {}\n", ed25519.public_key().to_openssh().unwrap());
    assert!(matches!(verdict(negated).await, Verdict::Unknown { .. }));
    let authority = line("@cert-authority ", port, ed25519);
    assert!(matches!(verdict(authority).await, Verdict::CertificateAuthorityOnly { line: 1, .. }));
}

/// Makes an RSA key by OpenSSH: to make one here takes a debug build half a minute.
fn rsa_key(folder: &Path, name: &str) -> PrivateKey {
    let path = folder.join(name);
    let made = Command::new("ssh-keygen").args(["-q", "-t", "rsa", "-b", "2048", "-N", "", "-f"]).arg(&path).status();
    assert!(made.unwrap().success());
    PrivateKey::from_openssh(std::fs::read_to_string(path).unwrap()).unwrap()
}

/// Proves: D4
#[tokio::test]
async fn openssh_is_known_by_its_rsa_key_and_takes_one_for_the_login_with_sha_2() {
    let keys = tempfile::tempdir().unwrap();
    let host = rsa_key(keys.path(), "host_rsa");
    let extra = format!("HostKey {}\nLogLevel VERBOSE", keys.path().join("host_rsa").display());
    let Some(sshd) = start("openssh_is_known_by_its_rsa_key", &extra) else { return };
    let login = rsa_key(keys.path(), "login_rsa");
    let authorized = sshd.folder.path().join("authorized_keys");
    std::fs::write(&authorized, login.public_key().to_openssh().unwrap() + "\n").unwrap();
    let connected = sshd.connect(&line("", sshd.port, &host), &login).await;
    assert_eq!(connected.unwrap_or_else(|error| panic!("{error}")).run("true").await.unwrap().status, 0);
    let log = std::fs::read_to_string(sshd.folder.path().join("log")).unwrap();
    assert!(log.contains("Accepted publickey for") && log.contains("ssh2: RSA SHA256:"), "{log}");
    let other = rsa_key(keys.path(), "other_rsa");
    match sshd.connect(&line("", sshd.port, &other), &login).await {
        Err(SshError::HostKey { verdict: verdict @ Verdict::Changed { .. }, .. }) => {
            assert_eq!(verdict.to_string().matches("ssh-rsa SHA256:").count(), 2, "{verdict}");
        }
        other => panic!("{:?}", other.err()),
    }
}

/// Certificates made by ssh-keygen, shown by sshd.
///
/// Proves: D4
#[tokio::test]
async fn openssh_is_known_by_the_certificate_of_an_authority() {
    let authority = PrivateKey::random(&mut rand::rng(), Algorithm::Ed25519).unwrap();
    let certify = |sshd: &Sshd, arguments: &[&str]| {
        let place = sshd.folder.path();
        std::fs::remove_file(place.join("ca")).ok();
        write_private(&place.join("ca"), &authority.to_openssh(LineEnding::LF).unwrap());
        std::fs::write(place.join("host_ed25519.pub"), sshd.ed25519.public_key().to_openssh().unwrap()).unwrap();
        let mut keygen = Command::new("ssh-keygen");
        keygen.args(["-q", "-s"]).arg(place.join("ca")).args(["-I", "host", "-h"]).args(arguments);
        assert!(keygen.arg(place.join("host_ed25519.pub")).status().unwrap().success());
        place.join("host_ed25519-cert.pub")
    };
    for (arguments, fault) in [
        (vec!["-n", "127.0.0.1,dhcp1"], None),
        (vec!["-n", "127.0.0.*"], None),
        (vec!["-n", "dhcp1"], Some("it is for 'dhcp1'")),
        (vec!["-n", "127.0.0.1", "-V", "20200101:20200102"], Some("expired")),
    ] {
        let Some(mut sshd) = start("openssh_is_known_by_the_certificate", "") else { return };
        let certificate = certify(&sshd, &arguments);
        sshd.restart_with(&format!("HostCertificate {}", certificate.display()));
        let known = line("@cert-authority ", sshd.port, &authority);
        match (sshd.connect(&known, &sshd.client).await, fault) {
            (Ok(client), None) => assert_eq!(client.run("true").await.unwrap().status, 0),
            (Err(SshError::HostKey { verdict: verdict @ Verdict::BadCertificate { .. }, .. }), Some(fault)) => {
                assert!(verdict.to_string().contains(fault), "{verdict}");
            }
            (other, _) => panic!("{arguments:?}: {:?}", other.err()),
        }
        // Whoever knows no authority is shown the plain key, and another authority's certificate counts for nothing.
        assert!(sshd.connect(&line("", sshd.port, &sshd.ed25519), &sshd.client).await.is_ok());
        let stranger = PrivateKey::random(&mut rand::rng(), Algorithm::Ed25519).unwrap();
        let refused = sshd.connect(&line("@cert-authority ", sshd.port, &stranger), &sshd.client).await;
        assert!(matches!(refused, Err(SshError::HostKey { verdict: Verdict::CertificateAuthorityOnly { .. }, .. })));
        let revoked = known.clone() + &line("@revoked ", sshd.port, &authority);
        let refused = sshd.connect(&revoked, &sshd.client).await;
        assert!(matches!(refused, Err(SshError::HostKey { verdict: Verdict::Revoked { .. }, .. })));
    }
}

/// Old algorithms are taken only where a site asks for them.
#[tokio::test]
async fn a_server_with_old_algorithms_only_is_refused_by_their_names_unless_they_are_asked_for() {
    for (extra, names) in [
        ("KexAlgorithms diffie-hellman-group14-sha1", "diffie-hellman-group14-sha1"),
        ("Ciphers aes256-cbc", "aes256-cbc"),
        ("Ciphers aes256-ctr\nMACs hmac-sha1", "hmac-sha1"),
    ] {
        let Some(sshd) = start("a_server_with_old_algorithms_only", extra) else { return };
        let known = line("", sshd.port, &sshd.ed25519);
        let error = sshd.connect(&known, &sshd.client).await.err().unwrap();
        assert!(matches!(error, SshError::NoCommon { .. }) && error.to_string().contains(names), "{error}");
        let target = SshTarget { legacy_algorithms: true, ..sshd.target() };
        let key: SecretString = sshd.client.to_openssh(LineEnding::LF).unwrap().to_string().into();
        let client = SshClient::connect(&target, DEADLINES, &key, KnownHosts::parse(&known)).await;
        assert_eq!(client.unwrap_or_else(|error| panic!("{extra}: {error}")).run("true").await.unwrap().status, 0);
    }
}

/// Proves: D8
#[tokio::test]
async fn openssh_refuses_a_stranger_and_the_key_is_named() {
    let Some(sshd) = start("openssh_refuses_a_stranger_and_the_key_is_named", "") else { return };
    let stranger = PrivateKey::random(&mut rand::rng(), Algorithm::Ed25519).unwrap();
    let error = sshd.connect(&line("", sshd.port, &sshd.ed25519), &stranger).await.err().unwrap();
    let SshError::AuthFailed { key, user, .. } = &error else { panic!("{error}") };
    assert_eq!(user, &sshd.user);
    assert!(key.contains("ssh-ed25519 SHA256:"), "{error}");
}

/// Proves: D6, D7
#[tokio::test]
async fn files_appear_whole_on_openssh_and_commands_tell_their_end() {
    let Some(sshd) = start("files_appear_whole_on_openssh", "Subsystem sftp internal-sftp") else { return };
    let client = sshd.connected().await;
    let path = sshd.path("it's an entry.conf");
    let sftp = client.sftp().await.unwrap();
    assert_eq!(client.sha256(&path).await.unwrap(), None);
    assert_eq!(sftp.read(&path, 1000).await.unwrap(), None);

    let large: Vec<u8> = (0..100_000u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
    for content in [&b"first\n"[..], &large, b""] {
        sftp.write(&path, content).await.unwrap();
        assert_eq!(sftp.read(&path, 200_000).await.unwrap().as_deref(), Some(content));
        let digest = client.sha256(&path).await.unwrap().unwrap();
        let expected: String =
            <sha2::Sha256 as sha2::Digest>::digest(content).iter().map(|b| format!("{b:02x}")).collect();
        assert_eq!(digest, expected);
    }
    use std::os::unix::fs::PermissionsExt;
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o640)).unwrap();
    sftp.write(&path, b"again").await.unwrap();
    assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o640);
    assert!(matches!(sftp.read(&path, 3).await, Err(SshError::Transfer { .. })));
    let leftovers: Vec<_> = std::fs::read_dir(sshd.folder.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name.starts_with('.'))
        .collect();
    assert!(leftovers.is_empty(), "{leftovers:?}");

    let error = sftp.write("/proc/no/such/folder/x", b"x").await.unwrap_err();
    assert!(matches!(error, SshError::Transfer { .. }), "{error}");
    assert!(sftp.remove(&path).await.unwrap());
    assert!(!sftp.remove(&path).await.unwrap());

    let ended = client.run("echo out; echo err >&2; exit 3").await.unwrap();
    assert_eq!((ended.status, ended.stdout.as_slice(), ended.stderr.as_slice()), (3, &b"out\n"[..], &b"err\n"[..]));
    assert_eq!(ended.said(), "err");
    let flood = client.run("head -c 300000 /dev/zero").await.unwrap();
    assert!(flood.truncated && flood.status == 0 && flood.stdout.len() == 65536);
    let killed = client.run("kill -9 $$").await.unwrap_err();
    assert!(matches!(killed, SshError::Command { .. }), "{killed}");
}

#[tokio::test]
async fn a_server_without_sftp_is_told_apart_from_a_failed_transfer() {
    let Some(sshd) = start("a_server_without_sftp_is_told_apart", "") else { return };
    let client = sshd.connected().await;
    let error = client.sftp().await.err().unwrap();
    assert!(matches!(error, SshError::SftpMissing { .. }), "{error}");
    assert_eq!(client.run("true").await.unwrap().status, 0);
}

#[tokio::test]
async fn a_forced_command_that_is_no_sftp_server_is_sftp_missing() {
    let Some(sshd) = start("a_forced_command", "Subsystem sftp internal-sftp\nForceCommand true") else { return };
    let error = sshd.connected().await.sftp().await.err().unwrap();
    assert!(matches!(error, SshError::SftpMissing { .. }), "{error}");
}

/// Proves: D5
#[tokio::test]
async fn a_command_that_hangs_on_openssh_ends_in_its_own_deadline() {
    let Some(sshd) = start("a_command_that_hangs", "") else { return };
    let target = sshd.target();
    let key: SecretString = sshd.client.to_openssh(LineEnding::LF).unwrap().to_string().into();
    let deadlines = Deadlines { command: Duration::from_millis(1500), ..DEADLINES };
    let known_hosts = KnownHosts::parse(&line("", sshd.port, &sshd.ed25519));
    let client = SshClient::connect(&target, deadlines, &key, known_hosts).await.unwrap();
    let error = client.run("sleep 30").await.unwrap_err();
    assert_eq!(error.to_string(), "the command 'sleep 30' did not end in 1.5 s");
    assert_eq!(client.run("true").await.unwrap().status, 0, "the connection is still of use");
}

/// The activity over OpenSSH: the service is a script that counts its restarts and refuses an entry on demand.
///
/// Proves: D2, D3, D4, D6, D7
#[tokio::test]
async fn an_entry_is_served_over_openssh_with_one_restart_and_put_back_where_it_fails() {
    let Some(sshd) = start("an_entry_is_served_over_openssh", "Subsystem sftp internal-sftp") else { return };
    let place = sshd.folder.path();
    let hosts = place.join("hosts.d");
    let restarts = || std::fs::read_to_string(place.join("restarts")).unwrap_or_default().lines().count();
    let files = || {
        let mut names: Vec<String> =
            std::fs::read_dir(&hosts).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    };
    let config = format!(
        "[netbox]\nurl = \"http://127.0.0.1:9\"\ntoken = \"env:NOT_USED\"\n[vault]\nkind = \"file\"\npath = \"{0}/vault.toml\"\n\
         [sites.osl1.dhcp]\nhost = \"127.0.0.1\"\nport = {1}\nuser = \"{2}\"\nserver = \"kea\"\ndirectory = \"{0}/hosts.d\"\n\
         restart = \"echo restarted >> {0}/restarts; test ! -e {0}/refuse || {{ rm {0}/refuse; echo no subnet >&2; exit 1; }}\"\n\
         validate = \"test -e {0}/restarts\"\n",
        place.display(),
        sshd.port,
        sshd.user,
    );
    let settings = muster::config::parse(&config, "config.toml").unwrap_or_else(|errors| panic!("{errors}"));
    let known_hosts = line("", sshd.port, &sshd.ed25519);
    let key = sshd.client.to_openssh(LineEnding::LF).unwrap();
    let vault = format!("[ssh-config-dhcp]\nprivate_key = '''\n{}'''\nknown_hosts = '''\n{known_hosts}'''\n", *key);
    write_private(&place.join("vault.toml"), &vault);
    let dhcp = settings.sites["osl1"].dhcp.clone().unwrap();
    let (cx, _) = support::context(settings, place);
    let entry = |address: &str| Entry {
        name: "gpu-b07-37".into(),
        mac: "02:aa:00:00:00:02".parse().unwrap(),
        address: address.parse().unwrap(),
    };

    let out = serve_entry(&cx, &dhcp, &entry("10.10.8.42")).await.unwrap();
    assert!(out.changed && restarts() == 1, "the folder is made, too");
    let served = std::fs::read_to_string(hosts.join("gpu-b07-37.json")).unwrap();
    assert!(served.contains("10.10.8.42"), "{served}");
    assert!(!serve_entry(&cx, &dhcp, &entry("10.10.8.42")).await.unwrap().changed);
    assert_eq!((restarts(), files()), (1, vec!["gpu-b07-37.json".to_owned()]));

    std::fs::write(place.join("refuse"), "").unwrap();
    let failure = serve_entry(&cx, &dhcp, &entry("10.10.8.43")).await.unwrap_err();
    assert_eq!(failure.code, FailureCode::DhcpValidationFailed);
    assert!(failure.message.contains("no subnet") && failure.message.contains("runs again"), "{failure}");
    assert_eq!(std::fs::read_to_string(hosts.join("gpu-b07-37.json")).unwrap(), served);
    assert_eq!((restarts(), files().len()), (3, 1));
}

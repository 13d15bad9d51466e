//! A nats-server of its own for a test.

use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use muster::clients::vault::Vault;
use muster::config::settings::{NatsAuth, NatsSettings, SecretRef, Trust, VaultKind, VaultSettings};

const PLACES: [&str; 3] = ["/usr/sbin/nats-server", "/usr/bin/nats-server", "/usr/local/bin/nats-server"];
pub const PATIENCE: Duration = Duration::from_secs(20);

/// A server that ends with the test.
pub struct Server {
    child: Child,
    pub port: u16,
    pub folder: tempfile::TempDir,
}

impl Drop for Server {
    fn drop(&mut self) {
        self.end();
    }
}

impl Server {
    /// `None`, with a printed line, where the machine has none.
    pub fn start(configuration: &str) -> Option<Server> {
        let Some(program) = PLACES.into_iter().find(|place| Path::new(place).exists()) else {
            let missing = "no nats-server (install the Debian package nats-server)";
            assert!(std::env::var_os("MUSTER_MUST_RUN").is_none(), "could not run: {missing}");
            println!("skipped: {missing}");
            return None;
        };
        let folder = tempfile::tempdir().unwrap();
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        std::fs::write(folder.path().join("nats.conf"), configuration).unwrap();
        let child = spawn(program, folder.path(), port);
        let server = Server { child, port, folder };
        server.wait();
        Some(server)
    }

    pub fn again(&mut self) {
        let program = PLACES.into_iter().find(|place| Path::new(place).exists()).unwrap();
        self.child = spawn(program, self.folder.path(), self.port);
        self.wait();
    }

    pub fn end(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }

    fn wait(&self) {
        let began = Instant::now();
        while std::net::TcpStream::connect(("127.0.0.1", self.port)).is_err() {
            let log = std::fs::read_to_string(self.folder.path().join("log")).unwrap_or_default();
            assert!(began.elapsed() < PATIENCE, "nats-server does not answer: {log}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    pub fn settings(&self) -> NatsSettings {
        NatsSettings {
            servers: vec![format!("nats://127.0.0.1:{}", self.port).parse().unwrap()],
            auth: NatsAuth::None,
            trust: Trust::System,
            prefix: "muster".into(),
            publish_devices: true,
            publish_cables: true,
            cable_sites: vec!["osl1".into()],
            queue: 1000,
        }
    }

    /// Listens to everything.
    pub async fn listen(&self) -> async_nats::Subscriber {
        let client = async_nats::connect(format!("nats://127.0.0.1:{}", self.port)).await.unwrap();
        let all = client.subscribe("muster.>").await.unwrap();
        client.flush().await.unwrap();
        all
    }
}

fn spawn(program: &str, folder: &Path, port: u16) -> Child {
    let mut command = Command::new(program);
    command.args(["-a", "127.0.0.1", "-p", &port.to_string(), "-l", "log", "-c", "nats.conf"]).current_dir(folder);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
}

pub fn vault() -> Vault {
    let text = |text: &str| text.to_owned();
    Vault::new(VaultSettings {
        kind: VaultKind::Env,
        dhcp_item: text("d"),
        bmc_item: text("{host}"),
        ipmi_item: text("i"),
        factory_item: "bmc-factory-{vendor}".into(),
    })
}

pub fn secret(folder: &Path, name: &str, content: &str) -> SecretRef {
    use std::os::unix::fs::PermissionsExt;
    let path = folder.join(name);
    std::fs::write(&path, content).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
    SecretRef::File(path)
}

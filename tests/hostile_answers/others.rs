//! Peers that do not speak HTTP: NATS, SSH with its commands and files, IPMI, the program of a vault.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use muster::clients::ipmi::{Login, Patience, Privilege, prove};
use muster::clients::nats::{Link, Nats};
use muster::clients::ssh::known_hosts::KnownHosts;
use muster::clients::ssh::{Deadlines, SshClient, SshError, SshTarget};
use muster::clients::vault::Vault;
use muster::config::settings::{NatsAuth, NatsSettings, OpVault, SecretRef, Trust, VaultKind, VaultSettings};
use russh::keys::{Algorithm, PrivateKey};
use russh::server::{self, Auth, Msg, Session};
use russh::{Channel, ChannelId};

use super::{PATIENCE, SECRET, Tried, Work, told, tried};

/// All of them, in a fixed order.
pub async fn all(folder: &Path) -> Vec<Tried> {
    let mut cases: Vec<(String, Work)> = Vec::new();
    cases.extend(nats(folder));
    cases.extend(ssh_before_login());
    cases.extend(ssh_after_login());
    cases.extend(ipmi());
    cases.extend(programs(folder));
    let tries = cases.into_iter().map(|(what, work)| tried(what, work));
    futures::stream::iter(tries).buffered(8).collect().await
}

type Peer = fn(&mut TcpStream) -> std::io::Result<()>;

fn forever(stream: &mut TcpStream, piece: &[u8]) -> std::io::Result<()> {
    loop {
        stream.write_all(piece)?;
    }
}

/// The same, and the machine is left to others: the library looks through all that it has gathered at each piece that comes.
fn on_and_on(stream: &mut TcpStream, piece: &[u8]) -> std::io::Result<()> {
    loop {
        stream.write_all(piece)?;
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Says nothing, until the other side goes.
fn silent(stream: &mut TcpStream) -> std::io::Result<()> {
    std::io::copy(stream, &mut std::io::sink()).map(drop)
}

fn garbage(stream: &mut TcpStream) -> std::io::Result<()> {
    let noise: Vec<u8> = (0..65536_u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    stream.write_all(&noise)
}

fn drip(stream: &mut TcpStream, text: &[u8]) -> std::io::Result<()> {
    for byte in text.iter().cycle() {
        stream.write_all(&[*byte])?;
        std::thread::sleep(Duration::from_millis(20));
    }
    Ok(())
}

fn serve(peer: Peer) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().map_while(Result::ok) {
            std::thread::spawn(move || peer(&mut stream).ok());
        }
    });
    address
}

const INFO: &str = "INFO {\"server_id\":\"N\",\"server_name\":\"N\",\"version\":\"2.10.0\",\"go\":\"go\",\"proto\":1,\"max_payload\":1048576,\"host\":\"h\",\"port\":4222,\"client_id\":1}\r\n";

/// Up to the client's CONNECT and PING.
fn logged_in(stream: &mut TcpStream) -> std::io::Result<()> {
    stream.write_all(INFO.as_bytes())?;
    let mut text = Vec::new();
    let mut byte = [0; 1];
    while !text.ends_with(b"PING\r\n") {
        if stream.read(&mut byte)? == 0 {
            return Err(std::io::ErrorKind::UnexpectedEof.into());
        }
        text.push(byte[0]);
    }
    Ok(())
}

fn nats(folder: &Path) -> Vec<(String, Work)> {
    let peers: &[(&str, Peer)] = &[
        ("Silent", silent),
        ("Garbage", garbage),
        ("Drip", |s| drip(s, b"INFO ")),
        ("EndlessLine", |s| on_and_on(s, &[b'I'; 65536])),
        ("EndlessInfo", |s| {
            s.write_all(b"INFO {\"server_id\":\"")?;
            on_and_on(s, &[b'x'; 65536])
        }),
        ("DeepInfo", |s| {
            s.write_all(format!("INFO {}\r\n", "{\"a\":".repeat(300_000)).as_bytes())?;
            silent(s)
        }),
        ("WrongInfo", |s| {
            s.write_all(b"INFO {\"server_id\":[],\"max_payload\":-1}\r\n")?;
            silent(s)
        }),
        ("Refusal", |s| {
            logged_in(s)?;
            s.write_all("-ERR '\u{1b}[2JAuthorization Violation'\r\n".as_bytes())?;
            silent(s)
        }),
        ("Closes", |s| logged_in(s)),
        ("EndlessPings", |s| {
            logged_in(s)?;
            on_and_on(s, "PING\r\n".repeat(1000).as_bytes())
        }),
        ("HugeMessage", |s| {
            logged_in(s)?;
            s.write_all(b"PONG\r\nMSG a 1 999999999999\r\n")?;
            on_and_on(s, &[b'x'; 65536])
        }),
        ("EndlessLineBehindLogin", |s| {
            logged_in(s)?;
            s.write_all(b"PONG\r\n")?;
            on_and_on(s, &[b'x'; 65536])
        }),
    ];
    let secret = folder.join("secret");
    peers
        .iter()
        .map(|(name, peer)| {
            let (address, secret) = (serve(*peer), secret.clone());
            let work: Work = Box::pin(async move {
                let settings = NatsSettings {
                    servers: vec![format!("nats://{address}").parse().unwrap()],
                    auth: NatsAuth::User { username: "muster".into(), password: SecretRef::File(secret) },
                    trust: Trust::System,
                    prefix: "muster".into(),
                    publish_devices: true,
                    publish_cables: false,
                    cable_sites: vec![],
                    queue: 10,
                };
                let vault = vault(VaultKind::Env);
                let nats = Nats::connect_within(&settings, &vault, PATIENCE).await.map_err(|e| super::class(&e))?;
                // What goes on behind the login must not fill the memory, however long the connection stands.
                let mut state = nats.link();
                tokio::time::timeout(Duration::from_secs(20), state.wait_for(|link| *link != Link::Up)).await.ok();
                let link = nats.link().borrow().clone();
                match nats.publish("muster.x".into(), b"{}".to_vec()).await {
                    Ok(()) if matches!(link, Link::Up) => Ok("goes on".to_owned()),
                    outcome => Ok(format!("given up: {link:?}, {outcome:?}")),
                }
            });
            (format!("nats: {name}"), work)
        })
        .collect()
}

fn vault(kind: VaultKind) -> Vault {
    Vault::new(VaultSettings {
        kind,
        dhcp_item: "d".into(),
        bmc_item: "b".into(),
        ipmi_item: "i".into(),
        factory_item: "f".into(),
    })
}

const STEPS: Deadlines = Deadlines { connect: PATIENCE, login: PATIENCE, command: PATIENCE, transfer: PATIENCE };

fn target(address: SocketAddr) -> SshTarget {
    SshTarget { host: address.ip().to_string(), port: address.port(), user: "muster".into(), legacy_algorithms: false }
}

fn new_key() -> PrivateKey {
    PrivateKey::random(&mut rand::rng(), Algorithm::Ed25519).unwrap()
}

fn text_of(key: &PrivateKey) -> secrecy::SecretString {
    key.to_openssh(Default::default()).unwrap().as_str().to_owned().into()
}

fn ssh_before_login() -> Vec<(String, Work)> {
    let peers: &[(&str, Peer)] = &[
        ("Silent", silent),
        ("Garbage", garbage),
        ("DripBanner", |s| drip(s, b"SSH-2.0-x")),
        ("EndlessBanner", |s| forever(s, &[b'x'; 65536])),
        ("EndlessBannerLines", |s| forever(s, "welcome\r\n".repeat(1000).as_bytes())),
        ("NoSsh", |s| {
            s.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n")?;
            silent(s)
        }),
        ("OldSsh", |s| {
            s.write_all(b"SSH-1.5-old\r\n")?;
            silent(s)
        }),
        ("HugePacket", |s| {
            s.write_all(b"SSH-2.0-x\r\n\x7f\xff\xff\xff")?;
            forever(s, &[0; 65536])
        }),
        ("ZeroPackets", |s| {
            s.write_all(b"SSH-2.0-x\r\n")?;
            forever(s, &[0; 65536])
        }),
        ("EndlessIgnores", |s| {
            s.write_all(b"SSH-2.0-x\r\n")?;
            // SSH_MSG_IGNORE before any key exchange, well formed.
            forever(s, &b"\x00\x00\x00\x0c\x0a\x02\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00".repeat(500))
        }),
        ("CutInExchange", |s| s.write_all(b"SSH-2.0-x\r\n\x00\x00\x01\x00\x08\x14")),
    ];
    peers
        .iter()
        .map(|(name, peer)| {
            let address = serve(*peer);
            let work: Work = Box::pin(async move {
                let key = text_of(&new_key());
                told(SshClient::connect(&target(address), STEPS, &key, KnownHosts::parse("")).await)
            });
            (format!("ssh: {name}"), work)
        })
        .collect()
}

/// How a server is hostile that muster has logged in at.
#[derive(Debug, Clone, Copy)]
enum Inside {
    EndlessOutput,
    EndlessErrors,
    NoStatus,
    NeverEnds,
    SftpGarbage,
    SftpHugePacket,
    SftpEndless,
    SftpSilent,
    SftpWrongAnswers,
    SftpEndlessFile,
}

#[derive(Clone)]
struct Host(Inside);

impl server::Handler for Host {
    type Error = russh::Error;

    async fn auth_publickey(&mut self, _: &str, _: server::VerifiedPublicKey<'_>) -> Result<Auth, russh::Error> {
        Ok(Auth::Accept)
    }

    async fn channel_open_session(
        &mut self,
        channel: Channel<Msg>,
        reply: server::ChannelOpenHandle,
        _: &mut Session,
    ) -> Result<(), russh::Error> {
        reply.accept().await;
        if matches!(
            self.0,
            Inside::SftpGarbage
                | Inside::SftpHugePacket
                | Inside::SftpEndless
                | Inside::SftpSilent
                | Inside::SftpWrongAnswers
                | Inside::SftpEndlessFile
        ) {
            tokio::spawn(sftp(self.0, channel));
        }
        Ok(())
    }

    async fn exec_request(&mut self, id: ChannelId, _: &[u8], session: &mut Session) -> Result<(), russh::Error> {
        session.channel_success(id)?;
        let (handle, kind) = (session.handle(), self.0);
        tokio::spawn(async move {
            let piece = vec![b'x'; 32 * 1024];
            loop {
                match kind {
                    Inside::EndlessOutput if handle.data(id, piece.clone()).await.is_ok() => {}
                    Inside::EndlessErrors if handle.extended_data(id, 1, piece.clone()).await.is_ok() => {}
                    Inside::NoStatus => {
                        handle.eof(id).await.ok();
                        handle.close(id).await.ok();
                        return;
                    }
                    _ => return,
                }
            }
        });
        Ok(())
    }

    async fn subsystem_request(&mut self, id: ChannelId, _: &str, session: &mut Session) -> Result<(), russh::Error> {
        session.channel_success(id)
    }
}

/// An SFTP server's side of a channel.
async fn sftp(kind: Inside, channel: Channel<Msg>) {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let mut stream = channel.into_stream();
    let packet = |kind: u8, body: &[u8]| {
        let mut packet = (body.len() as u32 + 1).to_be_bytes().to_vec();
        packet.push(kind);
        packet.extend_from_slice(body);
        packet
    };
    let mut asked = vec![0; 4096];
    let work = async {
        if stream.read(&mut asked).await? == 0 {
            return Ok(());
        }
        match kind {
            Inside::SftpGarbage => stream.write_all(&b"welcome to this server, ".repeat(100)).await?,
            Inside::SftpHugePacket => {
                stream.write_all(&[0x7f, 0xff, 0xff, 0xff, 2]).await?;
                loop {
                    stream.write_all(&[0; 32768]).await?;
                }
            }
            Inside::SftpEndless => loop {
                stream.write_all(&packet(2, &[0, 0, 0, 3]).repeat(500)).await?;
            },
            Inside::SftpSilent => {}
            // A version, and then to every question an answer of another kind or without its content.
            _ => {
                stream.write_all(&packet(2, &[0, 0, 0, 3])).await?;
                loop {
                    let read = stream.read(&mut asked).await?;
                    if read < 9 {
                        break;
                    }
                    let (what, id) = (asked[4], &asked[5..9].to_vec());
                    let answer = match (kind, what) {
                        // OPEN: a handle. READ: more of the file, always.
                        (Inside::SftpEndlessFile, 3) => packet(102, &[id.as_slice(), &[0, 0, 0, 1, b'h']].concat()),
                        (Inside::SftpEndlessFile, 5) => {
                            let content = vec![b'x'; 32 * 1024];
                            packet(103, &[id.as_slice(), &(content.len() as u32).to_be_bytes(), &content].concat())
                        }
                        (Inside::SftpEndlessFile, _) => packet(101, &[id.as_slice(), &[0; 12]].concat()),
                        _ => packet(104, &[id.as_slice(), &[0xff; 8]].concat()),
                    };
                    stream.write_all(&answer).await?;
                }
            }
        }
        // Until the client goes.
        while stream.read(&mut asked).await? > 0 {}
        Ok::<_, std::io::Error>(())
    };
    work.await.ok();
}

fn ssh_after_login() -> Vec<(String, Work)> {
    use Inside::*;
    let kinds = [
        EndlessOutput,
        EndlessErrors,
        NoStatus,
        NeverEnds,
        SftpGarbage,
        SftpHugePacket,
        SftpEndless,
        SftpSilent,
        SftpWrongAnswers,
        SftpEndlessFile,
    ];
    kinds
        .into_iter()
        .map(|kind| {
            let work: Work = Box::pin(async move {
                let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
                let address = listener.local_addr().unwrap();
                let host_key = new_key();
                let public = host_key.public_key().to_openssh().unwrap();
                let config = server::Config { keys: vec![host_key], ..server::Config::default() };
                tokio::spawn(async move {
                    let (stream, _) = listener.accept().await.unwrap();
                    if let Ok(running) = server::run_stream(Arc::new(config), stream, Host(kind)).await {
                        running.await.ok(); // it ends with its client
                    }
                });
                let known = KnownHosts::parse(&format!("[{}]:{} {public}\n", address.ip(), address.port()));
                let client = SshClient::connect(&target(address), STEPS, &text_of(&new_key()), known).await;
                let client = client.map_err(|error| super::class(&error))?;
                let outcome: Result<String, SshError> = async {
                    Ok(match kind {
                        EndlessOutput | EndlessErrors | NoStatus | NeverEnds => {
                            format!("{:?}", client.run("x").await?.status)
                        }
                        _ => {
                            let sftp = client.sftp().await?;
                            let file = sftp.read("/etc/x", 1024 * 1024).await?;
                            format!("{:?} bytes", file.map(|content| content.len()))
                        }
                    })
                }
                .await;
                outcome.map_err(|error| super::class(&error))
            });
            (format!("ssh behind the login: {kind:?}"), work)
        })
        .collect()
}

fn ipmi() -> Vec<(String, Work)> {
    /// What is sent for each datagram that comes.
    type Reply = fn(&[u8]) -> Vec<Vec<u8>>;
    let peers: &[(&str, Reply)] = &[
        ("Silent", |_| vec![]),
        ("Echo", |asked| vec![asked.to_vec()]),
        ("Empty", |_| vec![vec![]]),
        ("Zeroes", |_| vec![vec![0; 1024]]),
        ("Ones", |_| vec![vec![0xff; 1024]]),
        ("Huge", |_| vec![vec![6; 60_000]]),
        ("Flood", |asked| vec![asked[..asked.len() / 2].to_vec(); 2000]),
        ("LongLengths", |_| {
            // RMCP+, Open Session Response, whose payload is said to be 65535 bytes.
            vec![[&[6, 0, 0xff, 7, 6, 0x11][..], &[0; 8], &[0xff, 0xff], &[0; 40]].concat()]
        }),
    ];
    peers
        .iter()
        .map(|(name, reply)| {
            let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
            let (to, reply) = (socket.local_addr().unwrap(), *reply);
            std::thread::spawn(move || {
                socket.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
                let mut buffer = [0; 4096];
                while let Ok((length, from)) = socket.recv_from(&mut buffer) {
                    for datagram in reply(&buffer[..length]) {
                        socket.send_to(&datagram, from).ok();
                    }
                }
            });
            let work: Work = Box::pin(async move {
                let login = Login { username: "root".into(), password: SECRET[..16].to_owned().into(), bmc_key: None };
                let patience =
                    Patience { first: Duration::from_millis(20), deadline: PATIENCE, sessions: Duration::ZERO };
                told(prove(to, &login, Privilege::Administrator, &patience).await)
            });
            (format!("ipmi: {name}"), work)
        })
        .collect()
}

fn programs(folder: &Path) -> Vec<(String, Work)> {
    let scripts = [
        ("Hangs", "sleep 600"),
        ("HangsWithClosedPipes", "exec >&- 2>&- <&-; sleep 600"),
        ("EndlessOutput", "cat /dev/zero"),
        ("EndlessErrors", "cat /dev/zero >&2"),
        ("Nothing", "exit 0"),
        ("Deep", "head -c 200000 /dev/zero | tr '\\0' '['"),
        ("NotUtf8", "printf '{\"id\": \"\\377\\376\"}'"),
        ("WrongTypes", "echo '{\"id\": 1, \"title\": [], \"fields\": {}}'"),
        ("Dies", "kill -9 $$"),
        ("Escapes", "printf '[ERROR] \\033[2J\\033]0;x\\007' >&2; exit 1"),
    ];
    scripts
        .into_iter()
        .map(|(name, script)| {
            let program = folder.join(name);
            std::fs::write(&program, format!("#!/bin/sh\n{script}\n")).unwrap();
            std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
            let work: Work = Box::pin(async move {
                let settings = OpVault { program, vault: "x".into(), account: None, timeout: PATIENCE };
                told(vault(VaultKind::Op(settings)).ask("item", "password").await)
            });
            (format!("op: {name}"), work)
        })
        .collect()
}

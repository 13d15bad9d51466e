//! A server over HTTP that answers as no server should, each time in one way.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Ways to answer. Every one ends when the client goes away.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    // -- the body
    /// Blanks without an end.
    EndlessBody,
    /// The same in chunks of one byte.
    EndlessChunks,
    /// It says that more comes than there is memory.
    HugeLength,
    CutBody,
    DeepArrays,
    DeepObjects,
    /// Small on the wire, six hundred times as much in memory.
    ManyObjects,
    ManyNumbers,
    /// As heavy as is still taken.
    JustLight,
    /// A quarter of a gigabyte of blanks in a megabyte.
    GzipBomb,
    /// The same, in layers.
    GzipTwice,
    GzipBroken,
    NotUtf8,
    /// Numbers beyond all types.
    HugeNumbers,
    Html,
    Empty,
    // -- other types than the API's
    Null,
    Number,
    Text,
    List,
    NumberEverywhere,
    TextEverywhere,
    ListEverywhere,
    ObjectEverywhere,
    // -- the way
    RedirectElsewhere,
    RedirectBySlashes,
    RedirectToItself,
    RedirectToFile,
    /// Pages whose next one is never the last.
    EndlessPages,
    // -- time
    Silent,
    DripHead,
    DripBody,
    // -- the head
    ManyHeaders,
    HugeHeader,
    EndlessHead,
    EndlessContinue,
    SwitchesProtocol,
    NoReason,
    StatusOutOfRange,
    TwoLengths,
    NoHttp,
    OldHttp,
    Garbage,
    Reset,
    /// A refusal full of what a terminal would act on.
    Escapes,
    /// A refusal that is as long as a book.
    LongRefusal,
}

use Kind::*;

pub const ALL: &[Kind] = &[
    EndlessBody,
    EndlessChunks,
    HugeLength,
    CutBody,
    DeepArrays,
    DeepObjects,
    ManyObjects,
    ManyNumbers,
    JustLight,
    GzipBomb,
    GzipTwice,
    GzipBroken,
    NotUtf8,
    HugeNumbers,
    Html,
    Empty,
    Null,
    Number,
    Text,
    List,
    NumberEverywhere,
    TextEverywhere,
    ListEverywhere,
    ObjectEverywhere,
    RedirectElsewhere,
    RedirectBySlashes,
    RedirectToItself,
    RedirectToFile,
    EndlessPages,
    Silent,
    DripHead,
    DripBody,
    ManyHeaders,
    HugeHeader,
    EndlessHead,
    EndlessContinue,
    SwitchesProtocol,
    NoReason,
    StatusOutOfRange,
    TwoLengths,
    NoHttp,
    OldHttp,
    Garbage,
    Reset,
    Escapes,
    LongRefusal,
];

/// Those that only the clock ends.
pub const SLOW: &[Kind] = &[EndlessChunks, Silent, DripHead, DripBody, EndlessContinue];

/// Those that are about memory.
pub const HEAVY: &[Kind] = &[
    EndlessBody,
    HugeLength,
    DeepArrays,
    DeepObjects,
    ManyObjects,
    ManyNumbers,
    JustLight,
    GzipBomb,
    GzipTwice,
    HugeHeader,
    EndlessHead,
    LongRefusal,
];

/// What a client needs before it comes to what is tried: the answer to a path, where it is to be a good one.
pub type Good = fn(&str) -> Option<String>;
/// The nth page of a list without an end, as JSON.
pub type Page = fn(&str, usize) -> String;

pub struct Server {
    pub url: String,
    pub asked: Arc<AtomicUsize>,
    /// Heads of requests that came where a redirect led to.
    pub lured: Arc<Mutex<Vec<String>>>,
    stop: Arc<AtomicBool>,
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::SeqCst);
    }
}

impl Server {
    pub fn start(kind: Kind, good: Good, page: Page) -> Server {
        let lured = Arc::new(Mutex::new(Vec::new()));
        let trap = TcpListener::bind("127.0.0.1:0").unwrap();
        let elsewhere = trap.local_addr().unwrap().to_string();
        let kept = Arc::clone(&lured);
        std::thread::spawn(move || {
            for mut stream in trap.incoming().map_while(Result::ok) {
                let head = head(&mut stream).unwrap_or_default();
                kept.lock().unwrap().push(head);
            }
        });
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let (asked, stop) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicBool::new(false)));
        let (count, stopped) = (Arc::clone(&asked), Arc::clone(&stop));
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                if stopped.load(Ordering::SeqCst) {
                    return;
                }
                let (count, stopped, elsewhere) = (Arc::clone(&count), Arc::clone(&stopped), elsewhere.clone());
                std::thread::spawn(move || {
                    stream.set_nodelay(true).ok();
                    let mut wire = Wire { stream, stopped, own: address.to_string(), elsewhere };
                    while let Ok(head) = head(&mut wire.stream) {
                        let path = head.split(' ').nth(1).unwrap_or("/").to_owned();
                        let n = count.fetch_add(1, Ordering::SeqCst);
                        let answered = match good(&path) {
                            Some(body) => wire.json(&body),
                            None => wire.answer(kind, &path, n, page),
                        };
                        if answered.is_err() {
                            return;
                        }
                    }
                });
            }
        });
        Server { url: format!("http://{address}"), asked, lured, stop }
    }
}

/// A request's head. Its body is read with it, and left.
fn head(stream: &mut TcpStream) -> std::io::Result<String> {
    stream.set_read_timeout(Some(Duration::from_secs(20)))?;
    let mut text = Vec::new();
    let mut byte = [0; 1];
    while !text.ends_with(b"\r\n\r\n") {
        if stream.read(&mut byte)? == 0 || text.len() > 1 << 16 {
            return Err(std::io::ErrorKind::UnexpectedEof.into());
        }
        text.push(byte[0]);
    }
    let text = String::from_utf8_lossy(&text).into_owned();
    let length = text.lines().find_map(|line| line.to_ascii_lowercase().strip_prefix("content-length: ")?.parse().ok());
    let mut body = vec![0; length.unwrap_or(0)];
    stream.read_exact(&mut body)?;
    Ok(text)
}

struct Wire {
    stream: TcpStream,
    stopped: Arc<AtomicBool>,
    own: String,
    elsewhere: String,
}

const JSON: &str = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nx-openstack-ironic-api-version: 1.95\r\nx-subject-token: t0ken-of-nobody\r\n";

impl Wire {
    fn put(&mut self, bytes: impl AsRef<[u8]>) -> std::io::Result<()> {
        if self.stopped.load(Ordering::SeqCst) {
            return Err(std::io::ErrorKind::BrokenPipe.into());
        }
        self.stream.write_all(bytes.as_ref())
    }

    fn json(&mut self, body: &str) -> std::io::Result<()> {
        self.put(format!("{JSON}content-length: {}\r\n\r\n{body}", body.len()))
    }

    /// Without an end, and without taking the machine from the others.
    fn on_and_on(&mut self, piece: &[u8]) -> std::io::Result<()> {
        loop {
            self.put(piece)?;
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    fn forever(&mut self, piece: &[u8]) -> std::io::Result<()> {
        loop {
            self.put(piece)?;
        }
    }

    fn drip(&mut self, text: &str) -> std::io::Result<()> {
        for byte in text.bytes().cycle() {
            self.put([byte])?;
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(())
    }

    fn redirect(&mut self, to: &str) -> std::io::Result<()> {
        self.put(format!("HTTP/1.1 302 Found\r\nlocation: {to}\r\ncontent-length: 0\r\n\r\n"))
    }

    fn gzip(&mut self, body: &[u8]) -> std::io::Result<()> {
        self.put(format!("{JSON}content-encoding: gzip\r\ncontent-length: {}\r\n\r\n", body.len()))?;
        self.put(body)
    }

    fn answer(&mut self, kind: Kind, path: &str, n: usize, page: Page) -> std::io::Result<()> {
        let end = Err(std::io::ErrorKind::UnexpectedEof.into());
        let deep = 300_000;
        match kind {
            EndlessBody => {
                self.put(format!("{JSON}connection: close\r\n\r\n"))?;
                self.forever(&[b' '; 65536])
            }
            EndlessChunks => {
                self.put(format!("{JSON}transfer-encoding: chunked\r\n\r\n"))?;
                self.on_and_on("1\r\n \r\n".repeat(1024).as_bytes())
            }
            HugeLength => {
                self.put(format!("{JSON}content-length: 9223372036854775807\r\n\r\n"))?;
                self.forever(&[b'['; 65536])
            }
            CutBody => {
                self.put(format!("{JSON}content-length: 1000\r\n\r\n{{\"results\": ["))?;
                end
            }
            DeepArrays => self.json(&"[".repeat(deep)),
            DeepObjects => self.json(&format!("{}1{}", "{\"a\":".repeat(deep), "}".repeat(deep))),
            ManyObjects => self.json(&format!("{{\"results\": [{}0]}}", "{\"\":0},".repeat(1_000_000))),
            ManyNumbers => self.json(&format!("{{\"results\": [{}0]}}", "0,".repeat(3_500_000))),
            JustLight => self.json(&format!("{{\"x\": [{}0]}}", "{\"\":0},".repeat(170_000))),
            GzipBomb => self.gzip(&bomb()),
            GzipTwice => self.gzip(&gzip(&bomb())),
            GzipBroken => self.gzip(&bomb()[..500]),
            NotUtf8 => {
                let body = b"{\"results\": [\"\xff\xfe\", \"\\ud800\"]}";
                self.put(format!("{JSON}content-length: {}\r\n\r\n", body.len()))?;
                self.put(body)
            }
            HugeNumbers => self.json(
                r#"{"count": 1e999999, "id": 99999999999999999999999999, "results": [{"id": -1}], "nodes": [{"uuid": 1e400}]}"#,
            ),
            Html => self.put("HTTP/1.1 200 OK\r\ncontent-type: text/html\r\ncontent-length: 27\r\n\r\n<html><h1>Sign in</h1></html>"),
            Empty => self.json(""),
            Null => self.json("null"),
            Number => self.json("42"),
            Text => self.json("\"text\""),
            List => self.json("[[],{}]"),
            NumberEverywhere => self.json(&everywhere("7")),
            TextEverywhere => self.json(&everywhere("\"x\"")),
            ListEverywhere => self.json(&everywhere("[null]")),
            ObjectEverywhere => self.json(&everywhere("{\"a\": {}}")),
            RedirectElsewhere => self.redirect(&format!("http://{}{path}", self.elsewhere)),
            RedirectBySlashes => self.redirect(&format!("//{}{path}", self.elsewhere)),
            RedirectToItself => self.redirect(&format!("http://{}{path}", self.own)),
            RedirectToFile => self.redirect("file:///etc/passwd"),
            EndlessPages => self.json(&page(&format!("http://{}", self.own), n)),
            Silent => {
                self.stream.read_exact(&mut [0; 1])?;
                Ok(())
            }
            DripHead => self.drip("HTTP/1.1 200 OK\r\nx: y\r\nx: y\r\nx: y\r\nx: y\r\nx: y\r\nx: y\r\nx: y\r\n"),
            DripBody => {
                self.put(format!("{JSON}content-length: 100000\r\n\r\n"))?;
                self.drip(" ")
            }
            ManyHeaders => {
                self.put("HTTP/1.1 200 OK\r\n")?;
                self.put("x: y\r\n".repeat(20_000))?;
                self.put("content-length: 2\r\n\r\n{}")
            }
            HugeHeader => self.put(format!("HTTP/1.1 200 OK\r\nx: {}\r\ncontent-length: 2\r\n\r\n{{}}", "y".repeat(8 << 20))),
            EndlessHead => {
                self.put("HTTP/1.1 200 OK\r\nx: ")?;
                self.forever(&[b'y'; 65536])
            }
            EndlessContinue => self.on_and_on("HTTP/1.1 100 Continue\r\n\r\n".repeat(200).as_bytes()),
            SwitchesProtocol => {
                self.put("HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: x\r\n\r\n")?;
                self.forever(&[0; 4096])
            }
            NoReason => self.put("HTTP/1.1 200\r\ncontent-length: 2\r\n\r\n{}"),
            StatusOutOfRange => self.put("HTTP/1.1 999 \u{1b}[2J\r\ncontent-length: 2\r\n\r\n{}"),
            TwoLengths => self.put("HTTP/1.1 200 OK\r\ncontent-length: 2\r\ncontent-length: 90\r\n\r\n{}"),
            NoHttp => {
                self.put("SSH-2.0-OpenSSH_9.6\r\n")?;
                end
            }
            OldHttp => {
                self.put("{\"results\": []}")?;
                end
            }
            Garbage => {
                let noise: Vec<u8> = (0..65536_u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
                self.put(noise)?;
                end
            }
            Reset => end,
            Escapes => {
                let text = "\u{1b}[2J\u{1b}]0;owned\u{7}\u{202e}evil\u{0}\r\n\u{9b}31m".repeat(50);
                let body = serde_json::json!({"detail": text, "error": {"message": text}, "message": text}).to_string();
                self.put(format!("HTTP/1.1 400 Bad\r\ncontent-length: {}\r\n\r\n{body}", body.len()))
            }
            LongRefusal => {
                let text = "no ".repeat(2 << 20);
                let body = serde_json::json!({"detail": text, "error": {"message": text}, "message": text}).to_string();
                self.put(format!("HTTP/1.1 400 Bad\r\ncontent-length: {}\r\n\r\n{body}", body.len()))
            }
        }
    }
}

/// Every member that any client reads, with a value of the wrong kind.
fn everywhere(value: &str) -> String {
    let names = [
        "count",
        "next",
        "results",
        "id",
        "name",
        "username",
        "permissions",
        "groups",
        "default_version",
        "nodes",
        "uuid",
        "provision_state",
        "Members",
        "@odata.id",
        "Id",
        "RedfishVersion",
        "Systems",
        "Managers",
        "token",
        "title",
        "fields",
        "vault",
        "error",
        "detail",
        "Members@odata.nextLink",
        "driver_info",
        "Oem",
        "Attributes",
    ];
    let members: Vec<String> = names.iter().map(|name| format!("\"{name}\": {value}")).collect();
    format!("{{{}}}", members.join(", "))
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    use flate2::write::GzEncoder;
    let mut encoder = GzEncoder::new(Vec::new(), flate2::Compression::best());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// A quarter of a gigabyte of blanks, compressed once for all.
fn bomb() -> Vec<u8> {
    static BOMB: std::sync::OnceLock<Vec<u8>> = std::sync::OnceLock::new();
    BOMB.get_or_init(|| {
        use flate2::write::GzEncoder;
        let mut encoder = GzEncoder::new(Vec::new(), flate2::Compression::fast());
        let piece = vec![b' '; 1 << 20];
        for _ in 0..256 {
            encoder.write_all(&piece).unwrap();
        }
        encoder.finish().unwrap()
    })
    .clone()
}

//! The DHCP host's files, its service, and the commands that act on them.
//!
//! The service tests and serves as the real ones do: ISC dhcpd minds a name twice but not an address, Kea minds both MAC
//! and address, dnsmasq only the address; a restart with entries that do not pass leaves the service down.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use sha2::{Digest, Sha256};

use crate::domain::mac::Mac;

/// Files by path, and the service over them.
pub(super) struct Service {
    folder: String,
    files: BTreeMap<String, Vec<u8>>,
    folders: BTreeSet<String>,
    /// What is served; `None` while the service is down.
    serving: Option<BTreeMap<Mac, IpAddr>>,
    restarts: u64,
}

/// A command that ended.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Ended {
    pub status: u32,
    pub stdout: String,
    pub stderr: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Isc,
    Kea,
    Dnsmasq,
}

struct Entry {
    file: String,
    kind: Kind,
    mac: Mac,
    address: IpAddr,
    name: String,
}

impl Service {
    pub fn new(folder: &str) -> Self {
        Service {
            folder: folder.to_owned(),
            files: BTreeMap::new(),
            folders: BTreeSet::from([folder.to_owned()]),
            serving: Some(BTreeMap::new()),
            restarts: 0,
        }
    }

    pub fn restarts(&self) -> u64 {
        self.restarts
    }

    pub fn is_running(&self) -> bool {
        self.serving.is_some()
    }

    pub fn serves(&self, mac: Mac) -> Option<IpAddr> {
        self.serving.as_ref()?.get(&mac).copied()
    }

    /// The service stops, as by a restart that fails half-way.
    pub fn stop(&mut self) {
        self.restarts += 1;
        self.serving = None;
    }

    pub fn get(&self, path: &str) -> Option<&Vec<u8>> {
        self.files.get(path)
    }

    pub fn put(&mut self, path: &str, content: Vec<u8>) {
        self.files.insert(path.to_owned(), content);
    }

    pub fn remove(&mut self, path: &str) -> bool {
        self.files.remove(path).is_some()
    }

    /// Whether there is a folder for this file.
    pub fn has_folder_for(&self, path: &str) -> bool {
        path.rsplit_once('/').is_some_and(|(folder, _)| self.folders.contains(folder))
    }

    /// Renames over whatever has the new name. Whether there was such a file.
    pub fn rename(&mut self, from: &str, to: &str) -> bool {
        let Some(content) = self.files.remove(from) else { return false };
        self.files.insert(to.to_owned(), content);
        true
    }

    pub fn in_folder(&self) -> BTreeMap<String, String> {
        let prefix = format!("{}/", self.folder);
        let text = |content: &Vec<u8>| String::from_utf8_lossy(content).into_owned();
        self.files.iter().filter_map(|(p, c)| Some((p.strip_prefix(&prefix)?.to_owned(), text(c)))).collect()
    }

    /// Whether a command changes something.
    pub fn is_write(command: &str) -> bool {
        let words = words(command);
        matches!(words.first().map(String::as_str), Some("mkdir" | "mv" | "rm" | super::RESTART))
    }

    /// Carries out a command.
    pub fn run(&mut self, command: &str) -> Ended {
        let words = words(command);
        let mut words = words.iter().map(String::as_str);
        let program = words.next().unwrap_or_default();
        let arguments: Vec<&str> = words.filter(|word| !word.starts_with('-')).collect();
        match (program, &arguments[..]) {
            ("true", _) => Ended::default(),
            ("sha256sum", [path]) => match self.files.get(*path) {
                Some(content) => {
                    let digest: String = Sha256::digest(content).iter().map(|b| format!("{b:02x}")).collect();
                    Ended { stdout: format!("{digest}  {path}\n"), ..Ended::default() }
                }
                None => failed(1, format!("sha256sum: {path}: No such file or directory")),
            },
            ("cat", [path]) => match self.files.get(*path) {
                Some(content) => Ended { stdout: String::from_utf8_lossy(content).into_owned(), ..Ended::default() },
                None => failed(1, format!("cat: {path}: No such file or directory")),
            },
            // All files of a folder, each line with its file's name before it.
            ("test", [_, "||", "exit", "0;", "find", folder, ..]) => {
                let mut stdout = String::new();
                for (name, content) in self.in_folder().into_iter().filter(|(name, _)| !name.starts_with('.')) {
                    for line in content.lines() {
                        stdout += &format!("{folder}/{name}\t{line}\n");
                    }
                }
                Ended { stdout, ..Ended::default() }
            }
            ("test", [path]) => {
                let is_there = self.files.contains_key(*path) || self.folders.contains(*path);
                Ended { status: u32::from(!is_there), ..Ended::default() }
            }
            ("date", _) => Ended { stdout: format!("{}\n", jiff::Timestamp::now().as_second()), ..Ended::default() },
            ("mkdir", paths) => {
                self.folders.extend(paths.iter().map(|path| (*path).to_owned()));
                Ended::default()
            }
            ("mv", [from, to]) if self.has_folder_for(to) => match self.rename(from, to) {
                true => Ended::default(),
                false => failed(1, format!("mv: cannot stat '{from}': No such file or directory")),
            },
            ("rm", paths) => {
                for path in paths {
                    self.files.remove(*path);
                }
                Ended::default()
            }
            (super::TEST, []) => match self.entries() {
                Ok(_) => Ended::default(),
                Err(text) => failed(1, text),
            },
            (super::RESTART, []) => self.restart(),
            (super::VALIDATE, []) => match &self.serving {
                Some(entries) => Ended { stdout: format!("active, {} entries\n", entries.len()), ..Ended::default() },
                None => failed(3, "the service is not running: no socket on port 67".to_owned()),
            },
            _ => failed(127, format!("{program}: command not found")),
        }
    }

    /// Stop, then start: no test before, no way back, as a service manager does it.
    fn restart(&mut self) -> Ended {
        self.restarts += 1;
        match self.entries() {
            Ok(entries) => {
                self.serving = Some(entries.into_iter().map(|entry| (entry.mac, entry.address)).collect());
                Ended::default()
            }
            Err(text) => {
                self.serving = None;
                failed(1, format!("the service did not start: {text}"))
            }
        }
    }

    /// All entries that the service's include pattern takes, or what the service says of the first bad one.
    fn entries(&self) -> Result<Vec<Entry>, String> {
        let mut all: Vec<Entry> = Vec::new();
        for (file, content) in self.in_folder() {
            if file.starts_with('.') || !(file.ends_with(".conf") || file.ends_with(".json")) {
                continue;
            }
            let entry = parse(&file, &content).ok_or_else(|| format!("{}/{file} line 1: parse error", self.folder))?;
            for other in all.iter().filter(|other| other.kind == entry.kind) {
                let twice = match entry.kind {
                    Kind::Isc => (entry.name == other.name).then(|| format!("host {}: already exists", entry.name)),
                    Kind::Kea if entry.mac == other.mac => Some(format!("duplicate hw-address {}", entry.mac)),
                    Kind::Kea | Kind::Dnsmasq => {
                        (entry.address == other.address).then(|| format!("duplicate address {}", entry.address))
                    }
                };
                if let Some(text) = twice {
                    return Err(format!("{}/{file} line 1: {text} (see {})", self.folder, other.file));
                }
            }
            all.push(entry);
        }
        Ok(all)
    }
}

/// Reads an entry of one of the three kinds; `None` where none of the servers could.
fn parse(file: &str, content: &str) -> Option<Entry> {
    let entry = |kind, mac: &str, address: &str, name: &str| {
        let (mac, address) = (mac.parse().ok()?, address.parse().ok()?);
        Some(Entry { file: file.to_owned(), kind, mac, address, name: name.to_owned() })
    };
    if file.ends_with(".json") {
        let json: serde_json::Value = serde_json::from_str(content).ok()?;
        return entry(
            Kind::Kea,
            json["hw-address"].as_str()?,
            json["ip-address"].as_str()?,
            json["hostname"].as_str()?,
        );
    }
    if let Some(line) = content.trim().strip_prefix("dhcp-host=") {
        let [mac, address, name] = line.split(',').collect::<Vec<_>>()[..] else { return None };
        return entry(Kind::Dnsmasq, mac, address.trim_matches(['[', ']']), name);
    }
    let (name, body) = content.trim().strip_prefix("host ")?.split_once('{')?;
    let body = body.trim().strip_suffix('}')?;
    let statement = |head: &str| {
        body.split(';').map(str::trim).find_map(|s| s.strip_prefix(head)).map(|rest| rest.trim().trim_matches('"'))
    };
    let name = name.trim();
    if name.is_empty() || name.contains(|c: char| c.is_whitespace() || c == '"') || body.contains(['{', '}']) {
        return None;
    }
    entry(Kind::Isc, statement("hardware ethernet ")?, statement("fixed-address ")?, name)
}

/// Words of a shell command: blanks, single quotes and escaped characters.
fn words(command: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut chars = command.chars();
    while let Some(c) = chars.next() {
        match c {
            ' ' => words.extend(word.take()),
            '\'' => word.get_or_insert_default().extend(chars.by_ref().take_while(|c| *c != '\'')),
            '\\' => word.get_or_insert_default().extend(chars.next()),
            c => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    words
}

fn failed(status: u32, stderr: String) -> Ended {
    Ended { status, stdout: String::new(), stderr: stderr + "\n" }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ISC: &str =
        "host a {\n  hardware ethernet 02:aa:00:00:00:01;\n  fixed-address 10.0.0.1;\n  option host-name \"a\";\n}\n";

    #[test]
    fn a_good_entry_is_served_after_a_restart_and_a_bad_one_stops_the_service() {
        let mut service = Service::new("/d");
        let mac = "02:aa:00:00:00:01".parse().unwrap();
        service.put("/d/a.conf", ISC.into());
        assert_eq!(service.serves(mac), None);
        assert_eq!(service.run("dhcp-restart").status, 0);
        assert_eq!(service.serves(mac), Some("10.0.0.1".parse().unwrap()));
        service.put("/d/b.conf", b"host b {".to_vec());
        assert_eq!(service.run("dhcp-test").status, 1);
        assert!(service.is_running());
        assert_eq!(service.run("dhcp-restart").status, 1);
        assert!(!service.is_running() && service.run("dhcp-validate").status == 3);
        service.run("mv -f -- '/d/b.conf' /d/.b.conf");
        assert_eq!(service.run("dhcp-restart").status, 0);
        assert_eq!(service.restarts(), 3);
    }

    #[test]
    fn what_each_kind_minds_is_what_the_real_one_minds() {
        let mut service = Service::new("/d");
        service.put("/d/a.conf", ISC.into());
        service.put("/d/b.conf", ISC.replace("host a", "host b").into());
        assert_eq!(service.run("dhcp-test").status, 0, "ISC takes an address and a MAC twice");
        service.put("/d/b.conf", ISC.into());
        assert!(service.run("dhcp-test").stderr.contains("host a: already exists"));
        let mut service = Service::new("/d");
        service.put("/d/a.conf", b"dhcp-host=02:aa:00:00:00:01,10.0.0.1,a\n".to_vec());
        service.put("/d/b.conf", b"dhcp-host=02:aa:00:00:00:02,10.0.0.1,b\n".to_vec());
        assert_eq!(service.run("dhcp-test").status, 1, "dnsmasq takes no address twice");
    }

    #[test]
    fn commands_are_split_as_a_shell_does() {
        assert_eq!(words(r"mv -f -- '/d/it'\''s' b"), ["mv", "-f", "--", "/d/it's", "b"]);
        assert!(Service::is_write("dhcp-restart") && !Service::is_write("sha256sum -- 'rm'"));
    }
}

//! The table of sessions: how one is opened, who proves what, and what is sealed in it.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use super::cipher::{Keys, Suite};
use super::frame::{Packet, headed, number};
use super::{USER, level};
use crate::lab::bmc::tree::uuid_of;
use crate::lab::build::bmc_key;
use crate::lab::machine::{Machine, Quirk};

/// Sessions at once, half open ones among them.
const MOST: usize = 4;

/// A session that nobody speaks in ends after that: in real time, as whoever asks has only that.
const IDLE: Duration = Duration::from_secs(60);

/// What a login came to.
pub(super) enum Outcome {
    /// The console gave up, or was never heard of.
    Unheard,
    In,
    Wrong(String),
}

#[derive(Default)]
pub(super) struct Table {
    sessions: BTreeMap<u32, Held>,
    next: u32,
}

/// A session, however far it is.
pub(super) struct Held {
    console: u32,
    managed: u32,
    suite: Suite,
    heard: Instant,
    exchange: Option<Exchange>,
    keys: Option<Keys>,
    /// The level that it has, and the highest that it may have.
    pub level: u8,
    pub highest: u8,
    /// Packets of the console and of the BMC in it.
    heard_number: u32,
    said_number: u32,
}

/// What RAKP 1 and 2 were about.
struct Exchange {
    user: String,
    password: Vec<u8>,
    theirs: Vec<u8>,
    ours: [u8; 16],
    guid: [u8; 16],
    /// Role, and name with its length.
    claim: Vec<u8>,
    /// What the session's key is made of: the BMC's own, where it has one.
    root: Vec<u8>,
}

impl Table {
    pub fn open_sessions(&self) -> u32 {
        self.sessions.len() as u32
    }

    /// Open Session.
    pub fn open(&mut self, machine: &Machine, request: &[u8]) -> Option<Vec<u8>> {
        self.sessions.retain(|_, held| held.heard.elapsed() < IDLE);
        let (tag, console) = (*request.first()?, number(request, 4)?);
        let refuse = |status: u8| {
            let mut out = vec![tag, status, 0, 0];
            out.extend(console.to_le_bytes());
            Some(out)
        };
        let asked = [12, 20, 28].map(|at| request.get(at).map(|byte| byte & 0x3f));
        let [Some(authentication), Some(integrity), Some(secrecy)] = asked else { return refuse(0x12) };
        let Some(suite) = Suite::of([authentication, integrity, secrecy]) else { return refuse(0x11) };
        if suite == Suite::Seventeen && machine.has(Quirk::IpmiOnlySuite3) {
            return refuse(0x11);
        }
        // The same question again is one session.
        let same = self.sessions.values().find(|held| held.console == console).map(|held| held.managed);
        let managed = match same {
            Some(managed) => managed,
            None if machine.has(Quirk::IpmiSessionsFull) || !self.make_room() => return refuse(0x01),
            None => {
                self.next += 1;
                0x0200_0000 + self.next
            }
        };
        self.sessions.insert(
            managed,
            Held {
                console,
                managed,
                suite,
                heard: Instant::now(),
                exchange: None,
                keys: None,
                level: USER,
                highest: USER,
                heard_number: 0,
                said_number: 0,
            },
        );
        let mut out = vec![tag, 0, 4, 0];
        out.extend(console.to_le_bytes());
        out.extend(managed.to_le_bytes());
        for (kind, algorithm) in [authentication, integrity, secrecy].into_iter().enumerate() {
            out.extend([kind as u8, 0, 0, 8, algorithm, 0, 0, 0]);
        }
        Some(out)
    }

    /// Whether there is room for one more. What is half open for longest gives way: consoles that never come back would
    /// else lock everybody out.
    fn make_room(&mut self) -> bool {
        if self.sessions.len() < MOST {
            return true;
        }
        let half_open = self.sessions.values().filter(|held| held.keys.is_none());
        let oldest = half_open.min_by_key(|held| held.heard).map(|held| held.managed);
        oldest.is_some_and(|managed| self.sessions.remove(&managed).is_some())
    }

    /// RAKP 1; the answer is RAKP 2.
    pub fn challenge(&mut self, machine: &Machine, request: &[u8]) -> Option<Vec<u8>> {
        let (tag, managed) = (*request.first()?, number(request, 4)?);
        let refuse = |status: u8, console: u32| {
            let mut out = vec![tag, status, 0, 0];
            out.extend(console.to_le_bytes());
            Some(out)
        };
        let Some(held) = self.sessions.get_mut(&managed) else { return refuse(0x02, 0) };
        let console = held.console;
        let (theirs, role) = (request.get(8..24)?.to_vec(), *request.get(24)?);
        let length = usize::from(*request.get(27)?);
        let name = request.get(28..28 + length)?;
        let user = String::from_utf8_lossy(name).into_owned();
        let known = level(machine, &user).zip(machine.bmc.accounts.get(&user));
        let Some((highest, password)) = known else {
            self.sessions.remove(&managed);
            return refuse(0x0d, console);
        };
        let asked = role & 0x0f;
        if asked > highest {
            self.sessions.remove(&managed);
            return refuse(0x0a, console);
        }
        (held.heard, held.highest) = (Instant::now(), if asked == 0 { highest } else { asked });
        let password: Vec<u8> = password.as_bytes().iter().take(20).copied().collect();
        let has_key = machine.has(Quirk::IpmiBmcKey) || machine.has(Quirk::IpmiBmcKeyUntold);
        let root = if has_key { bmc_key(&machine.name).into_bytes() } else { password.clone() };
        let guid = *uuid_of(&machine.serial).parse::<uuid::Uuid>().ok()?.as_bytes();
        let claim = [&[role, length as u8], name].concat();
        let exchange = Exchange { user, password, theirs, ours: rand::random(), guid, claim, root };
        let parts: [&[u8]; 6] = [
            &console.to_le_bytes(),
            &managed.to_le_bytes(),
            &exchange.theirs,
            &exchange.ours,
            &exchange.guid,
            &exchange.claim,
        ];
        let code = held.suite.hmac(&exchange.password, &parts);
        let mut out = vec![tag, 0, 0, 0];
        out.extend(console.to_le_bytes());
        out.extend(exchange.ours);
        out.extend(exchange.guid);
        out.extend(code);
        held.exchange = Some(exchange);
        Some(out)
    }

    /// RAKP 3; the answer is RAKP 4, and none where the console gives up.
    pub fn prove(&mut self, request: &[u8]) -> Option<(Option<Vec<u8>>, Outcome)> {
        let (tag, status, managed) = (*request.first()?, *request.get(1)?, number(request, 4)?);
        let refuse = |status: u8, console: u32| {
            let mut out = vec![tag, status, 0, 0];
            out.extend(console.to_le_bytes());
            Some(out)
        };
        let Some(held) = self.sessions.get_mut(&managed) else { return Some((refuse(0x02, 0), Outcome::Unheard)) };
        if status != 0 {
            self.sessions.remove(&managed);
            return Some((None, Outcome::Unheard));
        }
        let console = held.console;
        let Some(exchange) = &held.exchange else { return Some((refuse(0x02, console), Outcome::Unheard)) };
        let (suite, key) = (held.suite, &exchange.password);
        let parts: [&[u8]; 3] = [&exchange.ours, &console.to_le_bytes(), &exchange.claim];
        if request.get(8..) != Some(&suite.hmac(key, &parts)[..]) {
            let user = exchange.user.clone();
            self.sessions.remove(&managed);
            return Some((refuse(0x0f, console), Outcome::Wrong(user)));
        }
        let session_key = suite.hmac(&exchange.root, &[&exchange.theirs, &exchange.ours, &exchange.claim]);
        let parts: [&[u8]; 3] = [&exchange.theirs, &managed.to_le_bytes(), &exchange.guid];
        let code = suite.cut(suite.hmac(&session_key, &parts));
        // The same RAKP 3 again is one login.
        let outcome = if held.keys.is_some() { Outcome::Unheard } else { Outcome::In };
        (held.keys, held.heard) = (Some(Keys::new(suite, &session_key)), Instant::now());
        let mut out = vec![tag, 0, 0, 0];
        out.extend(console.to_le_bytes());
        out.extend(code);
        Some((Some(out), outcome))
    }

    /// A session that is open.
    pub fn active(&mut self, managed: u32) -> Option<&mut Held> {
        self.sessions.get_mut(&managed).filter(|held| held.keys.is_some())
    }

    pub fn forget(&mut self, managed: u32) {
        self.sessions.remove(&managed);
    }
}

impl Held {
    /// The message of a packet that is of this session, right and new.
    pub fn open(&mut self, packet: &Packet<'_>) -> Option<Vec<u8>> {
        let keys = self.keys.as_ref()?;
        let length = keys.code(&[]).len();
        let (signed, code) = packet.whole.split_at_checked(packet.whole.len().checked_sub(length)?)?;
        if keys.code(signed) != code || packet.sequence <= self.heard_number {
            return None;
        }
        let message = keys.decrypt(packet.payload)?;
        (self.heard_number, self.heard) = (packet.sequence, Instant::now());
        Some(message)
    }

    /// A message to the console.
    pub fn seal(&mut self, message: &[u8]) -> Vec<u8> {
        let Some(keys) = &self.keys else { return vec![] };
        self.said_number += 1;
        let mut out = headed(0xc0, self.console, self.said_number, &keys.encrypt(message));
        // What is signed begins behind the four bytes of RMCP, and has a length that four divides.
        let pad = (4 - (out.len() - 4 + 2) % 4) % 4;
        out.extend(std::iter::repeat_n(0xff, pad));
        out.extend([pad as u8, 7]);
        let code = keys.code(&out[4..]);
        out.extend(code);
        out
    }

    /// Whether a session number is this one's.
    pub fn is(&self, managed: u32) -> bool {
        self.managed == managed
    }
}

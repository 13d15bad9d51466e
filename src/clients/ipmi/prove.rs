//! Proves that a user can log in over IPMI at a level: opens a session, asks one thing in it, and ends it.

use std::fmt;
use std::net::SocketAddr;
use std::time::Duration;

use secrecy::zeroize::Zeroizing;
use secrecy::{ExposeSecret, SecretString};
use tokio::time::{Instant, sleep};

use super::error::{IpmiError, completion_word, status_word};
use super::keys::Suite;
use super::link::Link;
use super::message::{Answer, GET_CHANNEL_AUTHENTICATION, GET_DEVICE_ID, SET_SESSION_PRIVILEGE, answer, question};
use super::packet::{Broken, kind, outside, plain, read, read_outside};
use super::rakp::{Exchange, Fourth, Opening, Second, open_answer, open_request};
use super::session::Session;

/// The longest name and password of IPMI 2.0, in bytes.
const NAME_MAX: usize = 16;
const PASSWORD_MAX: usize = 20;

/// Between two tries where every session is taken.
const SESSIONS_PAUSE: Duration = Duration::from_secs(5);

/// Whole exchanges that are begun where a lost answer has spoilt one.
const EXCHANGES: u32 = 2;

/// A user of the BMC, as IPMI knows it.
pub struct Login {
    pub username: String,
    pub password: SecretString,
    /// The BMC's own key, where it has one.
    pub bmc_key: Option<BmcKey>,
}

/// The key of a BMC (K_g): what the keys of a session are made of instead of the password, which still is what proves who
/// asks. Twenty bytes at most; shorter ones are filled up with zeros, as for every HMAC.
pub struct BmcKey(Zeroizing<Vec<u8>>);

/// The longest key of a BMC.
const KEY_MAX: usize = 20;

impl BmcKey {
    /// From a text: `0x` and up to forty hexadecimal digits, else up to twenty characters as they are.
    pub fn parse(text: &SecretString) -> Result<BmcKey, IpmiError> {
        let text = text.expose_secret().trim();
        let unfit = |why: String| Err(IpmiError::Unfit { why });
        let bytes = match text.strip_prefix("0x").or(text.strip_prefix("0X")) {
            None => text.as_bytes().to_vec(),
            Some(digits) => {
                let pairs = digits.as_bytes().chunks(2);
                let byte = |pair: &[u8]| {
                    let digits = std::str::from_utf8(pair).ok().filter(|_| pair.len() == 2)?;
                    digits.bytes().all(|b| b.is_ascii_hexdigit()).then(|| u8::from_str_radix(digits, 16).ok())?
                };
                match pairs.map(byte).collect::<Option<Vec<u8>>>() {
                    Some(bytes) => bytes,
                    None => {
                        return unfit(
                            "the BMC key (K_g) begins with 0x and goes on with other than pairs of \
                        hexadecimal digits"
                                .to_owned(),
                        );
                    }
                }
            }
        };
        if bytes.is_empty() || bytes.len() > KEY_MAX {
            return unfit(format!("the BMC key (K_g) has {} bytes; IPMI takes 1 to {KEY_MAX}", bytes.len()));
        }
        Ok(BmcKey(Zeroizing::new(bytes)))
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Debug for Login {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Login({}, ***)", self.username)
    }
}

/// The level that a session is to have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Privilege {
    User,
    Administrator,
}

impl Privilege {
    pub(super) fn number(self) -> u8 {
        match self {
            Privilege::User => 2,
            Privilege::Administrator => 4,
        }
    }
}

impl fmt::Display for Privilege {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Privilege::User => "USER",
            Privilege::Administrator => "ADMINISTRATOR",
        })
    }
}

/// How patient a proof is.
#[derive(Debug, Clone, Copy)]
pub struct Patience {
    /// Until a question is sent for the second time.
    pub first: Duration,
    /// For one login with all that belongs to it.
    pub deadline: Duration,
    /// For a BMC whose sessions are all taken.
    pub sessions: Duration,
}

/// A login that worked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Proof {
    /// The cipher suite that BMC and console agreed on.
    pub suite: Suite,
    pub level: Privilege,
    /// What the BMC says of itself in the session: `1.73`.
    pub firmware: String,
    /// The session's keys were made of the BMC's own key.
    pub by_bmc_key: bool,
}

/// Logs in once, at a level, and asks who the BMC is. Changes nothing on it. The session is ended however this ends.
pub async fn prove(to: SocketAddr, login: &Login, level: Privilege, patience: &Patience) -> Result<Proof, IpmiError> {
    fits(login)?;
    let began = Instant::now();
    let mut tries = 0;
    let outcome = loop {
        tries += 1;
        match attempt(to, login, level, patience).await {
            Err(IpmiError::SessionsFull { .. }) => {
                let left = patience.sessions.saturating_sub(began.elapsed());
                if left.is_zero() {
                    break Err(IpmiError::SessionsFull { to, tries, seconds: began.elapsed().as_secs() });
                }
                sleep(SESSIONS_PAUSE.min(left).min(patience.sessions / 4).max(Duration::from_millis(20))).await;
            }
            other => break other,
        }
    };
    let (time, user) = (began.elapsed().as_millis(), login.username.as_str());
    match &outcome {
        Ok(proof) => tracing::debug!(%to, user, %level, suite = %proof.suite, tries, time_ms = time, "IPMI login"),
        Err(error) => tracing::debug!(%to, user, %level, %error, tries, time_ms = time, "IPMI login"),
    }
    outcome
}

/// Whether IPMI can carry name and password. Says lengths and never the password.
fn fits(login: &Login) -> Result<(), IpmiError> {
    let unfit = |why: String| Err(IpmiError::Unfit { why });
    let (name, password) = (login.username.as_bytes(), login.password.expose_secret().as_bytes());
    if name.is_empty() || name.len() > NAME_MAX {
        return unfit(format!("the name '{}' has {} bytes; IPMI takes 1 to {NAME_MAX}", login.username, name.len()));
    }
    if password.len() > PASSWORD_MAX || password.contains(&0) {
        return unfit(format!(
            "the password of '{}' has {} bytes; IPMI takes {PASSWORD_MAX} at most, none of them zero",
            login.username,
            password.len()
        ));
    }
    Ok(())
}

/// One login, from the first question to the last.
async fn attempt(to: SocketAddr, login: &Login, level: Privilege, patience: &Patience) -> Result<Proof, IpmiError> {
    let link = Link::open(to, patience.first, Instant::now() + patience.deadline).await?;
    let has_key = speaks_v2(&link).await?;
    let mut by_key = has_key && login.bmc_key.is_some();
    let mut refusals = Vec::new();
    for suite in Suite::ALL {
        for exchange in 1..=EXCHANGES {
            match open(&link, suite, login, level, by_key).await? {
                Open::Session(session) => return inside(session, suite, login, level, by_key).await,
                Open::NoSuite(why) => {
                    refusals.push(format!("{suite}: {why}"));
                    break;
                }
                Open::OtherKeys if by_key => return Err(IpmiError::OtherBmcKey { to }),
                Open::OtherKeys if has_key => return Err(IpmiError::BmcKey { to }),
                // Not every BMC that has a key says so.
                Open::OtherKeys if exchange < EXCHANGES => by_key = login.bmc_key.is_some(),
                Open::OtherKeys => {
                    let said = "the keys of both sides differ".to_owned();
                    return Err(IpmiError::Denied { to, asked: "RAKP 3", said });
                }
                Open::Lost(why) if exchange == EXCHANGES => {
                    return Err(IpmiError::Denied { to, asked: "RAKP 3", said: why });
                }
                Open::Lost(_) => {}
            }
        }
    }
    Err(IpmiError::NoCommonSuite { to, why: refusals.join(", ") })
}

/// Asks whether the BMC has IPMI 2.0 on this channel. True: it says that it has a key of its own.
async fn speaks_v2(link: &Link) -> Result<bool, IpmiError> {
    let number = 1;
    // Channel 14 is the one that this comes by; the high bit asks for what IPMI 2.0 has.
    let datagram = outside(&question(GET_CHANNEL_AUTHENTICATION, number, &[0x8e, Privilege::Administrator.number()]));
    let read = |datagram: &[u8]| answer(read_outside(datagram)?, GET_CHANNEL_AUTHENTICATION, number);
    let told = link.ask("get channel authentication capabilities", || datagram.clone(), read).await?;
    let not = |why: String| Err(IpmiError::NotV2 { to: link.to, why });
    if told.completion != 0 {
        return not(completion_word(told.completion));
    }
    match told.data[..] {
        // What this channel takes begins in the fourth byte; bit 1 is IPMI 2.0.
        [_, kinds, status, extended, ..] if kinds & 0x80 != 0 && extended & 0x02 != 0 => Ok(status & 0x20 != 0),
        [_, kinds, ..] => not(format!("it offers the authentication types 0x{kinds:02x} only")),
        _ => not("its answer is too short".to_owned()),
    }
}

/// What came of opening a session with one suite.
enum Open<'a> {
    Session(Session<'a>),
    NoSuite(String),
    /// An answer was lost, and the BMC does not know the exchange any more.
    Lost(String),
    /// The BMC has made other keys of it all. It has the session open, and takes no word in it from here: it ends it by its own
    /// time.
    OtherKeys,
}

async fn open<'a>(
    link: &'a Link,
    suite: Suite,
    login: &Login,
    level: Privilege,
    by_key: bool,
) -> Result<Open<'a>, IpmiError> {
    let console = rand::random::<u32>() | 1;
    let tag: u8 = rand::random();
    let refused = |asked, status| refusal(link, asked, status, login, level);
    let request = plain(kind::OPEN_REQUEST, &open_request(tag, console, suite));
    let read_open = |datagram: &[u8]| open_answer(payload(datagram, kind::OPEN_ANSWER)?, tag, console);
    let (managed, algorithms) = match link.ask("open session", || request.clone(), read_open).await {
        // The BMC has answered before: some firmware says nothing to a suite that it does not know.
        Err(error @ IpmiError::Silent { .. }) if suite == Suite::Seventeen => {
            return Ok(Open::NoSuite(error.to_string()));
        }
        Err(error) => return Err(error),
        Ok(Opening::Refused(status @ (0x04..=0x07 | 0x10..=0x12))) => return Ok(Open::NoSuite(status_word(status))),
        Ok(Opening::Refused(status)) => return Err(refused("open session", status)),
        Ok(Opening::Opened { managed, algorithms }) => (managed, algorithms),
    };
    let mut exchange = Exchange::new(suite, login, level, console, managed);
    exchange.by_key = by_key;
    let half_open = HalfOpen { link, end: Some(plain(kind::RAKP3, &exchange.give_up(tag.wrapping_add(2)))) };
    // What it has chosen instead would be weaker, or unknown here.
    if algorithms.map(|algorithm| algorithm & 0x3f) != suite.algorithms() {
        return Ok(Open::NoSuite("it answers with other algorithms".to_owned()));
    }
    let tag = tag.wrapping_add(1);
    let first = plain(kind::RAKP1, &exchange.first(tag));
    let read_second = |datagram: &[u8]| exchange.second(payload(datagram, kind::RAKP2)?, tag);
    match link.ask("RAKP 1", || first.clone(), read_second).await? {
        Second::SamePassword => {}
        Second::OtherPassword => return Err(IpmiError::WrongPassword { user: login.username.clone() }),
        Second::Refused(status) => return Err(refused("RAKP 1", status)),
    }
    let tag = tag.wrapping_add(1);
    let third = plain(kind::RAKP3, &exchange.third(tag));
    let read_fourth = |datagram: &[u8]| exchange.fourth(payload(datagram, kind::RAKP4)?, tag);
    // From here on the BMC may have it open, whatever is heard of it: dropping it ends it there.
    let session = Session::new(link, exchange.keys(), console, managed);
    half_open.goes_on();
    match link.ask("RAKP 3", || third.clone(), read_fourth).await? {
        Fourth::SameKeys => Ok(Open::Session(session)),
        Fourth::OtherKeys => Ok(Open::OtherKeys),
        // Of a question that came twice the BMC has answered the other one, or has opened the session by the first.
        Fourth::Refused(status @ (0x02 | 0x08 | 0x0f)) => Ok(Open::Lost(status_word(status))),
        Fourth::Refused(status) => Err(refused("RAKP 3", status)),
    }
}

/// A session that the BMC keeps a place for, and whose password is not shown yet. Dropped, it is given up.
struct HalfOpen<'a> {
    link: &'a Link,
    end: Option<Vec<u8>>,
}

impl HalfOpen<'_> {
    fn goes_on(mut self) {
        self.end = None;
    }
}

impl Drop for HalfOpen<'_> {
    fn drop(&mut self) {
        if let Some(end) = &self.end {
            self.link.tell(end);
        }
    }
}

/// The payload of a packet outside of a session, where it is of the kind that is waited for.
fn payload(datagram: &[u8], kind: u8) -> Result<&[u8], Broken> {
    let packet = read(datagram, 0)?;
    if packet.kind != kind || packet.encrypted || packet.authenticated {
        return Err("it is another packet than the one that was waited for");
    }
    Ok(packet.payload)
}

/// What a status other than success means.
fn refusal(link: &Link, asked: &'static str, status: u8, login: &Login, level: Privilege) -> IpmiError {
    let (to, user, said) = (link.to, login.username.clone(), status_word(status));
    match status {
        0x01 | 0x0b => IpmiError::SessionsFull { to, tries: 1, seconds: 0 },
        0x0c | 0x0d => IpmiError::UnknownUser { user },
        0x09 | 0x0a => IpmiError::TooHigh { user, level, said },
        _ => IpmiError::Denied { to, asked, said },
    }
}

/// What is asked in the session: its level, and who the BMC is.
async fn inside(
    mut session: Session<'_>,
    suite: Suite,
    login: &Login,
    level: Privilege,
    by_bmc_key: bool,
) -> Result<Proof, IpmiError> {
    let outcome = asked_inside(&mut session, login, level).await;
    session.close().await;
    outcome.map(|firmware| Proof { suite, level, firmware, by_bmc_key })
}

async fn asked_inside(session: &mut Session<'_>, login: &Login, level: Privilege) -> Result<String, IpmiError> {
    let to = session.to();
    let too_high = |said: String| IpmiError::TooHigh { user: login.username.clone(), level, said };
    let asked = "set session privilege level";
    let Answer { completion, data } = session.ask(asked, SET_SESSION_PRIVILEGE, &[level.number()]).await?;
    match (completion, data.first()) {
        (0, Some(given)) if given & 0x0f >= level.number() => {}
        (0, Some(given)) => return Err(too_high(format!("the session got level {}", given & 0x0f))),
        (0, None) => return Err(IpmiError::Unusable { to, asked, what: "it is too short" }),
        (0x80 | 0x81 | 0xd4, _) => return Err(too_high(completion_word(completion))),
        _ => return Err(IpmiError::Denied { to, asked, said: completion_word(completion) }),
    }
    let asked = "get device ID";
    let Answer { completion, data } = session.ask(asked, GET_DEVICE_ID, &[]).await?;
    match (completion, &data[..]) {
        // The minor number is two decimal digits.
        (0, [_, _, major, minor, ..]) => Ok(format!("{}.{minor:02x}", major & 0x7f)),
        (0, _) => Err(IpmiError::Unusable { to, asked, what: "it is too short" }),
        (0xd4, _) => Err(too_high(completion_word(completion))),
        _ => Err(IpmiError::Denied { to, asked, said: completion_word(completion) }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_or_password_that_ipmi_would_cut_is_found_before_anything_is_sent() {
        let login = |username: &str, password: &str| Login {
            username: username.into(),
            password: password.to_owned().into(),
            bmc_key: None,
        };
        assert!(fits(&login("ipmi_exporter", "twenty-characters-ok")).is_ok());
        for (name, password) in [("", "x"), ("seventeen-letters", "x"), ("a", "twenty-one-characters"), ("a", "nul\0")]
        {
            let error = fits(&login(name, password)).unwrap_err();
            assert!(!error.to_string().contains(password) || password == "x", "{error}");
        }
        assert_eq!(format!("{:?}", login("a", "secret")), "Login(a, ***)");
    }

    #[test]
    fn a_bmc_key_is_a_text_or_hexadecimal_digits_and_never_shown() {
        let parse = |text: &str| BmcKey::parse(&text.to_owned().into()).map(|key| key.bytes().to_vec());
        assert_eq!(parse(" a-key ").unwrap(), b"a-key");
        assert_eq!(parse("0x00ff7E").unwrap(), [0, 0xff, 0x7e]);
        assert_eq!(parse(&format!("0x{}", "ab".repeat(20))).unwrap(), [0xab; 20]);
        for text in ["", "0x", "0xabc", "0xzz", "0x+1", "twenty-one-characters", "0x\u{e9}"] {
            let error = parse(text).unwrap_err().to_string();
            assert!(text.len() < 3 || !error.contains(text), "{text}: {error}");
        }
        assert!(parse(&format!("0x{}", "ab".repeat(21))).unwrap_err().to_string().contains("21 bytes"));
    }
}

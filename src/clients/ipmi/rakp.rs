//! The messages by which a session of RMCP+ is opened: Open Session, and RAKP 1 to 4 in which both sides show that they know
//! the password. The console sees in RAKP 2 whether the BMC has the same one, before it shows anything itself.

use secrecy::ExposeSecret;
use secrecy::zeroize::Zeroizing;

use super::keys::{Sealed, Suite, same};
use super::packet::{Broken, number_at};
use super::prove::{BmcKey, Login, Privilege};

/// The name alone decides which account is meant, not the name with a level.
const BY_NAME: u8 = 0x10;

/// Status of a RAKP 3 that ends the exchange: the code of RAKP 2 was wrong.
const WRONG_CODE: u8 = 0x0f;

/// The request for a session with one cipher suite, at the highest level that it allows.
pub(super) fn open_request(tag: u8, console: u32, suite: Suite) -> Vec<u8> {
    let mut out = vec![tag, 0, 0, 0];
    out.extend(console.to_le_bytes());
    for (kind, algorithm) in suite.algorithms().into_iter().enumerate() {
        out.extend([kind as u8, 0, 0, 8, algorithm, 0, 0, 0]);
    }
    out
}

/// What a BMC says to that.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Opening {
    /// With the BMC's number of the session.
    Opened {
        managed: u32,
        algorithms: [u8; 3],
    },
    Refused(u8),
}

pub(super) fn open_answer(payload: &[u8], tag: u8, console: u32) -> Result<Opening, Broken> {
    if let Some(status) = refusal(payload, tag)? {
        return Ok(Opening::Refused(status));
    }
    if number_at(payload, 4) != Some(console) {
        return Err("it is for another session");
    }
    let managed = number_at(payload, 8).ok_or("it is too short")?;
    let algorithm = |at: usize| payload.get(at).copied().ok_or("it is too short");
    if managed == 0 {
        return Err("it has no session number");
    }
    Ok(Opening::Opened { managed, algorithms: [algorithm(16)?, algorithm(24)?, algorithm(32)?] })
}

/// The tag that comes back, and a status other than success.
fn refusal(payload: &[u8], tag: u8) -> Result<Option<u8>, Broken> {
    match payload {
        [] | [_] => Err("it is too short"),
        [other, ..] if *other != tag => Err("it answers another question"),
        [_, 0, ..] => Ok(None),
        [_, status, ..] => Ok(Some(*status)),
    }
}

/// One exchange of RAKP messages.
pub(super) struct Exchange<'a> {
    pub suite: Suite,
    pub login: &'a Login,
    pub level: Privilege,
    /// The console's number of the session, and the BMC's.
    pub console: u32,
    pub managed: u32,
    /// Random numbers of both sides, and who the BMC is. The last two are known after RAKP 2.
    pub ours: [u8; 16],
    /// The session's keys are made of the BMC's own key; of the password otherwise.
    pub by_key: bool,
    theirs: [u8; 16],
    guid: [u8; 16],
}

/// What RAKP 2 shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Second {
    /// The BMC has the same password.
    SamePassword,
    OtherPassword,
    Refused(u8),
}

/// What RAKP 4 shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fourth {
    /// The session is open, and both sides have the same keys.
    SameKeys,
    /// The BMC has made other keys of it all.
    OtherKeys,
    Refused(u8),
}

impl<'a> Exchange<'a> {
    pub fn new(suite: Suite, login: &'a Login, level: Privilege, console: u32, managed: u32) -> Exchange<'a> {
        Exchange {
            suite,
            login,
            level,
            console,
            managed,
            ours: rand::random(),
            by_key: false,
            theirs: [0; 16],
            guid: [0; 16],
        }
    }

    fn role(&self) -> u8 {
        BY_NAME | self.level.number()
    }

    /// Role, and name with its length: in every code.
    fn claim(&self) -> Vec<u8> {
        let name = self.login.username.as_bytes();
        [&[self.role(), name.len() as u8], name].concat()
    }

    fn password(&self) -> &[u8] {
        self.login.password.expose_secret().as_bytes()
    }

    /// RAKP 1.
    pub fn first(&self, tag: u8) -> Vec<u8> {
        let mut out = vec![tag, 0, 0, 0];
        out.extend(self.managed.to_le_bytes());
        out.extend(self.ours);
        let name = self.login.username.as_bytes();
        out.extend([self.role(), 0, 0, name.len() as u8]);
        out.extend(name);
        out
    }

    /// RAKP 2.
    pub fn second(&mut self, payload: &[u8], tag: u8) -> Result<Second, Broken> {
        if let Some(status) = refusal(payload, tag)? {
            return Ok(Second::Refused(status));
        }
        if number_at(payload, 4) != Some(self.console) {
            return Err("it is for another session");
        }
        let sixteen = |at: usize| -> Result<[u8; 16], Broken> {
            payload.get(at..at + 16).and_then(|bytes| bytes.try_into().ok()).ok_or("it is too short")
        };
        (self.theirs, self.guid) = (sixteen(8)?, sixteen(24)?);
        let code = &payload[40..];
        if code.len() != self.suite.hash_length() {
            return Err("its code has the length of another hash");
        }
        let (console, managed) = (self.console.to_le_bytes(), self.managed.to_le_bytes());
        let parts: [&[u8]; 6] = [&console, &managed, &self.ours, &self.theirs, &self.guid, &self.claim()];
        let right = same(&self.suite.hmac(self.password(), &parts), code);
        Ok(if right { Second::SamePassword } else { Second::OtherPassword })
    }

    /// RAKP 3: the console shows that it knows the password.
    pub fn third(&self, tag: u8) -> Vec<u8> {
        let mut out = vec![tag, 0, 0, 0];
        out.extend(self.managed.to_le_bytes());
        let parts: [&[u8]; 3] = [&self.theirs, &self.console.to_le_bytes(), &self.claim()];
        out.extend(self.suite.hmac(self.password(), &parts).iter());
        out
    }

    /// A RAKP 3 that says that RAKP 2 was wrong: the BMC forgets the session. It shows nothing of the password.
    pub fn give_up(&self, tag: u8) -> Vec<u8> {
        let mut out = vec![tag, WRONG_CODE, 0, 0];
        out.extend(self.managed.to_le_bytes());
        out
    }

    /// RAKP 4.
    pub fn fourth(&self, payload: &[u8], tag: u8) -> Result<Fourth, Broken> {
        if let Some(status) = refusal(payload, tag)? {
            return Ok(Fourth::Refused(status));
        }
        if number_at(payload, 4) != Some(self.console) {
            return Err("it is for another session");
        }
        let code = &payload[8..];
        if code.len() != self.suite.code_length() {
            return Err("its code has the length of another hash");
        }
        let parts: [&[u8]; 3] = [&self.ours, &self.managed.to_le_bytes(), &self.guid];
        let whole = self.suite.hmac(&self.session_key(), &parts);
        let right = same(&whole[..self.suite.code_length()], code);
        Ok(if right { Fourth::SameKeys } else { Fourth::OtherKeys })
    }

    /// The keys of the session. Known after RAKP 2.
    pub fn keys(&self) -> Sealed {
        Sealed::from_session_key(self.suite, &self.session_key())
    }

    fn session_key(&self) -> Zeroizing<Vec<u8>> {
        let own = self.login.bmc_key.as_ref().filter(|_| self.by_key);
        let key = own.map_or_else(|| self.password(), BmcKey::bytes);
        self.suite.hmac(key, &[&self.ours, &self.theirs, &self.claim()])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn login() -> Login {
        Login { username: "ipmi_exporter".into(), password: "a-right-password".to_owned().into(), bmc_key: None }
    }

    #[test]
    fn a_session_is_asked_for_with_the_algorithms_of_its_suite() {
        let request = open_request(7, 0x0403_0201, Suite::Seventeen);
        assert_eq!(request.len(), 32);
        assert_eq!(request[..8], [7, 0, 0, 0, 1, 2, 3, 4]);
        assert_eq!([request[12], request[20], request[28]], [3, 4, 1]);
    }

    #[test]
    fn a_refusal_is_read_however_short_it_is() {
        assert_eq!(open_answer(&[7, 0x11], 7, 1), Ok(Opening::Refused(0x11)));
        assert!(open_answer(&[6, 0x11], 7, 1).is_err());
        assert!(open_answer(&[7, 0, 4, 0, 1, 0, 0, 0], 7, 1).is_err());
        let login = login();
        let mut exchange = Exchange::new(Suite::Three, &login, Privilege::User, 1, 2);
        assert_eq!(exchange.second(&[3, 0x0d], 3), Ok(Second::Refused(0x0d)));
        assert_eq!(exchange.fourth(&[3, 0x02], 3), Ok(Fourth::Refused(2)));
    }

    proptest! {
        #[test]
        fn no_answer_makes_a_reader_panic(bytes in proptest::collection::vec(any::<u8>(), 0..90), good: bool) {
            let mut bytes = bytes;
            if good {
                // A right head, so that what follows is read too.
                for (at, byte) in [9, 0, 0, 0, 1, 0, 0, 0].into_iter().enumerate() {
                    if let Some(place) = bytes.get_mut(at) {
                        *place = byte;
                    }
                }
            }
            let login = login();
            for suite in Suite::ALL {
                let _ = open_answer(&bytes, 9, 1);
                let mut exchange = Exchange::new(suite, &login, Privilege::Administrator, 1, 2);
                prop_assert!(exchange.second(&bytes, 9) != Ok(Second::SamePassword));
                prop_assert!(exchange.fourth(&bytes, 9) != Ok(Fourth::SameKeys));
            }
        }
    }
}

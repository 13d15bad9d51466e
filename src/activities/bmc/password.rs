//! Makes the host's credential work on its BMC (B3): proven, or set with the credential that the BMC left the factory with.
//!
//! No moment loses the credential. What a BMC is to have is in the vault before the BMC gets it, and what it had is in the
//! vault until the new one is proven: a lost answer or a crash leaves one of two known passwords valid. Tries are few: one
//! with the vault's, one with the other; each that is refused counts against the BMC's lockout.

use std::time::Duration;

use rand::seq::{IndexedRandom, SliceRandom};
use secrecy::{ExposeSecret, SecretString};

use super::BMC;
use super::access::{Bmc, Parts, Trouble, credential};
use super::flow::{Flow, word};
use super::{reset_due, wrong_tries};
use crate::activities::vault;
use crate::clients::redfish::accounts;
use crate::clients::redfish::dialect::{At, Dialect};
use crate::clients::redfish::error::RedfishError;
use crate::clients::redfish::{Credential, Redfish, Resource};
use crate::domain::failure::{Failure, FailureCode};

/// Field of a host's item with the password that its BMC is just being given.
const NEXT: &str = "password_next";

/// How long a new password may take until the BMC takes it.
const TAKES: Duration = Duration::from_secs(3);

/// So often a password is written whose write was lost on the way.
const SETS: u32 = 3;

/// What was found or done.
pub(super) struct Proven {
    pub rotated: bool,
    /// A client that asks as the user that was proven.
    pub redfish: Redfish,
    /// What proved it: the reading that every step begins with.
    pub parts: Parts,
}

/// Proves the vault's credential by one authenticated read, and sets it where it does not work and the flow allows it.
pub(super) async fn prove(
    bmc: &Bmc<'_>,
    root: &Resource,
    dialect: &dyn Dialect,
    flow: &Flow,
) -> Result<Proven, Trouble> {
    let known = match credential(bmc.cx, &bmc.item, bmc.phase).await {
        Ok(known) => known,
        Err(missing) if missing.code == FailureCode::VaultItemMissing && flow.rotates => {
            let made = make(bmc, dialect).await.map_err(|why| missing_because(&missing, why))?;
            return Setup { bmc, root, dialect }.by_factory(made).await;
        }
        Err(failure) => return Err(failure.into()),
    };
    let redfish = bmc.redfish.as_user(known.clone());
    let setup = Setup { bmc, root, dialect };
    match bmc.parts_by(&redfish, root).await {
        Ok(parts) => {
            setup.settle_next().await?;
            Ok(Proven { rotated: false, redfish, parts })
        }
        Err(error @ RedfishError::Unauthorized { locked: false, .. }) if flow.rotates => {
            wrong_tries::remember(bmc.cx, bmc.target, bmc.phase).await?;
            setup.after_refusal(known, error).await
        }
        Err(RedfishError::PasswordChangeRequired { account, .. }) if flow.rotates => {
            setup.forced(known, account.as_deref()).await
        }
        Err(error) => Err(error.into()),
    }
}

struct Setup<'a> {
    bmc: &'a Bmc<'a>,
    root: &'a Resource,
    dialect: &'a dyn Dialect,
}

impl Setup<'_> {
    /// The vault's password was refused: a setup that was broken off has given the BMC the next one, or the BMC is as it left
    /// the factory.
    async fn after_refusal(&self, known: Credential, refused: RedfishError) -> Result<Proven, Trouble> {
        let Bmc { cx, phase, item, .. } = self.bmc;
        if let Some(next) = self.next().await? {
            let credential = Credential { username: known.username, password: next };
            let redfish = self.bmc.redfish.as_user(credential);
            let parts = self.bmc.parts_by(&redfish, self.root).await?;
            self.settle_next().await?;
            cx.note(BMC, "the password that a broken-off setup had set works");
            return Ok(Proven { rotated: true, redfish, parts });
        }
        // One more wrong try could lock the account.
        wrong_tries::check(cx, self.bmc.target, *phase, item)?;
        self.by_factory(known).await.map_err(|trouble| match trouble {
            // Without a factory credential the refusal itself is what happened.
            Trouble::Failure(failure) if failure.code == FailureCode::VaultItemMissing => {
                Trouble::Failure(Box::new(self.refused(&refused, &failure)))
            }
            other => other,
        })
    }

    /// Gives the BMC's account the vault's password, asking with the factory credential.
    async fn by_factory(&self, wanted: Credential) -> Result<Proven, Trouble> {
        let factory = self.factory().await?;
        let redfish = self.bmc.redfish.as_user(factory.clone());
        redfish.prefer(self.dialect.first_form());
        let account = match self.bmc.parts_by(&redfish, self.root).await {
            Ok(parts) => {
                // A login that succeeds ends the BMC's own counting.
                wrong_tries::forget(self.bmc.cx, self.bmc.target, self.bmc.phase).await?;
                self.account(&redfish, &parts, &wanted).await?
            }
            Err(RedfishError::PasswordChangeRequired { account, .. }) => {
                self.forced_account(&factory, &wanted.username, account.as_deref())?
            }
            Err(error @ RedfishError::Unauthorized { .. }) => {
                wrong_tries::remember(self.bmc.cx, self.bmc.target, self.bmc.phase).await?;
                return Err(self.neither(&error).into());
            }
            Err(error) => return Err(error.into()),
        };
        self.set(&redfish, &account, wanted, "the factory's").await
    }

    /// The vault's password is right and has to be changed before anything else: a new one is made, kept beside it, set,
    /// proven, and only then put in its place.
    async fn forced(&self, known: Credential, account: Option<&str>) -> Result<Proven, Trouble> {
        let account = self.forced_account(&known, &known.username, account)?;
        let next = match self.next().await? {
            Some(next) => next,
            None => {
                let next = generate();
                self.put(vec![(NEXT, Some(next.clone()))]).await?;
                next
            }
        };
        let redfish = self.bmc.redfish.as_user(known.clone());
        redfish.prefer(self.dialect.first_form());
        let wanted = Credential { username: known.username, password: next };
        let proven = self.set(&redfish, &account, wanted, "the former").await?;
        self.settle_next().await?;
        Ok(proven)
    }

    /// Sets a password and proves it. The answer to the write is no proof, either way: it may be lost, or a lie. Where it is
    /// lost the former password is tried first: while it works nothing was done, and the write is made again.
    async fn set(&self, redfish: &Redfish, account: &str, wanted: Credential, before: &str) -> Result<Proven, Trouble> {
        let Bmc { cx, target, phase, .. } = *self.bmc;
        // Before the write: whatever becomes of this attempt, the BMC is to be restarted (B4).
        reset_due::remember(cx, target, phase).await?;
        let mut tries = 0;
        loop {
            tries += 1;
            let lost = match self.dialect.set_password(redfish, account, &wanted.password).await {
                Ok(()) => break,
                Err(lost @ RedfishError::Http(_)) => lost,
                Err(RedfishError::Refused { reason, .. }) => return Err(self.policy(&reason).into()),
                Err(other) => return Err(other.into()),
            };
            match self.bmc.parts_by(redfish, self.root).await {
                // Refused by now: it was done.
                Err(RedfishError::Unauthorized { .. }) => {
                    wrong_tries::remember(cx, target, phase).await?;
                    break;
                }
                Ok(_) | Err(RedfishError::PasswordChangeRequired { .. }) if tries < SETS => {}
                Ok(_) | Err(RedfishError::PasswordChangeRequired { .. }) => return Err(lost.into()),
                Err(other) => return Err(other.into()),
            }
        }
        let now = self.bmc.redfish.as_user(wanted);
        now.prefer(self.dialect.first_form());
        let mut again = true;
        loop {
            match self.bmc.parts_by(&now, self.root).await {
                Ok(parts) => {
                    cx.wrote(BMC, &target.host, "admin password", before, "the vault's");
                    return Ok(Proven { rotated: true, redfish: now, parts });
                }
                Err(RedfishError::Unauthorized { .. }) if again => {
                    wrong_tries::remember(cx, target, phase).await?;
                    again = false;
                    tokio::time::sleep(TAKES.min(self.bmc.site.bmc.busy_budget)).await;
                }
                Err(RedfishError::Unauthorized { .. }) => {
                    wrong_tries::remember(cx, target, phase).await?;
                    return Err(self.not_taken().into());
                }
                Err(other) => return Err(other.into()),
            }
        }
    }

    /// The account of the vault's user, as the factory's user sees the accounts; and whether the password fits it.
    async fn account(&self, redfish: &Redfish, parts: &Parts, wanted: &Credential) -> Result<String, Trouble> {
        let accounts = accounts::read(redfish, self.root).await?;
        let missing = || {
            let (host, item, user) = (&self.bmc.target.host, &self.bmc.item, &wanted.username);
            self.bmc.fail(
                FailureCode::BmcAuthFailed,
                format!("the BMC of '{host}' has no user '{user}', whose password the item '{item}' of the vault has"),
                format!("put a user that the BMC has into 'username' of the item '{item}', then retry"),
            )
        };
        let accounts = accounts.ok_or_else(missing)?;
        let account = accounts.of(&wanted.username).ok_or_else(missing)?;
        let at = At { redfish, root: self.root, system: &parts.system, manager: &parts.manager };
        let rules = self.dialect.password_rules(at, &accounts).await?;
        if let Some(why) = rules.why_not(wanted.password.expose_secret()) {
            return Err(self.policy(&why).into());
        }
        Ok(account.path.clone())
    }

    /// The account to write to where everything else is hidden: the one that the BMC names, else the one of the vendor.
    fn forced_account(&self, asks: &Credential, user: &str, named: Option<&str>) -> Result<String, Failure> {
        let host = &self.bmc.target.host;
        if asks.username != user {
            return Err(self.bmc.fail(
                FailureCode::BmcPasswordChangeRequired,
                format!(
                    "the BMC of '{host}' wants the password of '{}' changed first, and the vault has one for '{user}'",
                    asks.username
                ),
                format!(
                    "put '{}' into 'username' of the item '{}' of the vault, then retry",
                    asks.username, self.bmc.item
                ),
            ));
        }
        named.or(self.dialect.forced_account()).map(str::to_owned).ok_or_else(|| {
            self.bmc.fail(
                FailureCode::BmcPasswordChangeRequired,
                format!("the BMC of '{host}' wants the password of '{user}' changed first, and does not say where"),
                format!("change it in the BMC's own web page to the password of the item '{}'", self.bmc.item),
            )
        })
    }

    async fn factory(&self) -> Result<Credential, Failure> {
        credential(self.bmc.cx, &factory_item(self.bmc, self.dialect), self.bmc.phase).await
    }

    /// The password of a setup that was broken off, where there is one.
    async fn next(&self) -> Result<Option<SecretString>, Failure> {
        use crate::clients::vault::VaultError;
        match self.bmc.cx.env.vault.ask(&self.bmc.item, NEXT).await {
            Ok(next) => Ok(Some(next)),
            Err(VaultError::Missing { .. } | VaultError::EnvMissing(_)) => Ok(None),
            Err(error) => Err(vault::failure(&error, self.bmc.phase)),
        }
    }

    /// Puts a next password that is proven in the place of the former; drops one that was never set.
    async fn settle_next(&self) -> Result<(), Failure> {
        let Some(next) = self.next().await? else { return Ok(()) };
        self.put(vec![("password", Some(next)), (NEXT, None)]).await
    }

    async fn put(&self, fields: crate::clients::vault::Fields) -> Result<(), Failure> {
        let Bmc { cx, item, phase, .. } = self.bmc;
        cx.env.vault.put(item, fields).await.map_err(|error| vault::failure(&error, *phase))
    }

    fn refused(&self, error: &RedfishError, missing: &Failure) -> Failure {
        let (host, item) = (&self.bmc.target.host, &self.bmc.item);
        let factory = factory_item(self.bmc, self.dialect);
        self.bmc
            .fail(
                FailureCode::BmcAuthFailed,
                format!("BMC of '{host}': {error}; and {}", missing.message),
                format!(
                    "put the BMC's right credential into the item '{item}' of the vault, or the one that it left the factory \
                     with into '{factory}', then retry"
                ),
            )
    }

    fn neither(&self, error: &RedfishError) -> Failure {
        let (host, item) = (&self.bmc.target.host, &self.bmc.item);
        let factory = factory_item(self.bmc, self.dialect);
        self.bmc.fail(
            FailureCode::BmcAuthFailed,
            format!("the BMC of '{host}' takes neither the item '{item}' nor '{factory}' of the vault: {error}"),
            format!(
                "put the BMC's right credential into the item '{item}' of the vault, then retry; each was tried once"
            ),
        )
    }

    fn policy(&self, why: &str) -> Failure {
        let (host, item) = (&self.bmc.target.host, &self.bmc.item);
        self.bmc.fail(
            FailureCode::BmcPasswordPolicy,
            format!("the BMC of '{host}' does not take the password of the item '{item}' of the vault: {why}"),
            format!("change the password in the item '{item}' to one that the BMC takes, then retry"),
        )
    }

    fn not_taken(&self) -> Failure {
        let (host, item) = (&self.bmc.target.host, &self.bmc.item);
        self.bmc.fail(
            FailureCode::BmcSettingNotApplied,
            format!(
                "the BMC of '{host}' was given the password of the item '{item}' of the vault and does not take it"
            ),
            format!("retry in five minutes; if it stays so, reset the BMC of '{host}' and set its password by hand"),
        )
    }
}

fn factory_item(bmc: &Bmc<'_>, dialect: &dyn Dialect) -> String {
    bmc.cx.env.vault.factory_item(&bmc.target.site, word(dialect.vendor()))
}

fn missing_because(missing: &Failure, why: Failure) -> Failure {
    Failure { message: format!("{}; {}", missing.message, why.message), ..missing.clone() }
}

/// Makes a credential for a host that the vault has none for, and keeps it there before any BMC hears of it.
async fn make(bmc: &Bmc<'_>, dialect: &dyn Dialect) -> Result<Credential, Failure> {
    let factory = credential(bmc.cx, &factory_item(bmc, dialect), bmc.phase).await?;
    let made = Credential { username: factory.username, password: generate() };
    let fields =
        vec![("username", Some(SecretString::from(made.username.clone()))), ("password", Some(made.password.clone()))];
    let kept = bmc.cx.env.vault.put(&bmc.item, fields).await;
    kept.map_err(|error| vault::failure(&error, bmc.phase))?;
    bmc.cx.note(BMC, format!("made a password for the item '{}' of the vault", bmc.item));
    Ok(made)
}

/// A password that every vendor takes: 18 characters, upper and lower case, digits and marks, none twice in a row.
fn generate() -> SecretString {
    const KINDS: [&[u8]; 4] = [b"ABCDEFGHJKLMNPQRSTUVWXYZ", b"abcdefghijkmnopqrstuvwxyz", b"23456789", b"-_."];
    let mut random = rand::rng();
    let mut kinds: Vec<&[u8]> = (0..18).map(|n| KINDS[if n < 6 { n % 3 } else { [0, 1, 1, 2][n % 4] }]).collect();
    kinds[17] = KINDS[3];
    kinds[..17].shuffle(&mut random);
    // A mark stands neither first nor last: some firmware cuts it off there.
    kinds.swap(8, 17);
    let mut text = String::new();
    while text.len() < kinds.len() {
        let Some(c) = kinds[text.len()].choose(&mut random).map(|b| char::from(*b)) else { continue };
        if !text.ends_with(c) {
            text.push(c);
        }
    }
    text.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves nothing but the rules: what is drawn has to fit all four vendors, whatever is drawn.
    #[test]
    fn a_made_password_fits_every_vendor() {
        let mut seen = std::collections::BTreeSet::new();
        for _ in 0..2000 {
            let made = generate();
            let text = made.expose_secret();
            assert_eq!(text.len(), 18);
            for kind in [char::is_uppercase as fn(char) -> bool, char::is_lowercase, |c| c.is_ascii_digit()] {
                assert!(text.chars().any(kind), "{text}");
            }
            assert!(text[1..17].chars().any(|c| "-_.".contains(c)), "{text}");
            assert!(text.as_bytes().windows(2).all(|pair| pair[0] != pair[1]), "{text}");
            assert!(text.starts_with(|c: char| c.is_ascii_alphanumeric()), "{text}");
            assert!(text.ends_with(|c: char| c.is_ascii_alphanumeric()), "{text}");
            seen.insert(text.to_owned());
        }
        assert_eq!(seen.len(), 2000);
    }
}

//! The monitoring user of a BMC: created or mended, and proven without being written again.
//!
//! A password cannot be read back, so equality needs another proof. An account that may use Redfish is proven by one login as
//! that user. One that may use IPMI only is proven by what the store remembers of the last write: a keyed digest, with the
//! host's own BMC password as the key, of everything that it depends on. Where neither proves it, the account is written once.

use hmac::{Hmac, KeyInit, Mac};
use secrecy::ExposeSecret;
use sha2::Sha256;

use super::BMC;
use super::access::{Bmc, Trouble, keep, kept};
use super::configure::Done;
use crate::activities::env::ActivityCx;
use crate::clients::redfish::accounts::{
    self, Accounts, PasswordRules, WantedAccount, creation, differences, mending, types_of,
};
use crate::clients::redfish::dialect::{At, Dialect};
use crate::clients::redfish::error::RedfishError;
use crate::clients::redfish::{Credential, Resource};
use crate::domain::failure::{Failure, FailureCode};
use crate::domain::phase::Phase;
use crate::workflows::defs::Target;

/// The word in messages and in the change list.
pub(super) const LABEL: &str = "IPMI user";

/// Sensors need no more, and a credential that is on every host should give no more.
const ROLE: &str = "ReadOnly";

/// In place of what is remembered of the last write: it is known to be wrong. No digest reads so.
const DOUBTED: &str = "doubted";

/// The longest name and password of IPMI 2.0.
const NAME_MAX: usize = 16;
const PASSWORD_MAX: u64 = 20;

/// Whether name and password are any that the BMC takes; found before anything is written (C-26).
pub(super) fn check_policy(bmc: &Bmc<'_>, rules: PasswordRules, credential: &Credential) -> Result<(), Failure> {
    let Some(why) = unfit(&credential.username, credential.password.expose_secret(), rules) else { return Ok(()) };
    let item = &bmc.cx.env.vault.settings().ipmi_item;
    Err(bmc.fail(
        FailureCode::BmcPasswordPolicy,
        format!("the BMC of '{}' takes no such monitoring user as the vault has: {why}", bmc.target.host),
        format!("change the item '{item}' of the vault, then retry"),
    ))
}

/// Why a name or password fits no BMC with these limits. Says the limit and never the secret.
pub fn unfit(name: &str, password: &str, rules: PasswordRules) -> Option<String> {
    if name.is_empty() || name.len() > NAME_MAX || !name.bytes().all(|b| b.is_ascii_graphic()) {
        return Some(format!("its name '{name}' is not 1 to {NAME_MAX} printable ASCII characters"));
    }
    let max = rules.max.map_or(PASSWORD_MAX, |max| max.min(PASSWORD_MAX));
    let why = PasswordRules { max: Some(max), ..rules }.why_not(password)?;
    Some(format!("of its password: {why}"))
}

/// Creates or mends the account (B10). Writes nothing where it is right and proven.
pub(super) async fn ensure(
    bmc: &Bmc<'_>,
    dialect: &dyn Dialect,
    accounts: &Accounts,
    at: At<'_>,
    credential: Credential,
) -> Result<Done, Trouble> {
    let typed = dialect.has_account_types();
    let wanted = WantedAccount { username: credential.username.clone(), role: ROLE, typed };
    let user = User { bmc, manager: at.manager, wanted, credential };
    let Some(account) = accounts.of(&user.wanted.username) else {
        may_change(dialect, at).await?;
        let made = match dialect.free_place(accounts) {
            Some(place) => Some(user.fill(place).await?),
            None => user.create(accounts, at.root).await?,
        };
        return match made {
            Some(account) => {
                let change = format!(
                    "{ROLE}, enabled{}",
                    types_of(&account)
                        .filter(|_| user.wanted.typed)
                        .map_or(String::new(), |t| format!(", {}", t.join(" ")))
                );
                bmc.cx.wrote(BMC, &bmc.target.host, LABEL, "absent", change);
                user.prove_after_write(&account).await?;
                Ok(Done::Changed)
            }
            None => Ok(Done::Skipped("the BMC takes no new accounts".to_owned())),
        };
    };
    let differing = differences(account, &user.wanted);
    if differing.is_empty() && user.is_proven(account).await? {
        return Ok(Done::Satisfied);
    }
    may_change(dialect, at).await?;
    let account = user.mend(account).await?;
    let (before, after) = if differing.is_empty() {
        ("password unproven".to_owned(), "password of the vault".to_owned())
    } else {
        let words =
            |side: fn(&(&str, String, String)) -> String| differing.iter().map(side).collect::<Vec<_>>().join(", ");
        (words(|(what, before, _)| format!("{what} {before}")), words(|(what, _, after)| format!("{what} {after}")))
    };
    bmc.cx.wrote(BMC, &bmc.target.host, LABEL, before, after);
    user.prove_after_write(&account).await?;
    Ok(Done::Changed)
}

/// Nothing is written to a BMC that is known to take no change.
async fn may_change(dialect: &dyn Dialect, at: At<'_>) -> Result<(), RedfishError> {
    match dialect.refuses_changes(at).await? {
        Some(reason) => Err(RedfishError::LockedDown { asked: LABEL.to_owned(), reason }),
        None => Ok(()),
    }
}

/// Makes the next run write the account anew: a login over IPMI has shown that its password is another one.
pub(super) async fn doubt(cx: &ActivityCx, target: &Target, phase: Phase) -> Result<(), Failure> {
    keep(cx, &key(target), DOUBTED, phase).await
}

fn key(target: &Target) -> String {
    format!("bmc.ipmi_user.{}", target.netbox_id)
}

struct User<'a> {
    bmc: &'a Bmc<'a>,
    manager: &'a Resource,
    wanted: WantedAccount,
    credential: Credential,
}

impl User<'_> {
    fn password(&self) -> &str {
        self.credential.password.expose_secret()
    }

    /// Creates the account; `None` where the BMC has no way to. A request without a clear answer is followed by a look
    /// before it is repeated.
    async fn create(&self, accounts: &Accounts, root: &Resource) -> Result<Option<Resource>, Trouble> {
        let redfish = &self.bmc.redfish;
        let ipmi = ["IPMI".to_owned()];
        // Firmware that knows types has separate users for IPMI and Redfish, and gives a new one Redfish only.
        let mut types = (self.wanted.typed && accounts.have_types()).then_some(&ipmi[..]);
        loop {
            let error = match redfish.post(&accounts.path, &creation(&self.wanted, self.password(), types)).await {
                Ok(_) => None,
                Err(error) if error.is_absent() => return Ok(None),
                Err(RedfishError::Refused { said, .. }) if types.is_some() && said.mentions("AccountTypes") => {
                    types = None;
                    continue;
                }
                Err(error) => Some(error),
            };
            let now = accounts::read(redfish, root).await;
            let found = match &now {
                Ok(Some(now)) => now.of(&self.wanted.username),
                _ => None,
            };
            match (found, error) {
                (Some(account), _) if differences(account, &self.wanted).is_empty() => {
                    return Ok(Some(account.clone()));
                }
                (Some(account), _) => return Ok(Some(self.mend(account).await?)),
                (None, Some(busy @ RedfishError::Busy { .. })) => redfish.be_patient(busy).await?,
                (None, Some(error)) => return Err(error.into()),
                (None, None) => {
                    now?;
                    return Err(self.not_applied("it was created and is not listed").into());
                }
            }
        }
    }

    /// Puts the user into a place that is free, in one write: a name without a password, or one that may not log in, is no
    /// state to be left in.
    async fn fill(&self, place: &Resource) -> Result<Resource, Trouble> {
        let redfish = &self.bmc.redfish;
        let ipmi = ["IPMI".to_owned()];
        // A place that is for everything already is left so: some firmware takes no types at all.
        let lacks_ipmi = |types: &Vec<String>| !types.iter().any(|word| word.eq_ignore_ascii_case("IPMI"));
        let types = types_of(place).filter(|types| self.wanted.typed && lacks_ipmi(types)).map(|_| &ipmi[..]);
        redfish.patch(&place.path, &creation(&self.wanted, self.password(), types)).await?;
        let now = redfish.get(&place.path).await?;
        if now.text("UserName").as_deref() != Some(&*self.wanted.username) {
            return Err(self.not_applied("it was put into a free place and is not there").into());
        }
        if differences(&now, &self.wanted).is_empty() { Ok(now) } else { self.mend(&now).await }
    }

    /// Writes the account with its password, and reads it back.
    async fn mend(&self, account: &Resource) -> Result<Resource, Trouble> {
        let redfish = &self.bmc.redfish;
        redfish.patch(&account.path, &mending(account, &self.wanted, self.password())).await?;
        let now = redfish.get(&account.path).await?;
        match differences(&now, &self.wanted).first() {
            None => Ok(now),
            Some((what, reads, wanted)) => {
                Err(self.not_applied(&format!("{what} was set to '{wanted}' and reads '{reads}'")).into())
            }
        }
    }

    /// Whether the account is known to have the vault's password, without writing it.
    async fn is_proven(&self, account: &Resource) -> Result<bool, Trouble> {
        let kept = kept(self.bmc.cx, &self.key(), self.bmc.phase)?;
        if kept == DOUBTED {
            return Ok(false);
        }
        if may_use_redfish(account) {
            return Ok(self.logs_in().await?);
        }
        Ok(kept == self.digest(account))
    }

    async fn prove_after_write(&self, account: &Resource) -> Result<(), Trouble> {
        if may_use_redfish(account) && !self.logs_in().await? {
            return Err(self.not_applied("its new password does not log in").into());
        }
        Ok(keep(self.bmc.cx, &self.key(), &self.digest(account), self.bmc.phase).await?)
    }

    /// One login as this user. That something is denied to it proves that it was let in.
    async fn logs_in(&self) -> Result<bool, RedfishError> {
        let redfish = self.bmc.redfish.as_user(self.credential.clone());
        match redfish.get(&self.manager.path).await {
            Ok(_) | Err(RedfishError::Forbidden { .. }) => Ok(true),
            Err(RedfishError::Unauthorized { .. }) => Ok(false),
            Err(error) => Err(error),
        }
    }

    fn key(&self) -> String {
        key(self.bmc.target)
    }

    /// Tells nothing of the password to whoever does not know the BMC's own.
    fn digest(&self, account: &Resource) -> String {
        let uuid = self.manager.text("UUID").unwrap_or_default();
        let parts = [&uuid, &account.path, &self.wanted.username, self.password()];
        let mut mac = Hmac::<Sha256>::new_from_slice(self.bmc.password.expose_secret().as_bytes())
            .expect("HMAC takes a key of any length");
        for part in parts {
            mac.update(part.as_bytes());
            mac.update(&[0]);
        }
        mac.finalize().into_bytes().iter().map(|byte| format!("{byte:02x}")).collect()
    }

    fn not_applied(&self, why: &str) -> Failure {
        let (host, name) = (&self.bmc.target.host, &self.wanted.username);
        self.bmc.fail(
            FailureCode::BmcSettingNotApplied,
            format!("{LABEL} '{name}' of the BMC of '{host}': {why}"),
            format!("retry; if it stays so, create '{name}' in the BMC's own web page"),
        )
    }
}

/// Old firmware has one table of users for both, and does not say.
fn may_use_redfish(account: &Resource) -> bool {
    types_of(account).is_none_or(|types| types.iter().any(|word| word.eq_ignore_ascii_case("Redfish")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limits(min: Option<u64>, max: Option<u64>) -> PasswordRules {
        PasswordRules { min, max, ..PasswordRules::default() }
    }

    /// Case: C-26
    #[test]
    fn a_password_that_a_bmc_would_cut_or_refuse_is_found_and_never_shown() {
        let table = [
            ("a-32-character-secret-0123456789", false),
            ("short", false),
            ("with-\u{e9}-not-ascii-1234", false),
            ("twenty-characters-ok", true),
        ];
        for (password, fits) in table {
            let why = unfit("ipmi_exporter", password, limits(Some(8), Some(20)));
            assert_eq!(why.is_none(), fits, "{password}");
            assert!(why.is_none_or(|why| !why.contains(password)), "{password}");
        }
        assert!(unfit("ipmi_exporter", "twenty-one-characters", limits(None, Some(127))).unwrap().contains("1 to 20"));
        assert!(unfit("a-name-that-is-too-long", "good-enough", limits(None, None)).is_some());
    }
}

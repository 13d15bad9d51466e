//! Making a host's credential work on its BMC, on each vendor that is set up so: no moment loses it.

use jiff::Timestamp;
use muster::activities::bmc::{back, prepare};
use muster::domain::failure::{FailureCode, Owner};
use muster::lab::bmc::Settings;
use muster::lab::faults::HttpRule;
use muster::lab::machine::{Quirk, Vendor};
use muster::workflows::defs::{BmcBackIn, PrepareBmcOut};

use super::{HOST, Rig};

const VENDORS: [Vendor; 3] = [Vendor::Lenovo, Vendor::Dell, Vendor::Ami];

pub(super) fn item() -> String {
    format!("bmc-{HOST}")
}

async fn rig(vendor: Vendor, quirks: &[Quirk]) -> Rig {
    Rig::of(|scenario| {
        scenario.types.values_mut().for_each(|model| model.bmc = vendor);
        scenario.hosts[0].bmc_quirks = quirks.iter().copied().collect();
    })
    .await
}

/// The administrator's password as the BMC has it now.
pub(super) fn on_the_bmc(rig: &Rig, vendor: Vendor) -> String {
    rig.machine().bmc.accounts[vendor.factory_login().0].clone()
}

fn wrong_logins(rig: &Rig) -> u32 {
    Settings::of(&rig.machine()).logins.values().map(|logins| logins.wrong_ever).sum()
}

/// Each attempt of an engine is one more call, on a context that knows nothing of the last.
pub(super) async fn prepared(rig: &Rig) -> Result<PrepareBmcOut, muster::domain::failure::Failure> {
    prepare(&rig.next_run(), rig.prepare_in(false)).await
}

/// Proves: B3, B4
#[tokio::test]
async fn a_bmc_with_its_factory_password_gets_the_vaults_and_is_left_alone_from_then_on() {
    for vendor in VENDORS {
        let rig = rig(vendor, &[Quirk::FactoryPassword]).await;
        let wanted = rig.secret(&item(), "password");
        let out = prepared(&rig).await.unwrap_or_else(|e| panic!("{vendor:?}: {e}"));
        assert!(out.password_rotated && out.needs_reset, "{vendor:?}: {out:?}");
        assert_eq!(on_the_bmc(&rig, vendor), wanted, "{vendor:?}");
        assert_eq!(wrong_logins(&rig), 1, "{vendor:?}: the vault's password was tried once");
        assert_eq!(rig.writes().len(), 1, "{vendor:?}: {:?}", rig.writes());
        assert_eq!(rig.changes(), ["admin password: the factory's -> the vault's"], "{vendor:?}");
        // An attempt or a run that ended behind the write leaves the restart to the next one.
        let out = prepared(&rig).await.unwrap();
        assert!(!out.password_rotated && out.needs_reset, "{vendor:?}: {out:?}");
        let restarted = BmcBackIn { target: rig.target(), since: Timestamp::now(), seen_away: true, asked_at: None };
        assert!(back(&rig.cx, restarted).await.unwrap().back, "{vendor:?}");
        let out = prepared(&rig).await.unwrap();
        assert!(!out.password_rotated && !out.needs_reset, "{vendor:?}: {out:?}");
        assert_eq!((rig.writes().len(), wrong_logins(&rig)), (1, 1), "{vendor:?}");
    }
}

/// Proves: B3
#[tokio::test]
async fn a_password_that_has_to_be_changed_first_is_changed_with_the_new_one_in_the_vault_before() {
    for vendor in [Vendor::Lenovo, Vendor::Dell] {
        let rig = rig(vendor, &[Quirk::ForcedPasswordChange]).await;
        let factory = vendor.factory_login().1;
        // Somebody put what the BMC came with into the vault.
        rig.vault(&item(), Some(("password", factory)));
        let out = prepared(&rig).await.unwrap_or_else(|e| panic!("{vendor:?}: {e}"));
        assert!(out.password_rotated, "{vendor:?}: {out:?}");
        let now = rig.secret(&item(), "password");
        assert_ne!(now, factory, "{vendor:?}");
        assert_eq!(on_the_bmc(&rig, vendor), now, "{vendor:?}");
        assert_eq!(rig.maybe_secret(&item(), "password_next"), None, "{vendor:?}");
        assert_eq!(wrong_logins(&rig), 0, "{vendor:?}");
    }
}

/// Proves: B3
#[tokio::test]
async fn a_host_without_an_item_gets_one_before_its_bmc_hears_of_it() {
    let rig = rig(Vendor::Ami, &[Quirk::FactoryPassword]).await;
    rig.vault(&item(), None);
    // The write does not come through, however often: the vault has it all the same.
    let patch = HttpRule { method: Some("PATCH".into()), drop: true, count: Some(3), ..HttpRule::default() };
    rig.rule(patch);
    prepared(&rig).await.unwrap_err();
    let made = rig.secret(&item(), "password");
    assert_eq!(on_the_bmc(&rig, Vendor::Ami), Vendor::Ami.factory_login().1);
    rig.forget_wrong_tries().await;
    let out = prepared(&rig).await.unwrap();
    assert!(out.password_rotated);
    assert_eq!((on_the_bmc(&rig, Vendor::Ami), rig.secret(&item(), "password")), (made.clone(), made));
    assert_eq!(rig.secret(&item(), "username"), "admin");
}

/// Proves: B3
///
/// Whatever request of a setup is lost, before or behind its effect: one of the passwords that the vault has works, and a
/// further attempt ends well.
#[tokio::test]
async fn no_lost_answer_loses_the_credential() {
    for (quirk, from_vault) in [(Quirk::FactoryPassword, false), (Quirk::ForcedPasswordChange, true)] {
        let vendor = Vendor::Lenovo;
        let mut lost = 0;
        for skip in 0.. {
            let mut met = false;
            for after_effect in [false, true] {
                let rig = rig(vendor, &[quirk]).await;
                if from_vault {
                    rig.vault(&item(), Some(("password", vendor.factory_login().1)));
                }
                rig.rule(HttpRule { skip, count: Some(1), drop: true, after_effect, ..HttpRule::default() });
                let first = prepared(&rig).await;
                met |= rig.asked().len() > skip as usize;
                let known = [
                    Some(rig.secret(&item(), "password")),
                    rig.maybe_secret(&item(), "password_next"),
                    Some(rig.secret("bmc-factory-lenovo", "password")),
                ];
                let valid = Some(on_the_bmc(&rig, vendor));
                assert!(known.contains(&valid), "{quirk:?}, request {skip} lost, after {after_effect}: {first:?}");
                rig.forget_wrong_tries().await;
                let again = prepared(&rig).await;
                assert!(again.is_ok(), "{quirk:?}, request {skip} lost, after {after_effect}: {again:?}");
                assert_eq!(on_the_bmc(&rig, vendor), rig.secret(&item(), "password"));
                assert_eq!(rig.maybe_secret(&item(), "password_next"), None);
                lost += 1;
            }
            if !met {
                break;
            }
        }
        assert!(lost > 6, "{lost}");
    }
}

/// The program ends at a request of a setup, before the BMC has carried it out or behind it: nothing of it goes on. `false`:
/// the setup ended before it came so far.
async fn killed_at(rig: &Rig, skip: u32, after_effect: bool) -> bool {
    let rules = rig.lab.world().rules();
    rules.clear();
    rig.rule(HttpRule { skip, count: Some(1), hang: true, after_effect, ..HttpRule::default() });
    let met = async {
        while rules.uses().last().is_none_or(|uses| *uses == 0) {
            tokio::time::sleep(std::time::Duration::from_micros(200)).await;
        }
        // What is carried out before the answer is spoilt, is by now.
        tokio::time::sleep(std::time::Duration::from_millis(3)).await;
    };
    let killed = tokio::select! {
        biased;
        () = met => true,
        _ = prepared(rig) => false,
    };
    rules.clear();
    killed
}

/// A BMC as it left the factory, again.
async fn as_new(rig: &Rig, vendor: Vendor, forced: bool, vault: &str) {
    let (user, factory) = vendor.factory_login();
    rig.change_machine(|machine| {
        machine.bmc.accounts.insert(user.to_owned(), factory.to_owned());
        // An iDRAC forces it as long as the factory's is in use.
        if forced && vendor == Vendor::Lenovo {
            machine.bmc.settings.get_mut("lenovo").unwrap()["must_change"] = true.into();
        }
    });
    rig.vault(&item(), Some(("password", if forced { factory } else { vault })));
    rig.forget_wrong_tries().await;
}

/// How often each request of a setup is the one at which the power fails.
const ROUNDS: u32 = 5;

/// Proves: B3
///
/// Power cuts at every request of a setup, and at random ones of the setups that follow them: there is always a password in
/// the vault that works, and the setup that is let go on ends well.
#[tokio::test]
async fn no_power_cut_ends_with_a_credential_that_nobody_knows() {
    let mut random = 0x2545_f491_4f6c_dd1du64;
    let mut draw = |n: u64| {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        random % n
    };
    let (mut points, mut setups) = (0, 0);
    let kinds = [
        (Vendor::Lenovo, Quirk::FactoryPassword),
        (Vendor::Lenovo, Quirk::ForcedPasswordChange),
        (Vendor::Dell, Quirk::FactoryPassword),
        // By the account first, and then as an attribute.
        (Vendor::Dell, Quirk::ForcedChangeByAttribute),
        (Vendor::Ami, Quirk::FactoryPassword),
    ];
    for (vendor, quirk) in kinds {
        let forced = quirk != Quirk::FactoryPassword;
        let rig = rig(vendor, &[quirk]).await;
        let vault = rig.secret(&item(), "password");
        let word = format!("{vendor:?}").to_lowercase();
        for round in 0..ROUNDS {
            for first in 0.. {
                as_new(&rig, vendor, forced, &vault).await;
                let mut cut = killed_at(&rig, first, round % 2 == 1).await;
                let whole = !cut;
                while cut {
                    points += 1;
                    let known: Vec<String> = [
                        rig.maybe_secret(&item(), "password"),
                        rig.maybe_secret(&item(), "password_next"),
                        rig.maybe_secret(&format!("bmc-factory-{word}"), "password"),
                    ]
                    .into_iter()
                    .flatten()
                    .collect();
                    assert!(known.contains(&on_the_bmc(&rig, vendor)), "{vendor:?} {quirk:?}: cut at {first}");
                    // What a person waits for in between.
                    rig.forget_wrong_tries().await;
                    cut = draw(2) == 0 && killed_at(&rig, draw(12) as u32, draw(2) == 0).await;
                }
                rig.forget_wrong_tries().await;
                prepared(&rig).await.unwrap_or_else(|e| panic!("{vendor:?} {quirk:?}: cut at {first}: {e}"));
                assert_eq!(on_the_bmc(&rig, vendor), rig.secret(&item(), "password"), "{vendor:?} {quirk:?} {first}");
                assert_eq!(rig.maybe_secret(&item(), "password_next"), None, "{vendor:?} {quirk:?} {first}");
                setups += 1;
                if whole {
                    break;
                }
            }
        }
    }
    println!("{points} power cuts in {setups} setups of a password: 0 ended with a credential that nobody knows");
    assert!(points >= 500, "{points}");
}

/// Proves: B3
#[tokio::test]
async fn where_neither_password_works_each_was_tried_once_and_the_account_is_not_locked() {
    let rig = rig(Vendor::Dell, &[]).await;
    rig.change_machine(|machine| drop(machine.bmc.accounts.insert("root".into(), "somebody-elses".into())));
    let failure = prepared(&rig).await.unwrap_err();
    assert_eq!(failure.code, FailureCode::BmcAuthFailed);
    assert!(failure.message.contains(&item()) && failure.message.contains("bmc-factory-dell"), "{failure}");
    assert_eq!(wrong_logins(&rig), 2);
    rig.forget_requests();
    let failure = prepared(&rig).await.unwrap_err();
    assert!(failure.message.contains("not tried again"), "{failure}");
    assert!(rig.asked().is_empty() && rig.writes().is_empty());
}

/// Case: C-26
#[tokio::test]
async fn a_password_that_the_bmc_would_not_take_is_found_before_the_write() {
    let rig = rig(Vendor::Ami, &[Quirk::FactoryPassword]).await;
    rig.vault(&item(), Some(("password", "too-short")));
    let failure = prepared(&rig).await.unwrap_err();
    assert_eq!(failure.code, FailureCode::BmcPasswordPolicy);
    assert!(failure.message.contains("9 characters") && !failure.message.contains("too-short"), "{failure}");
    assert_eq!(rig.writes(), Vec::<String>::new());
}

#[tokio::test]
async fn without_a_factory_credential_the_refusal_says_where_to_put_one() {
    let rig = rig(Vendor::Lenovo, &[Quirk::FactoryPassword]).await;
    rig.vault("bmc-factory-lenovo", None);
    let failure = prepared(&rig).await.unwrap_err();
    assert_eq!(failure.code, FailureCode::BmcAuthFailed);
    assert!(failure.action.contains("'bmc-factory-lenovo'") && failure.action.contains(&item()), "{failure:?}");
    assert_eq!((rig.writes().len(), wrong_logins(&rig)), (0, 1));
}

/// Proves: B3
/// Case: C-26
///
/// What each vendor's BMC says that it takes is held against the vault's password, and a password that does not fit is found
/// before the write: the BMC keeps what it has, and the vault too. Mended there, the next run sets it.
#[tokio::test]
async fn a_password_of_a_length_or_with_characters_that_a_vendor_refuses_is_found_before_the_write() {
    let accent = "Right-\u{f6}ne-17-and-more";
    // Passwords with the reason against each, and one that is taken.
    type Row<'a> = (Vendor, &'a [(&'a str, &'a str)], &'a str);
    let table: [Row; 3] = [
        (
            Vendor::Lenovo,
            &[
                ("Short-17", "8 characters, 10 to 32"),
                ("Much-longer-than-anything-it-takes-17", "37 characters, 10 to 32"),
                ("No-digit-in-here", "no digit"),
                ("1234567890-12", "no letter"),
                ("With a blank-17", "printable ASCII"),
                (accent, "printable ASCII"),
            ],
            "Right-one-17-and-more",
        ),
        (
            Vendor::Dell,
            &[
                ("A-password-of-more-than-forty-characters-1", "42 characters, 1 to 40"),
                ("no-upper-case-17", "no upper case letter"),
                ("No-digit-in-here", "no digit"),
                ("NoMarkInHere17", "no mark"),
                (accent, "printable ASCII"),
            ],
            "Right-one-17",
        ),
        (
            Vendor::Ami,
            &[
                ("Short-17", "8 characters, 13 to 20"),
                ("Longer-than-twenty-17", "21 characters, 13 to 20"),
                ("With a blank-17", "printable ASCII"),
            ],
            "Right-one-17-more",
        ),
    ];
    for (vendor, wrong, right) in table {
        let rig = rig(vendor, &[Quirk::FactoryPassword, Quirk::StrictPasswords]).await;
        let factory = vendor.factory_login().1;
        for (password, why) in wrong {
            rig.vault(&item(), Some(("password", password)));
            let failure = prepared(&rig).await.unwrap_err();
            assert_eq!((failure.code, failure.owner), (FailureCode::BmcPasswordPolicy, Owner::InfraEng), "{failure}");
            assert!(failure.message.contains(why) && failure.message.contains(&item()), "{vendor:?}: {failure}");
            assert!(failure.action.contains(&item()) && !failure.retryable, "{failure:?}");
            assert!(!format!("{failure:?}").contains(password), "{vendor:?}: it tells the password");
            assert_eq!((rig.writes(), on_the_bmc(&rig, vendor).as_str()), (vec![], factory), "{vendor:?}: {password}");
            rig.forget_wrong_tries().await;
        }
        rig.vault(&item(), Some(("password", right)));
        assert!(prepared(&rig).await.unwrap().password_rotated, "{vendor:?}");
        assert_eq!(on_the_bmc(&rig, vendor), right, "{vendor:?}");
    }
}

/// Case: C-26
///
/// A rule that a BMC tells nobody: its refusal is one of the password, and leaves both sides with what works.
#[tokio::test]
async fn a_password_that_a_bmc_refuses_for_a_reason_of_its_own_is_a_matter_of_the_password_on_each_vendor() {
    for vendor in VENDORS {
        let rig = rig(vendor, &[Quirk::FactoryPassword]).await;
        let body = serde_json::json!({"error": {"@Message.ExtendedInfo": [{"MessageId": "Base.1.8.PropertyValueFormatError",
            "Message": "The character '_' is not accepted.", "MessageArgs": ["******", "Password"]}]}});
        let method = Some("PATCH".into());
        rig.rule(HttpRule { method, status: Some(400), body: Some(body), count: Some(1), ..HttpRule::default() });
        let failure = prepared(&rig).await.unwrap_err();
        assert_eq!(failure.code, FailureCode::BmcPasswordPolicy, "{vendor:?}: {failure}");
        assert!(failure.message.contains("The character '_' is not accepted."), "{failure}");
        assert_eq!(
            (rig.writes().len(), on_the_bmc(&rig, vendor).as_str()),
            (1, vendor.factory_login().1),
            "{vendor:?}"
        );
        rig.forget_wrong_tries().await;
        assert!(prepared(&rig).await.unwrap().password_rotated, "{vendor:?}");
    }
}

/// Case: C-26
///
/// A password that muster makes fits a BMC whose every rule is on.
#[tokio::test]
async fn a_made_password_is_taken_by_a_bmc_with_every_rule_on() {
    let rig = rig(Vendor::Dell, &[Quirk::ForcedPasswordChange, Quirk::StrictPasswords]).await;
    rig.vault(&item(), Some(("password", Vendor::Dell.factory_login().1)));
    assert!(prepared(&rig).await.unwrap().password_rotated);
    assert_eq!(on_the_bmc(&rig, Vendor::Dell), rig.secret(&item(), "password"));
}

//! The monitoring user: created once, proven without being written, mended where it is wrong.

use muster::activities::bmc::configure;
use muster::domain::failure::{FailureCode, Owner};
use muster::lab::bmc::{Settings, User};
use muster::lab::machine::{Quirk, Vendor};
use muster::workflows::defs::{BmcPart, ConfigureBmcIn};

use super::Rig;

const ITEM: &str = "ipmi_exporter";

fn put_user(rig: &Rig, role: &str, types: &[&str], password: &str) {
    rig.change_machine(|machine| {
        let mut settings = Settings::of(machine);
        let types = types.iter().map(|word| (*word).to_owned()).collect();
        settings.add_user(User { name: ITEM.into(), role: role.into(), enabled: true, types });
        settings.keep(machine);
        machine.bmc.accounts.insert(ITEM.into(), password.into());
    });
}

fn account_writes(rig: &Rig) -> Vec<String> {
    rig.writes().into_iter().filter(|write| write.contains("Accounts")).collect()
}

/// Proves: B10
#[tokio::test]
async fn without_its_credential_in_the_vault_nothing_is_written() {
    let rig = Rig::start().await;
    rig.vault(ITEM, None);
    let failure = configure(&rig.cx, rig.configure_in()).await.unwrap_err();
    assert_eq!(failure.code, FailureCode::VaultItemMissing);
    assert!(failure.message.contains("'ipmi_exporter'"), "{failure}");
    assert!(rig.writes().is_empty());
}

/// Proves: B10
#[tokio::test]
async fn a_bmc_without_accounts_skips_the_step_and_needs_no_credential() {
    let rig = Rig::start().await;
    rig.vault(ITEM, None);
    rig.rule(muster::lab::faults::HttpRule {
        path: Some("/redfish/v1/AccountService".into()),
        status: Some(404),
        ..Default::default()
    });
    let out = configure(&rig.cx, rig.configure_in()).await.unwrap();
    assert_eq!(out.skipped, ["IPMI user: the BMC has no accounts to manage"]);
    assert_eq!(out.changed, ["hostname", "NTP", "syslog", "IPMI over LAN"]);
}

/// Proves: B10, G4
#[tokio::test]
async fn a_password_changed_in_the_vault_is_written_once() {
    let rig = Rig::start().await;
    configure(&rig.cx, rig.configure_in()).await.unwrap();
    rig.vault(ITEM, Some(("password", "another-secret-17")));
    rig.forget_requests();
    let out = configure(&rig.next_run(), rig.configure_in()).await.unwrap();
    assert_eq!(out.changed, ["IPMI user"]);
    assert_eq!(rig.machine().bmc.accounts[ITEM], "another-secret-17");
    rig.forget_requests();
    configure(&rig.next_run(), rig.configure_in()).await.unwrap();
    assert!(rig.writes().is_empty());
}

/// Proves: B10, G4
#[tokio::test]
async fn a_user_that_may_use_redfish_is_proven_by_a_login_and_not_written() {
    let rig = Rig::start().await;
    put_user(&rig, "ReadOnly", &["Redfish", "IPMI"], &rig.secret(ITEM, "password"));
    configure(&rig.cx, rig.configure_in()).await.unwrap();
    assert_eq!(account_writes(&rig), Vec::<String>::new());
}

/// Proves: B10
#[tokio::test]
async fn a_wrong_role_type_and_password_are_mended_in_one_write_and_the_account_is_not_locked() {
    let rig = Rig::start().await;
    put_user(&rig, "Administrator", &["Redfish"], "something-else-9");
    configure(&rig.cx, rig.configure_in()).await.unwrap();
    assert_eq!(account_writes(&rig).len(), 1);
    let settings = rig.settings();
    let user = settings.users.values().find(|user| user.name == ITEM).unwrap();
    assert_eq!(user.role, "ReadOnly");
    assert_eq!(user.types, ["Redfish", "IPMI"]);
    assert_eq!(rig.machine().bmc.accounts[ITEM], rig.secret(ITEM, "password"));
    assert!(
        rig.changes()
            .contains(&"IPMI user: role Administrator, types Redfish -> role ReadOnly, types Redfish, IPMI".into())
    );
    assert!(settings.logins.get(ITEM).is_none_or(|logins| logins.wrong_ever <= 1), "{:?}", settings.logins);
}

/// Case: C-26
#[tokio::test]
async fn a_password_that_ipmi_would_cut_is_found_before_any_write() {
    let rig = Rig::start().await;
    rig.vault(ITEM, Some(("password", "a-32-character-secret-0123456789")));
    let failure = configure(&rig.cx, rig.configure_in()).await.unwrap_err();
    assert_eq!(failure.code, FailureCode::BmcPasswordPolicy);
    assert!(failure.message.contains("32 characters, 8 to 20 are allowed"), "{failure}");
    assert!(!failure.message.contains("a-32-character"), "{failure}");
    assert!(rig.writes().is_empty());
}

/// Proves: B10
/// Case: C-26
#[tokio::test]
async fn a_monitoring_password_that_a_vendor_would_refuse_is_found_before_any_write() {
    let vendors = [
        (Vendor::Supermicro, "Supermicro"),
        (Vendor::Lenovo, "Lenovo XCC"),
        (Vendor::Dell, "Dell iDRAC"),
        (Vendor::Ami, "AMI MegaRAC"),
    ];
    for (vendor, label) in vendors {
        let rig = Rig::of(|scenario| {
            scenario.types.values_mut().for_each(|model| model.bmc = vendor);
            scenario.hosts[0].bmc_quirks = [Quirk::StrictPasswords].into();
        })
        .await;
        let strict = match vendor {
            Vendor::Lenovo => ("no-digits-in-here", "no digit"),
            Vendor::Dell => ("no-upper-case-17", "no upper case letter"),
            Vendor::Supermicro | Vendor::Ami => ("short", "5 characters"),
        };
        let input = || ConfigureBmcIn { vendor: label.into(), part: BmcPart::Monitoring, ..rig.configure_in() };
        for (password, why) in
            [("With a blank-17", "printable ASCII"), ("Longer-than-twenty-17", "21 characters"), strict]
        {
            rig.vault(ITEM, Some(("password", password)));
            let failure = configure(&rig.next_run(), input()).await.unwrap_err();
            assert_eq!((failure.code, failure.owner), (FailureCode::BmcPasswordPolicy, Owner::InfraEng), "{failure}");
            assert!(failure.message.contains(why) && failure.action.contains(ITEM), "{vendor:?}: {failure:?}");
            assert!(!format!("{failure:?}").contains(password), "{vendor:?}: it tells the password");
            assert_eq!(rig.writes(), Vec::<String>::new(), "{vendor:?}: {password}");
        }
        rig.vault(ITEM, Some(("password", "Right-one-17-more")));
        configure(&rig.next_run(), input()).await.unwrap_or_else(|e| panic!("{vendor:?}: {e}"));
        assert_eq!(rig.machine().bmc.accounts[ITEM], "Right-one-17-more", "{vendor:?}");
    }
}

//! The order of a password setup (vault first, then the BMC, prove, forget) on vaults that are no plain file.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::Duration;

use muster::config::settings::{AgeVault, ConnectVault, SecretRef, Settings, Trust, VaultKind};
use muster::lab::faults::HttpRule;
use muster::lab::machine::{Quirk, Vendor};
use secrecy::ExposeSecret;

use super::Rig;
use super::connect_server::{Connect, VAULT};
use super::password::{item, on_the_bmc, prepared};

/// A host whose BMC wants its password changed first, in a lab whose vault is another one with the same items.
async fn rig(settle: impl FnOnce(&mut Settings, &toml::Table)) -> Rig {
    let vendor = Vendor::Lenovo;
    Rig::with(
        |scenario| {
            scenario.types.values_mut().for_each(|model| model.bmc = vendor);
            scenario.hosts[0].bmc_quirks = [Quirk::ForcedPasswordChange].into();
        },
        |settings| {
            let VaultKind::File(path) = &settings.vault.kind else { panic!("{:?}", settings.vault) };
            let mut items: toml::Table = std::fs::read_to_string(path).unwrap().parse().unwrap();
            // Somebody put what the BMC came with into the vault.
            items[&item()].as_table_mut().unwrap().insert("password".into(), vendor.factory_login().1.into());
            settle(settings, &items);
        },
    )
    .await
}

async fn secret(rig: &Rig, item: &str, field: &str) -> Option<String> {
    rig.cx.env.vault.ask(item, field).await.ok().map(|secret| secret.expose_secret().to_owned())
}

/// Whatever request of the setup is lost, before or behind its effect: a password of the vault works, and the next attempt ends
/// well. Says how many were lost.
async fn no_lost_answer_loses_the_credential(fresh: impl AsyncFn() -> Rig) -> usize {
    let mut lost = 0;
    for skip in 0.. {
        let mut met = false;
        for after_effect in [false, true] {
            let rig = fresh().await;
            rig.rule(HttpRule { skip, count: Some(1), drop: true, after_effect, ..HttpRule::default() });
            let first = prepared(&rig).await;
            met |= rig.asked().len() > skip as usize;
            let valid = Some(on_the_bmc(&rig, Vendor::Lenovo));
            let known = [secret(&rig, &item(), "password").await, secret(&rig, &item(), "password_next").await];
            assert!(known.contains(&valid), "request {skip} lost, after {after_effect}: {first:?}");
            rig.forget_wrong_tries().await;
            let again = prepared(&rig).await;
            assert!(again.is_ok(), "request {skip} lost, after {after_effect}: {again:?}");
            assert_eq!(Some(on_the_bmc(&rig, Vendor::Lenovo)), secret(&rig, &item(), "password").await);
            assert_eq!(secret(&rig, &item(), "password_next").await, None);
            lost += 1;
        }
        if !met {
            return lost;
        }
    }
    lost
}

/// Proves: B3
#[tokio::test]
async fn on_1password_connect_no_lost_answer_loses_the_credential() {
    let connect = Connect::start("t0ken").await;
    let token = tempfile::tempdir().unwrap();
    let path = token.path().join("token");
    private(&path, b"t0ken");
    let fresh = async || {
        rig(|settings, items| {
            connect.state().items.clear();
            for (title, fields) in items {
                let fields: Vec<(&str, &str)> = fields
                    .as_table()
                    .unwrap()
                    .iter()
                    .map(|(name, text)| (name.as_str(), text.as_str().unwrap()))
                    .collect();
                connect.add(title, &fields);
            }
            settings.vault.kind = VaultKind::Connect(ConnectVault {
                url: connect.server.uri().parse().unwrap(),
                token: SecretRef::File(path.clone()),
                vault: VAULT.into(),
                trust: Trust::System,
                timeout: Duration::from_secs(10),
            });
        })
        .await
    };
    let lost = no_lost_answer_loses_the_credential(fresh).await;
    assert!(lost > 6, "{lost}");
    // The vault's requests are none of the BMC's ledger: the order of both is told by what each had when.
    let rig = fresh().await;
    let world = rig.lab.world().clone();
    let told = std::sync::Arc::new(std::sync::Mutex::new(Vec::new()));
    let (keep, name) = (told.clone(), item());
    connect.state().behind_writes = Some(Box::new(move |items| {
        let fields = items.iter().find(|i| i["title"] == *name).unwrap()["fields"].as_array().unwrap().clone();
        let value =
            |label: &str| fields.iter().find(|f| f["label"] == label).map(|f| f["value"].as_str().unwrap().to_owned());
        let bmc = world.machine(super::HOST).unwrap().bmc.accounts[Vendor::Lenovo.factory_login().0].clone();
        keep.lock().unwrap().push((value("password"), value("password_next"), bmc));
    }));
    prepared(&rig).await.unwrap();
    let (now, factory) = (on_the_bmc(&rig, Vendor::Lenovo), Vendor::Lenovo.factory_login().1.to_owned());
    let told = told.lock().unwrap().clone();
    let before = (Some(factory.clone()), Some(now.clone()), factory);
    assert_eq!(told, [before, (Some(now.clone()), None, now)], "next to the old, then in its place once it is proven");
}

/// Proves: B3
#[tokio::test]
async fn in_an_encrypted_file_no_lost_answer_loses_the_credential() {
    let identity = age::x25519::Identity::generate();
    let fresh = async || {
        rig(|settings, items| {
            let VaultKind::File(plain) = settings.vault.kind.clone() else { panic!() };
            let (path, key) = (plain.with_extension("age"), plain.with_extension("identity"));
            private(&path, &age::encrypt(&identity.to_public(), items.to_string().as_bytes()).unwrap());
            private(&key, identity.to_string().expose_secret().as_bytes());
            std::fs::remove_file(plain).unwrap();
            settings.vault.kind = VaultKind::Age(AgeVault { path, identity: SecretRef::File(key), recipients: vec![] });
        })
        .await
    };
    let lost = no_lost_answer_loses_the_credential(fresh).await;
    assert!(lost > 6, "{lost}");
}

fn private(path: &Path, bytes: &[u8]) {
    std::fs::write(path, bytes).unwrap();
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600)).unwrap();
}

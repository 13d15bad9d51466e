//! Reads `[vault]`: where secrets are (K2). A kind of vault is one row of [`KINDS`], one variant of [`VaultKind`], and one
//! file under `clients/vault/`.

use std::path::PathBuf;
use std::time::Duration;

use url::Url;

use super::load::REQUEST_MAX;
use super::settings::{SecretRef, Trust};
use super::shape;
use super::table::{Section, shown};

/// `[vault]`
#[derive(Debug, Clone, PartialEq)]
pub struct VaultSettings {
    pub kind: VaultKind,
    /// Item with the DHCP hosts' private key and known_hosts (`ssh-config-dhcp`; fields `private_key`, `known_hosts`).
    pub dhcp_item: String,
    /// Item of a host's BMC credential; `{host}` stands for the device name (fields `username`, `password`).
    pub bmc_item: String,
    /// Item of the monitoring user (fields `username`, `password`).
    pub ipmi_item: String,
    /// Item of the credential that BMCs of a vendor leave the factory with; `{vendor}` stands for `lenovo`, `dell` or `ami`,
    /// `{site}` for the site's slug (fields `username`, `password`).
    pub factory_item: String,
}

/// Where the vault is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum VaultKind {
    /// Environment variables `MUSTER_SECRET_<ITEM>_<FIELD>`, upper case, every other character an underscore.
    Env,
    /// A TOML file of mode 0600: `[item] field = "…"`.
    File(PathBuf),
    Age(AgeVault),
    Connect(ConnectVault),
    Op(OpVault),
    Keyring(KeyringVault),
}

/// The same TOML file, encrypted with age.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgeVault {
    pub path: PathBuf,
    /// `env:` or `file:`, with one or several X25519 identities as `age-keygen` writes them.
    pub identity: SecretRef,
    /// Who else can read what is written; the identity's own recipient always can.
    pub recipients: Vec<String>,
}

/// 1Password Connect, over REST.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConnectVault {
    /// With or without `/v1` at its end.
    pub url: Url,
    /// `env:` or `file:`.
    pub token: SecretRef,
    /// Name or UUID of the vault.
    pub vault: String,
    pub trust: Trust,
    /// Of one request.
    pub timeout: Duration,
}

/// The command-line program of 1Password.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpVault {
    pub program: PathBuf,
    /// Name or UUID of the vault.
    pub vault: String,
    /// Where the program is signed in to more than one.
    pub account: Option<String>,
    /// Of one call.
    pub timeout: Duration,
}

/// The Secret Service of a desktop, by `secret-tool`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyringVault {
    pub program: PathBuf,
    /// Of one call; a keyring that asks its user to unlock it needs some.
    pub timeout: Duration,
}

/// A kind of vault, as configuration and docs have it.
pub struct Kind {
    /// The value of `kind`.
    pub word: &'static str,
    /// What is kept where.
    pub keeps: &'static str,
    /// What muster can write there.
    pub writes: &'static str,
    pub needs: &'static str,
    /// The keys that are its own.
    pub keys: &'static [&'static str],
    read: fn(&Section<'_>) -> Option<VaultKind>,
}

/// Every kind.
pub const KINDS: [Kind; 6] = [
    Kind {
        word: "env",
        keeps: "a variable of muster's own environment for each field: `MUSTER_SECRET_ITEM_FIELD`",
        writes: "nothing: a BMC whose password has to be set is refused",
        needs: "nothing",
        keys: &[],
        read: |_| Some(VaultKind::Env),
    },
    Kind {
        word: "file",
        keeps: "a TOML file of mode 0600 with a table for each item",
        writes: "fields of an item, all or none; the rest of the file stays as it was",
        needs: "a folder that muster's user can write",
        keys: &["path"],
        read: |t| path(t, "file").map(VaultKind::File),
    },
    Kind {
        word: "age",
        keeps: "the same TOML file, encrypted with age",
        writes: "as `file`, encrypted anew to `recipients` and to the identity itself",
        needs: "an X25519 identity without a passphrase, in a file of mode 0600 or in the environment",
        keys: &["path", "identity", "recipients"],
        read: age,
    },
    Kind {
        word: "connect",
        keeps: "an item of a 1Password vault by its exact title, its fields by their labels",
        writes: "fields of an item, all or none, and new items (category Login)",
        needs: "a 1Password Connect server, and a token for the vault",
        keys: &["url", "token", "vault", "trust", "timeout_s"],
        read: connect,
    },
    Kind {
        word: "op",
        keeps: "as `connect`",
        writes: "whole items: somebody who changes another field of it in the same second loses that change",
        needs: "1Password's program `op` 2.23 or later, signed in for muster's user",
        keys: &["program", "vault", "account", "timeout_s"],
        read: op,
    },
    Kind {
        word: "keyring",
        keeps: "a secret of the desktop's Secret Service for each field: attributes `application` = `muster`, `item`, `field`",
        writes: "one field after another, what is new before what is taken away",
        needs: "`secret-tool` (Debian: libsecret-tools), and an unlocked keyring in the same session",
        keys: &["program", "timeout_s"],
        read: keyring,
    },
];

/// The vault where the file says nothing.
pub(super) fn default_vault() -> VaultSettings {
    VaultSettings {
        kind: VaultKind::Env,
        dhcp_item: "ssh-config-dhcp".to_owned(),
        bmc_item: "bmc-{host}".to_owned(),
        ipmi_item: "ipmi_exporter".to_owned(),
        factory_item: "bmc-factory-{vendor}".to_owned(),
    }
}

/// `None` only where a mistake was told.
pub(super) fn vault(t: Section<'_>) -> Option<VaultSettings> {
    let default = default_vault();
    let words: Vec<(&str, usize)> = KINDS.iter().enumerate().map(|(at, kind)| (kind.word, at)).collect();
    let kind = t.choice("kind", &words).map(|at| &KINDS[at]);
    for key in KINDS.iter().flat_map(|kind| kind.keys) {
        t.known(key, form(key));
        if t.has(key) {
            // Asked for, so that a key of another kind is not called unknown.
            t.item(key);
        }
    }
    let read = kind.and_then(|kind| {
        strangers(&t, kind);
        (kind.read)(&t)
    });
    let bmc_item = t.text_or("bmc_item", &default.bmc_item);
    if !bmc_item.contains("{host}") {
        t.fault_at("bmc_item", "has no '{host}' in it: all BMCs would have one credential");
    }
    let settings = |kind| VaultSettings {
        kind,
        dhcp_item: t.text_or("dhcp_item", &default.dhcp_item),
        bmc_item: bmc_item.clone(),
        ipmi_item: t.text_or("ipmi_item", &default.ipmi_item),
        factory_item: t.text_or("factory_item", &default.factory_item),
    };
    // The other keys are looked at in any case.
    let settings = settings(read.clone().unwrap_or(default.kind));
    t.finish();
    read.map(|_| settings)
}

/// What the value of a key is, for editors.
fn form(key: &str) -> shape::Kind {
    match key {
        "url" => shape::Kind::Url,
        "token" | "identity" => shape::Kind::Secret,
        "trust" => shape::Kind::Trust,
        "timeout_s" => shape::Kind::Seconds(REQUEST_MAX.as_secs_f64()),
        "recipients" => shape::Kind::Texts,
        _ => shape::Kind::Text,
    }
}

/// Keys that belong to vaults of other kinds.
fn strangers(t: &Section<'_>, kind: &Kind) {
    let mut told: Vec<&str> = Vec::new();
    for key in KINDS.iter().flat_map(|other| other.keys) {
        if kind.keys.contains(key) || !t.has(key) || told.contains(key) {
            continue;
        }
        told.push(key);
        let with: Vec<String> =
            KINDS.iter().filter(|other| other.keys.contains(key)).map(|other| format!("'{}'", other.word)).collect();
        t.fault_at(
            key,
            format!("is no key of a vault of kind '{}': leave it out, or set kind to {}", kind.word, with.join(" or ")),
        );
    }
}

/// A key that this kind cannot do without.
fn wanted<T>(t: &Section<'_>, key: &'static str, kind: &str, found: Option<T>) -> Option<T> {
    if !t.has(key) {
        t.fault_at(key, format!("is missing: a vault of kind '{kind}' has one"));
    }
    found
}

fn path(t: &Section<'_>, kind: &str) -> Option<PathBuf> {
    let path = t.item("path").and_then(|item| item.text().map(|text| item.path(text)));
    wanted(t, "path", kind, path)
}

fn age(t: &Section<'_>) -> Option<VaultKind> {
    let path = path(t, "age");
    let identity = wanted(t, "identity", "age", key_of_the_vault(t, "identity"));
    let recipients = t.item("recipients").map_or(Some(Vec::new()), |item| {
        let texts = item.texts()?;
        // A public key: it may be shown.
        match texts.iter().find(|text| !is_recipient(text)) {
            Some(wrong) => {
                item.fault(format!("{} is no X25519 recipient of age ('age1' and 58 letters and digits)", shown(wrong)))
            }
            None => Some(texts),
        }
    });
    Some(VaultKind::Age(AgeVault { path: path?, identity: identity?, recipients: recipients? }))
}

fn connect(t: &Section<'_>) -> Option<VaultKind> {
    let url = if t.has("url") { t.url("url") } else { wanted(t, "url", "connect", None) };
    let token = wanted(t, "token", "connect", key_of_the_vault(t, "token"));
    let vault = wanted(t, "vault", "connect", t.optional_text("vault"));
    let trust = t.trust("trust");
    let timeout = t.seconds_or("timeout_s", Duration::from_secs(10), REQUEST_MAX);
    Some(VaultKind::Connect(ConnectVault { url: url?, token: token?, vault: vault?, trust, timeout }))
}

fn op(t: &Section<'_>) -> Option<VaultKind> {
    let program = program(t, "op");
    let vault = wanted(t, "vault", "op", t.optional_text("vault"));
    let account = t.optional_text("account");
    let timeout = t.seconds_or("timeout_s", Duration::from_secs(30), REQUEST_MAX);
    let plain = |key: &str, text: Option<&String>| {
        if text.is_some_and(|text| text.starts_with('-')) {
            t.fault_at(key, "begins with '-': the program would take it for an option");
        }
    };
    plain("vault", vault.as_ref());
    plain("account", account.as_ref());
    Some(VaultKind::Op(OpVault { program: program?, vault: vault?, account, timeout }))
}

fn keyring(t: &Section<'_>) -> Option<VaultKind> {
    let program = program(t, "secret-tool");
    let timeout = t.seconds_or("timeout_s", Duration::from_secs(30), REQUEST_MAX);
    Some(VaultKind::Keyring(KeyringVault { program: program?, timeout }))
}

/// A name is looked for in PATH; what has a slash in it is a path.
fn program(t: &Section<'_>, default: &str) -> Option<PathBuf> {
    t.item("program").map_or(Some(PathBuf::from(default)), |item| {
        let text = item.text()?;
        Some(if text.contains('/') { item.path(text) } else { PathBuf::from(text) })
    })
}

/// What opens the vault can't be in it.
fn key_of_the_vault(t: &Section<'_>, key: &'static str) -> Option<SecretRef> {
    let item = t.item(key)?;
    match item.secret()? {
        SecretRef::Vault { .. } => item.fault("is in the vault that it opens; write 'env:NAME' or 'file:PATH'"),
        reference => Some(reference),
    }
}

fn is_recipient(text: &str) -> bool {
    let bech32 = |b: u8| b"qpzry9x8gf2tvdw0s3jn54khce6mua7l".contains(&b);
    text.strip_prefix("age1").is_some_and(|rest| rest.len() == 58 && rest.bytes().all(bech32))
}

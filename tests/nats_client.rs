//! The NATS client against a real nats-server: logins and TLS.

#[allow(dead_code, reason = "each test binary uses its part of the support")]
#[path = "support/nats.rs"]
mod nats;

use std::process::Command;

use jiff::Timestamp;
use muster::clients::nats::{Nats, NatsError};
use muster::config::settings::{NatsAuth, NatsSettings, Trust};
use nats::{Server, secret, vault};
use serde_json::{Value, json};

/// Proves: O10, K2
#[tokio::test]
async fn users_tokens_and_credential_files_log_in_and_wrong_ones_are_told_without_their_secret() {
    let keys = Keys::new();
    let user = "authorization { user: muster, password: \"right\" }";
    let token = "authorization { token: \"right\" }";
    for (configuration, login) in
        [(user.to_owned(), "user"), (token.to_owned(), "token"), (keys.configuration(), "creds")]
    {
        let Some(server) = Server::start(&configuration) else { return };
        let auth = |content: &str| {
            let secret = secret(server.folder.path(), "secret", content);
            match login {
                "user" => NatsAuth::User { username: "muster".into(), password: secret },
                "token" => NatsAuth::Token(secret),
                _ => NatsAuth::Creds(secret),
            }
        };
        let right = if login == "creds" { keys.creds(&keys.user) } else { "right".to_owned() };
        let with = |auth| NatsSettings { auth, ..server.settings() };
        let nats = Nats::connect(&with(auth(&right)), &vault()).await;
        let nats = nats.unwrap_or_else(|error| panic!("{login}: {error}"));
        nats.publish("muster.x".into(), b"{}".to_vec()).await.unwrap();
        nats.flush().await.unwrap();
        let wrong = if login == "creds" { keys.creds(&nkeys::KeyPair::new_user()) } else { "canary".to_owned() };
        let error = Nats::connect(&with(auth(&wrong)), &vault()).await.err().expect("a refusal");
        assert!(matches!(error, NatsError::Connect { .. }), "{login}: {error:?}");
        assert!(format!("{error} {error:?}").to_lowercase().contains("authorization"), "{login}: {error}");
        assert!(!format!("{error} {error:?}").contains("canary"));
        let none = Nats::connect(&with(NatsAuth::None), &vault()).await;
        assert!(none.is_err(), "{login}: without any");
    }
    let broken = tempfile::tempdir().unwrap();
    let Some(server) = Server::start("") else { return };
    let auth = NatsAuth::Creds(secret(broken.path(), "creds", "canary"));
    let error = Nats::connect(&NatsSettings { auth, ..server.settings() }, &vault()).await.err().unwrap();
    assert!(matches!(error, NatsError::Malformed(_)) && !format!("{error:?}").contains("canary"), "{error:?}");
}

/// Proves: O10
#[tokio::test]
async fn tls_is_by_the_trust_that_is_configured_and_never_falls_back() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).display().to_string();
    let made = Command::new("openssl")
        .args(["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2"])
        .args([
            "-subj",
            "/CN=nats",
            "-addext",
            "subjectAltName=IP:127.0.0.1",
            "-keyout",
            &at("key.pem"),
            "-out",
            &at("cert.pem"),
        ])
        .output();
    if !made.is_ok_and(|output| output.status.success()) {
        assert!(std::env::var_os("MUSTER_MUST_RUN").is_none(), "could not run: no openssl (install openssl)");
        println!("skipped: no openssl");
        return;
    }
    let tls = format!("tls {{ cert_file: \"{}\", key_file: \"{}\" }}", at("cert.pem"), at("key.pem"));
    let Some(server) = Server::start(&tls) else { return };
    let url = vec![format!("tls://127.0.0.1:{}", server.port).parse().unwrap()];
    let with = |trust| NatsSettings { servers: url.clone(), trust, ..server.settings() };
    let pem = std::fs::read(folder.path().join("cert.pem")).unwrap();
    use rustls::pki_types::{CertificateDer, pem::PemObject};
    use sha2::Digest;
    let print: [u8; 32] = sha2::Sha256::digest(CertificateDer::from_pem_slice(&pem).unwrap()).into();
    let nats = Nats::connect(&with(Trust::Pinned(print)), &vault()).await.unwrap_or_else(|error| panic!("{error}"));
    nats.publish("muster.x".into(), b"{}".to_vec()).await.unwrap();
    nats.flush().await.unwrap();
    for trust in [Trust::Pinned([7; 32]), Trust::System] {
        assert!(Nats::connect(&with(trust), &vault()).await.is_err());
    }
    let Some(plain) = Server::start("") else { return };
    let url = vec![format!("tls://127.0.0.1:{}", plain.port).parse().unwrap()];
    let settings = NatsSettings { servers: url, trust: Trust::Anything, ..plain.settings() };
    assert!(Nats::connect(&settings, &vault()).await.is_err(), "a server without TLS was talked to");
}

/// An operator, an account and a user, as `nsc` would make them.
struct Keys {
    operator: nkeys::KeyPair,
    account: nkeys::KeyPair,
    user: nkeys::KeyPair,
}

impl Keys {
    fn new() -> Keys {
        Keys {
            operator: nkeys::KeyPair::new_operator(),
            account: nkeys::KeyPair::new_account(),
            user: nkeys::KeyPair::new_user(),
        }
    }

    fn jwt(by: &nkeys::KeyPair, of: &nkeys::KeyPair, claims: Value) -> String {
        use base64::Engine;
        let encode = |bytes: &[u8]| base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(bytes);
        let head = encode(json!({"typ": "JWT", "alg": "ed25519-nkey"}).to_string().as_bytes());
        let id = uuid::Uuid::now_v7().to_string();
        let body = json!({"jti": id, "iat": Timestamp::now().as_second(), "iss": by.public_key(), "name": "rig",
                          "sub": of.public_key(), "nats": claims});
        let signed = format!("{head}.{}", encode(body.to_string().as_bytes()));
        let signature = encode(&by.sign(signed.as_bytes()).unwrap());
        format!("{signed}.{signature}")
    }

    fn configuration(&self) -> String {
        let operator = Self::jwt(&self.operator, &self.operator, json!({"type": "operator", "version": 2}));
        let limits = json!({"subs": -1, "conn": -1, "leaf": -1, "imports": -1, "exports": -1, "data": -1, "payload": -1,
                            "wildcards": true});
        let account = json!({"type": "account", "version": 2, "limits": limits});
        let account = Self::jwt(&self.operator, &self.account, account);
        let name = self.account.public_key();
        format!("operator: {operator}\nresolver: MEMORY\nresolver_preload: {{ {name}: {account} }}\n")
    }

    /// The file for this user, signed by the account, whoever holds the key.
    fn creds(&self, key: &nkeys::KeyPair) -> String {
        let claims = json!({"type": "user", "version": 2, "subs": -1, "data": -1, "payload": -1});
        let jwt = Self::jwt(&self.account, &self.user, claims);
        format!(
            "-----BEGIN NATS USER JWT-----\n{jwt}\n------END NATS USER JWT------\n\n\
             -----BEGIN USER NKEY SEED-----\n{}\n------END USER NKEY SEED------\n",
            key.seed().unwrap()
        )
    }
}

//! An Ironic that takes the tokens of a real Keystone alone: every way to log in, the catalogue, renewal, and what is said of
//! what is wrong (K3).

use std::path::Path;
use std::process::{Command, Stdio};

use muster::app::doctor::{Check, Level, doctor};
use muster::clients::http::{Auth, HttpClient, HttpOptions, Method, Request};
use muster::clients::ironic::{Ironic, IronicError};
use muster::clients::keystone::KeystoneError;
use muster::clients::vault::Vault;
use muster::config::settings::Settings;
use secrecy::ExposeSecret;
use serde_json::Value;

use super::counting::Counting;
use super::{private, text};

struct Rig {
    env: Value,
    folder: tempfile::TempDir,
}

fn rig() -> Option<Rig> {
    let Some(path) = std::env::var_os("MUSTER_REAL_KEYSTONE") else {
        assert!(std::env::var_os("MUSTER_REAL").is_none(), "could not run: MUSTER_REAL_KEYSTONE names no rig");
        return None;
    };
    let env: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    let folder = tempfile::tempdir().unwrap();
    private(&folder.path().join("password"), text(&env, "password"));
    private(&folder.path().join("secret"), text(&env, "credential_secret"));
    Some(Rig { env, folder })
}

impl Rig {
    /// A configuration with this login; without a URL the catalogue says where Ironic is.
    fn config(&self, auth: &str, url: Option<&str>) -> String {
        let url = url.map_or(String::new(), |url| format!("url = \"{url}\"\n"));
        format!(
            "[netbox]\nurl = \"http://127.0.0.1:9\"\ntoken = \"env:UNUSED\"\n\
             [ironic.main]\n{url}device_classes = [\"COMPUTE_CPU\"]\nauth = {{ kind = \"keystone\", {auth} }}\n\
             [sites.osl1.gates]\nconfigure_dhcp = false\nconfigure_bmc = false\n"
        )
    }

    fn settings(&self, auth: &str, url: Option<&str>) -> Settings {
        muster::config::parse(&self.config(auth, url), "real.toml").unwrap_or_else(|e| panic!("{e}"))
    }

    fn ironic(&self, auth: &str, url: Option<&str>) -> Ironic {
        let settings = self.settings(auth, url);
        Ironic::new("main", &settings.ironic["main"], &Vault::new(settings.vault.clone())).unwrap()
    }

    fn file(&self, name: &str) -> String {
        self.folder.path().join(name).display().to_string()
    }

    /// Keystone's own account, at this Keystone.
    fn by_password(&self, auth_url: &str, scope: &str) -> String {
        let (user, password) = (text(&self.env, "user"), self.file("password"));
        format!("auth_url = \"{auth_url}\", username = \"{user}\", password = \"file:{password}\", {scope}")
    }

    fn project(&self, auth_url: &str) -> String {
        self.by_password(auth_url, "project = \"enrol\"")
    }

    fn cloud(&self, name: &str) -> String {
        format!("cloud = \"{name}\", clouds_file = \"{}\"", text(&self.env, "clouds"))
    }

    /// The doctor's lines of Ironic.
    async fn look(&self, auth: &str, url: Option<&str>) -> Vec<Check> {
        let mut checks = doctor(&self.settings(auth, url), None, &mut |_| {}).await.unwrap();
        checks.retain(|check| check.check.starts_with("ironic."));
        checks
    }

    /// New tokens live so long from now on.
    fn token_life(&self, seconds: u64) {
        let clouds = text(&self.env, "clouds");
        let script = Path::new(clouds).with_file_name("bin").join("token-life");
        assert!(Command::new(script).arg(seconds.to_string()).stdin(Stdio::null()).status().unwrap().success());
    }
}

fn at<'c>(checks: &'c [Check], name: &str) -> &'c Check {
    checks.iter().find(|check| check.check == name).unwrap_or_else(|| panic!("no line '{name}': {checks:#?}"))
}

fn run(work: impl Future<Output = ()>) {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(work);
}

/// Proves: K3
#[test]
fn a_real_keystone_lets_every_kind_of_account_in_and_its_catalogue_says_where_ironic_is() {
    let Some(rig) = rig() else { return };
    let (auth_url, url) = (text(&rig.env, "auth_url").to_owned(), text(&rig.env, "ironic_url").to_owned());
    let credential = format!(
        "auth_url = \"{auth_url}\", application_credential_id = \"{}\", application_credential_secret = \"file:{}\"",
        text(&rig.env, "credential_id"),
        rig.file("secret")
    );
    let system = rig.by_password(&auth_url, "system_scope = true");
    run(async {
        for auth in [rig.project(&auth_url), system, credential] {
            rig.ironic(&auth, Some(&url)).sees_nodes().await.unwrap_or_else(|e| panic!("{auth}: {e}"));
            let by_catalogue = rig.ironic(&format!("{auth}, region = \"north\""), None);
            by_catalogue.sees_nodes().await.unwrap_or_else(|e| panic!("{auth}: {e}"));
            assert!(url.ends_with(&by_catalogue.host()), "{} {url}", by_catalogue.host());
        }
        // Region and interface are the cloud's own here; the password of the first stands in secure.yaml.
        for name in ["project", "system", "credential", "by-ids"] {
            let ironic = rig.ironic(&rig.cloud(name), None);
            ironic.sees_nodes().await.unwrap_or_else(|e| panic!("{name}: {e}"));
        }
        // An explicit endpoint wins over a catalogue that leads elsewhere.
        rig.ironic(&rig.cloud("south"), Some(&url)).sees_nodes().await.unwrap();
    });
}

/// Proves: K3
#[test]
fn what_the_catalogue_does_not_have_and_where_nobody_listens_is_told_apart() {
    let Some(rig) = rig() else { return };
    let auth = rig.project(text(&rig.env, "auth_url"));
    run(async {
        for (more, words) in [
            ("region = \"west\"", vec!["'west'", "public in 'south'"]),
            ("interface = \"public\"", vec!["more than one", "internal in 'north'"]),
            ("region = \"south\", interface = \"internal\"", vec!["none with the interface 'internal'"]),
        ] {
            let error = rig.ironic(&format!("{auth}, {more}"), None).sees_nodes().await.unwrap_err();
            let text = error.to_string();
            assert!(matches!(error, IronicError::Keystone(KeystoneError::Catalogue { .. })), "{text}");
            assert!(words.iter().all(|word| text.contains(word)), "{text}");
        }
        let error = rig.ironic(&rig.cloud("south"), None).sees_nodes().await.unwrap_err();
        assert!(matches!(error, IronicError::Http(_)), "{error}");
        let error = rig.ironic(&rig.cloud("nosuch"), None).sees_nodes().await.unwrap_err().to_string();
        assert!(error.contains("has no cloud 'nosuch'"), "{error}");
    });
}

/// Proves: K3
#[test]
fn a_token_that_a_service_refuses_is_replaced_once_and_one_that_ends_before_it_does() {
    let Some(rig) = rig() else { return };
    let (auth_url, url) = (text(&rig.env, "auth_url").to_owned(), text(&rig.env, "ironic_url").to_owned());
    let (keystone, ironic) = (Counting::in_front_of(auth_url.trim_end_matches("/v3")), Counting::in_front_of(&url));
    let client = rig.ironic(&rig.project(&keystone.url), Some(&ironic.url));
    let logins = || keystone.take().iter().filter(|request| *request == "POST /v3/auth/tokens").count();
    run(async {
        client.sees_nodes().await.unwrap();
        client.sees_nodes().await.unwrap();
        assert_eq!(logins(), 1, "one token for both");
        // Revoked behind its back: refused once, replaced once.
        let token = client.keystone().unwrap().token().await.unwrap();
        let base = auth_url.parse().unwrap();
        let http = HttpClient::new("keystone", &base, &HttpOptions::default()).unwrap();
        let auth = Auth::Header { name: "x-auth-token", value: token.clone() };
        let revoke = Request::new(Method::DELETE, "/auth/tokens").header("x-subject-token", token.expose_secret());
        assert_eq!(http.send(revoke.auth(auth)).await.unwrap().status.as_u16(), 204);
        ironic.take();
        client.sees_nodes().await.unwrap();
        assert_eq!(logins(), 1);
        assert_eq!(ironic.take().iter().filter(|request| *request == "GET /v1/nodes").count(), 2, "once more, no more");
    });
    // Tokens of eight seconds are used for six: within ten there is a second login, and no refusal.
    rig.token_life(8);
    let client = rig.ironic(&rig.project(&keystone.url), Some(&ironic.url));
    keystone.take();
    run(async {
        ironic.take();
        let (mut asked, began) = (0, std::time::Instant::now());
        let mut renewed = 0;
        while renewed < 2 && began.elapsed().as_secs() < 20 {
            client.sees_nodes().await.unwrap();
            asked += 1;
            renewed += logins();
            tokio::time::sleep(std::time::Duration::from_millis(500)).await;
        }
        assert_eq!(renewed, 2, "after {:?}", began.elapsed());
        let sent = ironic.take().iter().filter(|request| *request == "GET /v1/nodes").count();
        assert_eq!(sent, asked, "none was refused and asked again");
    });
    rig.token_life(3600);
}

/// Proves: K3, K4
#[test]
fn the_doctor_is_content_with_an_administrator_and_names_what_is_wrong_with_others() {
    let Some(rig) = rig() else { return };
    let (auth_url, url) = (text(&rig.env, "auth_url").to_owned(), text(&rig.env, "ironic_url").to_owned());
    run(async {
        for (auth, url) in [(rig.project(&auth_url), Some(url.as_str())), (rig.cloud("project"), None)] {
            let checks = rig.look(&auth, url).await;
            assert!(checks.iter().all(|check| check.level == Level::Ok) && checks.len() >= 13, "{checks:#?}");
            assert_eq!(at(&checks, "ironic.main.roles").message, "the account is admin of the project 'enrol'");
        }
        let other = |user: &str| rig.project(&auth_url).replace("\"muster\"", &format!("\"{user}\""));
        let alone = |checks: &[Check], line: &str, level: Level| {
            let told = at(checks, line);
            assert_eq!(told.level, level, "{told:#?}");
            assert!(told.owner.is_some() && told.action.is_some(), "{told:#?}");
            for other in checks.iter().filter(|check| check.level != Level::Ok && check.check != line) {
                assert_eq!((other.level, other.because.as_deref()), (Level::Unknown, Some(line)), "{other:#?}");
            }
        };
        for (user, url, line, level) in [
            ("member", Some(url.as_str()), "ironic.main.roles", Level::Warn),
            ("reader", Some(url.as_str()), "ironic.main.roles", Level::Warn),
            ("nobody", Some(url.as_str()), "ironic.main.login", Level::Fail),
            ("stranger", None, "ironic.main.login", Level::Fail),
        ] {
            alone(&rig.look(&other(user), url).await, line, level);
        }
        let auth = format!("{}, region = \"west\"", rig.project(&auth_url));
        alone(&rig.look(&auth, None).await, "ironic.main.endpoint", Level::Fail);
        alone(&rig.look(&rig.cloud("nosuch"), Some(&url)).await, "ironic.main.keystone.account", Level::Fail);
        let away = rig.project("http://127.0.0.1:9/v3");
        alone(&rig.look(&away, Some(&url)).await, "ironic.main.keystone.tcp", Level::Fail);
    });
}

/// The program itself with the variables that `openrc` files set, and with `OS_CLOUD`.
///
/// Proves: K3
#[test]
fn the_variables_of_openstack_are_an_account() {
    let Some(rig) = rig() else { return };
    let config = rig.folder.path().join("config.toml");
    private(&config, &rig.config("environment = true", None));
    let [auth_url, user, password] = ["auth_url", "user", "password"].map(|key| text(&rig.env, key));
    let plain: &[(&str, &str)] = &[
        ("OS_AUTH_URL", auth_url),
        ("OS_USERNAME", user),
        ("OS_PASSWORD", password),
        ("OS_USER_DOMAIN_NAME", "Default"),
        ("OS_PROJECT_NAME", "enrol"),
        ("OS_PROJECT_DOMAIN_NAME", "Default"),
        ("OS_REGION_NAME", "north"),
        ("OS_INTERFACE", "internal"),
    ];
    let cloud: &[(&str, &str)] = &[("OS_CLOUD", "project"), ("OS_CLIENT_CONFIG_FILE", text(&rig.env, "clouds"))];
    for variables in [plain, cloud] {
        let mut command = super::muster(&["doctor", "--json"]);
        command.arg("--config").arg(&config).envs(variables.iter().copied());
        let output = command.output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        let lines: Vec<Value> = said.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let of_ironic = lines.iter().filter(|line| line["check"].as_str().is_some_and(|c| c.starts_with("ironic.")));
        let levels: Vec<&str> = of_ironic.map(|line| line["level"].as_str().unwrap()).collect();
        assert!(levels.len() >= 13 && levels.iter().all(|level| *level == "ok"), "{variables:?}\n{said}");
        assert!(!said.contains(password), "the password is in what is printed");
    }
}

//! Real peers: ipmitool logs in to the lab's BMCs, and our client to OpenIPMI's simulator.

use std::net::{SocketAddr, UdpSocket};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use muster::clients::ipmi::{IpmiError, Login, Privilege, Suite, prove};
use muster::lab::build::bmc_key;
use muster::lab::machine::{Quirk, Vendor};
use secrecy::ExposeSecret;

use super::{HOST, PATIENCE, Rig, keyed, login};

/// Whether a program of the machine can be run; says so where it cannot.
fn has(program: &str, package: &str) -> bool {
    let there = Command::new(program).arg("-h").stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok();
    if !there {
        assert!(std::env::var_os("MUSTER_MUST_RUN").is_none(), "could not run: no {program} (install {package})");
        println!("skipped: no {program} (install {package})");
    }
    there
}

/// `key`: as ipmitool takes it, with its switch.
fn ipmitool(
    to: SocketAddr,
    login: &Login,
    key: Option<[&str; 2]>,
    suite: Option<Suite>,
    level: &str,
    words: &[&str],
) -> Output {
    let mut command = Command::new("ipmitool");
    command.args(["-I", "lanplus", "-H", &to.ip().to_string(), "-p", &to.port().to_string()]);
    command.args(["-U", &login.username, "-E", "-L", level, "-N", "2", "-R", "2"]);
    command.args(key.into_iter().flatten());
    if let Some(suite) = suite {
        command.args(["-C", &suite.number().to_string()]);
    }
    command.args(words).env("IPMITOOL_PASSWORD", login.password.expose_secret());
    command.stdin(Stdio::null()).output().unwrap()
}

/// Proves: X1. The lab's BMC is one to a console that this project did not write.
#[tokio::test(flavor = "multi_thread")]
async fn ipmitool_logs_in_to_a_lab_bmc_with_both_suites_and_is_refused_as_it_should() {
    if !has("ipmitool", "ipmitool") {
        return;
    }
    let rig = Rig::start(Vendor::Supermicro, &[]).await;
    let (to, admin, monitor) = (rig.to, rig.admin(), rig.monitor());
    let said = move |login: &Login, suite, level: &str, words: &[&str]| {
        let output = ipmitool(to, login, None, suite, level, words);
        let text = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        (output.status.success(), text)
    };
    for suite in Suite::ALL {
        let (good, text) = said(&admin, Some(suite), "ADMINISTRATOR", &["mc", "info"]);
        assert!(good && text.contains("IPMI Version              : 2.0"), "{suite}: {text}");
        let (good, text) = said(&monitor, Some(suite), "USER", &["chassis", "power", "status"]);
        assert!(good && text.contains("Chassis Power is"), "{suite}: {text}");
    }
    let (good, text) = said(&admin, None, "ADMINISTRATOR", &["mc", "info"]);
    assert!(good, "it finds a suite by itself: {text}");
    let (good, text) = said(&monitor, Some(Suite::Three), "ADMINISTRATOR", &["mc", "info"]);
    assert!(!good, "{text}");
    let wrong = login(&admin.username, "another-password");
    let (good, text) = said(&wrong, Some(Suite::Seventeen), "ADMINISTRATOR", &["mc", "info"]);
    assert!(!good && text.contains("Unable to establish"), "{text}");
    rig.change_machine(|machine| machine.bmc.quirks = [Quirk::IpmiOnlySuite3].into());
    let (good, text) = said(&admin, Some(Suite::Seventeen), "ADMINISTRATOR", &["mc", "info"]);
    assert!(!good, "{text}");
}

/// Proves: X1. A BMC of the lab with a key of its own is one to a console that this project did not write.
#[tokio::test(flavor = "multi_thread")]
async fn ipmitool_needs_the_key_of_a_lab_bmc_that_has_one() {
    if !has("ipmitool", "ipmitool") {
        return;
    }
    let rig = Rig::start(Vendor::Supermicro, &[Quirk::IpmiBmcKey]).await;
    let (to, admin, key) = (rig.to, rig.admin(), bmc_key(HOST));
    let digits: String = key.bytes().map(|byte| format!("{byte:02x}")).collect();
    let good = |key: Option<[&str; 2]>, suite| {
        ipmitool(to, &admin, key, Some(suite), "ADMINISTRATOR", &["mc", "info"]).status.success()
    };
    for suite in Suite::ALL {
        assert!(good(Some(["-k", &key]), suite), "{suite}");
        assert!(good(Some(["-y", &digits]), suite), "{suite}");
    }
    assert!(!good(Some(["-k", "another key"]), Suite::Seventeen));
    assert!(!good(None, Suite::Seventeen));
}

/// OpenIPMI's simulated BMC, as long as it lives here.
struct Simulator {
    child: Child,
    to: SocketAddr,
    _folder: tempfile::TempDir,
}

impl Drop for Simulator {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

const SIMULATOR: &str = "ipmi_sim";

impl Simulator {
    /// With a key of its own, where one is given.
    fn start(key: Option<&str>) -> Option<Simulator> {
        if !has(SIMULATOR, "openipmi") {
            return None;
        }
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        let port = UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let key = key.map(|key| format!("    bmc_key \"{key}\"\n")).unwrap_or_default();
        let lan = format!(
            "name \"lab\"\nset_working_mc 0x20\n  startlan 1\n    addr 127.0.0.1 {port}\n    priv_limit admin\n\
             \x20   allowed_auths_callback none md2 md5 straight\n    allowed_auths_user none md2 md5 straight\n\
             \x20   allowed_auths_operator none md2 md5 straight\n    allowed_auths_admin none md2 md5 straight\n\
             \x20   guid a123456789abcdefa123456789abcdef\n{key}  endlan\n\
             \x20 user 2 true \"ADMIN\" \"a-right-password\" admin 10 none md2 md5 straight\n\
             \x20 user 3 true \"ipmi_exporter\" \"another-right-one\" user 10 none md2 md5 straight\n"
        );
        std::fs::write(at("lan.conf"), lan).unwrap();
        let emulated = "mc_setbmc 0x20\nmc_add 0x20 0 no-device-sdrs 0x23 9 8 0x9f 0x1291 0xf02\nmc_enable 0x20\n";
        std::fs::write(at("bmc.emu"), emulated).unwrap();
        std::fs::create_dir(at("state")).unwrap();
        let log = std::fs::File::create(at("log")).unwrap();
        let child = Command::new(SIMULATOR)
            .arg("-n")
            .arg("-c")
            .arg(at("lan.conf"))
            .arg("-f")
            .arg(at("bmc.emu"))
            .arg("-s")
            .arg(at("state"))
            .stdin(Stdio::null())
            .stdout(log.try_clone().unwrap())
            .stderr(log)
            .spawn()
            .unwrap();
        let to = SocketAddr::from(([127, 0, 0, 1], port));
        let mut simulator = Simulator { child, to, _folder: folder };
        simulator.wait();
        Some(simulator)
    }

    /// Until its port is taken.
    fn wait(&mut self) {
        let deadline = Instant::now() + Duration::from_secs(10);
        while UdpSocket::bind(self.to).is_ok() {
            let said = || std::fs::read_to_string(self._folder.path().join("log")).unwrap_or_default();
            assert!(self.child.try_wait().unwrap().is_none(), "{SIMULATOR} has ended: {}", said());
            assert!(Instant::now() < deadline, "{SIMULATOR} does not listen: {}", said());
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}

/// Proves: X1. Our client is one to a BMC that this project did not write. Levels it gives to anybody, so that the lab alone shows
/// how a level is refused.
///
/// It refuses the suite 17, and no configuration changes that: its table of authentications ends with HMAC-SHA1 and HMAC-MD5
/// (`auths` in `lanserv/lanserv_ipmi.c`, from Debian's 2.0.33 to the newest), and `allowed_auths_*` are those of IPMI 1.5. What
/// proves the suite 17 is ipmitool against the lab.
#[tokio::test]
async fn our_client_logs_in_to_openipmis_simulator_and_tells_its_refusals_apart() {
    let Some(simulator) = Simulator::start(None) else { return };
    let to = simulator.to;
    // More logins than the 63 sessions that it has room for: each one is ended.
    for _ in 0..70 {
        let admin = login("ADMIN", "a-right-password");
        let proof = prove(to, &admin, Privilege::Administrator, &PATIENCE).await.unwrap();
        assert_eq!((proof.suite, proof.level), (Suite::Three, Privilege::Administrator));
        assert_eq!(proof.firmware, "9.08");
    }
    prove(to, &login("ipmi_exporter", "another-right-one"), Privilege::User, &PATIENCE).await.unwrap();
    let error = prove(to, &login("ADMIN", "a-wrong-password"), Privilege::User, &PATIENCE).await.unwrap_err();
    assert_eq!(error, IpmiError::WrongPassword { user: "ADMIN".into() });
    let error = prove(to, &login("nobody", "x"), Privilege::User, &PATIENCE).await.unwrap_err();
    assert_eq!(error, IpmiError::UnknownUser { user: "nobody".into() });
}

/// Proves: X1
#[tokio::test]
async fn our_client_logs_in_to_a_simulator_with_a_key_of_its_own() {
    // The simulator cuts off the twentieth character.
    let key = "abcdefghijklmnopqrs";
    let Some(simulator) = Simulator::start(Some(key)) else { return };
    let (to, admin) = (simulator.to, || login("ADMIN", "a-right-password"));
    let level = Privilege::Administrator;
    let proof = prove(to, &keyed(admin(), key), level, &PATIENCE).await.unwrap();
    assert_eq!((proof.suite, proof.by_bmc_key), (Suite::Three, true));
    let error = prove(to, &keyed(admin(), "another key"), level, &PATIENCE).await.unwrap_err();
    assert_eq!(error, IpmiError::OtherBmcKey { to });
    let error = prove(to, &admin(), level, &PATIENCE).await.unwrap_err();
    assert_eq!(error, IpmiError::BmcKey { to });
}

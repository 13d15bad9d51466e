//! Logins over IPMI: our client against the lab's BMCs and OpenIPMI's simulator, ipmitool against the lab, and answers that
//! no BMC should give.

mod hostile;
mod lab;
mod peers;

use std::net::SocketAddr;
use std::time::Duration;

use muster::clients::ipmi::{BmcKey, IpmiError, Login, Patience, Privilege, Proof, prove};
use muster::lab::Lab;
use muster::lab::bmc::Settings;
use muster::lab::build::{bmc_password, bmc_user};
use muster::lab::machine::{Machine, Quirk, Vendor};
use muster::lab::scenario::Scenario;

/// The host of these tests; one that was enrolled before, so that its BMC has the monitoring user.
pub const HOST: &str = "gpu-b07-29";

pub const MONITOR: &str = "ipmi_exporter";

/// Short, as everything is on loopback.
pub const PATIENCE: Patience = Patience {
    first: Duration::from_millis(150),
    deadline: Duration::from_secs(10),
    sessions: Duration::from_millis(200),
};

/// A lab with one host.
pub struct Rig {
    pub lab: Lab,
    pub to: SocketAddr,
    pub vendor: Vendor,
}

impl Rig {
    pub async fn start(vendor: Vendor, quirks: &[Quirk]) -> Rig {
        let mut scenario = Scenario::demo().unwrap();
        scenario.hosts.retain(|host| host.name == HOST);
        scenario.faults.clear();
        scenario.hosts[0].node = Some("manageable".into());
        scenario.hosts[0].bmc_quirks = quirks.iter().copied().collect();
        scenario.types.get_mut(&scenario.hosts[0].device_type).unwrap().bmc = vendor;
        let lab = Lab::start(scenario, 600.0).await.unwrap();
        let address = lab.world().machine(HOST).unwrap().bmc.address;
        let to = SocketAddr::new(address.into(), lab.ipmi_port());
        Rig { lab, to, vendor }
    }

    pub fn machine(&self) -> Machine {
        self.lab.world().machine(HOST).unwrap()
    }

    pub fn change_machine(&self, change: impl FnOnce(&mut Machine)) {
        self.lab.world().with_machine(HOST, |machine, _| change(machine)).unwrap();
    }

    pub fn change_settings(&self, change: impl FnOnce(&mut Settings)) {
        self.change_machine(|machine| {
            let mut settings = Settings::of(machine);
            change(&mut settings);
            settings.keep(machine);
        });
    }

    /// The host's own user.
    pub fn admin(&self) -> Login {
        login(bmc_user(self.vendor), &bmc_password(HOST))
    }

    pub fn monitor(&self) -> Login {
        login(MONITOR, &self.machine().bmc.accounts[MONITOR])
    }

    pub async fn prove(&self, login: &Login, level: Privilege) -> Result<Proof, IpmiError> {
        prove(self.to, login, level, &PATIENCE).await
    }

    /// Waits until the BMC has no session, half open ones among them.
    pub async fn has_no_session(&self) {
        for _ in 0..100 {
            if self.machine().bmc.ipmi_sessions == 0 {
                return;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        panic!("{} sessions are left open", self.machine().bmc.ipmi_sessions);
    }
}

pub fn login(username: &str, password: &str) -> Login {
    Login { username: username.into(), password: password.to_owned().into(), bmc_key: None }
}

/// The same with the BMC's own key.
pub fn keyed(login: Login, key: &str) -> Login {
    Login { bmc_key: Some(BmcKey::parse(&key.to_owned().into()).unwrap()), ..login }
}

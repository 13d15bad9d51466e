//! The iDRAC's dialect against the lab's iDRAC: the real client over HTTP, with every odd habit that the lab knows.

mod accounts;
mod boot;
mod quirks;
mod settings;
mod shapes;
mod staging;

use std::collections::BTreeSet;
use std::time::Duration;

use muster::clients::http::{Auth, HttpClient, HttpOptions, Method, Request};
use muster::clients::redfish::dell::Dell;
use muster::clients::redfish::dialect::{At, Change, Dialect, Job, JobState, Staged, Staging};
use muster::clients::redfish::host::{find_manager, find_system};
use muster::clients::redfish::{Credential, Redfish, RedfishOptions, Resource};
use muster::config::settings::Trust;
use muster::domain::boot::BootSetup;
use muster::domain::mac::Mac;
use muster::lab::Lab;
use muster::lab::bmc::Settings;
use muster::lab::build::bmc_password;
use muster::lab::ledger::System;
use muster::lab::machine::{Machine, PowerAction, Quirk, Vendor};
use muster::lab::scenario::Scenario;
use serde_json::{Value, json};
use url::Url;

/// The host of these tests.
pub const HOST: &str = "gpu-b07-29";

pub const JOBS: &str = "/redfish/v1/Managers/iDRAC.Embedded.1/Oem/Dell/Jobs";

/// A lab with one host behind an iDRAC, and a client of that.
pub struct Rig {
    pub lab: Lab,
    pub redfish: Redfish,
    base: Url,
}

/// The resources that a dialect starts from.
pub struct Parts {
    root: Resource,
    system: Resource,
    manager: Resource,
}

impl Rig {
    pub async fn start() -> Rig {
        Rig::with(&[]).await
    }

    pub async fn with(quirks: &[Quirk]) -> Rig {
        Rig::of(quirks, |_| {}).await
    }

    /// A host that was enrolled before: converged, with an operating system on its disk.
    pub async fn converged() -> Rig {
        Rig::of(&[], |scenario| scenario.hosts[0].node = Some("manageable".into())).await
    }

    pub async fn of(quirks: &[Quirk], change: impl FnOnce(&mut Scenario)) -> Rig {
        rustls::crypto::ring::default_provider().install_default().ok();
        let mut scenario = Scenario::demo().unwrap();
        scenario.hosts.retain(|host| host.name == HOST);
        scenario.faults.clear();
        scenario.hosts[0].bmc_quirks = quirks.iter().copied().collect::<BTreeSet<_>>();
        let model = scenario.types.get_mut(&scenario.hosts[0].device_type).unwrap();
        (model.bmc, model.bmc_firmware) = (Vendor::Dell, "7.10.30.00".into());
        change(&mut scenario);
        let lab = Lab::start(scenario, 600.0).await.unwrap();
        let address = lab.world().machine(HOST).unwrap().bmc.address;
        let base = Url::parse(&format!("http://{address}:{}/", lab.bmc_port())).unwrap();
        let redfish = client(&base, "root", &bmc_password(HOST));
        Rig { lab, redfish, base }
    }

    pub fn as_user(&self, user: &str, password: &str) -> Redfish {
        client(&self.base, user, password)
    }

    pub async fn parts(&self) -> Parts {
        let root = self.redfish.root().await.unwrap();
        let system = find_system(&self.redfish, &root, None).await.unwrap().system;
        let manager = find_manager(&self.redfish, &root, &system).await.unwrap();
        Parts { root, system, manager }
    }

    pub fn at<'a>(&'a self, parts: &'a Parts) -> At<'a> {
        At { redfish: &self.redfish, root: &parts.root, system: &parts.system, manager: &parts.manager }
    }

    pub fn machine(&self) -> Machine {
        self.lab.world().machine(HOST).unwrap()
    }

    pub fn change_machine(&self, change: impl FnOnce(&mut Machine)) {
        self.lab.world().with_machine(HOST, |machine, _| change(machine)).unwrap();
    }

    pub fn settings(&self) -> Settings {
        Settings::at(&self.machine(), self.lab.world().now())
    }

    /// The address of a NIC of the host.
    pub fn mac(&self, nic: &str) -> Mac {
        self.machine().nic(nic).unwrap().mac
    }

    /// Lets lab time pass.
    pub async fn pass(&self, seconds: u64) {
        self.lab.world().sleep(Duration::from_secs(seconds)).await;
    }

    /// Restarts the host, and waits until it is on again.
    pub async fn restart(&self) {
        let boots = self.machine().boots;
        self.lab.world().press(HOST, PowerAction::Restart);
        for _ in 0..200 {
            if self.machine().boots > boots {
                return;
            }
            self.pass(2).await;
        }
        panic!("the host does not come on");
    }

    /// Writes to the BMC since the last reset of the ledger: method and path.
    pub fn writes(&self) -> Vec<String> {
        let entries = self.lab.world().ledger().select(|entry| entry.system == System::Bmc && entry.write);
        entries.iter().map(|entry| format!("{} {}", entry.method, entry.path)).collect()
    }

    pub fn forget_requests(&self) {
        self.lab.world().ledger().reset();
    }

    /// Asks the BMC for anything: status, body, `Location` or token.
    pub async fn ask(&self, method: Method, path: &str, body: Option<Value>) -> (u16, Value, Option<String>) {
        let auth = Auth::Basic { username: "root".into(), password: bmc_password(HOST).into() };
        let request = Request::new(method, path).auth(auth);
        self.send(body.into_iter().fold(request, Request::json)).await
    }

    pub async fn send(&self, request: Request) -> (u16, Value, Option<String>) {
        let http = HttpClient::new("redfish", &self.base, &HttpOptions::default()).unwrap();
        let answer = http.send(request).await.unwrap();
        let token = answer.header("x-auth-token").or(answer.header("location")).map(str::to_owned);
        (answer.status.as_u16(), answer.json().unwrap(), token)
    }

    pub async fn boot(&self) -> BootSetup {
        let parts = self.parts().await;
        Dell.boot(self.at(&parts)).await.unwrap().unwrap()
    }

    pub async fn stage(&self, change: &Change) -> Staged {
        let parts = self.parts().await;
        Dell.stage(self.at(&parts), change).await.unwrap()
    }

    pub async fn job(&self, id: &str) -> Job {
        let parts = self.parts().await;
        Dell.job(self.at(&parts), id).await.unwrap()
    }

    pub async fn jobs(&self) -> Vec<Job> {
        let parts = self.parts().await;
        Dell.jobs(self.at(&parts)).await.unwrap()
    }

    /// Waits until a job is in a state.
    pub async fn until(&self, id: &str, wanted: JobState) -> Job {
        let mut last = self.job(id).await;
        for _ in 0..200 {
            if last.state == wanted {
                return last;
            }
            self.pass(5).await;
            last = self.job(id).await;
        }
        panic!("the job does not come to {wanted:?}: {last:?}");
    }

    /// Stages a change and carries it through, restart by restart; how often the host was restarted.
    pub async fn carry_through(&self, change: &Change) -> usize {
        let (mut next, mut restarts) = (Some(change.clone()), 0);
        while let Some(change) = next.take() {
            let staged = self.stage(&change).await;
            let [job] = &staged.jobs[..] else { panic!("{staged:?}") };
            self.until(job, JobState::Scheduled).await;
            self.restart().await;
            restarts += 1;
            self.until(job, JobState::Done).await;
            next = staged.rest;
        }
        restarts
    }

    /// A member of what the lab keeps of the iDRAC.
    pub fn kept(&self, member: &str) -> Value {
        self.machine().bmc.settings["dell"][member].clone()
    }
}

fn client(base: &Url, user: &str, password: &str) -> Redfish {
    let credential = Credential { username: user.into(), password: password.to_owned().into() };
    let options = RedfishOptions {
        trust: Trust::System,
        connect_timeout: Duration::from_secs(5),
        timeout: Duration::from_secs(20),
        busy_budget: Duration::from_millis(400),
    };
    let redfish = Redfish::new(base, Some(credential), options).unwrap();
    redfish.prefer(Dell.first_form());
    redfish
}

/// A change of attributes alone.
pub fn attributes(pairs: &[(&str, &str)]) -> Change {
    let attributes = pairs.iter().map(|(name, value)| ((*name).to_owned(), json!(value))).collect();
    Change { attributes, boot: None }
}

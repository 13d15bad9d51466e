//! A lab with one host behind a BMC of any vendor, and the real client of that BMC with its vendor's dialect.

use std::collections::BTreeSet;
use std::time::Duration;

use muster::clients::http::{Auth, HttpClient, HttpOptions, Method, Request};
use muster::clients::redfish::converge::{Located, Spot, Wanted};
use muster::clients::redfish::dialect::{At, BootChange, Change, Dialect, Staging};
use muster::clients::redfish::host::{find_manager, find_system};
use muster::clients::redfish::{Credential, Redfish, RedfishOptions, Resource};
use muster::config::settings::Trust;
use muster::domain::boot::BootSetup;
use muster::domain::mac::Mac;
use muster::lab::Lab;
use muster::lab::bmc::Settings;
use muster::lab::build::{bmc_password, bmc_user};
use muster::lab::ledger::System;
use muster::lab::machine::{Machine, PowerAction, Quirk, Vendor};
use muster::lab::scenario::Scenario;
use serde_json::Value;
use url::Url;

/// The host of these tests.
pub const HOST: &str = "gpu-b07-29";

/// A lab and a client.
pub struct Rig {
    pub lab: Lab,
    pub redfish: Redfish,
    pub dialect: &'static dyn Dialect,
    pub base: Url,
    /// How long a busy BMC is waited for.
    patience: Duration,
}

/// The resources that a dialect starts from.
pub struct Parts {
    pub root: Resource,
    pub system: Resource,
    pub manager: Resource,
}

impl Parts {
    pub async fn read(redfish: &Redfish) -> Parts {
        let root = redfish.root().await.unwrap();
        let system = find_system(redfish, &root, None).await.unwrap().system;
        let manager = find_manager(redfish, &root, &system).await.unwrap();
        Parts { root, system, manager }
    }

    pub fn at<'a>(&'a self, redfish: &'a Redfish) -> At<'a> {
        At { redfish, root: &self.root, system: &self.system, manager: &self.manager }
    }
}

impl Rig {
    /// A host that nobody has enrolled yet.
    pub async fn fresh(vendor: Vendor, dialect: &'static dyn Dialect, quirks: &[Quirk]) -> Rig {
        Rig::of(vendor, dialect, quirks, |_| {}).await
    }

    /// A host that was enrolled before.
    pub async fn converged(vendor: Vendor, dialect: &'static dyn Dialect) -> Rig {
        Rig::of(vendor, dialect, &[], |scenario| scenario.hosts[0].node = Some("manageable".into())).await
    }

    pub async fn of(
        vendor: Vendor,
        dialect: &'static dyn Dialect,
        quirks: &[Quirk],
        change: impl FnOnce(&mut Scenario),
    ) -> Rig {
        rustls::crypto::ring::default_provider().install_default().ok();
        let mut scenario = Scenario::demo().unwrap();
        scenario.hosts.retain(|host| host.name == HOST);
        scenario.faults.clear();
        scenario.hosts[0].bmc_quirks = quirks.iter().copied().collect::<BTreeSet<_>>();
        scenario.types.get_mut(&scenario.hosts[0].device_type).unwrap().bmc = vendor;
        change(&mut scenario);
        let lab = Lab::start(scenario, 600.0).await.unwrap();
        let address = lab.world().machine(HOST).unwrap().bmc.address;
        let base = Url::parse(&format!("http://{address}:{}/", lab.bmc_port())).unwrap();
        let patience = Duration::from_secs(6);
        let redfish = client(&base, bmc_user(vendor), &bmc_password(HOST), patience);
        redfish.prefer(dialect.first_form());
        Rig { lab, redfish, dialect, base, patience }
    }

    /// The same with another patience.
    pub fn patient(mut self, patience: Duration) -> Rig {
        self.patience = patience;
        self.redfish = self.as_user(bmc_user(self.machine().bmc.vendor), &bmc_password(HOST));
        self
    }

    pub fn as_user(&self, user: &str, password: &str) -> Redfish {
        let redfish = client(&self.base, user, password, self.patience);
        redfish.prefer(self.dialect.first_form());
        redfish
    }

    pub async fn parts(&self) -> Parts {
        Parts::read(&self.redfish).await
    }

    pub fn machine(&self) -> Machine {
        self.lab.world().machine(HOST).unwrap()
    }

    pub fn change_machine(&self, change: impl FnOnce(&mut Machine)) {
        self.lab.world().with_machine(HOST, |machine, _| change(machine)).unwrap();
    }

    /// Changes what a vendor's tree keeps, by JSON pointer below its own key.
    pub fn set(&self, key: &str, pointer: &str, value: Value) {
        self.change_machine(|machine| {
            *machine.bmc.settings.get_mut(key).unwrap().pointer_mut(pointer).unwrap() = value;
        });
    }

    /// What a vendor's tree keeps.
    pub fn kept(&self, key: &str, pointer: &str) -> Value {
        self.machine().bmc.settings[key].pointer(pointer).cloned().unwrap_or_default()
    }

    pub fn settings(&self) -> Settings {
        Settings::at(&self.machine(), self.lab.world().now())
    }

    /// Changes the settings that all vendors have.
    pub fn change_settings(&self, change: impl FnOnce(&mut Settings)) {
        self.change_machine(|machine| {
            let mut settings = Settings::of(machine);
            change(&mut settings);
            settings.keep(machine);
        });
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

    /// Asks the BMC for anything: status and body.
    pub async fn ask(
        &self,
        method: Method,
        path: &str,
        body: Option<Value>,
        headers: &[(&'static str, &'static str)],
    ) -> (u16, Value) {
        let vendor = self.machine().bmc.vendor;
        let auth = Auth::Basic { username: bmc_user(vendor).into(), password: bmc_password(HOST).into() };
        let request = Request::new(method, path).auth(auth);
        let request = headers.iter().fold(request, |request, (name, value)| request.header(name, value));
        let request = body.into_iter().fold(request, Request::json);
        let http = HttpClient::new("redfish", &self.base, &HttpOptions::default()).unwrap();
        let answer = http.send(request).await.unwrap();
        (answer.status.as_u16(), answer.json().unwrap_or_default())
    }

    pub async fn get(&self, path: &str) -> (u16, Value) {
        self.ask(Method::GET, path, None, &[]).await
    }

    /// Where a setting is, in one or several places.
    pub async fn spots(&self, wanted: &Wanted) -> Vec<Spot> {
        let parts = self.parts().await;
        match self.dialect.locate(parts.at(&self.redfish), wanted).await.unwrap() {
            Located::At(spot) => vec![spot],
            Located::Each(spots) => spots,
            Located::Absent { why } => panic!("{wanted:?} is absent: {why}"),
        }
    }

    /// Why a setting is not there.
    pub async fn absent(&self, wanted: &Wanted) -> String {
        let parts = self.parts().await;
        match self.dialect.locate(parts.at(&self.redfish), wanted).await.unwrap() {
            Located::Absent { why } => why,
            there => panic!("{wanted:?} is there: {there:?}"),
        }
    }

    /// Converges a setting as the activity does: writes only what differs, and reads it back. What was written, in words.
    pub async fn converge(&self, wanted: &Wanted) -> Vec<String> {
        let mut wrote = vec![];
        for spot in self.spots(wanted).await {
            if spot.is_satisfied_by(&spot.resource) {
                continue;
            }
            wrote.push(format!("{} -> {}", spot.describe(&spot.resource), spot.describe_wanted()));
            spot.send(&self.redfish).await.unwrap();
            let now = spot.read(&self.redfish).await.unwrap();
            assert!(spot.is_satisfied_by(&now), "{wanted:?} reads {}", spot.describe(&now));
        }
        wrote
    }

    pub fn staging(&self) -> &'static dyn Staging {
        self.dialect.staging().unwrap()
    }

    pub async fn boot(&self) -> BootSetup {
        let parts = self.parts().await;
        self.staging().boot(parts.at(&self.redfish)).await.unwrap().unwrap()
    }

    /// Stages a change; no vendor of these has jobs.
    pub async fn stage(&self, change: &Change) {
        let parts = self.parts().await;
        let staged = self.staging().stage(parts.at(&self.redfish), change).await.unwrap();
        assert!(staged.jobs.is_empty(), "{staged:?}");
    }

    pub async fn stage_boot(&self, order: Vec<String>, enable: Vec<String>, disable: Vec<String>) {
        let boot = Some(BootChange { order, enable, disable });
        self.stage(&Change { boot, ..Change::default() }).await;
    }
}

fn client(base: &Url, user: &str, password: &str, busy_budget: Duration) -> Redfish {
    let credential = Credential { username: user.into(), password: password.to_owned().into() };
    let options = RedfishOptions {
        trust: Trust::System,
        connect_timeout: Duration::from_secs(5),
        timeout: Duration::from_secs(20),
        busy_budget,
    };
    Redfish::new(base, Some(credential), options).unwrap()
}

//! The iDRAC's dialect against the lab's iDRAC: the real client over HTTP, with every odd habit that the lab knows.

mod accounts;
#[allow(dead_code, reason = "each test binary uses its part of the support")]
#[path = "../support/bmc.rs"]
mod bmc;
mod boot;
mod quirks;
mod settings;
mod shapes;
mod staging;

use std::ops::Deref;
use std::time::Duration;

pub use bmc::HOST;
use bmc::Parts;
use muster::clients::http::{Auth, HttpClient, HttpOptions, Method, Request};
use muster::clients::redfish::dell::Dell;
use muster::clients::redfish::dialect::{At, Change, Job, JobState, Staged, Staging};
use muster::lab::build::bmc_password;
use muster::lab::machine::{Quirk, Vendor};
use muster::lab::scenario::Scenario;
use serde_json::{Value, json};

pub const JOBS: &str = "/redfish/v1/Managers/iDRAC.Embedded.1/Oem/Dell/Jobs";

/// A lab with one host behind an iDRAC, and a client of that: with jobs, which no other vendor has.
pub struct Rig(bmc::Rig);

impl Deref for Rig {
    type Target = bmc::Rig;

    fn deref(&self) -> &bmc::Rig {
        &self.0
    }
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
        let rig = bmc::Rig::of(Vendor::Dell, &Dell, quirks, |scenario| {
            let model = scenario.types.get_mut(&scenario.hosts[0].device_type).unwrap();
            model.bmc_firmware = "7.10.30.00".into();
            change(scenario);
        });
        Rig(rig.await.patient(Duration::from_millis(400)))
    }

    pub fn at<'a>(&'a self, parts: &'a Parts) -> At<'a> {
        parts.at(&self.redfish)
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

/// A change of attributes alone.
pub fn attributes(pairs: &[(&str, &str)]) -> Change {
    let attributes = pairs.iter().map(|(name, value)| ((*name).to_owned(), json!(value))).collect();
    Change { attributes, boot: None }
}

//! Judges a whole list of names before anything of it begins, and submits what was judged as one batch (C-52).

use std::collections::BTreeMap;

use futures::StreamExt;
use uuid::Uuid;

use super::handle::App;
use super::plan::deployed;
use super::submit::{SubmitError, request};
use crate::domain::device::Device;
use crate::domain::ids::RunId;
use crate::domain::request::{EnrollParams, EnrollRequest};
use crate::domain::run_view::RunView;
use crate::store::{Store, Submit};

/// So many hosts are asked about at once, where NetBox has to be asked.
const AT_ONCE: usize = 8;

/// A name as it was given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Name {
    pub text: String,
    /// Also where an instance lives on the host (B19).
    pub even_deployed: bool,
}

/// A name, and what would come of it.
#[derive(Debug)]
pub struct Judged {
    pub name: String,
    pub verdict: Verdict,
}

/// What was judged, sorted by what comes of it. Names of a device that stands before them are left out.
#[derive(Debug, Default)]
pub struct Sorted {
    /// To be submitted as one batch, in this order.
    pub requests: Vec<EnrollRequest>,
    /// Host, run and who started it.
    pub go_on: Vec<(String, RunId, String)>,
    /// The name as it was given, and why not.
    pub refused: Vec<(String, SubmitError)>,
}

impl Sorted {
    /// Sorts, and keeps the order of the names.
    pub fn of(judged: Vec<Judged>) -> Sorted {
        let mut sorted = Sorted::default();
        for Judged { name, verdict } in judged {
            match verdict {
                Verdict::Enroll(request) => sorted.requests.push(*request),
                Verdict::GoesOn { host, run, by } => sorted.go_on.push((host, run, by)),
                Verdict::Refused(refusal) => sorted.refused.push((name, refusal)),
                Verdict::Again { .. } => {}
            }
        }
        sorted
    }
}

/// What would come of a name.
#[derive(Debug)]
pub enum Verdict {
    Enroll(Box<EnrollRequest>),
    /// A run with the same switches is under way that this person started, or that was interrupted and goes on in this
    /// process: it is followed, and nothing begins.
    GoesOn {
        host: String,
        run: RunId,
        by: String,
    },
    /// A name before it means the same device.
    Again {
        host: String,
    },
    Refused(SubmitError),
}

impl App {
    /// Judges names as submissions of now. Nothing is written anywhere.
    pub async fn judge(&self, names: &[Name], params: &EnrollParams, by: &str) -> Vec<Judged> {
        let mut first: BTreeMap<u64, String> = BTreeMap::new();
        let judged = names.iter().map(|name| {
            let device = match meant(&self.inner.store, &name.text) {
                Ok(device) => device,
                Err(refusal) => return (name, Err(Verdict::Refused(refusal))),
            };
            if let Some(host) = first.get(&device.netbox_id) {
                return (name, Err(Verdict::Again { host: host.clone() }));
            }
            first.insert(device.netbox_id, device.name.clone());
            (name, Ok(device))
        });
        // The first of each device is found before any of them is asked about.
        let found: Vec<(&Name, Result<Device, Verdict>)> = judged.collect();
        let asked: Vec<_> = found.into_iter().map(|(name, found)| self.judge_found(name, found, params, by)).collect();
        futures::stream::iter(asked).buffered(AT_ONCE).collect().await
    }

    async fn judge_found(
        &self,
        name: &Name,
        found: Result<Device, Verdict>,
        params: &EnrollParams,
        by: &str,
    ) -> Judged {
        let verdict = match found {
            Ok(device) => {
                let verdict = self.judge_one(&device, name.even_deployed, params, by).await;
                verdict.unwrap_or_else(Verdict::Refused)
            }
            Err(verdict) => verdict,
        };
        Judged { name: name.text.clone(), verdict }
    }

    async fn judge_one(
        &self,
        device: &Device,
        even_deployed: bool,
        params: &EnrollParams,
        by: &str,
    ) -> Result<Verdict, SubmitError> {
        let store = &self.inner.store;
        let request = request(&self.inner.settings, &self.inner.rules, device, params.clone(), by, self.now())?;
        if let Some((run, theirs)) = store.active_run_of(device.netbox_id)? {
            let asked = RunView::of(&store.records(run)?).request;
            let same = asked.as_ref().is_some_and(|asked| asked.params == *params);
            let resumed = asked.is_some_and(|asked| self.leads_since().is_some_and(|since| asked.submitted_at < since));
            let host = device.name.clone();
            // Somebody else's refuses this one by its name, whatever its switches are (G8).
            return match same && (theirs == by || resumed) {
                true => Ok(Verdict::GoesOn { host, run, by: theirs }),
                false => Err(SubmitError::Busy { run, by: theirs }),
            };
        }
        if !even_deployed && let Some(what_lives_there) = deployed(store, &request)? {
            return Err(SubmitError::Deployed(what_lives_there));
        }
        Ok(Verdict::Enroll(Box::new(self.hung(device, request).await?)))
    }

    /// Submits what was judged, all of it or nothing. `canary`: the first begins alone; the others begin when it has
    /// succeeded, and end with it when it has not. `Err` names the host that stands in the way.
    pub async fn submit_batch(
        &self,
        requests: Vec<EnrollRequest>,
        canary: bool,
    ) -> Result<Vec<(RunId, String)>, (String, SubmitError)> {
        let at = self.now();
        let first = RunId(Uuid::now_v7());
        let batch: Vec<(RunId, EnrollRequest)> = requests
            .into_iter()
            .enumerate()
            .map(|(place, request)| match place {
                0 => (first, EnrollRequest { submitted_at: at, ..request }),
                _ => {
                    let canary = canary.then_some(first);
                    (RunId(Uuid::now_v7()), EnrollRequest { submitted_at: at, canary, ..request })
                }
            })
            .collect();
        let runs: Vec<(RunId, String)> = batch.iter().map(|(run, request)| (*run, request.host.clone())).collect();
        let answers = self.inner.store.submit_batch(batch).await.map_err(|e| (runs[0].1.clone(), e.into()))?;
        for ((_, host), answer) in runs.iter().zip(answers) {
            if let Submit::Busy { run, by } = answer {
                return Err((host.clone(), SubmitError::Busy { run, by }));
            }
        }
        runs.iter().for_each(|(run, _)| self.begin(*run));
        Ok(runs)
    }
}

/// The device that a person means by a name: that of exactly this name, else the one that is spelled so but for the case,
/// else the one that had this name when it was enrolled last.
pub(super) fn meant(store: &Store, name: &str) -> Result<Device, SubmitError> {
    let name = name.trim();
    if name.is_empty() {
        return Err(SubmitError::NoName);
    }
    let mut named = store.devices_meant(name)?;
    match named.len() {
        0 => Err(SubmitError::UnknownHost(name.to_owned())),
        1 => Ok(named.remove(0)),
        _ => {
            let sites = named.into_iter().map(|device| device.site).collect();
            Err(SubmitError::AmbiguousHost { host: name.to_owned(), sites })
        }
    }
}

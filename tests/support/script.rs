//! A context port whose world is a script: activities answer at once, time is virtual, everything asked is kept.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::future::{Future, ready};
use std::pin::pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use jiff::{SignedDuration, Timestamp};
use muster::domain::event::{EnrollResult, Observation, WaitKind, WaitReason};
use muster::domain::failure::Failure;
use muster::domain::phase::Phase;
use muster::domain::request::{EnrollParams, EnrollRequest, Routing};
use muster::workflows::cx::{Activity, ActivityError, ActivityOptions, Cancelled, Cx, Signal};
use muster::workflows::enroll::enroll;
use serde_json::Value;

use super::good_world::World;

struct Inner {
    world: World,
    now: Timestamp,
    began: Timestamp,
    asked: Vec<(String, Value)>,
    waits: Vec<(WaitKind, SignedDuration)>,
    reports: Vec<Observation>,
    reported_at: Vec<Timestamp>,
    /// The run is cancelled at this virtual time.
    cancel_at: Option<Timestamp>,
}

/// The scripted context.
#[derive(Clone)]
pub struct Script(Rc<RefCell<Inner>>);

impl Cx for Script {
    fn activity<A: Activity>(
        &self,
        input: A::In,
        options: ActivityOptions,
    ) -> impl Future<Output = Result<A::Out, ActivityError>> + use<A> {
        let mut inner = self.0.borrow_mut();
        if inner.cancel_at.is_some_and(|at| inner.now >= at) && !options.survives_cancel {
            return ready(Err(ActivityError::Cancelled));
        }
        let input = serde_json::to_value(input).unwrap();
        inner.asked.push((A::NAME.to_owned(), input.clone()));
        let since = inner.now.duration_since(inner.began);
        let answer = (inner.world)(A::NAME, &input, since);
        // Looking takes time too.
        inner.now += SignedDuration::from_millis(200);
        ready(
            answer.map_err(ActivityError::Failed).map(|value| {
                serde_json::from_value(value.clone()).unwrap_or_else(|e| panic!("{}: {value}: {e}", A::NAME))
            }),
        )
    }

    fn sleep_until(
        &self,
        deadline: Timestamp,
        reason: WaitReason,
    ) -> impl Future<Output = Result<(), Cancelled>> + use<> {
        let mut inner = self.0.borrow_mut();
        let wait = deadline.duration_since(inner.now);
        inner.waits.push((reason.kind, wait));
        if let Some(at) = inner.cancel_at.filter(|at| *at <= deadline) {
            inner.now = inner.now.max(at);
            return ready(Err(Cancelled));
        }
        inner.now = inner.now.max(deadline);
        ready(Ok(()))
    }

    fn next_signal(&self) -> impl Future<Output = Result<Signal, Cancelled>> + use<> {
        std::future::pending()
    }

    fn now(&self) -> Timestamp {
        self.0.borrow().now
    }

    fn report(&self, observation: Observation) {
        let mut inner = self.0.borrow_mut();
        let now = inner.now;
        inner.reports.push(observation);
        inner.reported_at.push(now);
    }

    fn version(&self, _change: &'static str) -> bool {
        true
    }

    fn jitter(&self, _place: &str) -> f64 {
        0.5
    }
}

/// How a scripted run went.
pub struct Played {
    pub result: Result<EnrollResult, ActivityError>,
    pub asked: Vec<(String, Value)>,
    pub waits: Vec<(WaitKind, SignedDuration)>,
    pub reports: Vec<Observation>,
    /// When each of them was made.
    pub reported_at: Vec<Timestamp>,
    pub took: SignedDuration,
}

impl Played {
    pub fn names(&self) -> Vec<&str> {
        self.asked.iter().map(|(name, _)| name.as_str()).collect()
    }

    pub fn count(&self, name: &str) -> usize {
        self.asked.iter().filter(|(asked, _)| asked == name).count()
    }

    pub fn failure(&self) -> &Failure {
        match &self.result {
            Err(ActivityError::Failed(failure)) => failure,
            other => panic!("no failure: {other:?}"),
        }
    }

    pub fn phases_started(&self) -> Vec<Phase> {
        let started = self.reports.iter().filter_map(|o| match o {
            Observation::PhaseStarted { phase, attempt: 1 } => Some(*phase),
            _ => None,
        });
        started.collect()
    }

    pub fn skipped(&self) -> Vec<Phase> {
        let skipped = self.reports.iter().filter_map(|o| match o {
            Observation::PhaseSkipped { phase, .. } => Some(*phase),
            _ => None,
        });
        skipped.collect()
    }

    pub fn warnings(&self) -> Vec<String> {
        let warned = self.reports.iter().filter_map(|o| match o {
            Observation::Warned { message, .. } => Some(message.clone()),
            _ => None,
        });
        warned.collect()
    }

    pub fn waited(&self, kind: WaitKind) -> SignedDuration {
        self.waits.iter().filter(|(k, _)| *k == kind).map(|(_, wait)| *wait).sum()
    }
}

/// A request for a GPU host of `osl1` with the budgets of the house.
pub fn request() -> EnrollRequest {
    EnrollRequest {
        host: "gpu-b07-37".into(),
        netbox_id: 37,
        site: "osl1".into(),
        device_class: Some("COMPUTE_GPU".into()),
        params: EnrollParams::default(),
        options: muster::config::settings::default_options(),
        routing: Routing { by_class: BTreeMap::from([("COMPUTE_GPU".into(), "main".into())]) },
        submitted_by: "jo".into(),
        submitted_at: start(),
        retry_of: None,
        placement: Default::default(),
        canary: None,
    }
}

pub fn start() -> Timestamp {
    Timestamp::from_second(1_790_000_000).unwrap()
}

/// Plays a run against a world.
pub fn play(request: EnrollRequest, cancel_after: Option<SignedDuration>, world: World) -> Played {
    let inner = Inner {
        world,
        now: start(),
        began: start(),
        asked: vec![],
        waits: vec![],
        reports: vec![],
        reported_at: vec![],
        cancel_at: cancel_after.map(|after| start() + after),
    };
    let script = Script(Rc::new(RefCell::new(inner)));
    let mut run = pin!(enroll(script.clone(), request));
    let Poll::Ready(result) = run.as_mut().poll(&mut Context::from_waker(Waker::noop())) else {
        panic!("the run waits for something that the script never brings");
    };
    let inner = script.0.borrow();
    Played {
        result,
        asked: inner.asked.clone(),
        waits: inner.waits.clone(),
        reports: inner.reports.clone(),
        reported_at: inner.reported_at.clone(),
        took: inner.now.duration_since(inner.began),
    }
}

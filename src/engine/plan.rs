//! Plans a run: the workflow itself, carried out on clients that only look (G14).
//!
//! The clients of the environment answer every write as if it had been done (`clients/rehearsal`). Here is what the
//! workflow's context is then: no journal, timers that fire at once, and the few outcomes that only the world can bring, each
//! said to be assumed.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use jiff::Timestamp;
use serde_json::Value;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::foresight;
use crate::activities::env::{ActivityCx, Env};
use crate::activities::registry;
use crate::clients::rehearsal::{PlannedRequest, Rehearsal};
use crate::domain::event::{Observation, WaitKind, WaitReason};
use crate::domain::failure::{Failure, FailureCode};
use crate::domain::ids::RunId;
use crate::domain::phase::Phase;
use crate::domain::plan::{Gate, Plan, PlannedPhase, PlannedStep, what};
use crate::domain::request::EnrollRequest;
use crate::domain::verify::Verification;
use crate::workflows::cx::{Activity, ActivityError, ActivityOptions, Cancelled, Cx, Signal};
use crate::workflows::enroll::enroll;

/// A wait that comes again so often, with nothing new to say, ends a plan: nobody knows how long it would go on.
const SAME_WAITS: u32 = 3;

/// A plan, and the requests that it is made of.
#[derive(Debug, Clone)]
pub struct Rehearsed {
    pub plan: Plan,
    /// Every write that a run would send, in its order.
    pub requests: Vec<PlannedRequest>,
}

/// Plans a run on an environment whose clients and store belong to `rehearsal`. `deployed` says what lives on the host,
/// where something does.
pub async fn plan(env: Arc<Env>, rehearsal: Rehearsal, request: EnrollRequest, deployed: Option<String>) -> Rehearsed {
    let cx = PlanCx { shared: Arc::new(Shared::new(env, rehearsal, &request, deployed)) };
    let outcome = Box::pin(enroll(cx.clone(), request.clone())).await;
    if let Err(ActivityError::Failed(failure)) = outcome {
        cx.fails(&failure);
    }
    cx.finish(&request)
}

#[derive(Clone)]
pub(super) struct PlanCx {
    shared: Arc<Shared>,
}

struct Shared {
    env: Arc<Env>,
    rehearsal: Rehearsal,
    host: String,
    run: RunId,
    book: Mutex<Book>,
}

/// What is written down.
struct Book {
    now: Timestamp,
    seq: u32,
    phase: Phase,
    pages: BTreeMap<Phase, Page>,
    waits: BTreeMap<(Phase, String), u32>,
    deployed: Option<String>,
    /// So many of the rehearsal's writes were looked at for commands.
    looked_at: usize,
    /// Nothing after this can be foreseen.
    over: bool,
}

#[derive(Default)]
struct Page {
    gate: Option<Gate>,
    reads: u32,
    steps: Vec<PlannedStep>,
}

impl Shared {
    fn new(env: Arc<Env>, rehearsal: Rehearsal, request: &EnrollRequest, deployed: Option<String>) -> Shared {
        let book = Book {
            now: Timestamp::now(),
            seq: 0,
            phase: Phase::ResolveIronicInstance,
            pages: BTreeMap::new(),
            waits: BTreeMap::new(),
            deployed,
            looked_at: 0,
            over: false,
        };
        let run = RunId(Uuid::now_v7());
        Shared { env, rehearsal, host: request.host.clone(), run, book: Mutex::new(book) }
    }
}

impl Cx for PlanCx {
    fn activity<A: Activity>(
        &self,
        input: A::In,
        options: ActivityOptions,
    ) -> impl Future<Output = Result<A::Out, ActivityError>> + use<A> {
        let cx = self.clone();
        Box::pin(async move { cx.carry_out::<A>(input, options).await })
    }

    fn sleep_until(
        &self,
        deadline: Timestamp,
        reason: WaitReason,
    ) -> impl Future<Output = Result<(), Cancelled>> + use<> {
        std::future::ready(self.wait(deadline, &reason))
    }

    fn next_signal(&self) -> impl Future<Output = Result<Signal, Cancelled>> + use<> {
        std::future::pending()
    }

    fn now(&self) -> Timestamp {
        self.book(|book| book.now)
    }

    fn report(&self, observation: Observation) {
        // What the workflow says of the links it says of assumed ones; as they are now stands in the plan already.
        if matches!(&observation, Observation::Note { system, .. } if system == "bmc") {
            return;
        }
        self.observed(observation, false);
    }

    fn version(&self, _: &'static str) -> bool {
        true
    }

    fn jitter(&self, _: &str) -> f64 {
        0.5
    }
}

impl PlanCx {
    fn book<T>(&self, f: impl FnOnce(&mut Book) -> T) -> T {
        f(&mut self.shared.book.lock().unwrap_or_else(PoisonError::into_inner))
    }

    async fn carry_out<A: Activity>(&self, input: A::In, options: ActivityOptions) -> Result<A::Out, ActivityError> {
        let ActivityOptions { phase, timeout, .. } = options;
        let seq = self.book(|book| {
            (book.phase, book.seq) = (phase, book.seq + 1);
            if book.over { None } else { Some(book.seq) }
        });
        let Some(seq) = seq else { return Err(ActivityError::Cancelled) };
        let input = serde_json::to_value(&input).map_err(|e| unreadable(phase, A::NAME, &e))?;
        let output = match foresight::instead_of(self, A::NAME, phase, &input) {
            Some(output) => output,
            None => {
                let reads = self.shared.rehearsal.reads();
                let outcome = tokio::time::timeout(timeout, self.ask(A::NAME, input.clone(), seq)).await;
                let reads = self.shared.rehearsal.reads() - reads;
                self.commands(phase);
                self.page(phase, |page| page.reads += reads);
                let output = outcome.unwrap_or_else(|_| {
                    let message = format!("'{}' did not end within {} s", A::NAME, timeout.as_secs());
                    Err(Failure::new(
                        FailureCode::ActivityTimeout,
                        phase,
                        message,
                        "look at what it waits for, then retry",
                    ))
                })?;
                foresight::after(self, A::NAME, phase, &input, output)
            }
        };
        Ok(serde_json::from_value(output).map_err(|e| unreadable(phase, A::NAME, &e))?)
    }

    async fn ask(&self, name: &str, input: Value, seq: u32) -> Result<Value, Failure> {
        let imagined = foresight::is_imagined(&self.shared.rehearsal, name, &input);
        let cx = self.clone();
        let writes = self.book(|book| book.looked_at);
        let sink = move |observation: Observation| {
            let phase = cx.book(|book| book.phase);
            cx.commands(phase);
            // A sentence that comes after a write speaks of what was not done.
            let tells = matches!(observation, Observation::Note { .. }) && cx.book(|book| book.looked_at) > writes;
            if !tells {
                cx.observed(observation, imagined);
            }
        };
        let activity = ActivityCx {
            env: Arc::clone(&self.shared.env),
            run: self.shared.run,
            seq,
            attempt: 1,
            stop: CancellationToken::new(),
            sink: Arc::new(sink),
        };
        // On the heap: the workflow's future would else hold every activity's in itself, many times over.
        Box::pin(registry::run(name, input, activity)).await
    }

    /// Writes down the commands that were asked for since the last look.
    fn commands(&self, phase: Phase) {
        let from = self.book(|book| book.looked_at);
        let writes = self.shared.rehearsal.writes_from(from);
        self.book(|book| book.looked_at = from + writes.len());
        for PlannedRequest { system, server, path, .. } in writes.into_iter().filter(|write| write.method == "exec") {
            let (system, what, before) = (system.to_owned(), what::COMMAND.to_owned(), String::new());
            self.push(phase, PlannedStep { system, what, target: server, before, after: path, write: true });
        }
    }

    /// Writes down what was observed. `imagined`: it was made of data that nobody has yet.
    fn observed(&self, observation: Observation, imagined: bool) {
        let phase = self.book(|book| book.phase);
        match observation {
            Observation::PhaseStarted { phase, .. } => self.begins(phase),
            Observation::PhaseSkipped { phase, why } => {
                self.page(phase, |page| page.gate = Some(Gate::Skipped));
                self.step(phase, "muster", what::SKIPPED, "", &why);
            }
            Observation::Warned { phase, message } => self.step(phase, "muster", what::WARNING, "", &message),
            Observation::Note { system, text } => self.step(phase, &system, what::NOTE, "", &text),
            Observation::Wrote { system, target, what, before, after } => {
                self.push(phase, PlannedStep { system, what, target, before, after, write: true });
            }
            Observation::Verified { verification, .. } if !imagined => self.verified(phase, &verification),
            Observation::Verified { .. }
            | Observation::PhaseDone { .. }
            | Observation::Attempt { .. }
            | Observation::AttemptFailed { .. }
            | Observation::Links { .. }
            | Observation::Node { .. }
            | Observation::Cleaning { .. }
            | Observation::Resumed { .. }
            | Observation::Requests { .. }
            | Observation::Stopped { .. }
            | Observation::Outlived => {}
        }
    }

    fn begins(&self, phase: Phase) {
        self.book(|book| book.phase = phase);
        self.page(phase, |page| page.gate = Some(Gate::On));
        // B19: this phase comes before the Nova guard.
        if phase == Phase::Bmc
            && let Some(what_lives_there) = self.book(|book| book.deployed.take())
        {
            let words = format!("{what_lives_there}: converging the BMC can restart its host");
            self.step(phase, "bmc", what::WARNING, "", &words);
        }
    }

    /// The inventory at hand: what differs, or that nothing does.
    fn verified(&self, phase: Phase, verification: &Verification) {
        for check in verification.failed() {
            let title = format!("check {}", check.title());
            self.step(phase, "ironic", &title, &check.observed, &check.expected);
        }
        if verification.passed() {
            let words = format!("all {} checks pass on the inventory at hand", verification.checks.len());
            self.step(phase, "ironic", what::NOTE, "", &words);
        }
    }

    /// A timer: listed once for each thing that is waited for, and fired at once.
    fn wait(&self, deadline: Timestamp, reason: &WaitReason) -> Result<(), Cancelled> {
        let WaitReason { phase, kind, text, gives_up_at } = reason;
        let (over, now, times) = self.book(|book| {
            let times = book.waits.entry((*phase, format!("{kind:?} {text}"))).or_default();
            *times += 1;
            let times = *times;
            let now = book.now;
            book.now = now.max(deadline);
            (book.over, now, times)
        });
        if over {
            return Err(Cancelled);
        }
        if *kind == WaitKind::Rerun || times > SAME_WAITS {
            self.book(|book| book.over = true);
            let words = if *kind == WaitKind::Rerun {
                "a run would try again, and nothing would be other than it is now".to_owned()
            } else {
                format!("{text}: how long, and how it ends")
            };
            self.step(*phase, "muster", what::NOT_FORESEEN, "", &words);
            return Err(Cancelled);
        }
        if times == 1 {
            let most = gives_up_at.map_or(String::new(), |at| {
                let seconds = at.duration_since(now).as_secs().max(0);
                format!("at most {}", words(seconds))
            });
            self.step(*phase, waits_for(*kind, *phase), what::WAIT, text, &most);
        }
        self.shared.rehearsal.time_passes();
        Ok(())
    }

    fn fails(&self, failure: &Failure) {
        if let Some(asked) = self.shared.rehearsal.refused() {
            return self.step(failure.phase, "muster", what::NOT_FORESEEN, "", &format!("what comes of {asked}"));
        }
        let again = if failure.retryable { " (a run would try it again first)" } else { "" };
        let words = format!("{}{again} → {}", failure.message, failure.action);
        let (code, owner) = (failure.code, failure.owner);
        self.step(failure.phase, "muster", what::FAILS, &format!("{code} ({owner})"), &words);
    }

    pub(super) fn step(&self, phase: Phase, system: &str, what: &str, before: &str, after: &str) {
        let step = PlannedStep {
            system: system.to_owned(),
            what: what.to_owned(),
            target: self.shared.host.clone(),
            before: before.to_owned(),
            after: after.to_owned(),
            write: false,
        };
        self.push(phase, step);
    }

    fn push(&self, phase: Phase, step: PlannedStep) {
        self.page(phase, |page| {
            // A look that is taken twice sees the same.
            if step.write || !page.steps.contains(&step) {
                page.steps.push(step);
            }
        });
    }

    fn page(&self, phase: Phase, f: impl FnOnce(&mut Page)) {
        self.book(|book| f(book.pages.entry(phase).or_default()));
    }

    pub(super) fn rehearsal(&self) -> &Rehearsal {
        &self.shared.rehearsal
    }

    pub(super) fn env(&self) -> &Env {
        &self.shared.env
    }

    pub(super) fn host(&self) -> &str {
        &self.shared.host
    }

    /// How often this was asked before.
    pub(super) fn asked_before(&self, phase: Phase, name: &str) -> u32 {
        self.book(|book| {
            let times = book.waits.entry((phase, name.to_owned())).or_default();
            *times += 1;
            *times - 1
        })
    }

    fn finish(&self, request: &EnrollRequest) -> Rehearsed {
        let mut pages = self.book(|book| std::mem::take(&mut book.pages));
        let made_up = self.shared.rehearsal.made_up();
        let real = |text: &mut String| {
            for id in &made_up {
                *text = text.replace(id, "(a new UUID)");
            }
        };
        let phases: Vec<PlannedPhase> = Phase::ALL
            .into_iter()
            .map(|phase| {
                let Page { gate, reads, mut steps } = pages.remove(&phase).unwrap_or_default();
                for step in &mut steps {
                    [&mut step.what, &mut step.target, &mut step.before, &mut step.after].into_iter().for_each(real);
                }
                let gate = match gate {
                    Some(Gate::On) => Gate::On,
                    _ if is_off(request, phase) => Gate::Off,
                    _ => Gate::Skipped,
                };
                PlannedPhase { phase, gate, reads, steps }
            })
            .collect();
        let writes = phases.iter().flat_map(|phase| &phase.steps).filter(|step| step.write).count();
        let plan = Plan { host: self.shared.host.clone(), phases, writes };
        Rehearsed { plan, requests: self.shared.rehearsal.writes() }
    }
}

/// Whether a gate or an option of the site switches a phase off (G2).
fn is_off(request: &EnrollRequest, phase: Phase) -> bool {
    let options = &request.options;
    match phase {
        Phase::PlatformClass => !options.platform_class_activity_ready,
        Phase::Dhcp => !options.configure_dhcp,
        Phase::Bmc => !options.configure_bmc,
        Phase::DriverSwitch => !options.ironic_enrol || !options.switch_to_ipmi_after_inspection,
        Phase::Inspection | Phase::Cleaning | Phase::Finalize => !options.ironic_enrol,
        Phase::ResolveIronicInstance | Phase::StatusGate | Phase::Activation => false,
    }
}

/// On whose part something is waited for.
fn waits_for(kind: WaitKind, phase: Phase) -> &'static str {
    match kind {
        WaitKind::LinkGuard => "bmc",
        WaitKind::StableState if phase == Phase::Bmc => "bmc",
        WaitKind::NodeLock | WaitKind::StableState | WaitKind::PowerOn | WaitKind::Inspection | WaitKind::Cleaning => {
            "ironic"
        }
        WaitKind::Staged | WaitKind::Applied => "bmc",
        WaitKind::Rerun | WaitKind::Proof => "muster",
    }
}

/// `5 min`, `40 s`, `1 h 30 min`.
pub(super) fn words(seconds: i64) -> String {
    match (seconds / 3600, seconds % 3600 / 60, seconds % 60) {
        (0, 0, s) => format!("{s} s"),
        (0, m, 0) => format!("{m} min"),
        (0, m, s) => format!("{m} min {s} s"),
        (h, 0, _) => format!("{h} h"),
        (h, m, _) => format!("{h} h {m} min"),
    }
}

fn unreadable(phase: Phase, name: &str, error: &serde_json::Error) -> Failure {
    let message = format!("input or result of '{name}' can't be read in a plan: {error}");
    Failure::new(FailureCode::InternalError, phase, message, "report this as a defect of muster")
}

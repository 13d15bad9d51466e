//! What a BMC keeps for its host's next boot: firmware attributes and boot order, staged only where they differ (B5, B7, B8,
//! B9, B12–B15).

use std::collections::{BTreeMap, BTreeSet};

use super::BMC;
use super::access::{Bmc, Parts, Trouble, keep, kept};
use super::flow::{BootStep, Flow, flow, word};
use super::prepare::vendor;
use crate::activities::env::ActivityCx;
use crate::clients::redfish::dialect::{At, BootChange, Change, Dialect, Job, JobState, Staging};
use crate::clients::redfish::error::RedfishError;
use crate::domain::bios;
use crate::domain::boot::{self, BootSetup};
use crate::domain::event::Observation;
use crate::domain::failure::{Failure, FailureCode, Owner};
use crate::domain::phase::Phase;
use crate::workflows::defs::{BmcStage, Changed, StageBmcIn, StageBmcOut, StagedBmcIn, StagedBmcOut};

/// The word for the boot order in messages and in the change list.
const BOOT_ORDER: &str = "boot order";

/// What is left as it is where the class of network options comes first and the NIC within it is not known.
const NIC_PLACE: &str = "place of the provisioning NIC in the boot order";

/// Compares, and stages the difference. What is staged already, by a run of before that was broken off, is not staged again.
pub async fn stage(cx: &ActivityCx, input: StageBmcIn) -> Result<StageBmcOut, Failure> {
    let bmc = Bmc::open(cx, &input.target, Phase::Bmc).await?;
    let outcome = stage_by(&bmc, input.restrict_boot).await;
    bmc.settle(outcome).await
}

async fn stage_by(bmc: &Bmc<'_>, restrict_boot: bool) -> Result<StageBmcOut, Trouble> {
    let nothing = StageBmcOut {
        changed: vec![],
        satisfied: vec![],
        skipped: vec![],
        jobs: vec![],
        needs_boot: false,
        rest: false,
    };
    let host = Host::open(bmc).await?;
    let Some(staging) = host.dialect.staging() else { return Ok(nothing) };
    host.wait_until_ready().await?;
    // The queue before the values: what a job holds may show as if it were in force already (Q14).
    let jobs = staging.jobs(host.at()).await?;
    let mut ours = Ours::load(bmc)?;
    if ours.staging && !jobs.is_empty() {
        // There was none when it was asked for, and its answer was lost.
        ours = Ours { staging: false, jobs: jobs.iter().map(|job| job.id.clone()).collect() };
        ours.keep(bmc).await?;
        bmc.cx.note(BMC, "a job whose answer was lost is there, and is gone on with");
    }
    if let Some(foreign) = jobs.iter().find(|job| job.state != JobState::Running && !ours.jobs.contains(&job.id)) {
        return Err(host.foreign(foreign).into());
    }
    let wish = host.wish(staging, restrict_boot).await?;
    for (what, why) in &wish.skipped {
        bmc.cx.observe(Observation::Warned {
            phase: bmc.phase,
            message: format!("{what} of '{}' is left as it is: {why}", bmc.target.host),
        });
    }
    let skipped = wish.skipped.iter().map(|(what, why)| format!("{what}: {why}")).collect();
    if !jobs.is_empty() {
        // They end before anything else is staged: a second job would meet "already committed" (B8).
        // What they are is not known here: what differs after them is staged then.
        let jobs = jobs.into_iter().map(|job| job.id).collect();
        return Ok(StageBmcOut { satisfied: wish.satisfied, skipped, jobs, needs_boot: true, rest: true, ..nothing });
    }
    if wish.words.is_empty() {
        return Ok(StageBmcOut { satisfied: wish.satisfied, skipped, needs_boot: wish.awaits_boot, ..nothing });
    }
    if let Some(reason) = host.dialect.refuses_changes(host.at()).await? {
        return Err(RedfishError::LockedDown { asked: "staging".to_owned(), reason }.into());
    }
    Ours { staging: true, ..Ours::default() }.keep(bmc).await?;
    let staged = match staging.stage(host.at(), &wish.change).await {
        Ok(staged) => staged,
        // Whether it was done is not known.
        Err(lost @ RedfishError::Http(_)) => return Err(lost.into()),
        Err(refused) => {
            Ours::default().keep(bmc).await?;
            return Err(match &refused {
                RedfishError::Refused { reason, said, .. } if said.mentions("already committed") => {
                    host.committed(reason).into()
                }
                _ => refused.into(),
            });
        }
    };
    Ours { staging: false, jobs: staged.jobs.iter().cloned().collect() }.keep(bmc).await?;
    for (what, before, after) in &wish.words {
        bmc.cx.wrote(BMC, &bmc.target.host, what, before, after);
    }
    let changed = wish.words.into_iter().map(|(what, _, _)| what).collect();
    let rest = wish.more || staged.rest.is_some();
    Ok(StageBmcOut { changed, satisfied: wish.satisfied, skipped, jobs: staged.jobs, needs_boot: true, rest })
}

/// One look at what was staged. Asks once and changes nothing.
pub async fn staged(cx: &ActivityCx, input: StagedBmcIn) -> Result<StagedBmcOut, Failure> {
    let bmc = Bmc::open(cx, &input.target, Phase::Bmc).await?;
    let outcome = match look(&bmc, &input).await {
        // While its host boots a BMC may have nothing to say, or not be there at all.
        Err(Trouble::Redfish(error)) if input.booted && may_pass(&error) => {
            Ok(StagedBmcOut { stage: BmcStage::Waiting, note: error.to_string() })
        }
        other => other,
    };
    bmc.settle(outcome).await
}

fn may_pass(error: &RedfishError) -> bool {
    match error {
        RedfishError::Busy { .. } => true,
        RedfishError::Http(error) => error.is_transient(),
        _ => false,
    }
}

async fn look(bmc: &Bmc<'_>, input: &StagedBmcIn) -> Result<StagedBmcOut, Trouble> {
    let host = Host::open(bmc).await?;
    let out = |stage, note: String| Ok(StagedBmcOut { stage, note });
    let Some(staging) = host.dialect.staging() else { return out(BmcStage::Applied, "nothing is staged".into()) };
    let mut jobs = Vec::new();
    for id in &input.jobs {
        match staging.job(host.at(), id).await {
            Ok(job) if job.state == JobState::Failed => return Err(host.failed(&job).into()),
            Ok(job) => jobs.push(job),
            // BMCs forget jobs that have ended. What they did is read below.
            Err(error) if error.is_absent() => {}
            Err(error) => return Err(error.into()),
        }
    }
    let said = jobs.iter().map(|job| format!("{}: {}", job.id, job.said)).collect::<Vec<_>>().join("; ");
    let any = |state| jobs.iter().any(|job| job.state == state);
    match (any(JobState::New), any(JobState::Running), any(JobState::Scheduled)) {
        (true, _, _) => return out(BmcStage::Waiting, said),
        (_, true, _) => return out(BmcStage::Running, said),
        (_, _, true) => return out(BmcStage::Scheduled, said),
        (false, false, false) => {}
    }
    if input.jobs.is_empty() && !input.booted {
        return out(BmcStage::Scheduled, "the next boot applies it".to_owned());
    }
    if input.rest && !input.jobs.is_empty() {
        return out(BmcStage::Applied, "a part of it is applied".to_owned());
    }
    // All jobs are done, or there never was one: the values decide (Q15).
    let wish = host.wish(staging, input.restrict_boot).await?;
    if wish.words.is_empty() && !wish.awaits_boot {
        Ours::default().keep(bmc).await?;
        return out(BmcStage::Applied, "it is applied".to_owned());
    }
    if input.jobs.is_empty() && (wish.pending || !input.booted) {
        return out(BmcStage::Scheduled, "the host has not applied it yet".to_owned());
    }
    if input.jobs.is_empty() {
        // A boot has taken it and made something else of it (Q10): what differs now is staged once more.
        return out(BmcStage::Applied, "a boot has applied it, and not all is as it should be".to_owned());
    }
    Err(host.not_applied(&wish, &said).into())
}

/// Takes jobs back that have not begun.
pub async fn withdraw(cx: &ActivityCx, input: StagedBmcIn) -> Result<Changed, Failure> {
    let bmc = Bmc::open(cx, &input.target, Phase::Bmc).await?;
    let outcome = withdraw_by(&bmc, &input.jobs).await;
    bmc.settle(outcome).await
}

async fn withdraw_by(bmc: &Bmc<'_>, jobs: &[String]) -> Result<Changed, Trouble> {
    let host = Host::open(bmc).await?;
    let mut gone = Vec::new();
    if let Some(staging) = host.dialect.staging() {
        for id in jobs {
            staging.withdraw(host.at(), id).await?;
            bmc.cx.wrote(BMC, &bmc.target.host, "staged job", id, "deleted");
            gone.push(id.as_str());
        }
    }
    Ours::default().keep(bmc).await?;
    Ok(Changed { changed: !gone.is_empty(), note: format!("deleted {}", gone.join(", ")) })
}

/// A BMC with what its vendor's way is.
struct Host<'a> {
    bmc: &'a Bmc<'a>,
    dialect: &'static dyn Dialect,
    flow: &'static Flow,
    parts: Parts,
}

/// What is to be staged.
#[derive(Default)]
struct Wish {
    change: Change,
    /// What, how it reads, how it is to be.
    words: Vec<(String, String, String)>,
    satisfied: Vec<String>,
    skipped: Vec<(String, String)>,
    /// Something that is right is so from the next boot on only.
    awaits_boot: bool,
    /// Something is kept for the next boot, right or not.
    pending: bool,
    /// It prepares for what can be staged after the next boot only.
    more: bool,
}

impl<'a> Host<'a> {
    async fn open(bmc: &'a Bmc<'a>) -> Result<Host<'a>, Trouble> {
        let root = bmc.redfish.root().await?;
        let (vendor, dialect) = vendor(bmc, &root)?;
        bmc.redfish.prefer(dialect.first_form());
        let parts = bmc.parts(&root).await?;
        Ok(Host { bmc, dialect, flow: flow(vendor), parts })
    }

    fn at(&self) -> At<'_> {
        self.parts.at(&self.bmc.redfish)
    }

    /// Waits within the step's budget until the BMC can be written to.
    async fn wait_until_ready(&self) -> Result<(), Trouble> {
        let until = tokio::time::Instant::now() + self.bmc.site.bmc.busy_budget;
        let mut pause = std::time::Duration::from_millis(200);
        while let Some(why) = self.dialect.not_ready(self.at()).await? {
            if tokio::time::Instant::now() >= until {
                let host = &self.bmc.target.host;
                return Err(self
                    .bmc
                    .fail(
                        FailureCode::BmcHttpServiceUnavailable,
                        format!("the BMC of '{host}' answers and is not ready: {why}"),
                        format!("wait until '{host}' has booted and nobody uses its Lifecycle Controller, then retry"),
                    )
                    .owned_by(Owner::InfraEng)
                    .into());
            }
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(std::time::Duration::from_secs(10));
        }
        Ok(())
    }

    /// Compares firmware attributes and boot order with what is wanted.
    async fn wish(&self, staging: &dyn Staging, restrict_boot: bool) -> Result<Wish, Trouble> {
        let mut wish = Wish::default();
        let wanted = self.attributes();
        let names: Vec<String> = wanted.keys().cloned().collect();
        if !names.is_empty() {
            match staging.bios(self.at(), &names).await? {
                Some(bios) => {
                    wish.pending |= !bios.staged.is_empty();
                    let found = bios::difference(&bios, &wanted);
                    wish.awaits_boot |= !found.awaits_boot.is_empty();
                    wish.satisfied.extend(found.satisfied);
                    // Models differ: only what the site itself asks for is missed.
                    let own = self.own_attributes();
                    wish.skipped.extend(found.skipped.into_iter().filter(|(name, _)| own.contains(name)));
                    for (name, before, after) in found.write {
                        wish.words.push((name.clone(), text(&before), text(&after)));
                        wish.change.attributes.push((name, after));
                    }
                }
                None => wish.skipped.push(("firmware attributes".to_owned(), "the BMC offers none to set".to_owned())),
            }
        }
        if self.flow.boot != BootStep::Nothing {
            match staging.boot(self.at()).await? {
                Some(setup) => {
                    wish.pending |= setup.staged.is_some();
                    self.boot(staging, &setup, restrict_boot, &mut wish).await?;
                }
                None => wish.skipped.push((BOOT_ORDER.to_owned(), "the BMC lists no boot options".to_owned())),
            }
        }
        Ok(wish)
    }

    fn attributes(&self) -> BTreeMap<String, String> {
        let mut wanted: BTreeMap<String, String> =
            self.flow.bios.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let own = self.bmc.site.bmc.bios.get(word(self.dialect.vendor()));
        wanted.extend(own.into_iter().flatten().map(|(name, value)| (name.clone(), value.clone())));
        wanted.retain(|_, value| !value.is_empty());
        wanted
    }

    fn own_attributes(&self) -> BTreeSet<&String> {
        self.bmc.site.bmc.bios.get(word(self.dialect.vendor())).into_iter().flatten().map(|(name, _)| name).collect()
    }

    async fn boot(
        &self,
        staging: &dyn Staging,
        setup: &BootSetup,
        restrict_boot: bool,
        wish: &mut Wish,
    ) -> Result<(), Trouble> {
        let nic = self.bmc.facts.provisioning().and_then(|nic| nic.mac);
        let restricts = match self.flow.boot {
            BootStep::Nothing => return Ok(()),
            BootStep::Restrict if !restrict_boot => return Ok(()),
            BootStep::Restrict => true,
            BootStep::RestrictOrReorder => restrict_boot && nic.is_some(),
            BootStep::NetworkFirst => false,
        };
        if !restricts {
            // A NIC that is not positively identified is not singled out: nothing is lost by that here.
            let singled = nic.filter(|_| self.flow.boot == BootStep::NetworkFirst);
            let order = match singled.map(|nic| boot::nic_first(setup, nic)) {
                Some(Ok(order)) => order,
                Some(Err(why)) => {
                    wish.skipped.push((NIC_PLACE.to_owned(), why));
                    boot::network_first(setup)
                }
                None => boot::network_first(setup),
            };
            self.want_order(setup, BootChange { order, ..BootChange::default() }, wish);
            return Ok(());
        }
        let Some(nic) = nic else {
            let why = "NetBox knows no MAC of the provisioning NIC: no option is disabled".to_owned();
            wish.skipped.push((BOOT_ORDER.to_owned(), why));
            return Ok(());
        };
        match boot::restrict(setup, nic) {
            Ok(found) => {
                let change = BootChange { order: found.order, enable: found.enable, disable: found.disable };
                self.want_order(setup, change, wish);
            }
            Err(why) => {
                // A NIC may have no option yet, and get one by what the firmware boots from at all.
                let attributes = staging.make_bootable(self.at(), nic).await?;
                if attributes.is_empty() {
                    wish.skipped.push((BOOT_ORDER.to_owned(), format!("{why}; no option is disabled")));
                }
                wish.more = !attributes.is_empty();
                for (name, value) in attributes {
                    wish.words.push((name.clone(), "-".to_owned(), text(&value)));
                    wish.change.attributes.push((name, value));
                }
            }
        }
        Ok(())
    }

    fn want_order(&self, setup: &BootSetup, change: BootChange, wish: &mut Wish) {
        let (now, staged) = (setup.order(), setup.staged.as_ref());
        let flags_right = change.enable.is_empty() && change.disable.is_empty();
        if flags_right && *staged.unwrap_or(&now) == change.order {
            wish.awaits_boot |= staged.is_some_and(|staged| *staged != now);
            return wish.satisfied.push(BOOT_ORDER.to_owned());
        }
        let name = |reference: &String| {
            let mut all = setup.options.iter().chain(&setup.aside);
            let option = all.find(|option| option.reference == *reference);
            option.map_or_else(|| reference.clone(), |option| option.name.clone())
        };
        let mut after = change.order.iter().map(name).collect::<Vec<_>>().join(", ");
        if !change.disable.is_empty() {
            after += &format!("; off: {}", change.disable.iter().map(name).collect::<Vec<_>>().join(", "));
        }
        let before = now.iter().map(name).collect::<Vec<_>>().join(", ");
        wish.words.push((BOOT_ORDER.to_owned(), before, after));
        wish.change.boot = Some(change);
    }

    fn foreign(&self, job: &Job) -> Failure {
        let host = &self.bmc.target.host;
        self.bmc
            .fail(
                FailureCode::BmcJobForeign,
                format!(
                    "the BMC of '{host}' has the job '{}' of somebody else: {}; nothing was staged",
                    job.id, job.said
                ),
                format!("restart '{host}' to let the job '{}' run, or delete it on the BMC, then retry", job.id),
            )
            .with_evidence(format!("redfish job {}", job.id), job.said.clone())
    }

    fn committed(&self, reason: &str) -> Failure {
        let host = &self.bmc.target.host;
        self.bmc.fail(
            FailureCode::BmcJobForeign,
            format!("the BMC of '{host}' holds settings that somebody else has staged: {reason}"),
            format!("restart '{host}' to apply them, or clear them on the BMC (ClearPending), then retry"),
        )
    }

    fn failed(&self, job: &Job) -> Failure {
        let host = &self.bmc.target.host;
        self.bmc
            .fail(
                FailureCode::BmcJobFailed,
                format!("the job '{}' of the BMC of '{host}' failed: {}", job.id, job.said),
                format!("look at the job '{}' in the BMC's queue, mend what it says, then retry", job.id),
            )
            .with_evidence(format!("redfish job {}", job.id), job.said.clone())
    }

    fn not_applied(&self, wish: &Wish, said: &str) -> Failure {
        let host = &self.bmc.target.host;
        let differs: Vec<String> =
            wish.words.iter().map(|(what, now, wanted)| format!("{what} reads '{now}' and not '{wanted}'")).collect();
        let differs = if differs.is_empty() { "it waits for another boot".to_owned() } else { differs.join("; ") };
        self.bmc
            .fail(
                FailureCode::BmcSettingNotApplied,
                format!("the BMC of '{host}' says that its job is done, and {differs}"),
                format!("retry; if it stays so, set it in the setup of '{host}' by hand"),
            )
            .with_evidence("redfish jobs", said)
    }
}

fn text(value: &serde_json::Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// Jobs that this program made on a BMC and has not seen the end of: no other may be touched, and none of these is made
/// twice after a crash or a lost answer.
#[derive(Debug, Default, PartialEq, Eq)]
struct Ours {
    /// A change was asked for when the BMC had no job, and its answer is not known.
    staging: bool,
    jobs: BTreeSet<String>,
}

impl Ours {
    /// Stands among the ids; no BMC names a job so.
    const STAGING: &'static str = "?";

    fn key(bmc: &Bmc<'_>) -> String {
        format!("bmc.jobs.{}", bmc.target.netbox_id)
    }

    fn load(bmc: &Bmc<'_>) -> Result<Ours, Failure> {
        let kept = kept(bmc.cx, &Ours::key(bmc), bmc.phase)?;
        let mut jobs: BTreeSet<String> = kept.split_whitespace().map(str::to_owned).collect();
        Ok(Ours { staging: jobs.remove(Ours::STAGING), jobs })
    }

    async fn keep(&self, bmc: &Bmc<'_>) -> Result<(), Failure> {
        if *self == Ours::load(bmc)? {
            return Ok(());
        }
        let staging = self.staging.then_some(Ours::STAGING);
        let words = staging.into_iter().chain(self.jobs.iter().map(String::as_str)).collect::<Vec<_>>().join(" ");
        keep(bmc.cx, &Ours::key(bmc), &words, bmc.phase).await
    }
}

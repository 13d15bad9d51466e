//! Opens the BMC of a host: its record in NetBox, its address, its credential, a client for it.

use std::time::Duration;

use secrecy::{ExposeSecret, SecretString};
use url::Url;

use super::{BMC, classify, wrong_tries};
use crate::activities::env::ActivityCx;
use crate::activities::facts;
use crate::clients::redfish::address::{base_of, base_of_text};
use crate::clients::redfish::collection::Skipped;
use crate::clients::redfish::dialect::At;
use crate::clients::redfish::error::RedfishError;
use crate::clients::redfish::host::{HostSystem, find_manager, find_system};
use crate::clients::redfish::vendor::{Detected, Vendor, detect};
use crate::clients::redfish::{Credential, Redfish, RedfishOptions, Resource};
use crate::config::settings::SiteSettings;
use crate::domain::failure::{Failure, FailureCode};
use crate::domain::host::HostFacts;
use crate::domain::phase::Phase;
use crate::store::StoreError;
use crate::workflows::defs::Target;

/// A host's BMC for the length of one activity.
pub(super) struct Bmc<'a> {
    pub cx: &'a ActivityCx,
    pub target: &'a Target,
    pub phase: Phase,
    pub site: &'a SiteSettings,
    pub facts: HostFacts,
    pub redfish: Redfish,
    /// Item of the vault with its credential.
    pub item: String,
    /// Its password, as the key of what is remembered of other secrets.
    pub password: SecretString,
}

/// Why a step on a BMC brought nothing: the client's word, or a verdict already.
pub(super) enum Trouble {
    Redfish(Box<RedfishError>),
    Failure(Box<Failure>),
}

impl From<RedfishError> for Trouble {
    fn from(error: RedfishError) -> Self {
        Trouble::Redfish(Box::new(error))
    }
}

impl From<Failure> for Trouble {
    fn from(failure: Failure) -> Self {
        Trouble::Failure(Box::new(failure))
    }
}

/// The resources of a BMC that everything starts from.
pub(super) struct Parts {
    pub root: Resource,
    pub system: Resource,
    pub manager: Resource,
}

impl Parts {
    /// As a dialect takes them.
    pub fn at<'b>(&'b self, redfish: &'b Redfish) -> At<'b> {
        At { redfish, root: &self.root, system: &self.system, manager: &self.manager }
    }
}

impl<'a> Bmc<'a> {
    /// Reads the host live and makes a client that asks as the vault's user. Asks the BMC nothing.
    pub async fn open(cx: &'a ActivityCx, target: &'a Target, phase: Phase) -> Result<Bmc<'a>, Failure> {
        let mut bmc = Bmc::open_unproven(cx, target, phase).await?;
        let credential = credential(cx, &bmc.item, phase).await?;
        bmc.password = credential.password.clone();
        bmc.redfish = bmc.redfish.as_user(credential);
        Ok(bmc)
    }

    /// The same with a client that asks as nobody, for whoever does not know yet which credential works.
    pub async fn open_unproven(cx: &'a ActivityCx, target: &'a Target, phase: Phase) -> Result<Bmc<'a>, Failure> {
        let site = cx.site(&target.site, phase)?;
        let facts = facts::read(cx, target, phase).await?;
        let base = base(&facts, site, phase)?;
        let item = cx.env.vault.bmc_item(&target.host);
        wrong_tries::check(cx, target, phase, &item)?;
        let options = RedfishOptions {
            trust: site.bmc.trust.clone(),
            connect_timeout: site.bmc.connect_timeout,
            timeout: site.bmc.timeout,
            busy_budget: site.bmc.busy_budget,
        };
        let redfish = cx
            .env
            .clients
            .redfish(&base, None, options)
            .map_err(|error| classify::failure(&error, &place(target, &item), phase))?;
        Ok(Bmc { cx, target, phase, site, facts, redfish, item, password: SecretString::default() })
    }

    /// Finds system and manager, and says what was left out on the way.
    pub async fn parts(&self, root: &Resource) -> Result<Parts, RedfishError> {
        self.parts_by(&self.redfish, root).await
    }

    /// As [`Bmc::parts`], through another client of the same BMC.
    pub async fn parts_by(&self, redfish: &Redfish, root: &Resource) -> Result<Parts, RedfishError> {
        let wanted = self.system_id();
        let HostSystem { system, skipped } = find_system(redfish, root, wanted.as_deref()).await?;
        self.report_skipped(&skipped);
        let manager = find_manager(redfish, root, &system).await?;
        Ok(Parts { root: root.clone(), system, manager })
    }

    /// The host's system, and the vendor where it is one that is known: a BMC of any other is asked as the standard says.
    pub async fn system_of_any(&self) -> Result<(Option<Vendor>, Resource), RedfishError> {
        let root = self.redfish.root().await?;
        let vendor = match detect(&root) {
            Detected::Known(vendor) => Some(vendor),
            Detected::Unknown { .. } => None,
        };
        if let Some(vendor) = vendor {
            self.redfish.prefer(vendor.dialect().first_form());
        }
        Ok((vendor, self.parts(&root).await?.system))
    }

    /// The system that Ironic is told to use, where one service has several.
    pub fn system_id(&self) -> Option<String> {
        let settings = self.facts.ironic_settings.as_ref()?;
        settings.ironic_driver_info.get("redfish_system_id")?.as_str().map(str::to_owned)
    }

    /// Says what the BMC lists and cannot be read (C-33).
    pub fn report_skipped(&self, skipped: &[Skipped]) {
        for Skipped { path, why } in skipped {
            self.cx.note(BMC, format!("left out {path}: {why}"));
        }
    }

    /// Turns an outcome into the run's words, and remembers a refused login across runs and restarts (C-28).
    pub async fn settle<T>(&self, outcome: Result<T, Trouble>) -> Result<T, Failure> {
        match outcome {
            Ok(out) => Ok(out),
            Err(Trouble::Failure(failure)) => Err(*failure),
            Err(Trouble::Redfish(error)) => {
                if matches!(*error, RedfishError::Unauthorized { .. }) {
                    wrong_tries::remember(self.cx, self.target, self.phase).await?;
                }
                Err(classify::failure(&error, &place(self.target, &self.item), self.phase))
            }
        }
    }

    /// How long a value is waited for to show after its write.
    pub fn read_back_budget(&self) -> Duration {
        Duration::from_secs(60).min(self.site.bmc.busy_budget)
    }

    /// A failure of this step.
    pub fn fail(&self, code: FailureCode, message: impl Into<String>, action: impl Into<String>) -> Failure {
        Failure::new(code, self.phase, message, action)
    }
}

fn place<'b>(target: &'b Target, item: &'b str) -> classify::Place<'b> {
    classify::Place { host: &target.host, site: &target.site, item }
}

/// The address that NetBox has for the BMC.
fn base(facts: &HostFacts, site: &SiteSettings, phase: Phase) -> Result<Url, Failure> {
    let host = &facts.name;
    let named = facts.ironic_settings.as_ref().and_then(|settings| settings.redfish_address_override.as_deref());
    if let Some(text) = named {
        return base_of_text(text, &site.bmc.scheme, site.bmc.port).map_err(|error| {
            Failure::new(
                FailureCode::NetboxDataInvalid,
                phase,
                format!("redfish_address_override of '{host}' is '{text}', which is no address: {error}"),
                format!("correct ironic_settings.redfish_address_override of '{host}' in NetBox"),
            )
        });
    }
    let Some(address) = facts.oob_ip else {
        return Err(Failure::new(
            FailureCode::NetboxDataMissing,
            phase,
            format!("NetBox has no oob_ip for '{host}'"),
            format!("give '{host}' its out-of-band IP in NetBox (oob_ip of the device)"),
        ));
    };
    base_of(address, &site.bmc.scheme, site.bmc.port).map_err(|error| {
        Failure::new(
            FailureCode::InternalError,
            phase,
            format!("'{address}' with scheme '{}' is no URL: {error}", site.bmc.scheme),
            "correct scheme and port of the site's [bmc] in the configuration",
        )
    })
}

/// User name and password of an item.
pub(super) async fn credential(cx: &ActivityCx, item: &str, phase: Phase) -> Result<Credential, Failure> {
    let username = cx.secret(item, "username", phase).await?.expose_secret().to_owned();
    Ok(Credential { username, password: cx.secret(item, "password", phase).await? })
}

/// What is remembered under a key; empty where nothing is.
pub(super) fn kept(cx: &ActivityCx, key: &str, phase: Phase) -> Result<String, Failure> {
    let kept = cx.env.store.get_meta(key).map_err(|error| store_failure(&error, phase))?;
    Ok(kept.unwrap_or_default())
}

/// Remembers a value under a key, over attempts and runs.
pub(super) async fn keep(cx: &ActivityCx, key: &str, value: &str, phase: Phase) -> Result<(), Failure> {
    cx.env.store.put_meta(key, value).await.map_err(|error| store_failure(&error, phase))
}

pub(super) fn store_failure(error: &StoreError, phase: Phase) -> Failure {
    let failure = Failure::new(
        FailureCode::StoreFailed,
        phase,
        error.to_string(),
        "mend what the store's error says, then retry",
    );
    if error.is_transient() { failure } else { failure.final_now() }
}

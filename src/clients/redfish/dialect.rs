//! What differs from vendor to vendor, behind one interface. A new vendor is one file with a [`Dialect`], and one row in
//! [`Vendor::dialect`](super::vendor::Vendor::dialect).
//!
//! A dialect knows where a BMC keeps something, how it reads and how it is written. Which settings are wanted and in which
//! order, when a host may restart, and what a failure means is decided by `activities/bmc` and `domain`.

use futures::future::BoxFuture;
use secrecy::SecretString;
use serde_json::Value;

use super::accounts::{self, Accounts, PasswordRules};
use super::condition::FirstForm;
use super::converge::{Located, Wanted};
use super::error::RedfishError;
use super::resource::Resource;
use super::service::{Accepted, Redfish};
use super::vendor::Vendor;
use crate::domain::bios::Bios;
use crate::domain::boot::BootSetup;
use crate::domain::mac::Mac;

/// A BMC with the resources that everything starts from.
#[derive(Clone, Copy)]
pub struct At<'a> {
    pub redfish: &'a Redfish,
    pub root: &'a Resource,
    /// The host.
    pub system: &'a Resource,
    /// The BMC.
    pub manager: &'a Resource,
}

/// What a request to a BMC brings.
pub type Asked<'a, T> = BoxFuture<'a, Result<T, RedfishError>>;

/// One vendor's way.
pub trait Dialect: Send + Sync {
    fn vendor(&self) -> Vendor;

    /// The precondition that its BMCs are asked with first.
    fn first_form(&self) -> FirstForm;

    /// The cold reset to ask for where the BMC does not list its own.
    fn reset_type(&self) -> &'static str;

    /// Finds where a setting is and how it reads now. Changes nothing.
    fn locate<'a>(&'a self, at: At<'a>, wanted: &'a Wanted) -> Asked<'a, Located>;

    /// The account to write to, unseen, while a password that has to be changed first hides all others.
    fn forced_account(&self) -> Option<&'static str> {
        None
    }

    /// Gives an account a password. `redfish` speaks as somebody who may: the account itself, mostly. The lost answer to it
    /// leaves open which of the two passwords is valid.
    fn set_password<'a>(&'a self, redfish: &'a Redfish, account: &'a str, password: &'a SecretString) -> Asked<'a, ()> {
        Box::pin(async move { accounts::set_password(redfish, account, password).await })
    }

    /// The account to fill with a new user, where accounts are numbered places that are always there. `None`: accounts are
    /// created.
    fn free_place<'a>(&self, _accounts: &'a Accounts) -> Option<&'a Resource> {
        None
    }

    /// Whether the `AccountTypes` of an account say what it may be used for. Some firmware has one table of users for all
    /// interfaces, and writes the same word to each.
    fn has_account_types(&self) -> bool {
        true
    }

    /// What a BMC says that it demands of a password.
    fn password_rules<'a>(&'a self, _at: At<'a>, accounts: &'a Accounts) -> Asked<'a, PasswordRules> {
        Box::pin(async move { Ok(accounts.password_rules()) })
    }

    /// How `IndicatorLED` reads while nobody is shown the host by it.
    fn resting_led(&self) -> &'static str {
        "Off"
    }

    /// Why a BMC that answers is not ready to be written to yet; `None`: it is. Asked after a reset and before anything is
    /// staged.
    fn not_ready<'a>(&'a self, _at: At<'a>) -> Asked<'a, Option<String>> {
        Box::pin(async { Ok(None) })
    }

    /// Why a BMC takes no change at all now; `None`: nothing says that it does not. Asked before a first write where no
    /// reading that is there already tells it.
    fn refuses_changes<'a>(&'a self, _at: At<'a>) -> Asked<'a, Option<String>> {
        Box::pin(async { Ok(None) })
    }

    /// What it keeps for the host's next boot; `None` where this program stages nothing on it.
    fn staging(&self) -> Option<&dyn Staging> {
        None
    }
}

/// What a BMC keeps for the next boot of its host: firmware attributes and the boot order.
pub trait Staging: Send + Sync {
    /// The firmware attributes, with what the BMC's registry says of those in `names`. `None`: it has none to set.
    fn bios<'a>(&'a self, at: At<'a>, names: &'a [String]) -> Asked<'a, Option<Bios>>;

    /// The boot options in their order, with all evidence of the NIC behind each (B14). `None`: it lists none.
    fn boot<'a>(&'a self, at: At<'a>) -> Asked<'a, Option<BootSetup>>;

    /// Firmware attributes that give a NIC a boot option, where it has none. Empty: it has one, or this vendor's firmware has
    /// options for all NICs, or none to spare.
    fn make_bootable<'a>(&'a self, _at: At<'a>, _nic: Mac) -> Asked<'a, Vec<(String, Value)>> {
        Box::pin(async { Ok(vec![]) })
    }

    /// Jobs that hold settings of the host now, ended ones left out, whoever made them. Empty where a vendor has no jobs.
    fn jobs<'a>(&'a self, _at: At<'a>) -> Asked<'a, Vec<Job>> {
        Box::pin(async { Ok(vec![]) })
    }

    /// Stages a change for the next boot, in as few writes as the BMC allows (B8).
    fn stage<'a>(&'a self, at: At<'a>, change: &'a Change) -> Asked<'a, Staged>;

    /// How a job stands.
    fn job<'a>(&'a self, at: At<'a>, id: &'a str) -> Asked<'a, Job>;

    /// Takes a job back before it runs. One that is gone already is no error.
    fn withdraw<'a>(&'a self, at: At<'a>, id: &'a str) -> Asked<'a, ()>;
}

/// A change to stage.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Change {
    /// Firmware attributes by name, in the types that were read.
    pub attributes: Vec<(String, Value)>,
    pub boot: Option<BootChange>,
}

/// A change of the boot order. References are those of [`BootSetup`].
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct BootChange {
    /// The whole order, as it is to be.
    pub order: Vec<String>,
    pub enable: Vec<String>,
    pub disable: Vec<String>,
}

/// What staging brought.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Staged {
    /// Jobs that carry the change, by their ids. Empty: the BMC applies it at the next boot without one.
    pub jobs: Vec<String>,
    /// What the BMC does not take before these jobs are done: to be staged then.
    pub rest: Option<Change>,
}

/// A job of a BMC.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Job {
    pub id: String,
    pub state: JobState,
    /// The BMC's own word for the state, and what it says beside it.
    pub said: String,
}

/// How far a job is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JobState {
    /// Accepted, and not yet bound to the next boot.
    New,
    /// The next boot carries it out.
    Scheduled,
    /// A boot has carried it in.
    Running,
    Done,
    Failed,
}

/// The members of a reply that name a job: the last part of its `Location`.
pub fn job_of(accepted: &Accepted) -> Option<String> {
    let location = accepted.location.as_deref()?;
    let id = location.trim_end_matches('/').rsplit('/').next()?;
    (!id.is_empty()).then(|| id.to_owned())
}

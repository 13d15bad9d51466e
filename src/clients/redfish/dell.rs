//! Dell iDRAC: most settings are attributes in one flat map, and what the host's next boot is to change is a job.

mod boot;
mod jobs;
mod settings;
mod staging;

use futures::future::BoxFuture;
use secrecy::{ExposeSecret, SecretString};
use serde_json::{Value, json};

use super::accounts::{self, Accounts, PasswordRules};
use super::condition::FirstForm;
use super::converge::{Located, Wanted};
use super::dialect::{Asked, At, Change, Dialect, Job, Staged, Staging};
use super::error::RedfishError;
use super::resource::Resource;
use super::service::Redfish;
use super::vendor::Vendor;
use crate::domain::bios::Bios;
use crate::domain::boot::BootSetup;
use crate::domain::mac::Mac;

/// Its dialect.
pub struct Dell;

/// The factory's administrator: the first place is reserved.
const ROOT_ACCOUNT: &str = "/redfish/v1/AccountService/Accounts/2";

/// Where the attributes are, for the one case in which no link to them can be read.
const ATTRIBUTES: &str = "/redfish/v1/Managers/iDRAC.Embedded.1/Oem/Dell/DellAttributes/iDRAC.Embedded.1";

/// Places for accounts that people may fill.
const FREE_PLACES: std::ops::RangeInclusive<u64> = 3..=16;

impl Dialect for Dell {
    fn vendor(&self) -> Vendor {
        Vendor::Dell
    }

    /// Needs none, and iDRAC10 refuses actions that carry one (Q7).
    fn first_form(&self) -> FirstForm {
        FirstForm::Nothing
    }

    fn reset_type(&self) -> &'static str {
        "GracefulRestart"
    }

    fn locate<'a>(&'a self, at: At<'a>, wanted: &'a Wanted) -> Asked<'a, Located> {
        Box::pin(settings::locate(at, wanted))
    }

    fn forced_account(&self) -> Option<&'static str> {
        Some(ROOT_ACCOUNT)
    }

    fn set_password<'a>(&'a self, redfish: &'a Redfish, account: &'a str, password: &'a SecretString) -> Asked<'a, ()> {
        Box::pin(set_password(redfish, account, password))
    }

    fn free_place<'a>(&self, accounts: &'a Accounts) -> Option<&'a Resource> {
        accounts.members.iter().find(|account| {
            let is_place = account.id().parse().is_ok_and(|n: u64| FREE_PLACES.contains(&n));
            is_place && account.text("UserName").is_none() && account.flag("Enabled") == Some(false)
        })
    }

    /// It has more of them among its attributes.
    fn password_rules<'a>(&'a self, at: At<'a>, accounts: &'a Accounts) -> Asked<'a, PasswordRules> {
        Box::pin(settings::password_rules(at, accounts))
    }

    /// It is lit all the while, and blinks to show the host.
    fn resting_led(&self) -> &'static str {
        "Lit"
    }

    fn not_ready<'a>(&'a self, at: At<'a>) -> Asked<'a, Option<String>> {
        Box::pin(jobs::not_ready(at))
    }

    fn refuses_changes<'a>(&'a self, at: At<'a>) -> Asked<'a, Option<String>> {
        Box::pin(settings::lockdown(at))
    }

    fn staging(&self) -> Option<&dyn Staging> {
        Some(self)
    }
}

impl Staging for Dell {
    fn bios<'a>(&'a self, at: At<'a>, names: &'a [String]) -> Asked<'a, Option<Bios>> {
        Box::pin(staging::bios(at, names))
    }

    fn boot<'a>(&'a self, at: At<'a>) -> Asked<'a, Option<BootSetup>> {
        Box::pin(boot::read(at))
    }

    fn make_bootable<'a>(&'a self, at: At<'a>, nic: Mac) -> Asked<'a, Vec<(String, Value)>> {
        Box::pin(boot::make_bootable(at, nic))
    }

    fn jobs<'a>(&'a self, at: At<'a>) -> Asked<'a, Vec<Job>> {
        Box::pin(jobs::unfinished(at))
    }

    fn stage<'a>(&'a self, at: At<'a>, change: &'a Change) -> Asked<'a, Staged> {
        Box::pin(staging::stage(at, change))
    }

    fn job<'a>(&'a self, at: At<'a>, id: &'a str) -> Asked<'a, Job> {
        Box::pin(jobs::one(at, id))
    }

    fn withdraw<'a>(&'a self, at: At<'a>, id: &'a str) -> BoxFuture<'a, Result<(), RedfishError>> {
        Box::pin(staging::withdraw(at, id))
    }
}

/// By the account itself; while the factory password locks that too, as an attribute (Q43).
async fn set_password(redfish: &Redfish, account: &str, password: &SecretString) -> Result<(), RedfishError> {
    match accounts::set_password(redfish, account, password).await {
        Err(
            refused @ (RedfishError::PasswordChangeRequired { .. }
            | RedfishError::Forbidden { .. }
            | RedfishError::NotFound { .. }
            | RedfishError::Refused { status: 405, .. }),
        ) => {
            let place = account.trim_end_matches('/').rsplit('/').next().unwrap_or_default();
            if !place.bytes().all(|b| b.is_ascii_digit()) || place.is_empty() {
                return Err(refused);
            }
            let name = format!("Users.{place}.Password");
            redfish.patch(ATTRIBUTES, &json!({"Attributes": {name: password.expose_secret()}})).await.map(drop)
        }
        other => other,
    }
}

//! A line of the doctor's.

use serde::Serialize;

use crate::domain::failure::{Failure, Owner};

/// What became of one look.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Level {
    Ok,
    /// It works, and should be looked at.
    Warn,
    /// It could not be looked at: neither good nor bad is known.
    Unknown,
    /// It will not work.
    Fail,
}

/// One thing that was looked at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Check {
    /// `netbox.view.dcim.device`: stays the same from version to version.
    pub check: String,
    pub level: Level,
    pub message: String,
    /// Who mends it; `None` where nothing is to be mended.
    pub owner: Option<Owner>,
    pub action: Option<String>,
    /// The check that has to be mended before this one can be looked at.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub because: Option<String>,
}

/// What stands in the way of other looks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Cause {
    pub check: String,
    pub owner: Owner,
}

impl Check {
    pub(super) fn ok(check: impl Into<String>, message: impl Into<String>) -> Self {
        let (check, message) = (check.into(), message.into());
        Check { check, level: Level::Ok, message, owner: None, action: None, because: None }
    }

    pub(super) fn to_mend(
        level: Level,
        check: impl Into<String>,
        message: impl Into<String>,
        action: impl Into<String>,
    ) -> Self {
        Check {
            check: check.into(),
            level,
            message: message.into(),
            owner: Some(Owner::InfraEng),
            action: Some(action.into()),
            because: None,
        }
    }

    /// In the words that the same thing has in a run, which alone would try again.
    pub(super) fn of_failure(level: Level, check: impl Into<String>, failure: &Failure) -> Self {
        let action = failure.action.trim_end_matches(", then retry").trim_end_matches(", then run again");
        Check::to_mend(level, check, failure.message.clone(), action).owned_by(failure.owner)
    }

    /// What nobody can look at before something else is mended.
    pub(super) fn blocked(check: impl Into<String>, cause: &Cause) -> Self {
        let message = format!("could not be looked at: {} is not well", cause.check);
        let check = Check::to_mend(Level::Unknown, check, message, format!("mend what {} says", cause.check));
        Check { because: Some(cause.check.clone()), ..check.owned_by(cause.owner) }
    }

    pub(super) fn owned_by(self, owner: Owner) -> Self {
        Check { owner: Some(owner), ..self }
    }

    /// This check as what stands in the way of others: itself, or what stands in its own way.
    pub(super) fn cause(&self) -> Cause {
        let check = self.because.clone().unwrap_or_else(|| self.check.clone());
        Cause { check, owner: self.owner.unwrap_or(Owner::InfraEng) }
    }

    /// Whether what needs this can be looked at.
    pub(super) fn lets_pass(&self) -> bool {
        matches!(self.level, Level::Ok | Level::Warn)
    }
}

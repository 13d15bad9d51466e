//! How a command ends: the exit codes of the contract, and one sentence for the person.

use std::process::ExitCode;

/// The exit codes of the contract.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Exit {
    Done = 0,
    Failed = 1,
    /// Refused, or wrongly called: nothing was started.
    Refused = 2,
    /// Interrupted; the runs are in the journal and go on at the next start.
    Interrupted = 3,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        ExitCode::from(exit as u8)
    }
}

/// An end that is not a good one: what happened, and what to do.
#[derive(Debug)]
pub struct Ending {
    pub exit: Exit,
    pub message: String,
    pub action: Option<String>,
}

impl Ending {
    pub fn refused(message: impl Into<String>) -> Self {
        Ending { exit: Exit::Refused, message: message.into(), action: None }
    }

    pub fn failed(message: impl Into<String>) -> Self {
        Ending { exit: Exit::Failed, message: message.into(), action: None }
    }

    pub fn with_action(mut self, action: impl Into<String>) -> Self {
        self.action = Some(action.into());
        self
    }

    /// Says it on stderr.
    pub fn report(self) -> ExitCode {
        eprintln!("muster: {}", self.message);
        if let Some(action) = &self.action {
            eprintln!("        {action}");
        }
        self.exit.into()
    }
}

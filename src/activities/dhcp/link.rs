//! The connection of one round to a DHCP host: its files, and the commands of its service.

use tokio::sync::OnceCell;

use super::failures;
use crate::clients::ssh::{Output, Sftp, SshClient, SshError};
use crate::config::settings::DhcpSettings;
use crate::domain::failure::{Failure, FailureCode};
use crate::domain::text::neutralize_to;

pub(super) struct Link<'a> {
    pub client: &'a SshClient,
    pub settings: &'a DhcpSettings,
    /// The vault's item with key and known_hosts, for messages.
    item: &'a str,
    /// Opened when the first file is touched: an entry that is right already needs none.
    sftp: OnceCell<Sftp<'a>>,
}

/// Why the service does not have what was uploaded.
pub(super) enum Refused {
    /// Its test or its restart said no, in these words.
    Said(String),
    /// Whether it was carried out is not known.
    Unknown(Box<Failure>),
}

impl<'a> Link<'a> {
    pub fn new(client: &'a SshClient, settings: &'a DhcpSettings, item: &'a str) -> Self {
        Link { client, settings, item, sftp: OnceCell::new() }
    }

    pub fn server(&self) -> &str {
        self.client.server()
    }

    pub async fn sftp(&self) -> Result<&Sftp<'a>, Failure> {
        self.sftp.get_or_try_init(|| self.client.sftp()).await.map_err(|error| self.in_transfer(&error))
    }

    /// The server's own test of its configuration, where one is configured.
    pub async fn test(&self) -> Result<(), Refused> {
        let Some(test) = &self.settings.test else { return Ok(()) };
        self.asked("the test of the configuration failed", test).await
    }

    /// Restarts the service and sees that it serves (D7).
    pub async fn start(&self) -> Result<(), Refused> {
        self.asked("the restart failed", &self.settings.restart).await?;
        self.asked("the service does not serve after its restart", &self.settings.validate).await
    }

    /// Restarts the service when the former files are back; why it does not run, if it does not.
    pub async fn start_again(&self) -> Result<(), String> {
        for command in [&self.settings.restart, &self.settings.validate] {
            let ended = self.client.run(command).await.map_err(|error| error.to_string())?;
            if ended.status != 0 {
                return Err(said("yet it does not run", command, &ended));
            }
        }
        Ok(())
    }

    /// A configured command. Where its end is not known the new entry stays, and the marker makes the next attempt go on.
    async fn asked(&self, what: &str, command: &str) -> Result<(), Refused> {
        match self.client.run(command).await {
            Ok(ended) if ended.status == 0 => Ok(()),
            Ok(ended) => Err(Refused::Said(said(what, command, &ended))),
            Err(error) => {
                let mut failure = self.in_command(&error);
                failure.message += "; the new entry is in place, and the next attempt restarts the service again";
                Err(Refused::Unknown(Box::new(failure)))
            }
        }
    }

    pub fn in_command(&self, error: &SshError) -> Failure {
        failures::ssh(error, FailureCode::DhcpCommandFailed, self.settings, self.item)
    }

    pub fn in_transfer(&self, error: &SshError) -> Failure {
        failures::ssh(error, FailureCode::DhcpTransferFailed, self.settings, self.item)
    }
}

/// What a command ended with, in one sentence.
fn said(what: &str, command: &str, output: &Output) -> String {
    format!("{what}: '{}' ended with status {}: '{}'", neutralize_to(command, 120), output.status, output.said())
}

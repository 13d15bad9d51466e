//! The connection of one round to a DHCP host: its files, the commands of its service, and what its other entries hold.

use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::OnceCell;

use super::{Wanted, failures};
use crate::activities::env::ActivityCx;
use crate::clients::ssh::{Output, Sftp, SshClient, SshError};
use crate::config::settings::DhcpSettings;
use crate::domain::dhcp::others::Others;
use crate::domain::failure::{Failure, FailureCode};
use crate::domain::text::neutralize_to;

pub(super) struct Link<'a> {
    /// Of the run that has the turn.
    pub cx: &'a ActivityCx,
    pub client: &'a SshClient,
    pub settings: &'a DhcpSettings,
    /// Opened when the first file is touched: an entry that is right already needs none.
    sftp: OnceCell<Sftp<'a>>,
    /// Read when the first file is to be uploaded, and kept up to date by what this round does.
    others: OnceCell<Mutex<Others>>,
}

/// Why the service does not have what was uploaded.
pub(super) enum Refused {
    /// Its test or its restart said no, in these words.
    Said(String),
    /// Whether it was carried out is not known.
    Unknown(Box<Failure>),
    /// sudo did not carry it out.
    NotAllowed(Box<Failure>),
}

impl<'a> Link<'a> {
    pub fn new(cx: &'a ActivityCx, client: &'a SshClient, settings: &'a DhcpSettings) -> Self {
        Link { cx, client, settings, sftp: OnceCell::new(), others: OnceCell::new() }
    }

    pub fn server(&self) -> &str {
        self.client.server()
    }

    pub async fn sftp(&self) -> Result<&Sftp<'a>, Failure> {
        self.sftp.get_or_try_init(|| self.client.sftp()).await.map_err(|error| self.in_transfer(&error))
    }

    /// Compares an entry with all others on this server, and with those that this round has put there (D9). Gives the
    /// files that could not be understood.
    pub async fn compare(&self, wanted: &Wanted) -> Result<Vec<String>, Failure> {
        let read = || async {
            let files = self.client.files(&self.settings.directory).await?;
            Ok(Mutex::new(Others::read(self.settings.server, files)))
        };
        let others = self.others.get_or_try_init(read).await.map_err(|error: SshError| self.in_command(&error))?;
        let others = lock(others);
        match others.collision(&wanted.file.name, &wanted.entry) {
            Some(found) => Err(failures::collision(&found, &wanted.file.name, &wanted.entry, self.settings)),
            None => Ok(others.unclear().to_vec()),
        }
    }

    /// A file of the folder has this content from now on.
    pub fn has_put(&self, name: &str, content: Option<&[u8]>) {
        if let Some(others) = self.others.get() {
            let content = content.map(String::from_utf8_lossy);
            lock(others).put(self.settings.server, name, content.as_deref());
        }
    }

    /// The server's own test of its configuration, where one is configured.
    pub async fn test(&self) -> Result<(), Refused> {
        let Some(test) = &self.settings.test else { return Ok(()) };
        self.asked("the test of the configuration failed", test).await
    }

    /// Restarts the service and sees that it serves (D7).
    pub async fn start(&self) -> Result<(), Refused> {
        self.asked("the restart failed", &self.settings.restart).await?;
        let validated = self.asked("the service does not serve after its restart", &self.settings.validate).await;
        // The restart was carried out.
        validated
            .map_err(|refused| if let Refused::NotAllowed(why) = refused { Refused::Unknown(why) } else { refused })
    }

    /// Restarts the service when the former files are back; why it does not run, if it does not.
    pub async fn start_again(&self) -> Result<(), String> {
        for command in [&self.settings.restart, &self.settings.validate] {
            let ended = self.client.run(&self.command(command)).await.map_err(|error| error.to_string())?;
            if ended.status != 0 {
                return Err(said("yet it does not run", command, &ended));
            }
        }
        Ok(())
    }

    async fn asked(&self, what: &str, command: &str) -> Result<(), Refused> {
        match self.client.run(&self.command(command)).await {
            Ok(ended) if ended.status == 0 => Ok(()),
            Ok(ended) => match refused_by_sudo(&ended.said()) {
                Some(why) => {
                    Err(Refused::NotAllowed(Box::new(failures::sudo(why, &self.command(command), self.settings))))
                }
                None => Err(Refused::Said(said(what, command, &ended))),
            },
            Err(error) => Err(Refused::Unknown(Box::new(self.in_command(&error)))),
        }
    }

    fn command(&self, text: &str) -> String {
        command(self.settings, text)
    }

    pub fn in_command(&self, error: &SshError) -> Failure {
        failures::ssh(error, FailureCode::DhcpCommandFailed, self.settings, self.item())
    }

    pub fn in_transfer(&self, error: &SshError) -> Failure {
        failures::ssh(error, FailureCode::DhcpTransferFailed, self.settings, self.item())
    }

    /// The vault's item with key and known_hosts, for messages.
    fn item(&self) -> &str {
        &self.cx.env.vault.settings().dhcp_item
    }
}

/// A configured command, with privilege where that is configured.
pub(super) fn command(settings: &DhcpSettings, command: &str) -> String {
    if settings.sudo { format!("sudo -n -- {command}") } else { command.to_owned() }
}

fn lock(others: &Mutex<Others>) -> MutexGuard<'_, Others> {
    others.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Why sudo did not carry a command out; `None` where it is not sudo that speaks. What it says in other languages is taken
/// for the command's own words: then the status speaks.
pub(super) fn refused_by_sudo(said: &str) -> Option<&'static str> {
    let speaks = |part: &str| said.contains(part);
    if speaks("sudo: a password is required") || speaks("sudo: a terminal is required") {
        Some("it wants a password")
    } else if speaks("is not allowed to execute") || speaks("may not run sudo on") {
        Some("its rules do not allow it")
    } else if speaks("is not in the sudoers file") {
        Some("its rules do not have the user")
    } else if speaks("sudo: command not found") || speaks("sudo: not found") || speaks("sudo: No such file") {
        Some("there is no sudo")
    } else if speaks("sudo: ") && speaks(": command not found") {
        Some("it does not find the command")
    } else {
        None
    }
}

/// What a command ended with, in one sentence.
fn said(what: &str, command: &str, output: &Output) -> String {
    format!("{what}: '{}' ended with status {}: '{}'", neutralize_to(command, 120), output.status, output.said())
}

#[cfg(test)]
mod tests {
    use super::refused_by_sudo;

    #[test]
    fn what_sudo_says_is_told_from_what_its_command_says() {
        for (said, why) in [
            ("sudo: a password is required", Some("it wants a password")),
            (
                "Sorry, user muster is not allowed to execute '/usr/sbin/restart' as root on dhcp1.",
                Some("its rules do not allow it"),
            ),
            ("Sorry, user muster may not run sudo on dhcp1.", Some("its rules do not allow it")),
            ("muster is not in the sudoers file.", Some("its rules do not have the user")),
            ("bash: line 1: sudo: command not found", Some("there is no sudo")),
            ("sh: 1: sudo: not found", Some("there is no sudo")),
            ("sudo: restart-kea: command not found", Some("it does not find the command")),
            ("Job for isc-dhcp-server.service failed", None),
            ("restart-kea: command not found", None),
        ] {
            assert_eq!(refused_by_sudo(said), why, "{said}");
        }
    }
}

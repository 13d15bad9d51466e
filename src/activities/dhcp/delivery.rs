//! Brings one entry file to the DHCP host: compare, upload, test, restart, validate; and back where that fails.
//!
//! Between the upload and the end of the validation a marker file stands beside the entry. It holds the former file. A
//! process that dies in between leaves it there, and the next attempt knows by it that an equal digest proves nothing yet:
//! the service may never have been restarted (G5).

use sha2::{Digest, Sha256};

use super::{PHASE, failures};
use crate::activities::env::ActivityCx;
use crate::clients::ssh::{Output, Sftp, SshClient, SshError, quote};
use crate::config::settings::DhcpSettings;
use crate::domain::dhcp::EntryFile;
use crate::domain::event::Observation;
use crate::domain::failure::{Failure, FailureCode};
use crate::domain::text::neutralize_to;
use crate::workflows::defs::DhcpOut;

/// The largest former file that is kept; an entry has some 200 bytes.
const FORMER_MAX: usize = 64 * 1024;
/// First lines of the marker: was there a former file?
const HAD_FILE: &[u8] = b"former file:\n";
const HAD_NONE: &[u8] = b"no former file\n";

/// The file as it was before; `None` where there was none.
type Former = Option<Vec<u8>>;

pub(super) struct Delivery<'a> {
    cx: &'a ActivityCx,
    client: &'a SshClient,
    settings: &'a DhcpSettings,
    file: EntryFile,
    /// On the DHCP host.
    path: String,
    marker: String,
    sha256: String,
}

impl<'a> Delivery<'a> {
    pub fn new(cx: &'a ActivityCx, client: &'a SshClient, settings: &'a DhcpSettings, file: EntryFile) -> Self {
        let path = format!("{}/{}", settings.directory, file.name);
        let marker = format!("{}/.{}.muster-former", settings.directory, file.name);
        let sha256 = Sha256::digest(&file.content).iter().map(|b| format!("{b:02x}")).collect();
        Delivery { cx, client, settings, file, path, marker, sha256 }
    }

    /// Nothing where the entry is there and served (D6); else upload, restart, validate (D7).
    pub async fn bring(&self) -> Result<DhcpOut, Failure> {
        let remote = self.client.sha256(&self.path).await.map_err(|e| self.in_command(&e))?;
        let equal = remote.as_deref() == Some(self.sha256.as_str());
        if equal && !self.is_unfinished().await? {
            self.cx.note("dhcp", format!("'{}' on '{}' is right already", self.path, self.client.server()));
            return Ok(self.out(false));
        }
        let sftp;
        let former;
        if equal {
            self.cx.note("dhcp", "an earlier attempt ended before the service was seen to serve the entry".to_owned());
            sftp = self.sftp().await?;
            former = self.marked(&sftp).await?.unwrap_or_default();
        } else {
            self.prepare().await?;
            sftp = self.sftp().await?;
            former = self.upload(&sftp).await?;
        }
        self.serve(&sftp, former.as_deref()).await?;
        if let Err(error) = self.unmark(&sftp).await {
            // The entry is served: that is what counts.
            let message =
                format!("'{}' could not be removed: {error}; the next run restarts the service once more", self.marker);
            self.cx.observe(Observation::Warned { phase: PHASE, message });
        }
        Ok(self.out(true))
    }

    /// Takes the marker away: by SFTP, else by a command on the same connection.
    async fn unmark(&self, sftp: &Sftp<'_>) -> Result<(), SshError> {
        let Err(error) = sftp.remove(&self.marker).await else { return Ok(()) };
        match self.client.run(&format!("rm -f -- {}", quote(&self.marker))).await {
            Ok(output) if output.status == 0 => Ok(()),
            // The first error says more.
            _ => Err(error),
        }
    }

    fn out(&self, changed: bool) -> DhcpOut {
        DhcpOut { changed, file: self.path.clone(), sha256: self.sha256.clone() }
    }

    /// Whether an earlier attempt left its marker.
    async fn is_unfinished(&self) -> Result<bool, Failure> {
        self.client.exists(&self.marker).await.map_err(|e| self.in_command(&e))
    }

    /// The folder may be there, or not be this user's to make: the upload tells (D8).
    async fn prepare(&self) -> Result<(), Failure> {
        let command = format!("mkdir -p -- {}", quote(&self.settings.directory));
        let made = self.client.run(&command).await.map_err(|e| self.in_command(&e))?;
        if made.status != 0 {
            self.cx.note("dhcp", format!("the folder could not be made: '{}'", made.said()));
        }
        Ok(())
    }

    async fn sftp(&self) -> Result<Sftp<'a>, Failure> {
        self.client.sftp().await.map_err(|e| self.in_transfer(&e))
    }

    /// What the marker of an earlier attempt holds; `None` where there is none, or half of one.
    async fn marked(&self, sftp: &Sftp<'_>) -> Result<Option<Former>, Failure> {
        let marker = sftp.read(&self.marker, FORMER_MAX + HAD_FILE.len()).await.map_err(|e| self.in_transfer(&e))?;
        Ok(marker.and_then(|content| match content.strip_prefix(HAD_FILE) {
            Some(former) => Some(Some(former.to_vec())),
            None => (content == HAD_NONE).then_some(None),
        }))
    }

    /// Keeps the former file in the marker, then puts the new one in its place. Gives the former one.
    async fn upload(&self, sftp: &Sftp<'_>) -> Result<Former, Failure> {
        let former = match self.marked(sftp).await? {
            Some(former) => former,
            None => {
                let former = sftp.read(&self.path, FORMER_MAX).await.map_err(|e| self.in_transfer(&e))?;
                let marker = match &former {
                    Some(content) => [HAD_FILE, content].concat(),
                    None => HAD_NONE.to_vec(),
                };
                sftp.write(&self.marker, &marker).await.map_err(|e| self.in_transfer(&e))?;
                former
            }
        };
        if let Err(error) = sftp.write(&self.path, self.file.content.as_bytes()).await {
            if matches!(error, SshError::Transfer { .. }) {
                // Nothing was changed, so nothing is unfinished. The failure is what is told.
                sftp.remove(&self.marker).await.ok();
            }
            return Err(self.in_transfer(&error));
        }
        let before = former.as_ref().map_or_else(|| "no file".to_owned(), |content| one_line(content));
        let server = self.client.server();
        self.cx.wrote("dhcp", server, &self.path, before, one_line(self.file.content.as_bytes()));
        Ok(former)
    }

    /// Test, restart, validate; and the former file where one of them says no (D9).
    async fn serve(&self, sftp: &Sftp<'_>, former: Option<&[u8]>) -> Result<(), Failure> {
        if let Some(test) = &self.settings.test {
            let tested = self.run(test).await?;
            if tested.status != 0 {
                let what = said("the test of the configuration failed", test, &tested);
                return Err(self.back(sftp, former, what, false).await);
            }
        }
        let restarted = self.run(&self.settings.restart).await?;
        if restarted.status != 0 {
            let what = said("the restart failed", &self.settings.restart, &restarted);
            return Err(self.back(sftp, former, what, true).await);
        }
        self.cx.note("dhcp", format!("restarted the service on '{}'", self.client.server()));
        let validated = self.run(&self.settings.validate).await?;
        if validated.status != 0 {
            let what = said("the service does not serve after its restart", &self.settings.validate, &validated);
            return Err(self.back(sftp, former, what, true).await);
        }
        Ok(())
    }

    /// A configured command. Where its end is not known the new entry stays, and the marker makes the next attempt go on.
    async fn run(&self, command: &str) -> Result<Output, Failure> {
        self.client.run(command).await.map_err(|error| {
            let mut failure = self.in_command(&error);
            failure.message += "; the new entry is in place, and the next attempt restarts the service again";
            failure
        })
    }

    /// Puts the former file back and restarts the service where it was restarted. The failure says both.
    async fn back(&self, sftp: &Sftp<'_>, former: Option<&[u8]>, what: String, restart: bool) -> Failure {
        let back = self.put_back(sftp, former, restart).await;
        let (then, action) = match back {
            Ok(then) => (then, "mend the entry by what the service says, then run the enrollment again".to_owned()),
            Err(fault) => {
                self.cx.note("dhcp", format!("the former file could not be brought back: {fault}"));
                let path = &self.path;
                (
                    format!("and the service could not be brought back: {fault}"),
                    format!(
                        "look at the DHCP service of {} at once: it may serve nobody; its entry is '{path}'",
                        self.settings.host
                    ),
                )
            }
        };
        Failure::new(FailureCode::DhcpValidationFailed, PHASE, format!("{what}; {then}"), action).with_evidence(
            format!("dhcp {} {}", self.client.server(), self.path),
            one_line(self.file.content.as_bytes()),
        )
    }

    async fn put_back(&self, sftp: &Sftp<'_>, former: Option<&[u8]>, restart: bool) -> Result<String, String> {
        let words = |error: SshError| error.to_string();
        let file = match former {
            Some(content) => {
                sftp.write(&self.path, content).await.map_err(words)?;
                "the former file is back"
            }
            None => {
                sftp.remove(&self.path).await.map_err(words)?;
                "the new file is removed"
            }
        };
        self.cx.wrote("dhcp", self.client.server(), &self.path, one_line(self.file.content.as_bytes()), file);
        let mut then = format!("{file}, and the service was not restarted");
        if restart {
            for command in [&self.settings.restart, &self.settings.validate] {
                let ended = self.client.run(command).await.map_err(words)?;
                if ended.status != 0 {
                    return Err(format!("{file}, {}", said("yet it does not run", command, &ended)));
                }
            }
            then = format!("{file}, and the service runs again");
        }
        // All is as it was: nothing is unfinished. A marker that stays costs one restart.
        self.unmark(sftp).await.ok();
        Ok(then)
    }

    fn in_command(&self, error: &SshError) -> Failure {
        self.failure(error, FailureCode::DhcpCommandFailed)
    }

    fn in_transfer(&self, error: &SshError) -> Failure {
        self.failure(error, FailureCode::DhcpTransferFailed)
    }

    fn failure(&self, error: &SshError, cut: FailureCode) -> Failure {
        failures::ssh(error, cut, self.settings, &self.cx.env.vault.settings().dhcp_item)
    }
}

/// What a command ended with, in one sentence.
fn said(what: &str, command: &str, output: &Output) -> String {
    format!("{what}: '{}' ended with status {}: '{}'", neutralize_to(command, 120), output.status, output.said())
}

fn one_line(content: &[u8]) -> String {
    let text = String::from_utf8_lossy(content);
    neutralize_to(&text.split_whitespace().collect::<Vec<_>>().join(" "), 200)
}

//! Brings one entry file to its place on the DHCP host, and the former one back where the service refuses it.
//!
//! Between the upload and the end of the validation a marker file stands beside the entry. It holds the former file. A
//! process that dies in between leaves it there, and the next attempt knows by it that an equal digest proves nothing yet:
//! the service may never have been restarted (G5).

use sha2::{Digest, Sha256};

use super::link::Link;
use super::{PHASE, Wanted};
use crate::activities::env::ActivityCx;
use crate::clients::ssh::{Sftp, SshError, quote};
use crate::domain::event::Observation;
use crate::domain::failure::{Failure, FailureCode};
use crate::domain::lines::squeezed;
use crate::domain::text::neutralize_to;
use crate::workflows::defs::DhcpOut;

/// The largest former file that is kept; an entry has some 200 bytes.
const FORMER_MAX: usize = 64 * 1024;
/// So many lines of a file are shown; an entry has some five.
const LINES_MAX: usize = 40;
/// First lines of the marker: was there a former file?
const HAD_FILE: &[u8] = b"former file:\n";
const HAD_NONE: &[u8] = b"no former file\n";

/// The file as it was before; `None` where there was none.
pub(super) type Former = Option<Vec<u8>>;

/// What became of an upload.
pub(super) enum Place {
    /// The entry is served already (D6).
    Right,
    /// The new file is in its place.
    Done(Former),
    /// The new file may be in its place: its answer was lost.
    Unsure(Former, Box<Failure>),
    /// Nothing was changed.
    Failed(Failure),
}

/// One run's entry.
pub(super) struct Delivery {
    cx: ActivityCx,
    wanted: Wanted,
    /// On the DHCP host.
    path: String,
    marker: String,
    sha256: String,
}

impl Delivery {
    pub fn new(cx: ActivityCx, link: &Link<'_>, wanted: Wanted) -> Self {
        let (directory, file) = (&link.settings.directory, &wanted.file);
        let path = format!("{directory}/{}", file.name);
        let marker = format!("{directory}/.{}.muster-former", file.name);
        let sha256 = Sha256::digest(&file.content).iter().map(|b| format!("{b:02x}")).collect();
        Delivery { cx, wanted, path, marker, sha256 }
    }

    /// Compares, and uploads where the file differs.
    pub async fn place(&self, link: &Link<'_>) -> Place {
        self.try_to_place(link).await.unwrap_or_else(Place::Failed)
    }

    async fn try_to_place(&self, link: &Link<'_>) -> Result<Place, Failure> {
        let client = link.client;
        let remote = client.sha256(&self.path).await.map_err(|e| link.in_command(&e))?;
        if remote.as_deref() != Some(self.sha256.as_str()) {
            self.compare(link).await?;
            self.prepare(link).await?;
            return self.upload(link, link.sftp().await?).await;
        }
        if client.exists(&self.marker).await.map_err(|e| link.in_command(&e))? {
            self.note("an earlier attempt ended before the service was seen to serve the entry");
            return Ok(Place::Done(self.marked(link, link.sftp().await?).await?.unwrap_or_default()));
        }
        self.note(format!("'{}' on '{}' is right already", self.path, link.server()));
        Ok(Place::Right)
    }

    /// Refuses what would take a MAC, an address or a name from another entry (D9).
    async fn compare(&self, link: &Link<'_>) -> Result<(), Failure> {
        let unclear = link.compare(&self.wanted).await?;
        if let Some(first) = unclear.first() {
            let more = match unclear.len() - 1 {
                0 => String::new(),
                n => format!(" and {n} more"),
            };
            let message = format!(
                "'{}/{}'{more} on '{}' could not be understood, so the entry was compared with what is clear there",
                link.settings.directory,
                neutralize_to(first, 120),
                link.server()
            );
            self.cx.observe(Observation::Warned { phase: PHASE, message });
        }
        Ok(())
    }

    /// The service has the entry, and so many others by the same restart.
    pub async fn served(&self, link: &Link<'_>, others: usize) -> DhcpOut {
        let with = match others {
            0 => String::new(),
            1 => ", for this entry and one other".to_owned(),
            n => format!(", for this entry and {n} others"),
        };
        self.note(format!("restarted the service on '{}'{with}", link.server()));
        if let Err(error) = self.unmark(link).await {
            // The entry is served: that is what counts.
            let message =
                format!("'{}' could not be removed: {error}; the next run restarts the service once more", self.marker);
            self.cx.observe(Observation::Warned { phase: PHASE, message });
        }
        self.out(true)
    }

    /// Takes the marker away: by SFTP, else by a command on the same connection.
    async fn unmark(&self, link: &Link<'_>) -> Result<(), String> {
        let by_sftp = match link.sftp().await {
            Ok(sftp) => sftp.remove(&self.marker).await.map_err(|error| error.to_string()),
            Err(failure) => Err(failure.message),
        };
        let Err(why) = by_sftp else { return Ok(()) };
        match link.client.run(&format!("rm -f -- {}", quote(&self.marker))).await {
            Ok(output) if output.status == 0 => Ok(()),
            // The first error says more.
            _ => Err(why),
        }
    }

    /// All is as it was, nothing is unfinished. A marker that stays costs one restart.
    pub async fn forget_former(&self, link: &Link<'_>) {
        self.unmark(link).await.ok();
    }

    pub fn out(&self, changed: bool) -> DhcpOut {
        DhcpOut { changed, file: self.path.clone(), sha256: self.sha256.clone() }
    }

    pub fn note(&self, text: impl Into<String>) {
        self.cx.note("dhcp", text);
    }

    /// The folder may be there, or not be this user's to make: the upload tells (D8).
    async fn prepare(&self, link: &Link<'_>) -> Result<(), Failure> {
        let command = format!("mkdir -p -- {}", quote(&link.settings.directory));
        let made = link.client.run(&command).await.map_err(|e| link.in_command(&e))?;
        if made.status != 0 {
            self.note(format!("the folder could not be made: '{}'", made.said()));
        }
        Ok(())
    }

    /// What the marker of an earlier attempt holds; `None` where there is none, or half of one.
    async fn marked(&self, link: &Link<'_>, sftp: &Sftp<'_>) -> Result<Option<Former>, Failure> {
        let read = sftp.read(&self.marker, FORMER_MAX + HAD_FILE.len()).await;
        let marker = read.map_err(|e| link.in_transfer(&e))?;
        Ok(marker.and_then(|content| match content.strip_prefix(HAD_FILE) {
            Some(former) => Some(Some(former.to_vec())),
            None => (content == HAD_NONE).then_some(None),
        }))
    }

    /// Keeps the former file in the marker, then puts the new one in its place.
    async fn upload(&self, link: &Link<'_>, sftp: &Sftp<'_>) -> Result<Place, Failure> {
        let in_transfer = |error: SshError| link.in_transfer(&error);
        let former = match self.marked(link, sftp).await? {
            Some(former) => former,
            None => {
                let former = sftp.read(&self.path, FORMER_MAX).await.map_err(in_transfer)?;
                let marker = match &former {
                    Some(content) => [HAD_FILE, content].concat(),
                    None => HAD_NONE.to_vec(),
                };
                sftp.write(&self.marker, &marker).await.map_err(in_transfer)?;
                former
            }
        };
        let content = self.wanted.file.content.as_bytes();
        if let Err(error) = sftp.write(&self.path, content).await {
            if matches!(error, SshError::Transfer { .. }) {
                // Nothing was changed, so nothing is unfinished. The failure is what is told.
                sftp.remove(&self.marker).await.ok();
                return Err(in_transfer(error));
            }
            return Ok(Place::Unsure(former, Box::new(in_transfer(error))));
        }
        link.has_put(&self.wanted.file.name, Some(content));
        let before = former.as_ref().map_or_else(|| "no file".to_owned(), |content| lines(content));
        self.wrote(link, before, lines(content));
        Ok(Place::Done(former))
    }

    /// Puts the former file back in its place; says what was done, or why it could not be.
    pub async fn put_back(&self, link: &Link<'_>, former: &Former) -> Result<&'static str, String> {
        let words = |error: SshError| error.to_string();
        let sftp = link.sftp().await.map_err(|failure| failure.message)?;
        // First of all: a rename that is under way yet finds nothing then.
        sftp.remove_leftover(&self.path).await.ok();
        let done = match former {
            Some(content) => {
                if let Err(error) = sftp.write(&self.path, content).await {
                    // On a full disk there is room for it where the new file is, and nowhere else.
                    sftp.overwrite(&self.path, content).await.map_err(|_| words(error))?;
                }
                "the former file is back"
            }
            None => {
                sftp.remove(&self.path).await.map_err(words)?;
                "the new file is removed"
            }
        };
        link.has_put(&self.wanted.file.name, former.as_deref());
        let after = former.as_ref().map_or_else(|| done.to_owned(), |content| lines(content));
        self.wrote(link, lines(self.wanted.file.content.as_bytes()), after);
        Ok(done)
    }

    /// The failure of a refused entry: what was said, and what became of the former file and the service.
    pub fn refused(&self, link: &Link<'_>, what: &str, back: Result<String, String>) -> Failure {
        let (then, action) = match back {
            Ok(then) => (then, "mend the entry by what the service says, then run the enrollment again".to_owned()),
            Err(fault) => {
                self.note(format!("what was there before could not be brought back: {fault}"));
                (
                    format!("and what was there before could not be brought back: {fault}"),
                    format!(
                        "look at the DHCP service of {} at once: it may serve nobody, or stay down at its next restart; \
                         its entry is '{}'",
                        link.settings.host, self.path
                    ),
                )
            }
        };
        Failure::new(FailureCode::DhcpValidationFailed, PHASE, format!("{what}; {then}"), action).with_evidence(
            format!("dhcp {} {}", link.server(), self.path),
            one_line(self.wanted.file.content.as_bytes()),
        )
    }

    fn wrote(&self, link: &Link<'_>, before: String, after: String) {
        self.cx.wrote("dhcp", link.server(), &self.path, before, after);
    }
}

fn one_line(content: &[u8]) -> String {
    neutralize_to(&squeezed(&String::from_utf8_lossy(content)), 200)
}

/// A file as it is shown line by line.
fn lines(content: &[u8]) -> String {
    let text = String::from_utf8_lossy(content);
    let mut shown: Vec<String> = text.lines().take(LINES_MAX).map(|line| neutralize_to(line, 200) + "\n").collect();
    if text.lines().count() > LINES_MAX {
        shown.push("…\n".to_owned());
    }
    shown.concat()
}

//! Files over SFTP: read whole within a bound, and written so that a reader sees the old one or the new one, never a part.

use std::time::Duration;

use russh::ChannelMsg;
use russh_sftp::client::RawSftpSession;
use russh_sftp::client::error::Error as SftpError;
use russh_sftp::protocol::{FileAttributes, OpenFlags, Packet, StatusCode};

use super::error::SshError;
use super::session::{SshClient, quote};
use crate::clients::trail;
use crate::domain::text::neutralize_to;

/// Servers take at least this in one request.
const CHUNK: usize = 32 * 1024;
/// The permission bits of a mode.
const PERMISSIONS: u32 = 0o7777;

/// An SFTP session over a connection.
pub struct Sftp<'a> {
    client: &'a SshClient,
    session: RawSftpSession,
    /// Of one transfer.
    limit: Duration,
    posix_rename: bool,
    fsync: bool,
}

impl<'a> Sftp<'a> {
    pub(super) async fn open(client: &'a SshClient, limit: Duration) -> Result<Sftp<'a>, SshError> {
        client.in_order("opening SFTP", limit, Self::open_unbounded(client, limit)).await?
    }

    async fn open_unbounded(client: &'a SshClient, limit: Duration) -> Result<Sftp<'a>, SshError> {
        let step = "opening SFTP";
        let cut = |error| client.cut(step, &error);
        let missing = |cause: &str| {
            if client.is_lost() {
                return client.cut(step, &russh::Error::Disconnect);
            }
            SshError::SftpMissing { server: client.server().to_owned(), cause: cause.to_owned() }
        };
        let mut channel = client.handle().channel_open_session().await.map_err(cut)?;
        channel.request_subsystem(true, "sftp").await.map_err(cut)?;
        loop {
            match channel.wait().await {
                Some(ChannelMsg::Success) => break,
                Some(ChannelMsg::Failure) => return Err(missing("it has no subsystem 'sftp'")),
                Some(ChannelMsg::Eof | ChannelMsg::Close) | None => return Err(missing("it closed the channel")),
                Some(_) => {}
            }
        }
        // The deadline is the transfer's; russh-sftp's own, in whole seconds, only must not come before it.
        let config = russh_sftp::client::Config { request_timeout_secs: limit.as_secs() + 5, ..Default::default() };
        let session = RawSftpSession::new_with_config(channel.into_stream(), config);
        let version = session.init().await.map_err(|_| missing("it closed the channel"))?;
        let has = |name: &str| version.extensions.contains_key(name);
        let (posix_rename, fsync) = (has("posix-rename@openssh.com"), has("fsync@openssh.com"));
        Ok(Sftp { client, session, limit, posix_rename, fsync })
    }

    /// A whole file of at most `max` bytes; `None` where there is none.
    pub async fn read(&self, path: &str, max: usize) -> Result<Option<Vec<u8>>, SshError> {
        if let Some(rehearsal) = self.client.rehearsal() {
            rehearsal.read();
            if let Some(imagined) = rehearsal.file(self.client.server(), path) {
                return Ok(imagined);
            }
        }
        let step = format!("reading '{path}'");
        let ended = self.client.in_order(&step, self.limit, self.read_unbounded(path, max, &step)).await.flatten();
        tell("read", path, ended.is_ok());
        ended
    }

    async fn read_unbounded(&self, path: &str, max: usize, step: &str) -> Result<Option<Vec<u8>>, SshError> {
        let handle = match self.session.open(path, OpenFlags::READ, FileAttributes::empty()).await {
            Ok(opened) => opened.handle,
            Err(SftpError::Status(status)) if status.status_code == StatusCode::NoSuchFile => return Ok(None),
            Err(error) => return Err(self.failed(step, &error)),
        };
        let mut content = Vec::new();
        loop {
            match self.session.read(handle.as_str(), content.len() as u64, CHUNK as u32).await {
                // A server that sends nothing and no end would be asked for ever.
                Ok(part) if part.data.is_empty() => break,
                Ok(part) => content.extend_from_slice(&part.data),
                Err(SftpError::Status(status)) if status.status_code == StatusCode::Eof => break,
                Err(error) => return Err(self.failed(step, &error)),
            }
            if content.len() > max {
                self.session.close(handle).await.ok(); // the file's size is what is told
                return Err(SshError::Transfer {
                    step: step.to_owned(),
                    cause: format!("it is larger than {max} bytes"),
                });
            }
        }
        self.session.close(handle).await.map_err(|error| self.failed(step, &error))?;
        Ok(Some(content))
    }

    /// Writes a file: to a temporary name that begins with a dot (DHCP servers leave those out), synced where the server
    /// offers it, then renamed over the old one in one step. An old file's permissions are kept.
    pub async fn write(&self, path: &str, content: &[u8]) -> Result<(), SshError> {
        let step = format!("writing '{path}'");
        let temporary = temporary_name(path);
        if let Some(rehearsal) = self.client.rehearsal() {
            let server = self.client.server();
            rehearsal.wrote_dhcp(server, "sftp_write", &temporary);
            match self.posix_rename {
                true => rehearsal.wrote_dhcp(server, "sftp_rename", path),
                false => {
                    let command = format!("mv -f -- {} {}", quote(&temporary), quote(path));
                    rehearsal.wrote_dhcp(server, "exec", &command);
                }
            }
            rehearsal.put_file(server, path, Some(content.to_vec()));
            return Ok(());
        }
        let written =
            self.client.in_order(&step, self.limit, self.write_unbounded(path, &temporary, content, &step)).await;
        tell("write", path, written.as_ref().is_ok_and(Result::is_ok));
        let written = written?;
        if written.is_err() {
            // The failure is what is told; a leftover under a dot-name harms nobody.
            self.client.in_order("cleaning up", self.limit, self.session.remove(temporary)).await.ok();
        }
        written
    }

    /// Writes over a file in its place: it needs no more room than the file has. Only where [`Self::write`] cannot be had.
    pub async fn overwrite(&self, path: &str, content: &[u8]) -> Result<(), SshError> {
        let step = format!("writing '{path}' in its place");
        let written = self.client.in_order(&step, self.limit, async {
            let handle = self.session.open(path, OpenFlags::WRITE, FileAttributes::empty()).await?.handle;
            for (n, chunk) in content.chunks(CHUNK).enumerate() {
                self.session.write(handle.as_str(), (n * CHUNK) as u64, chunk.to_vec()).await?;
            }
            let attrs = FileAttributes { size: Some(content.len() as u64), ..FileAttributes::empty() };
            self.session.fsetstat(handle.as_str(), attrs).await?;
            self.session.close(handle).await
        });
        let written = written.await;
        tell("overwrite", path, written.as_ref().is_ok_and(Result::is_ok));
        written?.map(drop).map_err(|error| self.failed(&step, &error))
    }

    /// Removes what an upload that was cut off may have left beside the file.
    pub async fn remove_leftover(&self, path: &str) -> Result<bool, SshError> {
        self.remove(&temporary_name(path)).await
    }

    async fn write_unbounded(&self, path: &str, temporary: &str, content: &[u8], step: &str) -> Result<(), SshError> {
        let failed = |error: SftpError| self.failed(step, &error);
        let old_mode = match self.session.stat(path).await {
            Ok(found) => found.attrs.permissions.map(|mode| mode & PERMISSIONS),
            Err(SftpError::Status(_)) => None,
            Err(error) => return Err(failed(error)),
        };
        let handle = self.create(temporary).await.map_err(failed)?;
        let filled = self.fill(&handle, content, old_mode).await;
        let closed = self.session.close(handle).await;
        filled.map_err(failed)?;
        closed.map_err(failed)?;
        self.rename_over(temporary, path, step).await
    }

    /// Makes a new file, never over an old one: a request of an earlier connection that is carried out late would empty
    /// it, or write into it. What is there under the name is a leftover, and removed.
    async fn create(&self, path: &str) -> Result<String, SftpError> {
        let flags = OpenFlags::CREATE | OpenFlags::EXCLUDE | OpenFlags::WRITE;
        let create = || self.session.open(path, flags, FileAttributes::empty());
        // SFTP of version 3 has one status for all: whether it was a leftover is seen by its removal.
        let created = match create().await {
            Err(error @ SftpError::Status(_)) => match self.session.remove(path).await {
                Ok(_) => create().await,
                Err(SftpError::Status(_)) => Err(error),
                Err(lost) => Err(lost),
            },
            created => created,
        };
        created.map(|opened| opened.handle)
    }

    async fn fill(&self, handle: &str, content: &[u8], mode: Option<u32>) -> Result<(), SftpError> {
        for (n, chunk) in content.chunks(CHUNK).enumerate() {
            self.session.write(handle, (n * CHUNK) as u64, chunk.to_vec()).await?;
        }
        if let Some(mode) = mode {
            let attrs = FileAttributes { permissions: Some(mode), ..FileAttributes::empty() };
            // Not allowed on another user's file: then the server's own default stands.
            self.session.fsetstat(handle, attrs).await.ok();
        }
        if self.fsync {
            self.session.fsync(handle).await.ok(); // offered, yet some file systems have none
        }
        Ok(())
    }

    /// SFTP's own rename does not replace a file, and to remove it first would leave a moment without one: so OpenSSH's
    /// extension, or else `mv`.
    async fn rename_over(&self, from: &str, to: &str, step: &str) -> Result<(), SshError> {
        if self.posix_rename {
            let mut names = Vec::new();
            for name in [from, to] {
                names.extend_from_slice(&(name.len() as u32).to_be_bytes());
                names.extend_from_slice(name.as_bytes());
            }
            return match self.session.extended("posix-rename@openssh.com", names).await {
                Ok(Packet::Status(status)) if status.status_code == StatusCode::Ok => Ok(()),
                Ok(Packet::Status(status)) if status.status_code == StatusCode::NoSuchFile => {
                    Err(SshError::Moved { step: step.to_owned() })
                }
                Ok(Packet::Status(status)) => Err(self.failed(step, &SftpError::Status(status))),
                Ok(_) => Err(self.failed(step, &SftpError::UnexpectedPacket)),
                Err(error) => Err(self.failed(step, &error)),
            };
        }
        let moved = self.client.run(&format!("mv -f -- {} {}", quote(from), quote(to))).await?;
        if moved.status == 0 {
            return Ok(());
        }
        if !self.client.exists(from).await? {
            return Err(SshError::Moved { step: step.to_owned() });
        }
        let cause = format!("mv ended with status {}: '{}'", moved.status, moved.said());
        Err(SshError::Transfer { step: step.to_owned(), cause })
    }

    /// Removes a file. Whether there was one.
    pub async fn remove(&self, path: &str) -> Result<bool, SshError> {
        if let Some(rehearsal) = self.client.rehearsal() {
            rehearsal.wrote_dhcp(self.client.server(), "sftp_remove", path);
            rehearsal.put_file(self.client.server(), path, None);
            return Ok(true);
        }
        let step = format!("removing '{path}'");
        let removed = self.client.in_order(&step, self.limit, self.session.remove(path)).await;
        tell("remove", path, removed.as_ref().is_ok_and(Result::is_ok));
        match removed? {
            Ok(_) => Ok(true),
            Err(SftpError::Status(status)) if status.status_code == StatusCode::NoSuchFile => Ok(false),
            Err(error) => Err(self.failed(&step, &error)),
        }
    }

    fn failed(&self, step: &str, error: &SftpError) -> SshError {
        let cause = match error {
            // The server's own word for it, and the one that the library gives to whoever waits when all is over.
            SftpError::Status(status)
                if matches!(status.status_code, StatusCode::ConnectionLost | StatusCode::NoConnection) =>
            {
                return self.client.cut(step, &russh::Error::Disconnect);
            }
            SftpError::Status(status) => {
                let said = neutralize_to(&status.error_message, 200);
                let code = status.status_code.to_string();
                if said.is_empty() || said == code { code } else { format!("{code} ('{said}')") }
            }
            _ if self.client.is_lost() => return self.client.cut(step, &russh::Error::Disconnect),
            other => neutralize_to(&other.to_string(), 200),
        };
        SshError::Transfer { step: step.to_owned(), cause }
    }
}

impl Drop for Sftp<'_> {
    fn drop(&mut self) {
        self.session.close_session().ok(); // the connection may be gone already
    }
}

/// For the story of the run.
fn tell(what: &str, path: &str, done: bool) {
    trail::tell("sftp", &format!("{what} '{}'", neutralize_to(path, 200)), if done { "done" } else { "failed" });
}

/// `/a/b` → `/a/.b.muster-tmp`
fn temporary_name(path: &str) -> String {
    match path.rsplit_once('/') {
        Some((folder, name)) => format!("{folder}/.{name}.muster-tmp"),
        None => format!(".{path}.muster-tmp"),
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_temporary_name_is_beside_its_file_and_begins_with_a_dot() {
        assert_eq!(super::temporary_name("/etc/kea/hosts.d/a.json"), "/etc/kea/hosts.d/.a.json.muster-tmp");
        assert_eq!(super::temporary_name("a.json"), ".a.json.muster-tmp");
    }
}

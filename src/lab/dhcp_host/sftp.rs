//! SFTP on the lab's DHCP host, over files in memory.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use russh_sftp::protocol::{Attrs, Data, FileAttributes, Handle, OpenFlags, Packet, Status, StatusCode, Version};
use russh_sftp::server::{Handler, StatusReply};
use tokio_util::sync::CancellationToken;

use super::{Met, Shared};

const POSIX_RENAME: &str = "posix-rename@openssh.com";
const FSYNC: &str = "fsync@openssh.com";
/// The largest file that is taken.
const FILE_MAX: usize = 8 * 1024 * 1024;

/// One SFTP session.
pub(super) struct Files {
    shared: Arc<Shared>,
    cut: CancellationToken,
    open: HashMap<String, String>,
    next: u64,
}

impl Files {
    pub fn new(shared: Arc<Shared>, cut: CancellationToken) -> Self {
        Files { shared, cut, open: HashMap::new(), next: 0 }
    }

    /// Asks the fault rules; `Err` is what the client gets instead. `Ok(false)`: act, then cut or hang.
    async fn step(&self, method: &'static str, path: &str, write: bool) -> Result<After, StatusReply> {
        match self.shared.step(method, path, write).await {
            Met::Go => Ok(After::Answer),
            Met::Answer { text, after_effect, .. } => {
                let refusal = StatusCode::Failure.with_message(if text.is_empty() { "Failure".into() } else { text });
                if after_effect { Ok(After::Refuse(refusal)) } else { Err(refusal) }
            }
            Met::Cut { after_effect: true } => Ok(After::Cut),
            Met::Hang { after_effect: true } => Ok(After::Hang),
            Met::Cut { .. } => self.end(After::Cut, ()).await.map(|()| After::Answer),
            Met::Hang { .. } => self.end(After::Hang, ()).await.map(|()| After::Answer),
        }
    }

    /// Answers, or spoils the answer as the fault rules want it.
    async fn end<T>(&self, after: After, answer: T) -> Result<T, StatusReply> {
        match after {
            After::Answer => Ok(answer),
            After::Refuse(refusal) => Err(refusal),
            After::Cut | After::Hang => {
                if matches!(after, After::Cut) {
                    self.cut.cancel();
                }
                self.cut.cancelled().await;
                Err(StatusCode::ConnectionLost.into())
            }
        }
    }

    fn path_of(&self, handle: &str) -> Result<&String, StatusReply> {
        self.open.get(handle).ok_or_else(|| StatusCode::BadMessage.into())
    }

    async fn rename_to(&self, id: u32, from: &str, to: &str) -> Result<Status, StatusReply> {
        let after = self.step("sftp_rename", to, true).await?;
        let renamed = {
            let mut service = self.shared.service();
            service.has_folder_for(to) && service.rename(from, to)
        };
        if !renamed {
            return Err(StatusCode::NoSuchFile.into());
        }
        self.end(after, done(id)).await
    }
}

/// How a request ends that was carried out.
enum After {
    Answer,
    Refuse(StatusReply),
    Cut,
    Hang,
}

impl Handler for Files {
    type Error = StatusReply;

    fn unimplemented(&self) -> StatusReply {
        StatusCode::OpUnsupported.into()
    }

    async fn init(&mut self, _: u32, _: HashMap<String, String>) -> Result<Version, StatusReply> {
        let mut version = Version::new();
        version.extensions.insert(FSYNC.into(), "1".into());
        if self.shared.posix_rename.load(Ordering::Relaxed) {
            version.extensions.insert(POSIX_RENAME.into(), "1".into());
        }
        Ok(version)
    }

    async fn open(
        &mut self,
        id: u32,
        path: String,
        flags: OpenFlags,
        _: FileAttributes,
    ) -> Result<Handle, StatusReply> {
        let writes = flags.contains(OpenFlags::WRITE);
        let after = self.step(if writes { "sftp_write" } else { "sftp_read" }, &path, writes).await?;
        {
            let mut service = self.shared.service();
            let exists = service.get(&path).is_some();
            let creates = flags.contains(OpenFlags::CREATE) && service.has_folder_for(&path);
            if !exists && !creates {
                return Err(StatusCode::NoSuchFile.into());
            }
            if exists && flags.contains(OpenFlags::CREATE) && flags.contains(OpenFlags::EXCLUDE) {
                return Err(StatusCode::Failure.into());
            }
            if writes && (!exists || flags.contains(OpenFlags::TRUNCATE)) {
                service.put(&path, Vec::new());
            }
        }
        self.next += 1;
        let handle = self.next.to_string();
        self.open.insert(handle.clone(), path);
        self.end(after, Handle { id, handle }).await
    }

    async fn write(&mut self, id: u32, handle: String, offset: u64, data: Vec<u8>) -> Result<Status, StatusReply> {
        let path = self.path_of(&handle)?;
        let mut service = self.shared.service();
        let mut content = service.get(path).cloned().ok_or(StatusCode::NoSuchFile)?;
        let end = usize::try_from(offset).unwrap_or(usize::MAX).saturating_add(data.len());
        if end > FILE_MAX {
            return Err(StatusCode::Failure.with_message("No space left on device"));
        }
        content.resize(content.len().max(end), 0);
        content[end - data.len()..end].copy_from_slice(&data);
        service.put(path, content);
        Ok(done(id))
    }

    async fn read(&mut self, id: u32, handle: String, offset: u64, len: u32) -> Result<Data, StatusReply> {
        let path = self.path_of(&handle)?;
        let service = self.shared.service();
        let content = service.get(path).ok_or(StatusCode::NoSuchFile)?;
        let from = usize::try_from(offset).unwrap_or(usize::MAX);
        if from >= content.len() {
            return Err(StatusCode::Eof.into());
        }
        let until = from.saturating_add(len as usize).min(content.len());
        Ok(Data { id, data: content[from..until].to_vec() })
    }

    async fn close(&mut self, id: u32, handle: String) -> Result<Status, StatusReply> {
        self.open.remove(&handle).map(|_| done(id)).ok_or_else(|| StatusCode::BadMessage.into())
    }

    async fn stat(&mut self, id: u32, path: String) -> Result<Attrs, StatusReply> {
        let size = self.shared.service().get(&path).map(|content| content.len() as u64);
        let size = size.ok_or(StatusCode::NoSuchFile)?;
        let attrs = FileAttributes { size: Some(size), permissions: Some(0o100_644), ..FileAttributes::empty() };
        Ok(Attrs { id, attrs })
    }

    async fn fsetstat(&mut self, id: u32, handle: String, _: FileAttributes) -> Result<Status, StatusReply> {
        self.path_of(&handle)?;
        Ok(done(id))
    }

    async fn remove(&mut self, id: u32, path: String) -> Result<Status, StatusReply> {
        let after = self.step("sftp_remove", &path, true).await?;
        if !self.shared.service().remove(&path) {
            return Err(StatusCode::NoSuchFile.into());
        }
        self.end(after, done(id)).await
    }

    /// As OpenSSH: a file that is there is not replaced.
    async fn rename(&mut self, id: u32, from: String, to: String) -> Result<Status, StatusReply> {
        if self.shared.service().get(&to).is_some() {
            return Err(StatusCode::Failure.into());
        }
        self.rename_to(id, &from, &to).await
    }

    async fn extended(&mut self, id: u32, request: String, data: Vec<u8>) -> Result<Packet, StatusReply> {
        match request.as_str() {
            FSYNC => Ok(Packet::Status(done(id))),
            POSIX_RENAME if self.shared.posix_rename.load(Ordering::Relaxed) => {
                let (from, rest) = text(&data).ok_or(StatusCode::BadMessage)?;
                let (to, _) = text(rest).ok_or(StatusCode::BadMessage)?;
                Ok(Packet::Status(self.rename_to(id, from, to).await?))
            }
            _ => Err(StatusCode::OpUnsupported.into()),
        }
    }
}

/// A text with its length before it, and what follows.
fn text(data: &[u8]) -> Option<(&str, &[u8])> {
    let (length, rest) = data.split_at_checked(4)?;
    let length = u32::from_be_bytes(length.try_into().ok()?) as usize;
    let (text, rest) = rest.split_at_checked(length)?;
    Some((std::str::from_utf8(text).ok()?, rest))
}

fn done(id: u32) -> Status {
    Status { id, status_code: StatusCode::Ok, error_message: "Success".into(), language_tag: "en".into() }
}

//! One SSH connection to the lab's DHCP host: login, commands, and the door to SFTP.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use russh::server::{self, Auth, Msg, Session, VerifiedPublicKey};
use russh::{Channel, ChannelId};
use tokio_util::sync::CancellationToken;

use super::service::{Ended, Service};
use super::sftp::Files;
use super::{Met, RESTART, Shared, USER};

/// Lab time that a restart takes: stop, start, listen.
const RESTART_TAKES: Duration = Duration::from_millis(1500);

/// The handler of one connection.
pub(super) struct Connection {
    shared: Arc<Shared>,
    cut: CancellationToken,
    channels: HashMap<ChannelId, Channel<Msg>>,
}

impl Connection {
    pub fn new(shared: Arc<Shared>, cut: CancellationToken) -> Self {
        Connection { shared, cut, channels: HashMap::new() }
    }
}

impl server::Handler for Connection {
    type Error = russh::Error;

    async fn auth_publickey(&mut self, user: &str, key: VerifiedPublicKey<'_>) -> Result<Auth, russh::Error> {
        match self.shared.step("login", user, false).await {
            Met::Go => {}
            Met::Answer { .. } => return Ok(Auth::reject()),
            Met::Cut { .. } => {
                self.cut.cancel();
                return Err(russh::Error::Disconnect);
            }
            Met::Hang { .. } => {
                self.cut.cancelled().await;
                return Err(russh::Error::Disconnect);
            }
        }
        let known = user == USER && key.public_key.key_data() == self.shared.client_key.key_data();
        Ok(if known { Auth::Accept } else { Auth::reject() })
    }

    async fn channel_open_session(
        &mut self,
        channel: Channel<Msg>,
        reply: server::ChannelOpenHandle,
        _session: &mut Session,
    ) -> Result<(), russh::Error> {
        self.channels.insert(channel.id(), channel);
        reply.accept().await;
        Ok(())
    }

    async fn exec_request(&mut self, id: ChannelId, command: &[u8], session: &mut Session) -> Result<(), russh::Error> {
        session.channel_success(id)?;
        let command = String::from_utf8_lossy(command).into_owned();
        let (shared, cut, handle) = (Arc::clone(&self.shared), self.cut.clone(), session.handle());
        // Beside the session, so that a command that hangs holds up nothing else on the connection.
        tokio::spawn(async move {
            let ended = tokio::select! {
                () = cut.cancelled() => return,
                ended = run(&shared, &command, &cut) => ended,
            };
            // The client may be gone: then nobody is left to be told.
            handle.data(id, ended.stdout).await.ok();
            handle.extended_data(id, 1, ended.stderr).await.ok();
            handle.exit_status_request(id, ended.status).await.ok();
            handle.eof(id).await.ok();
            handle.close(id).await.ok();
        });
        Ok(())
    }

    async fn subsystem_request(
        &mut self,
        id: ChannelId,
        name: &str,
        session: &mut Session,
    ) -> Result<(), russh::Error> {
        match (name, self.channels.remove(&id)) {
            ("sftp", Some(channel)) => {
                session.channel_success(id)?;
                let files = Files::new(Arc::clone(&self.shared), self.cut.clone());
                russh_sftp::server::run(channel.into_stream(), files).await;
            }
            _ => session.channel_failure(id)?,
        }
        Ok(())
    }
}

/// Runs a command, as the fault rules let it.
async fn run(shared: &Shared, command: &str, cut: &CancellationToken) -> Ended {
    let met = shared.step("exec", command, Service::is_write(command)).await;
    let (ended, carried_out) = match met {
        Met::Go => return carry_out(shared, command).await,
        Met::Answer { status, text, after_effect } => {
            (Some(Ended { status: status.into(), stdout: String::new(), stderr: text + "\n" }), after_effect)
        }
        Met::Cut { after_effect } => {
            if after_effect {
                carry_out(shared, command).await;
            }
            cut.cancel();
            (None, false)
        }
        Met::Hang { after_effect } => (None, after_effect),
    };
    if carried_out {
        carry_out(shared, command).await;
    } else if ended.is_some() && command == RESTART {
        // A restart that fails has stopped the service already.
        shared.service().stop();
    }
    match ended {
        Some(ended) => ended,
        None => std::future::pending().await,
    }
}

async fn carry_out(shared: &Shared, command: &str) -> Ended {
    if command == RESTART {
        shared.world.sleep(RESTART_TAKES).await;
    }
    shared.service().run(command)
}

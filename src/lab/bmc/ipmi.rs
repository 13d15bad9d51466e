//! IPMI over LAN of a lab BMC: RMCP+ with the cipher suites 17 and 3, on UDP at the BMC's own address.
//!
//! It knows the accounts, the passwords and the switch "IPMI over LAN" of the world, so that what was configured over
//! Redfish decides who gets in here.

mod cipher;
mod commands;
mod frame;
mod login;

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::Arc;

use tokio::net::UdpSocket;
use tokio::task::JoinHandle;

use self::frame::{Frame, payload};
use self::login::Table;
use super::settings::Settings;
use super::tree::{Tree, tree};
use crate::lab::machine::{Machine, Quirk};
use crate::lab::world::World;

/// Levels of a session, as the protocol numbers them.
pub(super) const USER: u8 = 2;
pub(super) const OPERATOR: u8 = 3;
pub(super) const ADMINISTRATOR: u8 = 4;

/// Serves a machine's BMC until the handle is aborted.
pub fn serve(world: &World, device: &str, socket: UdpSocket) -> JoinHandle<()> {
    let (world, device) = (world.clone(), device.to_owned());
    tokio::spawn(async move {
        let socket = Arc::new(socket);
        let mut responder = Responder { world, device, table: Table::default(), met: BTreeSet::new() };
        let mut buffer = [0; 1024];
        loop {
            // A refusal that an answer of before has met is told here: it is nobody's question.
            let Ok((length, from)) = socket.recv_from(&mut buffer).await else { continue };
            if let Some(answer) = responder.answer(&buffer[..length], from) {
                socket.send_to(&answer, from).await.ok();
            }
        }
    })
}

struct Responder {
    world: World,
    device: String,
    table: Table,
    /// Who has sent something already, for a BMC that drops the first packet.
    met: BTreeSet<SocketAddr>,
}

impl Responder {
    fn answer(&mut self, datagram: &[u8], from: SocketAddr) -> Option<Vec<u8>> {
        let device = self.device.clone();
        let machine = self.world.with_machine(&device, |machine, now| {
            let there = !machine.bmc_is_away(now) && Settings::at(machine, now).ipmi_over_lan;
            (there && !machine.has(Quirk::IpmiSilent)).then(|| machine.clone())
        })??;
        if machine.has(Quirk::IpmiDropsFirst) && self.met.insert(from) {
            return None;
        }
        let answer = match frame::read(datagram)? {
            Frame::Outside(message) => commands::outside(&machine, message).map(|message| frame::outside(&message)),
            Frame::Plus(packet) if packet.sealed => {
                let table = &mut self.table;
                let held = table.active(packet.session)?;
                let message = held.open(&packet)?;
                let told = commands::inside(&machine, held, &message)?;
                let sealed = held.seal(&told.message);
                if told.ends {
                    self.note("close session");
                    self.table.forget(packet.session);
                }
                Some(sealed)
            }
            Frame::Plus(packet) => {
                let (kind, answer) = match packet.kind {
                    payload::OPEN => (payload::OPENED, self.table.open(&machine, packet.payload)),
                    payload::RAKP1 => (payload::RAKP2, self.table.challenge(&machine, packet.payload)),
                    payload::RAKP3 => {
                        let (answer, outcome) = self.table.prove(packet.payload)?;
                        self.keep(outcome);
                        (payload::RAKP4, answer)
                    }
                    _ => return None,
                };
                // A console that gives up gets no answer, and its session is gone all the same.
                answer.map(|answer| frame::plain(kind, &answer))
            }
        };
        let open = self.table.open_sessions();
        self.world.with_machine(&device, |machine, _| machine.bmc.ipmi_sessions = open);
        answer
    }

    /// A login that ended one way or the other goes into the ledger; a wrong one counts against its user.
    fn keep(&self, outcome: login::Outcome) {
        match outcome {
            login::Outcome::Unheard => {}
            login::Outcome::In => self.note("open session"),
            login::Outcome::Wrong(user) => {
                self.note("wrong password");
                self.world.with_machine(&self.device, |machine, _| {
                    let mut settings = Settings::of(machine);
                    settings.logins.entry(user).or_default().wrong_ever += 1;
                    settings.keep(machine);
                });
            }
        }
    }

    fn note(&self, what: &str) {
        use crate::lab::ledger::{Note, System};
        self.world.note(Note {
            system: System::Bmc,
            method: "IPMI".to_owned(),
            path: what.to_owned(),
            host: Some(self.device.clone()),
            write: false,
            status: None,
            body: None,
            injected: false,
        });
    }
}

/// The level that a user may have over LAN; `None`: there is no such user, or IPMI is not for it.
fn level(machine: &Machine, name: &str) -> Option<u8> {
    let settings = Settings::of(machine);
    let (number, user) = settings.users.iter().find(|(_, user)| user.name == name && user.enabled)?;
    let level = vendor(machine).ipmi_level(machine, *number, user)?;
    Some(if machine.has(Quirk::IpmiUserLevelOnly) { level.min(USER) } else { level })
}

fn vendor(machine: &Machine) -> &'static dyn Tree {
    tree(machine.bmc.vendor)
}

/// The level of a Redfish role.
pub(super) fn level_of_role(role: &str) -> Option<u8> {
    match role {
        "Administrator" => Some(ADMINISTRATOR),
        "Operator" => Some(OPERATOR),
        "ReadOnly" => Some(USER),
        _ => None,
    }
}

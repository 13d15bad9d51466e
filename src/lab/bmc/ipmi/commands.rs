//! The commands that a lab BMC knows over IPMI.

use super::frame::{Question, number, question};
use super::login::Held;
use super::{ADMINISTRATOR, OPERATOR, USER};
use crate::lab::machine::{Machine, Quirk};

const CHASSIS: u8 = 0x00;
const APP: u8 = 0x06;

/// Completion codes.
const UNKNOWN_COMMAND: u8 = 0xc1;
const UNKNOWN_FIELD: u8 = 0xcc;
const TOO_HIGH: u8 = 0x81;
const TOO_SHORT: u8 = 0xc7;

/// An answer in a session.
pub(super) struct Told {
    pub message: Vec<u8>,
    /// The session ends with it.
    pub ends: bool,
}

/// What is asked without a session: what the channel takes.
pub(super) fn outside(machine: &Machine, message: &[u8]) -> Option<Vec<u8>> {
    let asked = question(message)?;
    match (asked.function, asked.command) {
        (APP, 0x38) => Some(channel(machine, &asked)),
        (APP, 0x54) => Some(suites(machine, &asked)),
        (APP, _) => Some(asked.answer(0xd4, &[])),
        _ => None,
    }
}

pub(super) fn inside(machine: &Machine, held: &mut Held, message: &[u8]) -> Option<Told> {
    let asked = question(message)?;
    let told = |message| Some(Told { message, ends: false });
    match (asked.function, asked.command) {
        (APP, 0x01) => told(asked.answer(0, &device_id(machine))),
        (APP, 0x38) => told(channel(machine, &asked)),
        (APP, 0x54) => told(suites(machine, &asked)),
        (APP, 0x3b) => {
            let wanted = asked.data.first().map(|byte| byte & 0x0f);
            told(match wanted {
                None => asked.answer(TOO_SHORT, &[]),
                Some(0) => asked.answer(0, &[held.level]),
                Some(level @ (USER | OPERATOR | ADMINISTRATOR)) if level <= held.highest => {
                    held.level = level;
                    asked.answer(0, &[level])
                }
                Some(USER | OPERATOR | ADMINISTRATOR) => asked.answer(TOO_HIGH, &[]),
                Some(_) => asked.answer(UNKNOWN_FIELD, &[]),
            })
        }
        (APP, 0x3c) => {
            let ends = number(asked.data, 0).is_some_and(|managed| held.is(managed));
            // 0x87: no such session.
            Some(Told { message: asked.answer(if ends { 0 } else { 0x87 }, &[]), ends })
        }
        (CHASSIS, 0x01) => told(asked.answer(0, &[u8::from(machine.power.on), 0, 0])),
        _ => told(asked.answer(UNKNOWN_COMMAND, &[])),
    }
}

fn device_id(machine: &Machine) -> [u8; 15] {
    let mut numbers = machine.bmc.firmware.split(|c: char| !c.is_ascii_digit()).filter_map(|part| part.parse().ok());
    let (major, minor): (u8, u8) = (numbers.next().unwrap_or(1) & 0x7f, numbers.next().unwrap_or(0) % 100);
    let decimal = minor / 10 * 16 + minor % 10;
    [0x20, 1, major, decimal, 2, 0xbf, 0, 0, 0, 0, 0, 0, 0, 0, 0]
}

/// Authentication of the channel: none of IPMI 1.5 but the null session, and IPMI 2.0.
fn channel(machine: &Machine, asked: &Question<'_>) -> Vec<u8> {
    let [channel, _] = asked.data else { return asked.answer(TOO_SHORT, &[]) };
    if machine.has(Quirk::IpmiOldOnly) {
        // Firmware of before IPMI 2.0 does not know the bit that asks for it.
        let old = [1, 0x04, 0x04, 0, 0, 0, 0, 0];
        return if channel & 0x80 != 0 { asked.answer(UNKNOWN_FIELD, &[]) } else { asked.answer(0, &old) };
    }
    // Bit 5 of the status: it has a key of its own.
    let status = if machine.has(Quirk::IpmiBmcKey) { 0x24 } else { 0x04 };
    asked.answer(0, &[1, 0x80, status, 0x02, 0, 0, 0, 0])
}

/// The cipher suites, as records in one answer.
fn suites(machine: &Machine, asked: &Question<'_>) -> Vec<u8> {
    let Some(index) = asked.data.get(2) else { return asked.answer(TOO_SHORT, &[]) };
    let mut out = vec![1];
    if index & 0x3f == 0 {
        out.extend([0xc0, 3, 0x01, 0x41, 0x81]);
        if !machine.has(Quirk::IpmiOnlySuite3) {
            out.extend([0xc0, 17, 0x03, 0x44, 0x81]);
        }
    }
    asked.answer(0, &out)
}

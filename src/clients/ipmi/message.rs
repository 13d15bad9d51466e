//! IPMI messages: a question to the BMC, and the answer to it.

use super::packet::Broken;

/// Address of the BMC and of a console in software.
const BMC: u8 = 0x20;
const CONSOLE: u8 = 0x81;

/// Commands of the network function `App` that are asked here.
pub(super) const APP: u8 = 0x06;
pub(super) const GET_DEVICE_ID: u8 = 0x01;
pub(super) const GET_CHANNEL_AUTHENTICATION: u8 = 0x38;
pub(super) const SET_SESSION_PRIVILEGE: u8 = 0x3b;
pub(super) const CLOSE_SESSION: u8 = 0x3c;

/// An answer to a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Answer {
    /// 0: it was done.
    pub completion: u8,
    pub data: Vec<u8>,
}

/// A question of the function `App`. `number` (six bits) comes back in its answer.
pub(super) fn question(command: u8, number: u8, data: &[u8]) -> Vec<u8> {
    let head = [BMC, APP << 2];
    let mut tail = vec![CONSOLE, number << 2, command];
    tail.extend(data);
    let (first, second) = (checksum(&head), checksum(&tail));
    [&head[..], &[first], &tail, &[second]].concat()
}

/// The answer to a question; an error where it is none, or none to this question.
pub(super) fn answer(message: &[u8], command: u8, number: u8) -> Result<Answer, Broken> {
    let (head, tail) = message.split_at_checked(3).ok_or("the message is too short")?;
    if tail.len() < 5 {
        return Err("the message is too short");
    }
    // All bytes and their checksum come to nothing.
    if checksum(head) != 0 || checksum(tail) != 0 {
        return Err("a checksum of the message is wrong");
    }
    if head[1] >> 2 != APP | 1 || tail[2] != command {
        return Err("the message answers another command");
    }
    if tail[1] >> 2 != number & 0x3f {
        return Err("the message answers another question");
    }
    Ok(Answer { completion: tail[3], data: tail[4..tail.len() - 1].to_vec() })
}

fn checksum(bytes: &[u8]) -> u8 {
    bytes.iter().fold(0u8, |sum, byte| sum.wrapping_add(*byte)).wrapping_neg()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn told(command: u8, number: u8, completion: u8, data: &[u8]) -> Vec<u8> {
        let head = [CONSOLE, (APP | 1) << 2];
        let tail = [&[BMC, number << 2, command, completion], data].concat();
        [&head[..], &[checksum(&head)], &tail, &[checksum(&tail)]].concat()
    }

    #[test]
    fn the_known_question_for_a_device_id_is_made() {
        assert_eq!(question(GET_DEVICE_ID, 1, &[]), [0x20, 0x18, 0xc8, 0x81, 0x04, 0x01, 0x7a]);
    }

    #[test]
    fn only_the_answer_to_the_question_is_taken() {
        let right = told(GET_DEVICE_ID, 5, 0, b"data");
        assert_eq!(answer(&right, GET_DEVICE_ID, 5).unwrap(), Answer { completion: 0, data: b"data".to_vec() });
        assert!(answer(&right, GET_DEVICE_ID, 6).is_err());
        assert!(answer(&right, CLOSE_SESSION, 5).is_err());
        for at in 0..right.len() {
            let mut spoilt = right.clone();
            spoilt[at] ^= 0x10;
            assert!(answer(&spoilt, GET_DEVICE_ID, 5).is_err(), "{at}");
            assert!(answer(&right[..at], GET_DEVICE_ID, 5).is_err(), "{at}");
        }
    }

    proptest! {
        #[test]
        fn no_message_makes_the_reader_panic(bytes in proptest::collection::vec(any::<u8>(), 0..40), number: u8) {
            let _ = answer(&bytes, GET_DEVICE_ID, number);
        }
    }
}

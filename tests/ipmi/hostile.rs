//! Answers that no BMC should give: cut, spoilt, foreign, endless. The client ends each with an error of its own.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use muster::clients::ipmi::{IpmiError, Patience, Privilege, prove};
use muster::lab::machine::Vendor;
use tokio::net::UdpSocket;
use tokio::task::JoinHandle;

use super::Rig;

/// Stands between a console and a BMC, and makes something else of each answer.
pub async fn relay(
    to: SocketAddr,
    at: &str,
    mut answer: impl FnMut(Vec<u8>) -> Vec<Vec<u8>> + Send + 'static,
) -> (SocketAddr, JoinHandle<()>) {
    let front = Arc::new(UdpSocket::bind(at).await.unwrap());
    let address = front.local_addr().unwrap();
    let task = tokio::spawn(async move {
        let back = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let (mut asked, mut told) = ([0; 2048], [0; 2048]);
        let mut console = None;
        loop {
            tokio::select! {
                heard = front.recv_from(&mut asked) => {
                    let Ok((length, from)) = heard else { continue };
                    console = Some(from);
                    back.send_to(&asked[..length], to).await.unwrap();
                }
                heard = back.recv_from(&mut told) => {
                    let (Ok((length, _)), Some(console)) = (heard, console) else { continue };
                    for datagram in answer(told[..length].to_vec()) {
                        front.send_to(&datagram, console).await.ok();
                    }
                }
            }
        }
    });
    (address, task)
}

const QUICK: Patience =
    Patience { first: Duration::from_millis(4), deadline: Duration::from_millis(400), sessions: Duration::ZERO };

/// A small generator: each seed spoils otherwise.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, below: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % below.max(1)
    }
}

/// Cut at every length, with bytes changed, in the place of the right one or before it.
#[tokio::test]
async fn spoilt_answers_end_with_an_error_or_are_passed_over_and_never_panic() {
    let rig = Rig::start(Vendor::Supermicro, &[]).await;
    let login = rig.admin();
    let (mut proven, mut refused) = (0, 0);
    for seed in 0..120u64 {
        let mut dice = Dice(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) + 1);
        let (at, instead) = (dice.roll(7) as u32, seed % 2 == 0);
        let mut heard = 0;
        let (front, relay) = relay(rig.to, "127.0.0.1:0", move |answer| {
            heard += 1;
            if heard <= at {
                return vec![answer];
            }
            let mut spoilt = answer.clone();
            match dice.roll(4) {
                0 => spoilt.truncate(dice.roll(answer.len())),
                1 => {
                    let place = dice.roll(spoilt.len());
                    spoilt[place] ^= 1 << dice.roll(8);
                }
                2 => {
                    for _ in 0..8 {
                        let place = dice.roll(spoilt.len());
                        spoilt[place] = dice.roll(256) as u8;
                    }
                }
                _ => spoilt.extend((0..dice.roll(900)).map(|n| n as u8)),
            }
            if instead { vec![spoilt] } else { vec![spoilt, answer] }
        })
        .await;
        match prove(front, &login, Privilege::Administrator, &QUICK).await {
            Ok(_) => proven += 1,
            Err(_) => refused += 1,
        }
        relay.abort();
    }
    assert!(proven > 20 && refused > 20, "{proven} were proven, {refused} refused");
}

/// Whoever answers without knowing the password gets no proof out of it.
#[tokio::test]
async fn a_bmc_that_does_not_know_the_password_is_never_taken_for_one_that_does() {
    let rig = Rig::start(Vendor::Lenovo, &[]).await;
    let login = super::login(&rig.admin().username, "another-password");
    let error = prove(rig.to, &login, Privilege::Administrator, &QUICK).await.unwrap_err();
    assert!(matches!(error, IpmiError::WrongPassword { .. }), "{error}");
}

/// An endless stream of rubbish takes no longer than the deadline.
#[tokio::test]
async fn a_flood_ends_with_the_deadline() {
    let flood = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let to = flood.local_addr().unwrap();
    let task = tokio::spawn(async move {
        let mut buffer = [0; 512];
        let (_, from) = flood.recv_from(&mut buffer).await.unwrap();
        loop {
            for length in 0..64 {
                flood.send_to(&buffer[..length], from).await.ok();
            }
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    });
    let began = Instant::now();
    let login = super::login("ADMIN", "x");
    let error = prove(to, &login, Privilege::User, &QUICK).await.unwrap_err();
    assert!(matches!(error, IpmiError::Unusable { .. }), "{error}");
    assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
    task.abort();
}

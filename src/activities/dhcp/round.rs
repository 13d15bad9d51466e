//! Serves the entries of several runs over one connection: each is compared and uploaded, then all share test, restart and
//! validation. What is refused together is tried one by one, so that a bad entry fails alone (D9, D10).

use tokio::sync::oneshot;

use super::connect;
use super::delivery::{Delivery, Former};
use super::desk::{Job, Outcome};
use super::link::{Link, Refused};
use crate::activities::env::ActivityCx;
use crate::config::settings::DhcpSettings;

/// An entry that was handed in.
struct Entrant {
    delivery: Delivery,
    answer: oneshot::Sender<Outcome>,
}

/// An entry that is in its place, and not served yet.
struct Placed {
    entrant: Entrant,
    former: Former,
}

impl Entrant {
    fn tell(self, outcome: Outcome) {
        // A run that has gone meanwhile finds its entry as it is.
        self.answer.send(outcome).ok();
    }

    /// Compares and uploads; `None` where nothing is left to be done.
    async fn place(self, link: &Link<'_>) -> Option<Placed> {
        match self.delivery.place(link).await {
            Ok(Some(former)) => return Some(Placed { entrant: self, former }),
            Ok(None) => {
                let out = self.delivery.out(false);
                self.tell(Ok(out));
            }
            Err(failure) => self.tell(Err(failure)),
        }
        None
    }
}

impl Placed {
    async fn served(self, link: &Link<'_>, others: usize) {
        let out = self.entrant.delivery.served(link, others).await;
        self.entrant.tell(Ok(out));
    }

    /// Puts the former file back, and restarts the service where it was restarted. The failure says both.
    async fn back(self, link: &Link<'_>, what: &str, restart: bool) {
        let delivery = &self.entrant.delivery;
        let back = match delivery.put_back(link, &self.former).await {
            Ok(file) if restart => match link.start_again().await {
                Ok(()) => Ok(format!("{file}, and the service runs again")),
                Err(why) => Err(format!("{file}, {why}")),
            },
            Ok(file) => Ok(format!("{file}, and the service was not restarted")),
            Err(why) => Err(why),
        };
        if back.is_ok() {
            delivery.forget_former(link).await;
        }
        let failure = delivery.refused(link, what, back);
        self.entrant.tell(Err(failure));
    }
}

/// Serves all of them and answers each. `cx` is of the run that has the turn.
pub(super) async fn serve(cx: &ActivityCx, settings: &DhcpSettings, jobs: Vec<Job>) {
    if jobs.is_empty() {
        return;
    }
    let client = match connect(cx, settings).await {
        Ok(client) => client,
        Err(failure) => {
            // Whoever has gone meanwhile needs no answer.
            jobs.into_iter().for_each(|job| drop(job.answer.send(Err(failure.clone()))));
            return;
        }
    };
    {
        let link = Link::new(&client, settings, &cx.env.vault.settings().dhcp_item);
        let mut placed = Vec::new();
        for Job { cx, file, answer } in jobs {
            placed.extend(Entrant { delivery: Delivery::new(cx, &link, file), answer }.place(&link).await);
        }
        together(&link, placed).await;
    }
    client.close().await;
}

/// One test and one restart for all.
async fn together(link: &Link<'_>, placed: Vec<Placed>) {
    if placed.is_empty() {
        return;
    }
    match link.test().await {
        Ok(()) => start(link, placed).await,
        Err(Refused::Unknown(failure)) => placed.into_iter().for_each(|p| p.entrant.tell(Err((*failure).clone()))),
        Err(Refused::Said(what)) => {
            let Some(entrants) = all_back(link, placed, &what, false).await else { return };
            let mut good = Vec::new();
            for entrant in entrants {
                let Some(placed) = entrant.place(link).await else { continue };
                match link.test().await {
                    Ok(()) => good.push(placed),
                    Err(Refused::Said(what)) => placed.back(link, &what, false).await,
                    Err(Refused::Unknown(failure)) => placed.entrant.tell(Err(*failure)),
                }
            }
            if !good.is_empty() {
                start(link, good).await;
            }
        }
    }
}

/// One restart for all; the test had nothing against them.
async fn start(link: &Link<'_>, placed: Vec<Placed>) {
    match link.start().await {
        Ok(()) => {
            let others = placed.len() - 1;
            for placed in placed {
                placed.served(link, others).await;
            }
        }
        Err(Refused::Unknown(failure)) => placed.into_iter().for_each(|p| p.entrant.tell(Err((*failure).clone()))),
        Err(Refused::Said(what)) => {
            let Some(entrants) = all_back(link, placed, &what, true).await else { return };
            for entrant in entrants {
                let Some(placed) = entrant.place(link).await else { continue };
                match link.test().await {
                    Ok(()) => {}
                    Err(Refused::Said(what)) => {
                        placed.back(link, &what, false).await;
                        continue;
                    }
                    Err(Refused::Unknown(failure)) => {
                        placed.entrant.tell(Err(*failure));
                        continue;
                    }
                }
                match link.start().await {
                    Ok(()) => placed.served(link, 0).await,
                    Err(Refused::Said(what)) => placed.back(link, &what, true).await,
                    Err(Refused::Unknown(failure)) => placed.entrant.tell(Err(*failure)),
                }
            }
        }
    }
}

/// Puts the former files of all back after a refusal. Gives those that are to be tried one by one; `None` where all are
/// answered: there was one only, or the way back failed.
async fn all_back(link: &Link<'_>, mut placed: Vec<Placed>, what: &str, restart: bool) -> Option<Vec<Entrant>> {
    if placed.len() == 1 {
        placed.remove(0).back(link, what, restart).await;
        return None;
    }
    let mut fault = None;
    for placed in &placed {
        // All are tried, whatever becomes of one: each file that is back is one reason less for the service to stay down.
        let back = placed.entrant.delivery.put_back(link, &placed.former).await;
        fault = fault.or(back.err());
    }
    if restart && let Err(why) = link.start_again().await {
        fault = fault.or(Some(format!("the former files are back, {why}")));
    }
    if let Some(fault) = fault {
        for Placed { entrant, .. } in placed {
            let failure = entrant.delivery.refused(link, what, Err(fault.clone()));
            entrant.tell(Err(failure));
        }
        return None;
    }
    let mut entrants = Vec::new();
    for Placed { entrant, .. } in placed {
        entrant.delivery.forget_former(link).await;
        entrant.delivery.note(format!("refused together with other entries, so each is tried alone: {what}"));
        entrants.push(entrant);
    }
    Some(entrants)
}

//! Serves the entries of several runs over one connection: each is compared and uploaded, then all share test, restart and
//! validation. What is refused together is tried one by one, so that a bad entry fails alone (D9, D10).

use tokio::sync::oneshot;

use super::connect;
use super::delivery::{Delivery, Former, Place};
use super::desk::{Job, Outcome};
use super::link::{Link, Refused};
use crate::activities::env::ActivityCx;
use crate::config::settings::DhcpSettings;
use crate::domain::failure::Failure;

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
            Place::Done(former) => return Some(Placed { entrant: self, former }),
            Place::Unsure(former, failure) => {
                unsure(link, vec![Placed { entrant: self, former }], &failure, false).await
            }
            Place::Right => {
                let out = self.delivery.out(false);
                self.tell(Ok(out));
            }
            Place::Failed(failure) => self.tell(Err(failure)),
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
        let link = Link::new(cx, &client, settings);
        let mut placed = Vec::new();
        for Job { cx, wanted, answer, .. } in jobs {
            placed.extend(Entrant { delivery: Delivery::new(cx, &link, wanted), answer }.place(&link).await);
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
        Err(Refused::Unknown(failure) | Refused::NotAllowed(failure)) => unsure(link, placed, &failure, false).await,
        Err(Refused::Said(what)) => {
            let Some(entrants) = all_back(link, placed, &what, false).await else { return };
            let mut good = Vec::new();
            for entrant in entrants {
                good.extend(tested(link, entrant).await);
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
        Err(Refused::Unknown(failure)) => unsure(link, placed, &failure, true).await,
        Err(Refused::NotAllowed(failure)) => unsure(link, placed, &failure, false).await,
        Err(Refused::Said(what)) => {
            let Some(entrants) = all_back(link, placed, &what, true).await else { return };
            for entrant in entrants {
                if let Some(placed) = tested(link, entrant).await {
                    alone(link, placed).await;
                }
            }
        }
    }
}

/// One restart for one entry.
async fn alone(link: &Link<'_>, placed: Placed) {
    match link.start().await {
        Ok(()) => placed.served(link, 0).await,
        Err(Refused::Said(what)) => placed.back(link, &what, true).await,
        Err(Refused::Unknown(failure)) => unsure(link, vec![placed], &failure, true).await,
        Err(Refused::NotAllowed(failure)) => unsure(link, vec![placed], &failure, false).await,
    }
}

/// Places one entry and tests it by itself; `None`: it was told why that did not go well.
async fn tested(link: &Link<'_>, entrant: Entrant) -> Option<Placed> {
    let placed = entrant.place(link).await?;
    match link.test().await {
        Ok(()) => return Some(placed),
        Err(Refused::Said(what)) => placed.back(link, &what, false).await,
        Err(Refused::Unknown(failure) | Refused::NotAllowed(failure)) => {
            unsure(link, vec![placed], &failure, false).await;
        }
    }
    None
}

/// The answer of a step was lost or did not come in time. The former files are put back and, where the service may have been
/// stopped, it is started with them: over a new connection if this one is gone. The failure is what the step's is, and the
/// next attempt begins anew. Where even that cannot be done, the marker makes the next attempt go on.
async fn unsure(link: &Link<'_>, placed: Vec<Placed>, failure: &Failure, restarted: bool) {
    let back = if link.client.is_spent() {
        match connect(link.cx, link.settings).await {
            Ok(client) => {
                let back = undo(&Link::new(link.cx, &client, link.settings), &placed, restarted).await;
                client.close().await;
                back
            }
            Err(failure) => Err(failure.message),
        }
    } else {
        undo(link, &placed, restarted).await
    };
    let then = match back {
        Ok(()) if restarted => "what was there before is back, and the service runs with it".to_owned(),
        Ok(()) => "what was there before is back, and the service was not restarted".to_owned(),
        Err(why) => {
            format!("the new entry may be in place, and the next attempt restarts the service again: {why}")
        }
    };
    for Placed { entrant, .. } in placed {
        let mut failure = failure.clone();
        failure.message = format!("{}; {then}", failure.message);
        entrant.tell(Err(failure));
    }
}

/// Puts all former files back; why it could not be done for all.
async fn undo(link: &Link<'_>, placed: &[Placed], restarted: bool) -> Result<(), String> {
    let mut fault = None;
    for Placed { entrant, former } in placed {
        // All are tried, whatever becomes of one: each file that is back is one reason less for the service to stay down.
        fault = fault.or(entrant.delivery.put_back(link, former).await.err());
    }
    if restarted && let Err(why) = link.start_again().await {
        fault = fault.or(Some(format!("the former files are back, {why}")));
    }
    if let Some(fault) = fault {
        return Err(fault);
    }
    for Placed { entrant, .. } in placed {
        entrant.delivery.forget_former(link).await;
    }
    Ok(())
}

/// Puts the former files of all back after a refusal. Gives those that are to be tried one by one; `None` where all are
/// answered: there was one only, or the way back failed.
async fn all_back(link: &Link<'_>, mut placed: Vec<Placed>, what: &str, restart: bool) -> Option<Vec<Entrant>> {
    if placed.len() == 1 {
        placed.remove(0).back(link, what, restart).await;
        return None;
    }
    if let Err(fault) = undo(link, &placed, restart).await {
        for Placed { entrant, .. } in placed {
            let failure = entrant.delivery.refused(link, what, Err(fault.clone()));
            entrant.tell(Err(failure));
        }
        return None;
    }
    let mut entrants = Vec::new();
    for Placed { entrant, .. } in placed {
        entrant.delivery.note(format!("refused together with other entries, so each is tried alone: {what}"));
        entrants.push(entrant);
    }
    Some(entrants)
}

//! `muster locate` and `muster power`: what a person at the rack asks of one host's BMC.

use std::io::IsTerminal;

use serde_json::json;

use super::args::{Locate, LocatorWord, Place, Power, PowerWord};
use super::exit::{Ending, Exit};
use super::{leave, open, output};
use crate::app::{App, Consent, RackError, SubmitError};
use crate::domain::rack::{LocatorWish, PowerWish};
use crate::domain::text::neutralize;

pub async fn locate(place: &Place, command: Locate) -> Result<Exit, Ending> {
    let wish = match command.what {
        LocatorWord::On => Some(LocatorWish::On),
        LocatorWord::Off => Some(LocatorWish::Off),
        LocatorWord::Toggle => Some(LocatorWish::Toggle),
        LocatorWord::Status => None,
    };
    let app = open::aside(place).await?;
    let host = &command.host;
    let ended = async {
        let mut asked = app.locator(host, wish).await;
        if is_unknown(&asked) {
            app.sync_now().await.map_err(|e| Ending::failed(e.to_string()))?;
            asked = app.locator(host, wish).await;
        }
        let located = match asked {
            Ok(located) => located,
            Err(error) => return Ok(tell(host, &error, command.json)),
        };
        if command.json {
            output::object(&json!({
                "host": host, "locator": located.word(), "changed": located.changed, "by": located.by,
            }));
        } else {
            let was = if located.changed || wish.is_none() { "" } else { " already" };
            output::line(&neutralize(&format!("{host}: the locator is {}{was} ({})", located.word(), located.by)));
        }
        Ok(Exit::Done)
    }
    .await;
    leave::leave(app).await;
    ended
}

pub async fn power(place: &Place, command: Power) -> Result<Exit, Ending> {
    if command.hard && command.what != PowerWord::Off {
        return Err(Ending::refused("--hard is a way to switch off: it goes with `off` only"));
    }
    let wish = match command.what {
        PowerWord::Status => None,
        PowerWord::On => Some(PowerWish::On),
        PowerWord::Off => Some(PowerWish::Off { hard: command.hard }),
        PowerWord::Cycle => Some(PowerWish::Cycle),
    };
    let app = open::aside(place).await?;
    let ended = switch(&app, &command, wish).await;
    leave::leave(app).await;
    ended
}

async fn switch(app: &App, command: &Power, wish: Option<PowerWish>) -> Result<Exit, Ending> {
    let host = &command.host;
    let mut consent = Consent { yes: command.yes, typed: command.deployed.clone() };
    let mut asked = app.power(host, wish, &consent).await;
    if is_unknown(&asked) {
        app.sync_now().await.map_err(|e| Ending::failed(e.to_string()))?;
        asked = app.power(host, wish, &consent).await;
    }
    // Nothing was asked of the BMC yet: a person can still be.
    if can_ask(command.json)
        && let Err(error @ (RackError::Unasked { .. } | RackError::Deployed { .. })) = &asked
    {
        consent = ask(host, error).await?;
        asked = app.power(host, wish, &consent).await;
    }
    let powered = match asked {
        Ok(powered) => powered,
        Err(error) => return Ok(tell(host, &error, command.json)),
    };
    if command.json {
        output::object(&json!({
            "host": host, "power": powered.after, "before": powered.before, "asked": powered.asked,
        }));
    } else if powered.asked.is_empty() {
        let already = if wish.is_some() { " already" } else { "" };
        output::line(&neutralize(&format!("{host}: power is {}{already}", powered.after)));
    } else {
        let asked = powered.asked.join(", then ");
        output::line(&neutralize(&format!("{host}: power {} → {} ({asked})", powered.before, powered.after)));
    }
    Ok(Exit::Done)
}

/// NetBox may have it, where nobody has read NetBox yet.
fn is_unknown<T>(asked: &Result<T, RackError>) -> bool {
    matches!(asked, Err(RackError::Host(SubmitError::UnknownHost(_))))
}

fn can_ask(json: bool) -> bool {
    !json && std::io::stdin().is_terminal() && std::io::stdout().is_terminal()
}

/// Asks the person at the terminal: for a yes, or for the host's name where somebody may use it.
async fn ask(host: &str, error: &RackError) -> Result<Consent, Ending> {
    let nothing = || Ending::refused("nothing was changed");
    output::line(&neutralize(&error.to_string()));
    if matches!(error, RackError::Deployed { .. }) {
        output::words(&format!("type {} to go on: ", neutralize(host)));
        let typed = answer().await;
        return if typed == host { Ok(Consent { yes: true, typed: Some(typed) }) } else { Err(nothing()) };
    }
    output::words("go on? [y/N] ");
    match answer().await.to_ascii_lowercase().as_str() {
        "y" | "yes" => Ok(Consent { yes: true, typed: None }),
        _ => Err(nothing()),
    }
}

async fn answer() -> String {
    let read = tokio::task::spawn_blocking(|| {
        let mut line = String::new();
        std::io::stdin().read_line(&mut line).map(|_| line)
    });
    read.await.ok().and_then(Result::ok).unwrap_or_default().trim().to_owned()
}

/// A refusal, or a failure with all that it has.
fn tell(host: &str, error: &RackError, json: bool) -> Exit {
    let exit = if error.was_tried() { Exit::Failed } else { Exit::Refused };
    if json {
        let event = if error.was_tried() { "failed" } else { "refused" };
        let mut object = json!({
            "event": event, "host": host, "code": error.code(), "message": error.to_string(), "action": error.action(),
        });
        if let (RackError::Failed(failure), Some(map)) = (error, object.as_object_mut()) {
            map.insert("failure".to_owned(), output::failure_fields(failure));
        }
        output::object(&object);
        return exit;
    }
    match error {
        RackError::Failed(failure) => {
            output::failure_lines(failure).iter().for_each(|line| eprintln!("muster: {}", neutralize(line)));
        }
        _ => {
            eprintln!("muster: {}", neutralize(&format!("{host}: {error}")));
            eprintln!("        {}", neutralize(&error.action()));
        }
    }
    exit
}

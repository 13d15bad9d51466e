//! `muster demo` and `muster lab`: the embedded lab, with the console on it or alone.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use tokio::sync::broadcast::error::RecvError;
use tokio::task::JoinHandle;

use super::args::{Demo, Lab};
use super::exit::{Ending, Exit};
use super::{leave, log, open, output};
use crate::app::{App, FeedEvent};
use crate::config::{self, settings::LogSettings};
use crate::domain::event::{Body, Event};
use crate::domain::request::EnrollParams;
use crate::lab::faults::{Fault, OfDevice};
use crate::lab::world::World;
use crate::lab::{self, scenario::Scenario};
use crate::tui::{self, event::Refused};

/// So much faster than the demo's present its past goes by.
const PAST_SPEED: f64 = 20.0;
/// A machine that is too busy for that gets on with the present.
const PAST_WITHIN: Duration = Duration::from_secs(60);

/// The console on the lab. Everything of it is in a temporary folder that goes with the process.
pub async fn demo(command: Demo) -> Result<Exit, Ending> {
    let scenario = scenario(command.scenario.as_deref())?;
    let speed = speed(command.speed, &scenario)?;
    let folder = TemporaryFolder::new("muster-demo")?;
    log::for_console(&folder.0, &LogSettings::default())?;
    let title = format!("demo · {} · {speed}× speed", scenario.name);
    let lab = start(scenario, speed).await?;
    let file = write_config(&lab, &folder.0)?;
    let settings = config::load(&file).map_err(|e| Ending::failed(format!("the lab's own configuration: {e}")))?;
    let options = tui::TuiOptions {
        theme: None,
        themes: None,
        ascii: command.ascii,
        mouse: true,
        keys: Default::default(),
        site: None,
        title: Some(title),
        user: open::operator(),
        on_end: config::settings::OnEnd::default(),
        memory: None,
        hands: Some(hands(lab.world().clone())),
    };
    let app = open::app(settings, &folder.0.join("state")).await?;
    let past =
        (!command.fresh).then(|| tokio::spawn(past(app.clone(), lab.world().clone(), found_faulty(&lab), speed)));
    let shown = tui::run(app.clone(), options).await;
    past.iter().for_each(JoinHandle::abort);
    leave::leave(app).await;
    drop(lab);
    shown.map(|()| Exit::Done).map_err(|e| Ending::failed(e.to_string()))
}

/// The host that somebody tried to enroll before: the first one with cables in wrong places.
fn found_faulty(lab: &lab::Lab) -> Option<String> {
    let is_cabling = |fault: &&Fault| matches!(fault, Fault::SwappedCables(_) | Fault::CableMoved(_));
    lab.scenario().faults.iter().find(is_cabling)?.device().map(str::to_owned)
}

/// What happened at the site before anybody opened the console: an enrollment that found a fault. It is a run like any other;
/// only the lab's time flies until it has ended.
async fn past(app: App, world: World, host: Option<String>, speed: f64) {
    let Some(host) = host else { return };
    world.clock().set_speed((speed * PAST_SPEED).min(10_000.0));
    let ran = tokio::time::timeout(PAST_WITHIN, tried(&app, &host)).await;
    world.clock().set_speed(speed);
    match ran {
        Ok(Ok(())) => {}
        Ok(Err(why)) => tracing::warn!(%host, why, "the demo has no past"),
        Err(_) => tracing::warn!(%host, "the demo's past takes long, and goes on at the speed of the present"),
    }
}

/// Enrolls a host to the end, as somebody else did.
async fn tried(app: &App, host: &str) -> Result<(), String> {
    app.sync_now().await.map_err(|error| error.to_string())?;
    let mut feed = app.feed();
    let run = app.submit(host, EnrollParams::default(), "eve").await.map_err(|error| error.to_string())?;
    loop {
        match feed.recv().await {
            Ok(FeedEvent::Record(record))
                if record.run == run && matches!(record.body, Body::Journal(Event::Finished { .. })) =>
            {
                return Ok(());
            }
            Ok(_) | Err(RecvError::Lagged(_)) => {}
            Err(RecvError::Closed) => return Ok(()),
        }
    }
}

/// The hands of the demo: there is no rack to walk to.
fn hands(world: World) -> tui::Hands {
    tui::Hands(Arc::new(move |host: &str| {
        if world.machine(host).is_none() {
            return Err(Refused {
                code: "host_unknown".to_owned(),
                message: format!("the demo has no '{host}'"),
                action: "choose a host of the demo".to_owned(),
            });
        }
        world.add_fault(Fault::CablesMended(OfDevice { device: host.to_owned(), at_s: None }));
        Ok(format!(
            "the cables of {host} are plugged in as NetBox has them; now repeat its run with a fresh inspection"
        ))
    }))
}

/// The lab alone, until it is told to stop. Prints one line when it is ready.
pub async fn lab(command: Lab) -> Result<Exit, Ending> {
    let scenario = scenario(command.scenario.as_deref())?;
    let speed = speed(command.speed, &scenario)?;
    let lab = start(scenario, speed).await?;
    let temporary;
    let file = match &command.write_config {
        Some(file) => {
            let folder = file.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
            let written = write_config(&lab, folder)?;
            if written != *file {
                std::fs::rename(&written, file)
                    .map_err(|e| Ending::refused(format!("'{}' cannot be written: {e}", file.display())))?;
            }
            file.clone()
        }
        None => {
            temporary = TemporaryFolder::new("muster-lab")?;
            write_config(&lab, &temporary.0)?
        }
    };
    let path = std::path::absolute(&file).unwrap_or(file);
    output::object(&json!({
        "ready": true,
        "config": path,
        "netbox": lab.netbox_url(),
        "ironic": lab.ironic_url(),
        "ssh": lab.ssh_addr().to_string(),
        "control": lab.control_url(),
    }));
    open::stop_asked().await;
    drop(lab);
    Ok(Exit::Done)
}

fn scenario(file: Option<&Path>) -> Result<Scenario, Ending> {
    let read = match file {
        None => Scenario::demo(),
        Some(path) => {
            let text = std::fs::read_to_string(path)
                .map_err(|e| Ending::refused(format!("the scenario '{}' cannot be read: {e}", path.display())))?;
            Scenario::parse(&text)
        }
    };
    read.map_err(|e| Ending::refused(e.to_string()))
}

fn speed(asked: Option<f64>, scenario: &Scenario) -> Result<f64, Ending> {
    let speed = asked.unwrap_or(scenario.speed);
    if !(0.01..=10_000.0).contains(&speed) {
        return Err(Ending::refused(format!("a speed of '{speed}' is not between 0.01 and 10000")));
    }
    Ok(speed)
}

async fn start(scenario: Scenario, speed: f64) -> Result<lab::Lab, Ending> {
    lab::Lab::start(scenario, speed).await.map_err(|e| Ending::failed(format!("the lab does not start: {e}")))
}

fn write_config(lab: &lab::Lab, folder: &Path) -> Result<PathBuf, Ending> {
    lab.write_config(folder).map_err(|e| {
        Ending::refused(format!("the lab's configuration cannot be written to '{}': {e}", folder.display()))
    })
}

/// A private folder that goes when it is dropped.
struct TemporaryFolder(PathBuf);

impl TemporaryFolder {
    fn new(name: &str) -> Result<Self, Ending> {
        use std::os::unix::fs::DirBuilderExt;
        let unique = uuid::Uuid::new_v4().simple().to_string();
        let path = std::env::temp_dir().join(format!("{name}-{}", &unique[..12]));
        std::fs::DirBuilder::new()
            .mode(0o700)
            .create(&path)
            .map_err(|e| Ending::refused(format!("no folder '{}': {e}", path.display())))?;
        Ok(TemporaryFolder(path))
    }
}

impl Drop for TemporaryFolder {
    fn drop(&mut self) {
        std::fs::remove_dir_all(&self.0).ok(); // what is left there is the system's to sweep
    }
}

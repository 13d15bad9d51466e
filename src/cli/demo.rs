//! `muster demo` and `muster lab`: the embedded lab, with the console on it or alone.

use std::path::{Path, PathBuf};

use serde_json::json;

use super::args::{Demo, Lab};
use super::exit::{Ending, Exit};
use super::{leave, log, open, output};
use crate::config;
use crate::lab::{self, scenario::Scenario};
use crate::tui;

/// The console on the lab. Everything of it is in a temporary folder that goes with the process.
pub async fn demo(command: Demo) -> Result<Exit, Ending> {
    let scenario = scenario(command.scenario.as_deref())?;
    let speed = speed(command.speed, &scenario)?;
    let folder = TemporaryFolder::new("muster-demo")?;
    log::for_console(&folder.0)?;
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
    };
    let app = open::app(settings, &folder.0.join("state")).await?;
    let shown = tui::run(app.clone(), options).await;
    leave::leave(app).await;
    drop(lab);
    shown.map(|()| Exit::Done).map_err(|e| Ending::failed(e.to_string()))
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

//! Opens the application where a command needs it: configuration found and read, state folder found, log begun.

use std::path::{Path, PathBuf};

use tokio::sync::broadcast::error::RecvError;

use super::args::Place;
use super::exit::{Ending, Exit};
use super::{leave, log, output};
use crate::app::{App, FeedEvent, Opening, Role};
use crate::config::settings::Settings;
use crate::config::{self, Loaded, paths};
use crate::domain::text::neutralize;
use crate::tui;

/// Reads the configuration that the command line means.
pub fn settings(place: &Place) -> Result<(PathBuf, Settings), Ending> {
    let (path, loaded) = loaded(place)?;
    loaded.log_warnings();
    let settings = loaded.settings;
    if let Some(site) = &place.site
        && !settings.sites.contains_key(site)
    {
        let known: Vec<&str> = settings.sites.keys().map(String::as_str).collect();
        return Err(Ending::refused(format!("the configuration has no site '{site}'"))
            .with_action(format!("known sites: {}", known.join(", "))));
    }
    Ok((path, settings))
}

/// The configuration with what should be looked at in it, or everything that is wrong with it.
pub fn loaded(place: &Place) -> Result<(PathBuf, Loaded), Ending> {
    let path = paths::config_file(place.config.clone()).map_err(|e| Ending::refused(e.to_string()))?;
    let loaded = config::read(&path).map_err(|errors| {
        Ending::refused(errors.pointed())
            .with_action(format!("mend '{}'; `muster config init` prints an example with every key", path.display()))
    })?;
    Ok((path, loaded))
}

/// The folder of the store and the log.
pub fn state_dir(place: &Place) -> Result<PathBuf, Ending> {
    paths::state_dir(place.state_dir.clone()).map_err(|e| Ending::refused(e.to_string()))
}

/// Opens the application for a headless command: it leads, or says who does and follows.
pub async fn headless(place: &Place) -> Result<App, Ending> {
    let (_, settings) = settings(place)?;
    let state = state_dir(place)?;
    log::to_file(&state, &settings.log)?;
    let app = app(settings, &state).await?;
    if let Some(text) = carried_out_by(&app.role()) {
        eprintln!("muster: {text}");
    }
    Ok(app)
}

/// Opens the application for a command that looks or submits and leaves: it leads nothing and resumes no run.
pub async fn aside(place: &Place) -> Result<App, Ending> {
    let (_, settings) = settings(place)?;
    let state = state_dir(place)?;
    log::to_file(&state, &settings.log)?;
    let opening = Opening { user: Some(operator()), aside: true };
    App::open_as(settings, &state, opening).await.map_err(|e| Ending::refused(e.to_string()))
}

/// Opens the application on a state folder.
pub async fn app(settings: Settings, state: &Path) -> Result<App, Ending> {
    let opening = Opening { user: Some(operator()), aside: false };
    App::open_as(settings, state, opening).await.map_err(|e| Ending::refused(e.to_string()))
}

/// That another process does the work; `None`: this one does.
pub fn carried_out_by(role: &Role) -> Option<String> {
    match role {
        Role::Leading | Role::Aside => None,
        Role::Following { leader: Some(leader) } => Some(
            neutralize(&format!("{leader} carries the runs out; this one follows, and takes over when it is gone"))
                .into_owned(),
        ),
        Role::Following { leader: None } => {
            Some("another process carries the runs out; this one follows, and takes over when it is gone".to_owned())
        }
    }
}

/// `muster`: the console.
pub async fn console(place: &Place) -> Result<Exit, Ending> {
    let (file, settings) = settings(place)?;
    let state = state_dir(place)?;
    log::for_console(&state, &settings.log)?;
    let options = tui::TuiOptions {
        theme: settings.console.theme.clone(),
        themes: file.parent().map(|folder| folder.join("themes")),
        ascii: settings.console.ascii,
        mouse: settings.console.mouse,
        keys: settings.console.keys.clone(),
        site: place.site.clone(),
        title: None,
        user: operator(),
        on_end: settings.console.on_end,
        memory: Some(state.clone()),
        hands: None,
    };
    let app = app(settings, &state).await?;
    let shown = tui::run(app.clone(), options).await;
    leave::leave(app).await;
    shown.map(|()| Exit::Done).map_err(|e| Ending::failed(e.to_string()))
}

/// `muster serve`: the engine without a screen, until it is told to stop.
pub async fn serve(place: &Place) -> Result<Exit, Ending> {
    let app = headless(place).await?;
    let mut feed = app.feed();
    let _figures = match app.settings().metrics {
        Some(listen) => {
            let listening = app.expose(listen).await.map_err(|e| {
                Ending::failed(format!("the figures cannot be shown at '{listen}': {e}"))
                    .with_action("name a free address in [metrics], or leave the table out")
            })?;
            output::line(&format!("figures at http://{}/metrics", listening.at));
            Some(listening)
        }
        None => None,
    };
    output::line("muster serves; stop it with Ctrl-C or SIGTERM, runs go on at the next start");
    let stop = stop_asked();
    tokio::pin!(stop);
    loop {
        tokio::select! {
            () = &mut stop => break,
            event = feed.recv() => match event {
                Ok(FeedEvent::Role(Role::Leading)) => output::line("muster leads now: all active runs go on here"),
                Ok(FeedEvent::Role(role)) => carried_out_by(&role).iter().for_each(|text| output::line(text)),
                // Too slow, or something else that is of no interest here.
                Ok(_) | Err(RecvError::Lagged(_)) => {}
                Err(RecvError::Closed) => break,
            }
        }
    }
    leave::leave(app).await;
    Ok(Exit::Done)
}

/// Ends when the process is asked to stop: SIGINT, SIGTERM or SIGHUP.
pub async fn stop_asked() {
    use tokio::signal::unix::{SignalKind, signal};
    let listen = |kind| signal(kind).ok();
    let (mut int, mut term, mut hup) =
        (listen(SignalKind::interrupt()), listen(SignalKind::terminate()), listen(SignalKind::hangup()));
    async fn next(signal: &mut Option<tokio::signal::unix::Signal>) {
        match signal {
            Some(signal) => {
                signal.recv().await;
            }
            None => std::future::pending().await,
        }
    }
    tokio::select! {
        () = next(&mut int) => {}
        () = next(&mut term) => {}
        () = next(&mut hup) => {}
    }
}

/// Who starts runs from here: the login name, for the people who share a console.
pub fn operator() -> String {
    ["SUDO_USER", "USER", "LOGNAME"]
        .iter()
        .filter_map(|name| std::env::var(name).ok())
        .find(|name| !name.trim().is_empty())
        .or_else(account)
        .unwrap_or_else(|| "unknown".to_owned())
}

/// The name of the account that this process runs under, where its environment does not say.
fn account() -> Option<String> {
    let uid = rustix::process::getuid().as_raw().to_string();
    let accounts = std::fs::read_to_string("/etc/passwd").ok()?;
    accounts.lines().find_map(|line| {
        let mut fields = line.split(':');
        let name = fields.next()?;
        (fields.nth(1)? == uid).then(|| name.to_owned())
    })
}

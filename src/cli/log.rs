//! The log: a file in the state folder, and for the console its log pane. Never the terminal. docs/service.md has its form.

mod file;
mod line;

use std::path::Path;
use std::sync::Arc;

use tracing::{Event, Level, Subscriber};
use tracing_subscriber::filter::{FilterExt, filter_fn};
use tracing_subscriber::layer::{Context, Filter, SubscriberExt};
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{EnvFilter, Layer};

use self::file::LogFile;
use super::exit::Ending;
use crate::config::settings::LogSettings;
use crate::tui;

/// The name of the file in the state folder.
const NAME: &str = "muster.log";

/// A headless command logs to the file alone.
pub fn to_file(state: &Path, settings: &LogSettings) -> Result<(), Ending> {
    let file = file_layer(state, settings)?;
    tracing_subscriber::registry().with(file).try_init().ok(); // a second call in one process keeps the first
    Ok(())
}

/// The console logs to the file and to its log pane.
pub fn for_console(state: &Path, settings: &LogSettings) -> Result<(), Ending> {
    let file = file_layer(state, settings)?;
    tracing_subscriber::registry().with(file).with(tui::log_layer().with_filter(filter())).try_init().ok();
    Ok(())
}

fn filter<S: Subscriber>() -> impl Filter<S> {
    let asked = EnvFilter::try_from_env("MUSTER_LOG").unwrap_or_else(|_| EnvFilter::new("info,muster=debug"));
    asked.and(filter_fn(|event| is_discreet(event.target(), *event.level())))
}

/// What a library says at its most talkative holds whole messages, and some hold what muster logs in with (Z1): it is logged
/// by nobody's wish. The one of NATS quotes what servers say at every level; muster tells the same without the secrets.
fn is_discreet(target: &str, level: Level) -> bool {
    let of = |name: &str| target == name || target.starts_with(name) && target[name.len()..].starts_with("::");
    of("muster") || level != Level::TRACE && !of("async_nats")
}

fn file_layer<S>(state: &Path, settings: &LogSettings) -> Result<impl Layer<S>, Ending>
where
    S: Subscriber + for<'a> LookupSpan<'a>,
{
    let path = state.join(NAME);
    let file = LogFile::open(path.clone(), settings)
        .map_err(|e| Ending::refused(format!("the log '{}' cannot be written: {e}", path.display())))?;
    Ok(Lines(Arc::new(file)).with_filter(filter()))
}

/// Writes each event as one line.
struct Lines(Arc<LogFile>);

impl<S: Subscriber> Layer<S> for Lines {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        self.0.write(&line::of(event));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves: Z1
    #[test]
    fn no_library_is_logged_word_for_word() {
        assert!(is_discreet("muster", Level::TRACE) && is_discreet("muster::clients::http", Level::TRACE));
        assert!(is_discreet("hyper_util::client", Level::DEBUG));
        assert!(!is_discreet("hyper_util::client", Level::TRACE) && !is_discreet("musterer", Level::TRACE));
        assert!(!is_discreet("async_nats::connector", Level::ERROR));
    }
}

//! The log pane's share of the log: each event as a sentence with its fields behind it, handed to tui-logger.

use std::fmt::{Debug, Write};

use tracing::field::{Field, Visit};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::Context;

use crate::domain::text::neutralize_to;

/// A line of the pane is never longer than this; the file has all of it.
const MAX: usize = 600;

/// Hands events to tui-logger. Its own layer puts the message among the fields by the alphabet, and its own thread wakes a
/// hundred times a second to move what was logged: here drawing moves it.
pub struct LogLayer;

/// The layer for the subscriber of a process that shows the console.
pub fn log_layer() -> LogLayer {
    tui_logger::set_default_level(tui_logger::LevelFilter::Trace);
    LogLayer
}

impl<S: Subscriber> Layer<S> for LogLayer {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let mut line = Line::default();
        event.record(&mut line);
        let level = match *event.metadata().level() {
            Level::ERROR => log::Level::Error,
            Level::WARN => log::Level::Warn,
            Level::INFO => log::Level::Info,
            Level::DEBUG => log::Level::Debug,
            Level::TRACE => log::Level::Trace,
        };
        let text = neutralize_to(&format!("{}{}", line.message, line.fields), MAX);
        let args = format_args!("{text}");
        tui_logger::Drain::new()
            .log(&log::Record::builder().args(args).level(level).target(event.metadata().target()).build());
    }
}

#[derive(Default)]
struct Line {
    message: String,
    fields: String,
}

impl Line {
    fn put(&mut self, field: &Field, value: std::fmt::Arguments<'_>) {
        // Writing to a String can't fail.
        if field.name() == "message" {
            write!(self.message, "{value}").ok();
        } else {
            write!(self.fields, " · {} {value}", field.name()).ok();
        }
    }
}

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.put(field, format_args!("{value:?}"));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.put(field, format_args!("{value}"));
    }

    fn record_error(&mut self, field: &Field, value: &(dyn std::error::Error + 'static)) {
        self.put(field, format_args!("{value}"));
    }
}

//! The console.

use crate::app::App;

/// What the console is opened with.
#[derive(Debug, Clone, Default)]
pub struct TuiOptions {
    /// Name of a theme; else the environment decides.
    pub theme: Option<String>,
    pub ascii: bool,
    pub mouse: bool,
    /// Only this site (NetBox slug).
    pub site: Option<String>,
    /// Stands in the header, such as the demo's.
    pub title: Option<String>,
}

/// Why the console could not be shown.
#[derive(Debug, thiserror::Error)]
pub enum TuiError {
    #[error("this build has no console yet: use `muster enroll` and `muster runs`")]
    NotBuilt,
}

/// Shows the console until the person leaves it.
pub async fn run(_app: App, _options: TuiOptions) -> Result<(), TuiError> {
    Err(TuiError::NotBuilt)
}

/// The log pane's share of the log.
pub fn log_layer() -> tui_logger::TuiTracingSubscriberLayer {
    tui_logger::TuiTracingSubscriberLayer
}

//! STUB
pub struct TuiOptions { pub theme: Option<String>, pub ascii: bool, pub mouse: bool, pub site: Option<String>, pub title: Option<String> }
pub async fn run(_a: crate::app::App, _o: TuiOptions) -> Result<(), std::io::Error> { todo!() }
pub fn log_layer() -> tui_logger::TuiTracingSubscriberLayer { tui_logger::TuiTracingSubscriberLayer }

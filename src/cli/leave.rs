//! The way out of the program: in order, and never longer than a person at a shell waits.

use std::time::Duration;

use super::exit::Exit;
use crate::app::App;

/// Steps at work have five seconds to come to an end, and a store on a slow disk some more.
const PATIENCE: Duration = Duration::from_secs(20);

/// Stops what works here and gives back the lead. If that does not come to an end, something of this machine hangs: then the
/// process ends as it stands, which the journal takes like any other death (G5).
pub async fn leave(app: App) {
    unless_ended_within(PATIENCE, || {
        eprintln!("muster: it did not come to its end within {} s, and ends as it stands", PATIENCE.as_secs());
        eprintln!("        look at the disk of the state folder; all runs go on at the next start");
        std::process::exit(Exit::Interrupted as i32);
    });
    app.shutdown().await;
}

/// Does something after a while, in a thread of its own that goes with the process.
fn unless_ended_within(patience: Duration, late: impl FnOnce() + Send + 'static) {
    let watch = std::thread::Builder::new().name("muster-leave".to_owned()).spawn(move || {
        std::thread::sleep(patience);
        late();
    });
    if let Err(error) = watch {
        tracing::warn!(%error, "nobody watches over the way out");
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    #[test]
    fn an_end_that_does_not_come_is_made() {
        let (tell, told) = mpsc::channel();
        unless_ended_within(Duration::from_millis(50), move || tell.send(()).unwrap());
        assert!(told.recv_timeout(Duration::from_millis(10)).is_err());
        told.recv_timeout(Duration::from_secs(20)).unwrap();
    }
}

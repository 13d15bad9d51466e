//! Arguments and headless commands: every action of the console is a command too (G16).

pub mod args;
mod backfill;
mod batch;
mod cables;
mod compare;
mod config;
mod demo;
mod device;
mod doctor;
mod dumps;
mod enroll;
mod exit;
mod init;
mod inventory;
mod leave;
mod list;
mod log;
mod open;
mod output;
mod plan;
mod rack;
mod runs;
mod story;

use std::ffi::OsString;
use std::process::ExitCode;

use args::{Arguments, Command};
use clap::{CommandFactory, Parser};
use exit::{Ending, Exit};

/// Runs the command line to its end and gives back the exit code of the contract: 0 done, 1 failed, 2 refused or usage,
/// 3 interrupted and resumable.
///
/// Not generic over the arguments: the whole program would else be compiled once more with whoever calls this.
pub fn run(arguments: Vec<OsString>) -> ExitCode {
    dumps::off();
    let arguments = match Arguments::try_parse_from(arguments) {
        Ok(arguments) => arguments,
        Err(usage) => {
            let asked_for = !usage.use_stderr();
            usage.print().ok(); // a closed pipe is no reason to fail differently
            return if asked_for { Exit::Done } else { Exit::Refused }.into();
        }
    };
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(e) => return Ending::refused(format!("no threads to run on: {e}")).report(),
    };
    let ended = runtime.block_on(dispatch(arguments));
    // What still runs is in the journal; a task that hangs in a system call must not keep the shell waiting.
    runtime.shutdown_timeout(std::time::Duration::from_millis(500));
    match ended {
        Ok(exit) => exit.into(),
        Err(ending) => ending.report(),
    }
}

async fn dispatch(arguments: Arguments) -> Result<Exit, Ending> {
    let Arguments { place, command } = arguments;
    match command {
        None => open::console(&place).await,
        Some(Command::Demo(demo)) => demo::demo(demo).await,
        Some(Command::Lab(lab)) => demo::lab(lab).await,
        Some(Command::Serve) => open::serve(&place).await,
        Some(Command::Enroll(command)) => enroll::enroll(&place, command).await,
        Some(Command::Plan(command)) => plan::plan(&place, command).await,
        Some(Command::Locate(command)) => rack::locate(&place, command).await,
        Some(Command::Power(command)) => rack::power(&place, command).await,
        Some(Command::Runs { command }) => runs::runs(&place, command).await,
        Some(Command::Inventory { command }) => inventory::inventory(&place, command).await,
        Some(Command::PlatformClass { command: args::PlatformClass::Backfill(command) }) => {
            backfill::backfill(&place, command).await
        }
        Some(Command::Cables(command)) => cables::cables(&place, command).await,
        Some(Command::Doctor(command)) => doctor::doctor(&place, command).await,
        Some(Command::Config { command }) => config::config(&place, command),
        Some(Command::Completions { shell }) => {
            let mut command = Arguments::command();
            clap_complete::generate(shell, &mut command, "muster", &mut std::io::stdout());
            Ok(Exit::Done)
        }
        Some(Command::Man(args::Man { all: None })) => {
            let page = clap_mangen::Man::new(documented());
            page.render(&mut std::io::stdout())
                .map_err(|e| Ending::failed(format!("the page could not be printed: {e}")))?;
            Ok(Exit::Done)
        }
        Some(Command::Man(args::Man { all: Some(folder) })) => {
            let written =
                std::fs::create_dir_all(&folder).and_then(|()| clap_mangen::generate_to(documented(), &folder));
            written.map_err(|e| {
                Ending::failed(format!("the pages could not be written to '{}': {e}", folder.display()))
            })?;
            Ok(Exit::Done)
        }
    }
}

/// The command line as manual pages have it: `help` is a way to them and none of their matters.
fn documented() -> clap::Command {
    Arguments::command().disable_help_subcommand(true)
}

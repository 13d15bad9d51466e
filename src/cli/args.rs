//! The command line. Its forms are a contract: scripts rely on them.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

use crate::domain::ids::NodeUuid;
use crate::domain::request::EnrollParams;

/// The console of the engineer at the rack: enrolls racked hosts into Ironic and shows what is waited for.
#[derive(Debug, Parser)]
#[command(name = "muster", version = version(), max_term_width = 100, propagate_version = true)]
pub struct Arguments {
    #[command(flatten)]
    pub place: Place,
    /// Without a command the console opens.
    #[command(subcommand)]
    pub command: Option<Command>,
}

/// Where configuration and state are, and which site is meant.
#[derive(Debug, Clone, Args)]
pub struct Place {
    /// Configuration file; else MUSTER_CONFIG, else config.toml in the platform's configuration folder.
    #[arg(long, global = true, value_name = "FILE", env = "MUSTER_CONFIG")]
    pub config: Option<PathBuf>,
    /// Folder of the store and the log; else MUSTER_STATE_DIR, else the platform's state folder.
    #[arg(long, global = true, value_name = "DIR", env = "MUSTER_STATE_DIR")]
    pub state_dir: Option<PathBuf>,
    /// Only this site (NetBox slug).
    #[arg(long, global = true, value_name = "SITE")]
    pub site: Option<String>,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Open the console on the embedded lab: nothing to configure, nothing real is touched.
    Demo(Demo),
    /// Serve the embedded lab: NetBox, Ironic, BMCs and a DHCP host on loopback.
    Lab(Lab),
    /// Run the engine without a screen: a service unit's job.
    Serve,
    /// Enroll hosts and follow them to their end.
    Enroll(Enroll),
    /// Say what an enrollment would read, write and wait for, and change nothing.
    Plan(Plan),
    /// Light the locator LED of a host, or put it out; without a word the other of what it is.
    Locate(Locate),
    /// Read or change the power of a host by its BMC.
    Power(Power),
    /// Look at runs, and steer them.
    Runs {
        #[command(subcommand)]
        command: Runs,
    },
    /// The racked devices, as NetBox has them.
    Inventory {
        #[command(subcommand)]
        command: Inventory,
    },
    /// The platform classes that NetBox has for the hosts.
    PlatformClass {
        #[command(subcommand)]
        command: PlatformClass,
    },
    /// What is plugged into the wrong place, by what the inspections of the last days heard, and the fewest moves that mend it.
    Cables(Cables),
    /// Look whether what muster needs of NetBox is there: the token, and each permission. Nothing is changed.
    Doctor(Doctor),
    /// The configuration.
    Config {
        #[command(subcommand)]
        command: Config,
    },
    /// Print completions for a shell.
    Completions { shell: clap_complete::Shell },
    /// Print the manual page.
    Man(Man),
}

#[derive(Debug, Args)]
pub struct Man {
    /// Write it and a page for each command into this folder instead, as packages want them.
    #[arg(long, value_name = "DIR")]
    pub all: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub struct Demo {
    /// Scenario file (TOML); else the built-in fleet of two sites.
    #[arg(long, value_name = "FILE")]
    pub scenario: Option<PathBuf>,
    /// How many seconds of the lab pass in one second.
    #[arg(long, value_name = "N")]
    pub speed: Option<f64>,
    /// ASCII glyphs and borders only.
    #[arg(long)]
    pub ascii: bool,
    /// Begin with a site where nothing was run yet.
    #[arg(long)]
    pub fresh: bool,
}

#[derive(Debug, Args)]
pub struct Lab {
    /// Scenario file (TOML); else the built-in fleet of two sites.
    #[arg(long, value_name = "FILE")]
    pub scenario: Option<PathBuf>,
    /// How many seconds of the lab pass in one second.
    #[arg(long, value_name = "N")]
    pub speed: Option<f64>,
    /// Write muster's configuration for this lab here (its secrets beside it); else into a temporary folder.
    #[arg(long, value_name = "FILE")]
    pub write_config: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub struct Enroll {
    /// NetBox device names.
    #[arg(required_unless_present = "file", value_name = "HOST")]
    pub hosts: Vec<String>,
    /// A list of names: a name a line with '#' before comments, or JSON ('-': standard input). In a terminal it is shown
    /// and asked about before anything starts; elsewhere --yes is needed.
    #[arg(long, value_name = "LIST")]
    pub file: Option<PathBuf>,
    /// Start the others although some names were refused; without it one refusal starts nothing.
    #[arg(long)]
    pub skip_refused: bool,
    #[command(flatten)]
    pub switches: Switches,
    /// Start the first host alone; the others wait until it has succeeded, and are cancelled if it does not.
    #[arg(long)]
    pub canary: bool,
    /// Submit and leave: nothing is carried out here. A console or `muster serve` on the same state folder carries the runs out, now or when
    /// it is started.
    #[arg(long)]
    pub detach: bool,
    /// Do not ask: not before a list is started, nor before the BMC of a deployed host named on the command line is touched.
    #[arg(long)]
    pub yes: bool,
    /// One JSON object a line: the events, and at the end one `finished` for each host.
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
pub struct Plan {
    /// NetBox device names.
    #[arg(required_unless_present = "file", value_name = "HOST")]
    pub hosts: Vec<String>,
    /// A list of names, as of `muster enroll`.
    #[arg(long, value_name = "LIST")]
    pub file: Option<PathBuf>,
    #[command(flatten)]
    pub switches: Switches,
    /// One JSON object a line, one for each host.
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
pub struct Locate {
    /// NetBox device name.
    pub host: String,
    #[arg(default_value = "toggle", value_name = "WHAT")]
    pub what: LocatorWord,
    /// One JSON object.
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum LocatorWord {
    On,
    Off,
    Toggle,
    /// Only look.
    Status,
}

#[derive(Debug, Args)]
pub struct Power {
    /// NetBox device name.
    pub host: String,
    #[arg(default_value = "status", value_name = "WHAT")]
    pub what: PowerWord,
    /// Off at once, without asking the operating system to end.
    #[arg(long)]
    pub hard: bool,
    /// Do not ask before the host is interrupted. Not enough for one that somebody uses.
    #[arg(long)]
    pub yes: bool,
    /// The host's name once more: that it is meant although Ironic says that somebody uses it, or cannot say.
    #[arg(long, value_name = "HOST")]
    pub deployed: Option<String>,
    /// One JSON object.
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum PowerWord {
    /// Only look.
    Status,
    On,
    /// The operating system is asked to end, and what is still on after a minute is put off.
    Off,
    /// Off and on again, without asking the operating system.
    Cycle,
}

#[derive(Debug, Args)]
pub struct Doctor {
    /// One JSON object a line, one for each thing that was looked at, and at the end a summary.
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
pub struct Cables {
    /// NetBox slug of the site.
    #[arg(value_name = "SITE")]
    pub of: String,
    /// Only what a host of this rack has a part in.
    #[arg(long, value_name = "RACK")]
    pub rack: Option<String>,
    /// One JSON object a line: each finding with its moves, each cable of which nothing can be said, and a summary.
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Subcommand)]
pub enum PlatformClass {
    /// Fill in the classes that are missing, as an enrollment would: what stands in NetBox is never overwritten. To correct
    /// one, clear the field in NetBox and name the host here.
    Backfill(Backfill),
}

#[derive(Debug, Args)]
pub struct Backfill {
    /// NetBox device names; without them all hosts, or those of --site.
    #[arg(value_name = "HOST")]
    pub hosts: Vec<String>,
    /// Write; without it nothing is changed, and what would be is said.
    #[arg(long)]
    pub apply: bool,
    /// One JSON object a line, one for each host, and at the end a summary.
    #[arg(long)]
    pub json: bool,
}

/// The switches of an enrollment.
#[derive(Debug, Clone, Args)]
pub struct Switches {
    /// Skip the inspection and its checks: a diagnostic bypass that proves no enrollment.
    #[arg(long, conflicts_with = "force_inspection")]
    pub no_inspection: bool,
    /// Inspect afresh even where the data at hand passes every check.
    #[arg(long)]
    pub force_inspection: bool,
    /// Cold-reset the BMC even where no password was rotated.
    #[arg(long)]
    pub force_bmc_restart: bool,
    /// The UUID that the node gets if it is created.
    #[arg(long, value_name = "U")]
    pub node_uuid: Option<NodeUuid>,
    /// Total attempts of each step; 1 fails fast.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100))]
    pub max_attempts: Option<u32>,
}

impl From<&Switches> for EnrollParams {
    fn from(switches: &Switches) -> Self {
        EnrollParams {
            run_inspection: !switches.no_inspection,
            force_inspection: switches.force_inspection,
            force_bmc_restart: switches.force_bmc_restart,
            node_uuid: switches.node_uuid,
            max_attempts: switches.max_attempts,
        }
    }
}

impl Switches {
    /// Changes what is given, and leaves the rest.
    pub fn change(&self, params: &mut EnrollParams) {
        if self.no_inspection || self.force_inspection {
            (params.run_inspection, params.force_inspection) = (!self.no_inspection, self.force_inspection);
        }
        params.force_bmc_restart |= self.force_bmc_restart;
        params.node_uuid = self.node_uuid.or(params.node_uuid);
        params.max_attempts = self.max_attempts.or(params.max_attempts);
    }
}

#[derive(Debug, Subcommand)]
pub enum Runs {
    /// All runs, newest first.
    List {
        /// Only those of this host (NetBox device name).
        #[arg(long, value_name = "HOST")]
        host: Option<String>,
        #[arg(long)]
        json: bool,
    },
    /// One run: phases, waits, changes, failure.
    Show {
        run: String,
        #[arg(long)]
        json: bool,
    },
    /// Two runs side by side, the older one first: phases, failure, inspection, links, changes. What differs is marked.
    Compare {
        #[arg(value_name = "RUN")]
        one: String,
        #[arg(value_name = "RUN")]
        other: String,
        /// What agrees too.
        #[arg(long)]
        all: bool,
        /// One JSON object, with all rows.
        #[arg(long)]
        json: bool,
    },
    /// Follow a run to its end; one that was interrupted is resumed.
    Watch {
        run: String,
        #[arg(long)]
        json: bool,
    },
    /// Run an ended run's host again: with the same switches, and those that are given here.
    Retry {
        run: String,
        #[command(flatten)]
        switches: Switches,
        #[arg(long)]
        json: bool,
    },
    /// End a run at its next await, and follow it to there.
    Cancel {
        run: String,
        #[arg(long)]
        json: bool,
    },
    /// Print a run's whole story, for a ticket or for a script.
    Export {
        run: String,
        /// Markdown, or one JSON object.
        #[arg(long, value_name = "FORMAT", default_value = "md")]
        format: ExportFormat,
    },
    /// Replay a run's journal against this version: its timeline, and where it stands or where they part.
    Replay {
        run: String,
        #[arg(long)]
        json: bool,
    },
}

/// The forms of an export.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum ExportFormat {
    Md,
    Json,
}

#[derive(Debug, Subcommand)]
pub enum Inventory {
    /// Read NetBox and Ironic now.
    Sync {
        #[arg(long)]
        json: bool,
    },
    /// All racked devices.
    List {
        #[arg(long)]
        json: bool,
    },
    /// One device with its interfaces, their addresses, and where their cables go.
    Show {
        host: String,
        #[arg(long)]
        json: bool,
    },
}

#[derive(Debug, Subcommand)]
pub enum Config {
    /// Read the configuration and say everything that is wrong with it.
    Check {
        /// Say of each key whether the file gives it, with its line, or it has its default, and what flags and environment say.
        #[arg(long)]
        origins: bool,
    },
    /// Print a first configuration of what flags give or, in a terminal, questions are answered with; piped and without flags,
    /// an example with every key.
    Init(Init),
    /// Print the JSON schema of the configuration, for an editor that completes and checks while one types.
    Schema,
}

/// The site is `--site`.
#[derive(Debug, Args)]
pub struct Init {
    /// Print the example with every key, and ask nothing.
    #[arg(long)]
    pub example: bool,
    /// Write to this new file, and not to standard output.
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// Where NetBox is.
    #[arg(long, value_name = "URL")]
    pub netbox_url: Option<String>,
    /// Where its token is: env:NAME or file:PATH.
    #[arg(long, value_name = "REF")]
    pub token: Option<String>,
    /// Where Ironic is.
    #[arg(long, value_name = "URL")]
    pub ironic_url: Option<String>,
    /// A device class that this Ironic manages; may be repeated.
    #[arg(long = "device-class", value_name = "CLASS")]
    pub device_classes: Vec<String>,
    /// The site's DHCP host; "none" where DHCP is left alone.
    #[arg(long, value_name = "HOST")]
    pub dhcp_host: Option<String>,
    /// File of the vault, or "env" for variables of the environment.
    #[arg(long, value_name = "FILE|env")]
    pub vault: Option<String>,
}

/// Version with build info (K5).
fn version() -> &'static str {
    concat!(env!("CARGO_PKG_VERSION"), " (", env!("MUSTER_BUILD"), ")")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tui::action::{Action, TABLE};
    use clap::CommandFactory;

    /// What does the same without a screen; `None`: it moves the eye or the screen, and nothing beyond it.
    fn command(action: Action) -> Option<&'static str> {
        use Action::*;
        match action {
            Enroll | Start => Some("muster enroll gpu-1 gpu-2 --force-inspection --max-attempts 2 --json"),
            Plan => Some("muster plan gpu-1 --force-inspection --json"),
            Retry => Some("muster runs retry 3f2a --json"),
            RetryForced => Some("muster runs retry 3f2a --force-inspection --json"),
            Cancel => Some("muster runs cancel 3f2a --json"),
            Locate => Some("muster locate gpu-1 toggle --json"),
            Power => Some("muster power gpu-1 --json"),
            SetPower => Some("muster power gpu-1 cycle --deployed gpu-1 --json"),
            Sync => Some("muster inventory sync --json"),
            // What these show is read by commands.
            Enter => Some("muster runs show 3f2a --json"),
            Filter => Some("muster --site osl1 inventory list --json"),
            Elevation => Some("muster cables osl1 --rack B07 --json"),
            Walk => Some("muster runs list --json"),
            Rewind | Forward | RewindPhase | ForwardPhase => Some("muster runs replay 3f2a --json"),
            History => Some("muster runs list --host gpu-1 --json"),
            Compare => Some("muster runs compare 3f2a 4b1c --json"),
            ShowAll | Copy | Export => Some("muster runs export 3f2a --format json"),
            Up | Down | Left | Right | First | Last | HalfUp | HalfDown | Back | NextPane | PrevPane | Mark => None,
            KeepFilter | NextMatch | PrevMatch | Log | Palette | RunCommand | Help | Toggle | Choose | Other => None,
            Redraw | Suspend | Quit | Exit | Themes | Sort | SortBack => None,
            // The lab's own: POST /faults at its control interface.
            Mend => None,
        }
    }

    /// Proves: G16
    #[test]
    fn every_action_of_the_console_that_does_something_is_a_command_with_json() {
        for def in TABLE {
            let Some(line) = command(def.action) else { continue };
            assert!(line.contains("json"), "{}: {line}", def.name);
            Arguments::try_parse_from(line.split(' ')).unwrap_or_else(|e| panic!("{}: {line}: {e}", def.name));
        }
    }

    #[test]
    fn the_command_line_is_sound() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn the_forms_of_the_contract_are_taken() {
        for line in [
            "muster",
            "muster --config a.toml --state-dir s --site osl1 runs list --json",
            "muster enroll gpu-1 gpu-2 --force-inspection --max-attempts 1 --canary --detach --yes --json",
            "muster enroll gpu-1 --no-inspection --force-bmc-restart --node-uuid 6ba7b810-9dad-41d1-80b4-00c04fd430c8",
            "muster enroll --file rack.txt --yes --skip-refused --canary",
            "muster plan --file rack.txt",
            "muster plan gpu-1 gpu-2 --no-inspection --force-bmc-restart --max-attempts 1 --json",
            "muster plan gpu-1 --force-inspection --node-uuid 6ba7b810-9dad-41d1-80b4-00c04fd430c8",
            "muster locate gpu-1",
            "muster locate gpu-1 off --json",
            "muster power gpu-1",
            "muster power gpu-1 off --hard --yes --json",
            "muster power gpu-1 cycle --deployed gpu-1",
            "muster runs show 3f2a",
            "muster runs watch 3f2a --json",
            "muster runs retry 3f2a --force-inspection --json",
            "muster runs cancel 3f2a --json",
            "muster inventory sync --json",
            "muster inventory show gpu-1 --json",
            "muster runs export 3f2a",
            "muster runs export 3f2a --format md",
            "muster runs export 3f2a --format json",
            "muster runs replay 3f2a",
            "muster lab --scenario x.toml --speed 20 --write-config c.toml",
            "muster demo --speed 20",
            "muster inventory list --json",
            "muster cables osl1 --rack B07 --json",
            "muster config init --example",
            "muster config init --site osl1 --netbox-url https://n --ironic-url https://i --device-class COMPUTE_GPU --out c.toml",
            "muster config check",
            "muster config check --origins",
            "muster config schema",
            "muster completions bash",
            "muster man --all pages",
        ] {
            Arguments::try_parse_from(line.split(' ')).unwrap_or_else(|e| panic!("{line}: {e}"));
        }
        for line in
            ["muster enroll", "muster enroll a --max-attempts 0", "muster enroll a --no-inspection --force-inspection"]
        {
            assert!(Arguments::try_parse_from(line.split(' ')).is_err(), "{line}");
        }
    }
}

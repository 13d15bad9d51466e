//! `muster config …`: says what is wrong with the configuration, and prints an example.

use super::args::{Config, Place};
use super::exit::{Ending, Exit};
use super::{init, open, output};
use crate::config::paths::{CONFIG_VARIABLE, STATE_VARIABLE};
use crate::config::{self, Loaded};

/// Variables of the environment that change what muster does, beside those that stand in for flags.
const VARIABLES: [&str; 4] = ["MUSTER_LOG", "NO_COLOR", "LC_ALL", "LANG"];

pub fn config(place: &Place, command: Config) -> Result<Exit, Ending> {
    match command {
        Config::Init(command) => return init::init(place, command),
        Config::Schema => output::line(&format!("{:#}", config::schema())),
        Config::Check { origins } => {
            let (path, loaded) = open::loaded(place)?;
            for warning in &loaded.warnings {
                output::line(&format!("warning: {}", warning.pointed()));
            }
            output::line(&format!("'{}' is right", path.display()));
            let settings = &loaded.settings;
            for (name, instance) in &settings.ironic {
                output::line(&format!(
                    "  ironic {name}: {} for {}",
                    instance.place(),
                    instance.device_classes.join(", ")
                ));
            }
            for (slug, site) in &settings.sites {
                let gate = |on: bool| if on { "on" } else { "off" };
                let options = &site.options;
                output::line(&format!(
                    "  site {slug}: dhcp {}, bmc {}, ironic {}, platform class {}",
                    gate(options.configure_dhcp),
                    gate(options.configure_bmc),
                    gate(options.ironic_enrol),
                    gate(options.platform_class_activity_ready)
                ));
            }
            if origins {
                tell_origins(place, &path, &loaded);
            }
        }
    }
    Ok(Exit::Done)
}

/// Where everything that was read comes from (K1). Values are not shown: where they are is enough to look.
fn tell_origins(place: &Place, path: &std::path::Path, loaded: &Loaded) {
    let chosen = |flag: &str, given: bool, variable: &str| match (given, std::env::var_os(variable)) {
        // The flag stands before the variable, and both come as one: they are told apart by what was typed.
        (true, _) if typed(flag) => flag.to_owned(),
        (true, Some(_)) => variable.to_owned(),
        _ => "the platform's folder".to_owned(),
    };
    let mut rows = vec![
        (format!("configuration '{}'", path.display()), chosen("--config", place.config.is_some(), CONFIG_VARIABLE)),
        match open::state_dir(place) {
            Ok(state) => (
                format!("state '{}'", state.display()),
                chosen("--state-dir", place.state_dir.is_some(), STATE_VARIABLE),
            ),
            Err(_) => ("state".to_owned(), "nowhere: there is no home folder".to_owned()),
        },
    ];
    rows.extend(place.site.as_ref().map(|site| (format!("site '{site}'"), "--site".to_owned())));
    let set = VARIABLES.iter().filter(|name| std::env::var_os(name).is_some_and(|value| !value.is_empty()));
    rows.extend(set.map(|name| ((*name).to_owned(), "environment".to_owned())));
    let is_table = |key: &str| {
        let inside = format!("{key}.");
        loaded.given.range(inside.clone()..).next().is_some_and(|(next, _)| next.starts_with(&inside))
            || loaded.left_out.range(inside.clone()..).next().is_some_and(|next| next.starts_with(&inside))
    };
    let given =
        loaded.given.iter().filter(|(key, _)| !is_table(key)).map(|(key, line)| (key.clone(), format!("line {line}")));
    let left_out = loaded.left_out.iter().map(|key| (key.clone(), "default".to_owned()));
    let mut keys: Vec<_> = given.chain(left_out).collect();
    keys.sort();
    rows.extend(keys);
    let width = rows.iter().map(|(what, _)| what.chars().count()).max().unwrap_or_default();
    for (what, origin) in rows {
        output::line(&format!("  {what:<width$}  {origin}"));
    }
}

fn typed(flag: &str) -> bool {
    std::env::args().any(|given| given == flag || given.strip_prefix(flag).is_some_and(|rest| rest.starts_with('=')))
}

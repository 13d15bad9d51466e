//! `muster config …`: says what is wrong with the configuration, and prints an example.

use super::args::{Config, Place};
use super::exit::{Ending, Exit};
use super::{open, output};

/// The example that documents every key.
const EXAMPLE: &str = include_str!("../../config.example.toml");

pub fn config(place: &Place, command: Config) -> Result<Exit, Ending> {
    match command {
        Config::Init => output::line(EXAMPLE.trim_end()),
        Config::Check => {
            let (path, settings) = open::settings(place)?;
            output::line(&format!("'{}' is right", path.display()));
            for (name, instance) in &settings.ironic {
                output::line(&format!("  ironic {name}: {} for {}", instance.url, instance.device_classes.join(", ")));
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
        }
    }
    Ok(Exit::Done)
}

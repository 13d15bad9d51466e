//! A plan for the console's views.

use muster::domain::phase::Phase;
use muster::domain::plan::{Gate, Plan, PlannedPhase, PlannedStep, what};

/// A plan in which one entry of the DHCP host is replaced.
pub fn plan_of(host: &str) -> Plan {
    let step = |system: &str, what: &str, target: &str, before: &str, after: &str, write| PlannedStep {
        system: system.into(),
        what: what.into(),
        target: target.into(),
        before: before.into(),
        after: after.into(),
        write,
    };
    let entry = |address: &str| {
        format!("host {host} {{\n  hardware ethernet 02:4d:0a:01:21:00;\n  fixed-address {address};\n}}\n")
    };
    let file = format!("/srv/dhcp/hosts.d/{host}.conf");
    let phases = Phase::ALL.into_iter().map(|phase| {
        let steps = match phase {
            Phase::Dhcp => vec![
                step("dhcp", &file, "dhcp-1.osl1", &entry("10.10.8.34"), &entry("10.10.8.33"), true),
                step("dhcp", what::COMMAND, "dhcp-1.osl1", "", "systemctl restart isc-dhcp-server", true),
            ],
            Phase::Bmc => vec![step("bmc", "hostname", host, "-", host, true)],
            Phase::Inspection => vec![
                step("ironic", what::WAIT, "", "inspection", "at most 40 min", false),
                step(
                    "ironic",
                    what::NOT_FORESEEN,
                    "",
                    "",
                    "inspection: 34 checks will be made on what it brings",
                    false,
                ),
            ],
            Phase::Cleaning => vec![step("ironic", what::WAIT, "", "cleaning", "at most 4 h", false)],
            _ => vec![],
        };
        let gate = if phase == Phase::DriverSwitch { Gate::Off } else { Gate::On };
        let reads = if gate == Gate::On { 2 } else { 0 };
        PlannedPhase { phase, gate, reads, steps }
    });
    Plan { host: host.into(), phases: phases.collect(), writes: 3 }
}

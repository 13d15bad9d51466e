//! Starts the services of a scenario and keeps them together.

use std::net::{Ipv4Addr, SocketAddr, TcpListener as StdListener, UdpSocket as StdSocket};
use std::sync::Arc;

use tokio::net::{TcpListener, UdpSocket};
use tokio::task::JoinHandle;

use super::build::{self, netbox_token, secret};
use super::dhcp_host::{self, DhcpHost};
use super::faults::Fault;
use super::ironic::seed::{Seed, plant};
use super::ironic::{self, Ironic};
use super::ledger::Entry;
use super::scenario::{IronicAuth, Scenario};
use super::world::World;
use super::{LabError, bmc, control, netbox};
use crate::domain::provision::ProvisionState;

/// User of Ironic where it asks for one.
pub const IRONIC_USER: &str = "muster";

/// A running lab. Dropping it ends its services.
pub struct Lab {
    pub(super) scenario: Arc<Scenario>,
    pub(super) world: World,
    pub(super) netbox: SocketAddr,
    pub(super) ironic: SocketAddr,
    pub(super) control: SocketAddr,
    /// The port of every BMC, each on its own address.
    pub(super) bmc_port: u16,
    /// The same for IPMI over LAN, by UDP.
    pub(super) ipmi_port: u16,
    pub(super) dhcp: DhcpHost,
    tasks: Vec<JoinHandle<()>>,
}

impl Lab {
    /// Starts every service on loopback, on ports of its own, with lab time running `speed` times as fast as real time.
    pub async fn start(scenario: Scenario, speed: f64) -> Result<Lab, LabError> {
        let built = build::build(&scenario)?;
        let addresses: Vec<Ipv4Addr> = built.machines.iter().map(|m| m.bmc.address).collect();
        let (bmc_port, bmcs) = bind_bmcs(&addresses, tcp, TcpListener::local_addr)?;
        let (ipmi_port, ipmis) = bind_bmcs(&addresses, udp, UdpSocket::local_addr)?;
        let settings = settings(&scenario);
        let seeds = seeds(&scenario, &built, bmc_port);
        let names: Vec<String> = built.machines.iter().map(|m| m.name.clone()).collect();
        let database = Ironic::new(settings);
        let world = World::new(built.machines, built.records, database, scenario.timing, speed);
        plant(&mut world.lock(), &seeds);
        for fault in &scenario.faults {
            check_fault(fault, &names)?;
            world.add_fault(fault.clone());
        }
        let (netbox_listener, netbox) = bind("NetBox").await?;
        let (ironic_listener, ironic) = bind("Ironic").await?;
        let (control_listener, control) = bind("the control interface").await?;
        let mut tasks = vec![
            netbox::spawn(&world, netbox_listener, &format!("http://{netbox}"), scenario.netbox.max_page_size),
            ironic::spawn(&world, ironic_listener, &format!("http://{ironic}")),
            control::spawn(&world, control_listener),
        ];
        for ((name, listener), socket) in names.iter().zip(bmcs).zip(ipmis) {
            tasks.push(bmc::serve(&world, name, listener)?);
            tasks.push(bmc::ipmi::serve(&world, name, socket));
        }
        let dhcp = dhcp_host::serve(&world).await?;
        Ok(Lab { scenario: Arc::new(scenario), world, netbox, ironic, control, bmc_port, ipmi_port, dhcp, tasks })
    }

    pub fn scenario(&self) -> &Scenario {
        &self.scenario
    }

    pub fn world(&self) -> &World {
        &self.world
    }

    /// Every request since the last reset.
    pub fn ledger(&self) -> Vec<Entry> {
        self.world.ledger().entries()
    }

    pub fn netbox_url(&self) -> String {
        format!("http://{}", self.netbox)
    }

    pub fn ironic_url(&self) -> String {
        format!("http://{}", self.ironic)
    }

    pub fn control_url(&self) -> String {
        format!("http://{}", self.control)
    }

    /// Where the DHCP host's SSH listens.
    pub fn ssh_addr(&self) -> SocketAddr {
        self.dhcp.addr()
    }

    /// The DHCP host, for tests that look at its files.
    pub fn dhcp_host(&self) -> &DhcpHost {
        &self.dhcp
    }

    /// The port on which every BMC listens, each on its own address.
    pub fn bmc_port(&self) -> u16 {
        self.bmc_port
    }

    /// The UDP port on which every BMC answers IPMI, each on its own address.
    pub fn ipmi_port(&self) -> u16 {
        self.ipmi_port
    }

    /// The token of the configuration for muster.
    pub fn netbox_token(&self) -> String {
        netbox_token(self.scenario.netbox.token_version, "muster")
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        for task in &self.tasks {
            task.abort();
        }
    }
}

/// What the scenario's operator of Ironic has configured.
pub(super) fn settings(scenario: &Scenario) -> ironic::Settings {
    ironic::Settings {
        pre_create_ports: scenario.ironic.pre_create_ports,
        parse_lldp: scenario.ironic.parse_lldp,
        basic: (scenario.ironic.auth == IronicAuth::HttpBasic).then(|| (IRONIC_USER.to_owned(), ironic_password())),
    }
}

/// The password of [`IRONIC_USER`].
pub fn ironic_password() -> String {
    secret(&["ironic"], 12)
}

/// A fault is about a device that there is.
fn check_fault(fault: &Fault, names: &[String]) -> Result<(), LabError> {
    match fault.device() {
        Some(device) if !names.iter().any(|n| n == device) => {
            Err(LabError::Scenario(format!("a fault names the device '{device}', which is no host of the scenario")))
        }
        _ => Ok(()),
    }
}

async fn bind(what: &str) -> Result<(TcpListener, SocketAddr), LabError> {
    let failed = |source| LabError::Listen { what: what.to_owned(), source };
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.map_err(failed)?;
    let addr = listener.local_addr().map_err(failed)?;
    Ok((listener, addr))
}

/// Binds every BMC's own address at one port that is free on all of them.
fn bind_bmcs<T>(
    addresses: &[Ipv4Addr],
    bind: fn((Ipv4Addr, u16)) -> std::io::Result<T>,
    addr: fn(&T) -> std::io::Result<SocketAddr>,
) -> Result<(u16, Vec<T>), LabError> {
    let [first, others @ ..] = addresses else { return Ok((0, vec![])) };
    let bind_all = || {
        let mut bound = vec![bind((*first, 0))?];
        let port = addr(&bound[0])?.port();
        for address in others {
            bound.push(bind((*address, port))?);
        }
        Ok((port, bound))
    };
    let mut last_error = None;
    for _ in 0..20 {
        match bind_all() {
            Ok(found) => return Ok(found),
            Err(e) => last_error = Some(e),
        }
    }
    let source = last_error.unwrap_or_else(|| std::io::ErrorKind::AddrInUse.into());
    Err(LabError::Listen { what: format!("the BMC addresses ({first}, …)"), source })
}

fn tcp(at: (Ipv4Addr, u16)) -> std::io::Result<TcpListener> {
    let listener = StdListener::bind(at)?;
    listener.set_nonblocking(true)?;
    TcpListener::from_std(listener)
}

fn udp(at: (Ipv4Addr, u16)) -> std::io::Result<UdpSocket> {
    let socket = StdSocket::bind(at)?;
    socket.set_nonblocking(true)?;
    UdpSocket::from_std(socket)
}

/// The nodes that a scenario wants to be there.
pub(super) fn seeds(scenario: &Scenario, built: &build::Built, bmc_port: u16) -> Vec<Seed> {
    let hosts = scenario.hosts.iter().filter_map(|host| Some((host, host.node.as_deref()?)));
    hosts
        .filter_map(|(host, state)| {
            let device = built.records.device_named(&host.name)?;
            let machine = built.machines.iter().find(|m| m.name == host.name)?;
            Some(Seed {
                name: host.name.clone(),
                state: ProvisionState::from(state),
                instance: host.instance,
                owner: scenario.ironic.project.clone(),
                settings: device.config_context["ironic_settings"].clone(),
                redfish_address: format!("http://{}:{bmc_port}", machine.bmc.address),
            })
        })
        .collect()
}

//! The BMCs of the lab: one Redfish server per machine, on the machine's own loopback address.
//!
//! Entry point, called once per machine by `Lab::start`, which has bound the listener:
//! `pub fn serve(world: &World, device: &str, listener: TcpListener) -> Result<JoinHandle<()>, LabError>`.

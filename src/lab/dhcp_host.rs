//! The DHCP host of the lab: an SSH server with SFTP and the commands of a DHCP service.
//!
//! Entry point, called once by `Lab::start`: `pub async fn serve(world: &World) -> Result<DhcpHost, LabError>`.

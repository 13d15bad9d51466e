//! A simulated site on loopback: NetBox, Ironic, BMCs, a DHCP host.

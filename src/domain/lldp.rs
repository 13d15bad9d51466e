//! Reads what a switch says of itself on a cable: LLDP, parsed or raw (IEEE 802.1AB).

//! Renders and checks a device's DHCP entry (D2).

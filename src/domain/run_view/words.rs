//! What an activity does, in words for a screen.

/// The words for an activity's journaled name; the name itself where this version has none.
pub fn activity_words(name: &str) -> &str {
    match name {
        "netbox.status_gate" => "reading the device's status in NetBox",
        "netbox.platform_class" => "computing and recording the platform class",
        "netbox.activate" => "setting the device active in NetBox",
        "netbox.add_tag" => "tagging the device in NetBox",
        "dhcp.configure" => "bringing the DHCP entry to its server",
        "bmc.prepare" => "finding the BMC's vendor, proving its credential",
        "bmc.reset" => "restarting the BMC",
        "bmc.back" => "looking whether the BMC is back",
        "bmc.configure" => "converging the BMC's settings",
        "bmc.read_links" => "reading the links at the BMC",
        "ironic.prelude" => "finding or creating the node, converging it",
        "ironic.networking" => "creating portgroup and ports",
        "ironic.manage" => "asking Ironic to manage the node",
        "ironic.look" => "looking at the node",
        "ironic.raid_target" => "applying the RAID target",
        "ironic.verify" => "checking the inventory against NetBox",
        "ironic.inspect" => "asking Ironic to inspect the node",
        "ironic.put_back" => "putting maintenance back",
        "ironic.abort" => "aborting in Ironic",
        "ironic.power_on" => "powering the node on",
        "ironic.switch_driver" => "switching the driver to ipmi",
        "ironic.provide" => "asking Ironic to clean and provide the node",
        "fleet.prove" => "recording the enrollment proof",
        other => other,
    }
}

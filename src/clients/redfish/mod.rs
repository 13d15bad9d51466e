//! Redfish, thin and tolerant.

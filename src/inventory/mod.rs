//! The observers of NetBox and Ironic, and their projections.

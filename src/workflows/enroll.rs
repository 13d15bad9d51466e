//! Enrollment: from a racked host in NetBox to a schedulable Ironic node in `available`.

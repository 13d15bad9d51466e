//! Says whether a device may be enrolled, and if not, what to mend where (S1).

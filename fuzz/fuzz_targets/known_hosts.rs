#![no_main]

muster_fuzz::fuzz!();

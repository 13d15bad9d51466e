//! Computes a device's platform class key (P2–P8).

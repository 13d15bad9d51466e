//! Judges an inspected inventory against what NetBox records (V1–V9).

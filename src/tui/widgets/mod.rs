//! What views draw with.

pub mod bar;
pub mod cable;
pub mod field;
pub mod frame;
pub mod pen;
pub mod refusal;

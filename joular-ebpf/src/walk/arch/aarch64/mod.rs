//! Supports aarch64, by the procedure call standard and as HotSpot uses it.

mod registers;

pub use registers::Registers;

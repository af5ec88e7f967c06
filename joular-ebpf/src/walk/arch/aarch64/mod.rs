//! Supports aarch64, by its procedure call standard and as HotSpot uses it.
//!
//! A call leaves its return address in the link register. Code that calls others keeps it in its frame, beside the
//! caller's frame pointer. So where the return address of interrupted code is depends on what that code has done, and a
//! frame pointer does not tell where the frame ends.

mod colours;
pub(in crate::walk) mod compiled;
mod instructions;
pub mod interpreter;
#[cfg(test)]
pub(in crate::walk) mod made_up;
pub(in crate::walk) mod native;
mod registers;
pub(in crate::walk) mod signal_frame;
mod spills;
pub(in crate::walk) mod stub;
#[cfg(test)]
mod tests;

pub use super::aarch64::dwarf;
pub use colours::uncoloured;
pub(in crate::walk) use instructions::{code_address, is_returned_to};
pub use registers::Registers;

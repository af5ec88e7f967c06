//! Supports x86-64, by the System V ABI and as HotSpot uses it.

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

pub use super::x86_64::dwarf;
pub use colours::uncoloured;
pub(in crate::walk) use instructions::{code_address, is_returned_to};
pub use registers::Registers;

//! Supports x86-64, by the System V ABI and as HotSpot uses it.

mod colours;
pub(in crate::walk) mod compiled;
mod instructions;
pub mod interpreter;
pub mod plt;
mod registers;
pub(in crate::walk) mod signal_frame;
mod spills;
pub(in crate::walk) mod stub;

pub use colours::uncoloured;
pub(in crate::walk) use instructions::{ends_with_call, is_deopt_handler};
pub use registers::{Registers, dwarf};

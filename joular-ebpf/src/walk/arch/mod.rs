//! Contains what of a walk depends on the processor: a folder for each architecture, with the same
//! names in each.
//!
//! - `Registers`: those that a walk needs, and what HotSpot keeps in them;
//! - `dwarf`, `plt`: numbers of registers in unwind tables, the code of linkage tables;
//! - `signal_frame`: what the kernel leaves on a stack that a signal interrupted;
//! - what a return address looks like (`ends_with_call`, `is_deopt_handler`), and how compiled code makes
//!   and removes its frame (`compiled`);
//! - how a collector colours references (`uncoloured`);
//! - the layouts of the interpreter's frame (`interpreter`) and of stubs (`stub`).
//!
//! A second architecture is a folder beside, and this file chooses one. What depends on the
//! processor in the programs themselves is in `unwind/arch` of their binary.

pub mod aarch64;
mod x86_64;

pub use x86_64::{Registers, dwarf, interpreter, plt, uncoloured};
pub(super) use x86_64::{compiled, ends_with_call, is_deopt_handler, signal_frame, stub};

//! Contains what of a walk depends on the processor: a folder for each architecture, with the same
//! names in each.
//!
//! - `Registers`: those that a walk needs, and what HotSpot keeps in them;
//! - `dwarf`: numbers of registers in unwind tables;
//! - `native`: what a row of unwind tables says, and whether a call pushes its return address;
//! - `signal_frame`: what the kernel leaves on a stack that a signal interrupted;
//! - what a return address looks like (`code_address`, `is_returned_to`), and how compiled
//!   code makes and removes its frame (`compiled`);
//! - how a collector colours references (`uncoloured`);
//! - the layouts of the interpreter's frame (`interpreter`) and of stubs (`stub`).
//!
//! This file chooses one. What unwind tables are read by is there for all of them, as a program may read tables of
//! another machine. What depends on the processor in the programs themselves is in `unwind/arch` of their binary.

/// Of x86-64, wherever this runs.
pub mod x86_64 {
    pub mod dwarf;
    pub mod plt;
}

/// Of aarch64, wherever this runs.
pub mod aarch64 {
    pub mod dwarf;
}

#[cfg(any(bpf_target_arch = "aarch64", target_arch = "aarch64", feature = "aarch64"))]
#[path = "aarch64/mod.rs"]
mod chosen;
#[cfg(not(any(bpf_target_arch = "aarch64", target_arch = "aarch64", feature = "aarch64")))]
#[path = "x86_64/mod.rs"]
mod chosen;

#[cfg(test)]
pub(super) use chosen::made_up;
pub use chosen::{Registers, dwarf, interpreter, uncoloured};
pub(super) use chosen::{code_address, compiled, is_returned_to, native, signal_frame, stub};
pub use x86_64::plt;

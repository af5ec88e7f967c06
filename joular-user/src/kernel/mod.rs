//! Wraps the kernel side for user space. Only this folder knows aya.
//!
//! [`programs`] loads and attaches, [`banks`] keeps the window boundary and reads what was counted,
//! [`unwind_maps`] writes the tables by which stacks are walked, [`boundary`] passes from one
//! window to the next, [`sampler`] chooses what takes samples, [`interrupts`] finds the timer's, [`told`] of which processes the programs tell, [`probes`] opens probes in JVMs,
//! [`cycles`] opens the counters of cycles, [`mod@counters`] those of `--counters`, [`btf`] finds where the running
//! kernel keeps the fields the programs read, [`features`] says what this kernel can do,
//! [`cost`] what the programs themselves cost, and `hinted_pages` where the kernel has pages that cannot be read at their
//! address.

pub mod allocations;
mod array_write;
mod bank_maps;
pub mod banks;
mod batch;
pub mod boundary;
pub mod btf;
pub mod core_types;
pub mod cost;
pub mod counters;
pub mod cpus;
pub mod cycles;
mod error;
pub mod features;
mod hinted_pages;
pub mod interrupts;
pub mod io;
mod isolated;
mod kallsyms;
mod log;
mod lsm;
mod map_sizes;
pub mod probes;
pub mod programs;
pub mod roots;
pub mod sampler;
#[cfg(test)]
mod sampler_simulation;
#[cfg(test)]
mod stack_depth;
pub mod told;
mod type_info;
pub mod unwind_maps;
mod uprobe_multi;

pub use banks::{BankContents, Banks};
pub use cycles::CycleEvent;
pub use error::{KernelError, Remedy};
pub use programs::{LoadOptions, Loaded, Programs, Ring};
pub use sampler::Sampler;
pub use told::Told;
pub use unwind_maps::UnwindMaps;

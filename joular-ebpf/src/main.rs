//! Contains the eBPF programs of joular-bpf.
//!
//! Three kinds of probes (`probes`) share one accounting routine (`task`), which asks the other
//! hyper-thread (`corun`), the cycle counter (`cycles`) and other counters (`counters`) about a slice. They count bytes
//! that threads move (`io`), read stacks (`unwind`) and send what is new to user space (`emit`). `maps` is all their
//! state.
#![cfg_attr(target_arch = "bpf", no_std, no_main)]
// The programs are single-threaded per CPU and talk to the kernel through
// helpers; each unsafe block says what it relies on.

#[cfg(target_arch = "bpf")]
mod corun;
#[cfg(target_arch = "bpf")]
mod counters;
#[cfg(target_arch = "bpf")]
mod cycles;
#[cfg(target_arch = "bpf")]
mod emit;
#[cfg(target_arch = "bpf")]
mod io;
#[cfg(target_arch = "bpf")]
mod maps;
#[cfg(target_arch = "bpf")]
mod probes;
#[cfg(target_arch = "bpf")]
mod sampling;
#[cfg(target_arch = "bpf")]
mod task;
#[cfg(target_arch = "bpf")]
mod unwind;

/// The host build of this binary exists so that workspace-wide commands
/// (`cargo test`, `cargo clippy`) pass without a BPF target.
#[cfg(not(target_arch = "bpf"))]
fn main() {}

#[cfg(target_arch = "bpf")]
#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    // The verifier rejects a program in which this could be reached.
    loop {}
}

/// Helpers such as `bpf_get_stack` are for GPL-compatible programs only.
#[cfg(target_arch = "bpf")]
#[unsafe(link_section = "license")]
#[unsafe(no_mangle)]
static LICENSE: [u8; 13] = *b"Dual MIT/GPL\0";

//! Finds the interrupts of the CPUs' timers: where the programs see them, and what of a kernel stack is theirs. It depends on
//! the processor: a file for each.

use std::{
    fs::{self, File},
    io::{self, BufReader},
};

use aya::EbpfLoader;

use super::{kallsyms::Symbol, roots::KernelRoots};

// Tests are of both.
#[cfg(any(test, target_arch = "aarch64"))]
mod aarch64;
#[cfg(any(test, not(target_arch = "aarch64")))]
pub(super) mod x86_64;

#[cfg(target_arch = "aarch64")]
pub(super) use aarch64::{TRACEPOINT, find};
#[cfg(not(target_arch = "aarch64"))]
pub(super) use x86_64::{TRACEPOINT, find};

/// First and last address of a function of the kernel; zeros: it has none of that name.
type Range = [u64; 2];

/// What the programs have to know of timer interrupts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TimerInterrupts {
    /// The kernel's entries, which are the last frames of an interrupt in a kernel stack.
    timer: Range,
    other: Range,
    /// For 32-bit code, where that has an entry of its own.
    compat: Range,
    /// The interrupt's number, where the tracepoint is in all interrupts.
    number: u32,
    /// Addresses of the kernel's variables `__irq_regs` and `__per_cpu_offset`, where they are needed; else 0.
    irq_regs: u64,
    per_cpu_offset: u64,
}

impl TimerInterrupts {
    /// Tells the programs. x86-64's have variables for two entries only.
    pub(super) fn tell<'a>(&'a self, loader: &mut EbpfLoader<'a>) {
        loader.override_global("TIMER_ENTRY", &self.timer, true);
        loader.override_global("OTHER_TIMER_ENTRY", &self.other, true);
        if cfg!(target_arch = "aarch64") {
            loader.override_global("COMPAT_TIMER_ENTRY", &self.compat, true);
            loader.override_global("TIMER_INTERRUPT", &self.number, true);
            loader.override_global("IRQ_REGS", &self.irq_regs, true);
            loader.override_global("PER_CPU_OFFSET", &self.per_cpu_offset, true);
        }
    }
}

/// Checks that CPUs have a timer whose name begins so, which is `whose`. Each CPU has the same kind.
fn require_timer(roots: &KernelRoots, begin: &str, whose: &str) -> Result<(), String> {
    let device = roots.system.join("clockevents/clockevent0/current_device");
    let device = fs::read_to_string(device).unwrap_or_default();
    if device.starts_with(begin) {
        return Ok(());
    }
    let device = if device.trim().is_empty() { "unknown" } else { device.trim() };
    Err(format!("the CPUs' timer is {device}, not {whose}"))
}

/// Finds something among the kernel's symbols; `None` if addresses are hidden or there is no such entry.
fn among_symbols<T>(
    roots: &KernelRoots,
    find: impl FnOnce(BufReader<File>) -> io::Result<Option<T>>,
) -> Result<T, String> {
    let path = roots.proc.join("kallsyms");
    let found = File::open(&path).and_then(|file| find(BufReader::new(file)));
    let found = found.map_err(|error| format!("reading {}: {error}", path.display()))?;
    found.ok_or_else(|| format!("{} does not say where the kernel enters timer interrupts", path.display()))
}

/// Functions of the kernel, by their names. A symbol ends where the next one in memory begins.
struct Functions<const N: usize> {
    names: [&'static [u8]; N],
    starts: [u64; N],
    /// Where all functions begin that were seen.
    code: Vec<u64>,
}

impl<const N: usize> Functions<N> {
    const fn named(names: [&'static [u8]; N]) -> Self {
        Self { names, starts: [0; N], code: Vec::new() }
    }

    /// Takes note of a symbol, if it is of code.
    fn see(&mut self, symbol: &Symbol<'_>) {
        if !matches!(symbol.kind, b't' | b'T') {
            return;
        }
        self.code.push(symbol.address);
        let wanted = self.names.iter().zip(&mut self.starts).find(|(name, _)| **name == symbol.name);
        if let Some((_, start)) = wanted {
            *start = symbol.address;
        }
    }

    fn ranges(&self) -> [Range; N] {
        self.starts.map(|start| match start {
            0 => [0, 0],
            start => [start, self.code.iter().filter(|next| **next > start).min().map_or(start, |next| next - 1)],
        })
    }
}

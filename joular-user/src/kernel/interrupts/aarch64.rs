//! Finds the interrupts of the architecture's timer, which each CPU has.
//!
//! There is no tracepoint of their own. The programs see all interrupts (`irq_handler_entry`), with the number of the
//! interrupt, which is the same for all CPUs.

use std::{
    fs,
    io::{self, BufRead},
    ops::ControlFlow,
};

use super::{
    super::{kallsyms, roots::KernelRoots},
    Functions, TimerInterrupts, among_symbols, require_timer,
};

/// Where handlers of interrupts begin.
#[cfg(target_arch = "aarch64")]
pub(in super::super) const TRACEPOINT: &str = "irq_handler_entry";

/// The timer's name among interrupts (drivers/clocksource/arm_arch_timer.c).
const TIMER: &str = "arch_timer";

/// The interrupts, or why they cannot be seen.
pub(in super::super) fn find(roots: &KernelRoots) -> Result<TimerInterrupts, String> {
    require_timer(roots, "arch_sys_timer", "the architecture's")?;
    let path = roots.proc.join("interrupts");
    let rows = fs::read_to_string(&path).map_err(|error| format!("reading {}: {error}", path.display()))?;
    let number = number_in(&rows).ok_or_else(|| format!("{} has no {TIMER}", path.display()))?;
    let found = among_symbols(roots, entries_in)?;
    Ok(TimerInterrupts { number, ..found })
}

/// Number of the timer's interrupt, from rows like ` 11:   1200   1100  GICv3  27 Level  arch_timer`. The kernel may have
/// asked for two, of which one comes.
fn number_in(rows: &str) -> Option<u32> {
    let of_timer = rows.lines().filter_map(|row| {
        let mut words = row.split_ascii_whitespace();
        let number = words.next()?.strip_suffix(':')?.parse::<u32>().ok()?;
        if words.next_back()? != TIMER {
            return None;
        }
        let counts = words.map_while(|word| word.parse::<u64>().ok());
        Some((counts.fold(0, u64::saturating_add), number))
    });
    of_timer.max().map(|(_, number)| number)
}

/// Finds the kernel's entries for interrupts among its symbols: of the kernel, of user code, and of 32-bit code. A kernel
/// without the variables leaves them 0.
fn entries_in(lines: impl BufRead) -> io::Result<Option<TimerInterrupts>> {
    const NAMES: [&[u8]; 3] = [b"el1h_64_irq", b"el0t_64_irq", b"el0t_32_irq"];
    let mut functions = Functions::named(NAMES);
    let (mut irq_regs, mut per_cpu_offset) = (0, 0);
    kallsyms::each(lines, |symbol| {
        functions.see(&symbol);
        match symbol.name {
            b"__irq_regs" => irq_regs = symbol.address,
            b"__per_cpu_offset" => per_cpu_offset = symbol.address,
            _ => {}
        }
        // The kernel lists its code before its variables.
        if irq_regs != 0 && per_cpu_offset != 0 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    })?;
    let [timer, other, compat] = functions.ranges();
    let is_known = timer != [0, 0] && other != [0, 0];
    Ok(is_known.then_some(TimerInterrupts { timer, other, compat, irq_regs, per_cpu_offset, number: 0 }))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SYMBOLS: &str = "ffffd7e3c0e10000 T _text
ffffd7e3c0e11500 t el1h_64_irq
ffffd7e3c0e11580 t el1h_64_fiq
ffffd7e3c0e11700 t el0t_64_sync
ffffd7e3c0e11780 t el0t_64_irq
ffffd7e3c0e11900 t el0t_64_fiq
ffffd7e3c0e11b00 t el0t_32_irq
ffffd7e3c0e11c80 t el0t_32_fiq
ffffd7e3c2345678 D __per_cpu_offset
ffffd7e3c2440010 D __irq_regs
";

    const INTERRUPTS: &str = "           CPU0       CPU1
 10:          0          0     GICv3  29 Level     arch_timer
 11:       5032       4711     GICv3  30 Level     arch_timer
 14:          0          0     GICv3  27 Level     kvm guest vtimer
 20:      90000      90000     GICv3  78 Edge      virtio0-requests
IPI0:       212        199       Rescheduling interrupts
Err:          0
";

    fn entries(symbols: &str) -> Option<TimerInterrupts> {
        entries_in(symbols.as_bytes()).unwrap()
    }

    #[test]
    fn the_timers_interrupt_is_the_one_that_comes() {
        assert_eq!(number_in(INTERRUPTS), Some(11));
        assert_eq!(number_in(&INTERRUPTS.replace("arch_timer", "arch_mem_timer")), None);
        assert_eq!(number_in(""), None);
        assert_eq!(number_in("arch_timer\n: arch_timer\nx: 1 arch_timer\n"), None);
    }

    #[test]
    fn interrupts_of_the_kernel_of_user_code_and_of_32_bit_code_have_entries_of_their_own() {
        let expected = TimerInterrupts {
            timer: [0xffff_d7e3_c0e1_1500, 0xffff_d7e3_c0e1_157f],
            other: [0xffff_d7e3_c0e1_1780, 0xffff_d7e3_c0e1_18ff],
            compat: [0xffff_d7e3_c0e1_1b00, 0xffff_d7e3_c0e1_1c7f],
            number: 0,
            irq_regs: 0xffff_d7e3_c244_0010,
            per_cpu_offset: 0xffff_d7e3_c234_5678,
        };
        assert_eq!(entries(SYMBOLS), Some(expected));
        let no_variables = SYMBOLS.replace("__irq_regs", "other").replace("__per_cpu_offset", "another");
        assert_eq!(entries(&no_variables), Some(TimerInterrupts { irq_regs: 0, per_cpu_offset: 0, ..expected }));
        let no_compat = SYMBOLS.replace("el0t_32_irq", "other");
        assert_eq!(entries(&no_compat), Some(TimerInterrupts { compat: [0, 0], ..expected }));
        assert_eq!(entries(&SYMBOLS.replace("el0t_64_irq", "el0_irq")), None);
    }

    #[test]
    fn other_timers_and_hidden_symbols_are_said() {
        let root = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        let found = || find(&KernelRoots::below(root.path()));
        let device = "system/clockevents/clockevent0/current_device";
        write(device, "timer-riscv\n");
        assert!(found().unwrap_err().contains("timer is timer-riscv"));
        write(device, "arch_sys_timer\n");
        assert!(found().unwrap_err().contains("interrupts"));
        write("proc/interrupts", INTERRUPTS);
        assert!(found().unwrap_err().contains("kallsyms"));
        let hidden: String = SYMBOLS.lines().map(|line| format!("0000000000000000{}\n", &line[16..])).collect();
        write("proc/kallsyms", &hidden);
        assert!(found().unwrap_err().contains("does not say where"));
        write("proc/kallsyms", SYMBOLS);
        let found = found().unwrap();
        assert_eq!((found.number, found.timer[0]), (11, 0xffff_d7e3_c0e1_1500));
    }

    proptest::proptest! {
        #[test]
        fn no_file_panics(bytes: Vec<u8>, rows: String) {
            let _ = entries_in(bytes.as_slice());
            let _ = number_in(&rows);
        }
    }
}

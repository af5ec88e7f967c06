//! Finds the interrupts of the local APIC's timer.

use std::{
    io::{self, BufRead},
    ops::ControlFlow,
};

use super::{
    super::{kallsyms, roots::KernelRoots},
    Functions, TimerInterrupts, among_symbols, require_timer,
};

/// Where timer interrupts of the local APIC begin.
#[cfg(not(target_arch = "aarch64"))]
pub(in super::super) const TRACEPOINT: &str = "local_timer_entry";

/// The interrupts, or why they cannot be seen.
pub(in super::super) fn find(roots: &KernelRoots) -> Result<TimerInterrupts, String> {
    // `lapic-deadline` is the same timer in another mode.
    require_timer(roots, "lapic", "the local APIC's")?;
    among_symbols(roots, entries_in)
}

/// Finds the entries among the kernel's symbols. On processors with FRED there are two more, for all interrupts. All
/// entries are in one section, whose end has a name; what follows it takes the kernel long to list.
fn entries_in(lines: impl BufRead) -> io::Result<Option<TimerInterrupts>> {
    const NAMES: [&[u8]; 3] =
        [b"asm_sysvec_apic_timer_interrupt", b"asm_fred_entrypoint_user", b"asm_fred_entrypoint_kernel"];
    const SECTION_END: &[u8] = b"__entry_text_end";
    let mut functions = Functions::named(NAMES);
    kallsyms::each(lines, |symbol| {
        functions.see(&symbol);
        let [timer, ..] = functions.starts;
        if symbol.name == SECTION_END && timer != 0 && timer < symbol.address {
            return ControlFlow::Break(());
        }
        ControlFlow::Continue(())
    })?;
    let [timer, from_user, from_kernel] = functions.ranges();
    if timer == [0, 0] {
        return Ok(None);
    }
    let has_fred = from_user[0] != 0 && from_kernel[0] > from_user[0];
    let other = if has_fred { [from_user[0], from_kernel[1]] } else { [0, 0] };
    Ok(Some(TimerInterrupts { timer, other, ..TimerInterrupts::default() }))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SYMBOLS: &str = "ffffffff81000000 T _text
ffffffff81001000 t one
ffffffff81002000 T asm_sysvec_apic_timer_interrupt
ffffffff81002040 T asm_sysvec_reboot
ffffffff82000000 D data
ffffffffc0000000 t in_a_module\t[module]
";

    fn entries(symbols: &str) -> Option<TimerInterrupts> {
        entries_in(symbols.as_bytes()).unwrap()
    }

    #[test]
    fn an_entry_ends_where_the_next_function_begins() {
        let found = entries(SYMBOLS).unwrap();
        assert_eq!(found.timer, [0xffff_ffff_8100_2000, 0xffff_ffff_8100_203f]);
        assert_eq!(found.other, [0, 0]);
    }

    #[test]
    fn symbols_behind_the_section_of_entries_are_not_read() {
        let symbols = SYMBOLS.replace("82000000 D data", "82000000 T __entry_text_end");
        let mut unread = symbols.as_bytes();
        assert_eq!(entries_in(&mut unread).unwrap(), entries(SYMBOLS));
        assert_eq!(unread, b"ffffffffc0000000 t in_a_module\t[module]\n");
    }

    #[test]
    fn processors_with_fred_enter_by_two_functions_in_a_row() {
        let symbols = SYMBOLS.to_owned()
            + "ffffffff81003000 T asm_fred_entrypoint_user\nffffffff81003100 T asm_fred_entrypoint_kernel\nffffffff81003200 T next\n";
        assert_eq!(entries(&symbols).unwrap().other, [0xffff_ffff_8100_3000, 0xffff_ffff_8100_31ff]);
    }

    #[test]
    fn hidden_or_missing_symbols_are_no_entries() {
        assert_eq!(entries("0000000000000000 T asm_sysvec_apic_timer_interrupt\n"), None);
        assert_eq!(entries("ffffffff81000000 T _text\n"), None);
        assert_eq!(entries(""), None);
    }

    proptest::proptest! {
        #[test]
        fn no_symbol_file_panics(bytes: Vec<u8>) {
            let _ = entries_in(bytes.as_slice());
        }
    }
}

//! Reads the kernel's own symbols as a stream (`/proc/kallsyms`), and the few addresses that the programs need of them.

use std::{
    io::{self, BufRead, Read as _},
    ops::ControlFlow,
};

/// Most bytes of a line.
const MAX_LINE_BYTES: u64 = 1024;

/// A line: `ffffffff81000000 T _text`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Symbol<'a> {
    pub address: u64,
    /// As `nm` has it: `T` and `t` are code.
    pub kind: u8,
    pub name: &'a [u8],
}

/// Hands on each symbol, in the file's order, until told to stop.
pub(super) fn each(mut lines: impl BufRead, mut take: impl FnMut(Symbol<'_>) -> ControlFlow<()>) -> io::Result<()> {
    let mut line = Vec::new();
    while lines.by_ref().take(MAX_LINE_BYTES).read_until(b'\n', &mut line)? > 0 {
        if let Some(symbol) = symbol(&line)
            && take(symbol).is_break()
        {
            break;
        }
        line.clear();
    }
    Ok(())
}

fn symbol(line: &[u8]) -> Option<Symbol<'_>> {
    let mut words = line.split(|byte| byte.is_ascii_whitespace());
    let address = std::str::from_utf8(words.next()?).ok()?;
    let address = u64::from_str_radix(address, 16).ok()?;
    let [kind] = *words.next()? else { return None };
    Some(Symbol { address, kind, name: words.next()? })
}

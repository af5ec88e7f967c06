//! Names kernel code, from `/proc/kallsyms`.
//!
//! It is read as a stream, once, when the first kernel address is asked for. Of some 150 000 lines
//! the text symbols are kept: the offset from the first one (the kernel and its modules lie within
//! 4 GiB), and the name's place in one blob. That is about 4 MiB instead of the 20 of a vector of
//! strings.

use std::{
    fs::File,
    io::{self, BufRead, BufReader},
    path::{Path, PathBuf},
};

use joular_data::model::{
    frame::{Frame, FrameKind},
    target_text::TargetText,
    units::Address,
};
use thiserror::Error;

use crate::bounds::Bound;

/// Symbols kept; a distribution's kernel with all its modules has 200 000.
const MAX_SYMBOLS: usize = 1 << 20;
const MAX_NAMES_BYTES: usize = 48 << 20;
const MAX_LINE_BYTES: u64 = 1024;
pub static SYMBOLS: Bound = Bound::new(
    "kernel_symbols_not_kept",
    MAX_SYMBOLS as u64,
    "functions of the kernel, and 48 MiB of their names",
    "the rest is named by the function before it",
);
/// Code behind a symbol that still counts as its own: kallsyms has no sizes.
const MAX_DISTANCE: u64 = 1 << 20;

#[derive(Debug, Error)]
pub enum KernelSymbolsError {
    #[error("reading kernel symbols from {}: {source}", .path.display())]
    Read { path: PathBuf, source: io::Error },
    #[error(
        "reading kernel symbols from {}: all addresses are 0: kernel.kptr_restrict hides symbols: run as root or set kernel.kptr_restrict=0",
        .path.display()
    )]
    Hidden { path: PathBuf },
    #[error("reading kernel symbols from {}: no text symbol in it", .path.display())]
    Empty { path: PathBuf },
}

#[derive(Clone, Copy, Debug)]
struct KernelSymbol {
    /// From `base`.
    offset: u32,
    /// Where in `names` the name starts; it ends where the next one starts.
    name: u32,
    /// Index into `modules`.
    module: u16,
}

/// The kernel's text symbols.
#[derive(Debug, Default)]
pub struct KernelSymbols {
    base: u64,
    entries: Box<[KernelSymbol]>,
    names: Box<str>,
    /// The first is the kernel itself, nameless.
    modules: Vec<Box<str>>,
}

impl KernelSymbols {
    pub fn read(path: &Path) -> Result<Self, KernelSymbolsError> {
        let failed = |source| KernelSymbolsError::Read { path: path.to_owned(), source };
        let file = File::open(path).map_err(failed)?;
        let mut builder = Builder::new();
        builder.lines(BufReader::new(file)).map_err(failed)?;
        match builder.finish() {
            Ok(symbols) => Ok(symbols),
            Err(Nothing::Hidden) => Err(KernelSymbolsError::Hidden { path: path.to_owned() }),
            Err(Nothing::Empty) => Err(KernelSymbolsError::Empty { path: path.to_owned() }),
        }
    }

    fn symbol(&self, address: Address) -> Option<&KernelSymbol> {
        let offset = address.0.checked_sub(self.base)?;
        let after = self.entries.partition_point(|entry| u64::from(entry.offset) <= offset);
        let entry = self.entries.get(after.checked_sub(1)?)?;
        (offset - u64::from(entry.offset) < MAX_DISTANCE).then_some(entry)
    }

    /// Where the function at an address starts.
    pub fn function_start(&self, address: Address) -> Option<Address> {
        Some(Address(self.base.saturating_add(u64::from(self.symbol(address)?.offset))))
    }

    pub fn lookup(&self, address: Address) -> Option<Frame> {
        let entry = self.symbol(address)?;
        let rest = self.names.get(usize::try_from(entry.name).ok()?..)?;
        let name = rest.split('\n').next()?;
        let module = self.modules.get(usize::from(entry.module)).filter(|module| !module.is_empty());
        Some(Frame { module: module.map(|module| TargetText::from(&**module)), ..Frame::new(FrameKind::Kernel, name) })
    }

    pub fn len(&self) -> usize {
        self.entries.len()
    }

    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// What it occupies.
    pub fn bytes(&self) -> usize {
        size_of_val(&*self.entries) + self.names.len()
    }
}

enum Nothing {
    Hidden,
    Empty,
}

struct Builder {
    entries: Vec<(u64, u32, u16)>,
    names: String,
    modules: Vec<Box<str>>,
    any_hidden: bool,
}

impl Builder {
    fn new() -> Self {
        // Room for any kernel from the start: growing would leave holes in the
        // heap, while what is not touched costs nothing.
        let (entries, names) = (Vec::with_capacity(1 << 18), String::with_capacity(8 << 20));
        Self { entries, names, modules: vec!["".into()], any_hidden: false }
    }

    fn lines(&mut self, mut input: impl BufRead) -> io::Result<()> {
        let mut line = Vec::new();
        loop {
            line.clear();
            if io::Read::take(&mut input, MAX_LINE_BYTES).read_until(b'\n', &mut line)? == 0 {
                return Ok(());
            }
            self.line(&line);
        }
    }

    /// `ffffffff81000000 T _text` or `ffffffffc0000000 t f [module]`, a tab before the module
    fn line(&mut self, line: &[u8]) -> Option<()> {
        let line = std::str::from_utf8(line).ok()?;
        let mut fields = line.split_ascii_whitespace();
        let address = u64::from_str_radix(fields.next()?, 16).ok()?;
        let (kind, name) = (fields.next()?, fields.next()?);
        if !matches!(kind, "t" | "T" | "w" | "W") {
            return None;
        }
        if address == 0 {
            self.any_hidden = true;
            return None;
        }
        if self.entries.len() >= MAX_SYMBOLS || self.names.len() + name.len() >= MAX_NAMES_BYTES {
            SYMBOLS.cut(1);
            return None;
        }
        let module = fields.next().map_or("", |module| module.trim_matches(['[', ']']));
        let module = self.module(module);
        self.entries.push((address, u32::try_from(self.names.len()).ok()?, module));
        self.names.push_str(name);
        self.names.push('\n');
        Some(())
    }

    /// Lines of a module stand together.
    fn module(&mut self, name: &str) -> u16 {
        let known = if name.is_empty() { Some(0) } else { self.modules.iter().rposition(|known| **known == *name) };
        let index = known.unwrap_or(self.modules.len());
        match u16::try_from(index) {
            Ok(found) => {
                if known.is_none() {
                    self.modules.push(name.into());
                }
                found
            }
            Err(_) => 0,
        }
    }

    fn finish(mut self) -> Result<KernelSymbols, Nothing> {
        // Of several names for one address the first in the file stays: the
        // sort is stable.
        self.entries.sort_by_key(|entry| entry.0);
        self.entries.dedup_by_key(|entry| entry.0);
        let base = match self.entries.last() {
            // Nothing far below the code can push the code out of reach.
            Some(last) => {
                let lowest = last.0.saturating_sub(u64::from(u32::MAX));
                self.entries.drain(..self.entries.partition_point(|entry| entry.0 < lowest));
                self.entries.first().map_or(lowest, |first| first.0)
            }
            None if self.any_hidden => return Err(Nothing::Hidden),
            None => return Err(Nothing::Empty),
        };
        let entries = self.entries.iter().map_while(|&(address, name, module)| {
            Some(KernelSymbol { offset: u32::try_from(address - base).ok()?, name, module })
        });
        Ok(KernelSymbols {
            base,
            entries: entries.collect(),
            names: self.names.into_boxed_str(),
            modules: self.modules,
        })
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use proptest::prelude::*;

    use super::*;

    const TEXT: &str = "\
ffffffff81000000 T _text
ffffffff81000000 T startup_64
ffffffff81000100 t do_one_initcall
ffffffff82000000 D jiffies
ffffffffc0001000 t nf_hook\t[nf_tables]
ffffffff81000200 W weak_one
garbage
";

    fn read(text: &str) -> Result<KernelSymbols, KernelSymbolsError> {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(text.as_bytes()).unwrap();
        KernelSymbols::read(file.path())
    }

    fn check(address: u64, expected: Option<(&str, Option<&str>)>) {
        let symbols = read(TEXT).unwrap();
        let frame = symbols.lookup(Address(address));
        let start = symbols.function_start(Address(address));
        assert_eq!(start.and_then(|start| symbols.lookup(start)), frame, "{address:#x}");
        assert!(start.is_none_or(|start| symbols.function_start(start) == Some(start) && start.0 <= address));
        let got = frame.as_ref().map(|frame| (frame.name.raw(), frame.module.as_ref().map(TargetText::raw)));
        assert_eq!(got, expected, "{address:#x}");
    }

    #[test]
    fn an_address_belongs_to_the_symbol_before_it() {
        check(0xffff_ffff_8100_0000, Some(("_text", None)));
        check(0xffff_ffff_8100_01ff, Some(("do_one_initcall", None)));
        check(0xffff_ffff_8100_0204, Some(("weak_one", None)));
        check(0xffff_ffff_c000_1010, Some(("nf_hook", Some("nf_tables"))));
        check(0xffff_ffff_80ff_ffff, None);
        check(0xffff_ffff_9000_0000, None);
        check(0, None);
    }

    #[test]
    fn a_stray_low_symbol_does_not_hide_the_others() {
        let symbols = read(&format!("0000000000001000 t stray\n{TEXT}")).unwrap();
        assert_eq!(symbols.lookup(Address(0xffff_ffff_8100_0104)).unwrap().name, "do_one_initcall");
    }

    #[test]
    fn hidden_and_empty_symbols_say_so() {
        let hidden = read("0000000000000000 T _text\n0000000000000000 t f\n").unwrap_err().to_string();
        assert!(hidden.contains("kernel.kptr_restrict"), "{hidden}");
        assert!(matches!(read("").unwrap_err(), KernelSymbolsError::Empty { .. }));
        assert!(matches!(KernelSymbols::read(Path::new("/none")).unwrap_err(), KernelSymbolsError::Read { .. }));
    }

    proptest! {
        #[test]
        fn never_panics(text in proptest::collection::vec(any::<u8>(), 0..400), address: u64) {
            let mut builder = Builder::new();
            builder.lines(&*text).unwrap();
            if let Ok(symbols) = builder.finish() {
                let _ = symbols.lookup(Address(address));
            }
        }
    }
}

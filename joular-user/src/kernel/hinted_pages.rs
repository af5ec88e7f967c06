//! Finds what the programs need to read pages that automatic NUMA balancing has taken the access to away: see
//! `joular_ebpf::paging`. They need it on hosts with several nodes of memory only.

use std::{
    fs::{self, File},
    io::{self, BufRead, BufReader},
    ops::ControlFlow,
};

use super::{cpus, kallsyms, roots::KernelRoots};

/// Whether the programs know the processor's page tables.
pub(super) const CAN_BE_READ: bool = cfg!(target_arch = "x86_64");

/// What the programs are told, as their variables.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct PageTables {
    /// Levels of page tables; 0: no such page is to be read.
    pub levels: u32,
    /// Addresses of the kernel's variables `page_offset_base` and `physical_mask`; 0: it has none of that name.
    pub page_offset_base: u64,
    pub physical_mask: u64,
}

/// How many nodes the kernel may move memory between, if it can.
pub(super) fn balanced_nodes(roots: &KernelRoots) -> Option<usize> {
    let nodes = cpus::cpu_list(&roots.system.join("node/has_memory")).len();
    (nodes > 1 && roots.proc.join("sys/kernel/numa_balancing").exists()).then_some(nodes)
}

impl PageTables {
    /// Those of this host; by default such pages stay unreadable.
    pub(super) fn of(roots: &KernelRoots) -> Self {
        if !CAN_BE_READ || balanced_nodes(roots).is_none() {
            return Self::default();
        }
        let symbols = File::open(roots.proc.join("kallsyms")).map(BufReader::new);
        let Ok(Some((page_offset_base, physical_mask))) = symbols.and_then(variables) else { return Self::default() };
        // The kernel removes the flag where it does not use five levels.
        let processors = fs::read_to_string(roots.proc.join("cpuinfo")).unwrap_or_default();
        let has_five = processors.split_ascii_whitespace().any(|flag| flag == "la57");
        Self { levels: if has_five { 5 } else { 4 }, page_offset_base, physical_mask }
    }
}

/// Addresses of `page_offset_base` and `physical_mask`. `None`: the kernel has not the former, or hides addresses.
fn variables(lines: impl BufRead) -> io::Result<Option<(u64, u64)>> {
    let (mut base, mut mask) = (0, 0);
    kallsyms::each(lines, |symbol| {
        match symbol.name {
            b"page_offset_base" => base = symbol.address,
            b"physical_mask" => mask = symbol.address,
            _ => {}
        }
        if base != 0 && mask != 0 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    })?;
    Ok((base != 0).then_some((base, mask)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SYMBOLS: &str = "ffffffff81000000 T _text
ffffffff82a00010 D page_offset_base
ffffffff82a00020 D physical_mask
";

    #[test]
    fn pages_are_read_where_memory_is_balanced_and_the_kernel_says_where_it_is() {
        let both =
            PageTables { levels: 4, page_offset_base: 0xffff_ffff_82a0_0010, physical_mask: 0xffff_ffff_82a0_0020 };
        let no_mask = SYMBOLS.replace("physical_mask", "other");
        let hidden = SYMBOLS.replace("ffffffff82a00010", "0000000000000000").replace("82a00020", "00000000");
        for (nodes, setting, symbols, flags, expected) in [
            ("0-1\n", Some("1\n"), SYMBOLS, "flags : lm sse2", both),
            ("0-1\n", Some("0\n"), SYMBOLS, "flags : lm la57", PageTables { levels: 5, ..both }),
            ("0-1\n", Some("1\n"), no_mask.as_str(), "", PageTables { physical_mask: 0, ..both }),
            ("0\n", Some("1\n"), SYMBOLS, "", PageTables::default()),
            ("0-1\n", None, SYMBOLS, "", PageTables::default()),
            ("0-1\n", Some("1\n"), "ffffffff81000000 T _text\n", "", PageTables::default()),
            ("0-1\n", Some("1\n"), hidden.as_str(), "", PageTables::default()),
        ] {
            let root = tempfile::tempdir().unwrap();
            let write = |path: &str, text: &str| {
                let path = root.path().join(path);
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                fs::write(path, text).unwrap();
            };
            write("system/node/has_memory", nodes);
            write("proc/kallsyms", symbols);
            write("proc/cpuinfo", flags);
            if let Some(setting) = setting {
                write("proc/sys/kernel/numa_balancing", setting);
            }
            let expected = if CAN_BE_READ { expected } else { PageTables::default() };
            assert_eq!(PageTables::of(&KernelRoots::below(root.path())), expected, "{nodes} {setting:?} {symbols}");
        }
    }
}

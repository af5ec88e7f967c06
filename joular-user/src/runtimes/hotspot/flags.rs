//! Reads what a JVM says of itself: its version, what it runs, and the flags that matter here.

use super::{
    layout::Layout,
    memory::{RemoteMemory, Unreadable},
};
use joular_data::model::target_text::TargetText;

use crate::{bounds::Bound, procs::java::MAX_COMMAND};

/// JDK 11 has 1300 flags.
const MAX_FLAGS: u64 = 10_000;
const MAX_NAME_BYTES: usize = 128;
pub static FLAGS: Bound =
    Bound::new("jvm_flags_not_read", MAX_FLAGS, "flags of a JVM", "what the rest says of the collector is not known");

/// Flags that choose a collector, with its name as in the data set.
const COLLECTORS: [(&str, &str); 7] = [
    ("UseG1GC", "G1"),
    ("UseParallelGC", "Parallel"),
    ("UseSerialGC", "Serial"),
    ("UseZGC", "Z"),
    ("UseShenandoahGC", "Shenandoah"),
    ("UseEpsilonGC", "Epsilon"),
    ("UseConcMarkSweepGC", "CMS"),
];
/// Who gave a flag its value, as far as the JVM knows: `JVMFlagOrigin`, and `JVMFlag::Flags` before JDK 17. Who
/// writes a value from outside leaves this as it is.
const ORIGIN_BITS: u64 = 0xf;
const BY_DEFAULT: u64 = 0;
const DEBUG_NON_SAFEPOINTS: &str = "DebugNonSafepoints";

/// Facts about a JVM that follow from its flags and version.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct JvmFacts {
    /// As the JVM prints it, e.g. `17.0.15+6`.
    pub version: Option<TargetText>,
    /// 11, 17, …
    pub feature: u32,
    /// The class, module or jar that it runs, and its arguments; the first [`MAX_COMMAND`] bytes.
    pub command: Option<TargetText>,
    pub collector: Option<TargetText>,
    /// Whether compilers describe more places than those where threads can be stopped. Without it,
    /// the inlined method of a leaf is coarse.
    pub debug_non_safepoints: Option<bool>,
    /// Whether that has been so since the JVM started. An agent may set the flag while the JVM runs, and what was
    /// compiled before is not described anew.
    pub is_all_described: bool,
}

impl JvmFacts {
    /// Reads the facts as far as possible.
    pub fn read(memory: &dyn RemoteMemory, layout: &Layout, bias: u64) -> Self {
        let mut facts = Self { feature: layout.feature, ..Self::default() };
        let release = memory.u64(bias.wrapping_add(layout.statics.vm_release));
        let release = release.and_then(|address| memory.c_string(address, MAX_NAME_BYTES));
        facts.version = release.ok().map(|text| String::from_utf8_lossy(&text).into_owned().into());
        facts.command = command(memory, layout, bias);
        let _ = facts.read_flags(memory, layout, bias);
        facts
    }

    fn read_flags(&mut self, memory: &dyn RemoteMemory, layout: &Layout, bias: u64) -> Result<(), Unreadable> {
        each_flag(memory, layout, bias, |flag, name| {
            let collector = COLLECTORS.iter().find(|(wanted, _)| wanted.as_bytes() == name);
            if collector.is_none() && name != DEBUG_NON_SAFEPOINTS.as_bytes() {
                return Ok(true);
            }
            let is_set = memory.u8(memory.field(flag, layout.flag.address)?)? != 0;
            match collector {
                Some((_, collector)) if is_set => self.collector = Some((*collector).into()),
                Some(_) => {}
                None => {
                    self.debug_non_safepoints = Some(is_set);
                    let origin = memory.field(flag, layout.flag.origin).map_or(BY_DEFAULT, |bits| bits & ORIGIN_BITS);
                    self.is_all_described = is_set && origin != BY_DEFAULT;
                }
            }
            Ok(true)
        })
    }
}

/// `sun.java.command`. A program that makes a JVM by itself need not say anything.
fn command(memory: &dyn RemoteMemory, layout: &Layout, bias: u64) -> Option<TargetText> {
    let address = memory.u64(bias.wrapping_add(layout.java_command?)).ok().filter(|address| *address != 0)?;
    let text = memory.start_of_c_string(address, MAX_COMMAND).ok()?;
    Some(String::from_utf8_lossy(&text).into_owned().into()).filter(|text: &TargetText| !text.raw().is_empty())
}

/// Where the value of a flag stands.
pub fn value_address(
    memory: &dyn RemoteMemory,
    layout: &Layout,
    bias: u64,
    wanted: &str,
) -> Result<Option<u64>, Unreadable> {
    let mut found = None;
    each_flag(memory, layout, bias, |flag, name| {
        if name == wanted.as_bytes() {
            found = Some(memory.field(flag, layout.flag.address)?);
        }
        Ok(found.is_none())
    })?;
    Ok(found)
}

/// Whether each of these flags is set; `None`: this version has no such flag.
pub fn are_set<const N: usize>(
    memory: &dyn RemoteMemory,
    layout: &Layout,
    bias: u64,
    wanted: [&str; N],
) -> Result<[Option<bool>; N], Unreadable> {
    let mut found = [None; N];
    each_flag(memory, layout, bias, |flag, name| {
        if let Some(place) = wanted.iter().position(|wanted| wanted.as_bytes() == name) {
            found[place] = Some(memory.u8(memory.field(flag, layout.flag.address)?)? != 0);
        }
        Ok(found.iter().any(Option::is_none))
    })?;
    Ok(found)
}

/// Calls with each flag's address and name until told not to.
fn each_flag(
    memory: &dyn RemoteMemory,
    layout: &Layout,
    bias: u64,
    mut visit: impl FnMut(u64, &[u8]) -> Result<bool, Unreadable>,
) -> Result<(), Unreadable> {
    let first = memory.u64(bias.wrapping_add(layout.statics.flags))?;
    let count = FLAGS.within(memory.u64(bias.wrapping_add(layout.statics.flag_count))?);
    for index in 0..count {
        let flag = first.wrapping_add(index * u64::from(layout.flag.size));
        let Ok(name) = memory.c_string(memory.field(flag, layout.flag.name)?, MAX_NAME_BYTES) else { continue };
        if !visit(flag, &name)? {
            break;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use joular_ebpf::abi::Field;

    use super::*;
    use crate::runtimes::hotspot::{layout::FlagLayout, memory::MemoryImage};

    #[test]
    fn a_flag_that_was_set_later_says_nothing_of_earlier_code() {
        let word = |offset| Field { offset, width: 8 };
        let flag = FlagLayout { size: 24, name: word(0), address: word(8), origin: Field { offset: 16, width: 4 } };
        let mut layout = Layout { flag, ..Layout::default() };
        (layout.statics.flags, layout.statics.flag_count) = (0x100, 0x108);
        let name = format!("{DEBUG_NON_SAFEPOINTS}\0").into_bytes();
        for (value, bits, is_set, is_all_described) in [
            // On the command line, and printed.
            (1_u8, 0x0002_0001_u32, true, true),
            (0, 0x0002_0001, false, false),
            (0, 0, false, false),
            // By an agent.
            (1, 0x0002_0000, true, false),
        ] {
            let mut image = MemoryImage::default();
            let flag = [0x300_u64.to_le_bytes(), 0x400_u64.to_le_bytes(), u64::from(bits).to_le_bytes()].concat();
            let words = [0x200_u64.to_le_bytes(), 1_u64.to_le_bytes()].concat();
            // Names are read in parts of 64 bytes.
            let name = [&name[..], &[0; 64]].concat();
            [(0x100, &words), (0x200, &flag), (0x300, &name), (0x400, &vec![value])]
                .into_iter()
                .for_each(|(address, bytes)| image.insert(address, bytes));
            let facts = JvmFacts::read(&image, &layout, 0);
            assert_eq!(
                (facts.debug_non_safepoints, facts.is_all_described),
                (Some(is_set), is_all_described),
                "value {value}, {bits:#x}"
            );
        }
    }
}

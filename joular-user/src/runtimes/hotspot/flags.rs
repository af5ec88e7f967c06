//! Reads what a JVM says of itself: its version and the flags that matter here.

use super::{
    layout::Layout,
    memory::{RemoteMemory, Unreadable},
};

/// JDK 11 has 1300 flags.
const MAX_FLAGS: u64 = 10_000;
const MAX_NAME_BYTES: usize = 128;

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
const DEBUG_NON_SAFEPOINTS: &str = "DebugNonSafepoints";

/// Facts about a JVM that its flags and version tell.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct JvmFacts {
    /// As the JVM prints it, e.g. `17.0.15+6`.
    pub version: Option<String>,
    /// 11, 17, …
    pub feature: u32,
    pub collector: Option<String>,
    /// Whether compilers describe more places than those where threads can be stopped. Without it,
    /// the inlined method of a leaf is coarse.
    pub debug_non_safepoints: Option<bool>,
}

impl JvmFacts {
    /// Reads the facts as far as possible.
    pub fn read(memory: &dyn RemoteMemory, layout: &Layout, bias: u64) -> Self {
        let mut facts = Self { feature: layout.feature, ..Self::default() };
        let release = memory.u64(bias.wrapping_add(layout.statics.vm_release));
        let release = release.and_then(|address| memory.c_string(address, MAX_NAME_BYTES));
        facts.version = release.ok().map(|text| String::from_utf8_lossy(&text).into_owned());
        let _ = facts.read_flags(memory, layout, bias);
        facts
    }

    fn read_flags(&mut self, memory: &dyn RemoteMemory, layout: &Layout, bias: u64) -> Result<(), Unreadable> {
        let first = memory.u64(bias.wrapping_add(layout.statics.flags))?;
        let count = memory.u64(bias.wrapping_add(layout.statics.flag_count))?.min(MAX_FLAGS);
        for index in 0..count {
            let flag = first.wrapping_add(index * u64::from(layout.flag.size));
            let Ok(name) = memory.c_string(memory.field(flag, layout.flag.name)?, MAX_NAME_BYTES) else { continue };
            let collector = COLLECTORS.iter().find(|(wanted, _)| wanted.as_bytes() == name);
            if collector.is_none() && name != DEBUG_NON_SAFEPOINTS.as_bytes() {
                continue;
            }
            let is_set = memory.u8(memory.field(flag, layout.flag.address)?)? != 0;
            match collector {
                Some((_, collector)) if is_set => self.collector = Some((*collector).to_owned()),
                Some(_) => {}
                None => self.debug_non_safepoints = Some(is_set),
            }
        }
        Ok(())
    }
}

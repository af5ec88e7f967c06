//! Tells what kind of work a thread does, by the name its runtime gives it.
//!
//! HotSpot names its own threads. The kernel keeps the first 15 bytes of each name, so prefixes are
//! compared. Names are those of JDK 11 to 25.

use crate::events::Runtime;

/// What kind of work a thread does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Category {
    Java,
    Gc,
    Jit,
    Vm,
    Native,
    Kernel,
}

impl Category {
    pub const ALL: [Self; 6] = [Self::Java, Self::Gc, Self::Jit, Self::Vm, Self::Native, Self::Kernel];

    pub const fn name(self) -> &'static str {
        match self {
            Self::Java => "java",
            Self::Gc => "gc",
            Self::Jit => "jit",
            Self::Vm => "vm",
            Self::Native => "native",
            Self::Kernel => "kernel",
        }
    }

    /// Whether it is work that a JVM has threads of its own for.
    pub const fn is_of_jvm(self) -> bool {
        matches!(self, Self::Gc | Self::Jit | Self::Vm)
    }
}

const GC: [&str; 20] = [
    "GC Thread#",
    "G1 ",
    "ParGC Thread#",
    "Gang worker#",
    "ConcGC",
    "Concurrent Mark",
    "ZDriver",
    "ZWorker",
    "ZDirector",
    "ZStat",
    "ZUncommitter",
    "ZUnmapper",
    "ZReferenceProc",
    "ZRelocat",
    "XDriver",
    "XWorker",
    "XDirector",
    "Shenandoah",
    "Epsilon",
    "StringDedup",
];
const JIT: [&str; 4] = ["C1 CompilerThre", "C2 CompilerThre", "JVMCI", "Sweeper thread"];
const VM: [&str; 10] = [
    "VM Thread",
    "VM Periodic Tas",
    "Signal Dispatch",
    "Service Thread",
    "Monitor Deflati",
    "Attach Listener",
    "Notification Th",
    "CDS Dump",
    "Watcher Thread",
    "AsyncLog",
];

/// Category of a thread. A JVM's threads are Java unless their name says otherwise. Threads outside
/// a JVM are native, or the kernel's.
pub fn category(name: &str, runtime: Option<&Runtime>, is_kernel: bool) -> Category {
    let starts = |prefixes: &[&str]| prefixes.iter().any(|prefix| name.starts_with(prefix));
    match runtime {
        _ if is_kernel => Category::Kernel,
        Some(Runtime::Jvm { .. }) if starts(&GC) => Category::Gc,
        Some(Runtime::Jvm { .. }) if starts(&JIT) => Category::Jit,
        Some(Runtime::Jvm { .. }) if starts(&VM) => Category::Vm,
        Some(Runtime::Jvm { .. }) => Category::Java,
        _ => Category::Native,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hotspot_threads_are_told_by_their_names() {
        let jvm = Runtime::UNKNOWN_JVM;
        for (name, expected) in [
            ("GC Thread#0", Category::Gc),
            ("G1 Conc#0", Category::Gc),
            ("ZWorkerYoung#1", Category::Gc),
            ("C2 CompilerThre", Category::Jit),
            ("VM Thread", Category::Vm),
            ("VM Periodic Tas", Category::Vm),
            ("http-nio-8080-e", Category::Java),
            ("G1ant", Category::Java),
        ] {
            assert_eq!(category(name, Some(&jvm), false), expected, "{name}");
        }
        assert_eq!(category("GC Thread#0", Some(&Runtime::Native), false), Category::Native);
        assert_eq!(category("kworker/0:1", None, true), Category::Kernel);
    }
}

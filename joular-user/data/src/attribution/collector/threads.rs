//! Tells what a collector's thread works for, by its name.
//!
//! Names are those of HotSpot, JDK 11 to 25, of which the kernel keeps 15 bytes, so prefixes are compared.

use super::{Category, CollectionKind};
use crate::{
    attribution::window_report::{JvmRow, ThreadRow},
    model::units::MicroJoules,
    stacks::JvmWork,
};

/// What a thread of a collector works for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GcThread {
    /// Collections of one kind, beside the program.
    Beside(CollectionKind),
    /// Itself: it refines remembered sets and looks after the heap. Writes of references make it work, not allocation.
    Own,
    /// Whatever collections there are. Only they show what it worked for.
    Any,
}

/// Marking by G1, and the old generation of generational ZGC.
const OLD: [&str; 4] = ["G1 Conc", "G1 Main Marker", "ZWorkerOld", "ZDriverMajor"];
/// The young generation of generational ZGC.
const YOUNG: [&str; 2] = ["ZWorkerYoung", "ZDriverMinor"];
/// "G1 Young RemSet Sampling" is what JDK 11 calls the thread that is "G1 Service" later.
const OWN: [&str; 3] = ["G1 Refine", "G1 Service", "G1 Young RemSet"];

impl GcThread {
    /// Of a thread whose [`Category`] is the collector.
    pub fn of(name: &str) -> Self {
        let starts = |prefixes: &[&str]| prefixes.iter().any(|prefix| name.starts_with(prefix));
        match name {
            _ if starts(&OLD) => Self::Beside(CollectionKind::Old),
            _ if starts(&YOUNG) => Self::Beside(CollectionKind::Young),
            _ if starts(&OWN) => Self::Own,
            _ => Self::Any,
        }
    }

    fn of_row(row: &ThreadRow) -> Option<Self> {
        (row.category == Category::Gc).then(|| Self::of(row.name.raw()))
    }
}

/// Whether threads that work for collections of this kind alone ran in a window.
pub(super) fn ran(threads: &[ThreadRow], process: usize, kind: CollectionKind) -> bool {
    let of_process = threads.iter().filter(|row| row.process == process && row.cpu_ns > 0);
    of_process.filter_map(GcThread::of_row).any(|thread| thread == GcThread::Beside(kind))
}

/// What a collector used in a window, by what its threads worked for; without [`GcThread::Own`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct GcEnergy {
    /// Threads that work for any collection, and the VM thread.
    pub(super) any: MicroJoules,
    pub(super) young: MicroJoules,
    pub(super) old: MicroJoules,
    /// Whether any of these threads ran, however little energy they used.
    pub(super) has_worked: bool,
}

impl GcEnergy {
    pub(super) fn of(jvm: &JvmRow, threads: &[ThreadRow]) -> Self {
        let gc = jvm.part(JvmWork::Gc);
        let (mut of, mut cpu_ns) = (Self { any: gc.energy, ..Self::default() }, gc.cpu_ns);
        for row in threads.iter().filter(|row| row.process == jvm.process) {
            match GcThread::of_row(row) {
                None | Some(GcThread::Any) => continue,
                Some(GcThread::Beside(CollectionKind::Young)) => of.young = of.young.saturating_add(row.energy),
                Some(GcThread::Beside(CollectionKind::Old)) => of.old = of.old.saturating_add(row.energy),
                Some(GcThread::Own) => cpu_ns = cpu_ns.saturating_sub(row.cpu_ns),
            }
            of.any = MicroJoules(of.any.0.saturating_sub(row.energy.0));
        }
        of.has_worked = cpu_ns > 0 || [of.any, of.young, of.old].iter().any(|energy| energy.0 > 0);
        of
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_of_collectors_are_told_by_the_names_that_jdk_11_to_25_give_them() {
        use CollectionKind::{Old, Young};
        for (name, expected) in [
            ("GC Thread#12", GcThread::Any),
            ("G1 Conc#0", GcThread::Beside(Old)),
            ("G1 Main Marker", GcThread::Beside(Old)),
            ("G1 Refine#0", GcThread::Own),
            ("G1 Service", GcThread::Own),
            ("G1 Young RemSet", GcThread::Own),
            ("ZWorkerYoung#1", GcThread::Beside(Young)),
            ("ZWorkerOld#0", GcThread::Beside(Old)),
            ("ZDriverMinor", GcThread::Beside(Young)),
            ("ZDriverMajor", GcThread::Beside(Old)),
            // What is not generational has no names for generations, and Shenandoah has one name for all.
            ("ZWorker#3", GcThread::Any),
            ("XWorker#3", GcThread::Any),
            ("ZDriver", GcThread::Any),
            ("Shenandoah GC T", GcThread::Any),
            ("Shenandoah Cont", GcThread::Any),
        ] {
            assert_eq!(GcThread::of(name), expected, "{name}");
        }
    }
}

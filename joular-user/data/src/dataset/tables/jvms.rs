//! Defines what JVMs did: the program's code by how it ran, and the VM's own work.

use super::{
    Column, ColumnOf, InWindow, OfProcess, Table, WindowKey, int, joined, kind, label_columns, process_columns,
    window_columns,
};
use crate::{
    attribution::window_report::{Amount, JvmRow, ProcessRef},
    stacks::JvmWork,
};

pub(crate) const ENERGY_UJ: Column<kind::Int> =
    Column::quantity("energy_uj", "attribution", "energy of all its threads, the sum of the parts below").unit("µJ");
pub(crate) const CPU_NS: Column<kind::Int> =
    Column::quantity("cpu_ns", "kernel", "on-CPU time of all its threads, the sum of the parts below").unit("ns");
pub(crate) const SAMPLES: Column<kind::Int> = Column::new("samples", "kernel", "samples taken").unit("samples");
pub(crate) const VM_TAX_UJ: Column<kind::Int> = Column::quantity(
    "vm_tax_uj",
    "attribution",
    "what the JVM did for itself: gc + jit + vm + class_loading + vm_runtime",
)
.unit("µJ");
pub(crate) const VM_TAX_CPU_NS: Column<kind::Int> =
    Column::quantity("vm_tax_cpu_ns", "attribution", "on-CPU time of what the JVM did for itself").unit("ns");

pub struct Jvms;

pub struct JvmRecord<'a> {
    pub key: WindowKey<'a>,
    pub process: &'a ProcessRef,
    pub row: &'a JvmRow,
}

impl InWindow for Jvms {
    fn key<'r>(row: &'r JvmRecord<'_>) -> &'r WindowKey<'r> {
        &row.key
    }
}

impl OfProcess for Jvms {
    fn process<'r>(row: &'r JvmRecord<'_>) -> &'r ProcessRef {
        row.process
    }
}

impl Table for Jvms {
    const NAME: &'static str = "jvms";
    const ROW: &'static str = "a JVM in a window, its energy and time in disjoint parts: the parts sum to the whole, \
                               and its threads sum to the same whole, exactly";
    const BY_POLICY: bool = true;
    type Row<'a> = JvmRecord<'a>;

    fn columns() -> Vec<ColumnOf<Self>> {
        joined([window_columns(), process_columns(), whole_columns(), part_columns(), label_columns()])
    }
}

fn whole_columns() -> Vec<ColumnOf<Jvms>> {
    vec![
        ENERGY_UJ.of::<Jvms>(|r| int(r.row.whole.energy.0)),
        CPU_NS.of::<Jvms>(|r| int(r.row.whole.cpu_ns)),
        SAMPLES.of::<Jvms>(|r| int(r.row.whole.samples)),
        VM_TAX_UJ.of::<Jvms>(|r| int(r.row.tax().energy.0)),
        VM_TAX_CPU_NS.of::<Jvms>(|r| int(r.row.tax().cpu_ns)),
    ]
}

/// The column of the energy of a part.
pub(crate) const fn part_uj(work: JvmWork) -> Column<kind::Int> {
    Column::joined(["", work.name(), "_uj"], "attribution", meaning(work)).unit("µJ").hardly_repeating()
}

/// The column of the on-CPU time of a part.
pub(crate) const fn part_cpu_ns(work: JvmWork) -> Column<kind::Int> {
    Column::joined(["", work.name(), "_cpu_ns"], "attribution", meaning(work)).unit("ns").hardly_repeating()
}

fn part_columns() -> Vec<ColumnOf<Jvms>> {
    let energy = |(index, work)| {
        part_uj(work).of_item::<Jvms>(index, |r, index| int(part(r, index).energy.0).unwrap_or(i64::MAX))
    };
    let time = |(index, work)| {
        part_cpu_ns(work).of_item::<Jvms>(index, |r, index| int(part(r, index).cpu_ns).unwrap_or(i64::MAX))
    };
    let parts = || JvmWork::ALL.into_iter().enumerate();
    parts().map(energy).chain(parts().map(time)).collect()
}

fn part(record: &JvmRecord<'_>, index: usize) -> Amount {
    record.row.parts.get(index).copied().unwrap_or_default()
}

const fn meaning(work: JvmWork) -> &'static str {
    match work {
        JvmWork::Gc => "threads of the garbage collector, and collections by the VM thread",
        JvmWork::Jit => "compiler threads",
        JvmWork::Vm => "VM thread (safepoints, other VM operations) and the VM's other threads",
        JvmWork::ClassLoading => {
            "Java threads: loading and linking classes and call sites, without static initializers"
        }
        JvmWork::VmRuntime => "Java threads: libjvm's code for anything else (allocation, locks, exceptions, …)",
        JvmWork::Interpreter => "Java threads: bytecode in the interpreter",
        JvmWork::C1 => "Java threads: code compiled by C1",
        JvmWork::C2 => "Java threads: code compiled by C2",
        JvmWork::Compiled => "Java threads: compiled code whose compiler is not known",
        JvmWork::Native => "Java threads: native methods and libraries",
        JvmWork::Kernel => "Java threads: the kernel",
        JvmWork::Unknown => "Java threads: no stack, or a leaf without a name",
    }
}

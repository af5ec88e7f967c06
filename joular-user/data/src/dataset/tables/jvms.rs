//! What JVMs did: the program's code by how it ran, and the VM's own work.

use super::{
    Column, Get, InWindow, OfProcess, Table, WindowKey, int, joined, label_columns, process_columns, window_columns,
};
use crate::{
    attribution::report::{Amount, JvmRow, ProcessRef},
    stacks::JvmWork,
};

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
    const ROW: &'static str = "a JVM in a window, its energy and time in parts that exclude each other: the parts sum to the whole, \
                               and that to its threads, exactly";
    const BY_POLICY: bool = true;
    type Row<'a> = JvmRecord<'a>;

    fn columns() -> Vec<Column<Self>> {
        joined([window_columns(), process_columns(), whole_columns(), part_columns(), label_columns()])
    }
}

fn whole_columns() -> Vec<Column<Jvms>> {
    vec![
        Column::<Jvms>::new(
            "energy_uj",
            Get::Quantity(|r| int(r.row.whole.energy.0)),
            "attribution",
            "energy of all its threads, sum of the parts below",
        )
        .unit("µJ"),
        Column::<Jvms>::new(
            "cpu_ns",
            Get::Quantity(|r| int(r.row.whole.cpu_ns)),
            "kernel",
            "on-CPU time of all its threads, sum of the parts below",
        )
        .unit("ns"),
        Column::<Jvms>::new("samples", Get::Int(|r| int(r.row.whole.samples)), "kernel", "samples taken")
            .unit("samples"),
        Column::<Jvms>::new(
            "vm_tax_uj",
            Get::Quantity(|r| int(r.row.tax().energy.0)),
            "attribution",
            "what the JVM did for itself: gc + jit + vm + class_loading + vm_runtime",
        )
        .unit("µJ"),
        Column::<Jvms>::new(
            "vm_tax_cpu_ns",
            Get::Quantity(|r| int(r.row.tax().cpu_ns)),
            "attribution",
            "on-CPU time of what the JVM did for itself",
        )
        .unit("ns"),
    ]
}

fn part_columns() -> Vec<Column<Jvms>> {
    let energy = |(index, work): (usize, JvmWork)| {
        let get = Get::Item(index, |r: &JvmRecord<'_>, index| int(part(r, index).energy.0).unwrap_or(i64::MAX));
        Column::<Jvms>::new(format!("{}_uj", work.name()), get, "attribution", meaning(work)).unit("µJ")
    };
    let time = |(index, work): (usize, JvmWork)| {
        let get = Get::Item(index, |r: &JvmRecord<'_>, index| int(part(r, index).cpu_ns).unwrap_or(i64::MAX));
        Column::<Jvms>::new(format!("{}_cpu_ns", work.name()), get, "attribution", meaning(work)).unit("ns")
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

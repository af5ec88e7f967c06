//! The audit: where each domain's energy and the CPUs' time went.

use joular_ebpf::abi::Loss;

use super::{Column, Get, InWindow, Table, WindowKey, int, joined, window_columns};
use crate::{
    attribution::report::{CpuAudit, DomainAudit, Part},
    events::LossCount,
};

pub struct Windows;

pub struct WindowRecord<'a> {
    pub key: WindowKey<'a>,
    pub index: u64,
    /// `None` in the only row of a window without any energy domain.
    pub audit: Option<&'a DomainAudit>,
    pub cpu: &'a CpuAudit,
    pub losses: &'a [LossCount],
}

impl InWindow for Windows {
    fn key<'r>(row: &'r WindowRecord<'_>) -> &'r WindowKey<'r> {
        &row.key
    }
}

impl Table for Windows {
    const NAME: &'static str = "windows";
    const ROW: &'static str = "an energy domain in a window; cpu_, switches, samples and lost_ columns are the window's, \
                               repeated on each of its rows";
    const BY_POLICY: bool = true;
    type Row<'a> = WindowRecord<'a>;

    fn columns() -> Vec<Column<Self>> {
        let index =
            Column::<Windows>::new("window_index", Get::Int(|r| int(r.index)), "run", "0, 1, 2, … within the run");
        joined([
            window_columns(),
            vec![index],
            domain_columns(),
            beside_columns(),
            flag_columns(),
            cpu_columns(),
            loss_columns(),
        ])
    }
}

const NO_DOMAIN: &str = "no energy source";

fn domain_columns() -> Vec<Column<Windows>> {
    let energy = |name: &'static str, get: Get<Windows>, meaning| {
        Column::<Windows>::new(name, get, "attribution", meaning).unit("µJ").null(NO_DOMAIN)
    };
    vec![
        Column::<Windows>::new(
            "domain",
            Get::Name(|r| r.audit.map(|audit| audit.domain.as_str().into())),
            "energy source",
            "package, core, dram, platform, gpu, cpu, …; rows of a window are disjoint",
        )
        .null(NO_DOMAIN),
        Column::<Windows>::new(
            "socket",
            Get::Int(|r| r.audit?.socket.map(Into::into)),
            "energy source",
            "physical package",
        )
        .null("the whole machine"),
        Column::<Windows>::new("core", Get::Int(|r| r.audit?.core.map(Into::into)), "energy source", "physical core")
            .null("not of one core"),
        Column::<Windows>::new(
            "source",
            Get::Name(|r| r.audit.map(|audit| audit.source.as_str().into())),
            "energy source",
            "where it is read from",
        )
        .null(NO_DOMAIN),
        Column::<Windows>::new(
            "label",
            Get::Name(|r| r.audit.map(|audit| audit.label.name().into())),
            "energy source",
            "measured, reported, modelled or replayed",
        )
        .null(NO_DOMAIN),
        Column::<Windows>::new(
            "measured_uj",
            Get::Quantity(|r| int(r.audit?.measured.0)),
            "energy source",
            "energy of the window",
        )
        .unit("µJ")
        .null(NO_DOMAIN),
        energy("attributed_uj", Get::Quantity(|r| int(r.audit?.attributed.0)), "to threads of targets"),
        energy("static_uj", Get::Quantity(|r| int(r.audit?.static_share.0)), "idle share, by the run's idle policy"),
        energy(
            "unattributed_uj",
            Get::Quantity(|r| int(r.audit?.unattributed.total().0)),
            "sum of the items below; measured = attributed + static + unattributed, exactly",
        ),
        energy(
            "other_processes_uj",
            Get::Quantity(|r| int(r.audit?.unattributed.other_processes.0)),
            "item: processes that are no targets",
        ),
        energy("kernel_uj", Get::Quantity(|r| int(r.audit?.unattributed.kernel.0)), "item: kernel threads"),
        energy("profiler_uj", Get::Quantity(|r| int(r.audit?.unattributed.profiler.0)), "item: joular-bpf itself"),
        energy(
            "unslotted_uj",
            Get::Quantity(|r| int(r.audit?.unattributed.unslotted.0)),
            "item: threads without a slot in the kernel's map",
        ),
        energy(
            "failed_reads_uj",
            Get::Quantity(|r| int(r.audit?.unattributed.failed_reads.0)),
            "item: threads of windows whose read failed that are not in this window, which brought their energy",
        ),
        energy("idle_uj", Get::Quantity(|r| int(r.audit?.unattributed.idle.0)), "item: nothing ran at all"),
        energy(
            "unshared_uj",
            Get::Quantity(|r| int(r.audit?.unattributed.unshared.0)),
            "item: a domain that CPU time says nothing about (rest of the platform, GPU)",
        ),
    ]
}

fn part(row: &WindowRecord<'_>, part: Part) -> Option<i64> {
    int(row.audit?.parts.get(part)?.0)
}

/// What is known of a domain's energy beside its sum; counted in it already.
fn beside_columns() -> Vec<Column<Windows>> {
    let energy = |name: &'static str, get: Get<Windows>, meaning, null| {
        Column::<Windows>::new(name, get, "energy source", meaning).unit("µJ").null(null)
    };
    const NO_COUNTER: &str = "no counter of its own, or not certain";
    vec![
        energy(
            "floor_uj",
            Get::Quantity(|r| int(r.audit?.floor?.0)),
            "of measured: does not depend on load, as the model says",
            "the meter does not know",
        ),
        energy("package_uj", Get::Quantity(|r| part(r, Part::Package)), "of measured: packages", NO_COUNTER),
        energy("core_uj", Get::Quantity(|r| part(r, Part::Core)), "of measured: cores", NO_COUNTER),
        energy(
            "uncore_uj",
            Get::Quantity(|r| part(r, Part::Uncore)),
            "of measured: packages without cores",
            NO_COUNTER,
        ),
        energy("dram_uj", Get::Quantity(|r| part(r, Part::Dram)), "of measured: memory", NO_COUNTER),
        energy("gpu_uj", Get::Quantity(|r| part(r, Part::Gpu)), "of measured: GPUs", NO_COUNTER),
        energy(
            "check_uj",
            Get::Quantity(|r| int(r.audit?.check?.0)),
            "the same energy by another counter, to compare",
            "no other counter, or not certain",
        ),
    ]
}

fn flag_columns() -> Vec<Column<Windows>> {
    vec![
        Column::<Windows>::new(
            "merged",
            Get::Int(|r| Some(r.audit?.merged.into())),
            "energy source",
            "windows whose energy this one holds, itself included, so at least 2; 0 normally",
        )
        .unit("windows")
        .null(NO_DOMAIN),
        Column::<Windows>::new(
            "read_failed",
            Get::Flag(|r| Some(r.audit?.read_failed())),
            "energy source",
            "failed or stuck: its energy comes with a later window, to the threads that ran in this one",
        )
        .null(NO_DOMAIN),
        Column::<Windows>::new(
            "ambiguous",
            Get::Flag(|r| Some(r.audit?.is_ambiguous())),
            "energy source",
            "the counter may have wrapped more than once or jumped",
        )
        .null(NO_DOMAIN),
        Column::<Windows>::new(
            "fault",
            Get::Name(|r| r.audit?.fault.map(|fault| fault.name().into())),
            "energy source",
            "why read_failed or ambiguous, by a name that docs/energy.md explains",
        )
        .null("nothing"),
        Column::<Windows>::new(
            "read_delay_ns",
            Get::Quantity(|r| Some(r.audit?.read_delay_ns)),
            "monotonic clock",
            "real time of the read minus the window's end",
        )
        .unit("ns")
        .null(NO_DOMAIN),
    ]
}

fn cpu_columns() -> Vec<Column<Windows>> {
    let time = |name: &'static str, get: Get<Windows>, meaning| {
        Column::<Windows>::new(name, get, "kernel", meaning).unit("ns")
    };
    vec![
        time("cpu_elapsed_ns", Get::Int(|r| int(r.cpu.elapsed_ns)), "window length × CPUs = busy + idle + unslotted"),
        time("cpu_busy_ns", Get::Quantity(|r| int(r.cpu.busy_ns)), "threads ran"),
        time("cpu_idle_ns", Get::Quantity(|r| int(r.cpu.idle_ns)), "nothing ran"),
        time("cpu_unslotted_ns", Get::Quantity(|r| int(r.cpu.unslotted_ns)), "threads without a slot in the map ran"),
        time("cpu_target_ns", Get::Quantity(|r| int(r.cpu.target_ns)), "of busy: targets"),
        time("cpu_other_ns", Get::Quantity(|r| int(r.cpu.other_ns)), "of busy: other processes"),
        time("cpu_kernel_ns", Get::Quantity(|r| int(r.cpu.kernel_ns)), "of busy: kernel threads"),
        time("cpu_profiler_ns", Get::Quantity(|r| int(r.cpu.profiler_ns)), "of busy: joular-bpf itself"),
        Column::<Windows>::new("switches", Get::Int(|r| int(r.cpu.switches)), "kernel", "context switches"),
        Column::<Windows>::new("samples", Get::Int(|r| int(r.cpu.samples)), "kernel", "samples of targets")
            .unit("samples"),
    ]
}

const LOSS_MEANINGS: [&str; Loss::ALL.len()] = [
    "threads that found no slot; their time is cpu_unslotted_ns",
    "samples that kept their thread but lost their stack",
    "stacks not sent, ring full",
    "lifecycle events not sent, ring full",
    "user stacks that could not be read",
    "kernel stacks that could not be read",
    "stacks sent again, set of known stacks full",
    "samples that hit the accounting itself",
    "slices of time whose cycles could not be read",
];

/// One column per cause in the kernel, and one for all causes outside it.
fn loss_columns() -> Vec<Column<Windows>> {
    let of_cause = |(index, (loss, meaning)): (usize, (Loss, &'static str))| {
        let name = format!("lost_{}", loss.name());
        Column::<Windows>::new(
            name,
            Get::Item(index, |r, index| lost(r.losses, |loss| loss == Some(index))),
            "kernel",
            meaning,
        )
        .unit("events")
    };
    let other = Column::<Windows>::new(
        "lost_other",
        Get::Item(0, |r, _| lost(r.losses, |loss| loss.is_none())),
        "joular-bpf",
        "losses of any other cause",
    );
    Loss::ALL.into_iter().zip(LOSS_MEANINGS).enumerate().map(of_cause).chain([other.unit("events")]).collect()
}

/// Sum over the causes whose position in [`Loss::ALL`] is wanted.
fn lost(losses: &[LossCount], wanted: impl Fn(Option<usize>) -> bool) -> i64 {
    let position = |cause: &str| Loss::ALL.iter().position(|loss| loss.name() == cause);
    let counts = losses.iter().filter(|loss| wanted(position(&loss.cause))).map(|loss| loss.count);
    int(counts.fold(0, u64::saturating_add)).unwrap_or(i64::MAX)
}

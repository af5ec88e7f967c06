//! Defines the audit: where each domain's energy and the CPUs' time went.

use joular_ebpf::abi::Loss;

use super::{Column, ColumnOf, InWindow, Table, WindowKey, context, int, joined, kind, window_columns};
use crate::{
    attribution::window_report::{CpuAudit, DomainAudit, Part},
    events::{LossCount, WindowContext},
};

const NO_DOMAIN: &str = "no energy source";
const NO_COUNTER: &str = "no counter of its own, or an uncertain one";

pub(crate) const WINDOW_INDEX: Column<kind::Int> = Column::new(
    "window_index",
    "run",
    "number of the window in the run: 0, 1, 2, …; orders a run's windows whatever the clock does",
);
pub(crate) const DOMAIN: Column<kind::Name> = Column::new(
    "domain",
    "energy source",
    "package, core, dram, platform, gpu, cpu, network, disk, …; rows of a window are disjoint",
)
.null(NO_DOMAIN);
pub(crate) const SOCKET: Column<kind::Int> =
    Column::new("socket", "energy source", "physical package").null("the whole machine");
pub(crate) const CORE: Column<kind::Int> =
    Column::new("core", "energy source", "physical core").null("not of one core");
pub(crate) const SOURCE: Column<kind::Name> =
    Column::new("source", "energy source", "where the domain's energy is read from").null(NO_DOMAIN);
pub(crate) const LABEL: Column<kind::Name> = Column::new(
    "label",
    "energy source",
    "measured, measured_coarsely, reported, modelled_by_processor, modelled or replayed",
)
.null(NO_DOMAIN);
pub(crate) const DIVIDED_BY: Column<kind::Name> = Column::new(
    "divided_by",
    "attribution",
    "what threads have it by: cpu_weights, cpu_time, bytes, allocation or cache_misses",
)
.null(NO_DOMAIN);
pub(crate) const MEASURED_UJ: Column<kind::Int> =
    Column::quantity("measured_uj", "energy source", "energy of the window").unit("µJ").null(NO_DOMAIN);
pub(crate) const ATTRIBUTED_UJ: Column<kind::Int> =
    Column::quantity("attributed_uj", "attribution", "energy of the targets' threads").unit("µJ").null(NO_DOMAIN);
pub(crate) const STATIC_UJ: Column<kind::Int> =
    Column::quantity("static_uj", "attribution", "idle share, by the run's idle policy").unit("µJ").null(NO_DOMAIN);
pub(crate) const OWED_UJ: Column<kind::Int> = Column::quantity(
    "owed_uj",
    "attribution",
    "idle energy that earlier windows lacked: this window's idle share makes up for it",
)
.unit("µJ")
.null(NO_DOMAIN);
pub(crate) const UNATTRIBUTED_UJ: Column<kind::Int> = Column::quantity(
    "unattributed_uj",
    "attribution",
    "sum of the items below; measured = attributed + static + unattributed, exactly",
)
.unit("µJ")
.null(NO_DOMAIN);
pub(crate) const OTHER_PROCESSES_UJ: Column<kind::Int> =
    Column::quantity("other_processes_uj", "attribution", "item: processes that are not targets")
        .unit("µJ")
        .null(NO_DOMAIN);
pub(crate) const KERNEL_UJ: Column<kind::Int> =
    Column::quantity("kernel_uj", "attribution", "item: kernel threads").unit("µJ").null(NO_DOMAIN);
pub(crate) const PROFILER_UJ: Column<kind::Int> =
    Column::quantity("profiler_uj", "attribution", "item: joular-bpf itself").unit("µJ").null(NO_DOMAIN);
pub(crate) const UNSLOTTED_UJ: Column<kind::Int> =
    Column::quantity("unslotted_uj", "attribution", "item: threads without a slot in the kernel's map")
        .unit("µJ")
        .null(NO_DOMAIN);
pub(crate) const FAILED_READS_UJ: Column<kind::Int> = Column::quantity(
    "failed_reads_uj",
    "attribution",
    "item: late energy of windows whose read failed, for threads that are not in this window",
)
.unit("µJ")
.null(NO_DOMAIN);
pub(crate) const IDLE_UJ: Column<kind::Int> =
    Column::quantity("idle_uj", "attribution", "item: nothing ran at all").unit("µJ").null(NO_DOMAIN);
pub(crate) const UNSHARED_UJ: Column<kind::Int> = Column::quantity(
    "unshared_uj",
    "attribution",
    "item: a domain that CPU time says nothing about (rest of the platform, GPU)",
)
.unit("µJ")
.null(NO_DOMAIN);
pub(crate) const SUSPENDED_UJ: Column<kind::Int> = Column::quantity(
    "suspended_uj",
    "attribution",
    "item: what a counter gained from before a suspend to after it, the window's own part included",
)
.unit("µJ")
.null(NO_DOMAIN);
pub(crate) const FLOOR_UJ: Column<kind::Int> =
    Column::quantity("floor_uj", "energy source", "of measured: the part that does not depend on load, by the model")
        .unit("µJ")
        .null("the meter does not report it");
pub(crate) const PACKAGE_UJ: Column<kind::Int> =
    Column::quantity("package_uj", "energy source", "of measured: packages").unit("µJ").null(NO_COUNTER);
pub(crate) const CORE_UJ: Column<kind::Int> =
    Column::quantity("core_uj", "energy source", "of measured: cores").unit("µJ").null(NO_COUNTER);
pub(crate) const UNCORE_UJ: Column<kind::Int> =
    Column::quantity("uncore_uj", "energy source", "of measured: packages without cores").unit("µJ").null(NO_COUNTER);
pub(crate) const DRAM_UJ: Column<kind::Int> =
    Column::quantity("dram_uj", "energy source", "of measured: memory").unit("µJ").null(NO_COUNTER);
pub(crate) const GPU_UJ: Column<kind::Int> =
    Column::quantity("gpu_uj", "energy source", "of measured: GPUs").unit("µJ").null(NO_COUNTER);
pub(crate) const NETWORK_UJ: Column<kind::Int> =
    Column::quantity("network_uj", "energy source", "of measured: network cards, by their model")
        .unit("µJ")
        .null(NO_COUNTER);
pub(crate) const DISK_UJ: Column<kind::Int> =
    Column::quantity("disk_uj", "energy source", "of measured: disks, by their model").unit("µJ").null(NO_COUNTER);
pub(crate) const CHECK_UJ: Column<kind::Int> =
    Column::quantity("check_uj", "energy source", "the same energy by another counter, for comparison")
        .unit("µJ")
        .null("no other counter, or an uncertain one");
pub(crate) const MERGED: Column<kind::Int> = Column::new(
    "merged",
    "energy source",
    "number of windows, with this one, whose energy this row holds: at least 2; normally 0",
)
.unit("windows")
.null(NO_DOMAIN);
pub(crate) const READ_FAILED: Column<kind::Flag> = Column::new(
    "read_failed",
    "energy source",
    "read failed or stuck: the energy comes with a later window, for the threads that ran in this one",
)
.null(NO_DOMAIN);
pub(crate) const AMBIGUOUS: Column<kind::Flag> = Column::new(
    "ambiguous",
    "energy source",
    "the counter may have wrapped more than once, jumped, or counted through a suspend",
)
.null(NO_DOMAIN);
pub(crate) const FAULT: Column<kind::Name> =
    Column::new("fault", "energy source", "why read_failed or ambiguous is set; docs/energy.md explains the names")
        .null("no fault");
pub(crate) const READ_DELAY_NS: Column<kind::Int> =
    Column::quantity("read_delay_ns", "monotonic clock", "time of the actual read minus the window's end")
        .unit("ns")
        .null(NO_DOMAIN);
pub(crate) const CPU_ELAPSED_NS: Column<kind::Int> =
    Column::new("cpu_elapsed_ns", "kernel", "window length × CPUs = busy + idle + unslotted").unit("ns");
pub(crate) const CPU_BUSY_NS: Column<kind::Int> =
    Column::quantity("cpu_busy_ns", "kernel", "CPU time in which threads ran").unit("ns");
pub(crate) const CPU_IDLE_NS: Column<kind::Int> =
    Column::quantity("cpu_idle_ns", "kernel", "CPU time in which nothing ran").unit("ns");
pub(crate) const CPU_UNSLOTTED_NS: Column<kind::Int> =
    Column::quantity("cpu_unslotted_ns", "kernel", "CPU time of threads without a slot in the kernel's map").unit("ns");
pub(crate) const CPU_TARGET_NS: Column<kind::Int> =
    Column::quantity("cpu_target_ns", "kernel", "of busy: targets").unit("ns");
pub(crate) const CPU_OTHER_NS: Column<kind::Int> =
    Column::quantity("cpu_other_ns", "kernel", "of busy: other processes").unit("ns");
pub(crate) const CPU_KERNEL_NS: Column<kind::Int> =
    Column::quantity("cpu_kernel_ns", "kernel", "of busy: kernel threads").unit("ns");
pub(crate) const CPU_PROFILER_NS: Column<kind::Int> =
    Column::quantity("cpu_profiler_ns", "kernel", "of busy: joular-bpf itself").unit("ns");
pub(crate) const CPU_INEXACT_NS: Column<kind::Int> = Column::quantity(
    "cpu_inexact_ns",
    "joular-bpf",
    "by how much these times may be off, because a CPU went online or offline, or the window began or ended late; \
     normally 0",
)
.unit("ns");
pub(crate) const SWITCHES: Column<kind::Int> = Column::new("switches", "kernel", "context switches");
pub(crate) const SAMPLES: Column<kind::Int> = Column::new("samples", "kernel", "samples of targets").unit("samples");
pub(crate) const LOST_OTHER: Column<kind::Int> =
    Column::new("lost_other", "joular-bpf", "losses of all other causes").unit("events");
pub(crate) const OTHER_LOSSES: Column<kind::TextList> =
    Column::new("other_losses", "joular-bpf", "those causes, each as cause=count");

pub struct Windows;

pub struct WindowRecord<'a> {
    pub key: WindowKey<'a>,
    pub index: u64,
    /// `None` in the only row of a window without any energy domain.
    pub audit: Option<&'a DomainAudit>,
    pub cpu: &'a CpuAudit,
    pub context: Option<&'a WindowContext>,
    pub losses: &'a [LossCount],
}

impl InWindow for Windows {
    fn key<'r>(row: &'r WindowRecord<'_>) -> &'r WindowKey<'r> {
        &row.key
    }
}

impl Table for Windows {
    const NAME: &'static str = "windows";
    const ROW: &'static str = "an energy domain in a window; columns cpu_…, busy_cpus_milli to clock_offset_us, switches, samples \
                               and lost_… are of the whole window, repeated on each of its rows";
    const BY_POLICY: bool = true;
    type Row<'a> = WindowRecord<'a>;

    fn columns() -> Vec<ColumnOf<Self>> {
        let index = WINDOW_INDEX.of::<Windows>(|r| int(r.index));
        joined([
            window_columns(),
            vec![index],
            domain_columns(),
            beside_columns(),
            flag_columns(),
            cpu_columns(),
            context::columns(),
            loss_columns(),
        ])
    }
}

fn domain_columns() -> Vec<ColumnOf<Windows>> {
    vec![
        DOMAIN.of::<Windows>(|r| r.audit.map(|audit| audit.domain.as_str().into())),
        SOCKET.of::<Windows>(|r| r.audit?.socket.map(Into::into)),
        CORE.of::<Windows>(|r| r.audit?.core.map(Into::into)),
        SOURCE.of::<Windows>(|r| r.audit.map(|audit| audit.source.as_str().into())),
        LABEL.of::<Windows>(|r| r.audit.map(|audit| audit.label.name().into())),
        DIVIDED_BY.of::<Windows>(|r| r.audit.map(|audit| audit.divided_by.into())),
        MEASURED_UJ.of::<Windows>(|r| int(r.audit?.measured.0)),
        ATTRIBUTED_UJ.of::<Windows>(|r| int(r.audit?.attributed.0)),
        STATIC_UJ.of::<Windows>(|r| int(r.audit?.static_share.0)),
        OWED_UJ.of::<Windows>(|r| int(r.audit?.owed.0)),
        UNATTRIBUTED_UJ.of::<Windows>(|r| int(r.audit?.unattributed.total().0)),
        OTHER_PROCESSES_UJ.of::<Windows>(|r| int(r.audit?.unattributed.other_processes.0)),
        KERNEL_UJ.of::<Windows>(|r| int(r.audit?.unattributed.kernel.0)),
        PROFILER_UJ.of::<Windows>(|r| int(r.audit?.unattributed.profiler.0)),
        UNSLOTTED_UJ.of::<Windows>(|r| int(r.audit?.unattributed.unslotted.0)),
        FAILED_READS_UJ.of::<Windows>(|r| int(r.audit?.unattributed.failed_reads.0)),
        IDLE_UJ.of::<Windows>(|r| int(r.audit?.unattributed.idle.0)),
        UNSHARED_UJ.of::<Windows>(|r| int(r.audit?.unattributed.unshared.0)),
        SUSPENDED_UJ.of::<Windows>(|r| int(r.audit?.unattributed.suspended.0)),
    ]
}

fn part(row: &WindowRecord<'_>, part: Part) -> Option<i64> {
    int(row.audit?.parts.get(part)?.0)
}

/// What is known of a domain's energy beside its sum; counted in it already.
fn beside_columns() -> Vec<ColumnOf<Windows>> {
    vec![
        FLOOR_UJ.of::<Windows>(|r| int(r.audit?.floor?.0)),
        PACKAGE_UJ.of::<Windows>(|r| part(r, Part::Package)),
        CORE_UJ.of::<Windows>(|r| part(r, Part::Core)),
        UNCORE_UJ.of::<Windows>(|r| part(r, Part::Uncore)),
        DRAM_UJ.of::<Windows>(|r| part(r, Part::Dram)),
        GPU_UJ.of::<Windows>(|r| part(r, Part::Gpu)),
        CHECK_UJ.of::<Windows>(|r| int(r.audit?.check?.0)),
        NETWORK_UJ.of::<Windows>(|r| part(r, Part::Network)),
        DISK_UJ.of::<Windows>(|r| part(r, Part::Disk)),
    ]
}

fn flag_columns() -> Vec<ColumnOf<Windows>> {
    vec![
        MERGED.of::<Windows>(|r| Some(r.audit?.merged.into())),
        READ_FAILED.of::<Windows>(|r| Some(r.audit?.read_failed())),
        AMBIGUOUS.of::<Windows>(|r| Some(r.audit?.is_ambiguous())),
        FAULT.of::<Windows>(|r| r.audit?.fault.map(|fault| fault.name().into())),
        READ_DELAY_NS.of::<Windows>(|r| Some(r.audit?.read_delay_ns)),
    ]
}

fn cpu_columns() -> Vec<ColumnOf<Windows>> {
    vec![
        CPU_ELAPSED_NS.of::<Windows>(|r| int(r.cpu.elapsed_ns)),
        CPU_BUSY_NS.of::<Windows>(|r| int(r.cpu.busy_ns)),
        CPU_IDLE_NS.of::<Windows>(|r| int(r.cpu.idle_ns)),
        CPU_UNSLOTTED_NS.of::<Windows>(|r| int(r.cpu.unslotted_ns)),
        CPU_TARGET_NS.of::<Windows>(|r| int(r.cpu.target_ns)),
        CPU_OTHER_NS.of::<Windows>(|r| int(r.cpu.other_ns)),
        CPU_KERNEL_NS.of::<Windows>(|r| int(r.cpu.kernel_ns)),
        CPU_PROFILER_NS.of::<Windows>(|r| int(r.cpu.profiler_ns)),
        CPU_INEXACT_NS.of::<Windows>(|r| int(r.cpu.inexact_ns)),
        SWITCHES.of::<Windows>(|r| int(r.cpu.switches)),
        SAMPLES.of::<Windows>(|r| int(r.cpu.samples)),
    ]
}

const fn loss_meaning(cause: Loss) -> &'static str {
    match cause {
        Loss::ThreadMapFull => "threads that found no slot; their time is cpu_unslotted_ns",
        Loss::SampleMapFull => "samples that kept their thread but lost their stack",
        Loss::StackRingFull => "stacks not sent: ring full",
        Loss::LifecycleRingFull => "lifecycle events not sent: ring full",
        Loss::UserStackFailed => "user stacks that could not be read",
        Loss::KernelStackFailed => "kernel stacks that could not be read",
        Loss::KnownStacksFull => "stacks sent again: set of known stacks full",
        Loss::NestedSample => "samples that interrupted the accounting",
        Loss::CyclesUnread => "slices of time whose cycles could not be read",
        Loss::TimerNotSet => {
            "times that the timer for the next sample could not be set; the next timer interrupt tried again"
        }
        Loss::CounterUnread => "slices of time for which a counter of --counters could not be read",
        Loss::CounterMapFull => "slices of time whose counts found no slot",
        Loss::AllocationMapFull => "samples of allocations, and what threads had allocated, that found no slot",
        Loss::NestedAllocation => "allocations that were not sampled, because another thread's stack was being read",
        Loss::CollectionRingFull => "memory pools whose state before or after a collection was lost: ring full",
        Loss::IoMapFull => "calls that moved bytes, or samples of them, that found no slot",
        Loss::NestedIo => "calls that moved bytes and were not sampled, because another thread's stack was being read",
        Loss::DeviceMapFull => "looks at threads whose bytes of devices found no slot",
        Loss::RingShareUsed => {
            "stacks, names and collections that were dropped, because their process had sent too many just before"
        }
        Loss::FollowedMapFull => "processes of a command that found no slot to be followed in",
        Loss::HiddenSwitch => {
            "context switches that the kernel did not report; the time around one may be another thread's"
        }
    }
}

/// The column of losses of a cause in the kernel.
pub(crate) const fn lost_by(cause: Loss) -> Column<kind::Int> {
    Column::joined(["lost_", cause.name(), ""], "kernel", loss_meaning(cause)).unit("events")
}

/// One column per cause in the kernel, and two for all causes outside it.
fn loss_columns() -> Vec<ColumnOf<Windows>> {
    let of_cause = |(position, cause): (usize, Loss)| {
        lost_by(cause).of_item::<Windows>(position, |r, position| sum(by_place(r.losses, Some(position))))
    };
    let other = LOST_OTHER.of_item::<Windows>(0, |r, _| sum(by_place(r.losses, None)));
    let causes = OTHER_LOSSES.of::<Windows>(|r| {
        by_place(r.losses, None).filter(|loss| loss.count > 0).map(|loss| written(loss).into()).collect()
    });
    Loss::ALL.into_iter().enumerate().map(of_cause).chain([other, causes]).collect()
}

/// Losses whose cause has this place in [`Loss::ALL`]; `None`: none.
fn by_place(losses: &[LossCount], place: Option<usize>) -> impl Iterator<Item = &LossCount> {
    losses.iter().filter(move |loss| Loss::ALL.iter().position(|cause| cause.name() == loss.cause) == place)
}

fn sum<'a>(losses: impl Iterator<Item = &'a LossCount>) -> i64 {
    int(losses.fold(0, |sum, loss| sum.saturating_add(loss.count))).unwrap_or(i64::MAX)
}

/// As [`OTHER_LOSSES`] has it.
fn written(loss: &LossCount) -> String {
    format!("{}={}", loss.cause, loss.count)
}

/// The other way round; `None` if it is nothing of the kind.
pub(crate) fn read_loss(text: &str) -> Option<LossCount> {
    let (cause, count) = text.split_once('=')?;
    Some(LossCount { cause: cause.to_owned(), count: count.parse().ok()? })
}

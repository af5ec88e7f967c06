//! Defines the columns that say what a window ran under.

use super::{Column, ColumnOf, Windows, int, kind};

const NOT_NOTED: &str = "not noted";

pub(crate) const BUSY_CPUS_MILLI: Column<kind::Int> = Column::quantity(
    "busy_cpus_milli",
    "kernel",
    "CPUs that were busy on average: (cpu_busy_ns + cpu_unslotted_ns) / window_ns",
)
.unit("1/1000 CPU")
.null("a window without length");
pub(crate) const MEAN_FREQUENCY_KHZ: Column<kind::Int> = Column::quantity(
    "mean_frequency_khz",
    "cycles, msr or cpufreq",
    "mean frequency of busy CPUs, by cycles or APERF/MPERF, else by cpufreq at the window's end",
)
.unit("kHz")
.null("no source");
pub(crate) const GOVERNOR: Column<kind::Name> =
    Column::new("governor", "cpufreq", "frequency governor of all CPUs, or mixed").null("the machine has no cpufreq");
pub(crate) const STEAL_NS: Column<kind::Int> =
    Column::quantity("steal_ns", "/proc/stat", "time that the hypervisor took from all CPUs, in steps of 10 ms")
        .unit("ns")
        .null("not readable");
pub(crate) const TEMPERATURE_MILLICELSIUS: Column<kind::Int> = Column::quantity(
    "temperature_millicelsius",
    "hwmon or thermal zones",
    "temperature of the hottest processor at the window's end",
)
.unit("1/1000 °C")
.null("no sensor");
pub(crate) const SUSPENDED_NS: Column<kind::Int> =
    Column::new("suspended_ns", "clocks", "how long the machine was suspended in the window, beside window_ns")
        .unit("ns")
        .null(NOT_NOTED);
pub(crate) const CLOCK_STEP_US: Column<kind::Int> = Column::new(
    "clock_step_us",
    "clocks",
    "how far the clock was set forward in the window, or back if negative; steps below 1 ms do not count",
)
.unit("µs")
.null(NOT_NOTED);

pub(crate) const CLOCK_OFFSET_US: Column<kind::Int> = Column::new(
    "clock_offset_us",
    "clocks",
    "what the clock said at the window's start, minus window_start: not 0 after it was set back",
)
.unit("µs")
.null(NOT_NOTED);

pub(super) fn columns() -> Vec<ColumnOf<Windows>> {
    vec![
        BUSY_CPUS_MILLI.of::<Windows>(|r| r.cpu.busy_cpus_milli(r.key.length_ns)),
        MEAN_FREQUENCY_KHZ.of::<Windows>(|r| int(r.context?.mean_frequency_khz?)),
        GOVERNOR.of::<Windows>(|r| r.context?.governor.as_deref().map(Into::into)),
        STEAL_NS.of::<Windows>(|r| int(r.context?.steal_ns?)),
        TEMPERATURE_MILLICELSIUS.of::<Windows>(|r| r.context?.temperature_millicelsius),
        SUSPENDED_NS.of::<Windows>(|r| int(r.context?.suspended_ns)),
        CLOCK_STEP_US.of::<Windows>(|r| Some(r.context?.clock_step_us)),
        CLOCK_OFFSET_US.of::<Windows>(|r| Some(r.context?.clock_offset_us)),
    ]
}

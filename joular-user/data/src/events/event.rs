//! Defines the closed set of events, in the order in which one window produces them: processes,
//! stacks, symbols, readings, and last the window itself.

use joular_ebpf::abi::{Comm, SampleKind, StackId};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};

use super::{
    BufferEnds, HostIdentity, LongName, Mark, Service, WindowAllocations, WindowCollections, WindowContext,
    WindowCounters, WindowIo, Workload,
};
use crate::model::{
    domain::{Domain, Reading},
    frame::Frame,
    policy::Policy,
    quality::StackQuality,
    target_text::TargetText,
    units::{Address, MonotonicNs, Pid, Tid, UnixMicros},
};

/// Something that was learned about the world.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Event {
    /// Always the first event.
    RunStarted(Box<RunInfo>),
    /// A process was found, or what is known about it changed.
    Process(Box<ProcessInfo>),
    /// A process ended. Comes after the window that has its last time and samples.
    ProcessEnded { pid: Pid, start_boottime_ns: u64 },
    /// A stack that was not seen before.
    Stack(RawStack),
    /// Names for addresses of a process, or of the kernel (`pid` 0). A later
    /// answer for the same address replaces an earlier one.
    Symbols { pid: Pid, start_boottime_ns: u64, symbols: Vec<Symbol> },
    /// Stacks that have not occurred for long and need not be kept.
    StacksForgotten(Vec<u64>),
    /// Counters read at the boundary that ends the coming window. The first
    /// one stands before the first window and only sets the starting point.
    Energy(EnergyReading),
    /// A window is complete.
    Window(Box<Window>),
    /// Always the last event of a run that ended properly.
    RunEnded(RunEnd),
    /// What the coming window ran under.
    Context(Box<WindowContext>),
    /// Something that a program said in the coming window.
    Mark(Box<Mark>),
    /// What was counted in the coming window, if anything was asked for.
    Counters(Box<WindowCounters>),
    /// What was allocated in the coming window, if that was asked for.
    Allocations(Box<WindowAllocations>),
    /// Collections in the coming window, if that was asked for.
    Collections(Box<WindowCollections>),
    /// What was moved through sockets and files in the coming window, if that was asked for.
    Io(Box<WindowIo>),
    /// Allocations of this JVM cannot be sampled: what its threads allocate is divided by samples of CPU time.
    AllocationsUnsampled { pid: Pid, start_boottime_ns: u64 },
    /// A thread has a longer name than the kernel keeps.
    LongName(Box<LongName>),
    /// Where buffers of threads ended in the coming window, by process and thread. Comes before what was allocated.
    BufferEnds(Vec<BufferEnds>),
}

/// What does not change during a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RunInfo {
    /// Unique name of the run: host, start time and pid.
    pub run_id: String,
    pub host: TargetText,
    pub started: UnixMicros,
    /// Time since boot (`CLOCK_BOOTTIME`) minus monotonic time, at the start:
    /// how long the machine had been suspended.
    pub boottime_offset_ns: u64,
    pub version: String,
    pub kernel: String,
    pub cpu_model: String,
    pub arch: String,
    pub online_cpus: u32,
    pub sockets: u32,
    pub memory_bytes: u64,
    pub command_line: Vec<String>,
    /// What took the samples: `timer` or `cpu-clock`.
    pub sampling_event: String,
    pub frequency_hz: u32,
    pub interval_ns: u64,
    /// Name of the energy source, as in `--energy`.
    pub energy_source: String,
    /// Why this source was chosen, in one sentence.
    pub energy_reason: String,
    pub domains: Vec<Domain>,
    pub policy: Policy,
    /// joular-bpf itself: its energy is never anyone else's.
    pub profiler_pid: Pid,
    pub identity: HostIdentity,
}

/// What a process runs on.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub enum Runtime {
    #[default]
    Native,
    Jvm {
        /// As the JVM's `release` file says, if it could be read.
        version: Option<TargetText>,
        main_class: Option<TargetText>,
        /// `G1`, `Parallel`, `Serial`, `Z`, `Shenandoah`, if known.
        collector: Option<TargetText>,
        /// Whether compiled code is described between safepoints too (`DebugNonSafepoints`), if
        /// known. Without it, the inlined method of a leaf is coarse.
        debug_non_safepoints: Option<bool>,
        /// How its stacks are unwound: `hotspot`, or why not by that; `None` before that is
        /// decided.
        unwinding: Option<TargetText>,
    },
}

/// What was learned of a running JVM from its own memory. What is `None` is not known.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct JvmNews {
    pub version: Option<TargetText>,
    /// The class, module or jar that it runs, and its arguments.
    pub command: Option<TargetText>,
    pub collector: Option<TargetText>,
    pub debug_non_safepoints: Option<bool>,
    /// See [`Runtime::Jvm`].
    pub unwinding: Option<TargetText>,
}

impl Runtime {
    /// A JVM of which nothing else is known.
    pub const UNKNOWN_JVM: Self =
        Self::Jvm { version: None, main_class: None, collector: None, debug_non_safepoints: None, unwinding: None };

    /// Takes over what is known now, which is better than what the command line and files of the
    /// installation said. Returns whether that changed anything.
    pub fn learn(&mut self, news: &JvmNews) -> bool {
        if *news == JvmNews::default() {
            return false;
        }
        if *self == Self::Native {
            *self = Self::UNKNOWN_JVM;
        }
        let Self::Jvm { version, collector, debug_non_safepoints, unwinding, .. } = self else { return false };
        let mut has_changed = false;
        for (known, new) in [(version, &news.version), (collector, &news.collector), (unwinding, &news.unwinding)] {
            if new.is_some() && known != new {
                known.clone_from(new);
                has_changed = true;
            }
        }
        if news.debug_non_safepoints.is_some() && *debug_non_safepoints != news.debug_non_safepoints {
            *debug_non_safepoints = news.debug_non_safepoints;
            has_changed = true;
        }
        has_changed
    }
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ProcessInfo {
    pub pid: Pid,
    /// Start of its first thread, nanoseconds since boot, rounded down to the 10 ms that /proc
    /// gives. It identifies the process together with `pid`.
    pub start_boottime_ns: u64,
    pub parent: Pid,
    pub comm: TargetText,
    pub command_line: Vec<TargetText>,
    pub executable: Option<TargetText>,
    pub uid: u32,
    pub gid: u32,
    /// Its pid in its own, innermost namespace.
    pub namespace_pid: u32,
    pub cgroup: Option<TargetText>,
    pub container: Option<TargetText>,
    pub pod: Option<TargetText>,
    /// The systemd unit that it is in.
    pub unit: Option<TargetText>,
    /// What Kubernetes says of its container; `None`: in none of Kubernetes, or nobody was asked.
    pub workload: Option<Box<Workload>>,
    /// `None`: not known.
    pub service: Option<Service>,
    pub runtime: Runtime,
    /// Whether the selection matches it.
    pub is_target: bool,
    /// Whether joular-bpf started it for itself: its time is the profiler's. Never a
    /// target.
    pub is_helper: bool,
}

/// A stack as the kernel sent it, leaf first. Frames of the kernel are addresses,
/// those of a process [`joular_ebpf::abi::FrameWord`]s.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RawStack {
    pub id: u64,
    pub is_kernel: bool,
    pub quality: StackQuality,
    pub frames: Vec<Address>,
}

impl RawStack {
    pub fn stack_id(&self) -> StackId {
        StackId(self.id)
    }
}

/// The frames at one address (or what a [`joular_ebpf::abi::FrameWord`] says),
/// outermost first: more than one where code was inlined. Empty if nothing could
/// name it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Symbol {
    pub address: Address,
    pub frames: Vec<Frame>,
}

/// Readings of all domains at one moment.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct EnergyReading {
    /// When the reading was really taken (its middle).
    pub read_at: MonotonicNs,
    /// One entry per domain of [`RunInfo::domains`], in that order.
    pub readings: Vec<Reading>,
}

/// One attribution interval as the kernel counted it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Window {
    /// 0, 1, 2, …
    pub index: u64,
    pub start: MonotonicNs,
    pub end: MonotonicNs,
    /// Wall-clock time of `start`. It is the window's key, so no window starts before the end of the
    /// one before: where the clock was set back, it goes on as if it had not been.
    pub wall_start: UnixMicros,
    pub threads: Vec<ThreadTime>,
    pub samples: Vec<SampleCount>,
    /// Per CPU.
    pub cpus: Vec<CpuTimes>,
    /// Losses within this window that are not zero.
    pub losses: Vec<LossCount>,
}

impl Window {
    pub const fn length_ns(&self) -> u64 {
        self.end.since(self.start)
    }
}

/// On-CPU time of one thread in one place: a socket, or a core of it where
/// cores have energy counters of their own.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ThreadTime {
    pub tid: Tid,
    pub pid: Pid,
    pub socket: u32,
    /// Physical core if cores are told apart; else the number of its type, 0 unless the processor is
    /// hybrid.
    pub core: u32,
    pub start_boottime_ns: u64,
    pub is_kernel: bool,
    pub comm: Comm,
    pub cpu_ns: u64,
    /// Of `cpu_ns`: while the core's other hyper-thread was busy too.
    pub corun_ns: u64,
    /// Unhalted cycles, 0 unless they are counted.
    pub cycles: u64,
    pub samples: u32,
    pub switches: u32,
}

/// How often a thread was seen with a stack.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SampleCount {
    #[serde(serialize_with = "write_kind", deserialize_with = "read_kind")]
    pub kind: SampleKind,
    pub tid: Tid,
    pub pid: Pid,
    /// Start time of the thread as its key keeps it: see `abi::ThreadKey`.
    pub thread_key: u64,
    /// Ids of the two parts of the stack, 0 if there is none.
    pub user_stack: u64,
    pub kernel_stack: u64,
    pub count: u32,
}

fn write_kind<S: Serializer>(kind: &SampleKind, serializer: S) -> Result<S::Ok, S::Error> {
    kind.code().serialize(serializer)
}

fn read_kind<'de, D: Deserializer<'de>>(deserializer: D) -> Result<SampleKind, D::Error> {
    let code = u32::deserialize(deserializer)?;
    SampleKind::decode(code).ok_or_else(|| D::Error::custom(format_args!("samples of the unknown kind {code}")))
}

/// What one CPU did in a window: `busy + idle + unslotted = window`, exactly.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CpuTimes {
    pub cpu: u32,
    pub socket: u32,
    /// Physical core, 0 unless cores are told apart.
    pub core: u32,
    pub busy_ns: u64,
    pub idle_ns: u64,
    pub unslotted_ns: u64,
    pub switches: u64,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LossCount {
    /// Stable name of the cause.
    pub cause: String,
    pub count: u64,
}

impl LossCount {
    /// The name under which a window's event says by how many nanoseconds the times of its CPUs may be
    /// off. It is not a loss of events, and tables have it apart.
    pub const INEXACT_CPU_NS: &str = "inexact_cpu_ns";
    /// Windows before this one that could not be written.
    pub const UNWRITTEN_WINDOWS: &str = "unwritten_windows";
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunEnd {
    pub ended: UnixMicros,
    /// `duration`, `SIGINT`, `SIGTERM`, …
    pub reason: String,
}

impl RunEnd {
    /// The reason of a run that holds a command from its first instruction to its end.
    pub const OF_COMMAND: &'static str = "end of the command";
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_jvm_says_of_itself_replaces_what_its_files_said() {
        let jvm = |version: &str, collector: Option<&str>, debug_non_safepoints| Runtime::Jvm {
            version: Some(version.into()),
            main_class: Some("Main".into()),
            collector: collector.map(Into::into),
            debug_non_safepoints,
            unwinding: None,
        };
        let mut runtime = jvm("17.0.1", None, None);
        let news = JvmNews { collector: Some("Z".into()), debug_non_safepoints: Some(false), ..JvmNews::default() };
        assert!(runtime.learn(&news));
        assert_eq!(runtime, jvm("17.0.1", Some("Z"), Some(false)));
        assert!(!runtime.learn(&news) && !runtime.learn(&JvmNews::default()), "nothing is new");
        assert!(runtime.learn(&JvmNews { version: Some("17.0.2".into()), ..JvmNews::default() }));
        assert_eq!(runtime, jvm("17.0.2", Some("Z"), Some(false)));
    }

    #[test]
    fn a_program_that_loads_a_jvm_is_one() {
        let mut runtime = Runtime::Native;
        assert!(!runtime.learn(&JvmNews::default()) && runtime == Runtime::Native);
        assert!(runtime.learn(&JvmNews { unwinding: Some("hotspot".into()), ..JvmNews::default() }));
        assert!(matches!(runtime, Runtime::Jvm { unwinding: Some(_), .. }));
    }
}

//! Chooses what takes samples: timers of our own programs, or the kernel's event cpu-clock.
//!
//! Timers of our own ([`Sampler::Timer`]) are drawn at random and run only while targets do. So no
//! timer of a workload keeps step with them, and idle CPUs are left alone. The programs see timer
//! interrupts through a tracepoint, and have to know where in a kernel stack the
//! interrupt begins (`interrupts`). Where either is missing, as on machines whose hypervisor gives them another
//! timer (Hyper-V, Xen), cpu-clock takes the samples ([`Sampler::Event`]): one event per CPU, with a
//! fixed period, idle or not. It does so on PREEMPT_RT too, where Linux lets no program set a timer.
//!
//! Hardware cycles are not sampled. In frequency mode the kernel changes the period at every tick, so
//! that a sample stands for more cycles in busy times than in quiet ones. With a fixed period of
//! cycles a sample stands for less time the faster a CPU runs, and time is what a thread's samples
//! divide. Cycles are counted instead, exactly, where they are to weigh threads (`--weight cycles`).

use std::{
    fs,
    path::{Path, PathBuf},
};

use aya::{
    Btf, Ebpf,
    programs::{
        BtfTracePoint, PerfEvent,
        perf_event::{PerfEventConfig, PerfEventLinkId, PerfEventScope, SamplePolicy, SoftwareEvent},
    },
};

use super::{
    cpus::{self, Life},
    error::KernelError,
    interrupts::{self, TimerInterrupts},
    programs::{is_offline, typed},
    roots::KernelRoots,
};

/// Newer kernels refuse such a program; in an older one it would sleep in an interrupt.
const NO_TIMERS_ON_REALTIME: &str = "programs cannot set timers on a kernel with PREEMPT_RT";

/// Said where the kernel refuses the programs for what they do with timers.
pub const TIMERS_REFUSED: &str = "this kernel lets no program set a timer";

/// What takes samples. The programs differ, what a sample contains does not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sampler {
    /// Timers that our programs set.
    Timer(TimerInterrupts),
    /// The kernel's event cpu-clock.
    Event,
}

impl Sampler {
    /// The best that works here; if that is not the timer, why.
    pub fn choose(roots: &KernelRoots) -> (Self, Option<String>) {
        Self::choose_by(roots, interrupts::find)
    }

    fn choose_by(roots: &KernelRoots, find: Find) -> (Self, Option<String>) {
        match timer_interrupts(roots, find) {
            Ok(interrupts) => (Self::Timer(interrupts), None),
            Err(reason) => (Self::Event, Some(reason)),
        }
    }

    /// Name in outputs.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Timer(_) => "timer",
            Self::Event => "cpu-clock",
        }
    }

    /// Name of the program that takes the samples.
    pub(super) const fn program(&self) -> &'static str {
        match self {
            Self::Timer(_) => "sample_at_timer",
            Self::Event => "sample_at_event",
        }
    }

    pub(super) fn mean_gap_ns(&self, frequency_hz: u32) -> u64 {
        match self {
            Self::Timer(_) => 1_000_000_000 / u64::from(frequency_hz.max(1)),
            Self::Event => 0,
        }
    }

    pub(super) fn interrupts(&self) -> TimerInterrupts {
        match self {
            Self::Timer(interrupts) => *interrupts,
            Self::Event => TimerInterrupts::default(),
        }
    }

    /// Loads the program that takes samples, and no other: each would be verified.
    pub(super) fn load(&self, ebpf: &mut Ebpf, btf: &Btf) -> Result<(), KernelError> {
        let program = self.program();
        let loaded = match self {
            Self::Timer(_) => typed::<BtfTracePoint>(ebpf, program)?.load(interrupts::TRACEPOINT, btf),
            Self::Event => typed::<PerfEvent>(ebpf, program)?.load(),
        };
        loaded.map_err(|source| KernelError::Program { operation: "loading", program, source: Box::new(source) })
    }
}

/// What is attached of a sampler.
#[derive(Debug, Default)]
pub(super) struct Attached {
    /// Events, by their CPU.
    events: Vec<(Life, PerfEventLinkId)>,
    is_at_timer: bool,
}

impl Attached {
    /// Samples on these CPUs. The timer's program is attached once, and sees to CPUs that come. Returns of
    /// how many CPUs the event had ended unnoticed, because they went and came back.
    pub(super) fn follow(
        &mut self,
        ebpf: &mut Ebpf,
        sampler: &Sampler,
        frequency_hz: u32,
        lives: &[Life],
    ) -> Result<u64, KernelError> {
        let program = sampler.program();
        let failed = |source| KernelError::Program { operation: "attaching", program, source: Box::new(source) };
        if let Sampler::Timer(_) = sampler {
            if !self.is_at_timer {
                typed::<BtfTracePoint>(ebpf, program)?.attach().map_err(failed)?;
                self.is_at_timer = true;
            }
            return Ok(0);
        }
        let event: &mut PerfEvent = typed(ebpf, program)?;
        let config = PerfEventConfig::Software(SoftwareEvent::CpuClock);
        // A period in nanoseconds: a frequency would be refused above `kernel.perf_event_max_sample_rate`,
        // which other users of perf lower.
        let policy = SamplePolicy::Period(1_000_000_000 / u64::from(frequency_hz.max(1)));
        let mut ended = 0;
        for (life, gone) in self.events.extract_if(.., |(life, _)| !lives.contains(life)) {
            ended += u64::from(lives.iter().any(|new| new.cpu == life.cpu));
            event.detach(gone).map_err(|source| KernelError::Program {
                operation: "detaching",
                program,
                source: Box::new(source),
            })?;
        }
        for life in lives {
            if self.events.iter().any(|(known, _)| known == life) {
                continue;
            }
            match event.attach(config, PerfEventScope::AllProcessesOneCpu { cpu: life.cpu }, policy, false) {
                Ok(link) => self.events.push((*life, link)),
                Err(error) if is_offline(&error) => {}
                Err(source) => return Err(failed(source)),
            }
        }
        Ok(ended)
    }
}

/// How a processor's timer interrupts are found, or why they cannot be seen.
type Find = fn(&KernelRoots) -> Result<TimerInterrupts, String>;

/// The interrupts, or why timers cannot be used.
fn timer_interrupts(roots: &KernelRoots, find: Find) -> Result<TimerInterrupts, String> {
    if is_realtime(roots) {
        return Err(NO_TIMERS_ON_REALTIME.to_owned());
    }
    let isolated = fs::read_to_string(roots.system.join("cpu/nohz_full")).unwrap_or_default();
    if !cpus::parse_cpu_list(&isolated).is_empty() && !pins_timers(&roots.proc) {
        return Err("timers leave isolated CPUs (nohz_full) before Linux 6.7".to_owned());
    }
    find(roots)
}

/// Whether the kernel is built with PREEMPT_RT. It says so in a file of its own, or else in its version.
fn is_realtime(roots: &KernelRoots) -> bool {
    let text = |path: PathBuf| fs::read_to_string(path).unwrap_or_default();
    let version = text(roots.proc.join("sys/kernel/version"));
    text(roots.kernel.join("realtime")).trim() == "1"
        || version.contains("PREEMPT_RT")
        || version.contains("PREEMPT RT")
}

/// Whether `bpf_timer_start` can keep a timer on its CPU: from Linux 6.7 on.
fn pins_timers(proc_root: &Path) -> bool {
    let release = fs::read_to_string(proc_root.join("sys/kernel/osrelease")).unwrap_or_default();
    let mut numbers = release.split(['.', '-']).map_while(|part| part.trim().parse::<u32>().ok());
    (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0)) >= (6, 7)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SYMBOLS: &str = "ffffffff81002000 T asm_sysvec_apic_timer_interrupt\nffffffff81002040 T next\n";

    fn choose(roots: &KernelRoots) -> (Sampler, Option<String>) {
        Sampler::choose_by(roots, interrupts::x86_64::find)
    }

    #[test]
    fn realtime_kernels_take_samples_by_the_event() {
        for (realtime, version, name) in [
            (None, "#1 SMP PREEMPT_DYNAMIC Debian 6.1.192-2 (2026-11-16)\n", "timer"),
            (None, "", "timer"),
            (Some("0\n"), "#1 SMP PREEMPT_DYNAMIC\n", "timer"),
            (Some("1\n"), "#1 SMP PREEMPT_DYNAMIC\n", "cpu-clock"),
            (Some("1\n"), "#1 SMP PREEMPT_RT Debian 6.1.192-2 (2026-11-16)\n", "cpu-clock"),
            (None, "#1 SMP PREEMPT_RT Debian 6.12.117-1~deb12u1\n", "cpu-clock"),
            (None, "#1 SMP PREEMPT RT\n", "cpu-clock"),
        ] {
            let root = tempfile::tempdir().unwrap();
            let roots = KernelRoots::below(root.path());
            let write = |path: &str, text: &str| {
                let path = root.path().join(path);
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                fs::write(path, text).unwrap();
            };
            write("proc/kallsyms", SYMBOLS);
            write("system/clockevents/clockevent0/current_device", "lapic-deadline\n");
            write("proc/sys/kernel/version", version);
            if let Some(text) = realtime {
                write("kernel/realtime", text);
            }
            let (sampler, reason) = choose(&roots);
            assert_eq!(sampler.name(), name, "{realtime:?} {version}");
            assert_eq!(reason.is_some_and(|reason| reason.contains("PREEMPT_RT")), name == "cpu-clock");
        }
    }

    #[test]
    fn other_timers_and_isolated_cpus_on_old_kernels_take_samples_by_the_event() {
        let root = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        let roots = KernelRoots::below(root.path());
        let reason = || choose(&roots).1.unwrap_or_default();
        write("proc/kallsyms", SYMBOLS);
        write("proc/sys/kernel/osrelease", "6.6.12-generic\n");
        assert!(reason().contains("timer is unknown"), "{}", reason());
        write("system/clockevents/clockevent0/current_device", "hyperv_clockevent\n");
        assert!(reason().contains("timer is hyperv_clockevent"), "{}", reason());
        write("system/clockevents/clockevent0/current_device", "lapic-deadline\n");
        write("system/cpu/nohz_full", "(null)\n");
        assert_eq!(choose(&roots).0.name(), "timer");
        write("system/cpu/nohz_full", "2-3\n");
        assert!(reason().contains("isolated"), "{}", reason());
        write("proc/sys/kernel/osrelease", "6.12.3\n");
        assert_eq!(choose(&roots).0.name(), "timer");
        fs::remove_file(root.path().join("proc/kallsyms")).unwrap();
        assert!(reason().contains("kallsyms"), "{}", reason());
    }
}

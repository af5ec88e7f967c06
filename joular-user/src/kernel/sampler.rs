//! Chooses what takes samples: timers of our own programs, or the kernel's event cpu-clock.
//!
//! Timers of our own ([`Sampler::Timer`]) are drawn at random and run only while targets do. So no
//! timer of a workload keeps step with them, and idle CPUs are left alone. The programs see timer
//! interrupts through a tracepoint of the local APIC, and have to know where in a kernel stack the
//! interrupt begins. Where either is missing, as on machines whose hypervisor gives them another
//! timer (Hyper-V, Xen), cpu-clock takes the samples ([`Sampler::Event`]): one event per CPU, with a
//! fixed period, idle or not. It does so on PREEMPT_RT too, where Linux lets no program set a timer.
//!
//! Hardware cycles are not sampled. In frequency mode the kernel changes the period at every tick, so
//! that a sample stands for more cycles in busy times than in quiet ones. With a fixed period of
//! cycles a sample stands for less time the faster a CPU runs, and time is what a thread's samples
//! divide. Cycles are counted instead, exactly, where they are to weigh threads (`--weight cycles`).

use std::{
    fs::{self, File},
    io::{self, BufRead, BufReader},
    ops::ControlFlow,
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
    kallsyms::{self, Symbol},
    programs::{is_offline, typed},
    roots::KernelRoots,
};

/// Where timer interrupts of the local APIC begin.
const TIMER_TRACEPOINT: &str = "local_timer_entry";

/// Newer kernels refuse such a program; in an older one it would sleep in an interrupt.
const NO_TIMERS_ON_REALTIME: &str = "programs cannot set timers on a kernel with PREEMPT_RT";

/// Said where the kernel refuses the programs for what they do with timers.
pub const TIMERS_REFUSED: &str = "this kernel lets no program set a timer";

/// What takes samples. The programs differ, what a sample contains does not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sampler {
    /// Timers that our programs set.
    Timer(InterruptEntries),
    /// The kernel's event cpu-clock.
    Event,
}

/// First and last addresses of the kernel's entries for timer interrupts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct InterruptEntries {
    pub(super) timer: [u64; 2],
    /// Entries for all interrupts, on processors with FRED.
    pub(super) any: [u64; 2],
}

impl Sampler {
    /// The best that works here; if that is not the timer, why.
    pub fn choose(roots: &KernelRoots) -> (Self, Option<String>) {
        match timer_entries(roots) {
            Ok(entries) => (Self::Timer(entries), None),
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

    pub(super) fn entries(&self) -> InterruptEntries {
        match self {
            Self::Timer(entries) => *entries,
            Self::Event => InterruptEntries::default(),
        }
    }

    /// Loads the program that takes samples, and no other: each would be verified.
    pub(super) fn load(&self, ebpf: &mut Ebpf, btf: &Btf) -> Result<(), KernelError> {
        let program = self.program();
        let loaded = match self {
            Self::Timer(_) => typed::<BtfTracePoint>(ebpf, program)?.load(TIMER_TRACEPOINT, btf),
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

/// The entries, or why timers cannot be used.
fn timer_entries(roots: &KernelRoots) -> Result<InterruptEntries, String> {
    if is_realtime(roots) {
        return Err(NO_TIMERS_ON_REALTIME.to_owned());
    }
    let device = roots.system.join("clockevents/clockevent0/current_device");
    let device = fs::read_to_string(device).unwrap_or_default();
    // Each CPU has the same kind. `lapic-deadline` is the same timer in another mode.
    if !device.starts_with("lapic") {
        let device = if device.trim().is_empty() { "unknown" } else { device.trim() };
        return Err(format!("the CPUs' timer is {device}, not the local APIC's"));
    }
    let isolated = fs::read_to_string(roots.system.join("cpu/nohz_full")).unwrap_or_default();
    if !cpus::parse_cpu_list(&isolated).is_empty() && !pins_timers(&roots.proc) {
        return Err("timers leave isolated CPUs (nohz_full) before Linux 6.7".to_owned());
    }
    let path = roots.proc.join("kallsyms");
    let file = File::open(&path).map_err(|error| format!("reading {}: {error}", path.display()))?;
    let entries = entries_in(BufReader::new(file)).map_err(|error| format!("reading {}: {error}", path.display()))?;
    entries.ok_or_else(|| format!("{} does not say where the kernel enters timer interrupts", path.display()))
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

/// Finds the entries among the kernel's symbols; none if addresses are hidden or there is no such
/// entry. A symbol ends where the next one in memory begins. All entries are in one section, whose end has
/// a name; what follows it takes the kernel long to list.
fn entries_in(lines: impl BufRead) -> io::Result<Option<InterruptEntries>> {
    const TIMER: usize = 0;
    const FROM_USER: usize = 1;
    const FROM_KERNEL: usize = 2;
    const NAMES: [&[u8]; 3] =
        [b"asm_sysvec_apic_timer_interrupt", b"asm_fred_entrypoint_user", b"asm_fred_entrypoint_kernel"];
    const SECTION_END: &[u8] = b"__entry_text_end";
    let mut starts = [0_u64; 3];
    let mut code = Vec::new();
    kallsyms::each(lines, |Symbol { address, kind, name }| {
        if matches!(kind, b't' | b'T') {
            code.push(address);
            if name == SECTION_END && starts[TIMER] != 0 && starts[TIMER] < address {
                return ControlFlow::Break(());
            }
            if let Some(index) = NAMES.iter().position(|known| *known == name) {
                starts[index] = address;
            }
        }
        ControlFlow::Continue(())
    })?;
    let last_of = |start: u64| code.iter().filter(|next| **next > start).min().map_or(start, |next| next - 1);
    if starts[TIMER] == 0 {
        return Ok(None);
    }
    let timer = [starts[TIMER], last_of(starts[TIMER])];
    let has_fred = starts[FROM_USER] != 0 && starts[FROM_KERNEL] > starts[FROM_USER];
    let any = if has_fred { [starts[FROM_USER], last_of(starts[FROM_KERNEL])] } else { [0, 0] };
    Ok(Some(InterruptEntries { timer, any }))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SYMBOLS: &str = "ffffffff81000000 T _text
ffffffff81001000 t one
ffffffff81002000 T asm_sysvec_apic_timer_interrupt
ffffffff81002040 T asm_sysvec_reboot
ffffffff82000000 D data
ffffffffc0000000 t in_a_module\t[module]
";

    fn entries(symbols: &str) -> Option<InterruptEntries> {
        entries_in(symbols.as_bytes()).unwrap()
    }

    #[test]
    fn an_entry_ends_where_the_next_function_begins() {
        let found = entries(SYMBOLS).unwrap();
        assert_eq!(found.timer, [0xffff_ffff_8100_2000, 0xffff_ffff_8100_203f]);
        assert_eq!(found.any, [0, 0]);
    }

    #[test]
    fn symbols_behind_the_section_of_entries_are_not_read() {
        let symbols = SYMBOLS.replace("82000000 D data", "82000000 T __entry_text_end");
        let mut unread = symbols.as_bytes();
        assert_eq!(entries_in(&mut unread).unwrap(), entries(SYMBOLS));
        assert_eq!(unread, b"ffffffffc0000000 t in_a_module\t[module]\n");
    }

    #[test]
    fn processors_with_fred_enter_by_two_functions_in_a_row() {
        let symbols = SYMBOLS.to_owned()
            + "ffffffff81003000 T asm_fred_entrypoint_user\nffffffff81003100 T asm_fred_entrypoint_kernel\nffffffff81003200 T next\n";
        assert_eq!(entries(&symbols).unwrap().any, [0xffff_ffff_8100_3000, 0xffff_ffff_8100_31ff]);
    }

    #[test]
    fn hidden_or_missing_symbols_are_no_entries() {
        assert_eq!(entries("0000000000000000 T asm_sysvec_apic_timer_interrupt\n"), None);
        assert_eq!(entries("ffffffff81000000 T _text\n"), None);
        assert_eq!(entries(""), None);
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
            let (sampler, reason) = Sampler::choose(&roots);
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
        let reason = || Sampler::choose(&roots).1.unwrap_or_default();
        write("proc/kallsyms", SYMBOLS);
        write("proc/sys/kernel/osrelease", "6.6.12-generic\n");
        assert!(reason().contains("timer is unknown"), "{}", reason());
        write("system/clockevents/clockevent0/current_device", "hyperv_clockevent\n");
        assert!(reason().contains("timer is hyperv_clockevent"), "{}", reason());
        write("system/clockevents/clockevent0/current_device", "lapic-deadline\n");
        write("system/cpu/nohz_full", "(null)\n");
        assert_eq!(Sampler::choose(&roots).0.name(), "timer");
        write("system/cpu/nohz_full", "2-3\n");
        assert!(reason().contains("isolated"), "{}", reason());
        write("proc/sys/kernel/osrelease", "6.12.3\n");
        assert_eq!(Sampler::choose(&roots).0.name(), "timer");
        fs::remove_file(root.path().join("proc/kallsyms")).unwrap();
        assert!(reason().contains("kallsyms"), "{}", reason());
    }

    proptest::proptest! {
        #[test]
        fn no_symbol_file_panics(bytes: Vec<u8>) {
            let _ = entries_in(bytes.as_slice());
        }
    }
}

//! Loads and attaches the eBPF programs.

use std::path::{Path, PathBuf};

use aya::{
    Btf, Ebpf, EbpfLoader,
    maps::{MapData, RingBuf},
    programs::{BtfTracePoint, ProgramError, RawTracePoint, RawTracePointRunOptions, TestRun as _},
};
use aya_log::EbpfLogger;
use joular_data::model::{counter::Counter, units::Pid};
use joular_ebpf::abi::{MAX_JVMS, Place};

use super::{
    allocations,
    banks::Banks,
    btf::{KernelTypes, VMLINUX_BTF},
    cost::{self, ProgramCost},
    counters::{self, CounterEvents},
    cpus::{self, Cpu, Life},
    cycles::{CycleCounters, CycleEvent},
    error::KernelError,
    features,
    hinted_pages::PageTables,
    io,
    isolated::Isolated,
    log::LogToStderr,
    map_sizes::MapSizes,
    probes::{ProbeOffsets, Probes},
    roots::KernelRoots,
    sampler::{Attached, Sampler},
    told::Told,
    type_info,
    unwind_maps::UnwindMaps,
};
use crate::clock;

/// The ring buffer of new stacks and lifecycle events.
pub type Ring = RingBuf<MapData>;

pub(super) const OBJECT: &[u8] = aya::include_bytes_aligned!(concat!(env!("OUT_DIR"), "/joular"));

/// `aya_log_common::Level::Trace`.
const LOG_EVERYTHING: u8 = 5;

/// One process may fill so small a part of the ring until it is read again.
const RING_SHARES: u32 = 8;

/// BTF tracepoint programs: name in the object, tracepoint.
const TRACEPOINTS: [(&str, &str); 5] = [
    ("sched_switch", "sched_switch"),
    ("process_exec", "sched_process_exec"),
    ("process_fork", "sched_process_fork"),
    ("process_exit", "sched_process_exit"),
    ("task_rename", "task_rename"),
];

/// What the programs are loaded with.
#[derive(Clone, Debug)]
pub struct LoadOptions {
    pub sampler: Sampler,
    pub frequency_hz: u32,
    pub interval_ns: u64,
    /// Stacks of every process, not only of targets.
    pub all_targets: bool,
    /// Of whom the programs tell, beside the targets.
    pub told: Told,
    /// Whether the programs log what they do, for their developers.
    pub log: bool,
    pub cpu_root: PathBuf,
    /// Whether time is counted apart for each physical core, not only for each socket.
    pub per_core: bool,
    /// What to count beside time, if anything.
    pub cycles: Option<CycleEvent>,
    /// What to count for each thread.
    pub counters: Vec<Counter>,
    /// Whether allocations of JVMs are sampled.
    pub allocations: bool,
    /// Whether bytes are counted that threads move through sockets and files.
    pub io: bool,
}

/// Identifies a build of the programs, because each build has its own cost.
pub fn object_hash() -> u64 {
    twox_hash::XxHash64::oneshot(0, OBJECT)
}

/// What loading yields: the programs, and handles to their maps.
#[allow(missing_debug_implementations, reason = "aya's map types have none")]
pub struct Loaded {
    pub programs: Programs,
    pub banks: Banks,
    pub ring: Ring,
    pub unwind_maps: UnwindMaps,
}

/// The loaded, and after [`Programs::attach`] running, programs.
#[allow(missing_debug_implementations, reason = "aya's logger has none")]
pub struct Programs {
    ebpf: Ebpf,
    options: LoadOptions,
    /// CPUs as of the last look.
    lives: Vec<Life>,
    online: Vec<Cpu>,
    sampling: Attached,
    isolated: Isolated,
    cycles: Option<CycleCounters>,
    counters: Option<CounterEvents>,
    probes: Probes,
    io: Option<io::Programs>,
    log: Option<EbpfLogger<LogToStderr>>,
}

impl Programs {
    /// Loads everything; nothing runs yet. Where the kernel lets no program set timers, the event takes the samples.
    pub fn load(options: LoadOptions) -> Result<Loaded, KernelError> {
        match Self::load_as_chosen(options.clone()) {
            Err(error) if error.refuses_timers() && options.sampler != Sampler::Event => {
                Self::load_as_chosen(LoadOptions { sampler: Sampler::Event, ..options })
            }
            loaded => loaded,
        }
    }

    fn load_as_chosen(options: LoadOptions) -> Result<Loaded, KernelError> {
        if !features::in_host_pid_namespace() {
            return Err(KernelError::PidNamespace);
        }
        let types = type_info::read(Path::new(VMLINUX_BTF))?;
        let types = KernelTypes::parse(&types)?;
        let offsets = type_info::member_offsets(&types)?;
        let io = options.io.then(|| io::Layout::of(&types)).transpose()?;
        let lives = cpus::lives(&options.cpu_root);
        let online = cpus::placed(&options.cpu_root, options.per_core);
        let sizes = MapSizes::of(&options, online.len());
        let stack_limit = features::stack_limit();
        let log_level: u8 = if options.log { LOG_EVERYTHING } else { 0 };
        let all_targets = u32::from(options.all_targets);
        let smt = u32::from(online.iter().any(|cpu| cpu.sibling.is_some()));
        let count_cycles = u32::from(options.cycles.is_some());
        let counter_count = u32::try_from(counters::by_event(&options.counters).count()).unwrap_or(0);
        let self_tgid = std::process::id();
        let mean_gap_ns = options.sampler.mean_gap_ns(options.frequency_hz);
        let interrupts = options.sampler.interrupts();
        let pages = PageTables::of(&KernelRoots::default());
        let mut loader = EbpfLoader::new();
        // The programs need no relocation: their offsets are the globals. The
        // types that `new` has read are let go before ours are.
        loader.btf(None).override_global("ALL_TARGETS", &all_targets, true);
        loader.override_global("SELF_TGID", &self_tgid, true);
        loader.override_global("SMT", &smt, true);
        loader.override_global("COUNT_CYCLES", &count_cycles, true);
        loader.override_global("COUNTER_COUNT", &counter_count, true);
        let second_walk = u32::from(options.allocations || options.io);
        loader.override_global("SECOND_WALK", &second_walk, true);
        let (count_io, now_ns) = (u32::from(options.io), clock::monotonic_now().0 + clock::boottime_offset_ns());
        loader.override_global("COUNT_IO", &count_io, true);
        loader.override_global("IO_SINCE_BOOTTIME", &now_ns, true);
        loader.override_global("MEAN_GAP_NS", &mean_gap_ns, true);
        interrupts.tell(&mut loader);
        loader.override_global("STACK_LIMIT", &stack_limit, true);
        loader.override_global("PAGE_LEVELS", &pages.levels, true);
        loader.override_global("PAGE_OFFSET_BASE", &pages.page_offset_base, true);
        loader.override_global("PHYSICAL_MASK", &pages.physical_mask, true);
        loader.override_global("AYA_LOG_LEVEL", &log_level, true);
        for (name, offset) in offsets.iter().chain(io.iter().flat_map(|io| &io.offsets)) {
            loader.override_global(name, offset, true);
        }
        let told = options.told.globals();
        for (name, value) in &told {
            loader.override_global(name, value, true);
        }
        options.told.size(&mut loader);
        let ring_share = sizes.ring_bytes / RING_SHARES;
        loader.override_global("RING_SHARE", &ring_share, true);
        loader.map_max_entries("EVENTS", sizes.ring_bytes).map_max_entries("KNOWN_STACKS", sizes.stacks);
        if mean_gap_ns != 0 {
            loader.map_max_entries("SAMPLING", cpus::possible(&options.cpu_root));
        }
        if second_walk != 0 {
            loader.map_max_entries("WALK", 2).map_max_entries("HINTED", 2);
            loader.map_max_entries("REMEMBERED_ROWS", 2).map_max_entries("REMEMBERED_FRAMES", 2);
            loader.map_max_entries("CALLERS_WALKED", cpus::possible(&options.cpu_root));
        }
        if options.allocations {
            loader.map_max_entries("BUFFERS", sizes.kept_threads).map_max_entries("COLLECTORS", MAX_JVMS);
            loader.map_max_entries("OBJECTS", allocations::MOST_OBJECTS).map_max_entries("OBJECT_COUNTS", MAX_JVMS);
        }
        if options.io {
            loader.map_max_entries("DEVICE_BYTES", sizes.kept_threads);
        }
        if smt != 0 {
            loader.map_max_entries("SIBLING_BUSY", cpus::possible(&options.cpu_root));
        }
        let mut ebpf = loader.load(OBJECT).map_err(|error| KernelError::Load(Box::new(error)))?;
        let btf = type_info::to_attach(Path::new(VMLINUX_BTF))?;
        load_programs(&mut ebpf, &options.sampler, &btf)?;
        let probes = if options.allocations { Probes::load(&mut ebpf, OBJECT)? } else { Probes::default() };
        let io = io.map(|layout| io::Programs::load(&mut ebpf, &layout, &btf)).transpose()?;
        drop(btf);
        let banks = Banks::take(&mut ebpf, &sizes, &options)?;
        options.told.write(&mut ebpf)?;
        let unwind_maps = UnwindMaps::take(&mut ebpf)?;
        // Only now: without privileges there would seem to be no counters.
        let cycles = match options.cycles {
            Some(CycleEvent::Cycles) if !features::has_cycles() => return Err(KernelError::NoCycles),
            event => event.map(|event| CycleCounters::new(&mut ebpf, event)).transpose()?,
        };
        let counters = (counter_count > 0).then(|| CounterEvents::new(&mut ebpf, &options.counters)).transpose()?;
        let log = options.log.then(|| EbpfLogger::init_with_logger(&mut ebpf, LogToStderr)).transpose();
        let log = log.map_err(|_| KernelError::Missing { kind: "map", name: "AYA_LOGS" })?;
        let ring = ebpf.take_map("EVENTS").ok_or(KernelError::Missing { kind: "map", name: "EVENTS" })?;
        let ring = RingBuf::try_from(ring).map_err(|source| KernelError::Map {
            operation: "mapping",
            map: "EVENTS",
            source: Box::new(source),
        })?;
        let (sampling, isolated) = (Attached::default(), Isolated::new(&options.cpu_root));
        let programs = Self { ebpf, options, lives, online, sampling, isolated, cycles, counters, probes, io, log };
        Ok(Loaded { programs, banks, ring, unwind_maps })
    }

    /// Name of the sampling event in outputs.
    pub const fn event_name(&self) -> &'static str {
        self.options.sampler.name()
    }

    /// What is counted beside time, if anything.
    pub const fn counts(&self) -> Option<CycleEvent> {
        self.options.cycles
    }

    /// Starts accounting and sampling. The accounting comes first, because a sample needs a running
    /// clock on its CPU. The counters of that CPU come before the accounting.
    pub fn attach(&mut self) -> Result<(), KernelError> {
        self.count_new_cpus()?;
        self.pass_boundary()?;
        for (program, _) in TRACEPOINTS {
            let tracepoint: &mut BtfTracePoint = typed(&mut self.ebpf, program)?;
            tracepoint.attach().map_err(|source| KernelError::Program {
                operation: "attaching",
                program,
                source: Box::new(source),
            })?;
        }
        self.io.as_ref().map_or(Ok(()), |io| io.attach(&mut self.ebpf))?;
        self.sample_new_cpus().map(drop)
    }

    /// A thread that runs already is to be sampled from now on.
    pub fn target_found(&mut self) {
        self.isolated.want();
    }

    /// Begins to sample such threads on CPUs without timer interrupts.
    pub fn interrupt_isolated(&mut self) -> std::io::Result<()> {
        if self.options.sampler == Sampler::Event { Ok(()) } else { self.isolated.interrupt(&self.lives) }
    }

    /// Whether allocations of JVMs are sampled.
    pub const fn sees_allocations(&self) -> bool {
        self.options.allocations
    }

    /// Whether probes will be opened for which the kernel wants CAP_SYS_ADMIN (`perf_uprobe_event_init` in
    /// kernel/events/core.c).
    pub const fn probes_need_sys_admin(&self) -> bool {
        self.options.allocations && self.probes.are_perf_events()
    }

    /// Opens probes in a process, at offsets in its library's file.
    pub fn open_probes(&mut self, pid: Pid, library: &Path, offsets: ProbeOffsets) -> Result<(), KernelError> {
        self.probes.open(&mut self.ebpf, pid, library, offsets)
    }

    /// Closes them, if there are any.
    pub fn close_probes(&mut self, pid: Pid) {
        self.probes.close(pid);
    }

    /// What counts bytes that are moved, if that was asked for.
    pub const fn io(&self) -> Option<&io::Programs> {
        self.io.as_ref()
    }

    /// Prints what the programs logged since the last time.
    pub fn flush_log(&mut self) {
        if let Some(log) = &mut self.log {
            log.flush();
        }
    }

    /// CPUs that passed the last boundary.
    pub fn online(&self) -> &[Cpu] {
        &self.online
    }

    /// Finds the CPUs that exist now; samples new ones, and counts their cycles. Returns how many were not
    /// sampled for a part of the window, because they went and came back.
    pub(super) fn follow_hotplug(&mut self) -> Result<u64, KernelError> {
        let lives = cpus::lives(&self.options.cpu_root);
        if lives == self.lives {
            return Ok(0);
        }
        self.lives = lives;
        self.online = cpus::placed(&self.options.cpu_root, self.options.per_core);
        self.count_new_cpus()?;
        self.sample_new_cpus()
    }

    fn count_new_cpus(&mut self) -> Result<(), KernelError> {
        self.cycles.as_mut().map_or(Ok(()), |cycles| cycles.follow(&self.lives))?;
        self.counters.as_mut().map_or(Ok(()), |counters| counters.follow(&self.lives))
    }

    fn sample_new_cpus(&mut self) -> Result<u64, KernelError> {
        let LoadOptions { sampler, frequency_hz, .. } = &self.options;
        self.sampling.follow(&mut self.ebpf, sampler, *frequency_hz, &self.lives)
    }

    /// Accounts the slice running on each CPU, so that every CPU has passed
    /// the published boundary when this returns. A CPU that went offline has
    /// nothing running and is skipped.
    pub fn pass_boundary(&self) -> Result<(), KernelError> {
        let name = "pass_boundary";
        let program = self.ebpf.program(name).ok_or(KernelError::Missing { kind: "program", name })?;
        let program: &RawTracePoint = program.try_into().map_err(|source| KernelError::Program {
            operation: "finding",
            program: name,
            source: Box::new(source),
        })?;
        for cpu in &self.online {
            let mut options = RawTracePointRunOptions::new();
            options.cpu = Some(cpu.id);
            options.args[0] = u64::from(Place::new(cpu.socket, cpu.core).0);
            options.args[1] = cpu.sibling.map_or(0, |sibling| u64::from(sibling) + 1);
            match program.test_run(options) {
                Ok(_) => {}
                Err(error) if is_offline(&error) => {}
                Err(source) => {
                    return Err(KernelError::Program { operation: "running", program: name, source: Box::new(source) });
                }
            }
        }
        Ok(())
    }

    /// Runs and run time of each program, if statistics are enabled.
    pub fn costs(&self) -> Vec<ProgramCost> {
        self.ebpf.programs().filter_map(|(_, program)| program.info().ok()).map(|info| cost::of(&info)).collect()
    }
}

/// No such CPU online (any more).
pub(super) fn is_offline(error: &ProgramError) -> bool {
    matches!(error, ProgramError::SyscallError(error)
        if matches!(error.io_error.raw_os_error(), Some(libc::ENXIO | libc::ENODEV)))
}

fn load_programs(ebpf: &mut Ebpf, sampler: &Sampler, btf: &Btf) -> Result<(), KernelError> {
    let failed = |program| {
        move |source: ProgramError| KernelError::Program { operation: "loading", program, source: Box::new(source) }
    };
    for (program, tracepoint) in TRACEPOINTS {
        typed::<BtfTracePoint>(ebpf, program)?.load(tracepoint, btf).map_err(failed(program))?;
    }
    sampler.load(ebpf, btf)?;
    typed::<RawTracePoint>(ebpf, "pass_boundary")?.load().map_err(failed("pass_boundary"))
}

pub(super) fn typed<'a, P>(ebpf: &'a mut Ebpf, name: &'static str) -> Result<&'a mut P, KernelError>
where
    &'a mut P: TryFrom<&'a mut aya::programs::Program, Error = ProgramError>,
{
    ebpf.program_mut(name)
        .ok_or(KernelError::Missing { kind: "program", name })?
        .try_into()
        .map_err(|source| KernelError::Program { operation: "finding", program: name, source: Box::new(source) })
}

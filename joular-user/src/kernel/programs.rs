//! Loading and attaching the eBPF programs.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use aya::{
    Btf, Ebpf, EbpfLoader, Endianness,
    maps::{MapData, MapError, PerCpuArray, PerCpuValues, RingBuf},
    programs::{
        BtfTracePoint, PerfEvent, ProgramError, RawTracePoint, RawTracePointRunOptions, TestRun as _,
        perf_event::{HardwareEvent, PerfEventConfig, PerfEventScope, SamplePolicy, SoftwareEvent},
    },
    util::nr_cpus,
};
use joular_ebpf::abi::CpuState;
use thiserror::Error;

use super::{
    banks::Banks,
    btf::{BtfError, KernelTypes, VMLINUX_BTF},
    cost::{self, ProgramCost},
    cpus, features,
};

/// The ring buffer of new stacks and lifecycle events.
pub type Ring = RingBuf<MapData>;

const OBJECT: &[u8] = aya::include_bytes_aligned!(concat!(env!("OUT_DIR"), "/joular"));

/// BTF tracepoint programs: name in the object, tracepoint.
const TRACEPOINTS: [(&str, &str); 5] = [
    ("sched_switch", "sched_switch"),
    ("process_exec", "sched_process_exec"),
    ("process_fork", "sched_process_fork"),
    ("process_exit", "sched_process_exit"),
    ("task_rename", "task_rename"),
];

/// `task_struct` and `signal_struct` members: global in the object, struct, member.
const OFFSETS: [(&str, &str, &str); 6] = [
    ("TASK_TGID", "task_struct", "tgid"),
    ("TASK_PID", "task_struct", "pid"),
    ("TASK_FLAGS", "task_struct", "flags"),
    ("TASK_START_BOOTTIME", "task_struct", "start_boottime"),
    ("TASK_SIGNAL", "task_struct", "signal"),
    ("SIGNAL_LIVE", "signal_struct", "live"),
];

#[derive(Debug, Error)]
pub enum KernelError {
    #[error(
        "reading kernel types from {path}: {source}: joular-bpf needs a kernel of 5.15 or later built with CONFIG_DEBUG_INFO_BTF"
    )]
    ReadBtf { path: PathBuf, source: io::Error },
    #[error("{0}: this kernel is not supported")]
    Btf(#[from] BtfError),
    #[error("loading the eBPF programs: {0}: run as root or grant CAP_BPF and CAP_PERFMON; `joular-bpf doctor` checks")]
    Load(#[source] Box<aya::EbpfError>),
    #[error("{operation} eBPF program `{program}`: {source}")]
    Program { operation: &'static str, program: &'static str, source: Box<ProgramError> },
    #[error("the eBPF object has no {kind} `{name}`: this binary was built without its eBPF programs")]
    Missing { kind: &'static str, name: &'static str },
    #[error("{operation} eBPF map `{map}`: {source}")]
    Map { operation: &'static str, map: &'static str, source: Box<MapError> },
    #[error("draining eBPF map `{map}`: {source}")]
    Drain { map: &'static str, source: io::Error },
}

impl KernelError {
    /// Whether more privileges would help, as opposed to another kernel.
    pub fn is_permission(&self) -> bool {
        let mut source: Option<&(dyn std::error::Error + 'static)> = Some(self);
        while let Some(error) = source {
            if let Some(io) = error.downcast_ref::<io::Error>() {
                return io.kind() == io::ErrorKind::PermissionDenied;
            }
            source = error.source();
        }
        false
    }
}

/// What the programs are loaded with.
#[derive(Clone, Debug)]
pub struct LoadOptions {
    pub frequency_hz: u32,
    pub interval_ns: u64,
    /// Stacks of every process, not only of targets.
    pub all_targets: bool,
    pub cpu_root: PathBuf,
}

/// The loaded, and after [`Programs::attach`] running, programs.
#[derive(Debug)]
pub struct Programs {
    ebpf: Ebpf,
    options: LoadOptions,
    event: PerfEventConfig,
    attached_cpus: Vec<u32>,
}

impl Programs {
    /// Loads everything; nothing runs yet.
    pub fn load(options: LoadOptions) -> Result<(Self, Banks, Ring), KernelError> {
        let offsets = member_offsets(Path::new(VMLINUX_BTF))?;
        let online = cpus::online(&options.cpu_root);
        let sizes = MapSizes::of(&options, online.len());
        let all_targets = u32::from(options.all_targets);
        let self_tgid = std::process::id();
        let mut loader = EbpfLoader::new();
        // The programs need no relocation: their offsets are the globals. The
        // types that `new` has read are let go before ours are.
        loader.btf(None).override_global("ALL_TARGETS", &all_targets, true);
        loader.override_global("SELF_TGID", &self_tgid, true);
        for (name, offset) in &offsets {
            loader.override_global(name, offset, true);
        }
        for bank in ["THREADS_0", "THREADS_1"] {
            loader.map_max_entries(bank, sizes.threads);
        }
        for bank in ["SAMPLES_0", "SAMPLES_1"] {
            loader.map_max_entries(bank, sizes.samples);
        }
        loader.map_max_entries("EVENTS", sizes.ring_bytes);
        let mut ebpf = loader.load(OBJECT).map_err(|error| KernelError::Load(Box::new(error)))?;
        load_programs(&mut ebpf, &tracepoint_types(Path::new(VMLINUX_BTF))?)?;
        set_sockets(&mut ebpf, &options.cpu_root)?;
        let banks = Banks::take(&mut ebpf)?;
        give_memory_back();
        let ring = ebpf.take_map("EVENTS").ok_or(KernelError::Missing { kind: "map", name: "EVENTS" })?;
        let ring = RingBuf::try_from(ring).map_err(|source| KernelError::Map {
            operation: "mapping",
            map: "EVENTS",
            source: Box::new(source),
        })?;
        let event = if features::has_cycles() {
            PerfEventConfig::Hardware(HardwareEvent::CpuCycles)
        } else {
            PerfEventConfig::Software(SoftwareEvent::CpuClock)
        };
        Ok((Self { ebpf, options, event, attached_cpus: Vec::new() }, banks, ring))
    }

    /// Name of the sampling event in outputs.
    pub const fn event_name(&self) -> &'static str {
        match self.event {
            PerfEventConfig::Hardware(_) => "cycles",
            _ => "cpu-clock",
        }
    }

    /// Starts accounting and sampling. The accounting comes first: a sample
    /// needs a running clock on its CPU.
    pub fn attach(&mut self) -> Result<(), KernelError> {
        self.pass_boundary()?;
        for (program, _) in TRACEPOINTS {
            let tracepoint: &mut BtfTracePoint = typed(&mut self.ebpf, program)?;
            tracepoint.attach().map_err(|source| KernelError::Program {
                operation: "attaching",
                program,
                source: Box::new(source),
            })?;
        }
        self.sample_new_cpus()
    }

    /// Attaches the sampler to CPUs that came online.
    pub fn sample_new_cpus(&mut self) -> Result<(), KernelError> {
        let online = cpus::online(&self.options.cpu_root);
        let sampler: &mut PerfEvent = typed(&mut self.ebpf, "sample")?;
        for cpu in online.iter().filter(|cpu| !self.attached_cpus.contains(cpu)) {
            sampler
                .attach(
                    self.event,
                    PerfEventScope::AllProcessesOneCpu { cpu: *cpu },
                    SamplePolicy::Frequency(u64::from(self.options.frequency_hz)),
                    false,
                )
                .map_err(|source| KernelError::Program {
                    operation: "attaching",
                    program: "sample",
                    source: Box::new(source),
                })?;
        }
        self.attached_cpus = online;
        Ok(())
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
        for cpu in cpus::online(&self.options.cpu_root) {
            let mut options = RawTracePointRunOptions::new();
            options.cpu = Some(cpu);
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

/// Loading leaves some 15 MiB of freed memory with the allocator, more than the
/// whole run will need.
fn give_memory_back() {
    #[cfg(target_env = "gnu")]
    // SAFETY: takes no pointers and may be called at any time.
    unsafe {
        libc::malloc_trim(0);
    }
}

/// `ENXIO`: no such CPU online.
fn is_offline(error: &ProgramError) -> bool {
    matches!(error, ProgramError::SyscallError(error) if error.io_error.raw_os_error() == Some(libc::ENXIO))
}

/// Map sizes for what a window can hold at most.
struct MapSizes {
    threads: u32,
    samples: u32,
    ring_bytes: u32,
}

impl MapSizes {
    fn of(options: &LoadOptions, cpus: usize) -> Self {
        let per_second = u64::from(options.frequency_hz) * cpus as u64;
        let per_window = per_second * options.interval_ns.div_ceil(1_000_000_000);
        let bounded = |wanted: u64, least: u32, most: u32| {
            u32::try_from(wanted.next_power_of_two()).unwrap_or(most).clamp(least, most)
        };
        Self {
            // Twice the threads there are now: they come and go in bursts.
            threads: bounded(2 * thread_count(), 16_384, 1 << 20),
            // Every sample of a window may have a key of its own.
            samples: bounded(2 * per_window, 4_096, 1 << 18),
            // Half a second of nothing but new stacks of full depth.
            ring_bytes: bounded(per_second * 1024 / 2, 1 << 20, 1 << 25),
        }
    }
}

/// Threads on the host now, from the fourth field of /proc/loadavg.
fn thread_count() -> u64 {
    fs::read_to_string("/proc/loadavg")
        .ok()
        .and_then(|text| text.split_whitespace().nth(3)?.split_once('/')?.1.parse().ok())
        .unwrap_or(4_096)
}

fn read_types(path: &Path) -> Result<Vec<u8>, KernelError> {
    fs::read(path).map_err(|source| KernelError::ReadBtf { path: path.into(), source })
}

fn member_offsets(path: &Path) -> Result<Vec<(&'static str, u32)>, KernelError> {
    let bytes = read_types(path)?;
    let types = KernelTypes::parse(&bytes)?;
    let offset_of = |(global, structure, member): &(&'static str, &str, &str)| {
        Ok((*global, types.member_offset(structure, member)?))
    };
    OFFSETS.iter().map(offset_of).collect()
}

/// What aya needs to find tracepoints.
fn tracepoint_types(path: &Path) -> Result<Btf, KernelError> {
    let pruned = KernelTypes::parse(&read_types(path)?)?.tracepoints_only();
    Btf::parse(&pruned, Endianness::default())
        .map_err(|error| KernelError::ReadBtf { path: path.into(), source: io::Error::other(error) })
}

fn load_programs(ebpf: &mut Ebpf, btf: &Btf) -> Result<(), KernelError> {
    let failed = |program| {
        move |source: ProgramError| KernelError::Program { operation: "loading", program, source: Box::new(source) }
    };
    for (program, tracepoint) in TRACEPOINTS {
        typed::<BtfTracePoint>(ebpf, program)?.load(tracepoint, btf).map_err(failed(program))?;
    }
    typed::<PerfEvent>(ebpf, "sample")?.load().map_err(failed("sample"))?;
    typed::<RawTracePoint>(ebpf, "pass_boundary")?.load().map_err(failed("pass_boundary"))
}

fn typed<'a, P>(ebpf: &'a mut Ebpf, name: &'static str) -> Result<&'a mut P, KernelError>
where
    &'a mut P: TryFrom<&'a mut aya::programs::Program, Error = ProgramError>,
{
    ebpf.program_mut(name)
        .ok_or(KernelError::Missing { kind: "program", name })?
        .try_into()
        .map_err(|source| KernelError::Program { operation: "finding", program: name, source: Box::new(source) })
}

/// Tells each CPU its socket, before anything is accounted there.
fn set_sockets(ebpf: &mut Ebpf, cpu_root: &Path) -> Result<(), KernelError> {
    let failed = |source| KernelError::Map { operation: "writing", map: "CPU", source: Box::new(source) };
    let map = ebpf.map_mut("CPU").ok_or(KernelError::Missing { kind: "map", name: "CPU" })?;
    let mut map: PerCpuArray<&mut MapData, CpuState> = map.try_into().map_err(failed)?;
    let possible = nr_cpus().map_err(|(path, source)| KernelError::ReadBtf { path: path.into(), source })?;
    let states: Vec<CpuState> = (0..possible)
        .map(|cpu| CpuState {
            socket: cpus::socket_of(cpu_root, u32::try_from(cpu).unwrap_or(0)),
            ..CpuState::default()
        })
        .collect();
    let values = PerCpuValues::try_from(states).map_err(|source: io::Error| failed(source.into()))?;
    map.set(0, values, 0).map_err(failed)?;
    Ok(())
}

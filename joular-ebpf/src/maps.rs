//! Defines all state of the eBPF programs. Sizes are defaults: the loader overrides them from the
//! number of CPUs, the sampling frequency and the options.
//!
//! Everything that is counted per window exists twice, one map per bank. The published boundary
//! says which bank a moment belongs to (see `abi::split_slice`), and user space reads a bank only
//! after every CPU has passed that boundary. It may put a larger map in the place of one that it has read.

use aya_ebpf::{
    Global,
    bindings::{BPF_F_MMAPABLE, bpf_timer},
    btf_maps,
    macros::{btf_map, map},
    maps::{Array, HashMap, LruHashMap, PerCpuArray, PerfEventArray, RingBuf},
};
use joular_ebpf::{
    abi::{
        AllocatingThread, AllocationKey, AllocationSlot, BufferState, CodeMapping, CommPattern, CompiledFrame,
        CompilerThread, CounterSlot, CounterState, CpuState, DeviceBytes, IoKey, IoSlot, JvmAllocation, JvmCollections,
        JvmUnwind, LOSS_COUNT, Loss, MAX_COMM_PATTERNS, MAX_COMPILER_THREADS, MAX_JVMS, MAX_MAPPINGS, MAX_PROCESSES,
        MAX_ROWS, MAX_STACK_FRAMES, ProcessUnwind, REMEMBERED, Remembered, RingShare, SampleKey, SampleSlot,
        SampledObject, SamplingClock, StackHeader, TablesEpoch, ThreadSlot, UnwindRow,
    },
    walk::{BlockWords, Walk, arch::Native},
};

/// Byte offsets of `task_struct` members, read from the running kernel's BTF.
/// The verifier sees them as constants, so the loads they lead to are plain
/// instructions without a helper call.
#[unsafe(no_mangle)]
pub static TASK_TGID: Global<u32> = Global::new(0);
#[unsafe(no_mangle)]
pub static TASK_PID: Global<u32> = Global::new(0);
#[unsafe(no_mangle)]
pub static TASK_FLAGS: Global<u32> = Global::new(0);
#[unsafe(no_mangle)]
pub static TASK_START_BOOTTIME: Global<u32> = Global::new(0);
#[unsafe(no_mangle)]
pub static TASK_SIGNAL: Global<u32> = Global::new(0);
/// Offsets of what leads to a process's page tables: `task_struct::mm`, `mm_struct::pgd`.
#[unsafe(no_mangle)]
pub static TASK_MM: Global<u32> = Global::new(0);
#[unsafe(no_mangle)]
pub static MM_PGD: Global<u32> = Global::new(0);
/// How many levels they have, where the kernel takes the access to pages away to see who uses them; else 0.
#[unsafe(no_mangle)]
pub static PAGE_LEVELS: Global<u32> = Global::new(0);
/// Addresses of the kernel's variables of these names; 0: it has none.
#[unsafe(no_mangle)]
pub static PAGE_OFFSET_BASE: Global<u64> = Global::new(0);
#[unsafe(no_mangle)]
pub static PHYSICAL_MASK: Global<u64> = Global::new(0);
/// Offset of `signal_struct::live`, the count of threads not yet ended.
#[unsafe(no_mangle)]
pub static SIGNAL_LIVE: Global<u32> = Global::new(0);

/// Most frames the kernel's walkers return (`kernel.perf_event_max_stack`).
#[unsafe(no_mangle)]
pub static STACK_LIMIT: Global<u32> = Global::new(0);

/// 1: stacks of every process, 0: of those in [`TARGETS`] only.
#[unsafe(no_mangle)]
pub static ALL_TARGETS: Global<u32> = Global::new(0);
/// The profiler itself: accounted, never a target.
#[unsafe(no_mangle)]
pub static SELF_TGID: Global<u32> = Global::new(0);

/// 1: what becomes of every process is told. 0: only of those that may be or become targets.
#[unsafe(no_mangle)]
pub static TELL_ALL: Global<u32> = Global::new(0);
/// How many names there are in [`NAMES`] by which a process can become a target.
#[unsafe(no_mangle)]
pub static NAME_COUNT: Global<u32> = Global::new(0);
/// Bytes of the ring that one process may use in `abi::SHARE_NS`.
#[unsafe(no_mangle)]
pub static RING_SHARE: Global<u32> = Global::new(0);

/// 1: cores have hyper-threads, and the time in which two are busy at once counts.
#[unsafe(no_mangle)]
pub static SMT: Global<u32> = Global::new(0);
/// 1: cycles are counted, by the events in [`CYCLES`].
#[unsafe(no_mangle)]
pub static COUNT_CYCLES: Global<u32> = Global::new(0);

/// How many counters there are beside, at most `abi::MAX_COUNTERS`.
#[unsafe(no_mangle)]
pub static COUNTER_COUNT: Global<u32> = Global::new(0);

/// 1: stacks are read by programs that a sample can interrupt, those of allocations and of moved bytes. So each CPU has
/// a second walk.
#[unsafe(no_mangle)]
pub static SECOND_WALK: Global<u32> = Global::new(0);

/// 1: bytes that threads move are counted.
#[unsafe(no_mangle)]
pub static COUNT_IO: Global<u32> = Global::new(0);
/// Offsets of what the kernel counts of a thread's devices, in `task_struct`. 0: it does not.
#[unsafe(no_mangle)]
pub static TASK_DEVICE_READ: Global<u32> = Global::new(0);
#[unsafe(no_mangle)]
pub static TASK_DEVICE_WRITTEN: Global<u32> = Global::new(0);
/// When bytes began to be counted, in nanoseconds since boot.
#[unsafe(no_mangle)]
pub static IO_SINCE_BOOTTIME: Global<u64> = Global::new(0);
/// Offsets in `sock`, `msghdr`, `file` and `inode`.
#[unsafe(no_mangle)]
pub static SOCK_FAMILY: Global<u32> = Global::new(0);
#[unsafe(no_mangle)]
pub static SOCK_PROTOCOL: Global<u32> = Global::new(0);
#[unsafe(no_mangle)]
pub static SOCK_PEER: Global<u32> = Global::new(0);
#[unsafe(no_mangle)]
pub static SOCK_OWN: Global<u32> = Global::new(0);
#[unsafe(no_mangle)]
pub static SOCK_PEER_V6: Global<u32> = Global::new(0);
#[unsafe(no_mangle)]
pub static SOCK_OWN_V6: Global<u32> = Global::new(0);
#[unsafe(no_mangle)]
pub static MESSAGE_NAME: Global<u32> = Global::new(0);
#[unsafe(no_mangle)]
pub static FILE_INODE: Global<u32> = Global::new(0);
#[unsafe(no_mangle)]
pub static INODE_MODE: Global<u32> = Global::new(0);
/// Offsets of what leads from a thread to its open files, and says how it entered the kernel.
#[unsafe(no_mangle)]
pub static TASK_FILES: Global<u32> = Global::new(0);
#[unsafe(no_mangle)]
pub static TASK_STATUS: Global<u32> = Global::new(0);
#[unsafe(no_mangle)]
pub static FILES_FDTABLE: Global<u32> = Global::new(0);
#[unsafe(no_mangle)]
pub static FDTABLE_MAX: Global<u32> = Global::new(0);
#[unsafe(no_mangle)]
pub static FDTABLE_FD: Global<u32> = Global::new(0);

/// Mean time between samples on a busy CPU, in nanoseconds, if the programs set their own timer; 0 if
/// an event of the kernel takes the samples.
#[unsafe(no_mangle)]
pub static MEAN_GAP_NS: Global<u64> = Global::new(0);

/// First and last address of the kernel's entry for timer interrupts. On processors with another
/// kind of entry there are two: from the kernel and from user code.
#[unsafe(no_mangle)]
pub static TIMER_ENTRY: Global<[u64; 2]> = Global::new([0, 0]);
#[unsafe(no_mangle)]
pub static OTHER_TIMER_ENTRY: Global<[u64; 2]> = Global::new([0, 0]);

/// The published window boundary (`abi::Boundary`).
#[map]
pub static BOUNDARY: Array<u64> = Array::with_max_entries(1, 0);

#[map]
pub static CPU: PerCpuArray<CpuState> = PerCpuArray::with_max_entries(1, 0);

/// `abi::BusyWord` of each CPU, in the first word of a cache line's length of its
/// own: CPUs that share no core shall not share a line either.
#[map]
pub static SIBLING_BUSY: Array<[u64; 8]> = Array::with_max_entries(1, 0);

/// A CPU's timer for its next sample. The kernel finds the timer in it by its type's name.
#[repr(C)]
pub struct SamplingTimer {
    pub timer: bpf_timer,
    pub clock: SamplingClock,
}

/// By CPU. The kernel must know the type of its values, so it is a map of the newer kind.
#[btf_map]
pub static SAMPLING: btf_maps::Array<SamplingTimer, 1, 0> = btf_maps::Array::new();

/// A counting event per CPU.
#[map]
pub static CYCLES: PerfEventArray<u64> = PerfEventArray::new(0);

/// The events of `--counters`, by CPU. Each has a map of its own, because such a map has no more entries than
/// there are CPUs.
#[map]
pub static COUNTERS_0: PerfEventArray<u64> = PerfEventArray::new(0);

#[map]
pub static COUNTERS_1: PerfEventArray<u64> = PerfEventArray::new(0);

#[map]
pub static COUNTERS_2: PerfEventArray<u64> = PerfEventArray::new(0);

#[map]
pub static COUNTERS_3: PerfEventArray<u64> = PerfEventArray::new(0);

#[map]
pub static COUNTERS_4: PerfEventArray<u64> = PerfEventArray::new(0);

#[map]
pub static COUNTERS_5: PerfEventArray<u64> = PerfEventArray::new(0);

#[map]
pub static COUNTERS_6: PerfEventArray<u64> = PerfEventArray::new(0);

#[map]
pub static COUNTERS_7: PerfEventArray<u64> = PerfEventArray::new(0);

#[map]
pub static COUNTED: PerCpuArray<CounterState> = PerCpuArray::with_max_entries(1, 0);

#[map]
pub static LOSSES: PerCpuArray<u64> = PerCpuArray::with_max_entries(LOSS_COUNT as u32, 0);

/// A map from a key to a slot. User space makes such maps, because it knows how many entries are needed. A slot is
/// declared as plain words: before Linux 6.2 the kernel accepts a map in the place of another only if it knows
/// as much of the structure of its values.
pub type Counts<K, const WORDS: usize> = btf_maps::HashMap<K, [u64; WORDS], 1>;
pub type ThreadMap = Counts<u64, { size_of::<ThreadSlot>() / 8 }>;
pub type CounterMap = Counts<u64, { size_of::<CounterSlot>() / 8 }>;
pub type SampleMap = Counts<SampleKey, { size_of::<SampleSlot>() / 8 }>;

/// By bank.
#[btf_map]
pub static THREADS: btf_maps::ArrayOfMaps<ThreadMap, 2> = btf_maps::ArrayOfMaps::new();
#[btf_map]
pub static SAMPLES: btf_maps::ArrayOfMaps<SampleMap, 2> = btf_maps::ArrayOfMaps::new();

/// By thread, as [`THREADS`]. It has no maps unless something is counted.
#[btf_map]
pub static COUNTS: btf_maps::ArrayOfMaps<CounterMap, 2> = btf_maps::ArrayOfMaps::new();

pub type AllocatingThreadMap = Counts<u64, { size_of::<AllocatingThread>() / 8 }>;
pub type AllocationMap = Counts<AllocationKey, { size_of::<AllocationSlot>() / 8 }>;

/// By bank. It has no maps unless allocations are sampled. Threads' own records are apart, so that each has its place,
/// however many samples there are.
#[btf_map]
pub static ALLOCATING_THREADS: btf_maps::ArrayOfMaps<AllocatingThreadMap, 2> = btf_maps::ArrayOfMaps::new();
#[btf_map]
pub static ALLOCATED: btf_maps::ArrayOfMaps<AllocationMap, 2> = btf_maps::ArrayOfMaps::new();

/// By the identity in a thread's key.
#[map]
pub static BUFFERS: LruHashMap<u64, BufferState> = LruHashMap::with_max_entries(1, 0);

/// JVMs whose allocations are sampled, by tgid.
#[map]
pub static ALLOCATORS: HashMap<u32, JvmAllocation> = HashMap::with_max_entries(MAX_JVMS, 0);

/// Sampled objects since a JVM's last collection, by [`object_key`]. Those that were used least recently give way.
///
/// [`object_key`]: joular_ebpf::abi::object_key
#[map]
pub static OBJECTS: LruHashMap<u64, SampledObject> = LruHashMap::with_max_entries(1, 0);

/// How many there are, by tgid.
#[map]
pub static OBJECT_COUNTS: HashMap<u32, u32> = HashMap::with_max_entries(1, 0);

/// JVMs whose collections are told of, by tgid.
#[map]
pub static COLLECTORS: HashMap<u32, JvmCollections> = HashMap::with_max_entries(1, 0);

/// Bytes that a sample of allocation stands for at least; user space raises it when there are too many.
#[map]
pub static ALLOCATION_GAP: Array<u32> = Array::with_max_entries(1, 0);

pub type IoMap = Counts<IoKey, { size_of::<IoSlot>() / 8 }>;

/// By bank. It has no maps unless bytes are counted. Threads' own records are apart.
#[btf_map]
pub static IO_THREADS: btf_maps::ArrayOfMaps<IoMap, 2> = btf_maps::ArrayOfMaps::new();
#[btf_map]
pub static IO: btf_maps::ArrayOfMaps<IoMap, 2> = btf_maps::ArrayOfMaps::new();

/// What threads had moved from and to devices when they were last looked at, by the identity in a thread's key.
#[map]
pub static DEVICE_BYTES: HashMap<u64, DeviceBytes> = HashMap::with_max_entries(1, 0);

/// Bytes that a sample of moved bytes stands for at least; user space raises it when there are too many.
#[map]
pub static IO_GAP: Array<u32> = Array::with_max_entries(1, 0);

/// Processes whose stacks are wanted, by tgid.
#[map]
pub static TARGETS: HashMap<u32, u32> = HashMap::with_max_entries(16_384, 0);

/// Names by which a process can become a target.
#[map]
pub static NAMES: Array<CommPattern> = Array::with_max_entries(MAX_COMM_PATTERNS as u32, 0);

/// Processes that may be no targets yet and are told of all the same, by tgid; see `abi::followed`.
#[map]
pub static FOLLOWED: HashMap<u32, u32> = HashMap::with_max_entries(1_024, 0);

/// What processes have put into the ring lately, by tgid.
#[map]
pub static RING_SHARES: LruHashMap<u32, RingShare> = LruHashMap::with_max_entries(4_096, 0);

/// Stacks whose addresses user space already has.
#[map]
pub static KNOWN_STACKS: HashMap<u64, u8> = HashMap::with_max_entries(65_536, 0);

/// A stack record under construction: too large for the 512-byte BPF stack.
#[repr(C)]
pub struct StackScratch {
    pub header: StackHeader,
    pub frames: [u64; MAX_STACK_FRAMES],
}

/// The user's part of a stack, and the kernel's. The second walk, if there is one, is for programs that can be
/// interrupted.
#[map]
pub static WALK: PerCpuArray<Walk<Native>> = PerCpuArray::with_max_entries(1, 0);
#[map]
pub static KERNEL_SCRATCH: PerCpuArray<StackScratch> = PerCpuArray::with_max_entries(1, 0);

/// Which of its walks a CPU goes on with: 0, or 1 for that of a program that can be interrupted.
#[map]
pub static WALK_UNDER_WAY: PerCpuArray<u32> = PerCpuArray::with_max_entries(1, 0);

/// What was read last of pages that cannot be read at their address, for each walk. Twice what is read at most, as the
/// verifier has it that a second part begins anywhere.
#[map]
pub static HINTED: PerCpuArray<[BlockWords; 2]> = PerCpuArray::with_max_entries(1, 0);

/// CPUs whose second walk is under way.
#[map]
pub static CALLERS_WALKED: HashMap<u32, u32> = HashMap::with_max_entries(1, 0);

/// Processes whose stacks can be walked by tables, by tgid.
#[map]
pub static PROCESSES: HashMap<u32, ProcessUnwind> = HashMap::with_max_entries(MAX_PROCESSES, 0);
/// Written as memory: see the loader's `array_write`.
#[map]
pub static CODE_MAPPINGS: Array<CodeMapping> = Array::with_max_entries(MAX_MAPPINGS, BPF_F_MMAPABLE);
#[map]
pub static UNWIND_ROWS: Array<UnwindRow> = Array::with_max_entries(MAX_ROWS, BPF_F_MMAPABLE);
#[map]
pub static JVMS: Array<JvmUnwind> = Array::with_max_entries(MAX_JVMS, 0);
/// `abi::TablesEpoch`.
#[map]
pub static TABLES_EPOCH: Array<TablesEpoch> = Array::with_max_entries(1, 0);
/// What each CPU remembers for each of its walks, by `abi::remembered_at`. All of it is one value, because the kernel keeps
/// a pointer to each value of such a map, and reading it may be one more cache miss.
#[map]
pub static REMEMBERED_ROWS: PerCpuArray<[Remembered<UnwindRow>; REMEMBERED]> = PerCpuArray::with_max_entries(1, 0);
#[map]
pub static REMEMBERED_FRAMES: PerCpuArray<[Remembered<CompiledFrame>; REMEMBERED]> =
    PerCpuArray::with_max_entries(1, 0);
/// Threads that compile, by tid.
#[map]
pub static COMPILER_THREADS: HashMap<u32, CompilerThread> = HashMap::with_max_entries(MAX_COMPILER_THREADS, 0);

/// New stacks and lifecycle events.
#[map]
pub static EVENTS: RingBuf = RingBuf::with_byte_size(1 << 20, 0);

/// A slot of such a map.
#[inline(always)]
pub fn slot<K, V, const WORDS: usize>(map: &Counts<K, WORDS>, key: &K) -> Option<*mut V> {
    const { assert!(size_of::<V>() == WORDS * 8 && align_of::<V>() == 8) };
    map.get_ptr_mut(key).map(|words| words.cast())
}

/// Adds a slot.
#[inline(always)]
pub fn add_slot<K, V, const WORDS: usize>(map: &Counts<K, WORDS>, key: &K, slot: &V, flags: u64) -> Result<(), i32> {
    const { assert!(size_of::<V>() == WORDS * 8 && align_of::<V>() == 8) };
    // SAFETY: a live value of the same size and alignment, without padding.
    let words = unsafe { &*(&raw const *slot).cast::<[u64; WORDS]>() };
    map.insert(key, words, flags)
}

#[inline(always)]
pub fn count_loss(loss: Loss) {
    if let Some(counter) = LOSSES.get_ptr_mut(loss as u32) {
        // SAFETY: a live per-CPU map value; only this CPU writes it.
        unsafe { *counter = (*counter).wrapping_add(1) };
    }
}

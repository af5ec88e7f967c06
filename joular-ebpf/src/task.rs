//! Accounts CPU time, as the one routine for it: the time since the last accounting on this CPU
//! goes to the task that is running here.
//!
//! It runs in sched_switch (where `current` is still the task being switched out), in every sample,
//! and once per CPU at each window boundary. A slice that spans the boundary is split there, so
//! windows are exact, and the sum of busy, idle and unslotted time of a CPU is exactly what
//! elapsed.

use core::ptr::{NonNull, read_volatile, write_volatile};

use aya_ebpf::helpers::{bpf_get_current_comm, bpf_ktime_get_ns, generated::bpf_get_current_task_btf};
use joular_ebpf::abi::{
    BankTimes, Boundary, CpuState, Fraction, Loss, Place, Slice, ThreadKey, ThreadSlot, split_slice, thread_flags,
};

use crate::{
    corun,
    counters::{self, Counted},
    cycles,
    maps::{
        BOUNDARY, COUNT_CYCLES, COUNTER_COUNT, CPU, SMT, TASK_FLAGS, TASK_MM, TASK_PID, TASK_START_BOOTTIME, TASK_TGID,
        THREADS, ThreadMap, add_slot, count_loss, slot,
    },
};

const PF_EXITING: u32 = 0x0000_0004;
const PF_KTHREAD: u32 = 0x0020_0000;

/// A `task_struct` the kernel vouches for (tracepoint argument or `current`).
#[derive(Clone, Copy)]
pub struct Task(*const u8);

impl Task {
    /// The task running on this CPU.
    #[inline(always)]
    pub fn current() -> Self {
        // SAFETY: no arguments; `current` is valid for the whole program run.
        Self(unsafe { bpf_get_current_task_btf() }.cast::<u8>().cast_const())
    }

    /// From a `struct task_struct *` argument of a BTF tracepoint.
    #[inline(always)]
    pub fn from_argument(pointer: *const u8) -> Self {
        Self(pointer)
    }

    /// Reads a member at an offset that BTF gave.
    #[inline(always)]
    pub fn read<T: Copy>(self, offset: u32) -> T {
        // SAFETY: the pointer is a trusted BTF pointer and the offset that of
        // a member of type T; the verifier checks both and turns the load into
        // one with an exception table entry.
        unsafe { core::ptr::read_volatile(self.0.add(offset as usize).cast::<T>()) }
    }

    #[inline(always)]
    pub fn tid(self) -> u32 {
        self.read(TASK_PID.load())
    }

    #[inline(always)]
    pub fn tgid(self) -> u32 {
        self.read(TASK_TGID.load())
    }

    #[inline(always)]
    pub fn start_boottime_ns(self) -> u64 {
        self.read(TASK_START_BOOTTIME.load())
    }

    /// Whether it ends, and gives back what it has.
    #[inline(always)]
    pub fn is_exiting(self) -> bool {
        self.read::<u32>(TASK_FLAGS.load()) & PF_EXITING != 0
    }

    /// Of a thread of a process: whether it ends, and the kernel has taken its memory already (`exit_mm`).
    #[inline(always)]
    pub fn has_no_memory(self) -> bool {
        self.read::<u64>(TASK_MM.load()) == 0
    }

    #[inline(always)]
    pub fn is_kernel_thread(self) -> bool {
        self.read::<u32>(TASK_FLAGS.load()) & PF_KTHREAD != 0
    }
}

/// What an accounting found: who was running, and the bank of this moment.
#[derive(Clone, Copy)]
pub struct Accounted {
    /// When the slice ended.
    pub now_ns: u64,
    pub task: Task,
    pub tid: u32,
    pub bank: u32,
    pub thread: ThreadKey,
    /// The thread's slot in this bank, unless it is new or there is no room.
    pub slot: Option<NonNull<ThreadSlot>>,
}

/// Bank of this moment, for what is counted at once and has no slice.
#[inline(always)]
pub fn bank_now() -> u32 {
    // The clock first, the boundary second: see abi::window.
    // SAFETY: helper without arguments.
    let now_ns = unsafe { bpf_ktime_get_ns() };
    BOUNDARY.get(0).map_or(0, |boundary| Boundary(*boundary).bank_at(now_ns))
}

/// Says what this CPU runs from its last accounting on.
#[inline(always)]
pub fn follows(next: Task) {
    if let Some(cpu) = CPU.get_ptr_mut(0) {
        // SAFETY: a live per-CPU map value; switches come one at a time.
        let cpu = unsafe { &mut *cpu };
        let tid = next.tid();
        cpu.runs(tid);
        if SMT.load() != 0 {
            corun::set_busy(cpu, cpu.last_ns, tid != 0);
        }
    }
}

/// Why the accounting runs.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum At {
    Switch,
    Sample,
    Boundary,
}

/// Credits the time since the last accounting on this CPU to the current
/// task. `None` if it interrupted itself (a sample in NMI context): the time
/// stays for the next accounting, nothing is lost but the sample.
#[inline(always)]
pub fn account(at: At) -> Option<Accounted> {
    let cpu = CPU.get_ptr_mut(0)?;
    // SAFETY: a live per-CPU map value. Only this CPU touches it, but a run that interrupts another one
    // must see the mark at once: the compiler may neither leave it out nor move it.
    let mark = unsafe { &raw mut (*cpu).accounting };
    // SAFETY: as above.
    if unsafe { read_volatile(mark) } != 0 {
        count_loss(Loss::NestedSample);
        return None;
    }
    // SAFETY: as above; the mark keeps a nested run from the value.
    unsafe { write_volatile(mark, 1) };
    // SAFETY: as above.
    let accounted = account_slice(unsafe { &mut *cpu }, at);
    // SAFETY: as above.
    unsafe { write_volatile(mark, 0) };
    accounted
}

#[inline(always)]
fn account_slice(cpu: &mut CpuState, at: At) -> Option<Accounted> {
    // The clock first, the boundary second: see abi::window.
    // SAFETY: helper without arguments.
    let now_ns = unsafe { bpf_ktime_get_ns() };
    let boundary = Boundary(*BOUNDARY.get(0)?);
    let last_ns = if cpu.last_ns == 0 { now_ns } else { cpu.last_ns };
    // The clock of an NMI may be a little behind: no nanosecond counts twice.
    cpu.last_ns = if now_ns > last_ns { now_ns } else { last_ns };

    let task = Task::current();
    let tid = task.tid();
    let split = split_slice(last_ns, now_ns, boundary);
    let bank = boundary.bank_at(now_ns);
    // The part of the slice in the bank of this moment, and an earlier part
    // if the slice began before the boundary that opened this bank.
    let (earlier_ns, slice_ns) = if bank == boundary.bank() { (split.before, split.after) } else { (0, split.before) };
    corun::set_busy(cpu, last_ns, tid != 0);
    let ns = earlier_ns + slice_ns;
    let mut slice = Slice { ns, corun_ns: corun::of_slice(cpu, ns), cycles: cycles::of_slice(cpu) };
    let mut thread = ThreadKey(0);
    let mut slot = None;
    if tid == 0 {
        bank_times(cpu, bank ^ 1).idle_ns += earlier_ns;
        bank_times(cpu, bank).idle_ns += slice_ns;
    } else {
        thread = ThreadKey::new(tid, task.start_boottime_ns(), Place(cpu.place));
        if earlier_ns > 0 {
            let (earlier, later) = slice.cut(earlier_ns);
            credit(bank_times(cpu, bank ^ 1), bank ^ 1, thread, task, earlier, At::Boundary);
            slice = later;
        }
        if slice_ns > 0 || at != At::Boundary {
            slot = credit(bank_times(cpu, bank), bank, thread, task, slice, at);
        }
    }
    if COUNTER_COUNT.load() != 0 {
        // Asked twice: older kernels allow little stack to keep the answer on.
        let counted = if cpu.has_hidden_switch(tid) { Counted::Unknown } else { Counted::By(thread) };
        counters::account(counted, bank, Fraction::of(earlier_ns, ns), earlier_ns > 0);
    }
    bank_times(cpu, bank).switches += (at == At::Switch) as u64;
    if cpu.has_hidden_switch(tid) {
        cpu.runs(tid);
        count_loss(Loss::HiddenSwitch);
    }
    Some(Accounted { now_ns, task, tid, bank, thread, slot: slot.and_then(NonNull::new) })
}

/// Branches on constants, because the verifier wants no variable index.
#[inline(always)]
fn bank_times(cpu: &mut CpuState, bank: u32) -> &mut BankTimes {
    let [first, second] = &mut cpu.times;
    if bank == 0 { first } else { second }
}

/// Adds a slice to the thread's slot. A thread runs on one CPU at a time, so
/// its slot has one writer and needs no atomics.
#[inline(always)]
fn credit(
    times: &mut BankTimes,
    bank: u32,
    thread: ThreadKey,
    task: Task,
    slice: Slice,
    at: At,
) -> Option<*mut ThreadSlot> {
    let map = THREADS.get(bank);
    let found: Option<*mut ThreadSlot> = map.and_then(|map| slot(map, &thread.0));
    if let Some(slot) = found {
        // SAFETY: a live value of a preallocated map; see above for writers.
        let slot = unsafe { &mut *slot };
        slot.cpu_ns += slice.ns;
        if SMT.load() != 0 {
            slot.corun_ns += slice.corun_ns;
        }
        if COUNT_CYCLES.load() != 0 {
            slot.cycles += slice.cycles;
        }
        slot.samples += (at == At::Sample) as u32;
        slot.switches += (at == At::Switch) as u32;
    } else if map.is_none_or(|map| new_slot(map, thread, task, slice, at).is_err()) {
        count_loss(Loss::ThreadMapFull);
        times.unslotted_ns += slice.ns;
        return None;
    }
    times.busy_ns += slice.ns;
    found
}

/// First slice of a thread in this window.
#[inline(always)]
fn new_slot(map: &ThreadMap, thread: ThreadKey, task: Task, slice: Slice, at: At) -> Result<(), i32> {
    let slot = ThreadSlot {
        cpu_ns: slice.ns,
        corun_ns: slice.corun_ns,
        cycles: slice.cycles,
        start_boottime_ns: task.start_boottime_ns(),
        tgid: task.tgid(),
        samples: (at == At::Sample) as u32,
        flags: if task.is_kernel_thread() { thread_flags::KERNEL_THREAD } else { 0 },
        switches: (at == At::Switch) as u32,
        comm: bpf_get_current_comm().unwrap_or_default(),
    };
    add_slot(map, &thread.0, &slot, 0)
}

//! Samples what a JVM's threads allocate. Probes are on two functions that a JVM calls when a thread took a new
//! allocation buffer, and when an object was allocated outside of one (`AllocTracer`), and on one that it calls when a
//! thread ends. See `abi::AllocationKey`.
//!
//! These programs run for a thread that goes on afterwards, so it may be put off in the middle, while user space drains
//! the bank that was chosen.

use aya_ebpf::{
    bindings::{BPF_EXIST, BPF_NOEXIST},
    helpers::{bpf_get_prandom_u32, bpf_probe_read_user},
    macros::uprobe,
    programs::ProbeContext,
};
use joular_ebpf::abi::{
    AllocatingThread, AllocationKey, AllocationSlot, BufferState, EndCounts, FrameWord, JvmAllocation, Loss,
    MAX_REMEMBERED_BYTES, Place, SampledObject, SeenIn, SeenObject, StackId, ThreadKey, Told, allocated_bytes,
    object_key, sampled_bytes,
};

use crate::{
    maps::{
        ALLOCATED, ALLOCATING_THREADS, ALLOCATION_GAP, ALLOCATORS, BUFFERS, COLLECTORS, Counts, OBJECT_COUNTS, OBJECTS,
        add_slot, count_loss, slot,
    },
    task::{Task, bank_now},
    unwind::{self, From},
};

/// `AllocTracer::send_allocation_in_new_tlab(Klass*, HeapWord*, size_t tlab_size, size_t alloc_size, Thread*)`.
#[uprobe]
pub fn allocation_in_new_tlab(context: ProbeContext) -> u32 {
    let new_buffer_bytes = context.arg(2).unwrap_or(0);
    seen((context.arg(0), context.arg(1)), new_buffer_bytes, (context.arg(3), context.arg(4)))
}

/// `AllocTracer::send_allocation_outside_tlab(Klass*, HeapWord*, size_t alloc_size, Thread*)`.
#[uprobe]
pub fn allocation_outside_tlab(context: ProbeContext) -> u32 {
    seen((context.arg(0), context.arg(1)), 0, (context.arg(2), context.arg(3)))
}

/// `ThreadService::remove_thread(JavaThread*, bool)`: what it says of itself is the last.
#[uprobe]
pub fn allocating_thread_ended(context: ProbeContext) -> u32 {
    let task = Task::current();
    if let (Some(jvm), Some(java_thread)) = (ALLOCATORS.get_ptr(task.tgid()), context.arg::<u64>(0)) {
        // SAFETY: a live value of a preallocated map.
        note(task, allocated(unsafe { &*jvm }, java_thread), None);
    }
    0
}

#[inline(always)]
fn seen(
    (klass, address): (Option<u64>, Option<u64>),
    new_buffer_bytes: u64,
    (bytes, java_thread): (Option<u64>, Option<u64>),
) -> u32 {
    let (Some(klass), Some(address)) = (klass, address) else { return 0 };
    let (Some(bytes), Some(java_thread)) = (bytes, java_thread) else { return 0 };
    let task = Task::current();
    let Some(jvm) = ALLOCATORS.get_ptr(task.tgid()) else { return 0 };
    // SAFETY: a live value of a preallocated map.
    let jvm = unsafe { &*jvm };
    let object = SeenObject { bytes, klass, allocated_bytes: allocated(jvm, java_thread) };
    let has_buffer = word(java_thread, jvm.tlab_start) != 0;
    let mut told = Told::default();
    if !is_known(task, &object, (new_buffer_bytes, has_buffer), &mut told) {
        // It is taken for one that did not fit into a buffer of the usual size.
        let usual = word(java_thread, jvm.tlab_desired_size).wrapping_mul(8);
        told.stands_for_bytes = if usual > bytes { usual } else { bytes };
    }
    note(task, object.allocated_bytes, Some(told.ends));
    let gap = ALLOCATION_GAP.get(0).map_or(1, |gap| *gap);
    // SAFETY: helper without arguments.
    let random = unsafe { bpf_get_prandom_u32() };
    if let Some(stands_for) = sampled_bytes(told.stands_for_bytes, gap, random) {
        let address = if bytes <= MAX_REMEMBERED_BYTES { address } else { 0 };
        sample(task, class(jvm, klass), (address, stands_for));
    }
    0
}

/// Finds out what an object tells. Returns whether anything is known of its thread's buffer. A function of its own gives its
/// stack back before the walk: see `probes::sample`. [`SeenIn`] would pass a register that has no value, which the verifier
/// refuses.
#[inline(never)]
fn is_known(task: Task, object: &SeenObject, (new_buffer_bytes, has_buffer): (u64, bool), told: &mut Told) -> bool {
    let seen_in = match new_buffer_bytes {
        0 if has_buffer => SeenIn::Outside,
        0 => SeenIn::NoBuffer,
        bytes => SeenIn::NewBuffer(bytes),
    };
    let thread = thread_of(task);
    let Some(state) = BUFFERS.get_ptr_mut(thread) else {
        // Without room the next object is treated like this one.
        let _ = BUFFERS.insert(thread, BufferState::first(object, seen_in), 0);
        return false;
    };
    // SAFETY: helper without arguments.
    let random = unsafe { bpf_get_prandom_u32() };
    // SAFETY: a live map value. If it was given to another thread just now, that one's next sample stands for too much
    // or too little.
    *told = unsafe { (*state).see(object, seen_in, random) };
    true
}

/// What names a class.
#[inline(always)]
fn class(jvm: &JvmAllocation, klass: u64) -> FrameWord {
    let symbol = word(klass, jvm.klass_name);
    // SAFETY: the helper fails where nothing can be read.
    let hash: u16 = unsafe { bpf_probe_read_user((symbol + jvm.symbol_hash as u64) as *const u16) }.unwrap_or(0);
    FrameWord::class(symbol, hash)
}

#[inline(always)]
fn sample(task: Task, class: FrameWord, (address, bytes): (u64, u64)) {
    let tgid = task.tgid();
    // `None`: without a stack a sample says nothing, and the thread's other samples stand for it.
    let introduced = unwind::interruptible(tgid, From::CallerWithLeaf(class), |stack| {
        if stack.id == StackId::NONE {
            count_loss(Loss::UserStackFailed);
            return None;
        }
        stack.introduce(tgid).then_some(stack.id)
    });
    match introduced {
        Some(Some(stack)) => {
            let key = AllocationKey { thread: thread_of(task), stack: stack.0 };
            let add = |slot: &mut AllocationSlot| {
                slot.tgid = task.tgid();
                slot.bytes = slot.bytes.wrapping_add(bytes);
                slot.samples = slot.samples.wrapping_add(1);
            };
            replace(|| ALLOCATED.get(bank_now()), &key, add);
            remember(task, address, stack, bytes);
        }
        Some(None) => {}
        None => count_loss(Loss::NestedAllocation),
    }
}

/// Remembers an object until a collection shows its fate. Two threads that do so at once may take one place: one of the
/// objects is forgotten then, whichever.
#[inline(always)]
fn remember(task: Task, address: u64, stack: StackId, bytes: u64) {
    let tgid = task.tgid();
    if address == 0 || COLLECTORS.get_ptr(tgid).is_none() {
        return;
    }
    let number = match OBJECT_COUNTS.get_ptr_mut(tgid) {
        // SAFETY: a live value of a preallocated map.
        Some(count) => unsafe {
            let number = *count;
            *count = number.wrapping_add(1);
            number
        },
        None => {
            // Without room its objects' fates are not known.
            let _ = OBJECT_COUNTS.insert(tgid, 1, 0);
            0
        }
    };
    let object = SampledObject { address, bytes, thread: thread_of(task), stack: stack.0 };
    let _ = OBJECTS.insert(object_key(tgid, number), object, 0);
}

/// Notes all that a thread has allocated until now, and of an object that was seen what it tells of ends of buffers.
#[inline(always)]
fn note(task: Task, all: u64, of_object: Option<EndCounts>) {
    replace(
        || ALLOCATING_THREADS.get(bank_now()),
        &thread_of(task),
        |thread: &mut AllocatingThread| {
            (thread.tgid, thread.bytes) = (task.tgid(), all);
            if let Some(ends) = &of_object {
                thread.objects = thread.objects.wrapping_add(1);
                thread.ends.add(ends);
            }
        },
    );
}

#[inline(always)]
fn thread_of(task: Task) -> u64 {
    ThreadKey::new(task.tid(), task.start_boottime_ns(), Place(0)).0
}

/// All that a thread has allocated until now.
#[inline(always)]
fn allocated(jvm: &JvmAllocation, java_thread: u64) -> u64 {
    let (start, top) = (word(java_thread, jvm.tlab_start), word(java_thread, jvm.tlab_top));
    allocated_bytes(word(java_thread, jvm.allocated_bytes), start, top)
}

/// Changes a record of the running thread in the map of this moment. It is replaced whole, and only if it is still there:
/// this program may be put off while user space drains the bank, and then the place may be another thread's. Who finds
/// the record gone begins a new one in the bank of that moment. Beside the thread only the end of a collection writes
/// to it, when the thread stands still.
#[inline(always)]
fn replace<K: 'static, V: Copy + Default, const WORDS: usize>(
    map_now: impl Fn() -> Option<&'static Counts<K, WORDS>>,
    key: &K,
    change: impl Fn(&mut V),
) {
    if let Some(map) = map_now()
        && let Some(known) = slot::<_, V, _>(map, key)
    {
        // SAFETY: a live value of a preallocated map. If it is another's by now, it is not replaced.
        let mut sum = unsafe { *known };
        change(&mut sum);
        if add_slot(map, key, &sum, u64::from(BPF_EXIST)).is_ok() {
            return;
        }
    }
    let mut first = V::default();
    change(&mut first);
    let is_added = map_now().is_some_and(|map| add_slot(map, key, &first, u64::from(BPF_NOEXIST)).is_ok());
    if !is_added {
        count_loss(Loss::AllocationMapFull);
    }
}

/// A word of the process's memory; 0 if it cannot be read.
#[inline(always)]
fn word(base: u64, offset: u32) -> u64 {
    // SAFETY: the helper fails where nothing can be read.
    unsafe { bpf_probe_read_user(base.wrapping_add(offset as u64) as *const u64) }.unwrap_or(0)
}

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
    AllocationKey, AllocationSlot, BufferState, FrameWord, JvmAllocation, Loss, MAX_REMEMBERED_BYTES, Place,
    SampledObject, StackId, ThreadKey, allocated_bytes, object_key, sampled_bytes,
};

use crate::{
    maps::{
        ALLOCATED, ALLOCATING_THREADS, ALLOCATION_GAP, ALLOCATORS, AllocationMap, BUFFERS, COLLECTORS, OBJECT_COUNTS,
        OBJECTS, add_slot, count_loss, slot,
    },
    task::{Task, bank_now},
    unwind::{self, From},
};

/// `AllocTracer::send_allocation_in_new_tlab(Klass*, HeapWord*, size_t tlab_size, size_t alloc_size, Thread*)`.
#[uprobe]
pub fn allocation_in_new_tlab(context: ProbeContext) -> u32 {
    seen(context.arg(0), context.arg(1), (context.arg(3), context.arg(4)), true)
}

/// `AllocTracer::send_allocation_outside_tlab(Klass*, HeapWord*, size_t alloc_size, Thread*)`.
#[uprobe]
pub fn allocation_outside_tlab(context: ProbeContext) -> u32 {
    seen(context.arg(0), context.arg(1), (context.arg(2), context.arg(3)), false)
}

/// `ThreadService::remove_thread(JavaThread*, bool)`: what it says of itself is the last.
#[uprobe]
pub fn allocating_thread_ended(context: ProbeContext) -> u32 {
    let task = Task::current();
    if let (Some(jvm), Some(java_thread)) = (ALLOCATORS.get_ptr(task.tgid()), context.arg::<u64>(0)) {
        // SAFETY: a live value of a preallocated map.
        note(task, allocated(unsafe { &*jvm }, java_thread), 0);
    }
    0
}

#[inline(always)]
fn seen(
    klass: Option<u64>,
    object: Option<u64>,
    (object_bytes, java_thread): (Option<u64>, Option<u64>),
    begins_buffer: bool,
) -> u32 {
    let (Some(klass), Some(object)) = (klass, object) else { return 0 };
    let (Some(object_bytes), Some(java_thread)) = (object_bytes, java_thread) else { return 0 };
    let task = Task::current();
    let Some(jvm) = ALLOCATORS.get_ptr(task.tgid()) else { return 0 };
    // SAFETY: a live value of a preallocated map.
    let jvm = unsafe { &*jvm };
    let all = allocated(jvm, java_thread);
    note(task, all, 1);
    let buffer_bytes = buffer_bytes(task, jvm, java_thread, (all, object_bytes), begins_buffer);
    let gap = ALLOCATION_GAP.get(0).map_or(1, |gap| *gap);
    // SAFETY: helper without arguments.
    let chance = unsafe { bpf_get_prandom_u32() };
    if let Some(bytes) = sampled_bytes(object_bytes, buffer_bytes, gap, chance) {
        let object = if object_bytes <= MAX_REMEMBERED_BYTES { object } else { 0 };
        sample(task, class(jvm, klass), (object, bytes));
    }
    0
}

/// What the buffer has or had whose end the object crosses.
#[inline(always)]
fn buffer_bytes(
    task: Task,
    jvm: &JvmAllocation,
    java_thread: u64,
    (all, object_bytes): (u64, u64),
    begins_buffer: bool,
) -> u64 {
    let usual = word(java_thread, jvm.tlab_desired_size).wrapping_mul(8);
    let thread = ThreadKey::new(task.tid(), task.start_boottime_ns(), Place(0)).0;
    let Some(state) = BUFFERS.get_ptr_mut(thread) else {
        let began = if begins_buffer { all.wrapping_sub(object_bytes) } else { all };
        // Without room the next object is treated like this one.
        let _ = BUFFERS.insert(thread, BufferState { before: began, outside: 0 }, 0);
        return usual;
    };
    // SAFETY: a live map value. If it was given to another thread just now, that one's next sample stands for too much
    // or too little.
    let state = unsafe { &mut *state };
    if begins_buffer {
        state.begin_buffer(all, object_bytes)
    } else if word(java_thread, jvm.tlab_start) == 0 {
        state.end_buffer(all, object_bytes)
    } else {
        state.add_outside(object_bytes);
        usual
    }
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
fn sample(task: Task, class: FrameWord, (object, bytes): (u64, u64)) {
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
            add(task, stack, |slot| {
                slot.bytes = slot.bytes.wrapping_add(bytes);
                slot.count = slot.count.wrapping_add(1);
            });
            remember(task, object, stack, bytes);
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
    let thread = ThreadKey::new(task.tid(), task.start_boottime_ns(), Place(0)).0;
    let _ = OBJECTS.insert(object_key(tgid, number), SampledObject { address, bytes, thread, stack: stack.0 }, 0);
}

/// Notes all that a thread has allocated until now, and how many of its objects were seen.
#[inline(always)]
fn note(task: Task, all: u64, objects: u32) {
    add(task, StackId::NONE, |slot| {
        slot.bytes = all;
        slot.count = slot.count.wrapping_add(objects);
    });
}

/// All that a thread has allocated until now.
#[inline(always)]
fn allocated(jvm: &JvmAllocation, java_thread: u64) -> u64 {
    let (start, top) = (word(java_thread, jvm.tlab_start), word(java_thread, jvm.tlab_top));
    allocated_bytes(word(java_thread, jvm.allocated_bytes), start, top)
}

/// Changes a record of the running thread. It is replaced whole, and only if it is still there: this program may be put
/// off while user space drains the bank, and then the place may be another thread's. Who finds the record gone begins a
/// new one in the bank of that moment. Beside the thread only the end of a collection writes to it, when the thread
/// stands still.
#[inline(always)]
fn add(task: Task, stack: StackId, change: impl Fn(&mut AllocationSlot)) {
    let thread = ThreadKey::new(task.tid(), task.start_boottime_ns(), Place(0));
    let key = AllocationKey { thread: thread.0, stack: stack.0 };
    if let Some(map) = bank_of(stack)
        && let Some(known) = slot::<_, AllocationSlot, _>(map, &key)
    {
        // SAFETY: a live value of a preallocated map. If it is another's by now, it is not replaced.
        let mut sum = unsafe { *known };
        change(&mut sum);
        if add_slot(map, &key, &sum, u64::from(BPF_EXIST)).is_ok() {
            return;
        }
    }
    let mut first = AllocationSlot { tgid: task.tgid(), ..AllocationSlot::default() };
    change(&mut first);
    let is_added = bank_of(stack).is_some_and(|map| add_slot(map, &key, &first, u64::from(BPF_NOEXIST)).is_ok());
    if !is_added {
        count_loss(Loss::AllocationMapFull);
    }
}

/// The map of this moment for a thread's own record, or for its samples.
#[inline(always)]
fn bank_of(stack: StackId) -> Option<&'static AllocationMap> {
    if stack == StackId::NONE { ALLOCATING_THREADS.get(bank_now()) } else { ALLOCATED.get(bank_now()) }
}

/// A word of the process's memory; 0 if it cannot be read.
#[inline(always)]
fn word(base: u64, offset: u32) -> u64 {
    // SAFETY: the helper fails where nothing can be read.
    unsafe { bpf_probe_read_user(base.wrapping_add(offset as u64) as *const u64) }.unwrap_or(0)
}

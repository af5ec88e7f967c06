//! Tells of garbage collections: the probes that a JVM has where a collection begins and ends, one call for each
//! memory pool. Pools beside the Java heap are left out. See `abi::PoolRecord`.
//!
//! At the end of a young collection the program still stands still, and nothing has been allocated since. So the objects that
//! were sampled before it are looked at: whether one has survived is to be seen at its old place.

use aya_ebpf::{
    EbpfContext as _,
    bindings::{BPF_EXIST, BPF_NOEXIST},
    helpers::{bpf_ktime_get_ns, bpf_probe_read_user, bpf_probe_read_user_str_bytes, generated::bpf_probe_read_kernel},
    macros::uprobe,
    maps::ring_buf::RingBufEntry,
    programs::ProbeContext,
};
use joular_ebpf::abi::{
    AllocationKey, AllocationSlot, ArgumentPlace, CHEAP_RECORD_BYTES, CollectionName, FREE_REGION, JvmCollections,
    Loss, MAX_REMEMBERED_OBJECTS, OBJECT_AGES, PoolArguments, PoolRecord, RecordKind, Survival, forwards_survivors,
    is_beside_heap, keeps_survivors, object_key,
};

use crate::{
    emit::{self, WAKE_WHEN_READ},
    maps::{ALLOCATED, COLLECTORS, EVENTS, OBJECT_COUNTS, OBJECTS, add_slot, count_loss, slot},
    task::{Task, bank_now},
    unwind::LAST_REGISTER,
};

/// `hotspot:mem__pool__gc__begin`.
#[uprobe]
pub fn collection_begins(context: ProbeContext) -> u32 {
    tell(&context, false)
}

/// `hotspot:mem__pool__gc__end`.
#[uprobe]
pub fn collection_ends(context: ProbeContext) -> u32 {
    tell(&context, true)
}

#[inline(always)]
fn tell(context: &ProbeContext, is_end: bool) -> u32 {
    let tgid = Task::current().tgid();
    let Some(jvm) = COLLECTORS.get_ptr(tgid) else { return 0 };
    // SAFETY: a live value of a preallocated map.
    let jvm = unsafe { &*jvm };
    if !emit::admits(tgid, CHEAP_RECORD_BYTES) {
        return 0;
    }
    let Some(entry): Option<RingBufEntry<PoolRecord>> = EVENTS.reserve(0) else {
        count_loss(Loss::CollectionRingFull);
        return 0;
    };
    if fill(context, jvm, (tgid, is_end), entry) {
        judge(tgid);
    }
    0
}

/// Returns whether what has survived is to be seen at the objects' old places: the collector has moved it, and the
/// program has not gone on yet.
#[inline(always)]
fn fill(
    context: &ProbeContext,
    jvm: &JvmCollections,
    (tgid, is_end): (u32, bool),
    mut entry: RingBufEntry<PoolRecord>,
) -> bool {
    let record = entry.as_mut_ptr();
    let arguments: &PoolArguments = if is_end { &jvm.end } else { &jvm.begin };
    // SAFETY: memory of the ring that is this program's until the record is sent; all of it is written.
    let record = unsafe {
        record.write_bytes(0, 1);
        &mut *record
    };
    read_text(argument(context, &arguments.pool), &mut record.pool);
    if is_beside_heap(&record.pool) {
        entry.discard(0);
        return false;
    }
    read_text(argument(context, &arguments.collector), &mut record.collector);
    read_text(jvm.cause, &mut record.cause);
    record.kind = RecordKind::POOL;
    record.tgid = tgid;
    record.is_end = u32::from(is_end);
    // SAFETY: helper without arguments.
    record.time_ns = unsafe { bpf_ktime_get_ns() };
    record.used_bytes = argument(context, &arguments.used_bytes);
    if is_end && jvm.ages != 0 {
        for age in 0..OBJECT_AGES {
            let address = jvm.ages.wrapping_add(jvm.age_stride.wrapping_mul(age as u64));
            // SAFETY: the helper fails where nothing can be read.
            record.ages[age] = unsafe { bpf_probe_read_user(address as *const u64) }.unwrap_or(0);
        }
    }
    let has_moved = is_end
        && jvm.survival.is_known != 0
        && forwards_survivors(&record.collector)
        && !keeps_survivors(&record.pool, record.used_bytes);
    entry.submit(WAKE_WHEN_READ);
    if is_end && !has_moved {
        // They are elsewhere by now, or will be, and nothing shows where.
        forget_objects(tgid);
    }
    has_moved
}

/// Looks which of the objects that were sampled since the last collection have survived this one.
#[inline(always)]
fn judge(tgid: u32) {
    let count = forget_objects(tgid);
    for number in 0..MAX_REMEMBERED_OBJECTS {
        if number >= count {
            break;
        }
        judge_object(tgid, number);
    }
}

/// How many there were.
#[inline(always)]
fn forget_objects(tgid: u32) -> u32 {
    // SAFETY: a live value of a preallocated map. The JVM's threads stand still.
    OBJECT_COUNTS.get_ptr_mut(tgid).map_or(0, |count| unsafe { core::ptr::replace(count, 0) })
}

/// A global function: the verifier looks at it once, and not for each turn of the loop.
#[unsafe(no_mangle)]
#[inline(never)]
pub extern "C" fn judge_object(tgid: u32, number: u32) -> u32 {
    let Some(object) = OBJECTS.get_ptr(object_key(tgid, number)) else { return 0 };
    // SAFETY: a live value of a preallocated map.
    let object = unsafe { *object };
    // SAFETY: the helper fails where nothing can be read.
    let Ok(mark) = (unsafe { bpf_probe_read_user(object.address as *const u64) }) else { return 0 };
    let Some(jvm) = COLLECTORS.get_ptr(tgid) else { return 0 };
    // SAFETY: a live value of a preallocated map.
    let survived = match has_survived(unsafe { &(*jvm).survival }, object.address, mark) {
        Some(true) => object.bytes,
        Some(false) => 0,
        None => return 0,
    };
    let key = AllocationKey { thread: object.thread, stack: object.stack };
    if let Some(map) = ALLOCATED.get(bank_now())
        && let Some(known) = slot::<_, AllocationSlot, _>(map, &key)
    {
        // SAFETY: a live value of a preallocated map. If it is another's by now, it is not replaced. The thread that it is
        // of stands still, and one thread at a time ends a collection.
        let mut sum = unsafe { *known };
        sum.judged_bytes = sum.judged_bytes.wrapping_add(object.bytes);
        sum.survived_bytes = sum.survived_bytes.wrapping_add(survived);
        if add_slot(map, &key, &sum, u64::from(BPF_EXIST)).is_ok() {
            return 1;
        }
    }
    let first =
        AllocationSlot { tgid, judged_bytes: object.bytes, survived_bytes: survived, ..AllocationSlot::default() };
    let is_added =
        ALLOCATED.get(bank_now()).is_some_and(|map| add_slot(map, &key, &first, u64::from(BPF_NOEXIST)).is_ok());
    if !is_added {
        count_loss(Loss::AllocationMapFull);
    }
    1
}

/// Whether an object has survived. In a region of G1 that was kept because something in it could not be moved, what is
/// alive and what is not look alike: `None`.
#[inline(always)]
fn has_survived(survival: &Survival, address: u64, mark: u64) -> Option<bool> {
    if survival.is_forwarded(mark) {
        return Some(true);
    }
    if survival.regions == 0 {
        return Some(false);
    }
    // SAFETY: the helper fails where nothing can be read.
    let region = unsafe { bpf_probe_read_user(survival.region_entry(address) as *const u64) }.ok()?;
    let kind = region.wrapping_add(u64::from(survival.region_kind));
    // SAFETY: as above.
    let kind = unsafe { bpf_probe_read_user(kind as *const u32) }.ok()?;
    (kind == FREE_REGION).then_some(false)
}

/// An argument of the probe; 0 if it cannot be read.
#[inline(always)]
fn argument(context: &ProbeContext, place: &ArgumentPlace) -> u64 {
    if place.register > LAST_REGISTER {
        return 0;
    }
    let mut register = 0_u64;
    // A context cannot be read at an offset that the verifier does not know.
    // SAFETY: the helper fails where nothing can be read; a register is 8 bytes.
    unsafe {
        let at = context.as_ptr().cast::<u8>().add(place.register as usize);
        bpf_probe_read_kernel((&raw mut register).cast(), 8, at.cast());
    }
    if place.in_memory == 0 {
        return register;
    }
    let address = register.wrapping_add_signed(place.displacement);
    // SAFETY: as above.
    unsafe { bpf_probe_read_user(address as *const u64) }.unwrap_or(0)
}

/// Text of the process that ends with a zero; empty if it cannot be read.
#[inline(always)]
fn read_text(address: u64, text: &mut CollectionName) {
    if address != 0 {
        // SAFETY: the helper bounds the copy, and fails where nothing can be read.
        let _ = unsafe { bpf_probe_read_user_str_bytes(address as *const u8, text) };
    }
}

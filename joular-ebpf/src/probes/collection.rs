//! Tells of garbage collections: the probes that a JVM has where a collection begins and ends, one call for each
//! memory pool. Pools beside the Java heap are left out. See `abi::PoolRecord`.

use aya_ebpf::{
    EbpfContext as _,
    helpers::{bpf_ktime_get_ns, bpf_probe_read_user, bpf_probe_read_user_str_bytes, generated::bpf_probe_read_kernel},
    macros::uprobe,
    maps::ring_buf::RingBufEntry,
    programs::ProbeContext,
};
use joular_ebpf::abi::{
    ArgumentPlace, COLLECTION_NAME_BYTES, CollectionName, JvmCollections, Loss, OBJECT_AGES, PoolArguments, PoolRecord,
    RecordKind, is_beside_heap,
};

use crate::{
    emit::WAKE_WHEN_READ,
    maps::{COLLECTORS, EVENTS, count_loss},
    task::Task,
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
    let Some(entry): Option<RingBufEntry<PoolRecord>> = EVENTS.reserve(0) else {
        count_loss(Loss::CollectionRingFull);
        return 0;
    };
    fill(context, jvm, (tgid, is_end), entry);
    0
}

#[inline(always)]
fn fill(
    context: &ProbeContext,
    jvm: &JvmCollections,
    (tgid, is_end): (u32, bool),
    mut entry: RingBufEntry<PoolRecord>,
) {
    let record = entry.as_mut_ptr();
    let arguments: &PoolArguments = if is_end { &jvm.end } else { &jvm.begin };
    // SAFETY: memory of the ring that is this program's until the record is sent; all of it is written.
    let record = unsafe {
        record.write_bytes(0, 1);
        &mut *record
    };
    read_text(argument(context, &arguments.pool), &mut record.pool);
    if is_beside_heap(&record.pool) {
        return entry.discard(0);
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
    entry.submit(WAKE_WHEN_READ);
}

/// An argument of the probe; 0 if it cannot be read.
#[inline(always)]
fn argument(context: &ProbeContext, place: &ArgumentPlace) -> u64 {
    const LAST_REGISTER: u32 = 160;
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
    const _: () = assert!(COLLECTION_NAME_BYTES > 0);
    if address != 0 {
        // SAFETY: the helper bounds the copy, and fails where nothing can be read.
        let _ = unsafe { bpf_probe_read_user_str_bytes(address as *const u8, text) };
    }
}

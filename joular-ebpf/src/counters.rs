//! Counts what `--counters` names, by events that user space opened on each CPU. Unless something is counted,
//! [`COUNTER_COUNT`] is 0 and the verifier removes all of it.
//!
//! What was counted in a slice goes to the thread that ran in it, as its time does. A slice that a boundary cuts
//! has its counts cut in proportion.

use aya_ebpf::{bindings::BPF_F_CURRENT_CPU, helpers::generated::bpf_perf_event_read, maps::PerfEventArray};
use joular_ebpf::abi::{CounterSlot, CounterState, Fraction, Loss, MAX_COUNTERS, ThreadKey, cut_count};

use crate::maps::{
    COUNTED, COUNTER_COUNT, COUNTERS_0, COUNTERS_1, COUNTERS_2, COUNTERS_3, COUNTERS_4, COUNTERS_5, COUNTERS_6,
    COUNTERS_7, COUNTS, add_slot, count_loss, slot,
};

/// Who a slice's counts are from.
#[derive(Clone, Copy)]
pub enum Counted {
    /// A thread; the idle task's key is 0.
    By(ThreadKey),
    /// Several threads, because the kernel did not report a switch.
    Unknown,
}

/// Credits what was counted since the last accounting on this CPU to the thread. Counts of the idle task are dropped.
/// `earlier` is the part of the time that belongs to the other bank.
#[inline(always)]
pub fn account(counted: Counted, bank: u32, earlier: Fraction, has_earlier: bool) {
    let Some(state) = COUNTED.get_ptr_mut(0) else { return };
    // SAFETY: a live per-CPU map value, guarded by the mark of the accounting.
    let state = unsafe { &mut *state };
    let any = read(state, earlier, has_earlier);
    let thread = match counted {
        Counted::By(ThreadKey(0)) => return,
        Counted::By(thread) => thread,
        Counted::Unknown => ThreadKey::UNKNOWN,
    };
    if any == 0 {
        return;
    }
    if has_earlier {
        add(bank ^ 1, thread, &state.earlier);
    }
    add(bank, thread, &state.later);
}

/// Reads all counters. Returns 0 if none has counted anything.
#[inline(always)]
fn read(state: &mut CounterState, earlier: Fraction, has_earlier: bool) -> u64 {
    let mut any = 0;
    // Not a loop: which map is read has to be a constant.
    any |= read_into::<0>(state, &COUNTERS_0, earlier, has_earlier);
    any |= read_into::<1>(state, &COUNTERS_1, earlier, has_earlier);
    any |= read_into::<2>(state, &COUNTERS_2, earlier, has_earlier);
    any |= read_into::<3>(state, &COUNTERS_3, earlier, has_earlier);
    any |= read_into::<4>(state, &COUNTERS_4, earlier, has_earlier);
    any |= read_into::<5>(state, &COUNTERS_5, earlier, has_earlier);
    any |= read_into::<6>(state, &COUNTERS_6, earlier, has_earlier);
    any |= read_into::<7>(state, &COUNTERS_7, earlier, has_earlier);
    any
}

/// Reads one counter, if there are so many. Returns what it counted.
#[inline(always)]
fn read_into<const INDEX: usize>(
    state: &mut CounterState,
    map: &'static PerfEventArray<u64>,
    earlier: Fraction,
    has_earlier: bool,
) -> u64 {
    if COUNTER_COUNT.load() <= INDEX as u32 {
        return 0;
    }
    let counted = CounterState::step(&mut state.last[INDEX], read_one(map));
    if counted.is_none() {
        count_loss(Loss::CounterUnread);
    }
    let counted = counted.unwrap_or(0);
    let (before, after) = if has_earlier { cut_count(counted, earlier) } else { (0, counted) };
    state.earlier.counts[INDEX] = before;
    state.later.counts[INDEX] = after;
    counted
}

/// Not by the helper that also says how long a counter ran: it is slower, and these are pinned.
#[inline(always)]
fn read_one(map: &'static PerfEventArray<u64>) -> Option<u64> {
    let map = (&raw const *map).cast_mut().cast();
    // SAFETY: the map is a perf event array.
    let value = unsafe { bpf_perf_event_read(map, BPF_F_CURRENT_CPU) };
    // Errors are small negative numbers, which no counter reaches.
    if (value as i64) < 0 { None } else { Some(value) }
}

/// A thread runs on one CPU at a time, so its slot has one writer.
#[inline(always)]
fn add(bank: u32, thread: ThreadKey, counted: &CounterSlot) {
    let Some(map) = COUNTS.get(bank) else { return count_loss(Loss::CounterMapFull) };
    let found: Option<*mut CounterSlot> = slot(map, &thread.0);
    let Some(found) = found else {
        if add_slot(map, &thread.0, counted, 0).is_err() {
            count_loss(Loss::CounterMapFull);
        }
        return;
    };
    // SAFETY: a live value of a preallocated map; see above for writers.
    let found = unsafe { &mut *found };
    for index in 0..MAX_COUNTERS {
        if index as u32 >= COUNTER_COUNT.load() {
            break;
        }
        found.counts[index] = found.counts[index].wrapping_add(counted.counts[index]);
    }
}

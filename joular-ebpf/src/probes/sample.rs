//! Takes samples: it accounts the running slice and, for targets, counts the stack.
//!
//! One of two programs is loaded. `sample_at_timer` runs in every timer interrupt of the CPU and
//! takes a sample if one is due (`sampling.rs`). `sample_at_event` runs at the kernel's event
//! cpu-clock, where timer interrupts cannot be seen.

use core::mem::MaybeUninit;

use aya_ebpf::{
    bindings::BPF_NOEXIST,
    helpers::bpf_ktime_get_ns,
    macros::{btf_tracepoint, perf_event},
    programs::{BtfTracePointContext, PerfEventContext},
};
use joular_ebpf::abi::{Loss, SampleKey, SampleKind, SampleSlot, thread_flags};

use crate::{
    maps::{ALL_TARGETS, SAMPLES, SamplingTimer, add_slot, count_loss, slot},
    sampling,
    task::{Accounted, At, Task, account},
    unwind::{self, Interrupted},
};

/// With interrupts off and before the kernel looks at its timers: at `local_timer_entry(int vector)`, or on aarch64 at
/// `irq_handler_entry(int irq, struct irqaction *)`.
#[cfg_attr(not(bpf_target_arch = "aarch64"), btf_tracepoint(function = "local_timer_entry"))]
#[cfg_attr(bpf_target_arch = "aarch64", btf_tracepoint(function = "irq_handler_entry"))]
pub fn sample_at_timer(context: BtfTracePointContext) -> i32 {
    if !unwind::is_of_timer(&context) {
        return 0;
    }
    let Some(sampling) = sampling::timer() else { return 0 };
    // SAFETY: helper without arguments.
    let now_ns = unsafe { bpf_ktime_get_ns() };
    if sampling.clock.is_ready == 0 {
        sampling::make(sampling);
    }
    let clock = &mut sampling.clock;
    if clock.is_ready == 0 || clock.is_armed != 0 && !clock.is_due(now_ns) {
        return 0;
    }
    let is_due = clock.interrupt(now_ns);
    let task = Task::current();
    // None is due if the process has become a target while it was running.
    if task.tid() != 0 && sampling::is_target(task.tgid()) {
        if is_due {
            take(&context);
        }
        // `sampling` says where the timer is set for the next one. Looked up again: older kernels allow little stack to keep
        // things on meanwhile.
        if let Some(SamplingTimer { timer, clock }) = sampling::timer() {
            // SAFETY: helper without arguments.
            let now_ns = unsafe { bpf_ktime_get_ns() };
            if is_due && context.is_user_code() {
                sampling::draw(clock, now_ns);
            } else {
                sampling::arm(timer, clock, now_ns);
            }
        }
    }
    0
}

#[perf_event]
pub fn sample_at_event(context: PerfEventContext) -> u32 {
    take(&context);
    0
}

#[inline(always)]
fn take(context: &impl Interrupted) {
    let mut accounted = MaybeUninit::uninit();
    if !account_sample(&mut accounted) {
        return;
    }
    // SAFETY: it was written.
    let accounted = unsafe { accounted.assume_init_ref() };
    if accounted.tid == 0 {
        return;
    }
    let tgid = accounted.task.tgid();
    if is_of_target(accounted, tgid) {
        count_stack(context, accounted, tgid);
    }
}

/// A function of its own gives its stack back before the walk, which needs a lot: older kernels allow 512 bytes to all
/// functions that call each other together. It returns a number, since the verifier lets no function leave a pointer to
/// the stack behind as its result.
#[inline(never)]
fn account_sample(to: &mut MaybeUninit<Accounted>) -> bool {
    let Some(accounted) = account(At::Sample) else { return false };
    to.write(accounted);
    true
}

/// [`sampling::is_target`], which a thread's slot remembers.
#[inline(always)]
fn is_of_target(accounted: &Accounted, tgid: u32) -> bool {
    let slot = match accounted.slot {
        Some(slot) if ALL_TARGETS.load() == 0 => slot.as_ptr(),
        _ => return sampling::is_target(tgid),
    };
    // SAFETY: a live value of a preallocated map; this CPU runs the thread and
    // is the slot's one writer.
    let flags = unsafe { &mut (*slot).flags };
    if *flags & thread_flags::TARGET != 0 {
        return true;
    }
    let is_target = sampling::is_target(tgid);
    if is_target {
        *flags |= thread_flags::TARGET;
    }
    is_target
}

#[inline(always)]
fn count_stack(context: &impl Interrupted, accounted: &Accounted, tgid: u32) {
    let kernel = unwind::kernel(context);
    let user = unwind::user(context, accounted.task, tgid);
    let key = SampleKey::new(SampleKind::CpuTime, accounted.thread, user.id, kernel.id);
    let Some(map) = SAMPLES.get(accounted.bank) else { return };
    // By reference: each copy of a key is stack.
    if let Some(slot) = slot::<_, SampleSlot, _>(map, &key) {
        // SAFETY: a live value of a preallocated map; the key holds the
        // thread, which runs on one CPU at a time: one writer.
        unsafe { (*slot).count += 1 };
        return;
    }
    // Without its addresses a key would be counted for nothing all window long;
    // the next sample tries again.
    if !kernel.introduce(tgid) || !user.introduce(tgid) {
        return;
    }
    if add_slot(map, &key, &SampleSlot { count: 1, tgid }, u64::from(BPF_NOEXIST)).is_err() {
        count_loss(Loss::SampleMapFull);
    }
}

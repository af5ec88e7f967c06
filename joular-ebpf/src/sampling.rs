//! Sets each CPU's timer for its next sample, after a gap drawn at random (`abi::sampling`).
//!
//! The timer runs only while targets run. A switch to a target sets it, and each sample sets it anew.
//! An interrupt that finds no target sets nothing, so a CPU that idles is not woken again. On a CPU
//! that idles for long the timer is put off when it becomes idle.
//!
//! `bpf_timer` expires in a softirq, but the sample is taken before, in the timer's interrupt itself
//! (`probes/sample.rs`), where nothing can delay it. If user code was interrupted, that softirq follows at once, and there
//! the timer's callback sets it for the next sample. So the kernel programs the hardware once in the interrupt, and not once
//! more for this timer, which costs a virtual machine an exit to its host. If the kernel was interrupted, the softirq may
//! have to wait, and what runs meanwhile would have no sample: so the timer is set in the interrupt. That moves it before it
//! expires, and its callback has nothing to do, unless the timer expires before its interrupt has ended.
//!
//! Timers are set under the lock of a run queue, which is safe: the kernel starts timers there as
//! well (`hrtick_start`), and starting one wakes nobody. *Making* a timer allocates memory, and could
//! wake the kernel's page reclaim: that is done in the interrupt, which never comes under that lock.
//!
//! From Linux 7.0 on (1bfbc267ec91, "bpf: Enable bpf_timer and bpf_wq in any context") the kernel does not set a timer
//! at once under that lock and in the interrupt, where interrupts are off. It notes what is to be done and interrupts its
//! own CPU for it as soon as they are on (`bpf_async_schedule_op`). So each setting there costs one more interrupt. The
//! timer may expire once before it is moved, and comes later than it is due by what the detour takes. Neither changes a
//! sample: the callback sets it for the same moment, and a gap begins when the last sample was due (`abi::sampling`). The
//! note takes memory; without any the timer is not set, which is counted.

use core::ffi::c_void;

use aya_ebpf::{
    bindings::bpf_timer,
    helpers::{
        bpf_get_prandom_u32, bpf_get_smp_processor_id, bpf_ktime_get_ns,
        generated::{bpf_timer_init, bpf_timer_set_callback, bpf_timer_start},
    },
};
use joular_ebpf::abi::{Loss, SamplingClock};

use crate::{
    maps::{ALL_TARGETS, MEAN_GAP_NS, SAMPLING, SELF_TGID, SamplingTimer, TARGETS, count_loss},
    task::Task,
};

/// The monotonic clock.
const CLOCK_MONOTONIC: u64 = 1;

/// Keeps a timer on the CPU that set it (Linux 6.7). Without it a CPU that is not idle keeps its
/// timers all the same, unless it is isolated (`nohz_full`).
const BPF_F_TIMER_CPU_PIN: u64 = 2;

/// A timer that is put off expires after this time: an hour. To cancel it would make it forget its
/// callback.
const PUT_OFF_NS: u64 = 3_600_000_000_000;

/// This CPU's timer, if the programs sample by timers.
#[inline(always)]
pub fn timer() -> Option<&'static mut SamplingTimer> {
    if MEAN_GAP_NS.load() == 0 {
        return None;
    }
    // SAFETY: helper without arguments.
    let timer = SAMPLING.get_ptr_mut(unsafe { bpf_get_smp_processor_id() })?;
    // SAFETY: a live map value. Only programs on this CPU touch its clock, with interrupts off.
    Some(unsafe { &mut *timer })
}

/// Whether samples of this process are wanted.
#[inline(always)]
pub fn is_target(tgid: u32) -> bool {
    if ALL_TARGETS.load() != 0 { tgid != SELF_TGID.load() } else { TARGETS.get_ptr(tgid).is_some() }
}

/// Sees to the timer when a CPU switches to another task.
#[inline(always)]
pub fn switched_to(next: Task, now_ns: u64) {
    let Some(SamplingTimer { timer, clock }) = timer() else { return };
    if clock.is_ready == 0 {
        return;
    }
    if next.tid() == 0 {
        if clock.idles(now_ns) {
            clock.is_armed = 0;
            start(timer, clock, PUT_OFF_NS);
        }
        return;
    }
    clock.runs(now_ns);
    if clock.is_armed == 0 && is_target(next.tgid()) {
        arm(timer, clock, now_ns);
    }
}

/// Decides when the next sample is due. The callback of the timer, which expires now, sets it for that.
#[inline(always)]
pub fn draw(clock: &mut SamplingClock, now_ns: u64) {
    // SAFETY: helper without arguments.
    clock.draw(unsafe { bpf_get_prandom_u32() }, MEAN_GAP_NS.load(), now_ns);
}

/// Sets the timer for the next sample.
#[inline(always)]
pub fn arm(timer: &mut bpf_timer, clock: &mut SamplingClock, now_ns: u64) {
    draw(clock, now_ns);
    start(timer, clock, clock.due_ns.saturating_sub(now_ns));
}

#[inline(always)]
fn start(timer: &mut bpf_timer, clock: &mut SamplingClock, after_ns: u64) {
    // SAFETY: the timer of a live map value.
    if unsafe { bpf_timer_start(timer, after_ns, clock.start_flags) } != 0 {
        clock.is_armed = 0;
        count_loss(Loss::TimerNotSet);
    }
}

/// Has the kernel make this CPU's timer, once.
#[inline(always)]
pub fn make(SamplingTimer { timer, clock }: &mut SamplingTimer) {
    let map = (&raw const SAMPLING).cast_mut().cast();
    // SAFETY: the timer of a live value of this map.
    if unsafe { bpf_timer_init(timer, map, CLOCK_MONOTONIC) } != 0 {
        return;
    }
    let callback = expired as extern "C" fn(*mut c_void, *mut u32, *mut SamplingTimer) -> i64;
    // SAFETY: an initialised timer, and a callback of the kind that the kernel asks for.
    if unsafe { bpf_timer_set_callback(timer, callback as *mut c_void) } != 0 {
        return;
    }
    // SAFETY: an initialised timer.
    let can_pin = unsafe { bpf_timer_start(timer, PUT_OFF_NS, BPF_F_TIMER_CPU_PIN) } == 0;
    clock.start_flags = if can_pin { BPF_F_TIMER_CPU_PIN } else { 0 };
    clock.is_ready = 1;
}

/// Sets the timer for the sample that is due next. The last one was taken in the interrupt, or there was none to take: a
/// timer that expires before the interrupt that set it has ended has no interrupt of its own. A CPU without a tick would
/// then have no sample any more.
extern "C" fn expired(_: *mut c_void, cpu: *mut u32, sampling: *mut SamplingTimer) -> i64 {
    // SAFETY: the kernel hands over the key and a live value of the map.
    let (cpu, SamplingTimer { timer, clock }) = unsafe { (*cpu, &mut *sampling) };
    if clock.is_armed == 0 {
        return 0;
    }
    // SAFETY: helper without arguments.
    if cpu != unsafe { bpf_get_smp_processor_id() } {
        // It is another CPU's, which went offline.
        clock.is_armed = 0;
        return 0;
    }
    // SAFETY: helper without arguments.
    start(timer, clock, clock.left_ns(unsafe { bpf_ktime_get_ns() }));
    0
}

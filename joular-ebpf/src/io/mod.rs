//! Counts bytes that threads move, and samples the stacks of targets that move them. See `abi::IoKind`.
//!
//! The programs run at the end of kernel functions, for a thread that goes on afterwards and may be put off in the
//! middle, while user space drains the bank that was chosen. A record is therefore replaced whole, and only if it is
//! still there: whoever finds it gone begins a new one in the bank of that moment, and no byte is lost or counted twice.

pub mod kernel;

use aya_ebpf::{
    bindings::{BPF_EXIST, BPF_NOEXIST},
    helpers::bpf_get_prandom_u32,
};
use joular_ebpf::abi::{DeviceBytes, IoKey, IoKind, IoSlot, Loss, Place, StackId, ThreadKey, sampled_bytes};

use self::kernel::Socket;
use crate::{
    maps::{
        DEVICE_BYTES, IO, IO_GAP, IO_SINCE_BOOTTIME, IO_THREADS, IoMap, TASK_DEVICE_READ, TASK_DEVICE_WRITTEN,
        add_slot, count_loss, slot,
    },
    sampling,
    task::{Task, bank_now},
    unwind::{self, From},
};

/// Counts what a call of the running thread moved, and what the thread has moved from and to devices since it was last
/// looked at. A global function, which the verifier checks by itself.
#[unsafe(no_mangle)]
#[inline(never)]
pub extern "C" fn count_io(kind: u32, bytes: u64) -> u32 {
    let task = Task::current();
    let tgid = task.tgid();
    let thread = key_of(task);
    let device = device_news(task, thread);
    count(thread, tgid, kind, bytes);
    count(thread, tgid, IoKind::DeviceRead as u32, device.read);
    count(thread, tgid, IoKind::DeviceWritten as u32, device.written);
    if sampling::is_target(tgid) {
        let chosen = Chosen { kind, bytes: chosen(bytes), read: chosen(device.read), written: chosen(device.written) };
        if chosen.bytes | chosen.read | chosen.written != 0 {
            sample(tgid, thread, chosen);
        }
    }
    0
}

/// What samples of one call stand for; 0: it is not sampled.
#[derive(Clone, Copy)]
struct Chosen {
    kind: u32,
    bytes: u64,
    read: u64,
    written: u64,
}

#[inline(always)]
fn chosen(bytes: u64) -> u64 {
    if bytes == 0 {
        return 0;
    }
    let gap = IO_GAP.get(0).map_or(1, |gap| *gap);
    // SAFETY: helper without arguments.
    sampled_bytes(bytes, gap, unsafe { bpf_get_prandom_u32() }).unwrap_or(0)
}

#[inline(always)]
fn count(thread: u64, tgid: u32, kind: u32, bytes: u64) {
    if bytes > 0 {
        add_io(thread, StackId::NONE.0, kind, tgid, bytes);
    }
}

/// Counts what a call moved that returned the number of bytes, or that it failed.
#[inline(always)]
pub fn moved(kind: IoKind, returned: i64) -> i32 {
    count_io(kind as u32, if returned > 0 { returned as u64 } else { 0 });
    0
}

/// What is peeked at is received later, and the queue of errors has what was sent.
const MSG_PEEK: i32 = 0x2;
const MSG_ERRQUEUE: i32 = 0x2000;

/// Counts what was sent. The message, if there is one, may have an address of its own. Functions of sockets return an
/// `int`.
#[inline(always)]
pub fn sent(socket: Socket, message: u64, returned: i32) -> i32 {
    let kind = if returned > 0 && socket.is_on_host(message) { IoKind::LocalSent } else { IoKind::Sent };
    moved(kind, returned.into())
}

#[inline(always)]
pub fn received(socket: Socket, message: u64, flags: i32, returned: i32) -> i32 {
    if flags & (MSG_PEEK | MSG_ERRQUEUE) != 0 {
        return 0;
    }
    let kind = if returned > 0 && socket.is_on_host(message) { IoKind::LocalReceived } else { IoKind::Received };
    moved(kind, returned.into())
}

/// Counts the last of a thread that ends. Its stack is not read: it tells nothing any more.
#[inline(always)]
pub fn forget_thread(task: Task) {
    let (thread, tgid) = (key_of(task), task.tgid());
    let now = device_bytes(task);
    let last = match DEVICE_BYTES.get_ptr(thread) {
        // SAFETY: a live value of a preallocated map, which its thread alone writes and removes.
        Some(known) => now.since(unsafe { *known }),
        None => since_start(task, now),
    };
    count(thread, tgid, IoKind::DeviceRead as u32, last.read);
    count(thread, tgid, IoKind::DeviceWritten as u32, last.written);
    let _ = DEVICE_BYTES.remove(thread);
}

#[inline(always)]
fn key_of(task: Task) -> u64 {
    ThreadKey::new(task.tid(), task.start_boottime_ns(), Place(0)).0
}

/// What the thread has moved from and to devices since it was last looked at. Of one that is older than the recording
/// only the first look is known: it begins there.
#[inline(always)]
fn device_news(task: Task, thread: u64) -> DeviceBytes {
    let now = device_bytes(task);
    if let Some(known) = DEVICE_BYTES.get_ptr_mut(thread) {
        // SAFETY: a live value of a preallocated map, which its thread alone writes, and removes when it ends.
        return now.since(unsafe { core::ptr::replace(known, now) });
    }
    // Of a thread that ends the last is counted elsewhere. Since Linux 6.16 that may have been before it gave its memory
    // back, which can move bytes too: nobody would take away what is kept of it now.
    if TASK_DEVICE_READ.load() == 0 || task.is_exiting() {
        return DeviceBytes::default();
    }
    if DEVICE_BYTES.insert(thread, now, u64::from(BPF_NOEXIST)).is_err() {
        count_loss(Loss::DeviceMapFull);
        return DeviceBytes::default();
    }
    since_start(task, now)
}

/// What the kernel says that a thread has moved from and to devices.
#[inline(always)]
fn device_bytes(task: Task) -> DeviceBytes {
    if TASK_DEVICE_READ.load() == 0 {
        return DeviceBytes::default();
    }
    DeviceBytes { read: task.read(TASK_DEVICE_READ.load()), written: task.read(TASK_DEVICE_WRITTEN.load()) }
}

/// All of it, if the thread was started since bytes are counted.
#[inline(always)]
fn since_start(task: Task, now: DeviceBytes) -> DeviceBytes {
    if task.start_boottime_ns() >= IO_SINCE_BOOTTIME.load() { now } else { DeviceBytes::default() }
}

/// Adds to a record of the running thread, which is its one writer. A function of its own: older kernels allow 512 bytes
/// of stack to all functions that call each other together, and a walk needs most of them.
#[unsafe(no_mangle)]
#[inline(never)]
pub extern "C" fn add_io(thread: u64, stack: u64, kind: u32, tgid: u32, bytes: u64) -> u32 {
    let key = IoKey { thread, stack, kind, _reserved: 0 };
    let mut sum = IoSlot { bytes, count: 1, tgid };
    let Some(map) = bank_of(stack) else {
        count_loss(Loss::IoMapFull);
        return 0;
    };
    if let Some(known) = slot::<_, IoSlot, _>(map, &key) {
        // SAFETY: a live value of a preallocated map. If the entry was drained meanwhile and is another's, it is not
        // replaced below.
        let known = unsafe { *known };
        sum.bytes = known.bytes.wrapping_add(bytes);
        sum.count = known.count.wrapping_add(1);
        if add_slot(map, &key, &sum, u64::from(BPF_EXIST)).is_ok() {
            return 0;
        }
        sum.bytes = bytes;
        sum.count = 1;
    }
    let is_added = bank_of(stack).is_some_and(|map| add_slot(map, &key, &sum, u64::from(BPF_NOEXIST)).is_ok());
    if !is_added {
        count_loss(Loss::IoMapFull);
    }
    0
}

/// The map of this moment for a thread's own records, or for its samples.
#[inline(always)]
fn bank_of(stack: u64) -> Option<&'static IoMap> {
    if stack == StackId::NONE.0 { IO_THREADS.get(bank_now()) } else { IO.get(bank_now()) }
}

/// Reads the stack once for all that was chosen of a call.
#[inline(always)]
fn sample(tgid: u32, thread: u64, chosen: Chosen) {
    // `None`: without a stack a sample says nothing, and the thread's other samples stand for it.
    let introduced = unwind::interruptible(tgid, From::KernelEntry, |stack| {
        if stack.id == StackId::NONE {
            count_loss(Loss::UserStackFailed);
            return None;
        }
        stack.introduce(tgid).then_some(stack.id)
    });
    let stack = match introduced {
        Some(Some(stack)) => stack.0,
        Some(None) => return,
        None => return count_loss(Loss::NestedIo),
    };
    let kinds = [
        (chosen.kind, chosen.bytes),
        (IoKind::DeviceRead as u32, chosen.read),
        (IoKind::DeviceWritten as u32, chosen.written),
    ];
    for (kind, bytes) in kinds {
        if bytes > 0 {
            add_io(thread, stack, kind, tgid, bytes);
        }
    }
}

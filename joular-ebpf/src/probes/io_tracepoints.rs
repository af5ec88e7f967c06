//! Sees bytes where the kernel lets no program be put on its functions: those of sockets by two tracepoints (Linux 6.3),
//! those of files at the end of system calls. See `io`.
//!
//! At the end of a system call the file is looked up by its number once more. Another thread may have closed it or opened
//! another one meanwhile, and then the other one decides whether the bytes count.

use aya_ebpf::{macros::btf_tracepoint, programs::BtfTracePointContext};
use joular_ebpf::abi::IoKind;

use crate::{
    io::{
        count_io,
        kernel::{Socket, is_regular, read},
        moved, received, sent,
    },
    maps::{FDTABLE_FD, FDTABLE_MAX, FILE_INODE, FILES_FDTABLE, INODE_MODE, TASK_FILES},
    task::Task,
};

/// `sock_send_length(struct sock *, int returned, int flags)`.
#[btf_tracepoint(function = "sock_send_length")]
pub fn io_sock_send_length(context: BtfTracePointContext) -> i32 {
    let socket = Socket(context.arg(0));
    if socket.is_counted() { sent(socket, 0, context.arg(1)) } else { 0 }
}

/// `sock_recv_length(struct sock *, int returned, int flags)`.
#[btf_tracepoint(function = "sock_recv_length")]
pub fn io_sock_recv_length(context: BtfTracePointContext) -> i32 {
    let socket = Socket(context.arg(0));
    if socket.is_counted() { received(socket, 0, context.arg(2), context.arg(1)) } else { 0 }
}

/// `sys_exit(struct pt_regs *, long returned)`.
#[btf_tracepoint(function = "sys_exit")]
pub fn io_sys_exit(context: BtfTracePointContext) -> i32 {
    let Some(files) = arch::files(context.arg(0)) else { return 0 };
    let task = Task::current();
    if arch::is_of_32_bits(task, context.arg(0)) { 0 } else { call_ended(task, files, context.arg(1)) }
}

/// Numbers of the files that a system call reads from and writes to.
type Files = (Option<u64>, Option<u64>);

#[inline(always)]
fn call_ended(task: Task, (from, to): Files, returned: i64) -> i32 {
    let is_counted = |file: Option<u64>| returned > 0 && file.is_some_and(|number| is_regular_file(task, number));
    let is_read = is_counted(from);
    if is_read {
        moved(IoKind::Read, returned);
    }
    if is_counted(to) {
        moved(IoKind::Written, returned);
    } else if !is_read {
        // Whatever it was: the thread is looked at.
        count_io(0, 0);
    }
    0
}

/// Whether the thread has a regular file open under this number.
#[inline(always)]
fn is_regular_file(task: Task, number: u64) -> bool {
    let mode = || {
        let files: u64 = task.read(TASK_FILES.load());
        let table: u64 = read(files, FILES_FDTABLE.load())?;
        if number >= read::<u32>(table, FDTABLE_MAX.load())?.into() {
            return None;
        }
        let entries: u64 = read(table, FDTABLE_FD.load())?;
        let file: u64 = read(entries.wrapping_add(number.wrapping_mul(8)), 0)?;
        let inode: u64 = read(file, FILE_INODE.load())?;
        read::<u16>(inode, INODE_MODE.load())
    };
    mode().is_some_and(is_regular)
}

#[cfg(not(bpf_target_arch = "aarch64"))]
mod arch {
    use aya_ebpf::bindings::pt_regs;

    use super::Files;
    use crate::{maps::TASK_STATUS, task::Task};

    /// `thread_info::status`: a system call of 32-bit code, whose numbers are others.
    const TS_COMPAT: u32 = 0x2;

    /// `None`: it is a call that moves no bytes.
    #[inline(always)]
    pub fn files(registers: *const pt_regs) -> Option<Files> {
        // SAFETY: the verifier knows the type and makes each load one with an exception table entry.
        let (number, first, second, third) =
            unsafe { ((*registers).orig_rax, (*registers).rdi, (*registers).rsi, (*registers).rdx) };
        match number {
            // read, pread64, readv, preadv, preadv2
            0 | 17 | 19 | 295 | 327 => Some((Some(first), None)),
            // write, pwrite64, writev, pwritev, pwritev2
            1 | 18 | 20 | 296 | 328 => Some((None, Some(first))),
            // sendfile
            40 => Some((Some(second), Some(first))),
            // splice, copy_file_range
            275 | 326 => Some((Some(first), Some(third))),
            _ => None,
        }
    }

    #[inline(always)]
    pub fn is_of_32_bits(task: Task, _: *const pt_regs) -> bool {
        task.read::<u32>(TASK_STATUS.load()) & TS_COMPAT != 0
    }
}

#[cfg(bpf_target_arch = "aarch64")]
mod arch {
    use super::Files;
    use crate::{task::Task, unwind::PtRegs};

    /// `None`: it is a call that moves no bytes. Numbers: include/uapi/asm-generic/unistd.h.
    #[inline(always)]
    pub fn files(registers: *const PtRegs) -> Option<Files> {
        // SAFETY: the verifier knows the type and makes each load one with an exception table entry.
        let (number, first, second, third) = unsafe {
            ((*registers).syscallno, (*registers).orig_x0, (*registers).user.regs[1], (*registers).user.regs[2])
        };
        match number {
            // read, readv, pread64, preadv, preadv2
            63 | 65 | 67 | 69 | 286 => Some((Some(first), None)),
            // write, writev, pwrite64, pwritev, pwritev2
            64 | 66 | 68 | 70 | 287 => Some((None, Some(first))),
            // sendfile
            71 => Some((Some(second), Some(first))),
            // splice, copy_file_range
            76 | 285 => Some((Some(first), Some(third))),
            _ => None,
        }
    }

    #[inline(always)]
    pub fn is_of_32_bits(_: Task, registers: *const PtRegs) -> bool {
        // SAFETY: as above.
        PtRegs::is_of_32_bits(unsafe { (*registers).user.pstate })
    }
}

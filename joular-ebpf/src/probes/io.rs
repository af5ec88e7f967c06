//! Sees bytes that pass through sockets of IP and through regular files: at the end of the kernel's functions that move
//! them, by what those return. See `io`.
//!
//! Each function is chosen so that a byte passes through one of them only. Reads and writes of sockets, whatever the
//! system call, end in the functions of their protocols, and those of files in `vfs_…`; what sendfile(2), splice(2) and
//! copy_file_range(2) move between a file and a pipe passes through `splice_…`.

use aya_ebpf::{macros::fexit, programs::FExitContext};
use joular_ebpf::abi::IoKind;

use crate::{
    io::{
        count_io,
        kernel::{Socket, is_regular},
        moved, received, sent,
    },
    maps::{FILE_INODE, INODE_MODE},
};

/// `tcp_sendmsg(struct sock *, struct msghdr *, size_t)`.
#[fexit]
pub fn io_tcp_sendmsg(context: FExitContext) -> i32 {
    sent(Socket(context.arg(0)), 0, context.arg(3))
}

/// `tcp_sendpage(struct sock *, struct page *, int, size_t, int)`: what sendfile(2) sends before Linux 6.5.
#[fexit]
pub fn io_tcp_sendpage(context: FExitContext) -> i32 {
    sent(Socket(context.arg(0)), 0, context.arg(5))
}

/// `udp_sendmsg(struct sock *, struct msghdr *, size_t)`. For a socket of version 6, `udpv6_sendmsg` called it.
#[fexit]
pub fn io_udp_sendmsg(context: FExitContext) -> i32 {
    let socket = Socket(context.arg(0));
    if socket.is_v6() { 0 } else { sent(socket, context.arg(1), context.arg(3)) }
}

/// `udpv6_sendmsg(struct sock *, struct msghdr *, size_t)`.
#[fexit]
pub fn io_udpv6_sendmsg(context: FExitContext) -> i32 {
    sent(Socket(context.arg(0)), context.arg(1), context.arg(3))
}

/// `tcp_recvmsg(struct sock *, struct msghdr *, size_t, int flags, int *)`.
#[fexit]
pub fn io_tcp_recvmsg(context: FExitContext) -> i32 {
    received(Socket(context.arg(0)), 0, context.arg(3), context.arg(5))
}

/// `tcp_recvmsg(struct sock *, struct msghdr *, size_t, int flags)`, of Linux 7.2.
#[fexit]
pub fn io_tcp_recvmsg_4(context: FExitContext) -> i32 {
    received(Socket(context.arg(0)), 0, context.arg(3), context.arg(4))
}

/// `tcp_recvmsg(struct sock *, struct msghdr *, size_t, int nonblock, int flags, int *)`, before Linux 5.19.
#[fexit]
pub fn io_tcp_recvmsg_6(context: FExitContext) -> i32 {
    received(Socket(context.arg(0)), 0, context.arg(4), context.arg(6))
}

/// `udp_recvmsg` and `udpv6_recvmsg` have the arguments of `tcp_recvmsg`.
#[fexit]
pub fn io_udp_recvmsg(context: FExitContext) -> i32 {
    received(Socket(context.arg(0)), context.arg(1), context.arg(3), context.arg(5))
}

#[fexit]
pub fn io_udp_recvmsg_4(context: FExitContext) -> i32 {
    received(Socket(context.arg(0)), context.arg(1), context.arg(3), context.arg(4))
}

#[fexit]
pub fn io_udp_recvmsg_6(context: FExitContext) -> i32 {
    received(Socket(context.arg(0)), context.arg(1), context.arg(4), context.arg(6))
}

#[fexit]
pub fn io_udpv6_recvmsg(context: FExitContext) -> i32 {
    received(Socket(context.arg(0)), context.arg(1), context.arg(3), context.arg(5))
}

#[fexit]
pub fn io_udpv6_recvmsg_4(context: FExitContext) -> i32 {
    received(Socket(context.arg(0)), context.arg(1), context.arg(3), context.arg(4))
}

#[fexit]
pub fn io_udpv6_recvmsg_6(context: FExitContext) -> i32 {
    received(Socket(context.arg(0)), context.arg(1), context.arg(4), context.arg(6))
}

/// `vfs_read(struct file *, char *, size_t, loff_t *)`.
#[fexit]
pub fn io_vfs_read(context: FExitContext) -> i32 {
    of_file(IoKind::Read, context.arg(0), context.arg(4))
}

/// `vfs_write(struct file *, const char *, size_t, loff_t *)`.
#[fexit]
pub fn io_vfs_write(context: FExitContext) -> i32 {
    of_file(IoKind::Written, context.arg(0), context.arg(4))
}

/// `vfs_readv(struct file *, const struct iovec *, unsigned long, loff_t *, rwf_t)`.
#[fexit]
pub fn io_vfs_readv(context: FExitContext) -> i32 {
    of_file(IoKind::Read, context.arg(0), context.arg(5))
}

/// `vfs_writev(struct file *, const struct iovec *, unsigned long, loff_t *, rwf_t)`.
#[fexit]
pub fn io_vfs_writev(context: FExitContext) -> i32 {
    of_file(IoKind::Written, context.arg(0), context.arg(5))
}

/// `splice_direct_to_actor(struct file *in, struct splice_desc *, splice_direct_actor *)`: from a file to a file or socket.
#[fexit]
pub fn io_splice_direct_to_actor(context: FExitContext) -> i32 {
    of_file(IoKind::Read, context.arg(0), context.arg(3))
}

/// `splice_file_to_pipe(struct file *in, struct pipe_inode_info *, loff_t *, size_t, unsigned int)`.
#[fexit]
pub fn io_splice_file_to_pipe(context: FExitContext) -> i32 {
    of_file(IoKind::Read, context.arg(0), context.arg(5))
}

/// `iter_file_splice_write(struct pipe_inode_info *, struct file *out, loff_t *, size_t, unsigned int)`.
#[fexit]
pub fn io_iter_file_splice_write(context: FExitContext) -> i32 {
    of_file(IoKind::Written, context.arg(1), context.arg(5))
}

/// `filemap_fault(struct vm_fault *)`: a page of a mapped file was wanted, and may have come from a device.
#[fexit]
pub fn io_filemap_fault(_: FExitContext) -> i32 {
    count_io(0, 0);
    0
}

#[inline(always)]
fn of_file(kind: IoKind, file: *const u8, returned: i64) -> i32 {
    let inode: *const u8 = member(file, FILE_INODE.load());
    // Whatever it was: the thread is looked at.
    moved(kind, if is_regular(member(inode, INODE_MODE.load())) { returned } else { 0 })
}

/// A member of a structure that the kernel vouches for.
#[inline(always)]
fn member<T: Copy>(structure: *const u8, offset: u32) -> T {
    // SAFETY: the pointer is one of BTF's and the offset that of a member of this type; the verifier checks both and
    // turns the load into one with an exception table entry.
    unsafe { core::ptr::read_volatile(structure.add(offset as usize).cast::<T>()) }
}

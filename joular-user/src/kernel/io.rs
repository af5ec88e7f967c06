//! Follows what threads move through sockets and files: programs at the end of the kernel's functions that do so, and
//! what they counted.
//!
//! Kernels differ in which of these functions they have. What a kernel lacks is not counted, and [`Programs::missing`]
//! says which that is. A kernel that lets no program be put on its functions, because it was built or locked down so, has
//! tracepoints instead.

use std::{
    fs::{self, File},
    io::BufReader,
    ops::ControlFlow,
    os::fd::{AsFd as _, AsRawFd as _, RawFd},
};

use aya::{
    Btf, Ebpf,
    maps::{Array, MapData},
    programs::{BtfTracePoint, FExit, ProgramError},
};
use joular_data::{
    events::{IoKind, IoSample, ThreadIo},
    model::units::{Pid, Tid},
};
use joular_ebpf::abi::{IoKey, IoSlot, ThreadKey};

use super::{
    bank_maps::{BankMaps, Capacity},
    banks::{map_error, take},
    btf::{BtfError, KernelTypes},
    error::KernelError,
    kallsyms,
    programs::typed,
    roots::KernelRoots,
};

/// Programs: name in the object, function of the kernel, and how many arguments that has where the program fits.
const PROGRAMS: [(&str, &str, usize); 21] = [
    ("io_tcp_sendmsg", "tcp_sendmsg", 3),
    ("io_tcp_sendpage", SENDPAGE, 5),
    ("io_udp_sendmsg", "udp_sendmsg", 3),
    ("io_udpv6_sendmsg", "udpv6_sendmsg", 3),
    ("io_tcp_recvmsg", "tcp_recvmsg", 5),
    ("io_tcp_recvmsg_4", "tcp_recvmsg", 4),
    ("io_tcp_recvmsg_6", "tcp_recvmsg", 6),
    ("io_udp_recvmsg", "udp_recvmsg", 5),
    ("io_udp_recvmsg_4", "udp_recvmsg", 4),
    ("io_udp_recvmsg_6", "udp_recvmsg", 6),
    ("io_udpv6_recvmsg", "udpv6_recvmsg", 5),
    ("io_udpv6_recvmsg_4", "udpv6_recvmsg", 4),
    ("io_udpv6_recvmsg_6", "udpv6_recvmsg", 6),
    ("io_vfs_read", "vfs_read", 4),
    ("io_vfs_write", "vfs_write", 4),
    ("io_vfs_readv", "vfs_readv", 5),
    ("io_vfs_writev", "vfs_writev", 5),
    ("io_splice_direct_to_actor", "splice_direct_to_actor", 3),
    ("io_splice_file_to_pipe", "splice_file_to_pipe", 5),
    ("io_iter_file_splice_write", "iter_file_splice_write", 5),
    ("io_filemap_fault", "filemap_fault", 1),
];

/// A function that later kernels have no need of: they send pages as they send anything else.
const SENDPAGE: &str = "tcp_sendpage";

/// What the kernel says where it has no way to put programs on functions; not for users, so it has no name in libc.
const ENOTSUPP: i32 = 524;

/// Where no program can be put on functions: name in the object, and tracepoint.
const TRACEPOINTS: [(&str, &str); 3] = [
    ("io_sock_send_length", "sock_send_length"),
    ("io_sock_recv_length", "sock_recv_length"),
    ("io_sys_exit", "sys_exit"),
];

/// Members that are read: global in the object, struct, member.
const OFFSETS: [(&str, &str, &str); 13] = [
    ("SOCK_PROTOCOL", "sock", "sk_protocol"),
    ("SOCK_FAMILY", "sock_common", "skc_family"),
    ("SOCK_PEER", "sock_common", "skc_daddr"),
    ("SOCK_OWN", "sock_common", "skc_rcv_saddr"),
    ("SOCK_PEER_V6", "sock_common", "skc_v6_daddr"),
    ("SOCK_OWN_V6", "sock_common", "skc_v6_rcv_saddr"),
    ("MESSAGE_NAME", "msghdr", "msg_name"),
    ("FILE_INODE", "file", "f_inode"),
    ("INODE_MODE", "inode", "i_mode"),
    ("TASK_FILES", "task_struct", "files"),
    ("FILES_FDTABLE", "files_struct", "fdt"),
    ("FDTABLE_MAX", "fdtable", "max_fds"),
    ("FDTABLE_FD", "fdtable", "fd"),
];

/// Bytes that a sample stands for at least, to begin with.
pub const FIRST_GAP_BYTES: u32 = 64 << 10;
/// Of samples.
const CAPACITY: Capacity = Capacity { first: 1 << 13, most: 1 << 18 };

/// What has to be known of a kernel.
#[derive(Debug)]
pub(super) struct Layout {
    /// Globals and their values.
    pub offsets: Vec<(&'static str, u32)>,
    pub counts_devices: bool,
    /// Programs and functions that fit.
    programs: Vec<(&'static str, &'static str)>,
}

/// The functions that the kernel may have.
pub(super) fn functions() -> impl Iterator<Item = &'static str> {
    PROGRAMS.into_iter().map(|(_, function, _)| function)
}

impl Layout {
    pub(super) fn of(types: &KernelTypes<'_>) -> Result<Self, BtfError> {
        let member = |(global, structure, member): (&'static str, &str, &str)| {
            match types.member_offset(structure, member) {
                // A kernel without IP of version 6 has no sockets of it either.
                Err(BtfError::NoMember { .. }) if global.ends_with("_V6") => Ok((global, 0)),
                found => Ok((global, found?)),
            }
        };
        let mut offsets = OFFSETS.into_iter().map(member).collect::<Result<Vec<_>, BtfError>>()?;
        if cfg!(target_arch = "x86_64") {
            let information = types.member_offset("task_struct", "thread_info")?;
            offsets.push(("TASK_STATUS", information + types.member_offset("thread_info", "status")?));
        }
        let counts = types.member_offset("task_struct", "ioac").ok();
        let of_device = |member| Some(counts? + types.member_offset("task_io_accounting", member).ok()?);
        let devices = of_device("read_bytes").zip(of_device("write_bytes"));
        if let Some((read, written)) = devices {
            offsets.extend([("TASK_DEVICE_READ", read), ("TASK_DEVICE_WRITTEN", written)]);
        }
        let arguments = types.argument_counts(&functions().collect::<Vec<_>>());
        let fits = |(_, function, count): &(_, &str, usize)| arguments.get(function) == Some(count);
        let programs = PROGRAMS.into_iter().filter(fits).map(|(program, function, _)| (program, function)).collect();
        Ok(Self { offsets, counts_devices: devices.is_some(), programs })
    }
}

/// The programs that this kernel can have.
#[derive(Debug)]
pub struct Programs {
    /// Those that are loaded, and what they are on.
    on: Vec<(&'static str, &'static str)>,
    is_at_tracepoints: bool,
    counts_devices: bool,
    descriptors: Vec<RawFd>,
}

impl Programs {
    pub(super) fn load(ebpf: &mut Ebpf, layout: &Layout, btf: &Btf) -> Result<Self, KernelError> {
        let at_functions = at_functions(ebpf, layout, btf)?;
        let is_at_tracepoints = at_functions.is_none();
        let on = at_functions.map_or_else(|| at_tracepoints(ebpf, btf), Ok)?;
        let descriptor = |(program, _): &(&str, _)| Some(ebpf.program(program)?.fd().ok()?.as_fd().as_raw_fd());
        let descriptors = on.iter().filter_map(descriptor).collect();
        Ok(Self { on, is_at_tracepoints, counts_devices: layout.counts_devices, descriptors })
    }

    pub(super) fn attach(&self, ebpf: &mut Ebpf) -> Result<(), KernelError> {
        for (program, _) in &self.on {
            let attached = if self.is_at_tracepoints {
                typed::<BtfTracePoint>(ebpf, program)?.attach().map(drop)
            } else {
                typed::<FExit>(ebpf, program)?.attach().map(drop)
            };
            attached.map_err(|source| failed("attaching", program, source))?;
        }
        Ok(())
    }

    /// Whether bytes are counted at tracepoints, because no program can be put on functions.
    pub const fn is_at_tracepoints(&self) -> bool {
        self.is_at_tracepoints
    }

    /// Whether the kernel counts what threads read from devices and write to them.
    pub const fn counts_devices(&self) -> bool {
        self.counts_devices
    }

    /// What is not counted: bytes of functions or tracepoints, or of devices.
    pub fn missing(&self) -> Vec<&'static str> {
        let mut wanted: Vec<&'static str> = if self.is_at_tracepoints {
            TRACEPOINTS.map(|(_, tracepoint)| tracepoint).to_vec()
        } else {
            functions().filter(|function| *function != SENDPAGE).collect()
        };
        wanted.dedup();
        wanted.retain(|wanted| self.on.iter().all(|(_, seen)| seen != wanted));
        wanted.extend((!self.counts_devices).then_some("devices (CONFIG_TASK_IO_ACCOUNTING)"));
        wanted
    }

    /// How often a program did not run until now, because it was under way on the same CPU for a thread that had been
    /// put off.
    pub fn missed(&self) -> u64 {
        let of = |descriptor: &RawFd| {
            let text = fs::read_to_string(format!("/proc/self/fdinfo/{descriptor}")).ok()?;
            text.lines().find_map(|line| line.strip_prefix("recursion_misses:")?.trim().parse::<u64>().ok())
        };
        self.descriptors.iter().filter_map(of).sum()
    }
}

type Loaded = Vec<(&'static str, &'static str)>;

/// `None`: the kernel lets no program be put on functions.
fn at_functions(ebpf: &mut Ebpf, layout: &Layout, btf: &Btf) -> Result<Option<Loaded>, KernelError> {
    if !can_attach(&KernelRoots::default()) {
        return Ok(None);
    }
    let mut loaded = Vec::new();
    for (program, function) in &layout.programs {
        match typed::<FExit>(ebpf, program)?.load(function, btf) {
            Ok(()) => loaded.push((*program, *function)),
            Err(source) => match system_error(&source) {
                // In the kernel's types, and not among its functions: it has become a part of others.
                Some(libc::ENOENT) => {}
                Some(libc::EPERM | ENOTSUPP) if loaded.is_empty() => return Ok(None),
                _ => return Err(failed("loading", program, source)),
            },
        }
    }
    Ok(Some(loaded))
}

/// Whether programs for functions can be attached. Kernels of aarch64 load them before Linux 6.4, and refuse only to attach
/// them: they lack this function, by which that is done.
fn can_attach(roots: &KernelRoots) -> bool {
    if !cfg!(target_arch = "aarch64") {
        return true;
    }
    let mut is_there = false;
    let symbols = File::open(roots.proc.join("kallsyms")).map(BufReader::new);
    let read = symbols.and_then(|symbols| {
        kallsyms::each(symbols, |symbol| {
            is_there = symbol.name == b"register_ftrace_direct";
            if is_there { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        })
    });
    is_there || read.is_err()
}

fn at_tracepoints(ebpf: &mut Ebpf, btf: &Btf) -> Result<Loaded, KernelError> {
    let mut loaded = Vec::new();
    for (program, tracepoint) in TRACEPOINTS {
        match typed::<BtfTracePoint>(ebpf, program)?.load(tracepoint, btf) {
            Ok(()) => loaded.push((program, tracepoint)),
            Err(ProgramError::Btf(_)) => {}
            Err(source) => return Err(failed("loading", program, source)),
        }
    }
    Ok(loaded)
}

fn failed(operation: &'static str, program: &'static str, source: ProgramError) -> KernelError {
    KernelError::Program { operation, program, source: Box::new(source) }
}

/// What the kernel said.
fn system_error(error: &ProgramError) -> Option<i32> {
    match error {
        ProgramError::LoadError { io_error, .. } => io_error.raw_os_error(),
        ProgramError::SyscallError(error) => error.io_error.raw_os_error(),
        _ => None,
    }
}

/// The maps of the programs.
pub(super) struct Io {
    /// What threads moved: they have their places, however many samples there are.
    threads: BankMaps<IoKey, IoSlot>,
    samples: BankMaps<IoKey, IoSlot>,
    gap: Array<MapData, u32>,
}

impl Io {
    pub(super) fn take(ebpf: &mut Ebpf, threads: Capacity) -> Result<Self, KernelError> {
        let mut taken = Self {
            threads: BankMaps::new(ebpf, "IO_THREADS", threads)?,
            samples: BankMaps::new(ebpf, "IO", CAPACITY)?,
            gap: take(ebpf, "IO_GAP")?,
        };
        taken.set_gap(FIRST_GAP_BYTES)?;
        Ok(taken)
    }

    pub(super) fn set_gap(&mut self, bytes: u32) -> Result<(), KernelError> {
        self.gap.set(0, bytes, 0).map_err(|source| map_error("writing", "IO_GAP", source))
    }

    /// Takes what was counted in a bank that no program is meant to write to any more.
    pub(super) fn drain(&mut self, bank: u32) -> Result<Drained, KernelError> {
        let mut drained = Drained::default();
        self.threads.drain(bank, |key, slot| drained.take(key, slot))?;
        self.samples.drain(bank, |key, slot| drained.take(key, slot))?;
        drained.threads.sort_unstable_by_key(|thread| (thread.pid, thread.thread_key, thread.kind));
        drained.samples.sort_unstable_by_key(|sample| (sample.pid, sample.thread_key, sample.kind, sample.stack));
        Ok(drained)
    }
}

/// What the programs counted in a window.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Drained {
    pub threads: Vec<ThreadIo>,
    pub samples: Vec<IoSample>,
}

impl Drained {
    fn take(&mut self, key: IoKey, slot: IoSlot) {
        let Some(kind) = IoKind::decode(key.kind) else { return };
        let (tid, pid, thread_key) = (Tid(ThreadKey(key.thread).tid()), Pid(slot.tgid), key.thread);
        let (bytes, count) = (slot.bytes, u64::from(slot.count));
        match key.stack {
            0 => self.threads.push(ThreadIo { tid, pid, thread_key, kind, bytes, calls: count }),
            stack => self.samples.push(IoSample { tid, pid, thread_key, kind, stack, bytes, samples: count }),
        }
    }
}

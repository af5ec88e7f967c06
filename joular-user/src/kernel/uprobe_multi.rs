//! Puts probes into programs by links of their own kind (`uprobe_multi`, Linux 6.6), which aya does not do yet.
//!
//! Elsewhere a probe is a perf event. The kernel closes those one after the other, under a lock for all of them, and
//! waits each time until no CPU can be in the probe: half a second for a JVM. Links of this kind wait side by side.
//!
//! The programs are those of the object that aya has loaded, with the maps that it has made.

use std::{
    collections::HashMap,
    ffi::CString,
    io,
    os::{
        fd::{AsFd as _, AsRawFd as _, FromRawFd as _, OwnedFd, RawFd},
        unix::ffi::OsStrExt as _,
    },
    path::Path,
};

use aya::{
    Ebpf,
    maps::{Map, MapData},
};
use aya_obj::{Function, Object};
use joular_data::model::units::Pid;

/// Commands of bpf(2), a type of programs, and a type of attachment (include/uapi/linux/bpf.h).
const BPF_PROG_LOAD: libc::c_long = 5;
const BPF_BTF_LOAD: libc::c_long = 18;
const BPF_LINK_CREATE: libc::c_long = 28;
const BPF_PROG_TYPE_KPROBE: u32 = 2;
const BPF_TRACE_UPROBE_MULTI: u32 = 48;

/// The part of `union bpf_attr` that is for types.
#[repr(C)]
#[derive(Debug, Default)]
struct TypesAttr {
    types: u64,
    log: u64,
    types_size: u32,
    log_size: u32,
    log_level: u32,
    /// The union has words of 8 bytes.
    padding: u32,
}

/// The part that is for programs.
#[repr(C)]
#[derive(Debug, Default)]
struct ProgramAttr {
    program_type: u32,
    instruction_count: u32,
    instructions: u64,
    license: u64,
    log_level: u32,
    log_size: u32,
    log: u64,
    kernel_version: u32,
    flags: u32,
    name: [u8; 16],
    interface: u32,
    expected_attach_type: u32,
    types: u32,
    function_info_size: u32,
    function_info: u64,
    function_info_count: u32,
    line_info_size: u32,
}

/// The part that is for links of this kind.
#[repr(C)]
#[derive(Debug, Default)]
struct LinkAttr {
    program: u32,
    target: u32,
    attach_type: u32,
    flags: u32,
    path: u64,
    offsets: u64,
    reference_counts: u64,
    cookies: u64,
    offset_count: u32,
    probe_flags: u32,
    pid: u32,
    padding: u32,
}

/// Programs that can be attached so, by name.
#[derive(Debug)]
pub(super) struct MultiPrograms(HashMap<&'static str, OwnedFd>);

impl MultiPrograms {
    /// Loads programs of the object that `ebpf` was made of. `None`: this kernel does not attach them so, or not to one
    /// process.
    pub(super) fn load(ebpf: &Ebpf, object: &[u8], names: impl Iterator<Item = &'static str>) -> Option<Self> {
        let object = relocated(ebpf, object)?;
        let types = load_types(&object)?;
        let load = |name| {
            let program = object.programs.get(name)?;
            let function = object.functions.get(&program.function_key())?;
            Some((name, load_program(name, function, &program.license, &types).ok()?))
        };
        let programs: HashMap<_, _> = names.map(load).collect::<Option<_>>()?;
        let filters = programs.values().next().is_some_and(filters_by_process);
        filters.then_some(Self(programs))
    }

    /// Has a program run where a process comes to an offset of a file. The probe is open as long as what this returns.
    ///
    /// # Errors
    /// What the kernel says: `ESRCH` if the process has ended.
    pub(super) fn attach(&self, name: &str, pid: Pid, file: &Path, offset: u64) -> io::Result<OwnedFd> {
        let program = self.0.get(name).ok_or(io::ErrorKind::NotFound)?;
        link(program, file, offset, pid.0)
    }
}

/// The object with its programs whole: maps have their descriptors in them, and functions that they call are part of them.
fn relocated(ebpf: &Ebpf, object: &[u8]) -> Option<Object> {
    let mut object = Object::parse(object).ok()?;
    object.fixup_and_sanitize_btf(aya::features().btf()?).ok()?;
    let sections = object.functions.keys().map(|(section, _)| *section).collect();
    let maps: Vec<_> = object.maps.drain().collect();
    let descriptors: Vec<RawFd> =
        maps.iter().map(|(name, _)| Some(data(ebpf.map(name)?)?.fd().as_fd().as_raw_fd())).collect::<Option<_>>()?;
    let maps = maps.iter().zip(descriptors).map(|((name, map), descriptor)| (name.as_str(), descriptor, map));
    object.relocate_maps(maps, &sections).ok()?;
    object.relocate_calls(&sections).ok()?;
    object.sanitize_functions(aya::features());
    Some(object)
}

/// Of the kinds of maps that our programs have.
const fn data(map: &Map) -> Option<&MapData> {
    match map {
        Map::Array(data)
        | Map::ArrayOfMaps(data)
        | Map::HashMap(data)
        | Map::LruHashMap(data)
        | Map::PerCpuArray(data)
        | Map::PerfEventArray(data)
        | Map::RingBuf(data)
        | Map::Unsupported(data) => Some(data),
        _ => None,
    }
}

/// The verifier looks at a global function once, and types say which functions those are.
fn load_types(object: &Object) -> Option<OwnedFd> {
    let types = object.btf.as_ref()?.to_bytes();
    let attr = TypesAttr {
        types: types.as_ptr() as u64,
        types_size: u32::try_from(types.len()).ok()?,
        ..TypesAttr::default()
    };
    // SAFETY: the command reads `types`, which lives until it returns, and makes a descriptor.
    unsafe { new_descriptor(BPF_BTF_LOAD, &attr) }.ok()
}

fn load_program(name: &str, function: &Function, license: &CString, types: &OwnedFd) -> io::Result<OwnedFd> {
    let count = |count: usize| u32::try_from(count).map_err(|_| io::Error::from_raw_os_error(libc::E2BIG));
    let function_info = function.func_info.func_info_bytes();
    let mut attr = ProgramAttr {
        program_type: BPF_PROG_TYPE_KPROBE,
        expected_attach_type: BPF_TRACE_UPROBE_MULTI,
        instructions: function.instructions.as_ptr() as u64,
        instruction_count: count(function.instructions.len())?,
        license: license.as_ptr() as u64,
        types: descriptor(types)?,
        function_info: function_info.as_ptr() as u64,
        function_info_size: count(function.func_info_rec_size)?,
        function_info_count: count(function.func_info.len())?,
        ..ProgramAttr::default()
    };
    // The last byte ends it.
    attr.name.iter_mut().take(15).zip(name.bytes()).for_each(|(kept, byte)| *kept = byte);
    // SAFETY: the command reads instructions, licence and function info, which live until it returns, and makes a
    // descriptor.
    unsafe { new_descriptor(BPF_PROG_LOAD, &attr) }
}

/// Whether the kernel has such links and restricts one to a process. Before a correction in Linux 6.10, which some older
/// versions have too, it restricted one to a thread. A corrected kernel refuses an impossible process with `EINVAL`;
/// others do not look at it, and complain of the path (`bpf_uprobe_multi_link_attach` in kernel/trace/bpf_trace.c).
fn filters_by_process(program: &OwnedFd) -> bool {
    let code = |pid: u32| link(program, Path::new("/"), 0, pid).err().and_then(|error| error.raw_os_error());
    code(0) == Some(libc::EBADF) && code(u32::MAX) == Some(libc::EINVAL)
}

fn link(program: &OwnedFd, file: &Path, offset: u64, pid: u32) -> io::Result<OwnedFd> {
    let path = CString::new(file.as_os_str().as_bytes())?;
    let attr = LinkAttr {
        program: descriptor(program)?,
        attach_type: BPF_TRACE_UPROBE_MULTI,
        path: path.as_ptr() as u64,
        offsets: (&raw const offset) as u64,
        offset_count: 1,
        pid,
        ..LinkAttr::default()
    };
    // SAFETY: the command reads the path and the offset, which live until it returns, and makes a descriptor.
    unsafe { new_descriptor(BPF_LINK_CREATE, &attr) }
}

fn descriptor(of: &OwnedFd) -> io::Result<u32> {
    u32::try_from(of.as_raw_fd()).map_err(|_| io::Error::from_raw_os_error(libc::EBADF))
}

/// # Safety
/// `attr` is the command's part of `union bpf_attr`, what it points to is as the command expects, and the command makes a
/// descriptor.
unsafe fn new_descriptor<A>(command: libc::c_long, attr: &A) -> io::Result<OwnedFd> {
    // SAFETY: the caller's, for the command; the size is that of `attr`.
    let made = unsafe { libc::syscall(libc::SYS_bpf, command, &raw const *attr, size_of::<A>()) };
    let made = RawFd::try_from(made).ok().filter(|made| *made >= 0).ok_or_else(io::Error::last_os_error)?;
    // SAFETY: it was just made, and nobody else has it.
    Ok(unsafe { OwnedFd::from_raw_fd(made) })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Places of members as in include/uapi/linux/bpf.h.
    #[test]
    fn parts_of_the_union_have_the_kernels_layout() {
        use std::mem::offset_of;
        let places = [
            offset_of!(TypesAttr, types_size),
            offset_of!(ProgramAttr, name),
            offset_of!(ProgramAttr, expected_attach_type),
            offset_of!(ProgramAttr, function_info),
            offset_of!(ProgramAttr, line_info_size),
            offset_of!(LinkAttr, path),
            offset_of!(LinkAttr, offset_count),
            offset_of!(LinkAttr, pid),
        ];
        assert_eq!(places, [16, 48, 68, 80, 92, 16, 48, 56]);
    }
}

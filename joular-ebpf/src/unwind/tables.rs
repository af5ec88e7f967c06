//! Walks user stacks by the tables that user space keeps for a process: through its files' unwind
//! rows and its JVM's code cache. See `joular_ebpf::walk`.
//!
//! A step is a global function, which the verifier checks once, by itself, instead of once for each
//! turn of the loop. Therefore the walk under way is kept in a map.

use aya_ebpf::{
    helpers::{
        bpf_probe_read_user,
        generated::{bpf_probe_read_kernel as probe_read_kernel, bpf_probe_read_user as probe_read_user},
    },
    maps::PerCpuArray,
};
use joular_ebpf::{
    abi::{
        CodeMapping, CompiledFrame, JvmUnwind, Loss, ProcessUnwind, REMEMBERED, Remembered, StackId, UnwindRow,
        remembered_at,
    },
    walk::{
        BlockWords, End, Memory, Step, Tables, Walk,
        arch::{Arch, Native},
        dispatch::{self, Parts, Walker},
        is_return_address, push_compiled_method,
    },
};

use super::{From, arch, hinted};
use crate::{
    maps::{
        CODE_MAPPINGS, COMPILER_THREADS, JVMS, PROCESSES, REMEMBERED_FRAMES, REMEMBERED_ROWS, SECOND_WALK,
        TABLES_EPOCH, UNWIND_ROWS, WALK, WALK_UNDER_WAY, count_loss,
    },
    task::Task,
};

/// Room for a block of the code cache.
const BLOCK_BYTES: u32 = size_of::<BlockWords>() as u32;

/// Walks the stack of a process that can be walked by tables, else `None`. It then
/// stands in [`WALK`].
#[inline(always)]
pub fn walk(task: Task, tgid: u32) -> Option<StackId> {
    Some(walk_sample(task, tgid, PROCESSES.get_ptr(tgid)?))
}

/// A function of its own: see `probes::sample`.
#[inline(never)]
fn walk_sample(task: Task, tgid: u32, process: *const ProcessUnwind) -> StackId {
    let Some(walk) = current_walk() else { return StackId::NONE };
    // SAFETY: a live value of a preallocated map.
    walk.begin(arch::interrupted_registers(), unsafe { *process });
    let end = dispatch::to_the_end(&mut Programs);
    let Some(walk) = current_walk() else { return StackId::NONE };
    if walk.header.len == 0 {
        count_loss(Loss::UserStackFailed);
        return StackId::NONE;
    }
    if let (Some(jvm), Some(thread)) = (Maps.jvm(&walk.process), COMPILER_THREADS.get_ptr(task.tid())) {
        // SAFETY: a live map value.
        let thread = unsafe { &*thread };
        if thread.tgid == tgid {
            push_compiled_method(&CurrentProcess, jvm, thread, walk);
        }
    }
    walk.finish(tgid, end)
}

/// Walks a stack of the running thread from where it is said. [`StackId::NONE`]: it cannot be walked by tables. It then
/// stands in the second [`WALK`].
#[inline(always)]
pub fn walk_from(tgid: u32, from: From) -> StackId {
    let Some(process) = PROCESSES.get_ptr(tgid) else { return StackId::NONE };
    let Some(walk) = current_walk() else { return StackId::NONE };
    // SAFETY: a live value of a preallocated map.
    let process = unsafe { *process };
    let registers = arch::interrupted_registers();
    match from {
        From::KernelEntry => walk.begin(registers, process),
        From::CallerWithLeaf(leaf) => {
            if walk.begin_in_caller(&CurrentProcess, registers, process, leaf).is_err() {
                return StackId::NONE;
            }
        }
    }
    let end = dispatch::to_the_end(&mut Programs);
    current_walk()
        .map_or(StackId::NONE, |walk| if walk.header.len == 0 { StackId::NONE } else { walk.finish(tgid, end) })
}

/// This CPU's walk: each step is behind a global function.
struct Programs;

impl Walker for Programs {
    type Arch = Native;
    type Memory = CurrentProcess;
    type Tables = Maps;

    #[inline(always)]
    fn parts(&mut self) -> Option<Parts<'_, Native, CurrentProcess, Maps>> {
        Some(Parts { walk: current_walk()?, memory: &CurrentProcess, tables: &Maps })
    }

    #[inline(always)]
    fn steps(&mut self) -> u32 {
        walk_steps()
    }

    #[inline(always)]
    fn frames(&mut self) -> u32 {
        walk_step()
    }

    #[inline(always)]
    fn native(&mut self) -> u32 {
        walk_native()
    }

    #[inline(always)]
    fn interpreted(&mut self) -> u32 {
        walk_interpreted()
    }

    #[inline(always)]
    fn compiled(&mut self, kind: u32) -> u32 {
        walk_compiled(kind)
    }

    #[inline(always)]
    fn stub(&mut self, kind: u32) -> u32 {
        walk_stub(kind)
    }
}

#[unsafe(no_mangle)]
#[inline(never)]
pub extern "C" fn walk_steps() -> u32 {
    dispatch::steps(&mut Programs)
}

#[unsafe(no_mangle)]
#[inline(never)]
pub extern "C" fn walk_step() -> u32 {
    dispatch::frames(&mut Programs)
}

#[unsafe(no_mangle)]
#[inline(never)]
pub extern "C" fn walk_native() -> u32 {
    dispatch::native_frame(&mut Programs)
}

#[unsafe(no_mangle)]
#[inline(never)]
pub extern "C" fn walk_interpreted() -> u32 {
    dispatch::interpreted_frame(&mut Programs)
}

#[unsafe(no_mangle)]
#[inline(never)]
pub extern "C" fn walk_compiled(kind: u32) -> u32 {
    dispatch::compiled_frame(&mut Programs, kind)
}

#[unsafe(no_mangle)]
#[inline(never)]
pub extern "C" fn walk_stub(kind: u32) -> u32 {
    dispatch::stub_frame(&mut Programs, kind)
}

/// See [`Tables::is_return_address`].
#[unsafe(no_mangle)]
#[inline(never)]
pub extern "C" fn walk_is_return_address(pc: u64) -> u32 {
    let Some(walk) = current_walk() else { return 0 };
    let Some(jvm) = Maps.jvm(&walk.process) else { return 0 };
    u32::from(is_return_address(&CurrentProcess, &Maps, jvm, walk, pc))
}

#[inline(always)]
fn current_walk() -> Option<&'static mut Walk<Native>> {
    let walk = WALK.get_ptr_mut(walk_under_way())?;
    // SAFETY: this CPU's own, used by one program run at a time, and by one function
    // at a time: none holds it while it calls another that changes it.
    Some(unsafe { &mut *walk })
}

/// Which of its walks this CPU goes on with. Unless a program can be interrupted there is one, and the verifier removes
/// the look-up.
#[inline(always)]
pub fn walk_under_way() -> u32 {
    if SECOND_WALK.load() == 0 { 0 } else { WALK_UNDER_WAY.get(0).map_or(0, |index| *index) }
}

/// What each CPU remembers, for each of its walks.
type Memories<T> = PerCpuArray<[Remembered<T>; REMEMBERED]>;

/// What the walk under way remembers of an address.
#[inline(always)]
fn recall<T: Copy>(memories: &Memories<T>, process: &ProcessUnwind, address: u64) -> Option<T> {
    let known = memories.get(walk_under_way())?.get(remembered_at(address))?;
    let is_it = known.address == address
        && known.first_mapping == process.first_mapping
        && known.epoch == *TABLES_EPOCH.get(0)?;
    is_it.then_some(known.what)
}

#[inline(always)]
fn remember<T: Copy>(memories: &Memories<T>, process: &ProcessUnwind, address: u64, what: T) {
    let (Some(memory), Some(epoch)) = (memories.get_ptr_mut(walk_under_way()), TABLES_EPOCH.get(0)) else { return };
    // SAFETY: this CPU's own, used by one program run at a time.
    if let Some(place) = unsafe { &mut *memory }.get_mut(remembered_at(address)) {
        *place = Remembered { address, first_mapping: process.first_mapping, epoch: *epoch, what };
    }
}

/// The memory of the process that runs on this CPU.
struct CurrentProcess;

impl CurrentProcess {
    #[inline(always)]
    fn read<T: Copy>(address: u64) -> Result<T, End> {
        // SAFETY: the helper fails where nothing can be read, and `T` is made of integers.
        unsafe { bpf_probe_read_user(address as *const T) }.or_else(|_| hinted::read(address))
    }

    /// Reads that many bytes.
    ///
    /// # Safety
    /// There is room for them at `to`.
    #[inline(always)]
    unsafe fn read_to(to: *mut u64, bytes: u32, address: u64) -> Step {
        // SAFETY: the caller's. The helper fails where nothing can be read.
        if unsafe { probe_read_user(to.cast(), bytes, address as *const _) } == 0 {
            return Ok(());
        }
        let found = hinted::find(address, bytes)?;
        // SAFETY: as above; as many bytes are there.
        let failed = unsafe { probe_read_kernel(to.cast(), bytes, found.cast()) };
        if failed == 0 { Ok(()) } else { Err(End::UNREADABLE) }
    }
}

impl Memory for CurrentProcess {
    #[inline(always)]
    fn byte(&self, address: u64) -> Result<u8, End> {
        Self::read(address)
    }

    #[inline(always)]
    fn word(&self, address: u64) -> Result<u64, End> {
        Self::read(address)
    }

    #[inline(always)]
    fn pair(&self, address: u64) -> Result<[u64; 2], End> {
        Self::read(address)
    }

    #[inline(always)]
    fn frame(&self, address: u64, words: &mut [u64]) -> Step {
        // SAFETY: the buffer has that size.
        unsafe { Self::read_to(words.as_mut_ptr(), size_of_val(words) as u32, address) }
    }

    #[inline(always)]
    fn block(&self, address: u64, bytes: u32, words: &mut BlockWords) -> Step {
        let bytes = if bytes > BLOCK_BYTES { BLOCK_BYTES } else { bytes };
        // SAFETY: the buffer is at least as large.
        unsafe { Self::read_to(words.as_mut_ptr(), bytes, address) }
    }
}

/// The tables of user space.
struct Maps;

impl Tables for Maps {
    #[inline(always)]
    fn mapping(&self, index: u32) -> Option<&CodeMapping> {
        CODE_MAPPINGS.get(index)
    }

    #[inline(always)]
    fn row(&self, index: u32) -> Option<&UnwindRow> {
        UNWIND_ROWS.get(index)
    }

    #[inline(always)]
    fn jvm(&self, process: &ProcessUnwind) -> Option<&JvmUnwind> {
        JVMS.get(process.jvm.checked_sub(1)?)
    }

    #[inline(always)]
    fn remembered(&self, process: &ProcessUnwind, address: u64) -> Option<UnwindRow> {
        recall(&REMEMBERED_ROWS, process, address)
    }

    #[inline(always)]
    fn remember(&self, process: &ProcessUnwind, address: u64, row: UnwindRow) {
        remember(&REMEMBERED_ROWS, process, address, row);
    }

    #[inline(always)]
    fn remembered_frame(&self, process: &ProcessUnwind, pc: u64) -> Option<CompiledFrame> {
        recall(&REMEMBERED_FRAMES, process, pc)
    }

    #[inline(always)]
    fn remember_frame(&self, process: &ProcessUnwind, pc: u64, frame: CompiledFrame) {
        remember(&REMEMBERED_FRAMES, process, pc, frame);
    }

    #[inline(always)]
    fn enters(&self, process: &ProcessUnwind, pc: u64) {
        if let Some(jvm) = process.jvm.checked_sub(1).and_then(|index| JVMS.get_ptr_mut(index)) {
            // SAFETY: a live map value, of which other CPUs write the same into this word.
            unsafe { (*jvm).enter_special = pc };
        }
    }

    /// By a function of its own: there are many callers.
    #[inline(always)]
    fn is_return_address<A: Arch>(&self, _: &impl Memory, _: &JvmUnwind, _: &Walk<A>, pc: u64) -> bool {
        walk_is_return_address(pc) != 0
    }
}

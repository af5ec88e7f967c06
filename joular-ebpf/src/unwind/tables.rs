//! User stacks by the tables that user space keeps for a process: through its
//! files' unwind rows and its JVM's code cache. See `joular_ebpf::walk`.
//!
//! A step is a global function, which the verifier checks once, by itself, instead
//! of once for each turn of the loop; the walk under way therefore stands in a map.

use aya_ebpf::helpers::{
    bpf_probe_read_user,
    generated::{bpf_get_current_task_btf, bpf_probe_read_user as probe_read_user, bpf_task_pt_regs},
};
use joular_ebpf::{
    abi::{
        CodeMapping, JvmUnwind, Loss, MAX_USER_FRAMES, ProcessUnwind, RememberedRow, StackId, UnwindRow, place_of_row,
        walk_end,
    },
    walk::{
        BlockWords, End, FrameWords, Memory, Registers, Step, Tables, Walk, compiled,
        hotspot::{self, Kind},
        interpreted, is_in_code_cache, is_return_address, native, push_compiled_method, stub,
    },
};

use crate::{
    maps::{CODE_MAPPINGS, COMPILER_THREADS, JVMS, PROCESSES, REMEMBERED, TABLES_EPOCH, UNWIND_ROWS, WALK, count_loss},
    task::Task,
};

/// What a step returns if there is another frame; the other values are those of
/// `walk_end`.
const GO_ON: u32 = 0x100;
/// Compiled methods in a row that are walked without leaving a function.
const METHODS_PER_STEP: u32 = 8;
/// Room for a block of the code cache.
const BLOCK_BYTES: u32 = size_of::<BlockWords>() as u32;

/// Walks the stack of a process that can be walked by tables, else `None`. It then
/// stands in [`WALK`].
#[inline(always)]
pub fn walk(task: Task, tgid: u32) -> Option<StackId> {
    let process = PROCESSES.get_ptr(tgid)?;
    // SAFETY: a live value of a preallocated map.
    current_walk()?.begin(interrupted_registers(), unsafe { *process });
    let mut end = GO_ON;
    for _ in 0..=MAX_USER_FRAMES as u32 {
        end = walk_step();
        if end != GO_ON {
            break;
        }
    }
    let end = if end == GO_ON { walk_end::BUDGET } else { end as u8 };
    let walk = current_walk()?;
    if walk.header.len == 0 {
        count_loss(Loss::UserStackFailed);
        return Some(StackId::NONE);
    }
    if let (Some(jvm), Some(thread)) = (jvm_of(walk), COMPILER_THREADS.get_ptr(task.tid())) {
        // SAFETY: a live map value.
        let thread = unsafe { &*thread };
        if thread.tgid == tgid {
            push_compiled_method(&Process, jvm, thread, walk);
        }
    }
    Some(walk.finish(tgid, End(end)))
}

/// Registers of user code at its last entry to the kernel, which a sample of user
/// code is as well: on x86-64 all registers are saved then, interrupts included.
#[inline(always)]
fn interrupted_registers() -> Registers {
    // SAFETY: no arguments; `current` is valid for the whole program run.
    let task = unsafe { bpf_get_current_task_btf() };
    // SAFETY: a trusted task; its saved registers stand where its stack begins.
    let regs = unsafe { bpf_task_pt_regs(task) } as *const aya_ebpf::bindings::pt_regs;
    // SAFETY: the verifier knows the type and makes each load one with an exception
    // table entry.
    unsafe {
        Registers {
            pc: (*regs).rip,
            sp: (*regs).rsp,
            fp: (*regs).rbp,
            rax: (*regs).rax,
            rbx: (*regs).rbx,
            r13: (*regs).r13,
        }
    }
}

/// Some frames of this CPU's walk; [`GO_ON`] or why it is over.
#[unsafe(no_mangle)]
#[inline(never)]
pub extern "C" fn walk_step() -> u32 {
    let Some(walk) = current_walk() else { return u32::from(walk_end::BUDGET) };
    let Some(jvm) = jvm_of(walk) else { return walk_native() };
    for _ in 0..METHODS_PER_STEP {
        if !is_in_code_cache(jvm, walk.registers.pc) {
            return walk_native();
        }
        let step = match hotspot::kind(&Process, jvm, walk) {
            Ok(Kind::Compiled(compiled::Kind::Method)) if compiled::is_in_the_middle(jvm, walk) => {
                compiled::step_in_the_middle(&Process, jvm, walk)
            }
            Ok(Kind::Compiled(kind)) => return walk_compiled(kind as u32),
            Ok(Kind::Interpreted) => return walk_interpreted(),
            Ok(Kind::Stub(kind)) => return walk_stub(kind as u32),
            Err(end) => Err(end),
        };
        if let Err(End(end)) = step {
            return u32::from(end);
        }
    }
    GO_ON
}

/// One frame of native code.
#[unsafe(no_mangle)]
#[inline(never)]
pub extern "C" fn walk_native() -> u32 {
    let Some(walk) = current_walk() else { return u32::from(walk_end::BUDGET) };
    code(native::step(&Process, &Maps, walk))
}

#[unsafe(no_mangle)]
#[inline(never)]
pub extern "C" fn walk_interpreted() -> u32 {
    let Some(walk) = current_walk() else { return u32::from(walk_end::BUDGET) };
    let Some(jvm) = jvm_of(walk) else { return u32::from(walk_end::NO_MAPPING) };
    code(interpreted::step(&Process, &Maps, jvm, walk))
}

#[unsafe(no_mangle)]
#[inline(never)]
pub extern "C" fn walk_compiled(kind: u32) -> u32 {
    let kind = match kind {
        KIND_METHOD => compiled::Kind::Method,
        KIND_WRAPPER => compiled::Kind::NativeWrapper,
        _ => compiled::Kind::Stub,
    };
    let Some(walk) = current_walk() else { return u32::from(walk_end::BUDGET) };
    let Some(jvm) = jvm_of(walk) else { return u32::from(walk_end::NO_MAPPING) };
    code(compiled::step(&Process, &Maps, jvm, walk, kind))
}

#[unsafe(no_mangle)]
#[inline(never)]
pub extern "C" fn walk_stub(kind: u32) -> u32 {
    let kind = match kind {
        KIND_ENTRY => stub::Kind::Entry,
        KIND_FRAMELESS => stub::Kind::Frameless,
        KIND_CONTINUATION => stub::Kind::Continuation,
        _ => stub::Kind::Unknown,
    };
    let Some(walk) = current_walk() else { return u32::from(walk_end::BUDGET) };
    let Some(jvm) = jvm_of(walk) else { return u32::from(walk_end::NO_MAPPING) };
    code(stub::step(&Process, &Maps, jvm, walk, kind))
}

/// See [`Tables::is_return_address`].
#[unsafe(no_mangle)]
#[inline(never)]
pub extern "C" fn walk_is_return_address(pc: u64) -> u32 {
    let Some(walk) = current_walk() else { return 0 };
    let Some(jvm) = jvm_of(walk) else { return 0 };
    u32::from(is_return_address(&Process, &Maps, jvm, &walk.process, pc))
}

const KIND_METHOD: u32 = compiled::Kind::Method as u32;
const KIND_WRAPPER: u32 = compiled::Kind::NativeWrapper as u32;
const KIND_ENTRY: u32 = stub::Kind::Entry as u32;
const KIND_FRAMELESS: u32 = stub::Kind::Frameless as u32;
const KIND_CONTINUATION: u32 = stub::Kind::Continuation as u32;

#[inline(always)]
fn current_walk() -> Option<&'static mut Walk> {
    let walk = WALK.get_ptr_mut(0)?;
    // SAFETY: this CPU's own, used by one program run at a time, and by one function
    // at a time: none holds it while it calls another that changes it.
    Some(unsafe { &mut *walk })
}

#[inline(always)]
fn jvm_of(walk: &Walk) -> Option<&'static JvmUnwind> {
    JVMS.get(walk.process.jvm.checked_sub(1)?)
}

#[inline(always)]
fn code(step: Step) -> u32 {
    match step {
        Ok(()) => GO_ON,
        Err(End(end)) => u32::from(end),
    }
}

/// The memory of the process that runs on this CPU.
struct Process;

impl Process {
    #[inline(always)]
    fn read<T>(address: u64) -> Result<T, End> {
        // SAFETY: the helper fails where nothing can be read, and `T` is made of integers.
        unsafe { bpf_probe_read_user(address as *const T) }.map_err(|_| End::UNREADABLE)
    }
}

impl Memory for Process {
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
    fn ten(&self, address: u64, words: &mut FrameWords) -> Step {
        let bytes = size_of::<FrameWords>() as u32;
        // SAFETY: the buffer has that size.
        let failed = unsafe { probe_read_user(words.as_mut_ptr().cast(), bytes, address as *const _) };
        if failed == 0 { Ok(()) } else { Err(End::UNREADABLE) }
    }

    #[inline(always)]
    fn block(&self, address: u64, bytes: u32, words: &mut BlockWords) -> Step {
        let bytes = if bytes > BLOCK_BYTES { BLOCK_BYTES } else { bytes };
        // SAFETY: the buffer is at least as large as said.
        let failed = unsafe { probe_read_user(words.as_mut_ptr().cast(), bytes, address as *const _) };
        if failed == 0 { Ok(()) } else { Err(End::UNREADABLE) }
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
    fn remembered(&self, process: &ProcessUnwind, address: u64) -> Option<UnwindRow> {
        let known = REMEMBERED.get(place_of_row(address))?;
        let is_it = known.address == address
            && known.first_mapping == process.first_mapping
            && known.epoch == *TABLES_EPOCH.get(0)?;
        is_it.then_some(known.row)
    }

    #[inline(always)]
    fn remember(&self, process: &ProcessUnwind, address: u64, row: UnwindRow) {
        let (Some(place), Some(epoch)) = (REMEMBERED.get_ptr_mut(place_of_row(address)), TABLES_EPOCH.get(0)) else {
            return;
        };
        let first_mapping = process.first_mapping;
        // SAFETY: this CPU's own, used by one program run at a time.
        unsafe { *place = RememberedRow { address, first_mapping, epoch: *epoch, row } };
    }

    /// By a function of its own: there are many callers.
    #[inline(always)]
    fn is_return_address(&self, _: &impl Memory, _: &JvmUnwind, _: &ProcessUnwind, pc: u64) -> bool {
        walk_is_return_address(pc) != 0
    }
}

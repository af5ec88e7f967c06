//! Walks a user stack, one frame at a time.
//!
//! A walk is its registers. A step names the frame that they stand in, by one [`FrameWord`], and
//! replaces them by its caller's: in native code by the unwind tables ([`native`]), in a JVM's code
//! cache by what the JVM's own structures say of the code there ([`hotspot`]). Neither needs frame
//! pointers. [`dispatch`] decides which of them takes a frame.
//!
//! The memory that is read belongs to the process, which may be hostile or in the middle of
//! changing it. So every address is only ever handed to [`Memory`], every step must lead upwards on
//! the stack, and a walk has at most [`MAX_USER_FRAMES`] steps.
//!
//! All of it is compiled twice: into the eBPF programs, where a [`Walk`] stands in a per-CPU map,
//! and for the host, whose tests run every line that the kernel runs.
#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    clippy::cast_sign_loss,
    reason = "addresses wrap, and fields and words are cut to their width: each is checked or bounded where it matters"
)]

pub mod arch;
mod chunk;
pub mod compiled;
mod continuation;
pub mod dispatch;
pub mod hotspot;
pub mod identity;
pub mod interpreted;
pub mod native;
pub mod stub;
#[cfg(test)]
mod tests;

use arch::Arch;
use chunk::Chunk;
use identity::{MethodIdentity, mixed_generation};

use crate::abi::{
    CodeMapping, CompiledFrame, CompilerThread, FrameWord, JvmUnwind, MAX_BLOB_BYTES, MAX_USER_FRAMES, ProcessUnwind,
    RecordKind, StackHeader, StackId, UnwindRow, stack_flags, unwinder, walk_end,
};

/// First address that no user code has, with five levels of page tables.
const USER_END: u64 = 1 << 56;
/// Most bytes read of a block of the code cache: its header, and the blob's.
const MAX_BLOCK_BYTES: usize = MAX_BLOB_BYTES + 64;
/// Room for them. It is a power of two, because the verifier accepts a masked index.
const BLOCK_WORDS: usize = 128;
pub type BlockWords = [u64; BLOCK_WORDS];

/// Why a walk is over: one of [`walk_end`]'s.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct End(pub u8);

impl End {
    pub const UNREADABLE: Self = Self(walk_end::UNREADABLE);
    pub const IMPLAUSIBLE: Self = Self(walk_end::IMPLAUSIBLE);
}

pub type Step = Result<(), End>;

/// The process's memory. Nothing here faults pages in.
pub trait Memory {
    fn byte(&self, address: u64) -> Result<u8, End>;
    fn word(&self, address: u64) -> Result<u64, End>;
    fn pair(&self, address: u64) -> Result<[u64; 2], End>;
    /// The part of an interpreter's frame around its frame pointer: all of `words`.
    fn frame(&self, address: u64, words: &mut [u64]) -> Step;
    /// Reads this many bytes, at most all of `words`.
    fn block(&self, address: u64, bytes: u32, words: &mut BlockWords) -> Step;
}

/// The tables that user space wrote.
pub trait Tables {
    fn mapping(&self, index: u32) -> Option<&CodeMapping>;
    fn row(&self, index: u32) -> Option<&UnwindRow>;
    /// The process's JVM, if it is one whose code cache can be walked.
    fn jvm(&self, process: &ProcessUnwind) -> Option<&JvmUnwind>;
    /// The row for an address, if it was looked for not long ago: nearly all frames
    /// but the leaf are the same from sample to sample.
    #[inline(always)]
    fn remembered(&self, _: &ProcessUnwind, _: u64) -> Option<UnwindRow> {
        None
    }
    #[inline(always)]
    fn remember(&self, _: &ProcessUnwind, _: u64, _: UnwindRow) {}
    /// The same for a place in compiled code that calls another method. What stands there may have changed meanwhile.
    #[inline(always)]
    fn remembered_frame(&self, _: &ProcessUnwind, _: u64) -> Option<CompiledFrame> {
        None
    }
    #[inline(always)]
    fn remember_frame(&self, _: &ProcessUnwind, _: u64, _: CompiledFrame) {}
    /// Notes that virtual threads are entered by code that goes on there ([`JvmUnwind::enter_special`]).
    #[inline(always)]
    fn enters(&self, _: &ProcessUnwind, _: u64) {}
    /// Whether that is an address behind a call, or one that the interpreter has
    /// methods return to: data on a stack rarely is.
    fn is_return_address<A: Arch>(&self, memory: &impl Memory, jvm: &JvmUnwind, walk: &Walk<A>, pc: u64) -> bool
    where
        Self: Sized,
    {
        is_return_address(memory, self, jvm, walk, pc)
    }
}

/// What is known of the registers of a frame.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Registers<A: Arch> {
    pub pc: u64,
    pub sp: u64,
    pub fp: u64,
    pub live: A::Live,
}

/// The block of the code cache that was read last: recursion meets it again.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
struct Block {
    /// Of the code; empty if nothing was read.
    start: u64,
    end: u64,
    /// Where the blob begins.
    blob: u64,
    words: BlockWords,
}

/// A walk under way. Its first two members are what is sent to user space.
#[repr(C)]
#[derive(Clone, Debug)]
pub struct Walk<A: Arch> {
    pub header: StackHeader,
    pub words: [u64; MAX_USER_FRAMES],
    pub registers: Registers<A>,
    pub process: ProcessUnwind,
    hash: u64,
    /// 1: `pc` is where code was interrupted, 0: a return address.
    exact: u64,
    /// How many words stood before those of the code that was interrupted last: a signal's handler
    /// may run on top of it.
    words_of_handlers: u64,
    /// 1: a part of the stack is in the heap, and the walk went on behind it.
    is_frozen: u64,
    /// 1: a caller was found by a frame pointer where no table says that there is one.
    is_guessed: u64,
    /// 1: a wrapper of a native method was interrupted.
    is_in_wrapper: u64,
    chunk: Chunk,
    block: Block,
    /// Of the interpreter's frame that was read last. Here, since older kernels allow
    /// the programs' functions 512 bytes of stack, all that call each other together.
    frame: A::FrameWords,
}

impl<A: Arch> Default for Walk<A> {
    fn default() -> Self {
        Self {
            header: StackHeader { kind: 0, flags: 0, len: 0, tgid: 0, id: 0 },
            words: [0; MAX_USER_FRAMES],
            registers: Registers::default(),
            process: ProcessUnwind::default(),
            hash: 0,
            exact: 0,
            words_of_handlers: 0,
            is_frozen: 0,
            is_guessed: 0,
            is_in_wrapper: 0,
            chunk: Chunk::NONE,
            block: Block { start: 0, end: 0, blob: 0, words: [0; BLOCK_WORDS] },
            frame: A::FrameWords::default(),
        }
    }
}

impl<A: Arch> Walk<A> {
    /// Starts at the registers of interrupted code. Words and block are left as
    /// they are: nobody looks at what a walk did not write.
    #[inline(always)]
    pub fn begin(&mut self, registers: Registers<A>, process: ProcessUnwind) {
        self.header.len = 0;
        self.registers = registers;
        self.process = process;
        // A new generation makes every stack a new one.
        self.hash = StackId::mix(StackId::seed(0), u64::from(mixed_generation(process.generation)));
        self.exact = 1;
        self.words_of_handlers = 0;
        self.is_frozen = 0;
        self.is_guessed = 0;
        self.is_in_wrapper = 0;
        self.chunk = Chunk::NONE;
        self.block.start = 0;
        self.block.end = 0;
    }

    /// Starts in the caller of a function that is just being entered, with what it was entered for as the leaf.
    #[inline(always)]
    pub fn begin_in_caller(
        &mut self,
        memory: &impl Memory,
        mut registers: Registers<A>,
        process: ProcessUnwind,
        leaf: FrameWord,
    ) -> Step {
        let entered = A::enter_caller(&mut registers, memory);
        self.begin(registers, process);
        self.exact = 0;
        self.words_of_handlers = 1;
        self.push(leaf)?;
        entered
    }

    /// Completes the header. The end is part of the identity: a stack that was cut
    /// is not the whole one, even if the words are the same.
    #[inline(always)]
    pub fn finish(&mut self, tgid: u32, end: End) -> StackId {
        let end = self.quality(end);
        let id = StackId::finish(StackId::mix(self.hash, u64::from(end.0)));
        self.header.kind = RecordKind::STACK;
        let generation = mixed_generation(self.process.generation);
        self.header.flags = stack_flags::user(unwinder::TABLES, end.0) | stack_flags::of_generation(generation);
        self.header.tgid = tgid;
        self.header.id = id.0;
        id
    }

    /// The quality of a walk that ended so. A walk with a gap is not whole, and where the way to
    /// the root was a guess, frames may be missing.
    #[inline(always)]
    pub fn quality(&self, end: End) -> End {
        if end.0 != walk_end::ROOT {
            end
        } else if self.is_frozen != 0 {
            End(walk_end::FROZEN)
        } else if self.is_guessed != 0 {
            End(walk_end::CHAIN)
        } else {
            end
        }
    }

    /// Adds a frame towards the root.
    #[inline(always)]
    pub fn push(&mut self, word: FrameWord) -> Step {
        let Some(slot) = self.words.get_mut(self.header.len as usize) else { return Err(End(walk_end::DEPTH)) };
        *slot = word.0;
        self.header.len += 1;
        self.hash = StackId::mix(self.hash, word.0);
        Ok(())
    }

    /// Adds a frame of a method that is known by its address.
    #[inline(always)]
    pub fn push_method(&mut self, word: FrameWord, identity: MethodIdentity) -> Step {
        self.push(word)?;
        self.hash = StackId::mix(self.hash, identity.mixed());
        Ok(())
    }

    /// Whether the frame to be walked called native code or a stub. `back` counts from the end of the words
    /// to that of its callee: 1 before the frame has a word of its own, and 2 after.
    #[inline(always)]
    fn has_called_no_method(&self, back: u32) -> bool {
        // Every index is within; the mask tells the verifier so.
        let index = self.header.len.wrapping_sub(back) as usize & (MAX_USER_FRAMES - 1);
        let callee = self.words.get(index).copied().unwrap_or(0);
        self.exact == 0 && self.header.len >= back && FrameWord(callee).is_of_no_method()
    }

    /// Whether the frame to be walked is that of interrupted code, or the one that called it; the
    /// frame has its word already.
    #[inline(always)]
    const fn is_near_leaf(&self) -> bool {
        !self.chunk.is_walked() && (self.header.len as u64).wrapping_sub(self.words_of_handlers) <= 2
    }

    #[inline(always)]
    const fn is_exact(&self) -> bool {
        self.exact != 0
    }

    /// An address in a frame: on a stack it stands there as it is, in a chunk counted in words from `base`. So do those
    /// of the interpreter; of others nothing depends on it.
    #[inline(always)]
    const fn in_frame(&self, base: u64, word: u64) -> u64 {
        if self.chunk.is_walked() { base.wrapping_add(word.wrapping_mul(8)) } else { word }
    }

    /// Goes on in the caller, which will be returned to at `pc`.
    #[inline(always)]
    fn return_to(&mut self, pc: u64, sp: u64, fp: u64) -> Step {
        if !A::may_be_callers(self, sp) {
            return Err(End::IMPLAUSIBLE);
        }
        self.go_on(pc, sp, fp)
    }

    /// The same for interrupted code whose stack pointer is the caller's already.
    #[inline(always)]
    fn go_on(&mut self, pc: u64, sp: u64, fp: u64) -> Step {
        let pc = A::code_address(pc);
        let pc = if self.chunk.is_walked() { self.chunk.return_address(pc, sp)? } else { pc };
        if sp >= USER_END || pc >= USER_END {
            return Err(End::IMPLAUSIBLE);
        }
        // Only native code is called by nobody; see [`native`].
        if pc == 0 {
            return Err(End::IMPLAUSIBLE);
        }
        self.registers.pc = pc;
        self.registers.sp = sp;
        self.registers.fp = fp;
        self.exact = 0;
        Ok(())
    }
}

/// A compiler thread's stack begins with what it compiles, if it compiles anything.
#[inline(always)]
pub fn push_compiled_method<A: Arch>(
    memory: &impl Memory,
    jvm: &JvmUnwind,
    thread: &CompilerThread,
    walk: &mut Walk<A>,
) {
    let pointer = |address: u64| memory.word(address).ok().filter(|pointer| *pointer != 0);
    let method = pointer(thread.env)
        .and_then(|env| pointer(env.wrapping_add(u64::from(thread.task))))
        .and_then(|task| pointer(task.wrapping_add(u64::from(thread.method))));
    if let Some(method) = method {
        let _ = walk.push_method(FrameWord::compiling(method), MethodIdentity::read(memory, jvm, method));
    }
}

/// Whether [`hotspot`] handles the code there, else [`native`].
#[inline(always)]
pub fn is_in_code_cache(jvm: &JvmUnwind, pc: u64) -> bool {
    let [a, b, c, d] = &jvm.code_heaps;
    a.memory.contains(pc) || b.memory.contains(pc) || c.memory.contains(pc) || d.memory.contains(pc)
}

/// See [`Tables::is_return_address`].
#[inline(always)]
pub fn is_return_address<A: Arch>(
    memory: &impl Memory,
    tables: &impl Tables,
    jvm: &JvmUnwind,
    walk: &Walk<A>,
    pc: u64,
) -> bool {
    let pc = A::code_address(pc);
    // No call is in front of where a virtual thread's frames return to the rest of its stack.
    if jvm.interpreter.contains(pc) || jvm.continuation_stubs.contains(pc) {
        return true;
    }
    if pc >= USER_END || !is_in_code_cache(jvm, pc) && native::find_mapping(tables, &walk.process, pc).is_none() {
        return false;
    }
    A::is_returned_to(memory, pc)
}

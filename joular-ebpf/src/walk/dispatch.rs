//! Decides which step takes a frame, and how often.
//!
//! It is written once, over a [`Walker`]. On the host a walker calls the steps directly. In the
//! kernel it calls each through a global function of the programs, since the verifier checks a
//! global function once, however often it is called. Such a function takes and returns integers
//! only: the kind of code goes in, [`GO_ON`] or one of [`walk_end`]'s comes out. (`frames` and `native_frame` have more
//! answers.)

use super::{
    End, Memory, Step, Tables, Walk,
    arch::Arch,
    compiled,
    hotspot::{self, Kind},
    interpreted, is_in_code_cache, native, stub,
};
use crate::abi::{CompiledFrame, JvmUnwind, MAX_USER_FRAMES, walk_end};

/// What a step returns if there is another frame; the other values are those of
/// `walk_end`.
pub const GO_ON: u32 = 0x100;
/// What [`native_frame`] returns of a stub that it cannot walk; nothing has changed.
const NO_ROW: u32 = 0x101;
/// Steps that a function of their own takes. The verifier follows each turn of a loop, and in a program it does so
/// again for each way that leads to the loop. It checks such a function once.
const STEPS: u32 = 32;
/// Compiled methods in a row that are walked without leaving a function.
const METHODS_PER_STEP: u32 = 8;

/// A walk under way, and what it reads.
#[derive(Debug)]
pub struct Parts<'a, A: Arch, M, T> {
    pub walk: &'a mut Walk<A>,
    pub memory: &'a M,
    pub tables: &'a T,
}

/// The side that walks. The provided functions are the steps themselves; the programs put a global
/// function before each.
pub trait Walker {
    type Arch: Arch;
    type Memory: Memory;
    type Tables: Tables;

    /// `None` if there is no walk, which ends it.
    fn parts(&mut self) -> Option<Parts<'_, Self::Arch, Self::Memory, Self::Tables>>;

    /// See [`steps`].
    #[inline(always)]
    fn steps(&mut self) -> u32 {
        steps(self)
    }

    /// See [`frames`].
    #[inline(always)]
    fn frames(&mut self) -> u32 {
        frames(self)
    }

    /// See [`native_frame`].
    #[inline(always)]
    fn native(&mut self) -> u32 {
        native_frame(self)
    }

    /// See [`interpreted_frame`].
    #[inline(always)]
    fn interpreted(&mut self) -> u32 {
        interpreted_frame(self)
    }

    /// See [`compiled_frame`].
    #[inline(always)]
    fn compiled(&mut self, kind: u32) -> u32 {
        compiled_frame(self, kind)
    }

    /// See [`stub_frame`].
    #[inline(always)]
    fn stub(&mut self, kind: u32) -> u32 {
        stub_frame(self, kind)
    }
}

/// A walk on the host.
#[derive(Debug)]
pub struct HostWalker<'a, A: Arch, M, T>(pub Parts<'a, A, M, T>);

impl<A: Arch, M: Memory, T: Tables> Walker for HostWalker<'_, A, M, T> {
    type Arch = A;
    type Memory = M;
    type Tables = T;

    fn parts(&mut self) -> Option<Parts<'_, A, M, T>> {
        Some(Parts { walk: self.0.walk, memory: self.0.memory, tables: self.0.tables })
    }
}

/// Walks on until the end.
#[inline(always)]
pub fn to_the_end(walker: &mut impl Walker) -> End {
    let mut code = GO_ON;
    for _ in 0..=MAX_USER_FRAMES as u32 / STEPS {
        code = walker.steps();
        if code != GO_ON {
            break;
        }
    }
    End(if code == GO_ON { walk_end::BUDGET } else { code as u8 })
}

/// Some steps.
#[inline(always)]
pub fn steps(walker: &mut (impl Walker + ?Sized)) -> u32 {
    for _ in 0..STEPS {
        let code = step(walker);
        if code == GO_ON {
            continue;
        }
        let is_in_chunk = walker.parts().is_some_and(|parts| parts.walk.is_in_chunk());
        // The stack of the carrier is there all the same.
        let code = if is_in_chunk && code != DEPTH { walker.stub(KIND_CONTINUATION) } else { code };
        if code != GO_ON {
            return code;
        }
    }
    GO_ON
}

/// Frames of methods that called another, which are most of all, or one frame of any other kind.
#[inline(always)]
fn step(walker: &mut (impl Walker + ?Sized)) -> u32 {
    let next = walker.frames();
    let kind = next & !OF_KIND;
    match next & OF_KIND {
        OF_NATIVE => walker.native(),
        OF_INTERPRETER => walker.interpreted(),
        OF_COMPILED => walker.compiled(kind),
        OF_STUB if kind == KIND_UNKNOWN => {
            // Most stubs have rows.
            let code = walker.native();
            if code == NO_ROW { walker.stub(kind) } else { code }
        }
        OF_STUB => walker.stub(kind),
        _ => next,
    }
}

/// Takes frames of methods that called another. At a frame of any other kind it answers which function takes that.
/// It does not call the function itself, because functions that call each other share a small stack.
#[inline(always)]
pub fn frames(walker: &mut (impl Walker + ?Sized)) -> u32 {
    let Some(Parts { walk, memory, tables }) = walker.parts() else { return NO_WALK };
    let Some(jvm) = tables.jvm(&walk.process) else { return OF_NATIVE };
    for _ in 0..METHODS_PER_STEP {
        if !is_in_code_cache(jvm, walk.registers.pc) {
            return OF_NATIVE;
        }
        let frame = match compiled_caller(memory, tables, jvm, walk) {
            Ok(frame) => frame,
            Err(code) => return code,
        };
        if let Err(End(end)) = compiled::step_in_the_middle(memory, jvm, walk, frame) {
            return u32::from(end);
        }
    }
    GO_ON
}

/// The frame of a method that called another; of any other kind, what [`frames`] answers.
#[inline(always)]
fn compiled_caller<A: Arch>(
    memory: &impl Memory,
    tables: &impl Tables,
    jvm: &JvmUnwind,
    walk: &mut Walk<A>,
) -> Result<CompiledFrame, u32> {
    let is_in_the_middle = compiled::is_in_the_middle(walk);
    if is_in_the_middle && let Some(frame) = compiled::remembered(memory, tables, jvm, walk) {
        return Ok(frame);
    }
    match hotspot::kind(memory, jvm, walk) {
        Ok(Kind::Compiled(kind)) => {
            let is_caller = is_in_the_middle && kind == compiled::Kind::Method;
            let frame = if is_caller { compiled::frame(jvm, walk) } else { None };
            let frame = frame.ok_or(OF_COMPILED | kind as u32)?;
            tables.remember_frame(&walk.process, walk.registers.pc, frame);
            Ok(frame)
        }
        Ok(Kind::Interpreted) => Err(OF_INTERPRETER),
        Ok(Kind::Stub(kind)) => Err(OF_STUB | kind as u32),
        Err(End(end)) => Err(u32::from(end)),
    }
}

/// One frame of code that has rows: native code, and stubs of a JVM. [`NO_ROW`] if a stub has none.
#[inline(always)]
pub fn native_frame(walker: &mut (impl Walker + ?Sized)) -> u32 {
    let Some(Parts { walk, memory, tables }) = walker.parts() else { return NO_WALK };
    match tables.jvm(&walk.process).filter(|jvm| is_in_code_cache(jvm, walk.registers.pc)) {
        Some(jvm) => stub::step_by_row(memory, tables, jvm, walk).map_or(NO_ROW, code),
        None => code(native::step(memory, tables, walk)),
    }
}

/// One frame of the interpreter.
#[inline(always)]
pub fn interpreted_frame(walker: &mut (impl Walker + ?Sized)) -> u32 {
    let Some(Parts { walk, memory, tables }) = walker.parts() else { return NO_WALK };
    let Some(jvm) = tables.jvm(&walk.process) else { return NO_JVM };
    code(interpreted::step(memory, tables, jvm, walk))
}

/// One frame of a fixed size. `kind` is a [`compiled::Kind`].
#[inline(always)]
pub fn compiled_frame(walker: &mut (impl Walker + ?Sized), kind: u32) -> u32 {
    let kind = match kind {
        KIND_METHOD => compiled::Kind::Method,
        KIND_WRAPPER => compiled::Kind::NativeWrapper,
        _ => compiled::Kind::Stub,
    };
    let Some(Parts { walk, memory, tables }) = walker.parts() else { return NO_WALK };
    let Some(jvm) = tables.jvm(&walk.process) else { return NO_JVM };
    code(compiled::step(memory, tables, jvm, walk, kind))
}

/// One frame that nobody describes. `kind` is a [`stub::Kind`].
#[inline(always)]
pub fn stub_frame(walker: &mut (impl Walker + ?Sized), kind: u32) -> u32 {
    let kind = match kind {
        KIND_ENTRY => stub::Kind::Entry,
        KIND_FRAMELESS => stub::Kind::Frameless,
        KIND_CONTINUATION => stub::Kind::Continuation,
        _ => stub::Kind::Unknown,
    };
    let Some(Parts { walk, memory, tables }) = walker.parts() else { return NO_WALK };
    let Some(jvm) = tables.jvm(&walk.process) else { return NO_JVM };
    code(stub::step(memory, tables, jvm, walk, kind))
}

const NO_WALK: u32 = walk_end::BUDGET as u32;
const DEPTH: u32 = walk_end::DEPTH as u32;
const NO_JVM: u32 = walk_end::NO_MAPPING as u32;
/// Which function takes a frame, with the kind that it is given.
const OF_KIND: u32 = 0xf00;
const OF_NATIVE: u32 = 0x200;
const OF_INTERPRETER: u32 = 0x300;
const OF_COMPILED: u32 = 0x400;
const OF_STUB: u32 = 0x500;
const KIND_UNKNOWN: u32 = stub::Kind::Unknown as u32;
const KIND_METHOD: u32 = compiled::Kind::Method as u32;
const KIND_WRAPPER: u32 = compiled::Kind::NativeWrapper as u32;
const KIND_ENTRY: u32 = stub::Kind::Entry as u32;
const KIND_FRAMELESS: u32 = stub::Kind::Frameless as u32;
const KIND_CONTINUATION: u32 = stub::Kind::Continuation as u32;

#[inline(always)]
fn code(step: Step) -> u32 {
    match step {
        Ok(()) => GO_ON,
        Err(End(end)) => u32::from(end),
    }
}

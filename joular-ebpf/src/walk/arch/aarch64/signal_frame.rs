//! Reads the kernel's frame of a signal (`struct rt_sigframe` in arch/arm64/kernel/signal.c, `struct sigcontext` in
//! asm/sigcontext.h).

use super::{Live, Registers};
use crate::walk::{End, Memory};

/// From the stack pointer, in bytes: the first general register; behind the last of them stand the stack pointer and
/// the program counter.
const REGISTERS: u64 = 312;
const SP: u64 = REGISTERS + 31 * 8;
const PC: u64 = SP + 8;

/// Registers of the code that the signal interrupted.
#[inline(always)]
pub(super) fn registers(memory: &impl Memory, frame: u64) -> Result<Registers, End> {
    let word = |offset: u64| memory.word(frame.wrapping_add(offset));
    let register = |number: u64| word(REGISTERS + number * 8);
    Ok(Registers {
        pc: word(PC)?,
        sp: word(SP)?,
        fp: register(29)?,
        live: Live {
            lr: register(30)?,
            x12: register(12)?,
            x13: register(13)?,
            x19: register(19)?,
            x22: register(22)?,
        },
    })
}

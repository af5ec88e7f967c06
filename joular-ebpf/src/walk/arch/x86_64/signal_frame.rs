//! Reads the kernel's frame of a signal (`ucontext_t`, asm/sigcontext.h).

use super::{Live, Registers};
use crate::walk::{End, Memory};

/// From the stack pointer, in bytes.
const R13: u64 = 80;
const RBP: u64 = 120;
const RBX: u64 = 128;
const RAX: u64 = 144;
const RSP: u64 = 160;
const RIP: u64 = 168;

/// Registers of the code that the signal interrupted.
#[inline(always)]
pub(super) fn registers(memory: &impl Memory, frame: u64) -> Result<Registers, End> {
    let word = |offset: u64| memory.word(frame.wrapping_add(offset));
    Ok(Registers {
        pc: word(RIP)?,
        sp: word(RSP)?,
        fp: word(RBP)?,
        live: Live { rax: word(RAX)?, rbx: word(RBX)?, r13: word(R13)? },
    })
}

//! Makes up what code and frames look like, for tests.

use crate::{
    abi::rule,
    walk::{
        Memory as _, Registers,
        tests::{MadeUpProcess, hotspot::METHOD},
    },
};

/// Code that does nothing.
pub(in crate::walk) const FILL: u64 = 0xd503_201f_d503_201f;
/// `bl`. The address behind it is the one to be returned to.
pub(in crate::walk) const CALL: &[u8] = &[4, 0, 0, 0x94];
/// `blr x4`.
pub(in crate::walk) const INDIRECT_CALL: &[u8] = &[0x80, 0, 0x3f, 0xd6];
/// Of a row: rule and words of a function that has no frame.
pub(in crate::walk) const NO_FRAME: (u8, i16) = (rule::SP, 0);

/// Handlers of deoptimisation, as C2 and C1 make them: `adr lr, .`, `b`.
pub(in crate::walk) fn deopt_handlers(process: &mut MadeUpProcess, handlers: [u64; 2]) {
    for handler in handlers {
        process.words(handler, &[0x1400_1000_1000_001e]);
    }
}

/// Registers of code without a frame that was called: the first word on the stack is what it returns to. That is put into
/// the link register.
pub(in crate::walk) fn called(process: &MadeUpProcess, registers: Registers) -> Registers {
    Registers { lr: process.word(registers.sp).unwrap(), sp: registers.sp + 8, ..registers }
}

pub(in crate::walk) const fn with_bytecode_pointer(registers: Registers, x22: u64) -> Registers {
    Registers { x22, ..registers }
}

/// The words of an interpreter's frame, from the bytecode pointer on.
pub(in crate::walk) const fn interpreter_words(bcp: u64, sender_sp: u64, caller_fp: u64, pc: u64) -> [u64; 11] {
    [bcp, 0, 0, 0, 0, 0, METHOD, 0, sender_sp, caller_fp, pc]
}

/// A reference to an address, whose colour has this bit of those that matter.
pub(in crate::walk) const fn coloured(address: u64, bit: u32) -> u64 {
    address << 16 | 1 << bit | 0xab0
}

/// What the kernel leaves for the handler of a signal, with these registers of the interrupted code, of which the first
/// word on the stack is what it returns to.
pub(in crate::walk) fn signal_frame(process: &mut MadeUpProcess, sp: u64, interrupted: Registers) {
    let Registers { pc, sp: interrupted_sp, fp, lr, .. } = called(process, interrupted);
    let mut registers = [7; 33];
    [registers[29], registers[30], registers[31], registers[32]] = [fp, lr, interrupted_sp, pc];
    process.words(sp + 312, &registers);
}

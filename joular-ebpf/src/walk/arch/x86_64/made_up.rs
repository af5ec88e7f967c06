//! Makes up what code and frames look like, for tests.

use crate::{
    abi::rule,
    walk::{
        Registers,
        tests::{MadeUpProcess, hotspot::METHOD},
    },
};

/// Code that does nothing.
pub(in crate::walk) const FILL: u64 = 0x9090_9090_9090_9090;
/// A call. The address behind it is the one to be returned to.
pub(in crate::walk) const CALL: &[u8] = &[0xe8, 0, 0, 0, 0];
/// The same through a register.
pub(in crate::walk) const INDIRECT_CALL: &[u8] = &[0xff, 0xd1];
/// Of a row: rule and words of a function that has no frame.
pub(in crate::walk) const NO_FRAME: (u8, i16) = (rule::SP, 1);

/// Handlers of deoptimisation, as C2 and C1 make them.
pub(in crate::walk) fn deopt_handlers(process: &mut MadeUpProcess, [c2, c1]: [u64; 2]) {
    process.code(c2, &[0xe8, 0, 0, 0, 0, 0x48, 0x83, 0x2c, 0x24, 0x05, 0xe9]);
    process.code(c1, &[0x49, 0xba]).code(c1 + 2, &c1.to_le_bytes()).code(c1 + 10, &[0x41, 0x52, 0xe9]);
}

/// Registers of code without a frame that was called: the first word on the stack is what it returns to.
pub(in crate::walk) const fn called(_: &MadeUpProcess, registers: Registers) -> Registers {
    registers
}

pub(in crate::walk) const fn with_bytecode_pointer(registers: Registers, r13: u64) -> Registers {
    Registers { r13, ..registers }
}

/// The words of an interpreter's frame, from the bytecode pointer on.
pub(in crate::walk) const fn interpreter_words(bcp: u64, sender_sp: u64, caller_fp: u64, pc: u64) -> [u64; 10] {
    [bcp, 0, 0, 0, 0, METHOD, 0, sender_sp, caller_fp, pc]
}

/// A reference to an address, whose colour has this bit of those that matter.
pub(in crate::walk) const fn coloured(address: u64, bit: u32) -> u64 {
    address << (bit + 1) | 1 << bit | 0xab0
}

/// What the kernel leaves for the handler of a signal, with these registers of the interrupted code, of which the first
/// word on the stack is what it returns to.
pub(in crate::walk) fn signal_frame(process: &mut MadeUpProcess, sp: u64, interrupted: Registers) {
    process
        .words(sp + 80, &[9; 5])
        .words(sp + 120, &[7, 8, 0, 0, 0, interrupted.sp, interrupted.pc])
        .words(sp + 144, &[0]);
}

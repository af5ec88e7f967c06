//! Makes up what code and frames look like, for tests.

use super::{Live, Registers, X86_64};
use crate::{
    abi::rule,
    walk::tests::{MadeUp, MadeUpProcess},
};

impl MadeUp for X86_64 {
    const FILL: u64 = 0x9090_9090_9090_9090;
    const CALL: &[u8] = &[0xe8, 0, 0, 0, 0];
    const INDIRECT_CALL: &[u8] = &[0xff, 0xd1];
    const NO_FRAME: (u8, i16) = (rule::SP, 1);

    fn deopt_handlers(process: &mut MadeUpProcess<Self>, [c2, c1]: [u64; 2]) {
        process.code(c2, &[0xe8, 0, 0, 0, 0, 0x48, 0x83, 0x2c, 0x24, 0x05, 0xe9]);
        process.code(c1, &[0x49, 0xba]).code(c1 + 2, &c1.to_le_bytes()).code(c1 + 10, &[0x41, 0x52, 0xe9]);
    }

    fn called(_: &MadeUpProcess<Self>, registers: Registers) -> Registers {
        registers
    }

    fn with_bytecode_pointer(registers: Registers, r13: u64) -> Registers {
        Registers { live: Live { r13, ..registers.live }, ..registers }
    }

    fn coloured(address: u64, bit: u32) -> u64 {
        address << (bit + 1) | 1 << bit | 0xab0
    }

    fn signal_frame(process: &mut MadeUpProcess<Self>, sp: u64, interrupted: Registers) {
        process
            .words(sp + 80, &[9; 5])
            .words(sp + 120, &[7, 8, 0, 0, 0, interrupted.sp, interrupted.pc])
            .words(sp + 144, &[0]);
    }
}

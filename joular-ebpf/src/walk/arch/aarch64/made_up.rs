//! Makes up what code and frames look like, for tests.

use super::{Aarch64, Live, Registers};
use crate::{
    abi::rule,
    walk::{
        Memory as _,
        tests::{MadeUp, MadeUpProcess},
    },
};

impl MadeUp for Aarch64 {
    const FILL: u64 = 0xd503_201f_d503_201f;
    /// `bl`.
    const CALL: &[u8] = &[4, 0, 0, 0x94];
    /// `blr x4`.
    const INDIRECT_CALL: &[u8] = &[0x80, 0, 0x3f, 0xd6];
    const NO_FRAME: (u8, i16) = (rule::SP, 0);

    /// `adr lr, .`, `b`.
    fn deopt_handlers(process: &mut MadeUpProcess<Self>, handlers: [u64; 2]) {
        for handler in handlers {
            process.words(handler, &[0x1400_1000_1000_001e]);
        }
    }

    /// It is put into the link register.
    fn called(process: &MadeUpProcess<Self>, registers: Registers) -> Registers {
        let lr = process.word(registers.sp).unwrap();
        Registers { sp: registers.sp + 8, live: Live { lr, ..registers.live }, ..registers }
    }

    fn with_bytecode_pointer(registers: Registers, x22: u64) -> Registers {
        Registers { live: Live { x22, ..registers.live }, ..registers }
    }

    fn coloured(address: u64, bit: u32) -> u64 {
        address << 16 | 1 << bit | 0xab0
    }

    fn signal_frame(process: &mut MadeUpProcess<Self>, sp: u64, interrupted: Registers) {
        let Registers { pc, sp: interrupted_sp, fp, live } = Self::called(process, interrupted);
        let mut registers = [7; 33];
        [registers[29], registers[30], registers[31], registers[32]] = [fp, live.lr, interrupted_sp, pc];
        process.words(sp + 312, &registers);
    }
}

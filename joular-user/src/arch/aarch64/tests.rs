//! Compares decoded instructions with what an assembler and a disassembler of others say that they are.

use proptest::prelude::*;

use super::*;
use crate::arch::aarch64::instruction::{
    FP,
    Operation::{
        self, Add, AddRegister, Address, Align, Branch, Call, Copy, IndirectCall, IndirectJump, Jump, Literal, Nothing,
        Number, Other, Page, Part, Return, Stop, SystemCall,
    },
    SP, ZERO,
};

/// Where the instructions of the table are.
const AT: u64 = 0x1_0000;

fn other(register: usize) -> Operation {
    Other(RegisterSet::of(register))
}

fn access(base: usize, offset: i64, moves_base: i64, words: &[usize], bytes: i32) -> Access {
    let words = [words.first().copied(), words.get(1).copied()];
    Access { is_load: false, base, offset, moves_base, words, written: RegisterSet::NONE, bytes }
}

fn store(base: usize, offset: i64, moves_base: i64, words: &[usize], bytes: i32) -> Operation {
    Operation::Access(access(base, offset, moves_base, words, bytes))
}

fn load(base: usize, offset: i64, moves_base: i64, words: &[usize], bytes: i32) -> Operation {
    let written = words.iter().fold(RegisterSet::NONE, |set, register| set.with(*register));
    Operation::Access(Access { is_load: true, written, ..access(base, offset, moves_base, words, bytes) })
}

/// Of parts of registers.
fn part_load(base: usize, offset: i64, registers: &[usize], bytes: i32) -> Operation {
    let written = registers.iter().fold(RegisterSet::NONE, |set, register| set.with(*register));
    Operation::Access(Access { is_load: true, written, ..access(base, offset, 0, &[], bytes) })
}

/// The text of each is what `objdump` of GNU binutils 2.40 says of it at [`AT`].
#[test]
fn instructions_are_what_a_disassembler_says() {
    #[rustfmt::skip]
    let table = [
        ("nop", 0xd503_201f, Nothing),
        ("bti c", 0xd503_245f, Nothing),
        ("paciasp", 0xd503_233f, Nothing),
        ("autiasp", 0xd503_23bf, Nothing),
        ("xpaclri", 0xd503_20ff, Nothing),
        ("dmb ish", 0xd503_3bbf, Nothing),
        ("msr tpidr_el0, x3", 0xd51b_d043, Nothing),
        ("mrs x3, tpidr_el0", 0xd53b_d043, other(3)),
        ("bl 10008", 0x9400_0002, Call(0x1_0008)),
        ("bl fffc", 0x97ff_ffff, Call(0xfffc)),
        ("b fffc", 0x17ff_ffff, Jump(0xfffc)),
        ("b 800fffc", 0x15ff_ffff, Jump(0x800_fffc)),
        ("b.ne 10008", 0x5400_0041, Branch(0x1_0008)),
        ("b.hi fff8", 0x54ff_ffc8, Branch(0xfff8)),
        ("cbz x0, 10010", 0xb400_0080, Branch(0x1_0010)),
        ("cbz w0, 10010", 0x3400_0080, Branch(0x1_0010)),
        ("cbnz x30, fff0", 0xb5ff_ff9e, Branch(0xfff0)),
        ("tbz x1, #40, 10020", 0xb640_0101, Branch(0x1_0020)),
        ("tbnz w1, #3, ffe0", 0x371f_ff01, Branch(0xffe0)),
        ("blr x8", 0xd63f_0100, IndirectCall(8)),
        ("blraa x8, sp", 0xd73f_091f, IndirectCall(8)),
        ("blraaz x9", 0xd63f_093f, IndirectCall(9)),
        ("blrab x8, x1", 0xd73f_0d01, IndirectCall(8)),
        ("br x16", 0xd61f_0200, IndirectJump(16)),
        ("braaz x17", 0xd61f_0a3f, IndirectJump(17)),
        ("braa x17, x16", 0xd71f_0a30, IndirectJump(17)),
        ("ret", 0xd65f_03c0, Return),
        ("ret x1", 0xd65f_0020, Return),
        ("retaa", 0xd65f_0bff, Return),
        ("retab", 0xd65f_0fff, Return),
        ("svc #0x0", 0xd400_0001, SystemCall),
        ("hvc #0x0", 0xd400_0002, Stop),
        ("brk #0x3e8", 0xd420_7d00, Stop),
        ("hlt #0x1", 0xd440_0020, Stop),
        ("eret", 0xd69f_03e0, Stop),
        ("udf #0", 0x0000_0000, Stop),
        ("adr x1, 1000c", 0x1000_0061, Address { to: 1, address: 0x1_000c }),
        ("adr x1, ffff", 0x70ff_ffe1, Address { to: 1, address: 0xffff }),
        ("adrp x1, 17000", 0xf000_0021, Page { to: 1, address: 0x1_7000 }),
        ("adrp x2, f000", 0xf0ff_ffe2, Page { to: 2, address: 0xf000 }),
        ("ldr x8, 10008", 0x5800_0048, Literal { to: 8, address: 0x1_0008 }),
        ("ldr w8, 10008", 0x1800_0048, other(8)),
        ("ldrsw x8, 10008", 0x9800_0048, other(8)),
        ("ldr s8, 10008", 0x1c00_0048, Nothing),
        ("prfm pldl1keep, 10008", 0xd800_0040, Nothing),
        ("mov x0, #0x1234", 0xd282_4680, Number { to: 0, number: 0x1234 }),
        ("mov x0, #0x123400000000", 0xd2c2_4680, Number { to: 0, number: 0x1234_0000_0000 }),
        ("mov w8, #0x8b", 0x5280_1168, Number { to: 8, number: 139 }),
        ("mov x8, #0x8b", 0xd280_1168, Number { to: 8, number: 139 }),
        ("mov x1, #0xfffffffffffffffe", 0x9280_0021, Number { to: 1, number: u64::MAX - 1 }),
        ("mov w1, #0xfffffffe", 0x1280_0021, other(1)),
        ("movk x0, #0xbeef, lsl #16", 0xf2b7_dde0, Part { to: 0, number: 0xbeef, shift: 16 }),
        ("movk w0, #0xbeef", 0x7297_dde0, other(0)),
        ("mov x0, x1", 0xaa01_03e0, Copy { to: 0, from: 1 }),
        ("mov x29, xzr", 0xaa1f_03fd, Copy { to: FP, from: ZERO }),
        ("mov w0, w1", 0x2a01_03e0, other(0)),
        ("mov x29, sp", 0x9100_03fd, Copy { to: FP, from: SP }),
        ("mov sp, x29", 0x9100_03bf, Copy { to: SP, from: FP }),
        ("add x29, sp, #0x20", 0x9100_83fd, Add { to: FP, from: SP, bytes: 32 }),
        ("sub sp, sp, #0x1f0", 0xd107_c3ff, Add { to: SP, from: SP, bytes: -0x1f0 }),
        ("sub sp, sp, #0x5, lsl #12", 0xd140_17ff, Add { to: SP, from: SP, bytes: -0x5000 }),
        ("add w0, w0, #0x1", 0x1100_0400, other(0)),
        ("adds x0, x0, #0x0", 0xb100_0000, Add { to: 0, from: 0, bytes: 0 }),
        ("cmp sp, #0x10", 0xf100_43ff, Add { to: ZERO, from: SP, bytes: -16 }),
        ("sub sp, sp, x8", 0xcb28_63ff, AddRegister { to: SP, from: SP, added: 8, is_sub: true }),
        ("add sp, sp, x12", 0x8b2c_63ff, AddRegister { to: SP, from: SP, added: 12, is_sub: false }),
        ("add x0, x1, x2", 0x8b02_0020, AddRegister { to: 0, from: 1, added: 2, is_sub: false }),
        ("add x0, x1, x2, lsl #3", 0x8b02_0c20, other(0)),
        ("add sp, x1, w2, uxtw", 0x8b22_403f, other(SP)),
        ("subs x0, sp, x8", 0xeb28_63e0, other(0)),
        ("cmp x0, x1", 0xeb01_001f, other(ZERO)),
        ("ccmp x0, x1, #0x5, ne", 0xfa41_1005, Nothing),
        ("csel x0, x1, x2, ne", 0x9a82_1020, other(0)),
        ("madd x3, x1, x2, x4", 0x9b02_1023, other(3)),
        ("rbit x3, x1", 0xdac0_0023, other(3)),
        ("and sp, x13, #0xfffffffffffffff0", 0x927c_edbf, Align { to: SP, from: 13 }),
        ("and x9, x9, #0xffffffffffffffe0", 0x927b_e929, Align { to: 9, from: 9 }),
        ("and x9, x9, #0xff", 0x9240_1d29, other(9)),
        ("and x9, x9, #0xfffffffffffffff", 0x9240_ed29, other(9)),
        ("and sp, x9, #0x7ffffffffffffff0", 0x927c_e93f, other(SP)),
        ("orr sp, x9, #0x1", 0xb240_013f, other(SP)),
        ("tst x9, #0xf", 0xf240_0d3f, other(ZERO)),
        ("ubfx x9, x8, #4, #8", 0xd344_2d09, other(9)),
        ("ror x9, x8, #4", 0x93c8_1109, other(9)),
        ("stp x29, x30, [sp, #-32]!", 0xa9be_7bfd, store(SP, -32, -32, &[29, 30], 16)),
        ("stp x29, x30, [sp, #16]", 0xa901_7bfd, store(SP, 16, 0, &[29, 30], 16)),
        ("stnp x19, x20, [x29, #-16]", 0xa83f_53b3, store(FP, -16, 0, &[19, 20], 16)),
        ("ldp x29, x30, [sp], #32", 0xa8c2_7bfd, load(SP, 0, 32, &[29, 30], 16)),
        ("ldp x29, x30, [sp, #496]", 0xa95f_7bfd, load(SP, 496, 0, &[29, 30], 16)),
        ("stp xzr, x9, [sp, #-16]!", 0xa9bf_27ff, store(SP, -16, -16, &[ZERO, 9], 16)),
        ("stp w1, w2, [sp, #8]", 0x2901_0be1, store(SP, 8, 0, &[], 8)),
        ("stp d8, d9, [sp, #-16]!", 0x6dbf_27e8, store(SP, -16, -16, &[], 16)),
        ("stp q8, q9, [sp, #-32]!", 0xadbf_27e8, store(SP, -32, -32, &[], 32)),
        ("ldp q8, q9, [sp], #32", 0xacc1_27e8, load(SP, 0, 32, &[], 32)),
        ("ldpsw x1, x2, [sp, #8]", 0x6941_0be1, part_load(SP, 8, &[1, 2], 8)),
        ("ldp w1, w2, [sp, #8]", 0x2941_0be1, part_load(SP, 8, &[1, 2], 8)),
        ("str x30, [sp, #-16]!", 0xf81f_0ffe, store(SP, -16, -16, &[30], 8)),
        ("ldr x30, [sp], #16", 0xf841_07fe, load(SP, 0, 16, &[30], 8)),
        ("stur x0, [x29, #-8]", 0xf81f_83a0, store(FP, -8, 0, &[0], 8)),
        ("ldr x0, [x1, #32760]", 0xf97f_fc20, load(1, 32760, 0, &[0], 8)),
        ("ldur x0, [x1, #-3]", 0xf85f_d020, load(1, -3, 0, &[0], 8)),
        ("str xzr, [x9]", 0xf900_013f, store(9, 0, 0, &[ZERO], 8)),
        ("str w1, [sp, #4]", 0xb900_07e1, store(SP, 4, 0, &[], 4)),
        ("strb w1, [sp, #4]", 0x3900_13e1, store(SP, 4, 0, &[], 1)),
        ("ldrh w1, [sp, #4]", 0x7940_0be1, part_load(SP, 4, &[1], 2)),
        ("ldrsw x1, [sp, #4]", 0xb980_07e1, part_load(SP, 4, &[1], 4)),
        ("ldr wzr, [x8]", 0xb940_011f, part_load(8, 0, &[ZERO], 4)),
        ("str q0, [sp, #16]!", 0x3c81_0fe0, store(SP, 16, 16, &[], 16)),
        ("ldr d0, [sp, #16]", 0xfd40_0be0, load(SP, 16, 0, &[], 8)),
        ("prfm pldl1keep, [x0, #64]", 0xf980_2000, Nothing),
        ("prfm pldl1keep, [x0, x1]", 0xf8a1_6800, Nothing),
        ("ldr x0, [x1, x2]", 0xf862_6820, other(0)),
        ("ldr d0, [x1, x2]", 0xfc62_6820, other(ZERO)),
        ("str x0, [sp, x2]", 0xf822_6be0, other(ZERO)),
        ("st1 {v0.16b-v3.16b}, [sp]", 0x4c00_23e0, Nothing),
        ("st1 {v0.16b-v3.16b}, [sp], #64", 0x4c9f_23e0, other(SP)),
        ("ld1 {v0.16b}, [x0], x1", 0x4cc1_7000, other(0)),
        ("fmov x1, d0", 0x9e66_0001, other(1)),
        ("fmov d0, x1", 0x9e67_0020, Nothing),
        ("fmov d29, d0", 0x1e60_401d, Nothing),
        ("fcvtzs w1, d0", 0x1e78_0001, other(1)),
        ("fcvtzs x1, d0, #3", 0x9e58_f401, other(1)),
        ("scvtf d29, x0", 0x9e62_001d, Nothing),
        ("umov w1, v0.b[1]", 0x0e03_3c01, other(1)),
        ("smov x1, v0.h[1]", 0x4e06_2c01, other(1)),
        ("mov v29.d[1], x1", 0x4e18_1c3d, Nothing),
        ("aese v29.16b, v0.16b", 0x4e28_481d, Nothing),
        ("cntd x3", 0x04e0_e3e3, other(3)),
        ("addvl sp, sp, #-1", 0x043f_57ff, other(SP)),
        ("addpl x3, sp, #2", 0x047f_5043, other(3)),
    ];
    for (text, word, operation) in table {
        assert_eq!(Instruction::decode(word, AT).operation, operation, "{text}");
    }
}

#[test]
fn what_an_instruction_writes_includes_a_base_that_it_moves() {
    let written = |word| Instruction::decode(word, AT).written();
    assert_eq!(written(0xa8c2_7bfd), RegisterSet::of(29).with(30).with(SP), "ldp x29, x30, [sp], #32");
    assert_eq!(written(0xa9be_7bfd), RegisterSet::of(SP), "stp x29, x30, [sp, #-32]!");
    assert_eq!(written(0xa901_7bfd), RegisterSet::NONE, "stp x29, x30, [sp, #16]");
    assert_eq!(written(0xd63f_0100), RegisterSet::of(30), "blr x8");
    // ldaxr w1, [x0]; stlxr w2, w1, [x0]; casp x2, x3, x4, x5, [x6]; ldadd x1, x2, [x0]; ldraa x1, [x0, #8]!
    for (word, registers) in [
        (0x885f_fc01, &[1][..]),
        (0x8802_fc01, &[2]),
        (0x4822_7cc4, &[2, 3]),
        (0xf821_0002, &[2]),
        (0xf820_1c01, &[0, 1]),
    ] {
        assert!(registers.iter().all(|register| written(word).contains(*register)), "{word:x}");
    }
}

fn code(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

fn all(bytes: &[u8], mut of: impl FnMut(&mut Aarch64, &Instruction) -> Option<u64>) -> Vec<Option<u64>> {
    let mut arch = Aarch64::default();
    Aarch64::instructions(bytes, AT).map(|instruction| of(&mut arch, &instruction)).collect()
}

#[test]
fn addresses_are_taken_and_called_in_parts() {
    // adrp x8, 0x17000; mov x1, x0; add x8, x8, #0x234; blr x8; blr x8; bl 0xfffc
    let far = code(&[0xf000_0028, 0xaa00_03e1, 0x9108_d108, 0xd63f_0100, 0xd63f_0100, 0x97ff_fffa]);
    let called = all(&far, Arch::callee);
    assert_eq!(called, [None, None, None, Some(0x1_7234), None, Some(0xfffc)], "a call leaves nothing in x8");
    let taken = all(&far, |arch, of| arch.taken_address(of, true));
    assert_eq!(taken, [None, None, Some(0x1_7234), None, None, None]);
    // mov x8, #0x5678; movk x8, #0x1234, lsl #16; movk x8, #0x7f, lsl #32; blr x8; ldr x8, [x0]; blr x8
    let number = code(&[0xd28a_cf08, 0xf2a2_4688, 0xf2c0_0fe8, 0xd63f_0100, 0xf940_0008, 0xd63f_0100]);
    assert_eq!(all(&number, Arch::callee)[3..], [Some(0x7f_1234_5678), None, None]);
    // adr x0, 0x1000c; adr x0, 0xffff: no instruction begins there
    let near = code(&[0x1000_0060, 0x70ff_ffe0]);
    assert_eq!(all(&near, |arch, of| arch.taken_address(of, true)), [Some(0x1_000c), None]);
}

#[test]
fn a_trampoline_leads_where_the_word_behind_it_says() {
    // ldr x8, 8; br x8
    let mut trampoline = code(&[0x5800_0048, 0xd61f_0100]);
    assert_eq!(Aarch64::trampoline(&trampoline), None);
    trampoline.extend(0x7f12_3456_789a_u64.to_le_bytes());
    assert_eq!(Aarch64::trampoline(&trampoline), Some(0x7f12_3456_789a));
    // br x9
    trampoline[4..8].copy_from_slice(&0xd61f_0120_u32.to_le_bytes());
    assert_eq!(Aarch64::trampoline(&trampoline), None);
}

#[test]
fn a_function_ends_with_what_does_not_go_on() {
    let ends = |word| Aarch64::ends_function(&code(&[0xaa00_03e1, word]), 0x1_0004, |place| place == 0x1_0008);
    // ret; br x16; nop; udf #0; bl 0x10008; b 0x10008
    for word in [0xd65f_03c0, 0xd61f_0200, 0xd503_201f, 0, 0x9400_0002, 0x1400_0002] {
        assert!(ends(word), "{word:x}");
    }
    // mov x1, x0; bl 0x1000c; b.ne 0x10008
    for word in [0xaa00_03e1, 0x9400_0003, 0x5400_0041] {
        assert!(!ends(word), "{word:x}");
    }
    assert!(!Aarch64::ends_function(&[0xc0, 3], 2, |_| true));
}

#[test]
fn the_system_call_that_ends_a_handler_and_the_poll_of_a_safepoint_are_known() {
    // mov x8, #139; svc #0; and mov x8, #93; svc #0
    assert!(Aarch64::ends_signal(&code(&[0xd280_1168, 0xd400_0001, 0xd503_201f])));
    assert!(!Aarch64::ends_signal(&code(&[0xd280_0ba8, 0xd400_0001])));
    assert!(!Aarch64::ends_signal(&code(&[0xd280_1168])));
    // ldr wzr, [x8]; ldr w1, [x8]; ldr wzr, [x8, #4]
    let is_poll = |word| Aarch64::is_poll(&Instruction::decode(word, AT));
    assert_eq!([0xb940_011f, 0xb940_0101, 0xb940_051f].map(is_poll), [true, false, false]);
}

fn table_rule(cfa: (u16, i64), return_address: Saved, fp: Saved) -> Rule {
    Aarch64::table_rule(&TableRow { cfa: Some(cfa), return_address, fp })
}

#[test]
fn a_row_of_a_table_has_one_of_some_shapes() {
    use Saved::{At, InRegister, Lost, Otherwise};
    let rule = |rule, cfa_words, fp_words| Rule { rule, cfa_words, fp_words };
    for (cfa, return_address, fp, expected) in [
        ((31, 0), InRegister, InRegister, Aarch64::AS_CALLED),
        ((31, 48), InRegister, InRegister, rule(rule::SP, 6, 0)),
        ((31, 48), At(-40), At(-48), rule(rule::SP, 6, -6)),
        ((29, 48), At(-40), At(-48), rule(rule::FP, 6, -6)),
        ((31, 2048), At(-2040), At(-2048), rule(rule::SP_PAIR, 256, 0)),
        ((29, 2048), At(-2024), At(-2032), rule(rule::FP_PAIR, 256, 2)),
        ((31, 1024), At(-1016), At(-1024), rule(rule::SP, 128, -128)),
        ((31, 16), At(-16), InRegister, rule(rule::SP_RETURN_ONLY, 2, -2)),
        ((29, 16), At(-8), Lost, rule(rule::FP_RETURN_ONLY, 2, -1)),
        ((31, 0), Lost, InRegister, Rule::only(rule::ROOT)),
        // Not beside each other, the frame pointer alone, too far away, not by words, by another register.
        ((31, 48), At(-48), At(-40), Rule::UNSUPPORTED),
        ((31, 48), InRegister, At(-48), Rule::UNSUPPORTED),
        ((31, 4096), At(-2040), At(-2048), Rule::UNSUPPORTED),
        ((31, 2048), At(-2040), InRegister, Rule::UNSUPPORTED),
        ((31, 20), InRegister, InRegister, Rule::UNSUPPORTED),
        ((19, 48), At(-40), At(-48), Rule::UNSUPPORTED),
        ((31, 48), Otherwise, At(-48), Rule::UNSUPPORTED),
        ((31, 48), At(i64::MIN), At(i64::MAX), Rule::UNSUPPORTED),
    ] {
        assert_eq!(table_rule(cfa, return_address, fp), expected, "{cfa:?} {return_address:?} {fp:?}");
    }
}

#[test]
fn an_operand_of_a_probe_is_in_a_register_or_on_the_stack() {
    let place = |register, in_memory, displacement| Some(ArgumentPlace { register, in_memory, displacement });
    for (text, expected) in [
        ("x0", place(0, 0, 0)),
        ("x30", place(240, 0, 0)),
        ("[sp]", place(248, 1, 0)),
        ("[sp, 8]", place(248, 1, 8)),
        ("[x29, #-16]", place(232, 1, -16)),
        ("x31", None),
        ("w0", None),
        ("7", None),
        ("[x0, x1]", None),
        ("[sp, 8", None),
        ("[w0, 8]", None),
        ("[]", None),
        ("", None),
    ] {
        assert_eq!(Aarch64::probe_operand(text), expected, "{text}");
    }
}

proptest! {
    #[test]
    fn any_word_is_survived(word: u32, at: u64) {
        let instruction = Instruction::decode(word, at);
        let step = Aarch64::step(&instruction);
        prop_assert_eq!(step.end, at.wrapping_add(4));
        let mut state = Aarch64::called();
        Aarch64::default().pass(&instruction, 0, &mut state);
        if instruction.written() == RegisterSet::NONE {
            prop_assert_eq!(state.sp(), Aarch64::called().sp());
        }
    }
}

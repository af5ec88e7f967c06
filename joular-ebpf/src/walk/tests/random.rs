//! Tests that every walk ends, whatever the memory says.

use std::{boxed::Box, vec};

use proptest::prelude::*;

use super::{hotspot::jvm, *};
use crate::abi::rule;

for_each_arch!(every_walk_ends, the_noise_is_walked_far);

const RULES: [u8; 6] = [rule::SP, rule::SP, rule::FP, rule::NONE, rule::PLT, rule::SIGNAL];

/// Words that depend on the address, and look like something more often than not.
struct Noise {
    seed: u64,
    mapping: CodeMapping,
    rows: Vec<UnwindRow>,
    jvm: JvmUnwind,
}

impl Noise {
    fn of(seed: u64) -> Self {
        let rows = (0..64).map(|n| UnwindRow {
            address: n * 64,
            cfa_words: (mix(seed, u64::from(n)) % 40) as i16 - 4,
            fp_words: (mix(seed, u64::from(n) << 8) % 8) as i8 - 6,
            rule: RULES[(mix(seed, u64::from(n) << 16) % RULES.len() as u64) as usize],
        });
        let mapping = CodeMapping { start: 0x1000, end: 0x2000, bias: 0x1000, first_row: 0, row_count: 64 };
        Self { seed, mapping, rows: rows.collect(), jvm: jvm() }
    }

    fn walk_on<A: Arch>(&self, walk: &mut Walk<A>) -> End {
        to_the_end(&mut HostWalker(Parts { walk, memory: self, tables: self }))
    }
}

fn mix(seed: u64, value: u64) -> u64 {
    let x = (seed ^ value).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    (x ^ (x >> 29)).wrapping_mul(0x94d0_49bb_1331_11eb) >> 7
}

impl Memory for Noise {
    fn byte(&self, address: u64) -> Result<u8, End> {
        Ok(self.word(address & !7)?.to_le_bytes()[(address & 7) as usize] & 3)
    }

    fn word(&self, address: u64) -> Result<u64, End> {
        let noise = mix(self.seed, address);
        let jvm = &self.jvm;
        match noise % 16 {
            0 => Err(End::UNREADABLE),
            1..=3 => Ok(0x1000 + (noise >> 8 & 0xfff)),
            4..=7 => Ok(jvm.code_low + (noise >> 8 & 0xf_ffff)),
            8..=11 => Ok(address.wrapping_add(noise >> 8 & 0xff8)),
            12 => Ok(jvm.nmethod_names[0]),
            13 => Ok(noise >> 8 & 0xff),
            _ => Ok(noise),
        }
    }

    fn pair(&self, address: u64) -> Result<[u64; 2], End> {
        let mut words = [0; 2];
        read(self, address, &mut words).map(|()| words)
    }

    fn frame(&self, address: u64, words: &mut [u64]) -> Step {
        read(self, address, words)
    }

    fn block(&self, address: u64, bytes: u32, words: &mut BlockWords) -> Step {
        for (index, word) in (0..u64::from(bytes / 8)).zip(words) {
            *word = self.word(address.wrapping_add(index * 8))?;
        }
        Ok(())
    }
}

impl Tables for Noise {
    fn mapping(&self, index: u32) -> Option<&CodeMapping> {
        (index == 0).then_some(&self.mapping)
    }

    fn row(&self, index: u32) -> Option<&UnwindRow> {
        self.rows.get(index as usize)
    }

    fn jvm(&self, _: &ProcessUnwind) -> Option<&JvmUnwind> {
        Some(&self.jvm)
    }
}

fn every_walk_ends<A: Arch>() {
    let pc = prop_oneof![0x1000_u64..0x2000, 0x7000_0000_u64..0x7010_0000, any::<u64>()];
    proptest!(ProptestConfig::with_cases(2_000), |(seed: u64, pc in pc, registers: [u64; 8])| {
        let noise = Noise::of(seed);
        let mut registers = A::registers(&registers);
        registers.pc = pc;
        let mut walk = Box::new(Walk::<A>::default());
        if seed & 1 != 0 {
            registers.sp = STACK;
        }
        if seed & 2 != 0 {
            registers.fp = STACK + 128;
        }
        walk.begin(registers, ProcessUnwind { mapping_count: 1, ..ProcessUnwind::default() });
        let end = noise.walk_on(&mut walk);
        prop_assert!(end != End(walk_end::BUDGET));
        prop_assert!(walk.header.len as usize <= MAX_USER_FRAMES);
    });
}

/// The noise is worth something: walks go on for a while, and end in many ways.
fn the_noise_is_walked_far<A: Arch>() {
    let mut ends = vec![0; 16];
    let mut longest = 0;
    for seed in 0..10_000 {
        let noise = Noise::of(seed);
        let mut walk = Box::new(Walk::<A>::default());
        let pc = if seed % 2 == 0 { 0x1000 + seed % 0xfff } else { 0x7000_0000 + seed * 64 };
        let registers = Registers { pc, sp: STACK, fp: STACK + 64, ..Registers::default() };
        walk.begin(registers, ProcessUnwind { mapping_count: 1, ..ProcessUnwind::default() });
        ends[noise.walk_on(&mut walk).0 as usize] += 1;
        longest = longest.max(walk.header.len);
    }
    assert!(longest >= 6, "{longest}");
    assert!(ends.iter().filter(|count| **count > 0).count() >= 4, "{ends:?}");
}

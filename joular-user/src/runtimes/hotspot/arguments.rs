//! Finds what a compiled C++ function passes to the functions that it calls, from its code.
//!
//! A value is known if it is one of the function's own arguments, or was loaded from memory that such an argument leads
//! to. Every branch is followed once, with the values of the way on which it was reached first. So a value that is told
//! is one that the function may pass, and some are not found.

use std::collections::BTreeSet;

use crate::arch::{ARGUMENTS, Arch, Flow, Moved, Moves, Source, Step};

const REGISTERS: usize = 32;
const MAX_LOADS: usize = 3;
/// Functions that pass something on are shorter.
const MAX_INSTRUCTIONS: usize = 8192;

/// A value: an argument of the function, or what is found in memory from there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Path {
    pub argument: usize,
    offsets: [u64; MAX_LOADS],
    loads: usize,
}

impl Path {
    pub const fn of_argument(argument: usize) -> Self {
        Self { argument, offsets: [0; MAX_LOADS], loads: 0 }
    }

    /// What is loaded from this many bytes behind it; `None`: that is too far away.
    pub fn loaded_at(mut self, offset: u64) -> Option<Self> {
        *self.offsets.get_mut(self.loads)? = offset;
        self.loads += 1;
        Some(self)
    }

    /// How many times memory was read for it.
    pub const fn loads(self) -> usize {
        self.loads
    }
}

/// A call, or a jump that leaves the function as its last step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Call {
    /// Address of the function that is called.
    pub callee: u64,
    pub arguments: [Option<Path>; ARGUMENTS],
}

/// What a function calls by address, in no particular order. Its code begins at `start`.
pub fn calls<A: Arch>(code: &[u8], start: u64) -> Vec<Call> {
    let arch = A::default();
    let mut follower = Follower { code, start, arch, seen: BTreeSet::new(), ways: Vec::new(), calls: Vec::new() };
    let mut values = Values::default();
    for (argument, register) in A::ARGUMENTS.into_iter().enumerate() {
        values.set(register, Some(Path::of_argument(argument)));
    }
    follower.ways.push((start, values));
    while let Some((address, values)) = follower.ways.pop() {
        follower.follow(address, values);
    }
    follower.calls
}

/// What registers hold.
#[derive(Clone, Copy, Debug, Default)]
struct Values([Option<Path>; REGISTERS]);

impl Values {
    fn get(&self, register: usize) -> Option<Path> {
        self.0.get(register).copied().flatten()
    }

    fn set(&mut self, register: usize, value: Option<Path>) {
        if let Some(known) = self.0.get_mut(register) {
            *known = value;
        }
    }

    /// Does what an instruction does that goes on to the next one.
    fn step(&mut self, moves: Moves) {
        let moved = moves.moved.map(|moved| moved.map(|Moved { to, from }| (to, self.value(from))));
        moves.written.registers().for_each(|register| self.set(register, None));
        for (register, value) in moved.into_iter().flatten() {
            self.set(register, value);
        }
    }

    fn value(&self, from: Source) -> Option<Path> {
        match from {
            Source::Register(register) => self.get(register),
            Source::Memory { base, offset } => self.get(base)?.loaded_at(offset),
        }
    }

    /// Forgets what a called function leaves something else in.
    fn call<A: Arch>(&mut self) {
        let is_lost = |register: &usize| !A::KEPT_BY_CALLS.contains(*register);
        (0..REGISTERS).filter(is_lost).for_each(|register| self.set(register, None));
    }
}

struct Follower<'c, A> {
    code: &'c [u8],
    start: u64,
    arch: A,
    seen: BTreeSet<u64>,
    /// Where to go on, with what is known there.
    ways: Vec<(u64, Values)>,
    calls: Vec<Call>,
}

impl<A: Arch> Follower<'_, A> {
    fn follow(&mut self, mut address: u64, mut values: Values) {
        while let Some((step, moves)) = self.instruction(address) {
            if self.seen.len() >= MAX_INSTRUCTIONS || !self.seen.insert(address) {
                return;
            }
            address = step.end;
            match step.flow {
                Flow::Next => values.step(moves),
                Flow::Call(target) => {
                    self.call(target, &values);
                    values.call::<A>();
                }
                Flow::IndirectCall => values.call::<A>(),
                Flow::Branch(target) => self.branch(target, &values),
                Flow::Jump(target) => return self.branch(target, &values),
                Flow::IndirectJump | Flow::Return | Flow::Stop | Flow::Invalid => return,
            }
        }
    }

    fn branch(&mut self, target: u64, values: &Values) {
        if self.contains(target) {
            self.ways.push((target, *values));
        } else {
            self.call(target, values);
        }
    }

    fn call(&mut self, callee: u64, values: &Values) {
        self.calls.push(Call { callee, arguments: A::ARGUMENTS.map(|register| values.get(register)) });
    }

    fn contains(&self, address: u64) -> bool {
        address.wrapping_sub(self.start) < self.code.len() as u64
    }

    fn instruction(&mut self, address: u64) -> Option<(Step, Moves)> {
        let at = usize::try_from(address.wrapping_sub(self.start)).ok()?;
        let instruction = A::instructions(self.code.get(at..)?, address).next()?;
        let step = A::step(&instruction);
        (step.flow != Flow::Invalid).then(|| (step, self.arch.moves(&instruction)))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::arch::{Aarch64, X86_64};

    const START: u64 = 0x1000;

    fn calls(code: &[u8], start: u64) -> Vec<Call> {
        super::calls::<X86_64>(code, start)
    }

    fn path(argument: usize, offsets: &[u64]) -> Option<Path> {
        offsets.iter().try_fold(Path::of_argument(argument), |path, offset| path.loaded_at(*offset))
    }

    #[test]
    fn arguments_are_followed_through_registers_memory_and_branches() {
        let code = [
            0x48, 0x8b, 0x47, 0x10, // mov rax, [rdi+0x10]
            0x48, 0x8b, 0x30, // mov rsi, [rax]
            0x80, 0x7f, 0x19, 0x00, // cmp byte [rdi+0x19], 0
            0x74, 0x0a, // je +10
            0x48, 0x8b, 0x4f, 0x08, // mov rcx, [rdi+8]
            0x90, // nop
            0xe9, 0xe9, 0x0f, 0x00, 0x00, // jmp 0x2000
            0x4c, 0x8b, 0x47, 0x08, // mov r8, [rdi+8]
            0xe8, 0xe0, 0x1f, 0x00, 0x00, // call 0x3000
            0x48, 0x89, 0xf2, // mov rdx, rsi
            0xe9, 0xd8, 0x2f, 0x00, 0x00, // jmp 0x4000
        ];
        let calls = calls(&code, START);
        let of = |callee| calls.iter().find(|call| call.callee == callee).unwrap().arguments;
        let (this, object, thread) = (path(0, &[]), path(0, &[0x10, 0]), path(0, &[8]));
        assert_eq!(of(0x2000), [this, object, path(2, &[]), thread, path(4, &[]), path(5, &[])]);
        assert_eq!(of(0x3000), [this, object, path(2, &[]), path(3, &[]), thread, path(5, &[])]);
        assert_eq!(of(0x4000), [None; 6], "a call leaves nothing in them");
        assert_eq!(calls.len(), 3);
    }

    #[test]
    fn values_survive_calls_in_registers_that_calls_preserve_and_nowhere_else() {
        let code = [
            0x48, 0x89, 0xfb, // mov rbx, rdi
            0xff, 0x10, // call [rax]
            0x8b, 0x73, 0x08, // mov esi, [rbx+8]
            0x48, 0x8b, 0x14, 0x0b, // mov rdx, [rbx+rcx]
            0x48, 0x89, 0xdf, // mov rdi, rbx
            0x31, 0xdb, // xor ebx, ebx
            0x48, 0x89, 0xd9, // mov rcx, rbx
            0xe8, 0xe7, 0x0f, 0x00, 0x00, // call 0x2000
            0xc3, // ret
        ];
        let found = calls(&code, START);
        assert_eq!(found, [Call { callee: 0x2000, arguments: [path(0, &[]), None, None, None, None, None] }]);
    }

    fn words(words: &[u32]) -> Vec<u8> {
        words.iter().flat_map(|word| word.to_le_bytes()).collect()
    }

    #[test]
    fn arguments_are_followed_on_aarch64() {
        let code = words(&[
            0xf940_0809, // ldr x9, [x0, #16]
            0xf940_0121, // ldr x1, [x9]
            0x3940_640a, // ldrb w10, [x0, #25]
            0x3400_008a, // cbz w10, +16
            0xf940_0403, // ldr x3, [x0, #8]
            0xd503_201f, // nop
            0x1400_03fa, // b 0x2000
            0xf940_0404, // ldr x4, [x0, #8]
            0x9400_07f8, // bl 0x3000
            0xaa01_03e2, // mov x2, x1
            0x1400_0bf6, // b 0x4000
        ]);
        let calls = super::calls::<Aarch64>(&code, START);
        let of = |callee| calls.iter().find(|call| call.callee == callee).unwrap().arguments;
        let (this, object, thread) = (path(0, &[]), path(0, &[0x10, 0]), path(0, &[8]));
        assert_eq!(of(0x2000), [this, object, path(2, &[]), thread, path(4, &[]), path(5, &[])]);
        assert_eq!(of(0x3000), [this, object, path(2, &[]), path(3, &[]), thread, path(5, &[])]);
        assert_eq!(of(0x4000), [None; 6], "a call leaves nothing in them");
        assert_eq!(calls.len(), 3);
    }

    #[test]
    fn registers_that_calls_preserve_on_aarch64_keep_values() {
        let code = words(&[
            0xa9be_7bfd, // stp x29, x30, [sp, #-32]!
            0xa942_5013, // ldp x19, x20, [x0, #32]
            0xd63f_0100, // blr x8
            0xaa13_03e0, // mov x0, x19
            0xaa14_03e1, // mov x1, x20
            0xb940_0a62, // ldr w2, [x19, #8]
            0xf864_6a63, // ldr x3, [x19, x4]
            0x2a14_03f4, // mov w20, w20
            0xaa14_03e5, // mov x5, x20
            0x9400_03f7, // bl 0x2000
            0xd65f_03c0, // ret
        ]);
        let found = super::calls::<Aarch64>(&code, START);
        let arguments = [path(0, &[32]), path(0, &[40]), None, None, None, None];
        assert_eq!(found, [Call { callee: 0x2000, arguments }]);
    }

    #[test]
    fn circles_end() {
        assert_eq!(calls(&[0xeb, 0xfe], START), []);
        // mov rdi, [rdi]; jmp to it
        assert_eq!(calls(&[0x48, 0x8b, 0x3f, 0xeb, 0xfb], START), []);
    }

    proptest! {
        #[test]
        fn any_bytes_are_survived(bytes: Vec<u8>, start: u64) {
            for call in calls(&bytes, start).into_iter().chain(super::calls::<Aarch64>(&bytes, start)) {
                prop_assert!(call.arguments.iter().flatten().all(|path| path.loads() <= MAX_LOADS));
            }
        }
    }
}

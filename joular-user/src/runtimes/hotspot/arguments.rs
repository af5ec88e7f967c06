//! Finds what a compiled C++ function passes to the functions that it calls, from its x86-64 code.
//!
//! A value is known if it is one of the function's own arguments, or was loaded from memory that such an argument leads
//! to. Every branch is followed once, with the values of the way on which it was reached first. So a value that is told
//! is one that the function may pass, and some are not found.

use std::collections::BTreeSet;

use iced_x86::{
    Decoder, DecoderOptions, FlowControl, Instruction, InstructionInfoFactory, Mnemonic, OpAccess, OpKind, Register,
};

/// Arguments that are passed in registers, in this order.
const ARGUMENTS: [Register; 6] =
    [Register::RDI, Register::RSI, Register::RDX, Register::RCX, Register::R8, Register::R9];
/// What a called function leaves something else in.
const NOT_PRESERVED: [Register; 9] = [
    Register::RAX,
    Register::RCX,
    Register::RDX,
    Register::RSI,
    Register::RDI,
    Register::R8,
    Register::R9,
    Register::R10,
    Register::R11,
];
const REGISTERS: usize = 16;
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
    pub arguments: [Option<Path>; ARGUMENTS.len()],
}

/// What a function calls by address, in no particular order. Its code begins at `start`.
pub fn calls(code: &[u8], start: u64) -> Vec<Call> {
    let mut follower = Follower { code, start, seen: BTreeSet::new(), ways: Vec::new(), calls: Vec::new() };
    let mut values = Values::default();
    for (argument, register) in ARGUMENTS.into_iter().enumerate() {
        values.set(register, Some(Path::of_argument(argument)));
    }
    follower.ways.push((start, values));
    let mut information = InstructionInfoFactory::new();
    while let Some((address, values)) = follower.ways.pop() {
        follower.follow(address, values, &mut information);
    }
    follower.calls
}

/// What registers hold.
#[derive(Clone, Copy, Debug, Default)]
struct Values([Option<Path>; REGISTERS]);

impl Values {
    fn get(&self, register: Register) -> Option<Path> {
        if register.is_gpr64() { self.0[register.number()] } else { None }
    }

    fn set(&mut self, register: Register, value: Option<Path>) {
        let whole = register.full_register();
        if whole.is_gpr64() {
            self.0[whole.number()] = value;
        }
    }

    /// Does what an instruction does that goes on to the next one.
    fn step(&mut self, instruction: &Instruction, information: &mut InstructionInfoFactory) {
        let moved = (instruction.mnemonic() == Mnemonic::Mov && instruction.op0_kind() == OpKind::Register)
            .then(|| self.moved(instruction))
            .flatten();
        for used in information.info(instruction).used_registers() {
            if !matches!(used.access(), OpAccess::Read | OpAccess::CondRead | OpAccess::None) {
                self.set(used.register(), None);
            }
        }
        if moved.is_some() {
            self.set(instruction.op0_register(), moved);
        }
    }

    /// What is moved to a register of 64 bits.
    fn moved(&self, instruction: &Instruction) -> Option<Path> {
        if !instruction.op0_register().is_gpr64() {
            return None;
        }
        match instruction.op1_kind() {
            OpKind::Register => self.get(instruction.op1_register()),
            OpKind::Memory
                if instruction.memory_index() == Register::None && instruction.segment_prefix() == Register::None =>
            {
                self.get(instruction.memory_base())?.loaded_at(instruction.memory_displacement64())
            }
            _ => None,
        }
    }
}

struct Follower<'c> {
    code: &'c [u8],
    start: u64,
    seen: BTreeSet<u64>,
    /// Where to go on, with what is known there.
    ways: Vec<(u64, Values)>,
    calls: Vec<Call>,
}

impl Follower<'_> {
    fn follow(&mut self, mut address: u64, mut values: Values, information: &mut InstructionInfoFactory) {
        while let Some(instruction) = self.instruction(address) {
            if self.seen.len() >= MAX_INSTRUCTIONS || !self.seen.insert(address) {
                return;
            }
            address = instruction.next_ip();
            match instruction.flow_control() {
                FlowControl::Next => values.step(&instruction, information),
                FlowControl::Call => {
                    self.call(instruction.near_branch_target(), &values);
                    NOT_PRESERVED.into_iter().for_each(|register| values.set(register, None));
                }
                FlowControl::IndirectCall => {
                    NOT_PRESERVED.into_iter().for_each(|register| values.set(register, None));
                }
                FlowControl::ConditionalBranch => self.branch(instruction.near_branch_target(), &values),
                FlowControl::UnconditionalBranch => return self.branch(instruction.near_branch_target(), &values),
                _ => return,
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
        self.calls.push(Call { callee, arguments: ARGUMENTS.map(|register| values.get(register)) });
    }

    fn contains(&self, address: u64) -> bool {
        address.wrapping_sub(self.start) < self.code.len() as u64
    }

    fn instruction(&self, address: u64) -> Option<Instruction> {
        let at = usize::try_from(address.wrapping_sub(self.start)).ok()?;
        let mut decoder = Decoder::with_ip(64, self.code.get(at..)?, address, DecoderOptions::NONE);
        decoder.can_decode().then(|| decoder.decode()).filter(|instruction| !instruction.is_invalid())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const START: u64 = 0x1000;

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

    #[test]
    fn circles_end() {
        assert_eq!(calls(&[0xeb, 0xfe], START), []);
        // mov rdi, [rdi]; jmp to it
        assert_eq!(calls(&[0x48, 0x8b, 0x3f, 0xeb, 0xfb], START), []);
    }

    proptest! {
        #[test]
        fn any_bytes_are_survived(bytes: Vec<u8>, start: u64) {
            for call in calls(&bytes, start) {
                prop_assert!(call.arguments.iter().flatten().all(|path| path.loads() <= MAX_LOADS));
            }
        }
    }
}

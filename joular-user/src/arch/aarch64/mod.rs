//! Implements what depends on the processor for aarch64 (A64 code, AAPCS64).

pub mod instruction;
mod memory;
mod pass;
#[cfg(test)]
mod tests;

use instruction::{Access, INSTRUCTION_BYTES, Instruction, Operation};
use joular_ebpf::{
    abi::{ArgumentPlace, rule},
    walk,
};

use super::{
    ARGUMENTS, Arch, Flow, Moved, Moves, Processor, RegisterSet, Rule, Saved, Source, Step, TableRow, state::State,
    words,
};

/// Numbers of registers in unwind tables (DWARF for the Arm 64-bit architecture, 4.1). The return address's is in each table.
mod dwarf {
    pub const FP: u16 = 29;
    pub const SP: u16 = 31;
}

const NOP: u32 = 0xd503_201f;
/// `mov x8, #139` and `svc #0`.
const RT_SIGRETURN: [u32; 2] = [0xd280_1168, 0xd400_0001];

#[derive(Debug, Default)]
pub struct Aarch64 {
    /// Numbers that registers got from the instructions passed so far.
    numbers: [Option<u64>; 32],
}

impl Aarch64 {
    fn held(&self, register: usize) -> Option<u64> {
        self.numbers.get(register).copied().flatten()
    }

    fn remember(&mut self, instruction: &Instruction) {
        let number = instruction.number(|register| self.held(register));
        let is_call = matches!(instruction.operation, Operation::Call(_) | Operation::IndirectCall(_));
        let written = instruction.written();
        for (register, held) in self.numbers.iter_mut().enumerate() {
            if written.contains(register) || is_call && !Self::KEPT_BY_CALLS.contains(register) {
                *held = None;
            }
        }
        if let Some((to, number)) = number
            && let Some(held) = self.numbers.get_mut(to)
        {
            *held = Some(number);
        }
    }
}

impl Arch for Aarch64 {
    type Instruction = Instruction;
    type Walk = walk::arch::Aarch64;

    const PROCESSOR: Processor = Processor::Aarch64;
    const MACHINE: u16 = 183;
    const VENDOR: gimli::Vendor = gimli::Vendor::AArch64;
    /// GCC aligns to 32 bytes where a processor is not named, and LLVM to 16.
    const FUNCTION_ALIGNMENT_BYTES: u64 = 32;
    const CALL_PUSHES: bool = false;
    const AS_CALLED: Rule = Rule::sp(0);
    const ARGUMENTS: [usize; ARGUMENTS] = [0, 1, 2, 3, 4, 5];
    const KEPT_BY_CALLS: RegisterSet = pass::KEPT_BY_CALLS;
    const READS_NATIVE_IMAGES: bool = false;
    const DWARF_FP: u16 = dwarf::FP;

    fn instructions(code: &[u8], start: u64) -> impl Iterator<Item = Instruction> {
        let words = code.as_chunks::<INSTRUCTION_BYTES>().0.iter().map(|word| u32::from_le_bytes(*word));
        let places = (0_u64..).map(move |index| start.wrapping_add(index * INSTRUCTION_BYTES as u64));
        words.zip(places).map(|(word, at)| Instruction::decode(word, at))
    }

    fn step(instruction: &Instruction) -> Step {
        let flow = match instruction.operation {
            Operation::Call(target) => Flow::Call(target),
            Operation::IndirectCall(_) => Flow::IndirectCall,
            Operation::Jump(target) => Flow::Jump(target),
            Operation::Branch(target) => Flow::Branch(target),
            Operation::IndirectJump(_) => Flow::IndirectJump,
            Operation::Return => Flow::Return,
            Operation::Stop => Flow::Stop,
            Operation::Invalid => Flow::Invalid,
            _ => Flow::Next,
        };
        Step { at: instruction.at, end: instruction.at.wrapping_add(INSTRUCTION_BYTES as u64), flow }
    }

    fn called() -> State {
        pass::called()
    }

    fn pass(&mut self, instruction: &Instruction, at: u32, state: &mut State) {
        pass::pass(state, instruction, at);
    }

    fn rule(state: &State) -> Rule {
        pass::rule(state)
    }

    fn moves(&mut self, instruction: &Instruction) -> Moves {
        let moved = match instruction.operation {
            Operation::Copy { to, from } => [Some(Moved { to, from: Source::Register(from) }), None],
            Operation::Access(Access { is_load: true, base, offset, words: [first, second], .. }) => {
                let loaded = |to: Option<usize>, bytes: i64| {
                    let offset = offset.wrapping_add(bytes).cast_unsigned();
                    to.map(|to| Moved { to, from: Source::Memory { base, offset } })
                };
                [loaded(first, 0), loaded(second, 8)]
            }
            _ => [None, None],
        };
        Moves { written: instruction.written(), moved }
    }

    fn callee(&mut self, instruction: &Instruction) -> Option<u64> {
        let callee = match instruction.operation {
            Operation::Call(target) => Some(target),
            Operation::IndirectCall(register) => self.held(register),
            _ => None,
        };
        self.remember(instruction);
        callee
    }

    fn trampoline(code: &[u8]) -> Option<u64> {
        let mut instructions = Self::instructions(code, 0);
        let Operation::Literal { to, address } = instructions.next()?.operation else { return None };
        if instructions.next()?.operation != Operation::IndirectJump(to) {
            return None;
        }
        let word = code.get(usize::try_from(address).ok()?..)?.first_chunk()?;
        Some(u64::from_le_bytes(*word))
    }

    fn taken_address(&mut self, instruction: &Instruction, _: bool) -> Option<u64> {
        let address = match instruction.operation {
            Operation::Address { address, .. } => Some(address),
            Operation::Add { from, bytes, .. } => self.held(from).map(|page| page.wrapping_add_signed(bytes)),
            _ => None,
        };
        self.remember(instruction);
        address.filter(|address| address.is_multiple_of(INSTRUCTION_BYTES as u64))
    }

    fn places_that_name(code: &[u8], start: u64, address: u64) -> impl Iterator<Item = u64> {
        let mut arch = Self::default();
        Self::instructions(code, start).filter_map(move |instruction| {
            let named = match instruction.operation {
                Operation::Address { address, .. } => Some(address),
                Operation::Add { from, bytes, .. } => arch.held(from).map(|page| page.wrapping_add_signed(bytes)),
                Operation::Access(Access { base, offset, .. }) => {
                    arch.held(base).map(|page| page.wrapping_add_signed(offset))
                }
                _ => None,
            };
            arch.remember(&instruction);
            (named == Some(address)).then_some(instruction.at)
        })
    }

    fn places_that_lead(code: &[u8], start: u64, is_meant: impl Fn(u64) -> bool) -> impl Iterator<Item = u64> {
        Self::instructions(code, start).filter_map(move |instruction| match instruction.operation {
            Operation::Call(target) | Operation::Jump(target) if is_meant(target) => Some(instruction.at),
            _ => None,
        })
    }

    fn ends_function(code: &[u8], end: u32, is_code: impl Fn(u32) -> bool) -> bool {
        let Some(word) = code.last_chunk().map(|word| u32::from_le_bytes(*word)) else { return false };
        let at = u64::from(end).wrapping_sub(INSTRUCTION_BYTES as u64);
        match Instruction::decode(word, at).operation {
            Operation::Return | Operation::IndirectJump(_) | Operation::Stop => true,
            // What is called last does not return.
            Operation::Call(target) | Operation::Jump(target) => u32::try_from(target).is_ok_and(is_code),
            _ => word == NOP,
        }
    }

    fn ends_signal(code: &[u8]) -> bool {
        let words = code.as_chunks().0.iter().map(|word| u32::from_le_bytes(*word));
        words.take(RT_SIGRETURN.len()).eq(RT_SIGRETURN)
    }

    /// `ldr wzr, [x8]`, of any register.
    fn is_poll(instruction: &Instruction) -> bool {
        instruction.word & 0xffff_fc1f == 0xb940_001f
    }

    fn table_rule(row: &TableRow) -> Rule {
        let Some((base, cfa_words)) = row.base(dwarf::SP, dwarf::FP) else {
            let is_root = row.return_address == Saved::Lost;
            return if is_root { Rule::only(rule::ROOT) } else { Rule::UNSUPPORTED };
        };
        let kept = match (row.return_address, row.fp) {
            (Saved::Lost, _) => return Rule::only(rule::ROOT),
            (Saved::InRegister, Saved::InRegister | Saved::Lost) => Some(Kept::InRegisters),
            (Saved::At(return_at), Saved::At(fp_at)) if fp_at.checked_add(8) == Some(return_at) => {
                words(fp_at).map(Kept::Pair)
            }
            (Saved::At(return_at), Saved::InRegister | Saved::Lost) => words(return_at).map(Kept::Return),
            _ => None,
        };
        kept.and_then(|kept| kept.rule(base, cfa_words)).unwrap_or(Rule::UNSUPPORTED)
    }

    fn plt_pushes_at(_: &[u8]) -> Option<u64> {
        None
    }

    /// `x0` in a register, `[sp, 8]` on the stack.
    fn probe_operand(operand: &str) -> Option<ArgumentPlace> {
        let Some(memory) = operand.strip_prefix('[') else {
            return Some(ArgumentPlace { register: saved_at(operand)?, in_memory: 0, displacement: 0 });
        };
        let memory = memory.strip_suffix(']')?;
        let (base, displacement) = memory.split_once(',').unwrap_or((memory, "0"));
        let displacement = displacement.trim();
        let displacement = displacement.strip_prefix('#').unwrap_or(displacement).parse().ok()?;
        Some(ArgumentPlace { register: saved_at(base)?, in_memory: 1, displacement })
    }
}

/// Where the return address and the caller's frame pointer are; places are in words from the frame address.
enum Kept {
    InRegisters,
    /// The frame pointer here, the return address in the word above.
    Pair(i64),
    /// The return address here, the frame pointer in its register.
    Return(i64),
}

impl Kept {
    /// The rule for a frame address that is found by this one, if a row can express it.
    fn rule(&self, base: u8, cfa_words: i16) -> Option<Rule> {
        let fp_words = |words: i64| i8::try_from(words).ok();
        let below = |words: i64| fp_words(words).filter(|words| *words != 0);
        let (rule, fp_words) = match (self, base) {
            (Self::InRegisters, _) => (base, 0),
            (Self::Pair(words), _) if below(*words).is_some() => (base, below(*words)?),
            (Self::Pair(words), rule::SP) => (rule::SP_PAIR, fp_words(words.checked_add(cfa_words.into())?)?),
            (Self::Pair(words), rule::FP) => (rule::FP_PAIR, fp_words(words.checked_add(cfa_words.into())?)?),
            (Self::Return(words), rule::SP) => (rule::SP_RETURN_ONLY, below(*words)?),
            (Self::Return(words), rule::FP) => (rule::FP_RETURN_ONLY, below(*words)?),
            _ => return None,
        };
        Some(Rule { rule, cfa_words, fp_words })
    }
}

/// Offset of a register in `struct user_pt_regs` (`arch/arm64/include/uapi/asm/ptrace.h`).
fn saved_at(name: &str) -> Option<u32> {
    let number: u32 = match name {
        "sp" => 31,
        _ => name.strip_prefix('x')?.parse().ok().filter(|number| *number < 31)?,
    };
    Some(8 * number)
}

//! Implements what depends on the processor for x86-64. Instructions are decoded by `iced_x86`: their lengths and
//! operands have too many forms to be decoded by hand.

mod pass;

use iced_x86::{
    Code, Decoder, DecoderOptions, FlowControl, Instruction, InstructionInfoFactory, Mnemonic, OpKind, Register,
};
pub use joular_ebpf::walk::arch::x86_64::plt;
use joular_ebpf::{
    abi::{ArgumentPlace, rule},
    walk,
};

use super::{
    ARGUMENTS, Arch, Flow, Moved, Moves, Processor, RegisterSet, Rule, Saved, Source, Step, TableRow, state::State,
    words,
};

/// Numbers of registers in unwind tables (System V ABI, AMD64 supplement, 3.6.2), wherever this runs.
mod dwarf {
    pub const FP: u16 = 6;
    pub const SP: u16 = 7;
}

#[derive(Debug)]
pub struct X86_64 {
    information: InstructionInfoFactory,
}

impl Default for X86_64 {
    fn default() -> Self {
        Self { information: InstructionInfoFactory::new() }
    }
}

impl Arch for X86_64 {
    type Instruction = Instruction;
    type Walk = walk::arch::X86_64;

    const PROCESSOR: Processor = Processor::X86_64;
    const MACHINE: u16 = 62;
    const VENDOR: gimli::Vendor = gimli::Vendor::Default;
    const FUNCTION_ALIGNMENT_BYTES: u64 = 16;
    const CALL_PUSHES: bool = true;
    const AS_CALLED: Rule = Rule::sp(1);
    /// rdi, rsi, rdx, rcx, r8, r9.
    const ARGUMENTS: [usize; ARGUMENTS] = [7, 6, 2, 1, 8, 9];
    const KEPT_BY_CALLS: RegisterSet = pass::KEPT_BY_CALLS;
    const READS_NATIVE_IMAGES: bool = true;
    const DWARF_FP: u16 = dwarf::FP;

    fn instructions(code: &[u8], start: u64) -> impl Iterator<Item = Instruction> {
        Decoder::with_ip(64, code, start, DecoderOptions::NONE).into_iter()
    }

    fn step(instruction: &Instruction) -> Step {
        let flow = match instruction.flow_control() {
            _ if instruction.is_invalid() => Flow::Invalid,
            // In a process it is a fault: nothing comes behind it.
            _ if instruction.mnemonic() == Mnemonic::Hlt => Flow::Stop,
            FlowControl::Next => Flow::Next,
            FlowControl::Call => Flow::Call(instruction.near_branch_target()),
            FlowControl::IndirectCall => Flow::IndirectCall,
            FlowControl::ConditionalBranch => Flow::Branch(instruction.near_branch_target()),
            FlowControl::UnconditionalBranch => Flow::Jump(instruction.near_branch_target()),
            FlowControl::IndirectBranch => Flow::IndirectJump,
            FlowControl::Return => Flow::Return,
            FlowControl::Interrupt | FlowControl::XbeginXabortXend | FlowControl::Exception => Flow::Stop,
        };
        Step { at: instruction.ip(), end: instruction.next_ip(), flow }
    }

    fn called() -> State {
        pass::called()
    }

    fn pass(&mut self, instruction: &Instruction, at: u32, state: &mut State) {
        pass::Pass { state, at, factory: &mut self.information }.pass(instruction);
    }

    fn rule(state: &State) -> Rule {
        pass::rule(state)
    }

    fn moves(&mut self, instruction: &Instruction) -> Moves {
        let mut moves = Moves { moved: [moved(instruction), None], ..Moves::default() };
        for used in self.information.info(instruction).used_registers() {
            if pass::is_written(used.access())
                && let Some(register) = pass::general(used.register())
            {
                moves.written = moves.written.with(register);
            }
        }
        moves
    }

    fn callee(&mut self, instruction: &Instruction) -> Option<u64> {
        (instruction.flow_control() == FlowControl::Call).then(|| instruction.near_branch_target())
    }

    fn trampoline(_: &[u8]) -> Option<u64> {
        None
    }

    fn taken_address(&mut self, instruction: &Instruction, is_movable: bool) -> Option<u64> {
        match instruction.code() {
            // Elsewhere it is a number.
            Code::Mov_r32_imm32 if !is_movable => Some(instruction.immediate32().into()),
            _ if instruction.mnemonic() == Mnemonic::Lea && instruction.is_ip_rel_memory_operand() => {
                Some(instruction.ip_rel_memory_address())
            }
            _ => None,
        }
    }

    fn places_that_name(code: &[u8], start: u64, address: u64) -> impl Iterator<Item = u64> {
        code.array_windows().enumerate().filter_map(move |(at, operand)| {
            let end = start.wrapping_add(at as u64 + 4);
            let named = displaced(end, *operand);
            // A byte that it is compared with may come after it.
            (named == address || named.wrapping_add(1) == address).then_some(end)
        })
    }

    fn places_that_lead(code: &[u8], start: u64, is_meant: impl Fn(u64) -> bool) -> impl Iterator<Item = u64> {
        code.array_windows().enumerate().filter_map(move |(at, instruction)| {
            let [0xe8 | 0xe9, a, b, c, d] = *instruction else { return None };
            let end = start.wrapping_add(at as u64 + 5);
            is_meant(displaced(end, [a, b, c, d])).then_some(end)
        })
    }

    fn ends_function(code: &[u8], end: u32, is_code: impl Fn(u32) -> bool) -> bool {
        const RET: u8 = 0xc3;
        const HLT: u8 = 0xf4;
        const NOP: u8 = 0x90;
        const INT3: u8 = 0xcc;
        const CALL: u8 = 0xe8;
        const JMP: u8 = 0xe9;
        const JMP_NEAR: u8 = 0xeb;
        let leads = |offset: i32| end.checked_add_signed(offset).is_some_and(&is_code);
        match code {
            [.., RET | HLT | NOP | INT3] => true,
            // What is called last does not return.
            [.., CALL | JMP, a, b, c, d] if leads(i32::from_le_bytes([*a, *b, *c, *d])) => true,
            [.., JMP_NEAR, offset] => leads(offset.cast_signed().into()),
            _ => false,
        }
    }

    fn ends_signal(code: &[u8]) -> bool {
        let forms: [&[u8]; 2] = [b"\x48\xc7\xc0\x0f\0\0\0\x0f\x05", b"\xb8\x0f\0\0\0\x0f\x05"];
        forms.iter().any(|form| code.starts_with(form))
    }

    fn is_poll(instruction: &Instruction) -> bool {
        instruction.mnemonic() == Mnemonic::Test && instruction.op0_kind() == OpKind::Memory
    }

    fn table_rule(row: &TableRow) -> Rule {
        match row.return_address {
            Saved::Lost => return Rule::only(rule::ROOT),
            Saved::At(-8) => {}
            _ => return Rule::UNSUPPORTED,
        }
        let fp_words = match row.fp {
            Saved::InRegister | Saved::Lost => Some(0),
            Saved::At(offset) => words(offset).filter(|&words| words != 0),
            Saved::Otherwise => None,
        };
        let fp_words = fp_words.and_then(|words| i8::try_from(words).ok());
        match (row.base(dwarf::SP, dwarf::FP), fp_words) {
            (Some((rule, cfa_words)), Some(fp_words)) => Rule { rule, cfa_words, fp_words },
            _ => Rule::UNSUPPORTED,
        }
    }

    fn plt_pushes_at(expression: &[u8]) -> Option<u64> {
        plt::pushes_at(expression)
    }

    /// `%rax` in a register, `-16(%rbp)` on the stack.
    fn probe_operand(operand: &str) -> Option<ArgumentPlace> {
        if let Some(name) = operand.strip_prefix('%') {
            return Some(ArgumentPlace { register: saved_at(name)?, in_memory: 0, displacement: 0 });
        }
        let (displacement, base) = operand.strip_suffix(')')?.split_once("(%")?;
        let displacement = if displacement.is_empty() { 0 } else { displacement.parse().ok()? };
        Some(ArgumentPlace { register: saved_at(base)?, in_memory: 1, displacement })
    }
}

/// What an operand before an instruction's end names.
fn displaced(end: u64, operand: [u8; 4]) -> u64 {
    end.wrapping_add_signed(i32::from_le_bytes(operand).into())
}

/// What is moved to a register of 64 bits.
fn moved(instruction: &Instruction) -> Option<Moved> {
    if instruction.mnemonic() != Mnemonic::Mov || instruction.op0_kind() != OpKind::Register {
        return None;
    }
    let whole = |register: Register| register.is_gpr64().then(|| register.number());
    let to = whole(instruction.op0_register())?;
    let from = match instruction.op1_kind() {
        OpKind::Register => Source::Register(whole(instruction.op1_register())?),
        OpKind::Memory
            if instruction.memory_index() == Register::None && instruction.segment_prefix() == Register::None =>
        {
            let base = whole(instruction.memory_base())?;
            Source::Memory { base, offset: instruction.memory_displacement64() }
        }
        _ => return None,
    };
    Some(Moved { to, from })
}

/// Offset of a register in `struct pt_regs` (`arch/x86/include/asm/ptrace.h`).
fn saved_at(name: &str) -> Option<u32> {
    const IN_ORDER: [&str; 15] =
        ["r15", "r14", "r13", "r12", "rbp", "rbx", "r11", "r10", "r9", "r8", "rax", "rcx", "rdx", "rsi", "rdi"];
    if name == "rsp" {
        return Some(152);
    }
    let position = IN_ORDER.iter().position(|known| *known == name)?;
    u32::try_from(8 * position).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_operand_of_a_probe_is_in_a_register_or_on_the_stack() {
        let place = |register, in_memory, displacement| Some(ArgumentPlace { register, in_memory, displacement });
        for (text, expected) in [
            ("%r15", place(0, 0, 0)),
            ("%rdi", place(112, 0, 0)),
            ("%rax", place(80, 0, 0)),
            ("-88(%rbp)", place(32, 1, -88)),
            ("16(%rsp)", place(152, 1, 16)),
            ("(%rbx)", place(40, 1, 0)),
            ("%eax", None),
            ("$1", None),
            ("8(%rax,%rbx,8)", None),
            ("symbol(%rip)", None),
            ("", None),
        ] {
            assert_eq!(X86_64::probe_operand(text), expected, "{text}");
        }
    }
}

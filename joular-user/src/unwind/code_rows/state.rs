//! What is known before an instruction: where the stack pointer is, which registers and words of the
//! stack hold the caller's frame pointer or addresses of the frame. And what an instruction changes
//! of that.

use iced_x86::{FlowControl, Instruction, InstructionInfoFactory, Mnemonic, OpAccess, OpKind, Register, UsedMemory};
use joular_ebpf::abi::rule;

use super::super::rows::Rule;

const WORD: i32 = 8;
const REGISTERS: usize = 16;
const SP: usize = 4;
const FP: usize = 5;
/// That a function leaves as they were: rbx, rsp, rbp, r12 to r15.
const KEPT_BY_CALLS: [usize; 7] = [3, SP, FP, 12, 13, 14, 15];
/// Words of the stack that are followed at the same time; stubs save a dozen registers.
const MAX_SLOTS: usize = 64;

/// What addresses count from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Base {
    /// The canonical frame address: what the stack pointer was before the call.
    Frame,
    /// What the stack pointer became when the instruction at this place aligned it.
    Aligned(u32),
}

/// An address on the stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Place {
    base: Base,
    offset: i32,
}

impl Place {
    const fn plus(self, bytes: i32) -> Self {
        Self { offset: self.offset.wrapping_add(bytes), ..self }
    }
}

/// What a register or a word of the stack holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Value {
    Unknown,
    CallersFp,
    /// The frame pointer only: the caller's was thrown away and 0 put in its place, which by the ABI marks
    /// the outermost frame (System V, x86-64, 3.2.2).
    Outermost,
    Stack(Place),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct State {
    registers: [Value; REGISTERS],
    /// Words whose value is known.
    slots: Vec<(Place, Value)>,
}

impl State {
    /// At the first instruction of code that was called.
    pub fn called() -> Self {
        let mut registers = [Value::Unknown; REGISTERS];
        registers[SP] = Value::Stack(Place { base: Base::Frame, offset: -WORD });
        registers[FP] = Value::CallersFp;
        Self { registers, slots: Vec::new() }
    }

    /// Keeps what holds on both ways that lead to a place. Says whether anything was lost.
    pub fn meet(&mut self, other: &Self) -> bool {
        let before = self.clone();
        for (value, other) in self.registers.iter_mut().zip(&other.registers) {
            if *value != *other {
                *value = Value::Unknown;
            }
        }
        self.slots.retain(|slot| other.slots.contains(slot));
        *self != before
    }

    /// How to get to the caller from here.
    pub fn rule(&self) -> Rule {
        if self.registers[FP] == Value::Outermost {
            return Rule::only(rule::ROOT);
        }
        let Some(fp_words) = self.fp_words() else { return Rule::UNSUPPORTED };
        let rule = match (self.registers[SP], self.registers[FP]) {
            (Value::Stack(Place { base: Base::Frame, offset }), _) => Some((rule::SP, -offset)),
            (_, Value::Stack(Place { base: Base::Frame, offset })) => Some((rule::FP, -offset)),
            (Value::Stack(top), _) => return self.rule_of_aligned(top, fp_words),
            _ => None,
        };
        let rule = rule.and_then(|(rule, bytes)| {
            let cfa_words = i16::try_from(words(bytes)?).ok().filter(|words| *words > 0)?;
            Some(Rule { rule, cfa_words, fp_words })
        });
        rule.unwrap_or(Rule::UNSUPPORTED)
    }

    /// By the word in which the stack pointer was kept before it was aligned.
    fn rule_of_aligned(&self, top: Place, fp_words: i8) -> Rule {
        let kept = self.slots.iter().filter_map(|(place, value)| match value {
            Value::Stack(Place { base: Base::Frame, offset }) if place.base == top.base => {
                let from_top = words(place.offset.checked_sub(top.offset)?).filter(|words| *words >= 0)?;
                let above = words(offset.checked_neg()?).filter(|above| (1..=rule::MAX_ABOVE_KEPT).contains(above))?;
                Some((i16::try_from(from_top).ok()?, rule::KEPT_SP + u8::try_from(above).ok()?))
            }
            _ => None,
        });
        kept.min().map_or(Rule::UNSUPPORTED, |(cfa_words, rule)| Rule { rule, cfa_words, fp_words })
    }

    /// Where the caller's frame pointer is, in words from the frame address; 0: in its register.
    fn fp_words(&self) -> Option<i8> {
        let saved = self.slots.iter().find_map(|(place, value)| {
            let is_saved = *value == Value::CallersFp && place.base == Base::Frame;
            is_saved.then(|| i8::try_from(words(place.offset)?).ok()).flatten()
        });
        saved.or_else(|| (self.registers[FP] == Value::CallersFp).then_some(0))
    }

    /// What holds behind an instruction.
    pub fn pass(&mut self, instruction: &Instruction, at: u32, factory: &mut InstructionInfoFactory) {
        if changes_nothing(instruction) {
            return;
        }
        let top = self.registers[SP];
        match instruction.mnemonic() {
            Mnemonic::Push => self.push(instruction),
            Mnemonic::Pop if register(instruction, 0).is_some() => self.pop(instruction),
            Mnemonic::Leave => {
                self.registers[SP] = self.registers[FP];
                self.registers[FP] = self.take_top();
            }
            Mnemonic::Mov if self.moves(instruction) => {}
            Mnemonic::Xor if is_cleared_fp(instruction) && self.fp_words() == Some(0) => {
                self.registers[FP] = Value::Outermost;
            }
            Mnemonic::Lea => self.set(register(instruction, 0), self.address(instruction)),
            Mnemonic::Add | Mnemonic::Sub if immediate(instruction).is_some() => self.add(instruction),
            Mnemonic::And if immediate(instruction).is_some_and(|mask| mask < 0) => self.align(instruction, at),
            Mnemonic::Call => {
                for index in (0..REGISTERS).filter(|index| !KEPT_BY_CALLS.contains(index)) {
                    self.registers[index] = Value::Unknown;
                }
            }
            _ => self.overwrite(instruction, factory),
        }
        if self.registers[SP] != top {
            self.forget_below_top();
        }
    }

    fn push(&mut self, instruction: &Instruction) {
        let value = register(instruction, 0).map_or(Value::Unknown, |index| self.registers[index]);
        self.move_top(-WORD);
        if let Value::Stack(top) = self.registers[SP] {
            self.store(top, WORD, value);
        }
    }

    fn pop(&mut self, instruction: &Instruction) {
        let value = self.take_top();
        self.set(register(instruction, 0), value);
    }

    fn take_top(&mut self) -> Value {
        let value = match self.registers[SP] {
            Value::Stack(top) => self.load(top),
            _ => Value::Unknown,
        };
        self.move_top(WORD);
        value
    }

    fn move_top(&mut self, bytes: i32) {
        if let Value::Stack(top) = &mut self.registers[SP] {
            *top = top.plus(bytes);
        }
    }

    /// `mov` of whole words between registers and known places. Says whether it was one.
    fn moves(&mut self, instruction: &Instruction) -> bool {
        let value = match instruction.op1_kind() {
            OpKind::Register => match register(instruction, 1) {
                Some(index) => self.registers[index],
                None => return false,
            },
            OpKind::Memory => match self.address(instruction) {
                Value::Stack(place) => self.load(place),
                _ => Value::Unknown,
            },
            _ => Value::Unknown,
        };
        match instruction.op0_kind() {
            OpKind::Register if instruction.op0_register().is_gpr64() => {
                self.set(register(instruction, 0), value);
                true
            }
            OpKind::Memory if instruction.memory_size().size() == 8 => {
                if let Value::Stack(place) = self.address(instruction) {
                    self.store(place, WORD, value);
                }
                true
            }
            _ => false,
        }
    }

    fn add(&mut self, instruction: &Instruction) {
        let Some(index) = register(instruction, 0) else {
            // Of a word in memory, or of a part of a register.
            return self.overwrite_operand(instruction);
        };
        let bytes = immediate(instruction).and_then(|bytes| i32::try_from(bytes).ok());
        let sign = if instruction.mnemonic() == Mnemonic::Sub { -1 } else { 1 };
        self.registers[index] = match (self.registers[index], bytes) {
            (Value::Stack(place), Some(bytes)) => Value::Stack(place.plus(bytes.wrapping_mul(sign))),
            _ => Value::Unknown,
        };
    }

    fn align(&mut self, instruction: &Instruction, at: u32) {
        let Some(index) = register(instruction, 0) else { return self.overwrite_operand(instruction) };
        self.registers[index] = match self.registers[index] {
            Value::Stack(_) => Value::Stack(Place { base: Base::Aligned(at), offset: 0 }),
            _ => Value::Unknown,
        };
    }

    /// The operand becomes something that is not known.
    fn overwrite_operand(&mut self, instruction: &Instruction) {
        match instruction.op0_kind() {
            OpKind::Memory => {
                if let Value::Stack(place) = self.address(instruction) {
                    self.store(place, bytes(instruction), Value::Unknown);
                }
            }
            _ => self.set(general(instruction.op0_register()), Value::Unknown),
        }
    }

    /// Any other instruction: what it writes is not known afterwards.
    fn overwrite(&mut self, instruction: &Instruction, factory: &mut InstructionInfoFactory) {
        let moved = instruction.stack_pointer_increment();
        let info = factory.info(instruction);
        for used in info.used_registers().iter().filter(|used| is_written(used.access())) {
            match general(used.register()) {
                Some(SP) if moved != 0 => {}
                index => self.set(index, Value::Unknown),
            }
        }
        for used in info.used_memory().iter().filter(|used| is_written(used.access())) {
            if let Value::Stack(place) = self.address_of(used) {
                let bytes = i32::try_from(used.memory_size().size()).unwrap_or(i32::MAX);
                self.store(place, bytes, Value::Unknown);
            }
        }
        self.move_top(moved);
    }

    fn address(&self, instruction: &Instruction) -> Value {
        self.sum(instruction.memory_base(), instruction.memory_index(), instruction.memory_displacement64())
    }

    fn address_of(&self, memory: &UsedMemory) -> Value {
        self.sum(memory.base(), memory.index(), memory.displacement())
    }

    fn sum(&self, base: Register, index: Register, displacement: u64) -> Value {
        let displacement = i32::try_from(displacement.cast_signed());
        match (general(base).map(|index| self.registers[index]), index, displacement) {
            (Some(Value::Stack(place)), Register::None, Ok(bytes)) => Value::Stack(place.plus(bytes)),
            _ => Value::Unknown,
        }
    }

    fn set(&mut self, index: Option<usize>, value: Value) {
        if let Some(register) = index.and_then(|index| self.registers.get_mut(index)) {
            *register = value;
        }
    }

    fn load(&self, place: Place) -> Value {
        self.slots.iter().find(|(known, _)| *known == place).map_or(Value::Unknown, |(_, value)| *value)
    }

    fn store(&mut self, place: Place, bytes: i32, value: Value) {
        let end = place.offset.saturating_add(bytes);
        self.slots.retain(|(known, _)| {
            known.base != place.base || known.offset >= end || known.offset.saturating_add(WORD) <= place.offset
        });
        if value != Value::Unknown && self.slots.len() < MAX_SLOTS {
            self.slots.push((place, value));
        }
    }

    /// Words below the stack pointer may be overwritten at any time.
    fn forget_below_top(&mut self) {
        if let Value::Stack(top) = self.registers[SP] {
            self.slots.retain(|(place, _)| place.base != top.base || place.offset >= top.offset);
        }
    }
}

/// `xor ebp, ebp`, or of the whole register.
fn is_cleared_fp(instruction: &Instruction) -> bool {
    let target = instruction.op0_register();
    target == instruction.op1_register() && matches!(target, Register::EBP | Register::RBP)
}

/// Most instructions of stubs write a vector register, or flags only. To see that takes less time than
/// to ask what they write.
fn changes_nothing(instruction: &Instruction) -> bool {
    let target = instruction.op0_register();
    let is_vector = target.is_vector_register() || target.is_k();
    // Those have a result in ecx as well.
    let is_search = || {
        let mnemonic = instruction.mnemonic();
        matches!(mnemonic, Mnemonic::Pcmpestri | Mnemonic::Pcmpistri | Mnemonic::Vpcmpestri | Mnemonic::Vpcmpistri)
    };
    matches!(instruction.mnemonic(), Mnemonic::Cmp | Mnemonic::Test | Mnemonic::Nop)
        || instruction.flow_control() == FlowControl::ConditionalBranch
        || is_vector && !is_search()
}

const fn is_written(access: OpAccess) -> bool {
    matches!(access, OpAccess::Write | OpAccess::CondWrite | OpAccess::ReadWrite | OpAccess::ReadCondWrite)
}

/// Whole words.
fn words(bytes: i32) -> Option<i32> {
    (bytes % WORD == 0).then_some(bytes / WORD)
}

/// The number of the general register that this is, or is a part of.
fn general(register: Register) -> Option<usize> {
    let whole = register.full_register();
    whole.is_gpr64().then(|| whole.number())
}

/// The number of an operand that is a whole general register.
fn register(instruction: &Instruction, operand: u32) -> Option<usize> {
    let is_register = instruction.op_kind(operand) == OpKind::Register;
    let register = instruction.op_register(operand);
    (is_register && register.is_gpr64()).then(|| register.number())
}

fn immediate(instruction: &Instruction) -> Option<i64> {
    match instruction.op1_kind() {
        OpKind::Immediate8to64 | OpKind::Immediate32to64 => Some(instruction.immediate(1).cast_signed()),
        _ => None,
    }
}

fn bytes(instruction: &Instruction) -> i32 {
    i32::try_from(instruction.memory_size().size()).unwrap_or(i32::MAX)
}

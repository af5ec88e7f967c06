//! Changes what is known of the stack by what an instruction of x86-64 does.

use iced_x86::{FlowControl, Instruction, InstructionInfoFactory, Mnemonic, OpAccess, OpKind, Register, UsedMemory};
use joular_ebpf::abi::rule;

use crate::arch::{
    RegisterSet, Rule,
    state::{Base, Convention, Place, State, Value, WORD},
    words,
};

const SP: usize = 4;
const FP: usize = 5;
/// rbx, rsp, rbp, r12 to r15.
pub const KEPT_BY_CALLS: RegisterSet = RegisterSet::range(3, 5).with(12).with(13).with(14).with(15);
static CONVENTION: Convention = Convention { sp: SP, fp: FP, kept_by_calls: KEPT_BY_CALLS };

/// The return address is on top of the stack.
pub fn called() -> State {
    State::new(&CONVENTION, -WORD)
}

/// How to get to the caller from here.
pub fn rule(state: &State) -> Rule {
    if state.fp() == Value::Outermost {
        return Rule::only(rule::ROOT);
    }
    let in_register = || (state.fp() == Value::CallersFp).then_some(0);
    let Some(fp_words) = state.saved(Value::CallersFp).or_else(in_register) else { return Rule::UNSUPPORTED };
    let Some((rule, bytes)) = state.base() else { return rule_of_aligned(state, fp_words) };
    let cfa_words = words(bytes.into()).and_then(|words| i16::try_from(words).ok()).filter(|words| *words > 0);
    cfa_words.map_or(Rule::UNSUPPORTED, |cfa_words| Rule { rule, cfa_words, fp_words })
}

/// By the word in which the stack pointer was kept before it was aligned.
fn rule_of_aligned(state: &State, fp_words: i8) -> Rule {
    let Value::Stack(top) = state.sp() else { return Rule::UNSUPPORTED };
    let kept = state.slots().filter_map(|(place, value)| match value {
        Value::Stack(Place { base: Base::Frame, offset }) if place.base == top.base => {
            let from_top = words(place.offset.checked_sub(top.offset)?.into()).filter(|words| *words >= 0)?;
            let above = words(offset.checked_neg()?.into())?;
            let above = Some(above).filter(|above| (1..=i64::from(rule::MAX_ABOVE_KEPT)).contains(above))?;
            Some((i16::try_from(from_top).ok()?, rule::KEPT_SP + u8::try_from(above).ok()?))
        }
        _ => None,
    });
    kept.min().map_or(Rule::UNSUPPORTED, |(cfa_words, rule)| Rule { rule, cfa_words, fp_words })
}

/// Passes an instruction at a place.
pub struct Pass<'s> {
    pub state: &'s mut State,
    pub at: u32,
    pub factory: &'s mut InstructionInfoFactory,
}

impl Pass<'_> {
    pub fn pass(&mut self, instruction: &Instruction) {
        if changes_nothing(instruction) {
            return;
        }
        let top = self.state.sp();
        match instruction.mnemonic() {
            Mnemonic::Push => self.push(instruction),
            Mnemonic::Pop if register(instruction, 0).is_some() => self.pop(instruction),
            Mnemonic::Leave => {
                self.state.set(SP, self.state.fp());
                let value = self.state.take_top();
                self.state.set(FP, value);
            }
            Mnemonic::Mov if self.moves(instruction) => {}
            Mnemonic::Xor if is_cleared_fp(instruction) && self.state.throw_fp_away() => {}
            Mnemonic::Lea => self.set(register(instruction, 0), self.address(instruction)),
            Mnemonic::Add | Mnemonic::Sub if immediate(instruction).is_some() => self.add(instruction),
            Mnemonic::And if immediate(instruction).is_some_and(|mask| mask < 0) => self.align(instruction),
            Mnemonic::Call => self.state.call(),
            _ => self.overwrite(instruction),
        }
        if self.state.sp() != top {
            self.state.forget_below_top();
        }
    }

    fn push(&mut self, instruction: &Instruction) {
        let value = register(instruction, 0).map_or(Value::Unknown, |index| self.state.get(index));
        self.state.move_top(-WORD);
        if let Value::Stack(top) = self.state.sp() {
            self.state.store(top, WORD, value);
        }
    }

    fn pop(&mut self, instruction: &Instruction) {
        let value = self.state.take_top();
        self.set(register(instruction, 0), value);
    }

    /// `mov` of whole words between registers and known places. Says whether it was one.
    fn moves(&mut self, instruction: &Instruction) -> bool {
        let value = match instruction.op1_kind() {
            OpKind::Register => match register(instruction, 1) {
                Some(index) => self.state.get(index),
                None => return false,
            },
            OpKind::Memory => match self.address(instruction) {
                Value::Stack(place) => self.state.load(place),
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
                    self.state.store(place, WORD, value);
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
        let bytes = immediate(instruction).unwrap_or_default();
        let bytes = if instruction.mnemonic() == Mnemonic::Sub { bytes.wrapping_neg() } else { bytes };
        self.state.set(index, self.state.plus(index, bytes));
    }

    fn align(&mut self, instruction: &Instruction) {
        let Some(index) = register(instruction, 0) else { return self.overwrite_operand(instruction) };
        self.state.set(index, self.state.aligned(index, self.at));
    }

    /// The operand becomes something that is not known.
    fn overwrite_operand(&mut self, instruction: &Instruction) {
        match instruction.op0_kind() {
            OpKind::Memory => {
                if let Value::Stack(place) = self.address(instruction) {
                    self.state.store(place, bytes(instruction), Value::Unknown);
                }
            }
            _ => self.set(general(instruction.op0_register()), Value::Unknown),
        }
    }

    /// Any other instruction: what it writes is not known afterwards.
    fn overwrite(&mut self, instruction: &Instruction) {
        let moved = instruction.stack_pointer_increment();
        let info = self.factory.info(instruction);
        for used in info.used_registers().iter().filter(|used| is_written(used.access())) {
            match general(used.register()) {
                Some(SP) if moved != 0 => {}
                Some(index) => self.state.set(index, Value::Unknown),
                None => {}
            }
        }
        for used in info.used_memory().iter().filter(|used| is_written(used.access())) {
            if let Value::Stack(place) = address_of(self.state, used) {
                let bytes = i32::try_from(used.memory_size().size()).unwrap_or(i32::MAX);
                self.state.store(place, bytes, Value::Unknown);
            }
        }
        self.state.move_top(moved);
    }

    fn address(&self, instruction: &Instruction) -> Value {
        let (base, index) = (instruction.memory_base(), instruction.memory_index());
        sum(self.state, base, index, instruction.memory_displacement64())
    }

    fn set(&mut self, index: Option<usize>, value: Value) {
        if let Some(register) = index {
            self.state.set(register, value);
        }
    }
}

fn address_of(state: &State, memory: &UsedMemory) -> Value {
    sum(state, memory.base(), memory.index(), memory.displacement())
}

fn sum(state: &State, base: Register, index: Register, displacement: u64) -> Value {
    match (general(base), index) {
        (Some(base), Register::None) => state.plus(base, displacement.cast_signed()),
        _ => Value::Unknown,
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

pub const fn is_written(access: OpAccess) -> bool {
    matches!(access, OpAccess::Write | OpAccess::CondWrite | OpAccess::ReadWrite | OpAccess::ReadCondWrite)
}

/// The number of the general register that this is, or is a part of.
pub fn general(register: Register) -> Option<usize> {
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

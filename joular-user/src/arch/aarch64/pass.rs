//! Changes what is known of the stack by what an instruction of A64 does.

use joular_ebpf::abi::rule;

use super::{
    Kept,
    instruction::{Access, FP, Instruction, LR, Operation, SP, ZERO},
};
use crate::arch::{
    RegisterSet, Rule,
    state::{Base, Convention, Place, State, Value, WORD},
    words,
};

/// x19 to x29, and the stack pointer.
pub const KEPT_BY_CALLS: RegisterSet = RegisterSet::range(19, FP).with(SP);
static CONVENTION: Convention = Convention { sp: SP, fp: FP, kept_by_calls: KEPT_BY_CALLS };

/// The return address is in its register.
pub fn called() -> State {
    let mut state = State::new(&CONVENTION, 0);
    state.set(LR, Value::Return);
    state
}

/// How to get to the caller from here.
pub fn rule(state: &State) -> Rule {
    if state.fp() == Value::Outermost || is_above_frame(state.sp()) {
        return Rule::only(rule::ROOT);
    }
    let base = state.base().and_then(|(rule, bytes)| {
        let cfa_words = i16::try_from(words(bytes.into())?).ok().filter(|words| *words >= 0)?;
        Some((rule, cfa_words))
    });
    let rule = kept(state).zip(base).and_then(|(kept, (base, cfa_words))| kept.rule(base, cfa_words));
    rule.unwrap_or(Rule::UNSUPPORTED)
}

/// Whether the stack pointer is where nothing of the function is: only a thread's first code takes words from there,
/// which were put onto its empty stack for it (the `clone` of older musl).
fn is_above_frame(sp: Value) -> bool {
    matches!(sp, Value::Stack(Place { base: Base::Frame, offset: 1.. }))
}

/// What is on the stack is preferred: registers tell nothing in a frame that called another.
fn kept(state: &State) -> Option<Kept> {
    let pair = state.slots().find_map(|(place, value)| {
        let is_pair = value == Value::CallersFp && state.load(place.plus(WORD)) == Value::Return;
        (is_pair && place.base == Base::Frame).then(|| words(place.offset.into())).flatten()
    });
    if let Some(words) = pair {
        return Some(Kept::Pair(words));
    }
    if state.fp() != Value::CallersFp {
        return None;
    }
    match state.saved(Value::Return) {
        Some(words) => Some(Kept::Return(words.into())),
        None => (state.get(LR) == Value::Return).then_some(Kept::InRegisters),
    }
}

pub fn pass(state: &mut State, instruction: &Instruction, at: u32) {
    let top = state.sp();
    match instruction.operation {
        Operation::Call(_) | Operation::IndirectCall(_) => state.call(),
        Operation::Number { to: FP, number: 0 } | Operation::Copy { to: FP, from: ZERO } if state.throw_fp_away() => {}
        Operation::Copy { to, from } => state.set(to, state.get(from)),
        Operation::Add { to, from, bytes } => state.set(to, state.plus(from, bytes)),
        Operation::AddRegister { to, from, added, is_sub } => {
            let sum = match state.get(added) {
                Value::Number(number) if is_sub => state.plus(from, number.cast_signed().wrapping_neg()),
                Value::Number(number) => state.plus(from, number.cast_signed()),
                _ => Value::Unknown,
            };
            state.set(to, sum);
        }
        Operation::Align { to, from } => state.set(to, state.aligned(from, at)),
        Operation::Access(access) => pass_access(state, &access),
        _ => {
            let held = |register| match state.get(register) {
                Value::Number(number) => Some(number),
                _ => None,
            };
            let number = instruction.number(held);
            forget(state, instruction.written());
            if let Some((to, number)) = number {
                state.set(to, Value::Number(number));
            }
        }
    }
    if state.sp() != top {
        state.forget_below_top();
    }
}

fn pass_access(state: &mut State, access: &Access) {
    let Access { is_load, base, offset, moves_base, words, written, bytes } = *access;
    let place = match state.plus(base, offset) {
        Value::Stack(place) => Some(place),
        _ => None,
    };
    let places = [place, place.map(|place| place.plus(WORD))];
    if is_load {
        let loaded = places.map(|place| place.map_or(Value::Unknown, |place| state.load(place)));
        forget(state, written);
        for (register, value) in words.into_iter().zip(loaded) {
            state.set(register.unwrap_or(ZERO), value);
        }
    } else if let Some(place) = place {
        state.store(place, bytes, Value::Unknown);
        for (register, place) in words.into_iter().zip(places) {
            if let Some((register, place)) = register.zip(place) {
                state.store(place, WORD, state.get(register));
            }
        }
    }
    if moves_base != 0 {
        state.set(base, state.plus(base, moves_base));
    }
}

fn forget(state: &mut State, registers: RegisterSet) {
    registers.registers().for_each(|register| state.set(register, Value::Unknown));
}

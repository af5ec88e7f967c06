//! What is known before an instruction: where the stack pointer is, which registers and words of the
//! stack hold what the caller had in its registers, or addresses of the frame. What an instruction changes
//! of that is each architecture's.

use joular_ebpf::abi::rule;

use super::{RegisterSet, rule::words};

pub const WORD: i32 = 8;
const REGISTERS: usize = 32;
/// Words of the stack that are followed at the same time; stubs save a dozen registers.
const MAX_SLOTS: usize = 64;

/// What addresses count from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Base {
    /// The canonical frame address: what the stack pointer was before the call.
    Frame,
    /// What the stack pointer became when the instruction at this place aligned it.
    Aligned(u32),
}

/// An address on the stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    pub base: Base,
    pub offset: i32,
}

impl Place {
    pub const fn of_frame(offset: i32) -> Self {
        Self { base: Base::Frame, offset }
    }

    pub const fn plus(self, bytes: i32) -> Self {
        Self { offset: self.offset.wrapping_add(bytes), ..self }
    }
}

/// What a register or a word of the stack holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Value {
    Unknown,
    CallersFp,
    /// Where the function was called from, if that is put into a register.
    Return,
    /// The frame pointer only: the caller's was thrown away and 0 put in its place, which marks the outermost
    /// frame (System V ABI of x86-64, 3.2.2; AAPCS64, "The Frame Pointer").
    Outermost,
    Number(u64),
    Stack(Place),
}

/// Which registers have a part in calls.
#[derive(Debug, PartialEq, Eq)]
pub struct Convention {
    pub sp: usize,
    pub fp: usize,
    pub kept_by_calls: RegisterSet,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct State {
    convention: &'static Convention,
    registers: [Value; REGISTERS],
    /// Words whose value is known.
    slots: Vec<(Place, Value)>,
}

impl State {
    /// At the first instruction of code that was called, with the stack pointer this many bytes from the frame address.
    pub fn new(convention: &'static Convention, sp_offset: i32) -> Self {
        let mut state = Self { convention, registers: [Value::Unknown; REGISTERS], slots: Vec::new() };
        state.set(convention.sp, Value::Stack(Place::of_frame(sp_offset)));
        state.set(convention.fp, Value::CallersFp);
        state
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

    pub fn sp(&self) -> Value {
        self.get(self.convention.sp)
    }

    pub fn fp(&self) -> Value {
        self.get(self.convention.fp)
    }

    pub fn get(&self, register: usize) -> Value {
        self.registers.get(register).copied().unwrap_or(Value::Unknown)
    }

    /// Numbers that no register has are passed over.
    pub fn set(&mut self, register: usize, value: Value) {
        if let Some(known) = self.registers.get_mut(register) {
            *known = value;
        }
    }

    /// What a register holds, and a number of bytes more.
    pub fn plus(&self, register: usize, bytes: i64) -> Value {
        match (self.get(register), i32::try_from(bytes)) {
            (Value::Stack(place), Ok(bytes)) => Value::Stack(place.plus(bytes)),
            (Value::Number(number), _) => Value::Number(number.wrapping_add_signed(bytes)),
            _ => Value::Unknown,
        }
    }

    /// What a register holds that points to the stack when its lowest bits are cleared by the instruction at a place.
    pub fn aligned(&self, register: usize, at: u32) -> Value {
        match self.get(register) {
            Value::Stack(_) => Value::Stack(Place { base: Base::Aligned(at), offset: 0 }),
            _ => Value::Unknown,
        }
    }

    pub fn move_top(&mut self, bytes: i32) {
        self.set(self.convention.sp, self.plus(self.convention.sp, bytes.into()));
    }

    /// Pops a word.
    pub fn take_top(&mut self) -> Value {
        let value = match self.sp() {
            Value::Stack(top) => self.load(top),
            _ => Value::Unknown,
        };
        self.move_top(WORD);
        value
    }

    /// Puts 0 into the frame pointer, if the caller's is nowhere else. Says whether it was so.
    pub fn throw_fp_away(&mut self) -> bool {
        let is_lost = self.fp() == Value::CallersFp && self.saved(Value::CallersFp).is_none();
        if is_lost {
            self.set(self.convention.fp, Value::Outermost);
        }
        is_lost
    }

    /// Forgets what a called function may change.
    pub fn call(&mut self) {
        for register in (0..REGISTERS).filter(|register| !self.convention.kept_by_calls.contains(*register)) {
            self.set(register, Value::Unknown);
        }
    }

    pub fn load(&self, place: Place) -> Value {
        self.slots.iter().find(|(known, _)| *known == place).map_or(Value::Unknown, |(_, value)| *value)
    }

    pub fn store(&mut self, place: Place, bytes: i32, value: Value) {
        let end = place.offset.saturating_add(bytes);
        self.slots.retain(|(known, _)| {
            known.base != place.base || known.offset >= end || known.offset.saturating_add(WORD) <= place.offset
        });
        if value != Value::Unknown && self.slots.len() < MAX_SLOTS {
            self.slots.push((place, value));
        }
    }

    /// Words below the stack pointer may be overwritten at any time.
    pub fn forget_below_top(&mut self) {
        if let Value::Stack(top) = self.sp() {
            self.slots.retain(|(place, _)| place.base != top.base || place.offset >= top.offset);
        }
    }

    /// Words that are known, with what they hold.
    pub fn slots(&self) -> impl Iterator<Item = (Place, Value)> {
        self.slots.iter().copied()
    }

    /// Where on the stack a value is kept, in words from the frame address.
    pub fn saved(&self, value: Value) -> Option<i8> {
        self.slots().find_map(|(place, held)| {
            let is_saved = held == value && place.base == Base::Frame;
            is_saved.then(|| i8::try_from(words(place.offset.into())?).ok()).flatten()
        })
    }

    /// The rule for a register that the frame address can be counted from, and the bytes to add to it.
    pub fn base(&self) -> Option<(u8, i32)> {
        match (self.sp(), self.fp()) {
            (Value::Stack(Place { base: Base::Frame, offset }), _) => Some((rule::SP, offset.wrapping_neg())),
            (_, Value::Stack(Place { base: Base::Frame, offset })) => Some((rule::FP, offset.wrapping_neg())),
            _ => None,
        }
    }
}

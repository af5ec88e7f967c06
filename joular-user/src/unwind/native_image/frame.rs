//! What is known of a frame before an instruction: how large it is, and where the caller's frame pointer is.

use iced_x86::{Instruction, Mnemonic, OpKind, Register};
use joular_ebpf::abi::rule;

use super::super::rows::Rule;

pub const WORD: i32 = 8;

/// Bytes from the stack pointer up to the frame address, where they are known.
pub type Depth = Option<i32>;

#[derive(Debug)]
pub struct Frame {
    pub depth: Depth,
    /// The depth, and that of the frame pointer, as the function's beginning has made them.
    body: (Depth, Depth),
    /// Registers are pushed before there is room for anything else.
    is_begun: bool,
    is_made: bool,
    /// What the stack pointer is about to become, while the room for it is checked.
    computed: Option<(Register, i32)>,
    /// Where the caller's frame pointer is, from the frame address.
    fp_place: Option<i32>,
    is_fp_callers: bool,
    /// The depth that the frame pointer points at, if it points into the frame.
    fp_depth: Depth,
}

impl Frame {
    pub const fn called() -> Self {
        Self {
            depth: Some(WORD),
            body: (Some(WORD), None),
            is_begun: false,
            is_made: false,
            computed: None,
            fp_place: None,
            is_fp_callers: true,
            fp_depth: None,
        }
    }

    /// Comes to code that nothing before it leads to.
    pub fn restart(&mut self) {
        (self.depth, self.fp_depth) = self.body;
        self.computed = None;
    }

    /// The frame stays as it is until the function returns.
    pub const fn settle(&mut self) {
        self.is_made = true;
    }

    pub fn rule(&self) -> Rule {
        let Some(depth) = self.depth.filter(|depth| *depth >= WORD && depth % WORD == 0) else {
            return Rule::UNSUPPORTED;
        };
        let fp_words = match self.fp_place.filter(|place| -place <= depth) {
            Some(place) => i8::try_from(place / WORD).ok(),
            // No register is kept for a caller that is a method.
            None => Some(0),
        };
        match (i16::try_from(depth / WORD), fp_words) {
            (Ok(cfa_words), Some(fp_words)) => Rule { rule: rule::SP, cfa_words, fp_words },
            _ => Rule::UNSUPPORTED,
        }
    }

    /// Passes an instruction that execution goes on behind. Says whether such a frame is possible.
    pub fn pass(&mut self, instruction: &Instruction) -> bool {
        self.pass_frame_pointer(instruction);
        let (mnemonic, to, from) = (instruction.mnemonic(), instruction.op0_register(), instruction.op1_register());
        let checks = matches!(mnemonic, Mnemonic::Cmp | Mnemonic::Test | Mnemonic::Nop);
        let computed = if checks { self.computed } else { self.computed.take() };
        match mnemonic {
            _ if checks => {}
            Mnemonic::Lea => {
                let place = self.address(instruction);
                match to {
                    Register::RSP => self.make(place),
                    _ => self.computed = place.map(|depth| (to, depth)),
                }
            }
            Mnemonic::Sub | Mnemonic::Add if to == Register::RSP => {
                let sign = if mnemonic == Mnemonic::Sub { 1 } else { -1 };
                let bytes = number(instruction).and_then(|bytes| i32::try_from(bytes).ok()?.checked_mul(sign));
                self.make(self.depth.zip(bytes).and_then(|(depth, bytes)| depth.checked_add(bytes)));
            }
            Mnemonic::Mov if to == Register::RSP && from == Register::RBP => self.make(self.fp_depth),
            Mnemonic::Mov if to == Register::RSP => {
                self.make(computed.filter(|(register, _)| *register == from).map(|(_, depth)| depth));
            }
            Mnemonic::Leave => self.depth = self.fp_depth.take().map(|depth| depth - WORD),
            Mnemonic::Pop if to == Register::RSP => self.depth = None,
            Mnemonic::Push | Mnemonic::Pop | Mnemonic::Pushfq | Mnemonic::Popfq => {
                self.depth = self.depth.and_then(|depth| depth.checked_sub(instruction.stack_pointer_increment()));
                if !self.is_begun && !self.is_made && mnemonic == Mnemonic::Push {
                    self.body.0 = self.depth;
                }
            }
            _ if instruction.op0_kind() == OpKind::Register && to.full_register() == Register::RSP => self.depth = None,
            _ => {}
        }
        self.depth.is_none_or(|depth| depth >= WORD)
    }

    /// The function makes its frame, maybe in steps, or removes it.
    fn make(&mut self, depth: Depth) {
        let grows = depth > self.depth;
        self.depth = depth;
        self.is_begun = true;
        self.is_made |= !grows;
        if !self.is_made {
            self.body = (depth, self.fp_depth);
        }
    }

    /// The place in the frame whose address is taken.
    fn address(&self, instruction: &Instruction) -> Depth {
        let base = match instruction.memory_base() {
            Register::RSP => self.depth,
            Register::RBP => self.fp_depth,
            _ => None,
        };
        base.filter(|_| instruction.memory_index() == Register::None)?.checked_sub(displacement(instruction)?)
    }

    fn pass_frame_pointer(&mut self, instruction: &Instruction) {
        let mnemonic = instruction.mnemonic();
        let (to, from) = (instruction.op0_register(), instruction.op1_register());
        let above = match mnemonic {
            Mnemonic::Push if to == Register::RBP => Some(-WORD),
            Mnemonic::Mov if from == Register::RBP && instruction.memory_base() == Register::RSP => {
                displacement(instruction).filter(|_| instruction.memory_index() == Register::None)
            }
            _ => None,
        };
        if let (true, None, Some((above, depth))) = (self.is_fp_callers, self.fp_place, above.zip(self.depth)) {
            self.fp_place = above.checked_sub(depth).filter(|place| *place < -WORD && place % WORD == 0);
        }
        let is_fp = |register: Register| register.full_register() == Register::RBP;
        let is_written = match mnemonic {
            Mnemonic::Push | Mnemonic::Cmp | Mnemonic::Test => false,
            Mnemonic::Xchg | Mnemonic::Xadd => is_fp(to) || is_fp(from),
            _ => is_fp(to),
        };
        if is_written {
            self.is_fp_callers = false;
            self.fp_depth = if mnemonic == Mnemonic::Mov && from == Register::RSP { self.depth } else { None };
        }
    }
}

fn displacement(instruction: &Instruction) -> Option<i32> {
    i32::try_from(instruction.memory_displacement64().cast_signed()).ok()
}

/// The second operand, if it is a number.
pub fn number(instruction: &Instruction) -> Option<i64> {
    is_number(instruction.op1_kind()).then(|| instruction.immediate(1).cast_signed())
}

const fn is_number(kind: OpKind) -> bool {
    matches!(
        kind,
        OpKind::Immediate8
            | OpKind::Immediate16
            | OpKind::Immediate32
            | OpKind::Immediate64
            | OpKind::Immediate8to16
            | OpKind::Immediate8to32
            | OpKind::Immediate8to64
            | OpKind::Immediate32to64
    )
}

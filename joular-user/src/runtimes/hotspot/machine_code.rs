//! Reads code that a compiler wrote: where it branches, and which call a branch leads to.

use std::marker::PhantomData;

use crate::arch::{Arch, Flow};

/// Code that leads to an uncommon trap only puts values where the trap expects them.
const MAX_STEPS_TO_CALL: usize = 40;
/// Behind a loop, loading the address to poll. What comes after the loop may be moved in between.
const MAX_STEPS_TO_POLL: usize = 64;

/// A conditional jump whose target is in the code. Places are offsets from the code's beginning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Branch {
    pub at: u32,
    /// Behind the instruction.
    pub end: u32,
    pub target: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Call {
    /// Address of what is called.
    pub callee: u64,
    /// Offset of the return address.
    pub return_at: u32,
}

/// Code of one compiled method.
#[derive(Debug)]
pub struct CodeOf<'a, A> {
    bytes: &'a [u8],
    /// Address of the first byte.
    start: u64,
    arch: PhantomData<A>,
}

impl<A> Clone for CodeOf<'_, A> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<A> Copy for CodeOf<'_, A> {}

impl<'a, A: Arch> CodeOf<'a, A> {
    pub const fn new(bytes: &'a [u8], start: u64) -> Self {
        Self { bytes, start, arch: PhantomData }
    }

    /// All conditional jumps, in the order of their places.
    pub fn branches(&self) -> impl Iterator<Item = Branch> {
        self.instructions(0).filter_map(|of| {
            let step = A::step(&of);
            let Flow::Branch(target) = step.flow else { return None };
            let target = self.offset(target)?;
            Some(Branch { at: self.offset(step.at)?, end: self.offset(step.end)?, target })
        })
    }

    /// The call that execution reaches from a place without a choice.
    pub fn call_after(&self, place: u32) -> Option<Call> {
        let mut steps = 0;
        let mut from = place;
        let mut arch = A::default();
        'block: loop {
            for instruction in self.instructions(from) {
                steps += 1;
                if steps > MAX_STEPS_TO_CALL {
                    return None;
                }
                let step = A::step(&instruction);
                let callee = arch.callee(&instruction);
                match step.flow {
                    Flow::Next => {}
                    Flow::Call(_) | Flow::IndirectCall => {
                        let callee = self.behind_trampoline(callee?);
                        return Some(Call { callee, return_at: self.offset(step.end)? });
                    }
                    Flow::Jump(target) => {
                        from = self.offset(target)?;
                        continue 'block;
                    }
                    _ => return None,
                }
            }
            return None;
        }
    }

    /// Where a call of this address leads, if it only leads on.
    fn behind_trampoline(&self, callee: u64) -> u64 {
        let code = self.offset(callee).and_then(|offset| self.bytes.get(offset as usize..));
        code.and_then(A::trampoline).unwrap_or(callee)
    }

    /// The safepoint poll that execution reaches from a place without a jump.
    pub fn poll_after(&self, place: u32) -> Option<u32> {
        let straight = self.instructions(place).take_while(|of| A::step(of).flow == Flow::Next);
        self.offset(A::step(&straight.take(MAX_STEPS_TO_POLL).find(A::is_poll)?).at)
    }

    /// Whether execution may go in circles before it leaves the code by a jump to an address from
    /// memory or a register; `None` if the code has no such jump.
    pub fn has_loop_before_leaving(&self) -> Option<bool> {
        let mut has_loop = false;
        for instruction in self.instructions(0) {
            let step = A::step(&instruction);
            match step.flow {
                Flow::IndirectJump => return Some(has_loop),
                Flow::Branch(target) => has_loop |= target <= step.at,
                _ => {}
            }
        }
        None
    }

    /// The end counts as within.
    fn offset(&self, address: u64) -> Option<u32> {
        let offset = address.wrapping_sub(self.start);
        (offset <= self.bytes.len() as u64).then(|| u32::try_from(offset).ok()).flatten()
    }

    fn instructions(&self, from: u32) -> impl Iterator<Item = A::Instruction> {
        let bytes = self.bytes.get(from as usize..).unwrap_or_default();
        A::instructions(bytes, self.start.wrapping_add(u64::from(from)))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::arch::{Aarch64, X86_64};

    type MachineCode<'a> = CodeOf<'a, X86_64>;

    const START: u64 = 0x7f00_0000_1000;

    #[test]
    fn branches_and_the_calls_that_code_leads_to() {
        // test eax, eax; je 7; jmp 0; mov esi, 0xffffff86; jmp 14; call 0x100; jmp far away
        let code = [
            0x85, 0xc0, 0x74, 0x03, 0xeb, 0xfa, 0x90, 0xbe, 0x86, 0xff, 0xff, 0xff, 0xeb, 0x00, 0xe8, 0xed, 0, 0, 0,
            0xe9, 0, 0, 0, 0x40,
        ];
        let code = MachineCode::new(&code, START);
        assert_eq!(code.branches().collect::<Vec<_>>(), [Branch { at: 2, end: 4, target: 7 }]);
        assert_eq!(code.call_after(7), Some(Call { callee: START + 0x100, return_at: 19 }));
        assert_eq!(code.call_after(0), None, "it depends");
        assert_eq!(code.call_after(19), None, "it leads out");
        assert_eq!(code.call_after(24), None);
    }

    #[test]
    fn code_may_go_in_circles_before_it_leaves() {
        // mov rax, [rax]; jmp rax
        let straight = [0x48, 0x8b, 0x00, 0xff, 0xe0];
        // mov rax, [rax]; test rax, rax; jne 0; jmp rax; jne 0
        let circles = [0x48, 0x8b, 0x00, 0x48, 0x85, 0xc0, 0x75, 0xf8, 0xff, 0xe0, 0x75, 0xf4];
        let has_loop = |code: &[u8]| MachineCode::new(code, START).has_loop_before_leaving();
        assert_eq!((has_loop(&straight), has_loop(&circles), has_loop(&circles[..8])), (Some(false), Some(true), None));
        let behind = [&straight[..], &[0x75, 0xf9]].concat();
        assert_eq!(has_loop(&behind), Some(false));
    }

    fn words(words: &[u32]) -> Vec<u8> {
        words.iter().flat_map(|word| word.to_le_bytes()).collect()
    }

    #[test]
    fn calls_on_aarch64_may_lead_on_by_a_trampoline() {
        // cmp w0, #0; b.eq 12; b 0; mov w1, #-122; b 24; nop; bl 32; b far away; ldr x8, 40; br x8; an address
        let mut code = words(&[
            0x7100_001f,
            0x5400_0040,
            0x17ff_fffe,
            0x1280_0f21,
            0x1400_0002,
            0xd503_201f,
            0x9400_0002,
            0x1401_0000,
            0x5800_0048,
            0xd61f_0100,
        ]);
        code.extend(0x7f00_0011_2233_u64.to_le_bytes());
        let code = CodeOf::<Aarch64>::new(&code, START);
        assert_eq!(code.branches().collect::<Vec<_>>(), [Branch { at: 4, end: 8, target: 12 }]);
        assert_eq!(code.call_after(12), Some(Call { callee: 0x7f00_0011_2233, return_at: 28 }));
        assert_eq!(code.call_after(0), None, "it depends");
        assert_eq!(code.call_after(28), None, "it leads out");
        // adrp x8, 0x7f0000001000; add x8, x8, #0x234; blr x8
        let far = words(&[0x9000_0008, 0x9108_d108, 0xd63f_0100]);
        let found = CodeOf::<Aarch64>::new(&far, START).call_after(0);
        assert_eq!(found, Some(Call { callee: START + 0x234, return_at: 12 }));
        assert_eq!(CodeOf::<Aarch64>::new(&far, START).call_after(8), None, "nothing says what is in x8");
    }

    #[test]
    fn loops_and_their_polls_on_aarch64() {
        // ldr x8, [x0]; br x8, and the same with cbnz x8, 0 between
        let straight = words(&[0xf940_0008, 0xd61f_0100]);
        let circles = words(&[0xf940_0008, 0xb5ff_ffe8, 0xd61f_0100]);
        let has_loop = |code: &[u8]| CodeOf::<Aarch64>::new(code, START).has_loop_before_leaving();
        assert_eq!((has_loop(&straight), has_loop(&circles), has_loop(&circles[..8])), (Some(false), Some(true), None));
        // add x1, x1, #1; ldr x8, [x28, #40]; ldr wzr, [x8]; b 0
        let poll = words(&[0x9100_0421, 0xf940_1788, 0xb940_011f, 0x17ff_fffd]);
        let poll = CodeOf::<Aarch64>::new(&poll, START);
        assert_eq!((poll.poll_after(0), poll.poll_after(12)), (Some(8), None));
    }

    #[test]
    fn code_that_jumps_in_circles_leads_nowhere() {
        assert_eq!(MachineCode::new(&[0xeb, 0xfe], START).call_after(0), None);
    }

    proptest! {
        #[test]
        fn any_bytes_are_survived(bytes: Vec<u8>, start: u64, place: u32) {
            let code = MachineCode::new(&bytes, start);
            let end = u32::try_from(bytes.len()).unwrap();
            for branch in code.branches() {
                prop_assert!(branch.at < branch.end && branch.end <= end && branch.target <= end);
                code.call_after(branch.target);
            }
            let call = code.call_after(place);
            prop_assert!(code.poll_after(place).is_none_or(|at| at >= place && at < end));
            prop_assert!(call.is_none_or(|call| call.return_at <= end));
            code.has_loop_before_leaving();
        }
    }
}

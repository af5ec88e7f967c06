//! Reads x86-64 code that a compiler wrote: where it branches, and which call a branch leads to.

use iced_x86::{Decoder, DecoderOptions, FlowControl, Instruction, Mnemonic, OpKind};

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
#[derive(Clone, Copy, Debug)]
pub struct MachineCode<'a> {
    bytes: &'a [u8],
    /// Address of the first byte.
    start: u64,
}

impl<'a> MachineCode<'a> {
    pub const fn new(bytes: &'a [u8], start: u64) -> Self {
        Self { bytes, start }
    }

    /// All conditional jumps, in the order of their places.
    pub fn branches(&self) -> impl Iterator<Item = Branch> {
        let is_branch = |of: &Instruction| of.flow_control() == FlowControl::ConditionalBranch;
        self.instructions(0).filter(is_branch).filter_map(|of| {
            let target = self.offset(of.near_branch_target())?;
            Some(Branch { at: self.offset(of.ip())?, end: self.offset(of.next_ip())?, target })
        })
    }

    /// The call that execution reaches from a place without a choice.
    pub fn call_after(&self, place: u32) -> Option<Call> {
        let mut steps = 0;
        let mut from = place;
        'block: loop {
            for instruction in self.instructions(from) {
                steps += 1;
                if steps > MAX_STEPS_TO_CALL {
                    return None;
                }
                match instruction.flow_control() {
                    FlowControl::Next => {}
                    FlowControl::Call => {
                        let return_at = self.offset(instruction.next_ip())?;
                        return Some(Call { callee: instruction.near_branch_target(), return_at });
                    }
                    FlowControl::UnconditionalBranch => {
                        from = self.offset(instruction.near_branch_target())?;
                        continue 'block;
                    }
                    _ => return None,
                }
            }
            return None;
        }
    }

    /// The safepoint poll that execution reaches from a place without a jump.
    pub fn poll_after(&self, place: u32) -> Option<u32> {
        let is_poll = |of: &Instruction| of.mnemonic() == Mnemonic::Test && of.op0_kind() == OpKind::Memory;
        let straight = self.instructions(place).take_while(|of| of.flow_control() == FlowControl::Next);
        self.offset(straight.take(MAX_STEPS_TO_POLL).find(is_poll)?.ip())
    }

    /// Whether execution may go in circles before it leaves the code by a jump to an address from
    /// memory or a register; `None` if the code has no such jump.
    pub fn has_loop_before_leaving(&self) -> Option<bool> {
        let mut has_loop = false;
        for instruction in self.instructions(0) {
            match instruction.flow_control() {
                FlowControl::IndirectBranch => return Some(has_loop),
                FlowControl::ConditionalBranch => has_loop |= instruction.near_branch_target() <= instruction.ip(),
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

    fn instructions(&self, from: u32) -> impl Iterator<Item = Instruction> {
        let bytes = self.bytes.get(from as usize..).unwrap_or_default();
        Decoder::with_ip(64, bytes, self.start.wrapping_add(u64::from(from)), DecoderOptions::NONE).into_iter()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

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

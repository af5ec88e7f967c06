//! Follows one method, instruction by instruction, in the order of addresses.
//!
//! The compiler of native images makes a frame of a fixed size where a method begins, and removes it where
//! the method returns. So one look at each instruction is enough; other code needs all ways through it
//! ([`super::super::code_rows`]). What contradicts that shows that this is no such method, or not understood:
//! a return that leaves a frame, ways that meet with different frames, a branch into an instruction. Then no
//! part of it gets a rule.

use std::collections::BTreeMap;

use iced_x86::{Code, Decoder, DecoderOptions, FlowControl, Instruction, Mnemonic};

use super::{
    super::rows::Rule,
    frame::{Depth, Frame, WORD},
    tables,
};

pub const ALIGNMENT: usize = 16;
const INT3: u8 = 0xcc;

/// What one method is.
#[derive(Debug, PartialEq, Eq)]
pub struct Function {
    /// Where the next one begins.
    pub end: usize,
    /// Rules from these offsets on; `None` if it is not understood.
    pub lines: Option<Vec<(usize, Rule)>>,
}

/// Whether a method begins so: it makes its frame.
pub fn makes_frame(code: &[u8]) -> bool {
    const SUB_RSP: [&[u8]; 2] = [&[0x48, 0x83, 0xec], &[0x48, 0x81, 0xec]];
    const MOV_RBP_RSP: [&[u8]; 2] = [&[0x48, 0x8b, 0xec], &[0x48, 0x89, 0xe5]];
    const PUSH_RBP: &[u8] = &[0x55];
    let any = |code: &[u8], forms: &[&[u8]]| forms.iter().any(|form| code.starts_with(form));
    let pushes = code.strip_prefix(PUSH_RBP).is_some_and(|rest| any(rest, &SUB_RSP) || any(rest, &MOV_RBP_RSP));
    // lea rbx, [rsp - bytes]
    let computes = match code {
        [0x48, 0x8d, 0x5c, 0x24, highest, ..] | [0x48, 0x8d, 0x9c, 0x24, _, _, _, highest, ..] => *highest >= 0x80,
        _ => false,
    };
    pushes || computes || any(code, &SUB_RSP)
}

/// Follows the method at the beginning of `code`. `None` if its end is not in there. `called` gets the places
/// outside of it that it calls; `work` is how much of jump tables may be read yet.
pub fn follow(code: &[u8], work: &mut usize, called: &mut impl FnMut(i64)) -> Option<Function> {
    let mut follower = Follower {
        code,
        frame: Frame::called(),
        targets: BTreeMap::new(),
        depths: Vec::new(),
        lines: Vec::new(),
        watch: tables::Watch::default(),
        tables: BTreeMap::new(),
        is_refuted: false,
        work,
    };
    let end = follower.run(called)?;
    // To another method a branch leads without a frame only. Padding is led to where nothing comes.
    let is_left_well = follower.targets.iter().all(|(target, depth)| *target < end || *depth == Some(WORD));
    Some(Function { end, lines: (is_left_well && !follower.is_refuted).then_some(follower.lines) })
}

struct Follower<'c, 'w> {
    code: &'c [u8],
    frame: Frame,
    /// Where forward branches lead, and with which depth.
    targets: BTreeMap<usize, Depth>,
    /// The depths at instructions before, as far as they changed.
    depths: Vec<(usize, Depth)>,
    lines: Vec<(usize, Rule)>,
    watch: tables::Watch,
    /// Where jump tables begin, and where they end as far as that is plain.
    tables: BTreeMap<usize, Option<usize>>,
    is_refuted: bool,
    work: &'w mut usize,
}

impl Follower<'_, '_> {
    /// Goes to the end, and returns it.
    fn run(&mut self, called: &mut impl FnMut(i64)) -> Option<usize> {
        let mut decoder = Decoder::with_ip(64, self.code, 0, DecoderOptions::NONE);
        let mut instruction = Instruction::default();
        let mut at = 0_usize;
        // Whether execution does not come from the instruction before.
        let mut is_cut = false;
        loop {
            let rest = self.code.get(at..).filter(|rest| !rest.is_empty())?;
            if at > 0 && at.is_multiple_of(ALIGNMENT) && makes_frame(rest) {
                return Some(at);
            }
            let behind_padding = at + rest.iter().take_while(|byte| **byte == INT3).count();
            if behind_padding > at && behind_padding.is_multiple_of(ALIGNMENT) {
                return Some(behind_padding);
            }
            if let Some((table, end)) = self.table_at(at) {
                let Some(behind) = self.behind_table(at, table, end) else { return self.next_begin(at) };
                at = behind;
                decoder.set_position(at).ok()?;
                decoder.set_ip(at as u64);
                is_cut = true;
                continue;
            }
            self.arrive(at, is_cut);
            decoder.decode_out(&mut instruction);
            if instruction.is_invalid() {
                self.is_refuted = true;
                return self.next_begin(at);
            }
            if instruction.flow_control() == FlowControl::Call {
                called(instruction.near_branch_target().cast_signed());
            }
            is_cut = self.pass(&instruction);
            at = usize::try_from(instruction.next_ip()).ok()?;
        }
    }

    /// The next place behind something else than code where a method seems to begin.
    fn next_begin(&self, from: usize) -> Option<usize> {
        let begins = |at: &usize| {
            let (before, rest) = self.code.split_at_checked(*at).unwrap_or_default();
            let is_padded = before.last() == Some(&INT3) && rest.first() != Some(&INT3);
            !rest.is_empty() && (is_padded || makes_frame(rest))
        };
        let first = from.checked_add(1)?.next_multiple_of(ALIGNMENT);
        (first..self.code.len()).step_by(ALIGNMENT).find(begins)
    }

    fn table_at(&mut self, at: usize) -> Option<(usize, Option<usize>)> {
        let entry = self.tables.first_entry().filter(|entry| *entry.key() <= at)?;
        Some(entry.remove_entry())
    }

    /// Where code goes on behind a table, if it does.
    fn behind_table(&mut self, at: usize, table: usize, end: Option<usize>) -> Option<usize> {
        // Those without a frame may be in other methods.
        let mut inside = self.targets.range(at..).filter(|(_, depth)| **depth != Some(WORD));
        let next = inside.next().map(|(target, _)| *target);
        self.is_refuted |= table != at || end.zip(next).is_some_and(|(end, next)| next < end);
        end.or(next).filter(|behind| *behind > at)
    }

    /// Comes to an instruction, by branches or from the one before.
    fn arrive(&mut self, at: usize, is_cut: bool) {
        if is_cut {
            // Where an exception is handled, a table leads, or a branch from behind.
            self.frame.restart();
        }
        let mut is_known = !is_cut;
        while let Some(entry) = self.targets.first_entry().filter(|entry| *entry.key() <= at) {
            let (target, depth) = entry.remove_entry();
            let agrees = target == at && (!is_known || depth == self.frame.depth);
            self.is_refuted |= !agrees;
            self.frame.depth = depth;
            is_known = true;
        }
        if self.depths.last().is_none_or(|(_, last)| *last != self.frame.depth) {
            self.depths.push((at, self.frame.depth));
        }
        let rule = self.frame.rule();
        if self.lines.last().is_none_or(|(_, last)| *last != rule) {
            self.lines.push((at, rule));
        }
    }

    /// Passes an instruction. Returns whether execution does not go on behind it.
    fn pass(&mut self, instruction: &Instruction) -> bool {
        self.watch.pass(instruction);
        match instruction.flow_control() {
            FlowControl::Next => {
                self.is_refuted |= !self.frame.pass(instruction);
                instruction.mnemonic() == Mnemonic::Hlt
            }
            FlowControl::Call | FlowControl::IndirectCall => {
                self.frame.settle();
                false
            }
            FlowControl::ConditionalBranch => {
                self.branch(instruction);
                false
            }
            FlowControl::UnconditionalBranch => {
                self.branch(instruction);
                true
            }
            FlowControl::IndirectBranch => {
                self.switch(instruction);
                true
            }
            FlowControl::Return => {
                let leaves_none = self.frame.depth.is_none_or(|depth| depth == WORD);
                self.is_refuted |= !leaves_none || instruction.code() != Code::Retnq;
                true
            }
            FlowControl::Interrupt => false,
            _ => true,
        }
    }

    fn branch(&mut self, instruction: &Instruction) {
        let depth = self.frame.depth;
        match usize::try_from(instruction.near_branch_target().cast_signed()) {
            Ok(target) if target as u64 > instruction.ip() => self.expect(target),
            Ok(target) => {
                let before = self.depths.partition_point(|(place, _)| *place <= target).checked_sub(1);
                let there = before.and_then(|index| self.depths.get(index));
                self.is_refuted |= there.is_none_or(|(_, there)| *there != depth);
            }
            // To another method, which must find the stack as if it had been called.
            Err(_) => self.is_refuted |= depth != Some(WORD),
        }
    }

    fn expect(&mut self, target: usize) {
        let known = *self.targets.entry(target).or_insert(self.frame.depth);
        self.is_refuted |= known != self.frame.depth;
    }

    /// A branch by a table: all that it leads to has the frame that there is here.
    fn switch(&mut self, instruction: &Instruction) {
        let behind = usize::try_from(instruction.next_ip()).unwrap_or(usize::MAX);
        let Some(table) = self.watch.take(behind) else { return };
        let Some(targets) = table.targets(self.code, self.work) else { return self.is_refuted = true };
        // A table of hashes has entries for no value, which lead to itself.
        targets.into_iter().filter(|target| *target >= behind && *target != table.start).for_each(|at| self.expect(at));
        self.tables.insert(table.start, table.end());
    }
}

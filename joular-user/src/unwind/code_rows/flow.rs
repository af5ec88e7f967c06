//! Follows all ways through a piece of code from its beginning.
//!
//! First it finds the places that branches lead to. Between two such places execution is a straight
//! line, so one state at the beginning of each is enough. Where several ways meet, only what holds on
//! all of them is kept, until nothing changes any more.

use std::{
    collections::{BTreeMap, BTreeSet, btree_map::Entry},
    marker::PhantomData,
};

use crate::{
    arch::{Arch, Flow, Rule, Step, state::State},
    bounds::Bound,
};

/// Instructions that are followed, for each byte of the code: a state changes a few times only.
const STEPS_PER_BYTE: usize = 4;
pub static STEPS: Bound = Bound::new(
    "code_not_followed",
    STEPS_PER_BYTE as u64,
    "instructions are followed for each byte of code that no table describes",
    "stacks that pass through such a piece end there",
);

/// Instructions in a row with the same rule. Places are offsets in the code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Line {
    pub start: u32,
    pub end: u32,
    pub rule: Rule,
}

/// The lines of a piece of code that is entered by a call at its beginning, in order; none if it
/// cannot be followed to its end.
pub fn lines<A: Arch>(code: &[u8]) -> Vec<Line> {
    let code = Code { bytes: code, arch: PhantomData::<A> };
    let mut steps = code.bytes.len().saturating_mul(STEPS_PER_BYTE);
    let starts = code.starts(&mut steps);
    let states = starts.and_then(|starts| code.states(&starts, &mut steps));
    STEPS.cut(u64::from(states.is_none() && steps == 0));
    states.map_or_else(Vec::new, |states| code.lines(&states))
}

struct Code<'a, A> {
    bytes: &'a [u8],
    arch: PhantomData<A>,
}

/// Where execution goes on behind an instruction.
struct Next {
    behind: Option<u32>,
    branch: Option<u32>,
}

impl<A: Arch> Code<'_, A> {
    fn instructions(&self, from: u32) -> impl Iterator<Item = A::Instruction> {
        A::instructions(self.bytes.get(from as usize..).unwrap_or_default(), from.into())
    }

    /// Places out of the code count as none: whatever is there, it is not this frame's.
    fn next(&self, step: Step) -> Next {
        let place = |address: u64| u32::try_from(address).ok().filter(|place| (*place as usize) < self.bytes.len());
        let behind = place(step.end);
        match step.flow {
            Flow::Next | Flow::Call(_) | Flow::IndirectCall => Next { behind, branch: None },
            Flow::Branch(target) => Next { behind, branch: place(target) },
            Flow::Jump(target) => Next { behind: None, branch: place(target) },
            Flow::IndirectJump | Flow::Return | Flow::Stop | Flow::Invalid => Next { behind: None, branch: None },
        }
    }

    /// Where straight lines begin: at the beginning, and wherever a branch leads.
    fn starts(&self, steps: &mut usize) -> Option<BTreeSet<u32>> {
        let mut starts = BTreeSet::from([0]);
        let mut seen = BTreeSet::new();
        let mut waiting = vec![0];
        while let Some(start) = waiting.pop() {
            for instruction in self.instructions(start) {
                *steps = steps.checked_sub(1)?;
                let step = A::step(&instruction);
                let at = u32::try_from(step.at).ok()?;
                if step.flow == Flow::Invalid || !seen.insert(at) {
                    break;
                }
                let next = self.next(step);
                if let Some(target) = next.branch
                    && starts.insert(target)
                {
                    waiting.push(target);
                }
                if next.behind.is_none() {
                    break;
                }
            }
        }
        Some(starts)
    }

    /// The state at the beginning of each straight line that is reached.
    fn states(&self, starts: &BTreeSet<u32>, steps: &mut usize) -> Option<BTreeMap<u32, State>> {
        let mut states = BTreeMap::from([(0, A::called())]);
        let mut waiting = BTreeSet::from([0]);
        let mut follower = Follower { code: self, starts, arch: A::default() };
        while let Some(start) = waiting.pop_first() {
            let Some(state) = states.get(&start).cloned() else { continue };
            let mut reached = Vec::new();
            follower.follow(
                start,
                state,
                |_, _| (),
                |next, behind| {
                    *steps = steps.checked_sub(1)?;
                    let straight_on = next.behind.filter(|place| starts.contains(place));
                    reached.extend(next.branch.into_iter().chain(straight_on).map(|place| (place, behind.clone())));
                    Some(())
                },
            )?;
            for (place, state) in reached {
                let is_news = match states.entry(place) {
                    Entry::Occupied(mut known) => known.get_mut().meet(&state),
                    Entry::Vacant(unknown) => {
                        unknown.insert(state);
                        true
                    }
                };
                if is_news {
                    waiting.insert(place);
                }
            }
        }
        Some(states)
    }

    fn lines(&self, states: &BTreeMap<u32, State>) -> Vec<Line> {
        let starts: BTreeSet<u32> = states.keys().copied().collect();
        let mut follower = Follower { code: self, starts: &starts, arch: A::default() };
        let mut lines: Vec<Line> = Vec::new();
        for (start, state) in states {
            // Where lines overlap, the code was not what it seemed: the first is as good as any.
            if lines.last().is_some_and(|last| *start < last.end) {
                continue;
            }
            let add = |step: Step, before: &State| {
                let place = |address: u64| u32::try_from(address).unwrap_or(u32::MAX);
                let (start, end, rule) = (place(step.at), place(step.end), A::rule(before));
                match lines.last_mut() {
                    Some(last) if last.end == start && last.rule == rule => last.end = end,
                    _ => lines.push(Line { start, end, rule }),
                }
            };
            let _ = follower.follow(*start, state.clone(), add, |_, _| Some(()));
        }
        lines
    }
}

/// Goes along straight lines.
struct Follower<'c, A> {
    code: &'c Code<'c, A>,
    starts: &'c BTreeSet<u32>,
    arch: A,
}

impl<A: Arch> Follower<'_, A> {
    /// Visits the instructions of a straight line with the state before each, and where execution
    /// goes on with the state behind it.
    fn follow(
        &mut self,
        start: u32,
        mut state: State,
        mut before: impl FnMut(Step, &State),
        mut behind: impl FnMut(&Next, &State) -> Option<()>,
    ) -> Option<()> {
        for instruction in self.code.instructions(start) {
            let step = A::step(&instruction);
            if step.flow == Flow::Invalid {
                break;
            }
            before(step, &state);
            self.arch.pass(&instruction, u32::try_from(step.at).ok()?, &mut state);
            let next = self.code.next(step);
            behind(&next, &state)?;
            if next.behind.is_none_or(|behind| self.starts.contains(&behind)) {
                break;
            }
        }
        Some(())
    }
}

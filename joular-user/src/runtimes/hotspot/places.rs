//! Finds which descriptions of compiled code speak for a place that has none.
//!
//! A JVM describes where it may stop: calls, polls. That leaves long stretches without a word, and
//! the next description is often of another method that was inlined further on. There are more
//! places whose description can be known:
//!
//! - A jump to an uncommon trap: the trap's call has the scope of the branch that was not expected.
//! - An instruction that faults on null: the table of null checks says where the JVM goes on, which
//!   is such a trap.
//!
//! Between two such places, only what both have in common is certain. A loop whose descriptions all
//! say the same is that method's. C2 takes the safepoint out of a counted loop and puts it behind
//! it, into another loop around the first one (strip mining), which may go away later.

use super::machine_code::CodeOf;
use crate::arch::Arch;

/// A description: at which offset in the code, and the scope that it leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    pub at: u32,
    pub scope: u32,
}

/// From its first instruction to behind the branch back to it. Jumps back without a condition are
/// mostly from code that is seldom run, and make no loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Loop {
    start: u32,
    end: u32,
}

/// What speaks for a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Speaks {
    /// It is described itself.
    Itself(u32),
    /// The scopes of the descriptions before and behind it, as far as there are any.
    Between(Option<u32>, Option<u32>),
}

/// What is known of one compiled method's code.
#[derive(Clone, Debug, Default)]
pub struct Places {
    /// By offset, each once.
    described: Vec<Place>,
    /// Shortest first.
    loops: Vec<Loop>,
}

impl Places {
    /// Of the JVM's own descriptors, its null checks (offsets of what faults and of where to go on),
    /// and the code. `is_trap` says whether an address is that of the uncommon trap.
    pub fn new<A: Arch>(
        descriptors: &[Place],
        null_checks: &[(u32, u32)],
        code: CodeOf<'_, A>,
        mut is_trap: impl FnMut(u64) -> bool,
    ) -> Self {
        let mut described = descriptors.to_vec();
        // Stable: the JVM's own come first where there are several.
        described.sort_by_key(|place| place.at);
        described.dedup_by_key(|place| place.at);
        let mut of_trap = |at: u32, target: u32| {
            let call = code.call_after(target)?;
            let place = described.binary_search_by_key(&call.return_at, |place| place.at).ok()?;
            let scope = described.get(place)?.scope;
            is_trap(call.callee).then_some(Place { at, scope })
        };
        let mut found: Vec<Place> = null_checks.iter().filter_map(|&(at, target)| of_trap(at, target)).collect();
        let mut loops = Vec::new();
        for branch in code.branches() {
            if branch.target <= branch.at {
                loops.push(Loop { start: branch.target, end: branch.end });
            } else {
                found.extend(of_trap(branch.at, branch.target));
            }
        }
        described.extend(found);
        described.sort_by_key(|place| place.at);
        described.dedup_by_key(|place| place.at);
        let mut known = Self { described, loops };
        known.extend_to_polls(code);
        known.loops.sort_by_key(|one| (one.end - one.start, one.start));
        known
    }

    /// Loops without a description end behind the safepoint that follows them.
    fn extend_to_polls<A: Arch>(&mut self, code: CodeOf<'_, A>) {
        let mut starts: Vec<u32> = self.loops.iter().map(|one| one.start).collect();
        starts.sort_unstable();
        let poll = |one: &Loop| {
            let place = self.described.get(self.described.partition_point(|place| place.at < one.start))?;
            let is_behind = place.at >= one.end && code.poll_after(one.end) == Some(place.at);
            // It would be that of the next loop.
            let next = starts.get(starts.partition_point(|&start| start < one.end));
            (is_behind && next.is_none_or(|&start| start > place.at)).then(|| place.at.saturating_add(1))
        };
        let ends: Vec<u32> = self.loops.iter().map(|one| poll(one).unwrap_or(one.end)).collect();
        for (one, end) in self.loops.iter_mut().zip(ends) {
            one.end = end;
        }
    }

    /// How much memory it takes, in descriptions and loops.
    pub const fn size(&self) -> usize {
        self.described.len() + self.loops.len()
    }

    pub fn speaks_for(&self, offset: u32) -> Speaks {
        let next = self.described.partition_point(|place| place.at < offset);
        let behind = self.described.get(next);
        match behind {
            Some(place) if place.at == offset => Speaks::Itself(place.scope),
            _ => {
                let before = next.checked_sub(1).and_then(|before| self.described.get(before));
                Speaks::Between(before.map(|place| place.scope), behind.map(|place| place.scope))
            }
        }
    }

    /// The descriptions in the shortest loop around a place that has any; none if there is no such
    /// loop.
    pub fn in_loop(&self, offset: u32) -> &[Place] {
        let around = self.loops.iter().filter(|one| one.start <= offset && offset < one.end);
        around.map(|one| self.within(*one)).find(|places| !places.is_empty()).unwrap_or_default()
    }

    fn within(&self, one: Loop) -> &[Place] {
        let first = self.described.partition_point(|place| place.at < one.start);
        let last = self.described.partition_point(|place| place.at < one.end);
        self.described.get(first..last).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::arch::X86_64;

    const TRAP: u64 = 0x1000;

    fn places(descriptors: &[(u32, u32)], null_checks: &[(u32, u32)], code: &[u8]) -> Places {
        let descriptors: Vec<Place> = descriptors.iter().map(|&(at, scope)| Place { at, scope }).collect();
        Places::new(&descriptors, null_checks, CodeOf::<X86_64>::new(code, 0), |callee| callee == TRAP)
    }

    /// mov ecx, [rdi]; cmp ecx, 5; jne 13; add ecx, 1; ret; nop; call (trap or another)
    fn branch(callee: u32) -> Vec<u8> {
        let beginning = [0x8b, 0x0f, 0x83, 0xf9, 0x05, 0x75, 0x06, 0x83, 0xc1, 0x01, 0xc3, 0x90, 0x90, 0xe8];
        [&beginning[..], &(callee - 18).to_le_bytes()].concat()
    }

    #[test]
    fn a_jump_to_a_trap_and_an_instruction_that_faults_have_the_traps_scope() {
        let known = places(&[(18, 7)], &[(0, 13)], &branch(u32::try_from(TRAP).unwrap()));
        assert_eq!(known.speaks_for(0), Speaks::Itself(7), "the load");
        assert_eq!(known.speaks_for(5), Speaks::Itself(7), "the jump");
        assert_eq!(known.speaks_for(2), Speaks::Between(Some(7), Some(7)));
        assert_eq!(known.speaks_for(19), Speaks::Between(Some(7), None));
    }

    #[test]
    fn a_jump_to_another_call_says_nothing_of_itself() {
        let known = places(&[(18, 7)], &[(0, 13)], &branch(0x2000));
        assert_eq!(known.speaks_for(5), Speaks::Between(None, Some(7)));
        let known = places(&[(17, 7)], &[(0, 13)], &branch(u32::try_from(TRAP).unwrap()));
        assert_eq!(known.speaks_for(5), Speaks::Between(None, Some(7)), "the trap's call is not described");
    }

    #[test]
    fn the_jvms_own_descriptors_come_first() {
        let known = places(&[(18, 7), (5, 3)], &[], &branch(u32::try_from(TRAP).unwrap()));
        assert_eq!(known.speaks_for(5), Speaks::Itself(3));
    }

    #[test]
    fn the_shortest_loop_around_a_place_that_has_descriptions_counts() {
        // 0: nop; 1: nop; 2: nop; 3: je 1; 5: nop; 6: je 0
        let code = [0x90, 0x90, 0x90, 0x74, 0xfc, 0x90, 0x74, 0xf8];
        let known = places(&[(2, 1), (5, 2)], &[], &code);
        let scopes = |at| known.in_loop(at).iter().map(|place| place.scope).collect::<Vec<_>>();
        assert_eq!([0, 1, 4, 5, 7, 8].map(scopes), [vec![1, 2], vec![1], vec![1], vec![1, 2], vec![1, 2], vec![]]);
        assert_eq!(places(&[(5, 2)], &[], &code).in_loop(2), [Place { at: 5, scope: 2 }], "the inner loop has none");
    }

    #[test]
    fn a_loop_without_descriptions_has_the_safepoint_behind_it() {
        // 0: nop; 1: je 0; 3: nop; 4: test [rbx], eax; 6: nop
        let code = [0x90, 0x74, 0xfd, 0x90, 0x85, 0x03, 0x90];
        let behind = |descriptors: &[(u32, u32)], code: &[u8]| {
            places(descriptors, &[], code).in_loop(0).iter().map(|place| place.scope).collect::<Vec<_>>()
        };
        assert_eq!(behind(&[(4, 7)], &code), [7]);
        assert!(behind(&[(3, 6), (4, 7)], &code).is_empty(), "something else is between");
        assert!(behind(&[(6, 7)], &code).is_empty(), "the poll is not described");
        // 0: nop; 1: je 0; 3: nop; 4: test [rbx], eax; 6: je 3
        let next = [&code[..6], &[0x74, 0xfb]].concat();
        assert_eq!(places(&[(4, 7)], &[], &next).in_loop(0), [], "it is the next loop's");
        // 0: nop; 1: je 0; 3: ret; 4: test [rbx], eax
        assert!(behind(&[(4, 7)], &[0x90, 0x74, 0xfd, 0xc3, 0x85, 0x03]).is_empty(), "it is not reached");
    }

    proptest! {
        #[test]
        fn whatever_it_is_given_it_answers_with_what_it_was_told(
            descriptors: Vec<(u32, u32)>,
            null_checks: Vec<(u32, u32)>,
            code: Vec<u8>,
            offset in 0u32..300,
        ) {
            let known = places(&descriptors, &null_checks, &code);
            let is_told = |scope: u32| descriptors.iter().any(|&(_, told)| told == scope);
            match known.speaks_for(offset) {
                Speaks::Itself(scope) => prop_assert!(is_told(scope)),
                Speaks::Between(before, behind) => {
                    prop_assert!(before.is_none_or(is_told) && behind.is_none_or(is_told));
                }
            }
            prop_assert!(known.in_loop(offset).iter().all(|place| is_told(place.scope)));
        }
    }
}

//! Tests which step takes which frame, and how often.

use std::vec;

use super::{hotspot::*, *};
use crate::walk::dispatch::{self, GO_ON, Walker};

for_each_arch!(
    each_kind_of_code_has_its_step,
    methods_in_a_row_are_walked_together,
    what_is_not_there_ends_the_walk,
    other_code_at_a_remembered_place_has_its_own_frame,
);

/// A walker with a function before each step, as the programs are one, that notes
/// which of them was called.
struct Noting<'a, A: Arch> {
    of: HostWalker<'a, A, MadeUpProcess<A>, MadeUpProcess<A>>,
    called: Vec<&'static str>,
}

impl<A: Arch> Walker for Noting<'_, A> {
    type Arch = A;
    type Memory = MadeUpProcess<A>;
    type Tables = MadeUpProcess<A>;

    fn parts(&mut self) -> Option<Parts<'_, A, MadeUpProcess<A>, MadeUpProcess<A>>> {
        self.of.parts()
    }

    fn frames(&mut self) -> u32 {
        self.called.push("frames");
        dispatch::frames(self)
    }

    fn native(&mut self) -> u32 {
        self.called.push("native");
        dispatch::native_frame(self)
    }

    fn interpreted(&mut self) -> u32 {
        self.called.push("interpreted");
        dispatch::interpreted_frame(self)
    }

    fn compiled(&mut self, kind: u32) -> u32 {
        self.called.push("compiled");
        dispatch::compiled_frame(self, kind)
    }

    fn stub(&mut self, kind: u32) -> u32 {
        self.called.push("stub");
        dispatch::stub_frame(self, kind)
    }
}

/// The functions that were called for a walk, and how many frames they found.
fn steps_of<A: Arch>(process: &MadeUpProcess<A>, registers: Registers<A>) -> (Vec<&'static str>, u32) {
    let mut walk = Box::new(Walk::default());
    let mapping_count = process.mappings.len() as u32;
    walk.begin(registers, ProcessUnwind { mapping_count, ..ProcessUnwind::default() });
    let of = HostWalker(Parts { walk: &mut walk, memory: process, tables: process });
    let mut noting = Noting { of, called: Vec::new() };
    assert_eq!(to_the_end(&mut noting).0, walk_end::ROOT);
    (noting.called, walk.header.len)
}

/// The frame under test, a compiled method that called it, and its root.
fn each_kind_of_code_has_its_step<A: MadeUp>() {
    for (pc, first) in [
        (CALLEE.begin() + BODY, "compiled"),
        (RUNTIME_STUB.begin() + BODY, "compiled"),
        (INTERPRETER + 0x20, "interpreted"),
        (VTABLE_STUB.begin(), "stub"),
    ] {
        let mut process = process::<A>();
        let fp = STACK + 0x80;
        process.words(STACK, &[0; 32]);
        let caller = match first {
            "compiled" => STACK + 0x30,
            "interpreted" => {
                interpreted_frame(&mut process, fp, 0, fp + 16, 0, RETURN);
                fp + 16
            }
            _ => STACK + 8,
        };
        process.words(caller - 8, &[RETURN]);
        caller_frame(&mut process, caller);
        let registers = Registers { fp: if first == "interpreted" { fp } else { 0 }, ..leaf(pc) };
        let registers = if first == "stub" { A::called(&process, registers) } else { registers };
        // The second frame may have been guessed at, so it is not yet one in the middle.
        let expected = (vec!["frames", first, "frames", "compiled", "frames", "native"], 3);
        assert_eq!(steps_of(&process, registers), expected, "{pc:#x}");
    }
}

/// Most frames are methods that called a method: eight of them are one step.
fn methods_in_a_row_are_walked_together<A: MadeUp>() {
    const METHODS: u64 = 20;
    let mut process = process::<A>();
    for depth in 0..METHODS {
        let sp = STACK + depth * 8 * CALLER.frame_words;
        process.words(sp, &[0, 0, 0, if depth + 1 == METHODS { IN_LIBJVM } else { RETURN }]);
    }
    let (steps, frames) = steps_of(&process, leaf(CALLER.begin() + BODY));
    assert_eq!(u64::from(frames), METHODS + 1);
    let alone = ["frames", "compiled", "frames", "compiled"];
    assert_eq!(steps, [&alone[..], &["frames"; 3], &["native"]].concat(), "18 in the middle: 8, 8, 2 and the root");
}

/// A walk that there is no room for, or of a JVM that is gone meanwhile, ends.
fn what_is_not_there_ends_the_walk<A: MadeUp>() {
    struct Nothing<A>(PhantomData<A>);
    impl<A: Arch> Walker for Nothing<A> {
        type Arch = A;
        type Memory = MadeUpProcess<A>;
        type Tables = MadeUpProcess<A>;

        fn parts(&mut self) -> Option<Parts<'_, A, MadeUpProcess<A>, MadeUpProcess<A>>> {
            None
        }
    }
    assert_eq!(to_the_end(&mut Nothing::<A>(PhantomData)), End(walk_end::BUDGET));

    let mut process = process::<A>();
    process.jvm = None;
    let mut walk = Box::new(Walk::<A>::default());
    walk.begin(leaf(CALLEE.begin()), ProcessUnwind::default());
    let mut walker = HostWalker(Parts { walk: &mut walk, memory: &process, tables: &process });
    for step in [dispatch::interpreted_frame, |walker: &mut _| dispatch::compiled_frame(walker, 0)] {
        assert_eq!(step(&mut walker), u32::from(walk_end::NO_MAPPING));
    }
    assert_ne!(u32::from(walk_end::NO_MAPPING), GO_ON);
}

/// What was remembered of a place in code is not used for other code that the JVM has put there.
fn other_code_at_a_remembered_place_has_its_own_frame<A: MadeUp>() {
    let mut process = process::<A>();
    for code in [CALLER, Code { compile_id: CALLER.compile_id + 1, frame_words: CALLER.frame_words + 2, ..CALLER }] {
        blob(&mut process, code, false);
        let frame = 8 * code.frame_words;
        process.words(STACK, &[0; 32]);
        for (number, returns_to) in [(1, RETURN), (2, RETURN), (3, IN_LIBJVM)] {
            process.words(STACK + number * frame - 8, &[returns_to]);
        }
        // The third frame is the one in the middle, which is remembered.
        let frames = vec![code.at(BODY), code.call(BODY), code.call(BODY), native(IN_LIBJVM)];
        for _ in 0..2 {
            assert_eq!(process.walk_again(leaf(code.begin() + BODY)), (frames.clone(), walk_end::ROOT));
        }
    }
}

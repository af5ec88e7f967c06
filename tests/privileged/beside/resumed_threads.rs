//! Tests stacks of virtual threads that share carriers and are resumed at other depths of their stacks than
//! they began at: they are whole, though their older frames are in the heap. [`crate::slow`] has more cases.

use anyhow::Result;

use crate::resumed::{Case, Compiler, expect_whole};

/// One would be off by more in a run of thousands.
const DEVIATIONS: f64 = 4.5;

const CASES: [Case; 4] = [
    Case::new(25, Compiler::C2, 4, 200, 500),
    Case::new(25, Compiler::None, 2, 200, 5),
    Case::new(21, Compiler::C1, 1, 200, 50),
    Case::new(21, Compiler::C2, 2, 1_000, 5),
];

#[test]
fn stacks_of_resumed_virtual_threads_are_whole() -> Result<()> {
    CASES.into_iter().try_for_each(|case| expect_whole(case, DEVIATIONS))
}

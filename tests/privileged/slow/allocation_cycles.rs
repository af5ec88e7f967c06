//! Tests the intervals of allocated bytes by many programs whose orders repeat, or do not.

use anyhow::Result;

use crate::alone::allocation_cycles;

#[test]
fn intervals_hold_the_truth_of_random_mixed_and_repeating_orders_across_jdks() -> Result<()> {
    allocation_cycles::expect_all_to_hold()
}

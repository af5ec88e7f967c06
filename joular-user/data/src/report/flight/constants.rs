//! Finds the constants of a chunk: where each stands that fields refer to by type and number.

use std::collections::HashMap;

use foldhash::fast::RandomState;

use super::{
    error::Damage,
    input::Input,
    types::Types,
    values::{self, Budget},
};

/// Type of the events that have constants.
pub const CHECKPOINT: u64 = 1;

/// Constants that are kept. What more of them mean is not told.
const MOST: usize = 4 << 20;

/// Constants by type and number.
#[derive(Clone, Debug, Default)]
pub struct Constants {
    /// Where each stands in its chunk.
    places: HashMap<(u64, u64), usize, RandomState>,
}

impl Constants {
    /// Takes the constants of one event, without its size and type. `wants` tells types whose constants are of use.
    ///
    /// # Errors
    /// If it is damaged.
    pub(super) fn take(
        &mut self,
        mut input: Input<'_>,
        types: &Types,
        wants: impl Fn(u64) -> bool,
        budget: &mut Budget,
    ) -> Result<(), Damage> {
        // Ticks, a length, where other constants are, and how complete they are.
        for _ in 0..3 {
            input.natural()?;
        }
        input.byte()?;
        for _ in 0..input.count()? {
            let of = input.natural()?;
            for _ in 0..input.count()? {
                let number = input.natural()?;
                if self.places.len() < MOST && wants(of) {
                    self.places.insert((of, number), input.at());
                }
                values::skip(&mut input, types, of, budget)?;
            }
        }
        Ok(())
    }

    /// Where a constant stands in its chunk.
    pub(super) fn place(&self, of: u64, number: u64) -> Option<usize> {
        self.places.get(&(of, number)).copied()
    }
}

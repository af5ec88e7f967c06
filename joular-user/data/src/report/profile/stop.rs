//! Lets somebody else end the reading of a data set.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use crate::dataset::error::{DataSetError, Result};

/// Ends what reads by a filter that has it; copies end the same. Whoever reads looks at it between batches of rows.
#[derive(Clone, Debug, Default)]
pub struct Stop(Arc<AtomicBool>);

impl Stop {
    /// Nobody needs the result any more.
    pub fn now(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// # Errors
    /// If nobody needs the result any more.
    pub(in crate::report) fn check(&self) -> Result<()> {
        if self.0.load(Ordering::Relaxed) { Err(DataSetError::Stopped) } else { Ok(()) }
    }
}

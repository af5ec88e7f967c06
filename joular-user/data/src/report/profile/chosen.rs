//! A condition on processes that patterns of names cannot say.

use std::{fmt, sync::Arc};

use super::catalog::{Catalog, Process};

type Condition = dyn Fn(&Catalog, &Process) -> bool + Send + Sync;

/// Processes that somebody else chooses, such as another language of selections. The default allows all.
#[derive(Clone, Default)]
pub struct Chosen(Option<Arc<Condition>>);

impl Chosen {
    /// Processes for which `condition` holds. Several threads may ask it, and it is asked again for the same process.
    pub fn by(condition: impl Fn(&Catalog, &Process) -> bool + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(condition)))
    }

    pub(super) fn allow(&self, catalog: &Catalog, process: &Process) -> bool {
        self.0.as_ref().is_none_or(|condition| condition(catalog, process))
    }
}

impl fmt::Debug for Chosen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "Chosen(by a condition)" } else { "Chosen(all)" })
    }
}

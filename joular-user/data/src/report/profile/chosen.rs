//! A condition on processes that patterns of names cannot say.

use std::{fmt, sync::Arc};

use super::catalog::{Catalog, Process};

type Condition = dyn Fn(&Catalog, &Process) -> bool + Send + Sync;

/// Processes that somebody else chooses, such as another language of selections. The default allows all.
#[derive(Clone, Default)]
pub struct Chosen {
    condition: Option<Arc<Condition>>,
    is_of_sums: bool,
}

impl Chosen {
    /// Processes for which `condition` holds. Several threads may ask it, and it is asked again for the same process.
    pub fn by(condition: impl Fn(&Catalog, &Process) -> bool + Send + Sync + 'static) -> Self {
        Self { condition: Some(Arc::new(condition)), is_of_sums: false }
    }

    /// The same of a condition that asks nothing about a process but its service, the service's version, and its namespace:
    /// sums by these have the same answers.
    pub fn by_sums(condition: impl Fn(&Catalog, &Process) -> bool + Send + Sync + 'static) -> Self {
        Self { is_of_sums: true, ..Self::by(condition) }
    }

    /// Whether sums do not know what it asks about.
    pub const fn needs_runs(&self) -> bool {
        self.condition.is_some() && !self.is_of_sums
    }

    pub(super) fn allow(&self, catalog: &Catalog, process: &Process) -> bool {
        self.condition.as_ref().is_none_or(|condition| condition(catalog, process))
    }
}

impl fmt::Debug for Chosen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.condition.is_some() { "Chosen(by a condition)" } else { "Chosen(all)" })
    }
}

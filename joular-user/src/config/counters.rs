//! Resolves what is counted beside CPU time.

use joular_data::model::counter::Counter;
use joular_ebpf::abi::MAX_COUNTERS;

use super::{ConfigError, Places, memory::MemoryBy};

impl Places {
    /// Each counter once, in the order in which they were named, and what memory is divided by.
    pub(super) fn counters(&self, names: &[String], memory_by: MemoryBy) -> Result<Vec<Counter>, ConfigError> {
        let mut counters = Vec::new();
        for name in names {
            let counter = self.parse("counters", name)?;
            if !counters.contains(&counter) {
                counters.push(counter);
            }
        }
        if memory_by == MemoryBy::CacheMisses && !counters.contains(&Counter::CacheMisses) {
            counters.push(Counter::CacheMisses);
        }
        if counters.len() > MAX_COUNTERS {
            let cause = format!("{} counters, of which {MAX_COUNTERS} are possible at once", counters.len());
            return Err(self.invalid("counters", cause));
        }
        Ok(counters)
    }
}

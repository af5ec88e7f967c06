//! Names for the addresses of a window, sent on only where they are news.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    hash::{DefaultHasher, Hash as _, Hasher as _},
};

use joular_data::{
    attribution::Engine,
    events::{Event, ProcessInfo, SampleCount, Symbol},
    model::units::{Address, Pid},
    stacks::path::lookup_addresses,
};

use crate::symbols::Symbolizer;

/// Addresses of one process, and of all, that are remembered: as many as the engine
/// keeps, which forgets what is forgotten here at the same moment.
const MAX_TOLD: usize = 1 << 15;
const MAX_TOLD_OF_ALL: usize = 1 << 19;

/// Remembers what the engine has been told.
#[derive(Debug, Default)]
pub(super) struct SymbolFeed {
    /// Per process (pid 0: the kernel) and address, a hash of the last answer.
    told: HashMap<Pid, HashMap<Address, u64>>,
}

impl SymbolFeed {
    /// Resolves every address that a window's samples need.
    pub(super) fn resolve<'a>(
        &mut self,
        symbolizer: &mut Symbolizer,
        engine: &Engine,
        samples: &[SampleCount],
        target: impl Fn(Pid) -> Option<&'a ProcessInfo>,
    ) -> Vec<Event> {
        let mut wanted: BTreeMap<Pid, BTreeSet<Address>> = BTreeMap::new();
        for sample in samples {
            for (pid, id) in [(sample.pid, sample.user_stack), (Pid(0), sample.kernel_stack)] {
                if let Some(stack) = engine.stack(id) {
                    wanted.entry(pid).or_default().extend(lookup_addresses(stack));
                }
            }
        }
        let mut events = Vec::new();
        for (pid, addresses) in wanted {
            let addresses: Vec<Address> = addresses.into_iter().collect();
            let (start_boottime_ns, symbols) = if pid == Pid(0) {
                (0, symbolizer.resolve_kernel(&addresses))
            } else {
                let Some(process) = target(pid) else { continue };
                (process.start_boottime_ns, symbolizer.resolve(process, &addresses))
            };
            let symbols = self.news(pid, symbols);
            if !symbols.is_empty() {
                events.push(Event::Symbols { pid, start_boottime_ns, symbols });
            }
        }
        events
    }

    fn news(&mut self, pid: Pid, symbols: Vec<Symbol>) -> Vec<Symbol> {
        // What is forgotten is told again: dearer for once, and bounded.
        if self.told.get(&pid).is_some_and(|told| told.len() >= MAX_TOLD) {
            self.told.remove(&pid);
        }
        if self.told.values().map(HashMap::len).sum::<usize>() >= MAX_TOLD_OF_ALL {
            let most = self.told.iter().max_by_key(|(pid, told)| (told.len(), **pid)).map(|(pid, _)| *pid);
            most.into_iter().for_each(|most| self.forget(most));
        }
        let told = self.told.entry(pid).or_default();
        let is_news = |symbol: &Symbol| {
            let mut hasher = DefaultHasher::new();
            symbol.frames.hash(&mut hasher);
            told.insert(symbol.address, hasher.finish()) != Some(hasher.finish())
        };
        symbols.into_iter().filter(is_news).collect()
    }

    /// Forgets a process that ended or runs another program now.
    pub(super) fn forget(&mut self, pid: Pid) {
        self.told.remove(&pid);
    }
}

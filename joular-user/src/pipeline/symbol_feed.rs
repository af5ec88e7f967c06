//! Names the addresses of a window, and sends on only names that are new or changed.

use std::collections::{BTreeMap, BTreeSet};

use joular_data::{
    attribution::ToldNames,
    events::{Event, ProcessInfo, RawStack, SampleCount},
    model::units::{Address, Pid},
    stacks::path::lookup_addresses,
};

use crate::symbols::{ProcessKey, Symbolizer};

/// Asks for names, and remembers which of them the engine has been told.
#[derive(Debug, Default)]
pub(super) struct SymbolFeed {
    told: ToldNames,
}

impl SymbolFeed {
    /// Resolves every address that a window's samples need: those of CPU time, and the stacks of bytes.
    pub(super) fn resolve<'a>(
        &mut self,
        symbolizer: &mut Symbolizer,
        stack: impl Fn(u64) -> Option<&'a RawStack>,
        samples: &[SampleCount],
        of_bytes: &[(Pid, u64)],
        target: impl Fn(Pid) -> Option<&'a ProcessInfo>,
    ) -> Vec<Event> {
        let mut wanted: BTreeMap<Pid, BTreeSet<Address>> = BTreeMap::new();
        let sampled = samples.iter().flat_map(|of| [(of.pid, of.user_stack), (Pid(0), of.kernel_stack)]);
        for (pid, id) in sampled.chain(of_bytes.iter().copied()) {
            if let Some(stack) = stack(id) {
                wanted.entry(pid).or_default().extend(lookup_addresses(stack));
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
            let symbols = self.told.news((pid, start_boottime_ns), symbols);
            if !symbols.is_empty() {
                events.push(Event::Symbols { pid, start_boottime_ns, symbols });
            }
        }
        events
    }

    /// Notes that the process runs another program now.
    pub(super) fn tell_again(&mut self, process: ProcessKey) {
        self.told.tell_again(process);
    }

    /// Forgets a process that ended or is not a target any more.
    pub(super) fn forget(&mut self, process: ProcessKey) {
        self.told.forget(process);
    }
}

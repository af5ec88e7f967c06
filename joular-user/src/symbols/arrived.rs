//! Takes in stacks that have just arrived. What names them is read while their process is sure to be there;
//! the names themselves are put together when a window needs them.

use std::{
    collections::{BTreeSet, HashMap},
    time::Instant,
};

use joular_data::{
    events::{ProcessInfo, RawStack},
    model::units::Address,
    stacks::path::lookup_addresses,
};

use super::{
    Symbolizer,
    process::{Location, Process},
};

impl Symbolizer {
    /// Takes in stacks of a process that have just arrived, each with its generation. What it takes to name
    /// them is read and requested now, while the process is sure to be there.
    pub fn take_in_stacks(&mut self, info: &ProcessInfo, stacks: &mut [(u8, RawStack)]) {
        let process = self.processes.get_mut(&(info.pid, info.start_boottime_ns));
        process.into_iter().flat_map(Process::open_instances).for_each(|open| open.take_in(stacks));
        let addresses: BTreeSet<Address> = stacks.iter().flat_map(|(_, stack)| lookup_addresses(stack)).collect();
        self.read_ahead(info, &addresses.into_iter().collect::<Vec<_>>());
    }

    /// Takes in stacks of the kernel. All that is ever asked of their addresses is which function they are in, so each
    /// is replaced by one address in its function: a machine's addresses are many, and each would be kept with its name.
    pub fn take_in_kernel_stacks(&mut self, stacks: &mut [(u8, RawStack)]) {
        let Some(symbols) = self.kernel_symbols() else { return };
        // Stacks share most of their addresses, and a search looks at 17 symbols that lie far apart.
        let mut starts: HashMap<Address, Option<Address>> = HashMap::new();
        for (_, stack) in stacks {
            let looked_up: Vec<Address> = lookup_addresses(stack).collect();
            for (frame, address) in stack.frames.iter_mut().zip(looked_up) {
                let start = starts.entry(address).or_insert_with(|| symbols.function_start(address));
                if let Some(start) = start {
                    // A return address is looked up one byte before.
                    *frame = Address(start.0.saturating_add(frame.0.saturating_sub(address.0)));
                }
            }
        }
    }

    /// Reads and requests what it takes to name addresses later.
    fn read_ahead(&mut self, info: &ProcessInfo, addresses: &[Address]) {
        let key = (info.pid, info.start_boottime_ns);
        if !self.processes.contains_key(&key) {
            self.process_started(info);
        }
        let now = Instant::now();
        let places = self.places(key, addresses, now);
        self.prepare(&places);
        // Whoever makes code is asked for its names when some are missing.
        let is_generated = |(_, place): &(&Address, &Location)| **place == Location::Generated;
        let generated = addresses.iter().zip(&places).filter(is_generated).map(|(address, _)| *address);
        let generated: Vec<Address> = generated.collect();
        if generated.is_empty() {
            self.try_open_instances(key, now);
        } else {
            let _later = self.resolve(info, &generated);
        }
    }
}

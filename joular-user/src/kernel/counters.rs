//! Opens the events of `--counters` on each CPU, for the programs to read, and takes what they counted of each thread.
//!
//! Events of the hardware are pinned, as those of cycles are: what does not fit beside the others is refused, not
//! counted part of the time. Context switches need no event: the programs count them for each thread anyway, while
//! the kernel's own event counts a switch for the thread that comes and not for the one that goes.

use std::{
    collections::{BTreeMap, HashMap},
    io,
    os::fd::AsFd as _,
};

use aya::{
    Ebpf,
    maps::{Map, MapData},
};
use joular_data::{
    events::{ThreadCounts, ThreadTime, WindowCounters},
    model::{
        counter::Counter,
        units::{Pid, Tid},
    },
};
use joular_ebpf::abi::{CounterSlot, MAX_COUNTERS, ThreadKey};
use perf_event::{
    Builder,
    events::{Cache, CacheId, CacheOp, CacheResult, Event, Hardware, Software},
};

use super::{
    bank_maps::{BankMaps, Capacity},
    cpus::Life,
    cycles::{open_event, put},
    error::KernelError,
};

/// Where the programs read events, in their order.
const MAPS: [&str; MAX_COUNTERS] =
    ["COUNTERS_0", "COUNTERS_1", "COUNTERS_2", "COUNTERS_3", "COUNTERS_4", "COUNTERS_5", "COUNTERS_6", "COUNTERS_7"];

/// What the programs read by an event.
pub(super) fn by_event(asked: &[Counter]) -> impl Iterator<Item = Counter> {
    asked.iter().copied().filter(|counter| *counter != Counter::ContextSwitches).take(MAX_COUNTERS)
}

/// Open events, by their CPU.
pub(super) struct CounterEvents {
    /// Each counter with its map. The kernel takes the events out of a map when it is closed.
    counters: Vec<(Counter, MapData)>,
    open: Vec<(Life, Vec<perf_event::Counter>)>,
}

impl CounterEvents {
    /// No event is open yet.
    pub(super) fn new(ebpf: &mut Ebpf, asked: &[Counter]) -> Result<Self, KernelError> {
        let take = |(counter, name)| match ebpf.take_map(name) {
            Some(Map::PerfEventArray(map)) => Ok((counter, map)),
            _ => Err(KernelError::Missing { kind: "map", name }),
        };
        let counters = by_event(asked).zip(MAPS).map(take).collect::<Result<_, _>>()?;
        Ok(Self { counters, open: Vec::new() })
    }

    /// Opens events of CPUs that came online, closes those of others. The programs read them from now on.
    pub(super) fn follow(&mut self, lives: &[Life]) -> Result<(), KernelError> {
        self.open.retain(|(life, _)| lives.contains(life));
        for life in lives {
            if self.open.iter().all(|(known, _)| known != life)
                && let Some(events) = self.open_on(life.cpu)?
            {
                self.open.push((*life, events));
            }
        }
        Ok(())
    }

    /// `None` if the CPU is gone again, or was never there.
    fn open_on(&self, cpu: u32) -> Result<Option<Vec<perf_event::Counter>>, KernelError> {
        let mut events = Vec::with_capacity(self.counters.len());
        for (counter, map) in &self.counters {
            let failed = |source| KernelError::Counter { counter: counter.name(), cpu, source };
            match open(*counter, cpu) {
                Ok(mut event) => {
                    // A pinned event that found no room says so when it is read.
                    event.read().map_err(|source| match source.kind() {
                        io::ErrorKind::UnexpectedEof => KernelError::CounterRoom { counter: counter.name(), cpu },
                        _ => failed(source),
                    })?;
                    put(map.fd().as_fd(), cpu, &event).map_err(failed)?;
                    events.push(event);
                }
                Err(error) if matches!(error.raw_os_error(), Some(libc::ENXIO | libc::ENODEV)) => return Ok(None),
                Err(source) if is_absent(&source) => {
                    return Err(KernelError::NoCounter { counter: counter.name() });
                }
                Err(source) => return Err(failed(source)),
            }
        }
        Ok(Some(events))
    }
}

/// Those of these counters that this machine's CPUs do not count, as far as can be known without privileges.
pub fn absent(asked: &[Counter]) -> impl Iterator<Item = Counter> {
    let probe = |counter: Counter| with_event(counter, |event| event.observe_self().build().map(drop));
    let is_missing = move |counter: &Counter| probe(*counter).is_err_and(|error| is_absent(&error));
    asked.iter().copied().filter(|counter| counter.is_of_hardware()).filter(is_missing)
}

/// Refuses counters that this machine does not have.
///
/// # Errors
/// [`KernelError::NoCounter`].
pub fn check(asked: &[Counter]) -> Result<(), KernelError> {
    absent(asked).next().map_or(Ok(()), |counter| Err(KernelError::NoCounter { counter: counter.name() }))
}

fn is_absent(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::ENOENT | libc::ENODEV | libc::EOPNOTSUPP | libc::EINVAL))
}

fn open(counter: Counter, cpu: u32) -> io::Result<perf_event::Counter> {
    match (hardware(counter), misses(counter)) {
        (Some(event), _) => open_event(event, cpu),
        (None, Some(event)) => open_event(event, cpu),
        (None, None) => open_event(software(counter), cpu),
    }
}

fn with_event<T>(counter: Counter, take: impl FnOnce(&mut Builder<'_>) -> T) -> T {
    fn of<T>(event: impl Event, take: impl FnOnce(&mut Builder<'_>) -> T) -> T {
        take(&mut Builder::new(event))
    }
    match (hardware(counter), misses(counter)) {
        (Some(event), _) => of(event, take),
        (None, Some(event)) => of(event, take),
        (None, None) => of(software(counter), take),
    }
}

const fn hardware(counter: Counter) -> Option<Hardware> {
    Some(match counter {
        Counter::Cycles => Hardware::CPU_CYCLES,
        Counter::Instructions => Hardware::INSTRUCTIONS,
        Counter::CacheReferences => Hardware::CACHE_REFERENCES,
        Counter::CacheMisses => Hardware::CACHE_MISSES,
        Counter::Branches => Hardware::BRANCH_INSTRUCTIONS,
        Counter::BranchMisses => Hardware::BRANCH_MISSES,
        Counter::RefCycles => Hardware::REF_CPU_CYCLES,
        _ => return None,
    })
}

/// Loads that a cache does not have.
const fn misses(counter: Counter) -> Option<Cache> {
    let which = match counter {
        Counter::L1DataLoadMisses => CacheId::L1D,
        Counter::LastLevelLoadMisses => CacheId::LL,
        Counter::DataTlbLoadMisses => CacheId::DTLB,
        _ => return None,
    };
    Some(Cache { which, operation: CacheOp::READ, result: CacheResult::MISS })
}

const fn software(counter: Counter) -> Software {
    match counter {
        Counter::MinorFaults => Software::PAGE_FAULTS_MIN,
        Counter::MajorFaults => Software::PAGE_FAULTS_MAJ,
        Counter::ContextSwitches => Software::CONTEXT_SWITCHES,
        Counter::CpuMigrations => Software::CPU_MIGRATIONS,
        _ => Software::PAGE_FAULTS,
    }
}

/// The maps in which the programs count, if anything was asked for.
pub(super) struct Counts {
    asked: Vec<Counter>,
    maps: BankMaps<u64, CounterSlot>,
}

impl Counts {
    pub(super) fn take(ebpf: &mut Ebpf, asked: &[Counter], threads: Capacity) -> Result<Option<Self>, KernelError> {
        if asked.is_empty() {
            return Ok(None);
        }
        Ok(Some(Self { asked: asked.to_vec(), maps: BankMaps::new(ebpf, "COUNTS", threads)? }))
    }

    /// Takes what was counted in a bank that no program writes to. `threads` are its threads, by key. Counts of
    /// threads that have no time there are nobody's: their number comes second.
    pub(super) fn drain(
        &mut self,
        bank: u32,
        threads: &HashMap<u64, ThreadTime>,
    ) -> Result<(WindowCounters, u64), KernelError> {
        let mut slots = Vec::new();
        self.maps.drain(bank, |key, slot| slots.push((key, slot)))?;
        Ok(tally(&self.asked, slots, threads))
    }
}

fn tally(
    asked: &[Counter],
    slots: Vec<(u64, CounterSlot)>,
    threads: &HashMap<u64, ThreadTime>,
) -> (WindowCounters, u64) {
    let mut counted: BTreeMap<(Pid, Tid, u64), ThreadCounts> = BTreeMap::new();
    let mut add = |time: &ThreadTime, of: &dyn Fn(Counter) -> u64| {
        let key = (time.pid, time.tid, time.start_boottime_ns);
        let row = counted.entry(key).or_insert_with(|| ThreadCounts {
            tid: time.tid,
            pid: time.pid,
            start_boottime_ns: time.start_boottime_ns,
            is_kernel: time.is_kernel,
            counts: vec![0; asked.len()],
        });
        for (sum, counter) in row.counts.iter_mut().zip(asked) {
            *sum = sum.saturating_add(of(*counter));
        }
    };
    let mut unknown = 0;
    let nobody = ThreadTime::default();
    for (key, slot) in slots {
        let found = if key == ThreadKey::UNKNOWN.0 { Some(&nobody) } else { threads.get(&key) };
        let Some(time) = found else {
            unknown += 1;
            continue;
        };
        let position = |counter| by_event(asked).position(|other| other == counter);
        add(time, &|counter| position(counter).and_then(|at| slot.counts.get(at)).copied().unwrap_or(0));
    }
    if asked.contains(&Counter::ContextSwitches) {
        for time in threads.values() {
            add(time, &|counter| if counter == Counter::ContextSwitches { time.switches.into() } else { 0 });
        }
    }
    let mut threads: Vec<ThreadCounts> = counted.into_values().collect();
    threads.retain(|row| row.counts.iter().any(|count| *count > 0));
    (WindowCounters { counters: asked.to_vec(), threads }, unknown)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_of_a_thread_are_summed_over_places_and_switches_are_its_own() {
        let time = |tid, switches| ThreadTime { pid: Pid(7), tid: Tid(tid), switches, ..ThreadTime::default() };
        let threads = HashMap::from([(1, time(8, 2)), (2, time(8, 3)), (3, time(9, 0))]);
        let slot = |first, second| {
            let mut slot = CounterSlot::default();
            slot.counts[0] = first;
            slot.counts[1] = second;
            slot
        };
        let asked = [Counter::PageFaults, Counter::ContextSwitches, Counter::CpuMigrations];
        let slots = vec![(1, slot(10, 1)), (2, slot(20, 0)), (99, slot(5, 5)), (ThreadKey::UNKNOWN.0, slot(7, 0))];
        let (counted, unknown) = tally(&asked, slots, &threads);
        let rows: Vec<_> = counted.threads.iter().map(|row| (row.tid.0, row.counts.clone())).collect();
        assert_eq!((rows, unknown), (vec![(0, vec![7, 0, 0]), (8, vec![30, 5, 1])], 1), "0: of nobody that is known");
    }
}

//! Takes in what the programs send between boundaries: new stacks, what becomes of processes, and pools of collections.

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use joular_data::{
    events::{
        Event, RawStack,
        decode::{self, Record},
    },
    model::units::Pid,
};

use super::{LiveError, Run};

/// Records taken from the ring at once. A process that makes them faster than they are read must not keep a window from
/// ending; the rest is taken at the next poll.
const MAX_RECORDS: usize = 100_000;

/// Time spent on them while a window runs.
pub(super) const MAX_DRAIN: Duration = Duration::from_millis(200);
/// The same when it has ended. What is left then comes too late for it: threads that have ended keep their parent's name.
pub(super) const MAX_DRAIN_AT_END: Duration = Duration::from_secs(2);

/// Stacks taken in together.
const MAX_STACKS: usize = 256;

/// What was taken from the ring.
#[derive(Clone, Copy, Debug)]
pub(super) struct Taken {
    pub(super) is_any: bool,
    /// Whether nothing was left.
    pub(super) is_all: bool,
}

impl Run<'_> {
    /// Takes what is in the ring, within a limit of time.
    pub(super) fn drain_ring(&mut self, limit: Duration) -> Result<Taken, LiveError> {
        let begin = Instant::now();
        let (mut taken, mut stacks, mut strangers, mut is_all) = (0, Vec::new(), 0, false);
        while taken < MAX_RECORDS && begin.elapsed() < limit {
            let Some(decoded) = self.live.ring.next().map(|record| decode::decode(&record)) else {
                is_all = true;
                break;
            };
            taken += 1;
            match decoded {
                Ok(Record::Stack { pid, generation, stack }) => {
                    stacks.push((pid, generation, stack));
                    if stacks.len() >= MAX_STACKS {
                        self.stacks_arrived(std::mem::take(&mut stacks))?;
                    }
                }
                Ok(Record::Lifecycle(event)) => {
                    self.stacks_arrived(std::mem::take(&mut stacks))?;
                    strangers += u64::from(self.lifecycle(&event)?);
                }
                Ok(Record::Pool(pool)) => self.collections.take(*pool),
                Err(_) => self.lost("undecodable", 1),
            }
        }
        self.stacks_arrived(stacks)?;
        self.wake.strangers_came(strangers);
        Ok(Taken { is_any: taken > 0, is_all })
    }

    /// Takes in stacks, those of one process together: asking a process costs more than what is asked.
    fn stacks_arrived(&mut self, stacks: Vec<(Pid, u8, RawStack)>) -> Result<(), LiveError> {
        let mut by_process: BTreeMap<Pid, Vec<(u8, RawStack)>> = BTreeMap::new();
        for (pid, generation, stack) in stacks {
            let pid = if stack.is_kernel { Pid(0) } else { pid };
            by_process.entry(pid).or_default().push((generation, stack));
        }
        for (pid, mut stacks) in by_process {
            if pid == Pid(0) {
                self.live.symbolizer.take_in_kernel_stacks(&mut stacks);
            } else if let Some(process) = self.live.registry.target(pid) {
                self.live.symbolizer.take_in_stacks(process, &mut stacks);
                self.live.unwind.sampled((process.pid, process.start_boottime_ns), &mut self.live.symbolizer);
            }
            for (_, stack) in stacks {
                self.stack_age.arrived(stack.id, self.window);
                self.consumer.take(&Event::Stack(stack))?;
            }
        }
        Ok(())
    }
}

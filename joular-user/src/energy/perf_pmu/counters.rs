//! Opens and reads perf events, behind a trait because tests run on machines without energy events.

use std::io;

use perf_event::{Builder, Counter, events::Software};

/// One event on one CPU, system-wide.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct EventOnCpu {
    pub pmu_type: u32,
    pub config: u64,
    pub cpu: u32,
}

/// The counting side: the kernel, or a test.
pub trait PerfEvents {
    /// A running counter, from 0.
    ///
    /// # Errors
    /// As `perf_event_open` and `ioctl` say.
    fn open(&self, event: EventOnCpu) -> io::Result<Box<dyn PerfCounter>>;
}

pub trait PerfCounter: Send {
    /// The count since it was opened. The kernel extends the register to 64 bits.
    ///
    /// # Errors
    /// As `read` says.
    fn count(&mut self) -> io::Result<u64>;
}

/// The kernel's.
pub struct KernelEvents;

impl PerfEvents for KernelEvents {
    fn open(&self, event: EventOnCpu) -> io::Result<Box<dyn PerfCounter>> {
        // The crate knows dynamic PMUs only below /sys, so the event's numbers,
        // read from the root that was given, are set in place of another's.
        let mut builder = Builder::new(Software::DUMMY);
        builder.attrs_mut().type_ = event.pmu_type;
        builder.attrs_mut().config = event.config;
        // A package draws for everyone; such PMUs refuse to leave anything out.
        builder.any_pid().one_cpu(event.cpu as usize).exclude_kernel(false).exclude_hv(false);
        let mut counter = builder.build()?;
        counter.enable()?;
        Ok(Box::new(counter))
    }
}

impl PerfCounter for Counter {
    fn count(&mut self) -> io::Result<u64> {
        self.read()
    }
}

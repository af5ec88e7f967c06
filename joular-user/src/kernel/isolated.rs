//! Interrupts the CPUs whose own timer may be silent, so that sampling begins there.
//!
//! A CPU's sampling timer is made, and first set for a thread that runs already, in a timer interrupt of that
//! CPU. A CPU of `nohz_full` that runs one thread has none, for as long as the thread does not stop. An
//! event of the kernel's own clock makes one there: it is opened once, and each time lets one period pass.

use std::{
    io,
    os::fd::AsRawFd as _,
    path::{Path, PathBuf},
};

use perf_event::{Builder, Counter, events::Software};

use super::cpus::{self, Life};

/// Time from the request to the interrupt.
const PERIOD_NS: u64 = 100_000;

/// `PERF_EVENT_IOC_REFRESH`: lets this many periods pass, then the event ends itself (include/uapi/linux/perf_event.h).
const REFRESH: libc::Ioctl = 0x2402;

/// Events on isolated CPUs, by their CPU.
pub(super) struct Isolated {
    cpu_root: PathBuf,
    events: Vec<(Life, Counter)>,
    /// Whether a thread may run that no timer interrupt has met yet.
    is_wanted: bool,
}

impl Isolated {
    pub(super) fn new(cpu_root: &Path) -> Self {
        Self { cpu_root: cpu_root.into(), events: Vec::new(), is_wanted: true }
    }

    /// Has them interrupted the next time.
    pub(super) fn want(&mut self) {
        self.is_wanted = true;
    }

    /// Interrupts each of those CPUs that is online, if that is wanted.
    pub(super) fn interrupt(&mut self, lives: &[Life]) -> io::Result<()> {
        if !std::mem::take(&mut self.is_wanted) {
            return Ok(());
        }
        let isolated = isolated(&self.cpu_root);
        self.events.retain(|(life, _)| lives.contains(life));
        for life in lives.iter().filter(|life| isolated.contains(&life.cpu)) {
            match self.interrupt_one(life) {
                // It has just gone.
                Err(error) if matches!(error.raw_os_error(), Some(libc::ENXIO | libc::ENODEV)) => {}
                outcome => outcome?,
            }
        }
        Ok(())
    }

    fn interrupt_one(&mut self, life: &Life) -> io::Result<()> {
        let known = self.events.iter().position(|(known, _)| known == life);
        let index = match known {
            Some(index) => index,
            None => {
                self.events.push((*life, open(life.cpu)?));
                self.events.len() - 1
            }
        };
        let Some((_, event)) = self.events.get(index) else { return Ok(()) };
        // SAFETY: the descriptor is an event's that is open, and the argument is a number.
        match unsafe { libc::ioctl(event.as_raw_fd(), REFRESH, 1) } {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }
}

/// CPUs that stop their timer while they run one thread. The file says `(null)` if there are none.
fn isolated(cpu_root: &Path) -> Vec<u32> {
    cpus::cpu_list(&cpu_root.join("nohz_full"))
}

fn open(cpu: u32) -> io::Result<Counter> {
    let mut builder = Builder::new(Software::CPU_CLOCK);
    builder.any_pid().one_cpu(cpu as usize).include_kernel().sample_period(PERIOD_NS).enabled(false);
    builder.build()
}

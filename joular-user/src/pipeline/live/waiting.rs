//! Waits for the end of a window.
//!
//! Usually the boundary is announced shortly before its time: if this process is kept from running, the
//! window becomes longer, and its energy is still read at its end. On an idle machine nothing keeps it
//! from running, but each wake-up costs energy. There the boundary is announced when the window begins,
//! which takes one wake-up less.
//!
//! A window may end before its time: when the recording is to stop, and where a phase of the program begins or ends.

use joular_data::{events::CpuTimes, model::units::MonotonicNs};

use super::{LiveError, Run, ring::MAX_DRAIN};
use crate::{
    clock,
    config::duration::nanoseconds,
    kernel::boundary::{Announced, LEAD_NS},
    shutdown::{Shutdown, StopReason},
};

/// Time before a boundary in which nothing is begun that could delay its readings.
const QUIET_NS: u64 = 4_000_000;

/// Why there is nothing more to wait for.
enum Waited {
    /// The time has come.
    Due,
    Stopped(StopReason),
    /// A phase begins or ends.
    Marked,
}

impl Waited {
    const fn reason(&self) -> Option<StopReason> {
        match self {
            Self::Stopped(reason) => Some(*reason),
            Self::Due | Self::Marked => None,
        }
    }
}

impl Run<'_> {
    /// Waits until the window is to end: at `next`, because of a stop, or where a phase has its edge.
    pub(super) async fn wait_for_boundary(
        &mut self,
        next: MonotonicNs,
        shutdown: &mut Shutdown,
    ) -> Result<(Announced, Option<StopReason>), LiveError> {
        if self.is_idle {
            let announced = Announced::new(&mut self.live.banks, next)?;
            let waited = self.wait_until(announced.boundary, shutdown).await?;
            let announced = match waited {
                Waited::Due => announced,
                Waited::Stopped(_) | Waited::Marked => announced.hasten(&mut self.live.banks)?,
            };
            return Ok((announced, waited.reason()));
        }
        let waited = self.wait_until(MonotonicNs(next.0.saturating_sub(LEAD_NS)), shutdown).await?;
        let announced = match waited {
            Waited::Due => Announced::new(&mut self.live.banks, next)?,
            Waited::Stopped(_) | Waited::Marked => Announced::soon(&mut self.live.banks)?,
        };
        Ok((announced, waited.reason()))
    }

    /// Polls the ring until shortly before `moment`, and waits for it, or until told to stop or to cut. Signals
    /// are looked at even if there is no time to wait.
    async fn wait_until(&mut self, moment: MonotonicNs, shutdown: &mut Shutdown) -> Result<Waited, LiveError> {
        let quiet = MonotonicNs(moment.0.saturating_sub(QUIET_NS));
        loop {
            tokio::task::yield_now().await;
            let look = MonotonicNs(clock::monotonic_now().0.saturating_add(nanoseconds(self.pause)));
            // One moment to wake at, not two close to each other.
            let next = if look < quiet { look } else { moment };
            tokio::select! {
                biased;
                reason = shutdown.requested() => return Ok(Waited::Stopped(reason)),
                () = self.marks.want_cut() => return Ok(Waited::Marked),
                woken = self.wake.wait(next) => woken.map_err(LiveError::Wake)?,
            }
            if clock::monotonic_now() < quiet {
                self.poll(MAX_DRAIN)?;
                continue;
            }
            tokio::select! {
                biased;
                reason = shutdown.requested() => return Ok(Waited::Stopped(reason)),
                () = self.marks.want_cut() => return Ok(Waited::Marked),
                woken = self.wake.until(moment) => woken.map_err(LiveError::Wake)?,
            }
            return Ok(Waited::Due);
        }
    }
}

/// Whether the CPUs were busy for less than a quarter of their time.
pub(super) fn is_idle(cpus: &[CpuTimes]) -> bool {
    let (busy_ns, idle_ns) = cpus
        .iter()
        .fold((0, 0), |(busy_ns, idle_ns), cpu| (busy_ns + cpu.busy_ns + cpu.unslotted_ns, idle_ns + cpu.idle_ns));
    3 * busy_ns < idle_ns
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_is_idle_if_its_cpus_are_for_more_than_three_quarters() {
        let cpu = |busy_ns, unslotted_ns, idle_ns| CpuTimes { busy_ns, unslotted_ns, idle_ns, ..CpuTimes::default() };
        assert!(is_idle(&[cpu(24, 0, 76), cpu(20, 4, 76)]));
        assert!(!is_idle(&[cpu(100, 0, 0), cpu(1, 0, 99)]));
        assert!(!is_idle(&[cpu(20, 6, 74)]));
        assert!(!is_idle(&[]), "nothing is known yet");
    }
}

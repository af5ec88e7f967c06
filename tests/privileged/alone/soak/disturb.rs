//! Takes a CPU away and sets the wall clock, and puts both back whatever happens.

use std::{path::Path, time::Duration};

use anyhow::{Context as _, Result};
use joular_tests::notes;
use rustix::time::{ClockId, Timespec, clock_gettime, clock_settime};

use super::{
    super::hotplug::{Cpu, SWITCH},
    churn::Came,
    stop::{Random, Stop},
};

/// A CPU that goes about every minute, for less than three seconds.
pub fn cpus(seed: u64, stop: &Stop) -> Result<Came> {
    if !Path::new(SWITCH).exists() {
        notes::figure("soak: without CPUs that go, because those of this machine cannot");
        return Ok(Came::default());
    }
    let (mut gone, mut random) = (0, Random::new(seed));
    while !stop.wait(random.milliseconds(30_000, 80_000)) {
        let _back = Cpu;
        Cpu::turn(false)?;
        gone += 1;
        stop.wait(random.milliseconds(0, 2500));
        Cpu::turn(true)?;
    }
    Ok(("times that a CPU went and came back", gone).into())
}

/// By how much the wall clock is ahead of the one that nobody sets.
fn ahead_ns() -> i128 {
    nanoseconds(clock_gettime(ClockId::Realtime)) - nanoseconds(clock_gettime(ClockId::Monotonic))
}

fn nanoseconds(time: Timespec) -> i128 {
    i128::from(time.tv_sec) * 1_000_000_000 + i128::from(time.tv_nsec)
}

/// The wall clock, set back to what it would show when dropped.
struct Clock {
    ahead_ns: i128,
}

impl Clock {
    fn step(&self, by_ns: i128) -> Result<()> {
        let now = nanoseconds(clock_gettime(ClockId::Monotonic)) + self.ahead_ns + by_ns;
        let (seconds, nanoseconds) = (now.div_euclid(1_000_000_000), now.rem_euclid(1_000_000_000));
        let time = Timespec { tv_sec: i64::try_from(seconds)?, tv_nsec: i64::try_from(nanoseconds)? };
        clock_settime(ClockId::Realtime, time).context("setting the wall clock")
    }
}

impl Drop for Clock {
    fn drop(&mut self) {
        // A machine that does not let it be set back did not let it be set.
        let _back = self.step(0);
    }
}

/// The wall clock goes forwards or back by up to five seconds, and seconds later the other way.
pub fn clock(seed: u64, pause: Duration, stop: &Stop) -> Result<Came> {
    let (mut steps, mut random) = (0, Random::new(seed));
    while !stop.wait(pause) {
        let clock = Clock { ahead_ns: ahead_ns() };
        let by_ns = i128::from(random.number(1000, 5000)) * 1_000_000;
        let forwards = random.number(0, 1) == 0;
        if let Err(error) = clock.step(if forwards { by_ns } else { -by_ns }) {
            notes::figure(&format!("soak: without steps of the clock: {error:#}"));
            break;
        }
        steps += 2;
        stop.wait(random.milliseconds(500, 4000));
    }
    Ok(("steps of the wall clock", steps).into())
}

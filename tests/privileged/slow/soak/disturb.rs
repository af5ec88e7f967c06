//! Takes a CPU away and sets the wall clock, and puts both back whatever happens.

use std::{path::Path, time::Duration};

use anyhow::Result;
use joular_tests::{notes, wall_clock::WallClock};

use super::{
    churn::Came,
    stop::{Random, Stop},
};
use crate::slow::hotplug::{Cpu, SWITCH};

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

/// The wall clock goes forwards or back by up to five seconds, and seconds later the other way.
pub fn clock(seed: u64, pause: Duration, stop: &Stop) -> Result<Came> {
    let (mut steps, mut random) = (0, Random::new(seed));
    while !stop.wait(pause) {
        let clock = WallClock::now();
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

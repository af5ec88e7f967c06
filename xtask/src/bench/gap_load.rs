//! Reads the clock without end on one CPU, and says how much time the CPU was elsewhere: a load whose every lost
//! microsecond is seen.

use std::{
    hint::black_box,
    time::{Duration, Instant},
};

use anyhow::Result;

use super::switch_load::pin;

/// Two looks at the clock are closer than this, unless something came between.
const SHORTEST: Duration = Duration::from_nanos(600);
/// What takes longer is another thread, or the host of a virtual machine.
const LONGEST: Duration = Duration::from_micros(400);
/// For which one line is written.
const STRETCH: Duration = Duration::from_millis(250);

/// Writes the nanoseconds that each stretch lost.
pub fn run(cpu: usize, seconds: u64) -> Result<()> {
    pin(cpu)?;
    println!("ready");
    let end = Instant::now() + Duration::from_secs(seconds);
    loop {
        let start = Instant::now();
        let (mut last, mut lost) = (start, Duration::ZERO);
        while last - start < STRETCH {
            let now = black_box(Instant::now());
            let gap = now - last;
            if (SHORTEST..LONGEST).contains(&gap) {
                lost += gap;
            }
            last = now;
        }
        println!("{}", lost.as_nanos() * 1_000_000_000 / (last - start).as_nanos());
        if last > end {
            return Ok(());
        }
    }
}

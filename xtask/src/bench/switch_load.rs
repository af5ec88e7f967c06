//! Makes as many thread switches as a machine can: on every CPU a pair of threads hands a byte to
//! and fro through pipes. Both sit on the same CPU, so that each hand-over is a switch.

use std::{
    io::{self, PipeReader, PipeWriter, Read as _, Write as _},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Result, anyhow};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

pub fn run(seconds: u64) -> Result<()> {
    let end = Instant::now() + Duration::from_secs(seconds);
    let ours = sched_getaffinity(None)?;
    let mut threads = Vec::new();
    for cpu in (0..CpuSet::MAX_CPU).filter(|cpu| ours.is_set(*cpu)) {
        let (there, back) = (io::pipe()?, io::pipe()?);
        threads.push(thread::spawn(move || serve(cpu, back.0, there.1, end)));
        threads.push(thread::spawn(move || answer(cpu, there.0, back.1)));
    }
    println!("ready");
    for thread in threads {
        thread.join().map_err(|_| anyhow!("a thread of the load panicked"))??;
    }
    Ok(())
}

pub(super) fn pin(cpu: usize) -> Result<()> {
    let mut set = CpuSet::new();
    set.set(cpu);
    Ok(sched_setaffinity(None, &set)?)
}

fn serve(cpu: usize, mut from: PipeReader, mut to: PipeWriter, end: Instant) -> Result<()> {
    pin(cpu)?;
    while Instant::now() < end {
        to.write_all(b"x")?;
        from.read_exact(&mut [0])?;
    }
    Ok(())
}

/// Ends when the other side closes its pipe.
fn answer(cpu: usize, mut from: PipeReader, mut to: PipeWriter) -> Result<()> {
    pin(cpu)?;
    while from.read(&mut [0])? == 1 {
        to.write_all(b"x")?;
    }
    Ok(())
}

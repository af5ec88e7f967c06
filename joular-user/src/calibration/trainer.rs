//! Runs the loads under which costs are measured, in a process of their own.
//!
//! The process is this program again, started with an argument that no user types (as the attach
//! helper is), so that it can be a target. Its threads, one or two on every CPU (or one on some), work until its
//! standard input closes. So the load ends with the calibration, however that ends.

use std::{
    ffi::OsString,
    io::{self, BufRead as _, BufReader, PipeReader, PipeWriter, Read as _, Write as _},
    process::{Child, Command, ExitCode, Stdio},
    thread,
};

use joular_data::model::units::Pid;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

use super::CalibrationError;
use crate::privileges::lent;

/// First argument of the trainer.
pub const TRAINER_ARGUMENT: &str = "--calibration-load-internal";

/// What its threads do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Load {
    /// Stay in user code, below so many stack frames.
    Spin { frames: usize },
    /// Stay in user code on these CPUs alone.
    SpinOn { cpus: Vec<u32> },
    /// Hand a byte to and fro: every hand-over is a context switch.
    Switch,
}

/// Deepest stack that the kernel hands out.
const MOST_FRAMES: usize = 127;

const READY: &str = "ready";

/// Stands before the numbers of the only CPUs that work.
const CPU_PREFIX: &str = "cpu";

impl Load {
    fn argument(&self) -> String {
        match self {
            Self::Spin { frames } => frames.to_string(),
            Self::SpinOn { cpus } => {
                format!("{CPU_PREFIX}{}", cpus.iter().map(u32::to_string).collect::<Vec<_>>().join(","))
            }
            Self::Switch => "switch".to_owned(),
        }
    }

    fn parse(text: &str) -> Option<Self> {
        match text {
            "switch" => Some(Self::Switch),
            text if text.starts_with(CPU_PREFIX) => {
                let cpus = text.strip_prefix(CPU_PREFIX)?.split(',').map(|cpu| cpu.parse().ok());
                Some(Self::SpinOn { cpus: cpus.collect::<Option<Vec<u32>>>()? })
            }
            number => number
                .parse()
                .ok()
                .filter(|frames| (1..=MOST_FRAMES).contains(frames))
                .map(|frames| Self::Spin { frames }),
        }
    }
}

/// A load under way; it ends with this handle.
#[derive(Debug)]
pub struct Trainer(Child);

impl Trainer {
    /// Starts a load and waits until it works.
    pub fn start(load: &Load) -> Result<Self, CalibrationError> {
        let failed = |operation| move |source| CalibrationError::Trainer { operation, source };
        let mut command = Command::new("/proc/self/exe");
        command.args([TRAINER_ARGUMENT, &load.argument()]).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut trainer = Self(command.spawn().map_err(failed("starting"))?);
        let mut line = String::new();
        if let Some(stdout) = trainer.0.stdout.take() {
            // Its line is short and it writes no other.
            BufReader::new(stdout.take(64)).read_line(&mut line).map_err(failed("waiting for"))?;
        }
        match line.trim() {
            READY => Ok(trainer),
            _ => Err(failed("waiting for")(io::ErrorKind::UnexpectedEof.into())),
        }
    }

    pub fn pid(&self) -> Pid {
        Pid(self.0.id())
    }
}

impl Drop for Trainer {
    fn drop(&mut self) {
        // It may be gone already, which is all that is wanted.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Entry point for `main`: the arguments behind the program's name.
pub fn run_trainer(arguments: &[OsString]) -> ExitCode {
    let load = match arguments {
        [_, load] => load.to_str().and_then(Load::parse),
        _ => None,
    };
    let Some(load) = load else {
        let _ = writeln!(io::stderr(), "joular-bpf: {TRAINER_ARGUMENT} is for joular-bpf itself");
        return ExitCode::from(2);
    };
    // A load needs none.
    match lent::give_up().map_err(io::Error::from).and_then(|()| work(load)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let _ = writeln!(io::stderr(), "joular-bpf: the calibration's load: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Returns when standard input closes; the threads end with the process.
fn work(load: Load) -> io::Result<()> {
    let ours = sched_getaffinity(None)?;
    for cpu in (0..CpuSet::MAX_CPU).filter(|cpu| ours.is_set(*cpu)) {
        match &load {
            &Load::Spin { frames } => on_cpu(cpu, move || spin::below(frames))?,
            Load::SpinOn { cpus } => {
                if u32::try_from(cpu).is_ok_and(|cpu| cpus.contains(&cpu)) {
                    on_cpu(cpu, || spin::below(1))?;
                }
            }
            Load::Switch => {
                // Both on one CPU: a byte that arrives is a switch.
                let (there, back) = (io::pipe()?, io::pipe()?);
                let (mut to, from) = (there.1, back.0);
                to.write_all(b"x")?;
                on_cpu(cpu, move || pass_on(from, to))?;
                on_cpu(cpu, move || pass_on(there.0, back.1))?;
            }
        }
    }
    writeln!(io::stdout(), "{READY}")?;
    io::copy(&mut io::stdin().lock(), &mut io::sink()).map(drop)
}

fn on_cpu(cpu: usize, work: impl FnOnce() + Send + 'static) -> io::Result<()> {
    thread::Builder::new().name(format!("load-{cpu}")).spawn(move || {
        let mut set = CpuSet::new();
        set.set(cpu);
        // A CPU that just went offline needs no load.
        if sched_setaffinity(None, &set).is_ok() {
            work();
        }
    })?;
    Ok(())
}

fn pass_on(mut from: PipeReader, mut to: PipeWriter) {
    let mut byte = [0];
    while from.read_exact(&mut byte).is_ok() && to.write_all(&byte).is_ok() {}
}

/// Spinning below a stack of known depth. Compilers leave out frame pointers
/// and fold recursion, so the chain of frames that the kernel walks is built by
/// hand: records of (next frame, return address), as each ABI lays them out.
mod spin {
    use std::{arch::asm, hint};

    /// One record, and what a small function keeps beside it: a cache line.
    type Frame = [usize; 8];

    const ROUNDS: u64 = 1 << 20;

    /// Never returns: the process ends under it.
    pub fn below(frames: usize) {
        let chain = chain(frames);
        loop {
            rounds(&chain);
        }
    }

    /// Frames leaf first; the last one has no next.
    fn chain(frames: usize) -> Vec<Frame> {
        let mut chain = vec![Frame::default(); frames];
        let base = chain.as_ptr() as usize;
        for (index, frame) in chain.iter_mut().enumerate() {
            frame[0] = if index + 1 < frames { base + (index + 1) * size_of::<Frame>() } else { 0 };
            // Any address of code will do, another one in each frame.
            frame[1] = below as *const () as usize + index;
        }
        chain
    }

    #[cfg(target_arch = "x86_64")]
    fn rounds(chain: &[Frame]) {
        // SAFETY: registers only; the frame pointer is as it was at the end.
        unsafe {
            asm!(
                "mov {kept}, rbp",
                "mov rbp, {chain}",
                "2:",
                "dec {rounds}",
                "jnz 2b",
                "mov rbp, {kept}",
                kept = out(reg) _,
                chain = in(reg) hint::black_box(chain.as_ptr()),
                rounds = inout(reg) ROUNDS => _,
                options(nostack),
            );
        }
    }

    #[cfg(target_arch = "aarch64")]
    fn rounds(chain: &[Frame]) {
        // SAFETY: registers only; the frame pointer is as it was at the end.
        unsafe {
            asm!(
                "mov {kept}, x29",
                "mov x29, {chain}",
                "2:",
                "subs {rounds}, {rounds}, #1",
                "b.ne 2b",
                "mov x29, {kept}",
                kept = out(reg) _,
                chain = in(reg) hint::black_box(chain.as_ptr()),
                rounds = inout(reg) ROUNDS => _,
                options(nostack),
            );
        }
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn the_chain_has_as_many_frames_as_asked_and_ends() {
            for frames in [1, 4, 100] {
                let chain = chain(frames);
                let (mut next, mut walked) = (chain.as_ptr() as usize, 0);
                while next != 0 {
                    let at = (next - chain.as_ptr() as usize) / size_of::<Frame>();
                    assert_ne!(chain[at][1], 0);
                    next = chain[at][0];
                    walked += 1;
                }
                assert_eq!(walked, frames);
                rounds(&chain);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_load_survives_its_way_through_the_command_line() {
        let on = |cpus: &[u32]| Load::SpinOn { cpus: cpus.to_vec() };
        for load in [Load::Switch, Load::Spin { frames: 1 }, Load::Spin { frames: 127 }, on(&[17]), on(&[3, 0, 12])] {
            assert_eq!(Load::parse(&load.argument()), Some(load));
        }
        let huge = "9".repeat(128 << 10);
        for text in
            ["", "0", "128", "-1", "spin", "cpu", "cpu-1", "cpu4294967296", "cpu1,", "cpu1,x", "1 1", "switch ", &huge]
        {
            assert_eq!(Load::parse(text), None, "{text}");
        }
    }
}

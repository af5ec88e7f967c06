//! Goes through the steps of the protocol, and marks each as a phase.

use std::{
    env, io,
    os::unix::net::UnixDatagram,
    path::Path,
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use joular_data::report::validate::protocol::Step;

use super::{Job, Schedule};
use crate::{experiment::marks::listener::SOCKET_VARIABLE, procs::attach::OWN_BINARY};

/// Before the first step: the recording has found out by then what programs are and where their names stand.
const BEFORE: Duration = Duration::from_secs(2);

/// Runs all steps of a schedule, one after the other.
pub(super) fn all(schedule: &Schedule) -> io::Result<()> {
    let socket = env::var_os(SOCKET_VARIABLE)
        .ok_or_else(|| io::Error::other(format!("{SOCKET_VARIABLE} is not set: nobody takes its marks")))?;
    let marks = UnixDatagram::unbound()?;
    marks.connect(Path::new(&socket))?;
    let cpus = thread::available_parallelism()?.get();
    thread::sleep(BEFORE);
    let mut until = Instant::now();
    for step in schedule.steps() {
        until += schedule.step;
        let name = step.name();
        let running = Running::start(step, cpus)?;
        marks.send(format!("begin {name}").as_bytes())?;
        thread::sleep(until.saturating_duration_since(Instant::now()));
        marks.send(format!("end {name}").as_bytes())?;
        running.end()?;
    }
    Ok(())
}

/// The programs of a step; they end with this handle.
struct Running(Vec<Child>);

impl Running {
    fn start(step: Step, cpus: usize) -> io::Result<Self> {
        let mut running = Self(Vec::new());
        for (program, percent) in step.programs() {
            let job = Job { program, percent, threads: step.threads(cpus) };
            let mut command = Command::new(OWN_BINARY);
            command.args(job.arguments()).stdin(Stdio::piped()).stdout(Stdio::null());
            running.0.push(command.spawn()?);
        }
        Ok(running)
    }

    /// A program that has ended before did not do what the step is about.
    fn end(mut self) -> io::Result<()> {
        for child in &mut self.0 {
            if let Some(status) = child.try_wait()? {
                return Err(io::Error::other(format!("a program ended too early: {status}")));
            }
        }
        Ok(())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        for child in &mut self.0 {
            // It may be gone already, which is all that is wanted.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

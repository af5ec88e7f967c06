//! Runs one run of an experiment in a process of its own.
//!
//! The process is this very program (`/proc/self/exe __trial …`), which records one command as `joular-bpf run` does. So
//! every run begins alike: with the limits, the priority and the memory that the first one had. What it is to do is in
//! its arguments; what came out comes back through a pipe.

use std::{
    env,
    ffi::OsString,
    fs::File,
    io::{self, BufRead as _, BufReader, PipeReader, Read as _, Write as _},
    os::fd::{AsRawFd as _, OwnedFd, RawFd},
    path::PathBuf,
    process::{Child, Command, ExitStatus, Stdio},
    thread::{self, JoinHandle},
};

use joular_data::{events::ProcessInfo, model::units::Pid};
use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    io::{FdFlags, fcntl_setfd},
    process::{Signal, set_parent_process_death_signal},
};
use serde::{Deserialize, Serialize};
use tokio::sync::oneshot;

use super::inherited;
use crate::procs::{attach::OWN_BINARY, proc_files::ProcFiles};

pub const TRIAL_ARGUMENT: &str = "__trial";

/// More than any outcome has.
const MAX_OUTCOME_BYTES: u64 = 64 << 10;

#[derive(Debug, thiserror::Error)]
pub enum TrialError {
    #[error("starting a run: {0}")]
    Start(io::Error),
    #[error("telling a run what to do: {0}: names of folders must be text")]
    Orders(serde_json::Error),
    #[error("waiting for a run: {0}")]
    Wait(io::Error),
}

/// What a run is to do, beside what the command line says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Orders {
    /// Where its data set goes.
    pub output: Option<PathBuf>,
    /// Whether the command's output is seen.
    pub shows_output: bool,
    /// Where the outcome is written to.
    pub outcome: RawFd,
}

/// What a run came to.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    /// As a shell has it.
    pub exit_code: u8,
    pub run_id: String,
    /// Microseconds since 1970.
    pub started_us: i64,
    /// From the command's start to its end.
    pub duration_ns: u64,
    /// CPU time of the command with all that it started.
    pub cpu_ns: u64,
    /// Energy of the command with all that it started.
    pub energy_uj: u64,
    /// Energy of the machine meanwhile.
    pub machine_uj: u64,
    /// Length of the windows in which both were measured.
    pub measured_ns: u64,
    pub samples: u64,
    /// Units of work that it printed.
    pub work: Option<f64>,
    pub temperature_celsius: Option<f64>,
    pub frequency_mhz: Option<f64>,
    pub label: Option<String>,
}

/// What to run, and how joular-bpf was called.
#[derive(Debug)]
pub struct Task {
    pub orders: Orders,
    pub command: Vec<OsString>,
    pub arguments: Vec<OsString>,
}

impl Task {
    /// Reads it from the arguments of this process, which begin with [`TRIAL_ARGUMENT`].
    pub fn parse(arguments: &[OsString]) -> Option<Self> {
        let [own, orders, count, rest @ ..] = arguments else { return None };
        let orders = serde_json::from_str(orders.to_str()?).ok()?;
        let (command, arguments) = rest.split_at_checked(count.to_str()?.parse().ok()?)?;
        let is_ours = own == TRIAL_ARGUMENT && !command.is_empty() && !arguments.is_empty();
        is_ours.then(|| Self { orders, command: command.to_vec(), arguments: arguments.to_vec() })
    }
}

/// The command line that this process was started with; of a run of an experiment, that of the experiment.
pub fn own_command_line() -> Vec<String> {
    let arguments: Vec<OsString> = env::args_os().collect();
    let task = arguments.get(1..).and_then(Task::parse);
    let shown = task.map_or(arguments, |task| task.arguments);
    shown.iter().map(|word| word.to_string_lossy().into_owned()).collect()
}

/// Whether a process is a run whose experiment has ended without waiting for it, or is about to end.
pub fn is_left_behind(pid: Pid) -> bool {
    let processes = ProcFiles::new("/proc");
    let Some(process) = processes.process(pid) else { return true };
    let words = &process.command_line;
    // Memory goes before files do, and its words with it: such a process has no command line and still holds its locks.
    let is_ending = words.is_empty();
    let is_trial = words.get(1).is_some_and(|first| first.raw() == TRIAL_ARGUMENT);
    // A run was given all the words of its experiment.
    let is_experiment = |parent: &ProcessInfo| !parent.command_line.is_empty() && words.ends_with(&parent.command_line);
    is_ending || (is_trial && !processes.process(process.parent).as_ref().is_some_and(is_experiment))
}

/// How a run's process ended, and what came of it.
#[derive(Debug)]
pub struct Ended {
    pub status: ExitStatus,
    /// `None` if the recording failed.
    pub outcome: Option<Outcome>,
    /// What it said on standard error, a line each, unless that was seen.
    pub said: Vec<String>,
}

/// A run that is under way.
#[derive(Debug)]
pub struct Trial {
    pub pid: Pid,
    ended: oneshot::Receiver<io::Result<Ended>>,
}

impl Trial {
    /// Starts it. `arguments` are those of joular-bpf itself, its own name first.
    ///
    /// # Errors
    /// If the process or the thread that waits for it cannot be started.
    pub fn start(
        output: Option<PathBuf>,
        shows_output: bool,
        command: &[OsString],
        arguments: &[OsString],
    ) -> Result<Self, TrialError> {
        let (reader, writer) = io::pipe().map_err(TrialError::Start)?;
        fcntl_setfd(&writer, FdFlags::empty()).map_err(|error| TrialError::Start(error.into()))?;
        let orders = Orders { output, shows_output, outcome: writer.as_raw_fd() };
        let orders = serde_json::to_string(&orders).map_err(TrialError::Orders)?;
        let mut own = Command::new(OWN_BINARY);
        own.arg(TRIAL_ARGUMENT).arg(orders).arg(command.len().to_string()).args(command).args(arguments);
        if !shows_output {
            own.stdout(Stdio::null()).stderr(Stdio::piped());
        }
        let child = own.spawn().map_err(TrialError::Start)?;
        drop(writer);
        let pid = Pid(child.id());
        let (tell, ended) = oneshot::channel();
        let wait = move || {
            // Nobody may be waiting any more.
            let _unheard = tell.send(ended_of(child, reader));
        };
        thread::Builder::new().name("joular-trial".to_owned()).spawn(wait).map_err(TrialError::Wait)?;
        Ok(Self { pid, ended })
    }

    /// Resolves when it has ended, once.
    ///
    /// # Errors
    /// If nobody can tell how.
    pub async fn ended(&mut self) -> Result<Ended, TrialError> {
        match (&mut self.ended).await {
            Ok(ended) => ended.map_err(TrialError::Wait),
            Err(_) => Err(TrialError::Wait(io::Error::other("the thread that waits has ended"))),
        }
    }
}

/// Lines that are kept of what a run says, and bytes of each.
const MAX_LINES: usize = 1000;
const MAX_LINE_BYTES: usize = 4096;

fn ended_of(mut child: Child, outcome: PipeReader) -> io::Result<Ended> {
    let said = child.stderr.take().map(|stderr| -> io::Result<JoinHandle<Vec<String>>> {
        thread::Builder::new().name("joular-said".to_owned()).spawn(move || lines(BufReader::new(stderr)))
    });
    let said = said.transpose()?;
    let status = child.wait()?;
    let mut bytes = Vec::new();
    outcome.take(MAX_OUTCOME_BYTES).read_to_end(&mut bytes)?;
    let said = said.and_then(|thread| thread.join().ok()).unwrap_or_default();
    Ok(Ended { status, outcome: serde_json::from_slice(&bytes).ok(), said })
}

/// All lines, of which only the first ones are kept.
fn lines(mut from: impl io::BufRead) -> Vec<String> {
    let (mut kept, mut line) = (Vec::new(), Vec::new());
    loop {
        line.clear();
        match io::Read::take(&mut from, 1 << 20).read_until(b'\n', &mut line) {
            Ok(0) | Err(_) => return kept,
            Ok(_) if kept.len() < MAX_LINES => {
                let shown = line.strip_suffix(b"\n").unwrap_or(&line);
                let shown = shown.get(..MAX_LINE_BYTES).unwrap_or(shown);
                kept.push(String::from_utf8_lossy(shown).into_owned());
            }
            Ok(_) => {}
        }
    }
}

/// Where the outcome is written to.
#[derive(Debug)]
pub struct Told(OwnedFd);

impl Told {
    /// Takes what the process that waits has left open, and makes this process end with that one. It may be called
    /// once, and before the command begins, which would keep it open.
    ///
    /// # Errors
    /// If there is no such file.
    pub fn of(orders: &Orders) -> io::Result<Self> {
        let pipe = inherited::pipe(orders.outcome)?;
        fcntl_setfd(&pipe, FdFlags::CLOEXEC)?;
        // If the experiment is killed, its run ends as if it were asked to.
        set_parent_process_death_signal(Some(Signal::TERM))?;
        // It may have been killed before. Then nobody reads the pipe, because files are closed before children are told.
        if has_no_reader(&pipe)? {
            return Err(io::Error::new(io::ErrorKind::BrokenPipe, "the experiment has ended"));
        }
        Ok(Self(pipe))
    }

    /// # Errors
    /// If nobody reads it.
    pub fn tell(self, outcome: &Outcome) -> io::Result<()> {
        File::from(self.0).write_all(&serde_json::to_vec(outcome)?)
    }
}

fn has_no_reader(pipe: &OwnedFd) -> io::Result<bool> {
    let mut polled = [PollFd::new(pipe, PollFlags::empty())];
    poll(&mut polled, Some(&Timespec { tv_sec: 0, tv_nsec: 0 }))?;
    Ok(polled[0].revents().contains(PollFlags::ERR))
}

#[cfg(test)]
pub(super) fn outcome() -> Outcome {
    Outcome {
        exit_code: 0,
        run_id: "run".to_owned(),
        started_us: 1_772_409_594_000_000,
        duration_ns: 2_000_000_000,
        cpu_ns: 1_500_000_000,
        energy_uj: 3_250_000,
        machine_uj: 10_000_000,
        measured_ns: 2_500_000_000,
        samples: 100,
        work: None,
        temperature_celsius: None,
        frequency_mhz: None,
        label: Some("measured".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use rustix::process::{Pid as OsPid, WaitId, WaitIdOptions, waitid};

    use super::*;

    #[test]
    fn a_run_that_is_ending_is_left_behind_and_other_processes_are_not() {
        let mut child = Command::new("true").spawn().unwrap();
        let pid = Pid(child.id());
        // It has ended, and nobody has taken note: it has a number, and no memory.
        let ended = WaitId::Pid(OsPid::from_child(&child));
        waitid(ended, WaitIdOptions::EXITED | WaitIdOptions::NOWAIT).unwrap();
        assert!(ProcFiles::new("/proc").process(pid).is_some());
        assert!(is_left_behind(pid));
        child.wait().unwrap();
        assert!(!is_left_behind(Pid(std::process::id())));
    }

    #[test]
    fn a_run_whose_experiment_was_killed_before_it_began_does_not_begin() {
        let (reader, writer) = io::pipe().unwrap();
        let writer = OwnedFd::from(writer);
        assert!(!has_no_reader(&writer).unwrap());
        drop(reader);
        assert!(has_no_reader(&writer).unwrap());
    }

    #[test]
    fn orders_come_back_as_they_were_given() {
        let orders = Orders { output: Some("out/base".into()), shows_output: false, outcome: 7 };
        let text = serde_json::to_string(&orders).unwrap();
        let given = [TRIAL_ARGUMENT, &text, "2", "java", "-version", "joular-bpf", "run", "--repeat", "3"];
        let given: Vec<OsString> = given.iter().map(Into::into).collect();
        let task = Task::parse(&given).unwrap();
        assert_eq!((task.orders, &task.command[..], &task.arguments[..]), (orders, &given[3..5], &given[5..]));
        for wrong in [&given[..3], &given[..5], &given[..0]] {
            assert!(Task::parse(wrong).is_none(), "{wrong:?}");
        }
        let huge = "9".repeat(128 << 10);
        for count in ["0", "-1", "6", "18446744073709551615", "18446744073709551616", "two", &huge] {
            let given = [TRIAL_ARGUMENT, &text, count, "java", "-version", "joular-bpf", "run", "--repeat", "3"];
            assert!(Task::parse(&given.map(OsString::from)).is_none(), "{count}");
        }
        for orders in ["", "{}", "[]", "{\"output\":1,\"shows_output\":true,\"outcome\":7}", &huge] {
            assert!(
                Task::parse(&[TRIAL_ARGUMENT, orders, "1", "true", "run"].map(OsString::from)).is_none(),
                "{orders}"
            );
        }
    }

    #[test]
    fn of_what_a_run_says_a_bounded_part_is_kept() {
        let text = "first\n".to_owned() + &"x".repeat(10_000) + "\n" + &"more\n".repeat(5000);
        let kept = lines(BufReader::new(text.as_bytes()));
        assert_eq!((kept.len(), kept[0].as_str(), kept[1].len()), (MAX_LINES, "first", MAX_LINE_BYTES));
    }
}

//! Starts a command that waits until the recording has begun.
//!
//! The child is this very program (`/proc/self/exe __launch …`). It becomes the user, waits at a pipe, and then
//! executes the command. So the pid is known and measured before the command's first instruction, and nothing runs
//! between a fork and an exec. If joular-bpf ends before it opens the pipe's gate, the command never starts.

use std::{
    ffi::{OsStr, OsString},
    io::{self, PipeWriter, Write as _},
    os::{
        fd::{AsRawFd as _, RawFd},
        unix::process::{CommandExt as _, ExitStatusExt as _},
    },
    path::PathBuf,
    process::{Child, ChildStdout, Command, ExitCode, ExitStatus, Stdio},
    thread,
};

use joular_data::model::units::Pid;
use rustix::io::{FdFlags, fcntl_setfd};
use tokio::sync::oneshot;

use super::{inherited, user::User};
use crate::{privileges::lent, procs::attach::OWN_BINARY};

pub const LAUNCHER_ARGUMENT: &str = "__launch";

/// As `env` and shells have it: the command is there and cannot be executed, and it is not there.
const NOT_EXECUTABLE: u8 = 126;
const NOT_FOUND: u8 = 127;

#[derive(Debug, thiserror::Error)]
pub enum LaunchError {
    #[error("starting the command: {0}")]
    Start(io::Error),
    #[error("letting the command run: {0}: it has ended before it began")]
    Gate(io::Error),
    #[error("listening to the command: {0}")]
    Hear(io::Error),
    #[error("waiting for the command: {0}")]
    Wait(io::Error),
}

/// What a command finds around it.
#[derive(Debug, Default)]
pub struct Surroundings<'a> {
    /// Whom it runs as; `None`: the user of this process.
    pub user: Option<&'a User>,
    /// Variables of its environment, beside those of this process.
    pub variables: Vec<(&'static str, PathBuf)>,
    pub output: CommandOutput,
    /// Whether its standard input is empty; otherwise it is that of this process.
    pub has_no_input: bool,
}

/// What becomes of the command's standard output.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CommandOutput {
    /// It is that of this process.
    #[default]
    Ours,
    /// It is read here.
    Read,
    /// Nobody sees it, and what goes to standard error neither.
    Hidden,
    /// It is read here, and nobody sees it.
    ReadHidden,
}

/// A command that has not begun.
#[derive(Debug)]
pub struct Held {
    child: Child,
    gate: PipeWriter,
}

/// A command that runs.
#[derive(Debug)]
pub struct Launched {
    pub pid: Pid,
    ended: oneshot::Receiver<io::Result<ExitStatus>>,
}

impl Held {
    /// Starts the child. It has the limits that this process has now, which raises its own later.
    ///
    /// # Errors
    /// If it cannot be started.
    pub fn start(command: &[OsString], surroundings: &Surroundings<'_>) -> Result<Self, LaunchError> {
        let user = surroundings.user;
        let (reader, gate) = io::pipe().map_err(LaunchError::Start)?;
        // The child needs it across the exec. No other child is started meanwhile.
        fcntl_setfd(&reader, FdFlags::empty()).map_err(|error| LaunchError::Start(error.into()))?;
        let mut own = Command::new(OWN_BINARY);
        own.arg(LAUNCHER_ARGUMENT).arg(reader.as_raw_fd().to_string());
        own.arg(user.map_or_else(|| "-".to_owned(), User::to_argument)).arg("--").args(command);
        if let Some(user) = user {
            own.envs(user.environment());
            own.env_remove("SUDO_USER").env_remove("SUDO_UID").env_remove("SUDO_GID").env_remove("SUDO_COMMAND");
        }
        own.envs(surroundings.variables.iter().map(|(name, value)| (name, value)));
        if surroundings.has_no_input {
            own.stdin(Stdio::null());
        }
        use CommandOutput::{Hidden, Ours, Read, ReadHidden};
        match surroundings.output {
            Ours => {}
            Read | ReadHidden => drop(own.stdout(Stdio::piped())),
            Hidden => drop(own.stdout(Stdio::null())),
        }
        if matches!(surroundings.output, Hidden | ReadHidden) {
            own.stderr(Stdio::null());
        }
        let child = own.spawn().map_err(LaunchError::Start)?;
        Ok(Self { child, gate })
    }

    pub fn pid(&self) -> Pid {
        Pid(self.child.id())
    }

    /// What it writes to its standard output, once, if that was asked for.
    pub fn take_output(&mut self) -> Option<ChildStdout> {
        self.child.stdout.take()
    }

    /// Opens the gate, and waits for the end on a thread of its own.
    ///
    /// # Errors
    /// If it has ended already, or there can be no thread.
    pub fn release(self) -> Result<Launched, LaunchError> {
        let Self { mut child, mut gate } = self;
        let pid = Pid(child.id());
        gate.write_all(b"!").map_err(LaunchError::Gate)?;
        let (tell, ended) = oneshot::channel();
        let wait = move || {
            // Nobody may be waiting any more.
            let _unheard = tell.send(child.wait());
        };
        thread::Builder::new().name("joular-command".to_owned()).spawn(wait).map_err(LaunchError::Wait)?;
        Ok(Launched { pid, ended })
    }
}

impl Launched {
    /// Resolves when the command has ended, once.
    ///
    /// # Errors
    /// If nobody can tell how.
    pub async fn ended(&mut self) -> Result<ExitStatus, LaunchError> {
        match (&mut self.ended).await {
            Ok(status) => status.map_err(LaunchError::Wait),
            Err(_) => Err(LaunchError::Wait(io::Error::other("the thread that waits has ended"))),
        }
    }
}

/// The code that a shell would end with: its own, or 128 and the signal that ended it.
pub fn exit_code(status: ExitStatus) -> u8 {
    let code = status.code().or_else(|| status.signal().map(|signal| 128 + signal));
    code.and_then(|code| u8::try_from(code & 0xff).ok()).unwrap_or(u8::MAX)
}

/// What the child was told.
struct Orders<'a> {
    gate: RawFd,
    user: Option<User>,
    command: (&'a OsStr, &'a [OsString]),
}

impl<'a> Orders<'a> {
    fn parse(arguments: &'a [OsString]) -> Option<Self> {
        let [own, gate, user, dashes, program, rest @ ..] = arguments else { return None };
        let is_ours = own == LAUNCHER_ARGUMENT && dashes == "--";
        let user = user.to_str()?;
        let user = if user == "-" { None } else { Some(User::parse(user)?) };
        is_ours.then_some(Self { gate: gate.to_str()?.parse().ok()?, user, command: (program, rest) })
    }
}

/// What the child does; `arguments` begin with [`LAUNCHER_ARGUMENT`]. Returns only if the command did not begin.
pub fn run_launcher(arguments: &[OsString]) -> ExitCode {
    let Some(orders) = Orders::parse(arguments) else {
        eprintln!("joular-bpf: {LAUNCHER_ARGUMENT} is for joular-bpf itself: use `joular-bpf run`");
        return ExitCode::from(2);
    };
    match launch(&orders) {
        // Whoever would have opened the gate has said why not.
        Ok(()) => ExitCode::from(1),
        Err(Refusal { what, cause }) => {
            let shown = joular_data::text::escape(&what.to_string_lossy());
            eprintln!("joular-bpf: starting {shown}: {cause}");
            let code = if cause.kind() == io::ErrorKind::NotFound { NOT_FOUND } else { NOT_EXECUTABLE };
            ExitCode::from(code)
        }
    }
}

struct Refusal<'a> {
    what: &'a OsStr,
    cause: io::Error,
}

/// Waits for the gate, and executes the command.
fn launch<'a>(orders: &Orders<'a>) -> Result<(), Refusal<'a>> {
    let (program, arguments) = orders.command;
    let failed = |cause: io::Error| Refusal { what: program, cause };
    // The command has no right that its user does not have.
    lent::give_up().map_err(|error| failed(error.into()))?;
    if let Some(user) = &orders.user {
        user.become_it().map_err(failed)?;
    }
    if !gate_opens(orders.gate).map_err(failed)? {
        return Ok(());
    }
    Err(failed(Command::new(program).args(arguments).exec()))
}

/// Whether it was opened, and not closed for ever.
fn gate_opens(gate: RawFd) -> io::Result<bool> {
    let gate = inherited::pipe(gate)?;
    let mut byte = [0; 1];
    loop {
        match rustix::io::read(&gate, &mut byte) {
            Ok(count) => return Ok(count == 1),
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arguments(texts: &[&str]) -> Vec<OsString> {
        texts.iter().map(OsString::from).collect()
    }

    #[test]
    fn orders_come_back_as_they_were_given() {
        let given = arguments(&[LAUNCHER_ARGUMENT, "7", "1000:100:100,27", "--", "java", "--", "-jar"]);
        let orders = Orders::parse(&given).unwrap();
        assert_eq!(orders.gate, 7);
        assert_eq!(orders.user.unwrap().to_argument(), "1000:100:100,27");
        assert_eq!(orders.command, (OsStr::new("java"), &given[5..]));
        for wrong in [
            &[LAUNCHER_ARGUMENT][..],
            &[LAUNCHER_ARGUMENT, "7", "-", "--"],
            &[LAUNCHER_ARGUMENT, "x", "-", "--", "a"],
            &[LAUNCHER_ARGUMENT, "7", "root", "--", "a"],
            &[LAUNCHER_ARGUMENT, "7", "-", "a", "b"],
            &[LAUNCHER_ARGUMENT, "7", "7", "-", "--", "a"],
            &[LAUNCHER_ARGUMENT, LAUNCHER_ARGUMENT, "7", "-", "--", "a"],
            &[LAUNCHER_ARGUMENT, "7", "4294967295:0:0", "--", "a"],
            &[LAUNCHER_ARGUMENT, "99999999999", "-", "--", "a"],
            &["7", "-", "--", "a"],
        ] {
            assert!(Orders::parse(&arguments(wrong)).is_none(), "{wrong:?}");
        }
    }

    #[test]
    fn exit_codes_are_those_of_a_shell() {
        for (raw, code) in [(0, 0), (3 << 8, 3), (255 << 8, 255), (15, 143), (9, 137), (6 | 0x80, 134)] {
            assert_eq!(exit_code(ExitStatus::from_raw(raw)), code, "{raw:#x}");
        }
    }
}

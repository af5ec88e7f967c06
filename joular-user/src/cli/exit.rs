//! Defines exit codes, so that scripts can tell what happened.

use std::process::ExitCode;

/// How a run ended, for the shell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    Success,
    Failure,
    Usage,
    Privileges,
    KernelFeature,
    NothingMatched,
    Output,
    Audit,
    Regression,
    Undecided,
    Interrupted,
    /// That of the command that was run.
    Command(u8),
}

impl Exit {
    pub const ALL: [Self; 11] = [
        Self::Success,
        Self::Failure,
        Self::Usage,
        Self::Privileges,
        Self::KernelFeature,
        Self::NothingMatched,
        Self::Output,
        Self::Audit,
        Self::Regression,
        Self::Undecided,
        Self::Interrupted,
    ];

    /// The number that the shell sees. These do not change between versions.
    pub const fn code(self) -> u8 {
        match self {
            Self::Success => 0,
            Self::Failure => 1,
            Self::Usage => 2,
            Self::Privileges => 3,
            Self::KernelFeature => 4,
            Self::NothingMatched => 5,
            Self::Output => 6,
            Self::Audit => 7,
            Self::Regression => 8,
            Self::Undecided => 9,
            Self::Interrupted => 130,
            Self::Command(code) => code,
        }
    }

    /// For the help text.
    pub const fn meaning(self) -> &'static str {
        match self {
            Self::Success => "success; a recording ended after its duration, at Ctrl-C or at SIGTERM",
            Self::Failure => "the command failed",
            Self::Usage => "wrong use: command line or configuration file",
            Self::Privileges => "privileges are missing",
            Self::KernelFeature => "the kernel lacks a feature",
            Self::NothingMatched => "no process matched the selection during the run",
            Self::Output => "the output could not be written",
            Self::Audit => "the audit found figures that do not add up, or secrets",
            Self::Regression => "diff or baseline check found an increase certainly above --fail-above",
            Self::Undecided => "it is undecided whether --fail-above is kept: too few runs, or runs made differently",
            Self::Interrupted => "stopped by repeated Ctrl-C; what was not written is missing",
            Self::Command(_) => "with run: the exit code of the command",
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit.code())
    }
}

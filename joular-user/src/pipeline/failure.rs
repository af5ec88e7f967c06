//! Says why a run failed, and with which exit code.

use std::{io, net::SocketAddr, path::PathBuf};

use joular_data::{dataset::DataSetError, events::recording::RecordingError, output::OutputError};

use super::{consumer::ConsumeError, live::LiveError, replay::ReplayError};
use crate::{
    calibration::{CalibrationError, file::FileError},
    cli::Exit,
    energy::EnergyError,
    experiment::LaunchError,
    kernel::{KernelError, Remedy},
    output::{HeadersError, TlsError, TokenError},
    procs::selection::Absent,
};

#[derive(Debug, thiserror::Error)]
pub enum Failure {
    #[error("starting {what}: {source}")]
    Start { what: &'static str, source: io::Error },
    #[error("{0}: `ps -eo pid,comm` shows those there are, and --comm takes a name and waits for it")]
    Absent(Absent),
    #[error(transparent)]
    Energy(#[from] EnergyError),
    #[error(transparent)]
    Kernel(#[from] KernelError),
    #[error(transparent)]
    Output(#[from] OutputError),
    #[error("reading the data set that is to be shipped: {0}")]
    Ship(#[from] DataSetError),
    #[error(transparent)]
    Recording(#[from] RecordingError),
    #[error(transparent)]
    Calibration(#[from] CalibrationError),
    #[error("creating the recording {path}: {source}: choose another file with --record")]
    CreateRecording { path: PathBuf, source: io::Error },
    #[error("opening the recording {path}: {source}: check --replay")]
    OpenRecording { path: PathBuf, source: io::Error },
    #[error("serving metrics at {address}: {source}: choose another address with --metrics")]
    Metrics { address: SocketAddr, source: io::Error },
    #[error("reading the token {path}: {source}")]
    MetricsToken { path: PathBuf, source: TokenError },
    #[error("serving metrics over TLS: {0}")]
    MetricsCertificate(#[source] TlsError),
    #[error("reading the headers {path}: {source}")]
    OtlpHeaders { path: PathBuf, source: HeadersError },
    #[error("reading the certificates {path}: {source}: check --otlp-ca")]
    OtlpAuthority { path: PathBuf, source: io::Error },
    #[error(transparent)]
    Launch(#[from] LaunchError),
    #[error("running a command: there is none, or it never began")]
    NoCommand,
    #[error("replaying {path}: {source}")]
    Replay { path: PathBuf, source: ReplayError },
}

impl Failure {
    /// The exit code that scripts see.
    pub fn exit(&self) -> Exit {
        match self {
            Self::Kernel(error) | Self::Calibration(CalibrationError::Kernel(error)) => match error.remedy() {
                Remedy::Privileges => Exit::Privileges,
                Remedy::AnotherKernel => Exit::KernelFeature,
                Remedy::Resources | Remedy::None => Exit::Failure,
            },
            Self::Calibration(error) | Self::Replay { source: ReplayError::Calibration(error), .. } => {
                of_calibration(error)
            }
            Self::MetricsToken { .. } | Self::MetricsCertificate(_) => Exit::Usage,
            Self::OtlpHeaders { .. } | Self::OtlpAuthority { .. } => Exit::Usage,
            Self::Absent(_) => Exit::NothingMatched,
            Self::Output(_) | Self::CreateRecording { .. } => Exit::Output,
            Self::Replay { source: ReplayError::Consume(ConsumeError::Output(_)), .. } => Exit::Output,
            Self::Recording(RecordingError::Write(_) | RecordingError::LeftOut { .. }) => Exit::Output,
            _ => Exit::Failure,
        }
    }
}

const fn of_calibration(error: &CalibrationError) -> Exit {
    match error {
        CalibrationError::Statistics => Exit::Privileges,
        CalibrationError::File(FileError::Write { .. }) | CalibrationError::Show(_) => Exit::Output,
        // The file was named on the command line, or in the configuration.
        CalibrationError::File(_) | CalibrationError::Mismatch { .. } => Exit::Usage,
        _ => Exit::Failure,
    }
}

impl From<ConsumeError> for Failure {
    fn from(error: ConsumeError) -> Self {
        match error {
            ConsumeError::Output(error) => Self::Output(error),
            ConsumeError::Recording(error) => Self::Recording(error),
        }
    }
}

impl From<LiveError> for Failure {
    fn from(error: LiveError) -> Self {
        match error {
            LiveError::Kernel(error) => Self::Kernel(error),
            LiveError::Consume(error) => error.into(),
            LiveError::Wake(source) => Self::Start { what: "waiting for the kernel side", source },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_written_has_its_exit_code() {
        let exists = || OutputError::RunExists { run_id: "r".into(), path: "p".into() };
        let replayed = Failure::Replay { path: "f".into(), source: ConsumeError::Output(exists()).into() };
        assert!(replayed.to_string().starts_with("replaying f: starting run r: p exists"), "{replayed}");
        for failure in [replayed, exists().into(), RecordingError::LeftOut { events: 1 }.into()] {
            assert_eq!(failure.exit(), Exit::Output, "{failure}");
        }
    }

    #[test]
    fn a_calibration_that_does_not_hold_is_wrong_use() {
        let mismatch = CalibrationError::Mismatch { path: "p".into(), differences: Vec::new() };
        let refused = FileError::Refused { path: "p".into(), cause: "c".into() };
        let unwritten = FileError::Write { path: "p".into(), source: io::ErrorKind::StorageFull.into() };
        for (error, exit) in [
            (mismatch, Exit::Usage),
            (refused.into(), Exit::Usage),
            (unwritten.into(), Exit::Output),
            (CalibrationError::Statistics, Exit::Privileges),
        ] {
            assert_eq!(Failure::from(error).exit(), exit);
        }
    }

    #[test]
    fn a_message_has_its_cause_once() {
        let cause = || io::Error::other("the cause");
        let recording = || RecordingError::Write(cause());
        let failures = [
            Failure::Start { what: "it", source: cause() },
            Failure::CreateRecording { path: "p".into(), source: cause() },
            Failure::OpenRecording { path: "p".into(), source: cause() },
            recording().into(),
            Failure::Replay { path: "p".into(), source: recording().into() },
            OutputError::Stream { what: "it", source: cause() }.into(),
            CalibrationError::Trainer { operation: "starting", source: cause() }.into(),
            CalibrationError::from(FileError::Read { path: "p".into(), source: cause() }).into(),
        ];
        for failure in failures {
            assert_eq!(failure.to_string().matches("the cause").count(), 1, "{failure}");
        }
    }
}

//! Interprets a recorded run again: the same events through the same code.

use std::io::Read;

use joular_data::{
    events::{
        Event, RunEnd, RunInfo,
        recording::{RecordingError, RecordingReader},
    },
    model::{
        policy::{Policy, PolicyChoices},
        units::UnixMicros,
    },
};

use super::{
    calibration,
    consumer::{ConsumeError, Consumer},
};
use crate::{
    calibration::CalibrationError,
    config::{CalibrationChoice, Config},
    shutdown::StopReason,
};

#[derive(Debug, thiserror::Error)]
pub enum ReplayError {
    #[error(transparent)]
    Recording(#[from] RecordingError),
    #[error(transparent)]
    Consume(#[from] ConsumeError),
    #[error(transparent)]
    Calibration(#[from] CalibrationError),
}

/// Feeds a recording to the consumer. If it is cut off, or an output fails,
/// everything up to there is interpreted and the run is closed before the
/// error is returned. `goes_on` is asked before each event: no is as if the recording ended there.
pub(super) fn replay(
    input: impl Read,
    config: &Config,
    consumer: &mut Consumer,
    mut goes_on: impl FnMut(&Event) -> bool,
) -> Result<(), ReplayError> {
    let mut progress = Progress::default();
    let mut take = |event: Result<Event, RecordingError>| -> Result<bool, ReplayError> {
        let event = match event? {
            Event::RunStarted(run) => Event::RunStarted(Box::new(with_policy(*run, config)?)),
            event => event,
        };
        if !goes_on(&event) {
            return Ok(false);
        }
        consumer.take(&event)?;
        progress.note(&event);
        Ok(true)
    };
    let mut outcome = Ok(());
    for event in RecordingReader::new(input)? {
        match take(event) {
            Ok(true) => {}
            Ok(false) => break,
            Err(error) => {
                outcome = Err(error);
                break;
            }
        }
    }
    let closed = if progress.is_open { consumer.take(&cut_off(progress.reached)) } else { Ok(()) };
    outcome.and(closed.map_err(Into::into))
}

/// How far a replay has come in a run.
#[derive(Default)]
struct Progress {
    /// The run has started and not ended.
    is_open: bool,
    /// End of the last window.
    reached: UnixMicros,
}

impl Progress {
    fn note(&mut self, event: &Event) {
        match event {
            Event::RunStarted(_) => self.is_open = true,
            Event::RunEnded(_) => self.is_open = false,
            Event::Window(window) => {
                let length_us = i64::try_from(window.length_ns() / 1000).unwrap_or(0);
                self.reached = UnixMicros(window.wall_start.0.saturating_add(length_us));
            }
            _ => {}
        }
    }
}

fn cut_off(ended: UnixMicros) -> Event {
    Event::RunEnded(RunEnd { ended, reason: StopReason::EndOfRecording.name().to_owned() })
}

/// Replaces the policy: a replay may attribute under another one than the run did.
fn with_policy(run: RunInfo, config: &Config) -> Result<RunInfo, CalibrationError> {
    let policy = policy_again(&config.policy, &config.calibration, &run)?;
    Ok(RunInfo { policy, ..run })
}

/// The policy under which a recorded run is attributed again.
///
/// # Errors
/// If a calibration is chosen that is not of the machine that was recorded.
pub fn policy_again(
    choices: &PolicyChoices,
    calibration: &CalibrationChoice,
    run: &RunInfo,
) -> Result<Policy, CalibrationError> {
    let PolicyChoices { calibration, smt_permille, .. } = calibration::for_replay(calibration, run)?;
    let smt_permille = choices.smt_permille.or(smt_permille);
    Ok(PolicyChoices { calibration, smt_permille, ..choices.clone() }.over(run.policy.clone()))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use joular_data::{
        dataset::{OutputDirectory, ParquetOutput},
        events::{Window, recording::RecordingWriter},
        output::{Output, OutputError},
    };

    use super::*;
    use crate::{
        cli::Flags,
        output::{Screen, ScreenOutput},
    };

    fn run() -> RunInfo {
        RunInfo { domains: Vec::new(), ..joular_data::fixture::run() }
    }

    /// A run of one window that does not end.
    fn recording() -> Vec<u8> {
        let mut writer = RecordingWriter::new(Vec::new()).unwrap();
        let window = Window { wall_start: run().started, ..Window::default() };
        for event in [Event::RunStarted(Box::new(run())), Event::Window(Box::new(window))] {
            writer.write(&event).unwrap();
        }
        writer.finish().unwrap()
    }

    /// Replays into a directory; returns the text of the summary beside it.
    fn replay_into(root: &Path, bytes: &[u8]) -> (Result<(), ReplayError>, String) {
        let summary = root.with_extension("txt");
        let file = std::fs::File::create(&summary).unwrap();
        let outputs: Vec<Box<dyn Output>> = vec![
            Box::new(ParquetOutput::new(OutputDirectory::create(root, None).unwrap(), 1)),
            Box::new(ScreenOutput::new(file, Screen::Stream, None, None)),
        ];
        let flags = Flags { replay: Some("some.jrec".into()), ..Flags::default() };
        let config = Config::load(flags).unwrap();
        let outcome = replay(bytes, &config, &mut Consumer::new(outputs, None, config.redaction.clone()), |_| true);
        (outcome, std::fs::read_to_string(summary).unwrap())
    }

    #[test]
    fn a_recording_that_is_cut_off_is_a_run_that_ended() {
        let root = tempfile::tempdir().unwrap();
        let (outcome, summary) = replay_into(&root.path().join("out"), &recording());
        outcome.unwrap();
        assert!(summary.contains("in 1 window,"), "{summary}");
        let mut damaged = recording();
        damaged.truncate(damaged.len() - 1);
        let (outcome, summary) = replay_into(&root.path().join("other"), &damaged);
        assert!(matches!(outcome, Err(ReplayError::Recording(RecordingError::Truncated { .. }))), "{outcome:?}");
        assert!(summary.contains("in 1 window,"), "{summary}");
    }

    #[test]
    fn a_run_that_the_data_set_has_is_not_summed_up_again() {
        let root = tempfile::tempdir().unwrap();
        let out = root.path().join("out");
        replay_into(&out, &recording()).0.unwrap();
        let (outcome, summary) = replay_into(&out, &recording());
        let Err(ReplayError::Consume(ConsumeError::Output(OutputError::RunExists { .. }))) = outcome else {
            panic!("{outcome:?}")
        };
        assert_eq!(summary, "");
    }
}

//! A recorded run, interpreted again: the same events through the same code.

use std::io::Read;

use super::consumer::{ConsumeError, Consumer};
use crate::{
    config::Config,
    events::{
        Event, RunEnd, RunInfo,
        recording::{RecordingError, RecordingReader},
    },
    shutdown::StopReason,
    units::UnixMicros,
};

#[derive(Debug, thiserror::Error)]
pub enum ReplayError {
    #[error(transparent)]
    Recording(#[from] RecordingError),
    #[error(transparent)]
    Consume(#[from] ConsumeError),
}

/// Feeds a recording to the consumer. If it is cut off, or an output fails,
/// everything up to there is interpreted and the run is closed before the
/// error is returned.
pub(super) fn replay(input: impl Read, config: &Config, consumer: &mut Consumer) -> Result<(), ReplayError> {
    let mut progress = Progress::default();
    let outcome = RecordingReader::new(input)?.try_for_each(|event| {
        let event = match event? {
            Event::RunStarted(run) => Event::RunStarted(Box::new(with_policy(*run, config))),
            event => event,
        };
        consumer.take(&event)?;
        progress.note(&event);
        Ok(())
    });
    let closed = if progress.is_open { consumer.take(&cut_off(progress.reached)) } else { Ok(()) };
    outcome.and(closed.map_err(Into::into))
}

/// Where in a run a replay is.
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

/// A replay may attribute under another policy than the run did.
fn with_policy(run: RunInfo, config: &Config) -> RunInfo {
    RunInfo {
        idle_policy: config.idle.map_or(run.idle_policy, |policy| policy.name().to_owned()),
        idle_milliwatts: config.idle_milliwatts.unwrap_or(run.idle_milliwatts),
        ..run
    }
}

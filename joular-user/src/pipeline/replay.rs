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

/// Feeds a recording to the consumer. If it is cut off, everything up to
/// there is interpreted and the run is closed before the error is returned.
pub(super) fn replay(input: impl Read, config: &Config, consumer: &mut Consumer) -> Result<(), ReplayError> {
    let mut last = UnixMicros(0);
    let mut ended = false;
    let mut started = false;
    for event in RecordingReader::new(input)? {
        let event = match event {
            Ok(Event::RunStarted(run)) => {
                started = true;
                Event::RunStarted(Box::new(with_policy(*run, config)))
            }
            Ok(event) => event,
            Err(error) => {
                if started && !ended {
                    consumer.take(&cut_off(last))?;
                }
                return Err(error.into());
            }
        };
        match &event {
            Event::Window(window) => {
                last = UnixMicros(
                    window.wall_start.0.saturating_add(i64::try_from(window.length_ns() / 1000).unwrap_or(0)),
                );
            }
            Event::RunEnded(_) => ended = true,
            _ => {}
        }
        consumer.take(&event)?;
    }
    if started && !ended {
        consumer.take(&cut_off(last))?;
    }
    Ok(())
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

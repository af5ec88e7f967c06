//! Passes events on: into the recording, through the engine, out to the user. Live and replay share
//! it, so they cannot differ. Secrets in command lines end here: whatever writes gets them redacted.
//!
//! Readings that are not complete wait here, and all events after them. So a recording has them complete, and the engine
//! knows nothing of it.

use std::io::Write;

use joular_data::{
    attribution::{Engine, window_report::WindowReport},
    events::{
        EnergyReading, Event, RawStack,
        recording::{RecordingError, RecordingWriter},
    },
    output::{Output, OutputError},
    redact::Redaction,
    stacks::StackTable,
};

use super::held::Held;

#[derive(Debug, thiserror::Error)]
pub enum ConsumeError {
    #[error(transparent)]
    Output(#[from] OutputError),
    #[error(transparent)]
    Recording(#[from] RecordingError),
}

pub struct Consumer {
    engine: Engine,
    outputs: Vec<Box<dyn Output>>,
    recorder: Option<RecordingWriter<Box<dyn Write>>>,
    redaction: Redaction,
    /// Events that were too large for the recording.
    left_out: u64,
    held: Held,
}

impl Consumer {
    pub fn new(
        outputs: Vec<Box<dyn Output>>,
        recorder: Option<RecordingWriter<Box<dyn Write>>>,
        redaction: Redaction,
    ) -> Self {
        Self { engine: Engine::default(), outputs, recorder, redaction, left_out: 0, held: Held::default() }
    }

    /// A stack as it was last sent by the kernel.
    pub fn stack(&self, id: u64) -> Option<&RawStack> {
        self.engine.stack(id).or_else(|| self.held.stack(id))
    }

    /// Takes one event, after those that wait. The end of a run waits for nothing.
    ///
    /// # Errors
    /// As [`Self::release`].
    pub fn take(&mut self, event: &Event) -> Result<(), ConsumeError> {
        if self.held.is_empty() {
            return self.pass_on(event);
        }
        self.held.push(event.clone());
        if matches!(event, Event::RunEnded(_)) { self.release(|_| true) } else { Ok(()) }
    }

    /// Takes readings that may not be complete.
    pub fn hold(&mut self, reading: EnergyReading) {
        self.held.push(Event::Energy(reading));
    }

    /// Whether any event waits.
    pub fn is_holding(&self) -> bool {
        !self.held.is_empty()
    }

    /// Passes on what need not wait any longer. `complete` says whether readings are complete, and may change them.
    ///
    /// # Errors
    /// The first of those of [`Self::pass_on`].
    pub fn release(&mut self, mut complete: impl FnMut(&mut EnergyReading) -> bool) -> Result<(), ConsumeError> {
        let mut outcome = Ok(());
        while let Some(event) = self.held.next(&mut complete) {
            outcome = outcome.and(self.pass_on(&event));
        }
        outcome
    }

    /// Passes on one event.
    ///
    /// # Errors
    /// The first thing that failed, after everything else has seen the event.
    /// What failed is let go, and what it wrote before stays whole; the rest
    /// goes on with the next event. That the reader of an output has gone
    /// (`joular-bpf … | head`) is not an error.
    fn pass_on(&mut self, event: &Event) -> Result<(), ConsumeError> {
        let redacted = event.redacted(&self.redaction);
        let may_be_written = redacted.as_ref().unwrap_or(event);
        let recorded = self.record(may_be_written);
        let report = self.engine.apply(may_be_written);
        let shown = self.show(event, may_be_written, report.as_ref());
        recorded?;
        Ok(shown?)
    }

    /// Writes an event to the recording. An event that is too large is left out; any other failure
    /// ends the recording.
    fn record(&mut self, event: &Event) -> Result<(), RecordingError> {
        let Some(recorder) = &mut self.recorder else { return Ok(()) };
        match recorder.write(event) {
            Err(RecordingError::TooLarge { .. } | RecordingError::Refused { .. }) => {
                self.left_out = self.left_out.saturating_add(1);
            }
            Err(error) => {
                self.recorder = None;
                return Err(error);
            }
            Ok(()) => {}
        }
        Ok(())
    }

    fn show(
        &mut self,
        event: &Event,
        may_be_written: &Event,
        report: Option<&WindowReport>,
    ) -> Result<(), OutputError> {
        let mut failed = None;
        let table = self.engine.table();
        self.outputs.retain_mut(|output| {
            let event = if output.needs_command_lines() { event } else { may_be_written };
            match show(output.as_mut(), event, report, table) {
                Ok(()) => true,
                Err(error) => {
                    if !error.is_broken_pipe() {
                        failed.get_or_insert(error);
                    }
                    false
                }
            }
        });
        failed.map_or(Ok(()), Err)
    }

    /// Whether an output has written, since this was last asked, what it had kept of windows.
    pub fn has_let_go(&mut self) -> bool {
        self.outputs.iter_mut().fold(false, |any, output| output.has_let_go() | any)
    }

    /// Closes the recording, also after [`Self::take`] failed.
    ///
    /// # Errors
    /// If it cannot be closed, or lacks events.
    pub fn finish(self) -> Result<(), ConsumeError> {
        if let Some(recorder) = self.recorder {
            recorder.finish()?;
        }
        match self.left_out {
            0 => Ok(()),
            events => Err(RecordingError::LeftOut { events }.into()),
        }
    }
}

fn show(
    output: &mut dyn Output,
    event: &Event,
    report: Option<&WindowReport>,
    table: &StackTable,
) -> Result<(), OutputError> {
    match event {
        Event::RunStarted(run) => output.run_started(run)?,
        Event::Process(process) => output.process(process),
        Event::ProcessEnded { pid, start_boottime_ns } => output.process_ended(*pid, *start_boottime_ns),
        Event::RunEnded(end) => output.run_ended(end)?,
        _ => {}
    }
    report.map_or(Ok(()), |report| output.window(report, table))
}

#[cfg(test)]
#[path = "consumer_tests.rs"]
mod tests;

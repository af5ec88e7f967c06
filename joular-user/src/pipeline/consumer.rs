//! Where events go: into the recording, through the engine, out to the user.
//! Live and replay share it, which is why they cannot differ.

use std::io::Write;

use crate::{
    attribution::{Engine, report::WindowReport},
    events::{
        Event,
        recording::{RecordingError, RecordingWriter},
    },
    output::{Output, OutputError},
    stacks::StackTable,
};

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
}

impl Consumer {
    pub fn new(outputs: Vec<Box<dyn Output>>, recorder: Option<RecordingWriter<Box<dyn Write>>>) -> Self {
        Self { engine: Engine::default(), outputs, recorder }
    }

    pub const fn engine(&self) -> &Engine {
        &self.engine
    }

    /// Takes one event. An error means that an output failed; what was
    /// written before stays whole. An output whose reader has gone
    /// (`joular-bpf … | head`) is let go; the rest goes on.
    pub fn take(&mut self, event: &Event) -> Result<(), ConsumeError> {
        if let Some(recorder) = &mut self.recorder {
            recorder.write(event)?;
        }
        let report = self.engine.apply(event);
        let mut failed = None;
        let table = self.engine.table();
        self.outputs.retain_mut(|output| match show(output.as_mut(), event, report.as_ref(), table) {
            Ok(()) => true,
            Err(error) => {
                if !error.is_broken_pipe() {
                    failed.get_or_insert(error);
                }
                false
            }
        });
        if let Some(error) = failed {
            return Err(error.into());
        }
        Ok(())
    }

    /// Closes the recording.
    pub fn finish(self) -> Result<(), ConsumeError> {
        if let Some(recorder) = self.recorder {
            recorder.finish()?;
        }
        Ok(())
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
        Event::RunEnded(end) => output.run_ended(end)?,
        _ => {}
    }
    report.map_or(Ok(()), |report| output.window(report, table))
}

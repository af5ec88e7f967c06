//! Where events go: into the recording, through the engine, out to the user.
//! Live and replay share it, which is why they cannot differ.

use std::io::Write;

use crate::{
    attribution::Engine,
    events::{
        Event,
        recording::{RecordingError, RecordingWriter},
    },
    output::{Output, OutputError},
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
    /// written before stays whole.
    pub fn take(&mut self, event: &Event) -> Result<(), ConsumeError> {
        if let Some(recorder) = &mut self.recorder {
            recorder.write(event)?;
        }
        let report = self.engine.apply(event);
        for output in &mut self.outputs {
            match event {
                Event::RunStarted(run) => output.run_started(run)?,
                Event::Process(process) => output.process(process),
                Event::RunEnded(end) => output.run_ended(end)?,
                _ => {}
            }
            if let Some(report) = &report {
                output.window(report, self.engine.table())?;
            }
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

//! Passes events on: into the recording, through the engine, out to the user. Live and replay share
//! it, so they cannot differ.

use std::io::Write;

use joular_data::{
    attribution::{Engine, window_report::WindowReport},
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
    /// Events that were too large for the recording.
    left_out: u64,
}

impl Consumer {
    pub fn new(outputs: Vec<Box<dyn Output>>, recorder: Option<RecordingWriter<Box<dyn Write>>>) -> Self {
        Self { engine: Engine::default(), outputs, recorder, left_out: 0 }
    }

    pub const fn engine(&self) -> &Engine {
        &self.engine
    }

    /// Takes one event.
    ///
    /// # Errors
    /// The first thing that failed, after everything else has seen the event.
    /// What failed is let go, and what it wrote before stays whole; the rest
    /// goes on with the next event. That the reader of an output has gone
    /// (`joular-bpf … | head`) is no error.
    pub fn take(&mut self, event: &Event) -> Result<(), ConsumeError> {
        let recorded = self.record(event);
        let report = self.engine.apply(event);
        let shown = self.show(event, report.as_ref());
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

    fn show(&mut self, event: &Event, report: Option<&WindowReport>) -> Result<(), OutputError> {
        let mut failed = None;
        let table = self.engine.table();
        self.outputs.retain_mut(|output| match show(output.as_mut(), event, report, table) {
            Ok(()) => true,
            Err(error) => {
                if !error.is_broken_pipe() {
                    failed.get_or_insert(error);
                }
                false
            }
        });
        failed.map_or(Ok(()), Err)
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
mod tests {
    use std::{cell::RefCell, io, rc::Rc};

    use joular_data::{
        events::{ProcessInfo, RawStack, RunEnd, RunInfo, Window},
        model::{
            quality::StackQuality,
            units::{Address, UnixMicros},
        },
    };

    use super::*;

    /// Notes what it sees; fails at a window's number.
    struct Fake {
        seen: Rc<RefCell<Vec<String>>>,
        fails_at: Option<(u64, io::ErrorKind)>,
    }

    impl Fake {
        fn note(&self, what: impl Into<String>) {
            self.seen.borrow_mut().push(what.into());
        }
    }

    impl Output for Fake {
        fn run_started(&mut self, _: &RunInfo) -> Result<(), OutputError> {
            Ok(())
        }

        fn process(&mut self, _: &ProcessInfo) {}

        fn window(&mut self, report: &WindowReport, _: &StackTable) -> Result<(), OutputError> {
            self.note(report.index.to_string());
            match self.fails_at {
                Some((index, kind)) if index == report.index => {
                    Err(OutputError::Stream { what: "a test", source: kind.into() })
                }
                _ => Ok(()),
            }
        }

        fn run_ended(&mut self, _: &RunEnd) -> Result<(), OutputError> {
            self.note("end");
            Ok(())
        }
    }

    /// A disk that is full from a moment on.
    #[derive(Clone, Default)]
    struct Disk {
        bytes: Rc<RefCell<Vec<u8>>>,
        is_full: Rc<RefCell<bool>>,
    }

    impl Write for Disk {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            if *self.is_full.borrow() {
                return Err(io::ErrorKind::StorageFull.into());
            }
            self.bytes.borrow_mut().extend(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn window(index: u64) -> Event {
        Event::Window(Box::new(Window { index, ..Window::default() }))
    }

    fn end() -> Event {
        Event::RunEnded(RunEnd { ended: UnixMicros(0), reason: "test".into() })
    }

    type Seen = Rc<RefCell<Vec<String>>>;

    /// Two outputs, of which the first fails at window 1, and what they saw.
    fn two(kind: io::ErrorKind) -> (Vec<Box<dyn Output>>, [Seen; 2]) {
        let seen = [Seen::default(), Seen::default()];
        let output = |index: usize, fails_at| Box::new(Fake { seen: seen[index].clone(), fails_at }) as Box<dyn Output>;
        (vec![output(0, Some((1, kind))), output(1, None)], seen)
    }

    #[test]
    fn an_output_that_failed_is_let_go_and_the_others_see_the_end() {
        let (outputs, seen) = two(io::ErrorKind::StorageFull);
        let mut consumer = Consumer::new(outputs, None);
        let outcomes = [window(0), window(1), window(2), end()].map(|event| consumer.take(&event).is_err());
        assert_eq!(outcomes, [false, true, false, false]);
        assert_eq!(*seen[0].borrow(), ["0", "1"]);
        assert_eq!(*seen[1].borrow(), ["0", "1", "2", "end"]);
    }

    #[test]
    fn a_reader_that_went_away_is_no_failure() {
        let (outputs, seen) = two(io::ErrorKind::BrokenPipe);
        let mut consumer = Consumer::new(outputs, None);
        for index in 0..3 {
            consumer.take(&window(index)).unwrap();
        }
        assert_eq!(*seen[0].borrow(), ["0", "1"]);
    }

    #[test]
    fn a_recording_that_failed_stops_nothing_else() {
        let (outputs, seen) = two(io::ErrorKind::BrokenPipe);
        let disk = Disk::default();
        let recorder = RecordingWriter::new(Box::new(disk.clone()) as Box<dyn Write>).unwrap();
        let mut consumer = Consumer::new(outputs, Some(recorder));
        consumer.take(&window(0)).unwrap();
        *disk.is_full.borrow_mut() = true;
        assert!(matches!(consumer.take(&window(1)), Err(ConsumeError::Recording(RecordingError::Write(_)))));
        consumer.take(&end()).unwrap();
        consumer.finish().unwrap();
        assert_eq!(*seen[1].borrow(), ["0", "1", "end"]);
    }

    #[test]
    fn an_event_too_large_for_the_recording_is_taken_and_counted() {
        let recorder = RecordingWriter::new(Box::new(Disk::default()) as Box<dyn Write>).unwrap();
        let mut consumer = Consumer::new(Vec::new(), Some(recorder));
        let frames = vec![Address(u64::MAX); 2_000_000];
        consumer
            .take(&Event::Stack(RawStack { id: 1, is_kernel: false, quality: StackQuality::default(), frames }))
            .unwrap();
        assert!(consumer.engine().stack(1).is_some());
        consumer.take(&window(0)).unwrap();
        let error = consumer.finish().unwrap_err();
        assert!(matches!(error, ConsumeError::Recording(RecordingError::LeftOut { events: 1 })), "{error}");
    }
}

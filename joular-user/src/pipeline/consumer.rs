//! Passes events on: into the recording, through the engine, out to the user. Live and replay share
//! it, so they cannot differ. Secrets in command lines end here: whatever writes gets them redacted.

use std::io::Write;

use joular_data::{
    attribution::{Engine, window_report::WindowReport},
    events::{
        Event,
        recording::{RecordingError, RecordingWriter},
    },
    output::{Output, OutputError},
    redact::Redaction,
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
    redaction: Redaction,
    /// Events that were too large for the recording.
    left_out: u64,
}

impl Consumer {
    pub fn new(
        outputs: Vec<Box<dyn Output>>,
        recorder: Option<RecordingWriter<Box<dyn Write>>>,
        redaction: Redaction,
    ) -> Self {
        Self { engine: Engine::default(), outputs, recorder, redaction, left_out: 0 }
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
    /// (`joular-bpf … | head`) is not an error.
    pub fn take(&mut self, event: &Event) -> Result<(), ConsumeError> {
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
mod tests {
    use std::{cell::RefCell, io, rc::Rc};

    use joular_data::{
        events::{ProcessInfo, RawStack, RunEnd, RunInfo, Window, recording::RecordingReader},
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

    /// Notes command lines of processes.
    struct Lines {
        seen: Seen,
        needs_them: bool,
    }

    impl Output for Lines {
        fn run_started(&mut self, run: &RunInfo) -> Result<(), OutputError> {
            self.seen.borrow_mut().push(run.command_line.join(" "));
            Ok(())
        }

        fn needs_command_lines(&self) -> bool {
            self.needs_them
        }

        fn process(&mut self, process: &ProcessInfo) {
            self.seen.borrow_mut().extend(process.command_line.iter().map(|word| word.raw().to_owned()));
        }

        fn window(&mut self, _: &WindowReport, _: &StackTable) -> Result<(), OutputError> {
            Ok(())
        }

        fn run_ended(&mut self, _: &RunEnd) -> Result<(), OutputError> {
            Ok(())
        }
    }

    #[test]
    fn secrets_reach_neither_the_recording_nor_an_output_that_writes() {
        let [shown, whole] = [false, true].map(|needs_them| (Seen::default(), needs_them));
        let output = |(seen, needs_them): &(Seen, bool)| {
            Box::new(Lines { seen: seen.clone(), needs_them: *needs_them }) as Box<dyn Output>
        };
        let disk = Disk::default();
        let recorder = RecordingWriter::new(Box::new(disk.clone()) as Box<dyn Write>).unwrap();
        let outputs = vec![output(&shown), output(&whole)];
        let mut consumer = Consumer::new(outputs, Some(recorder), Redaction::default());
        let command_line = vec!["joular-bpf".into(), "--token=hunter2".into()];
        consumer.take(&Event::RunStarted(Box::new(RunInfo { command_line, ..RunInfo::default() }))).unwrap();
        let command_line = vec!["java".into(), "-Dpassword=hunter2".into()];
        consumer.take(&Event::Process(Box::new(ProcessInfo { command_line, ..ProcessInfo::default() }))).unwrap();
        consumer.finish().unwrap();
        assert_eq!(*shown.0.borrow(), ["joular-bpf --token=[redacted]", "java", "-Dpassword=[redacted]"]);
        assert_eq!(*whole.0.borrow(), ["joular-bpf --token=hunter2", "java", "-Dpassword=hunter2"]);
        let recording = disk.bytes.borrow().clone();
        let events: Vec<Event> = RecordingReader::new(&*recording).unwrap().collect::<Result<_, _>>().unwrap();
        let text = format!("{events:?}");
        assert!(text.contains("-Dpassword=[redacted]") && !text.contains("hunter2"), "{text}");
    }

    #[test]
    fn an_output_that_failed_is_let_go_and_the_others_see_the_end() {
        let (outputs, seen) = two(io::ErrorKind::StorageFull);
        let mut consumer = Consumer::new(outputs, None, Redaction::default());
        let outcomes = [window(0), window(1), window(2), end()].map(|event| consumer.take(&event).is_err());
        assert_eq!(outcomes, [false, true, false, false]);
        assert_eq!(*seen[0].borrow(), ["0", "1"]);
        assert_eq!(*seen[1].borrow(), ["0", "1", "2", "end"]);
    }

    #[test]
    fn a_reader_that_went_away_is_no_failure() {
        let (outputs, seen) = two(io::ErrorKind::BrokenPipe);
        let mut consumer = Consumer::new(outputs, None, Redaction::default());
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
        let mut consumer = Consumer::new(outputs, Some(recorder), Redaction::default());
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
        let mut consumer = Consumer::new(Vec::new(), Some(recorder), Redaction::default());
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

use std::{cell::RefCell, io, rc::Rc};

use joular_data::{
    events::{ProcessInfo, RawStack, RunEnd, RunInfo, Window, recording::RecordingReader},
    model::{
        domain::Reading,
        quality::StackQuality,
        units::{Address, MonotonicNs, UnixMicros},
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
fn all_that_is_taken_after_readings_that_are_not_complete_waits_in_its_order() {
    let seen = Seen::default();
    let output = Box::new(Fake { seen: seen.clone(), fails_at: None }) as Box<dyn Output>;
    let mut consumer = Consumer::new(vec![output], None, Redaction::default());
    let reading = |at| EnergyReading { read_at: MonotonicNs(at), readings: Vec::new() };
    let stack = |id| {
        Event::Stack(RawStack { id, is_kernel: false, quality: StackQuality::default(), frames: vec![Address(id)] })
    };
    consumer.take(&stack(1)).unwrap();
    for index in 0..3 {
        consumer.hold(reading(index));
        consumer.take(&stack(10 + index)).unwrap();
        consumer.take(&window(index)).unwrap();
    }
    let has = |consumer: &Consumer| [1, 10, 11, 12, 13].map(|id| consumer.stack(id).is_some_and(|of| of.id == id));
    assert_eq!(has(&consumer), [true, true, true, true, false]);
    assert!(seen.borrow().is_empty());
    consumer.release(|reading| reading.read_at < MonotonicNs(2)).unwrap();
    assert_eq!((&**seen.borrow(), consumer.is_holding()), (&["0".to_owned(), "1".to_owned()][..], true));
    assert_eq!(has(&consumer), [true, true, true, true, false]);
    consumer.take(&end()).unwrap();
    assert_eq!(*seen.borrow(), ["0", "1", "2", "end"]);
}

#[test]
fn readings_are_recorded_as_they_were_completed() {
    let disk = Disk::default();
    let recorder = RecordingWriter::new(Box::new(disk.clone()) as Box<dyn Write>).unwrap();
    let mut consumer = Consumer::new(Vec::new(), Some(recorder), Redaction::default());
    consumer.hold(EnergyReading::default());
    let complete = |reading: &mut EnergyReading| {
        reading.readings.push(Reading::CounterUj(5));
        true
    };
    consumer.release(complete).unwrap();
    consumer.finish().unwrap();
    let recording = disk.bytes.borrow().clone();
    let events: Vec<Event> = RecordingReader::new(&*recording).unwrap().collect::<Result<_, _>>().unwrap();
    assert!(matches!(&events[..], [Event::Energy(of)] if of.readings == [Reading::CounterUj(5)]), "{events:?}");
}

#[test]
fn an_event_too_large_for_the_recording_is_taken_and_counted() {
    let recorder = RecordingWriter::new(Box::new(Disk::default()) as Box<dyn Write>).unwrap();
    let mut consumer = Consumer::new(Vec::new(), Some(recorder), Redaction::default());
    let frames = vec![Address(u64::MAX); 2_000_000];
    consumer
        .take(&Event::Stack(RawStack { id: 1, is_kernel: false, quality: StackQuality::default(), frames }))
        .unwrap();
    assert!(consumer.stack(1).is_some());
    consumer.take(&window(0)).unwrap();
    let error = consumer.finish().unwrap_err();
    assert!(matches!(error, ConsumeError::Recording(RecordingError::LeftOut { events: 1 })), "{error}");
}

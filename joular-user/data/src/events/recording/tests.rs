use std::{fs, path::Path};

use joular_ebpf::abi::MAX_USER_FRAMES;
use proptest::prelude::*;

use super::*;
use crate::{
    events::{
        EnergyReading, HostIdentity, ProcessInfo, RawStack, RunEnd, RunInfo, SampleCount, SampleKind, Symbol,
        ThreadTime, Window, WindowContext,
    },
    model::{
        domain::{Domain, FaultCause, Label, Meter, Reading},
        frame::{Frame, FrameKind},
        policy::Policy,
        quality::StackQuality,
        units::{Address, MonotonicNs, Pid, Tid, UnixMicros},
    },
};

fn run_info() -> RunInfo {
    RunInfo {
        run_id: "host-1-2".into(),
        host: "host".into(),
        started: UnixMicros(-1),
        boottime_offset_ns: 0,
        version: "0.1.0".into(),
        kernel: "6.8".into(),
        cpu_model: "AMD EPYC".into(),
        arch: "x86_64".into(),
        online_cpus: 2,
        sockets: 1,
        memory_bytes: u64::MAX,
        command_line: vec!["joular-bpf".into(), "--comm".into(), "java".into()],
        sampling_event: "cpu-clock".into(),
        frequency_hz: 99,
        interval_ns: 1_000_000_000,
        energy_source: "powercap".into(),
        energy_reason: "first choice".into(),
        domains: vec![Domain::new(
            "package",
            Some(0),
            "powercap",
            Label::Measured,
            Meter::Counter { range_uj: 9, unit_uj: 1, max_watts: 1 },
        )],
        policy: Policy::default(),
        profiler_pid: crate::model::units::Pid(1),
        identity: HostIdentity {
            machine_id: Some("b08dfa6083e7567a1921a715000001fb".into()),
            instance_id: Some("i-0123456789abcdef0".into()),
            labels: vec!["cluster=eu1".into(), "team=shop".into()],
        },
    }
}

fn window(index: u64) -> Event {
    let threads =
        vec![ThreadTime { tid: Tid(8), pid: Pid(7), comm: *b"main\0\0\0\0\0\0\0\0\0\0\0\0", ..Default::default() }];
    let samples = vec![SampleCount { tid: Tid(8), pid: Pid(7), count: 3, ..Default::default() }];
    Event::Window(Box::new(Window { index, threads, samples, ..Default::default() }))
}

/// An event of each kind that every run has, and two windows.
fn small_run() -> Vec<Event> {
    let frame = Frame { class: Some("a.B".into()), ..Frame::new(FrameKind::Compiled, "c") };
    let readings = vec![Reading::CounterUj(u64::MAX), Reading::failed(FaultCause::Gone, "EIO")];
    vec![
        Event::RunStarted(Box::new(run_info())),
        Event::Process(Box::new(ProcessInfo { pid: Pid(7), comm: "java".into(), ..Default::default() })),
        Event::Stack(RawStack {
            id: 5,
            is_kernel: false,
            quality: StackQuality::TRUNCATED,
            frames: vec![Address(u64::MAX), Address(0)],
        }),
        Event::Symbols {
            pid: Pid(7),
            start_boottime_ns: 1,
            symbols: vec![Symbol { address: Address(1), frames: vec![frame] }],
        },
        Event::Energy(EnergyReading { read_at: MonotonicNs(1), readings }),
        window(0),
        window(1),
        Event::ProcessEnded { pid: Pid(7), start_boottime_ns: 1 },
        Event::RunEnded(RunEnd { ended: UnixMicros(3), reason: "SIGINT".into() }),
    ]
}

fn recorded(events: &[Event]) -> Vec<u8> {
    let mut writer = RecordingWriter::new(Vec::new()).unwrap();
    for event in events {
        writer.write(event).unwrap();
    }
    writer.finish().unwrap()
}

/// All events before the error, if there is one.
fn read(bytes: &[u8]) -> (Vec<Event>, Option<RecordingError>) {
    let mut events = Vec::new();
    match RecordingReader::new(bytes) {
        Err(error) => return (events, Some(error)),
        Ok(reader) => {
            for event in reader {
                match event {
                    Ok(event) => events.push(event),
                    Err(error) => return (events, Some(error)),
                }
            }
        }
    }
    (events, None)
}

/// A recording whose decompressed stream is `stream`.
fn with_stream(stream: &[u8]) -> Vec<u8> {
    let mut bytes = [&MAGIC[..], &VERSION.to_le_bytes()].concat();
    bytes.extend(zstd::stream::encode_all(stream, COMPRESSION_LEVEL).unwrap());
    bytes
}

/// Bytes as a frame of the stream.
fn framed(bytes: &[u8]) -> Vec<u8> {
    [&u32::try_from(bytes.len()).unwrap().to_le_bytes()[..], bytes].concat()
}

#[test]
fn contexts_of_windows_are_recorded() {
    let context = |governor: Option<String>| {
        let context = WindowContext { governor, clock_step_us: -1, suspended_ns: u64::MAX, ..WindowContext::default() };
        Event::Context(Box::new(context))
    };
    let mut events = small_run();
    events.insert(5, context(Some("powersave".into())));
    assert_eq!(read(&recorded(&events)).0, events);
    let mut writer = RecordingWriter::new(Vec::new()).unwrap();
    let refused = writer.write(&context(Some("x".repeat(5_000))));
    assert!(matches!(refused, Err(RecordingError::Refused { .. })), "{refused:?}");
}

#[test]
fn what_is_written_is_read() {
    let (events, error) = read(&recorded(&small_run()));
    assert_eq!(events, small_run());
    assert!(error.is_none(), "{error:?}");
}

#[test]
fn truncation_at_any_byte_leaves_whole_events_and_says_so() {
    let (run, bytes) = (small_run(), recorded(&small_run()));
    for length in 1..bytes.len() {
        let (events, error) = read(&bytes[..length]);
        assert!(run.starts_with(&events), "{length}");
        let Some(RecordingError::Truncated { events_read }) = error else { panic!("{length}: {error:?}") };
        assert_eq!(events_read, events.len() as u64);
    }
    assert!(matches!(read(&[]).1, Some(RecordingError::NotARecording)));
}

#[test]
fn after_a_window_everything_so_far_is_readable() {
    let (first, last) = (small_run()[..6].to_vec(), window(1));
    let mut writer = RecordingWriter::new(Vec::new()).unwrap();
    for event in &first {
        writer.write(event).unwrap();
    }
    // As a crash leaves it: nothing after the window's flush.
    let crashed = writer.encoder.get_ref().clone();
    writer.write(&last).unwrap();
    let (events, error) = read(&crashed);
    assert_eq!(events, first);
    assert!(matches!(error, Some(RecordingError::Truncated { events_read: 6 })), "{error:?}");
}

#[test]
fn a_file_that_is_not_a_recording_is_refused() {
    assert!(matches!(read(b"PAR1 and more bytes").1, Some(RecordingError::NotARecording)));
}

#[test]
fn another_version_is_refused_with_what_to_use_instead() {
    let whole = recorded(&small_run());
    for version in (0..VERSION).chain([VERSION + 1, u16::MAX]) {
        let mut bytes = whole.clone();
        bytes[MAGIC.len()..MAGIC.len() + 2].copy_from_slice(&version.to_le_bytes());
        let advice = if version < VERSION { "the joular-bpf that made it" } else { "a newer joular-bpf" };
        let said = format!(
            "reading the recording: it has format version {version}, this joular-bpf reads version {VERSION}: use {advice}"
        );
        let (events, error) = read(&bytes);
        assert_eq!((events, error.unwrap().to_string()), (Vec::new(), said));
    }
}

/// Those that are kept in the repository.
#[test]
fn the_committed_recordings_are_read_to_their_ends() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures/recordings");
    let files = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let recordings: Vec<_> = files.filter(|path| path.extension().is_some_and(|is| is == "jrec")).collect();
    assert_eq!(recordings.len(), 5, "{recordings:?}");
    for recording in recordings {
        let (events, error) = read(&fs::read(&recording).unwrap());
        assert!(error.is_none(), "{}: {error:?}", recording.display());
        assert!(matches!(events.last(), Some(Event::RunEnded(_))), "{}", recording.display());
        let windows = events.iter().filter(|event| matches!(event, Event::Window(_))).count();
        assert!(windows > 3, "{}: {windows} windows", recording.display());
    }
}

#[test]
fn a_hostile_stream_is_corrupt() {
    let huge = (MAX_EVENT_BYTES + 1).to_le_bytes();
    let event = postcard::to_stdvec(&window(0)).unwrap();
    let padded = framed(&[&event[..], &[0]].concat());
    // A symbol list that claims 2⁶³ entries.
    let many = [4, 7, 1, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f];
    let claims = framed(&many);
    for stream in [&huge[..], &[0; 4], &[1, 0, 0, 0, 0xff], &padded, &claims] {
        let (events, error) = read(&with_stream(stream));
        assert!(events.is_empty() && matches!(error, Some(RecordingError::Corrupt { offset: 0, .. })), "{error:?}");
    }
}

/// Nobody knows what they would count.
#[test]
fn samples_of_an_unknown_kind_are_corrupt() {
    let sample = |kind| SampleCount { kind, tid: Tid(8), pid: Pid(7), count: 3, ..Default::default() };
    let window = |kind| Event::Window(Box::new(Window { samples: vec![sample(kind)], ..Default::default() }));
    let bytes = [SampleKind::CpuTime, SampleKind::Allocation].map(|kind| postcard::to_stdvec(&window(kind)).unwrap());
    let (events, error) = read(&with_stream(&bytes.each_ref().map(|bytes| framed(bytes)).concat()));
    assert_eq!(events, [window(SampleKind::CpuTime), window(SampleKind::Allocation)]);
    assert!(error.is_none(), "{error:?}");
    let [of_cpu_time, mut unknown] = bytes;
    let place = of_cpu_time.iter().zip(&unknown).position(|(one, other)| one != other).unwrap();
    unknown[place] = 2;
    let (events, error) = read(&with_stream(&framed(&unknown)));
    assert!(events.is_empty() && matches!(error, Some(RecordingError::Corrupt { .. })), "{error:?}");
}

#[test]
fn events_that_no_run_makes_are_corrupt() {
    let stack = |count| {
        Event::Stack(RawStack {
            id: 1,
            is_kernel: false,
            quality: StackQuality::default(),
            frames: vec![Address(1); count],
        })
    };
    let symbols = |frames: Vec<Frame>| Event::Symbols {
        pid: Pid(1),
        start_boottime_ns: 0,
        symbols: vec![Symbol { address: Address(1), frames }],
    };
    let frame = |length| Frame::new(FrameKind::Native, "n".repeat(length));
    let cpus = |count| {
        Event::Window(Box::new(Window { cpus: vec![crate::events::CpuTimes::default(); count], ..Default::default() }))
    };
    let command = |length: usize| {
        Event::Process(Box::new(ProcessInfo { command_line: vec!["a".repeat(length).into()], ..Default::default() }))
    };
    let domains = |count| {
        let domain = run_info().domains.remove(0);
        Event::RunStarted(Box::new(RunInfo { domains: vec![domain; count], ..run_info() }))
    };
    let cases = [
        // As deep as the kernel side walks.
        (stack(MAX_USER_FRAMES), stack(MAX_USER_FRAMES + 1), "1025 frames in a stack"),
        (symbols(vec![frame(1); 64]), symbols(vec![frame(1); 65]), "65 frames at an address"),
        (symbols(vec![frame(4096)]), symbols(vec![frame(4097)]), "4097 bytes of a name"),
        (cpus(65_536), cpus(65_537), "65537 CPUs"),
        (command(65_536), command(65_537), "65537 bytes of a command line"),
        (domains(1024), domains(1025), "1025 energy domains"),
    ];
    for (allowed, refused, cause) in cases {
        let mut writer = RecordingWriter::new(Vec::new()).unwrap();
        assert!(matches!(writer.write(&refused), Err(RecordingError::Refused { .. })), "{cause}");
        let stream = [&allowed, &refused].map(|event| framed(&postcard::to_stdvec(event).unwrap())).concat();
        let (events, error) = read(&with_stream(&stream));
        assert!(events == [allowed], "{cause}");
        let Some(RecordingError::Corrupt { events_read: 1, cause: found, .. }) = error else { panic!("{error:?}") };
        assert!(found.starts_with(cause), "{found}");
    }
}

#[test]
fn bytes_after_the_end_are_corrupt() {
    let mut bytes = recorded(&small_run());
    bytes.extend(b"appended");
    let (events, error) = read(&bytes);
    assert_eq!(events, small_run());
    assert!(matches!(error, Some(RecordingError::Corrupt { .. })), "{error:?}");
}

#[test]
fn a_decompressor_window_beyond_the_bound_is_refused() {
    let mut encoder = zstd::stream::write::Encoder::new(Vec::new(), 1).unwrap();
    encoder.window_log(MAX_WINDOW_LOG + 1).unwrap();
    encoder.include_contentsize(false).unwrap();
    encoder.write_all(&vec![0; 1 << 25]).unwrap();
    let bytes = [&MAGIC[..], &VERSION.to_le_bytes(), &encoder.finish().unwrap()].concat();
    let error = read(&bytes).1.unwrap();
    assert!(matches!(error, RecordingError::Corrupt { .. }), "{error:?}");
}

#[test]
fn an_event_too_large_is_left_out() {
    let mut writer = RecordingWriter::new(Vec::new()).unwrap();
    writer.write(&window(0)).unwrap();
    let frames = vec![Address(u64::MAX); 2_000_000];
    let huge = Event::Stack(RawStack { id: 1, is_kernel: false, quality: StackQuality::default(), frames });
    assert!(matches!(writer.write(&huge), Err(RecordingError::TooLarge { .. })));
    writer.write(&window(1)).unwrap();
    assert_eq!(read(&writer.finish().unwrap()).0, [window(0), window(1)]);
}

proptest! {
    #[test]
    fn arbitrary_bytes_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..500)) {
        read(&bytes);
        read(&[&MAGIC[..], &VERSION.to_le_bytes(), &bytes].concat());
        read(&with_stream(&bytes));
        read(&with_stream(&framed(&bytes)));
    }

    #[test]
    fn a_changed_byte_never_panics_and_never_reads_as_whole(index: prop::sample::Index, change in 1..=255_u8) {
        let mut bytes = recorded(&small_run());
        let index = index.index(bytes.len());
        bytes[index] ^= change;
        let (events, error) = read(&bytes);
        prop_assert!(error.is_some() || events == small_run());
    }

    #[test]
    fn any_window_survives(cpu_ns: u64, tid: u32, comm: [u8; 16], wall: i64, count: u32, cause in ".*") {
        let window = Window {
            wall_start: UnixMicros(wall),
            threads: vec![ThreadTime { tid: Tid(tid), cpu_ns, comm, ..Default::default() }],
            samples: vec![SampleCount { count, ..Default::default() }],
            losses: vec![crate::events::LossCount { cause, count: cpu_ns }],
            ..Default::default()
        };
        let events = [Event::Window(Box::new(window))];
        let (found, error) = read(&recorded(&events));
        prop_assert_eq!(found, events);
        prop_assert!(error.is_none());
    }
}

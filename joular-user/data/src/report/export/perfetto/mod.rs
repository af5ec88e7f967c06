//! Writes a Perfetto trace: processes and threads, a counter of watts per thread, counters of bytes and events per
//! process, and for each row of the data set a stack sample whose weight is µJ.
//!
//! Times are the real time of the windows' starts. Names, frames and call stacks are interned when
//! they are first used, so the trace is written as rows are read.

mod proto;

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    io::Write,
};

use self::proto::{
    Attribute, Callstack, Clock, ClockSnapshot, Counter, CounterTrack, Defaults, Frame, InternedData, InternedString,
    Mapping, Packet, ProcessDescriptor, StackSample, StackSampleDefaults, TaskContext, ThreadDescriptor,
    TraceAttributes, TrackDescriptor, TrackEvent,
};
use super::{
    ExportFormat, Exported, Result, Selection, Writer, origin, protobuf,
    timeline::{OfProcess, unix_ns},
};
use crate::{
    model::units::{MicroJoules, UnixMicros},
    report::{
        measure::Unit,
        profile::{Catalog, FrameIndex, Overview, PathIndex, ProcessIndex, ThreadIndex, row::EnergyRow},
    },
};

pub(super) const FORMAT: ExportFormat = ExportFormat { name: "perfetto", writer: Writer::Binary(write) };

/// Windows no further apart than this follow each other. Their starts are in real time, which is
/// corrected, and in whole microseconds.
const GAP_NS: u64 = 1_000_000;

/// Number of the only field of message `Trace`.
const PACKET: u32 = 1;

fn write(selection: &Selection<'_>, out: &mut dyn Write) -> Result<Exported> {
    let mut timeline = selection.timeline()?;
    let origin = origin(&timeline.overview);
    let mut trace = Trace::new(out, &origin);
    trace.begin(&timeline.overview, unix_ns(timeline.start()))?;
    timeline.scan(|catalog, row| trace.take(catalog, row))?;
    trace.finish()?;
    let beside_energy = timeline.beside_energy();
    for counted in beside_energy.chunk_by(|a, b| (a.measure, a.process) == (b.measure, b.process)) {
        trace.beside_energy(timeline.catalog(), counted)?;
    }
    Ok(Exported { energy: trace.energy, origin })
}

struct Trace<'a> {
    out: &'a mut dyn Write,
    origin: &'a str,
    energy: MicroJoules,
    processes: HashSet<ProcessIndex>,
    threads: HashSet<ThreadIndex>,
    interned: Interned,
    window: Option<Window>,
    /// Threads whose counter is not 0, and until when its value holds.
    running: BTreeMap<ThreadIndex, u64>,
    /// Counters of measures so far.
    measures: u64,
}

/// The window whose rows are being read.
struct Window {
    run: usize,
    start: UnixMicros,
    length_ns: u64,
    threads: BTreeMap<ThreadIndex, MicroJoules>,
}

impl<'a> Trace<'a> {
    fn new(out: &'a mut dyn Write, origin: &'a str) -> Self {
        Self {
            out,
            origin,
            energy: MicroJoules(0),
            processes: HashSet::new(),
            threads: HashSet::new(),
            interned: Interned::default(),
            window: None,
            running: BTreeMap::new(),
            measures: 0,
        }
    }

    fn put(&mut self, packet: Packet) -> Result<()> {
        let flags = packet.sequence_flags | proto::NEEDS_INCREMENTAL_STATE;
        let packet = Packet { trusted_packet_sequence_id: 1, sequence_flags: flags, ..packet };
        Ok(protobuf::message(self.out, PACKET, &packet)?)
    }

    /// Declares the clock of times and the meaning of weights.
    fn begin(&mut self, overview: &Overview, start_ns: u64) -> Result<()> {
        let defaults = Defaults {
            timestamp_clock_id: proto::REALTIME,
            stack_sample_defaults: Some(StackSampleDefaults {
                source: "joular-bpf".to_owned(),
                primary_descriptor: Some(Counter::new("energy", "µJ", self.origin)),
                follower_descriptors: vec![
                    Counter::new("cpu", "ns", "on-CPU time"),
                    Counter::new("samples", "samples", "samples taken"),
                ],
            }),
        };
        self.put(Packet {
            sequence_flags: proto::INCREMENTAL_STATE_CLEARED,
            trace_packet_defaults: Some(defaults),
            ..Packet::default()
        })?;
        let clock = Clock { clock_id: proto::REALTIME, timestamp: start_ns };
        let snapshot = ClockSnapshot { clocks: vec![clock], primary_trace_clock: proto::REALTIME };
        self.put(Packet { clock_snapshot: Some(snapshot), ..Packet::default() })?;
        let version = env!("CARGO_PKG_VERSION");
        let attributes = vec![
            Attribute::new("joular_bpf.version", version),
            Attribute::new("joular_bpf.energy", self.origin),
            Attribute::new("joular_bpf.windows", &overview.windows.to_string()),
        ];
        self.put(Packet { trace_attributes: Some(TraceAttributes { attributes }), ..Packet::default() })
    }

    fn take(&mut self, catalog: &Catalog, row: &EnergyRow) -> Result<()> {
        if self.window.as_ref().is_none_or(|window| (window.run, window.start) != (row.run, row.window_start)) {
            self.end_window()?;
            let (run, start, length_ns) = (row.run, row.window_start, row.window_ns);
            self.window = Some(Window { run, start, length_ns, threads: BTreeMap::new() });
        }
        self.describe(catalog, row.thread)?;
        let callstack_iid = iid(row.path.0);
        let interned_data = self.interned.path(catalog, row.path);
        let thread = catalog.thread(row.thread);
        let sample = StackSample {
            task_context: Some(TaskContext { pid: catalog.process(thread.process).pid.0, tid: thread.tid.0 }),
            callstack_iid,
            primary_weight: Some(row.energy.0),
            follower_weights: vec![row.cpu_ns, row.samples],
        };
        let timestamp = unix_ns(row.window_start);
        self.put(Packet { timestamp, interned_data, stack_sample: Some(sample), ..Packet::default() })?;
        if let Some(window) = &mut self.window {
            let sum = window.threads.entry(row.thread).or_default();
            *sum = sum.saturating_add(row.energy);
        }
        self.energy = self.energy.saturating_add(row.energy);
        Ok(())
    }

    /// Writes the tracks of a thread and its process, the first time.
    fn describe(&mut self, catalog: &Catalog, index: ThreadIndex) -> Result<()> {
        if !self.threads.insert(index) {
            return Ok(());
        }
        let thread = catalog.thread(index);
        let pid = self.describe_process(catalog, thread.process)?;
        let descriptor = ThreadDescriptor { pid, tid: thread.tid.0.into(), thread_name: thread.name.raw().to_owned() };
        let track =
            TrackDescriptor { uuid: thread_track(index), thread: Some(descriptor), ..TrackDescriptor::default() };
        self.put(Packet { track_descriptor: Some(track), ..Packet::default() })?;
        let track = TrackDescriptor {
            uuid: counter_track(index),
            parent_uuid: thread_track(index),
            name: format!("power of {}, {}", thread.name.raw(), self.origin),
            counter: Some(CounterTrack { unit_name: "W".to_owned() }),
            ..TrackDescriptor::default()
        };
        self.put(Packet { track_descriptor: Some(track), ..Packet::default() })
    }

    /// Writes the track of a process, the first time. Returns its number.
    fn describe_process(&mut self, catalog: &Catalog, index: ProcessIndex) -> Result<i32> {
        let process = catalog.process(index);
        let pid = i32::try_from(process.pid.0).unwrap_or(i32::MAX);
        if self.processes.insert(index) {
            let host = catalog.run_of(process).info.host.raw();
            let process_name = format!("{} on {host}", process.title().raw());
            let track = TrackDescriptor {
                uuid: process_track(index),
                process: Some(ProcessDescriptor { pid, process_name }),
                ..TrackDescriptor::default()
            };
            self.put(Packet { track_descriptor: Some(track), ..Packet::default() })?;
        }
        Ok(pid)
    }

    /// Writes what one process has of one measure in windows, which are in the order of time: a rate, and 0 where the next
    /// window is missing.
    fn beside_energy(&mut self, catalog: &Catalog, windows: &[OfProcess]) -> Result<()> {
        let Some(OfProcess { measure, process, .. }) = windows.first().copied() else { return Ok(()) };
        self.describe_process(catalog, process)?;
        self.measures += 1;
        let uuid = COUNTERS_OF_MEASURES | self.measures;
        let unit = if measure.unit() == Unit::Bytes { "B/s" } else { "events/s" };
        let track = TrackDescriptor {
            uuid,
            parent_uuid: process_track(process),
            name: measure.title(),
            counter: Some(CounterTrack { unit_name: unit.to_owned() }),
            ..TrackDescriptor::default()
        };
        self.put(Packet { track_descriptor: Some(track), ..Packet::default() })?;
        for (at, window) in windows.iter().enumerate() {
            let start_ns = unix_ns(window.window_start);
            self.count(uuid, start_ns, per_second(window.amount, window.window_ns))?;
            let end_ns = start_ns.saturating_add(window.window_ns);
            let next = windows.get(at + 1).map(|next| unix_ns(next.window_start));
            if next.is_none_or(|next| end_ns.saturating_add(GAP_NS) < next) {
                self.count(uuid, end_ns, 0.0)?;
            }
        }
        Ok(())
    }

    /// Writes the watts of the window's threads, and 0 for threads that had some in the window
    /// before.
    fn end_window(&mut self) -> Result<()> {
        let Some(window) = self.window.take() else { return Ok(()) };
        let start_ns = unix_ns(window.start);
        let stopped: Vec<(ThreadIndex, u64)> = self
            .running
            .iter()
            .map(|(thread, end_ns)| (*thread, *end_ns))
            .filter(|(thread, end_ns)| end_ns.saturating_add(GAP_NS) < start_ns || !window.threads.contains_key(thread))
            .collect();
        for (thread, end_ns) in stopped {
            self.watts(thread, end_ns, 0.0)?;
            self.running.remove(&thread);
        }
        for (thread, energy) in window.threads {
            self.watts(thread, start_ns, watts(energy, window.length_ns))?;
            self.running.insert(thread, start_ns.saturating_add(window.length_ns));
        }
        Ok(())
    }

    fn watts(&mut self, thread: ThreadIndex, timestamp: u64, watts: f64) -> Result<()> {
        self.count(counter_track(thread), timestamp, watts)
    }

    fn count(&mut self, track_uuid: u64, timestamp: u64, value: f64) -> Result<()> {
        let event = TrackEvent { kind: proto::TYPE_COUNTER, track_uuid, double_counter_value: Some(value) };
        self.put(Packet { timestamp, track_event: Some(event), ..Packet::default() })
    }

    fn finish(&mut self) -> Result<()> {
        self.end_window()?;
        for (thread, end_ns) in std::mem::take(&mut self.running) {
            self.watts(thread, end_ns, 0.0)?;
        }
        Ok(())
    }
}

/// Ids of interned data and of tracks: 0 means none.
fn iid(place: u32) -> u64 {
    u64::from(place) + 1
}

const TRACKS_OF_PROCESSES: u64 = 1 << 32;
const TRACKS_OF_THREADS: u64 = 2 << 32;
const COUNTERS_OF_THREADS: u64 = 3 << 32;
const COUNTERS_OF_MEASURES: u64 = 4 << 32;

fn process_track(index: ProcessIndex) -> u64 {
    TRACKS_OF_PROCESSES | u64::from(index.0)
}

fn thread_track(index: ThreadIndex) -> u64 {
    TRACKS_OF_THREADS | u64::from(index.0)
}

fn counter_track(index: ThreadIndex) -> u64 {
    COUNTERS_OF_THREADS | u64::from(index.0)
}

#[allow(clippy::cast_precision_loss, reason = "a graph; exact energies are in the samples")]
fn watts(energy: MicroJoules, over_ns: u64) -> f64 {
    if over_ns == 0 { 0.0 } else { energy.0 as f64 * 1e3 / over_ns as f64 }
}

#[allow(clippy::cast_precision_loss, reason = "a graph; exact amounts are in reports")]
fn per_second(amount: u64, over_ns: u64) -> f64 {
    if over_ns == 0 { 0.0 } else { amount as f64 * 1e9 / over_ns as f64 }
}

/// What was interned so far. Frames and call stacks keep their places in the
/// catalog; files and modules have ids of their own.
#[derive(Default)]
struct Interned {
    paths: HashSet<PathIndex>,
    frames: HashSet<FrameIndex>,
    files: HashMap<String, u64>,
    modules: HashMap<String, u64>,
}

impl Interned {
    /// Interns what must be known before this path can be referred to.
    fn path(&mut self, catalog: &Catalog, path: PathIndex) -> Option<InternedData> {
        if !self.paths.insert(path) {
            return None;
        }
        let mut data = InternedData::default();
        let frames = catalog.paths.path(path);
        for index in frames {
            if self.frames.insert(*index) {
                self.frame(catalog, *index, &mut data);
            }
        }
        let frame_ids = frames.iter().map(|frame| iid(frame.0)).collect();
        data.callstacks.push(Callstack { iid: iid(path.0), frame_ids });
        Some(data)
    }

    fn frame(&mut self, catalog: &Catalog, index: FrameIndex, data: &mut InternedData) {
        let frame = catalog.paths.frame(index);
        data.function_names.push(InternedString { iid: iid(index.0), text: frame.method().into_raw().into_bytes() });
        let module_name = super::module(frame);
        let (module, is_new) = number(&mut self.modules, module_name);
        if is_new {
            let name = module_name.as_bytes().to_vec();
            data.mapping_paths.push(InternedString { iid: module, text: name });
            data.mappings.push(Mapping { iid: module, path_string_ids: vec![module] });
        }
        let mut source_path_iid = 0;
        if let Some(file) = &frame.file {
            let (number, is_new) = number(&mut self.files, file.raw());
            source_path_iid = number;
            if is_new {
                data.source_paths.push(InternedString { iid: number, text: file.raw().as_bytes().to_vec() });
            }
        }
        data.frames.push(Frame {
            iid: iid(index.0),
            function_name_id: iid(index.0),
            mapping_id: module,
            source_path_iid,
            line_number: frame.line.unwrap_or(0),
            kind_str: frame.kind.name().to_owned(),
        });
    }
}

/// A text's number, and whether it is new.
fn number(numbers: &mut HashMap<String, u64>, text: &str) -> (u64, bool) {
    if let Some(number) = numbers.get(text) {
        return (*number, false);
    }
    let number = numbers.len() as u64 + 1;
    numbers.insert(text.to_owned(), number);
    (number, true)
}

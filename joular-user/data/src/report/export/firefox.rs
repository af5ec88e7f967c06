//! Writes Firefox Profiler's processed profile (by the crate that samply uses): threads with
//! samples in time, whose weights are µJ, and frames by kind; processes with counters of bytes and events.
//!
//! A window does not know in which order its call paths ran. They are placed one after the other
//! from the window's start, each as long as its CPU time.

use std::{
    collections::HashMap,
    io::{self, Write},
    path::Path,
    time::Duration,
};

use fxprof_processed_profile::{
    CategoryColor, CategoryHandle, CpuDelta, Frame as FirefoxFrame, FrameFlags, FrameInfo, ProcessHandle, Profile,
    ReferenceTimestamp, SamplingInterval, StackHandle, StringHandle, ThreadHandle, Timestamp, WeightType,
};

use super::{
    ExportError, ExportFormat, Exported, Result, Selection, Writer, origin,
    timeline::{OfProcess, Timeline},
};
use crate::{
    dataset::error::DataSetError,
    model::{
        frame::FrameKind,
        units::{MicroJoules, UnixMicros},
    },
    report::{
        measure::Unit,
        profile::{Catalog, FrameIndex, PathIndex, ProcessIndex, ThreadIndex, row::EnergyRow},
    },
    text::exact_joules,
};

pub(super) const FORMAT: ExportFormat = ExportFormat { name: "firefox", writer: Writer::Text(write) };

fn write(selection: &Selection<'_>, out: &mut dyn Write) -> Result<Exported> {
    let mut timeline = selection.timeline()?;
    let mut builder = Builder::new(&timeline);
    timeline.scan(|catalog, row| {
        let weights = weights(row.energy).ok_or_else(|| damaged(selection.data, row.energy))?;
        builder.take(catalog, row, weights);
        Ok(())
    })?;
    builder.name_threads(timeline.catalog());
    let beside_energy = timeline.beside_energy();
    for counted in beside_energy.chunk_by(|a, b| (a.measure, a.process) == (b.measure, b.process)) {
        builder.beside_energy(timeline.catalog(), counted);
    }
    serde_json::to_writer(&mut *out, &builder.profile).map_err(io::Error::from)?;
    writeln!(out)?;
    Ok(Exported { energy: builder.energy, origin: origin(&timeline.overview) })
}

/// Most samples that a row becomes; they hold 2 MJ.
const MOST_SAMPLES: u64 = 1000;

/// A weight is 32 bits wide: 2147 J. The rest becomes further samples. `None`: no thread needs that
/// much in one window.
fn weights(energy: MicroJoules) -> Option<impl Iterator<Item = i32>> {
    const MOST: u64 = i32::MAX.unsigned_abs() as u64;
    let samples = energy.0.div_ceil(MOST).max(1);
    let weight = move |sample: u64| energy.0.saturating_sub(sample * MOST).min(MOST);
    let weights = (0..samples).map(move |sample| i32::try_from(weight(sample)).unwrap_or(i32::MAX));
    (samples <= MOST_SAMPLES).then_some(weights)
}

fn damaged(data: &Path, energy: MicroJoules) -> ExportError {
    let problem = format!("a call path has {} J in one window, which is impossible", exact_joules(energy));
    DataSetError::Damaged { path: data.to_owned(), problem }.into()
}

struct Builder {
    profile: Profile,
    start: UnixMicros,
    energy: MicroJoules,
    categories: HashMap<FrameKind, CategoryHandle>,
    processes: HashMap<ProcessIndex, ProcessHandle>,
    threads: HashMap<ThreadIndex, ThreadState>,
    names: HashMap<FrameIndex, StringHandle>,
    stacks: HashMap<(ThreadIndex, PathIndex), Option<StackHandle>>,
}

/// How far a thread's window is filled.
struct ThreadState {
    handle: ThreadHandle,
    window: UnixMicros,
    used_ns: u64,
}

impl Builder {
    fn new(timeline: &Timeline<'_>) -> Self {
        let (start, overview) = (timeline.start(), &timeline.overview);
        let since_epoch = Duration::from_micros(u64::try_from(start.0).unwrap_or(0));
        let interval_ns = overview.duration_ns.checked_div(overview.windows).unwrap_or(0).max(1);
        let mut profile = Profile::new(
            &format!("joular-bpf: energy, 1 sample = 1 µJ, {}", origin(overview)),
            ReferenceTimestamp::from_duration_since_unix_epoch(since_epoch),
            SamplingInterval::from_nanos(interval_ns),
        );
        profile.set_symbolicated(true);
        let categories = FrameKind::ALL.map(|kind| (kind, profile.add_category(kind.name(), color(kind))));
        Self {
            profile,
            start,
            energy: MicroJoules(0),
            categories: categories.into(),
            processes: HashMap::new(),
            threads: HashMap::new(),
            names: HashMap::new(),
            stacks: HashMap::new(),
        }
    }

    fn take(&mut self, catalog: &Catalog, row: &EnergyRow, weights: impl Iterator<Item = i32>) {
        self.add_thread(catalog, row.thread);
        let Some(thread) = self.threads.get_mut(&row.thread) else { return };
        if thread.window != row.window_start {
            (thread.window, thread.used_ns) = (row.window_start, 0);
        }
        thread.used_ns = thread.used_ns.saturating_add(row.cpu_ns).min(row.window_ns);
        let into_ns = u64::try_from(row.window_start.0.saturating_sub(self.start.0)).unwrap_or(0).saturating_mul(1000);
        let time = Timestamp::from_nanos_since_reference(into_ns.saturating_add(thread.used_ns));
        let handle = thread.handle;
        let stack = self.stack(catalog, row, handle);
        let mut cpu = CpuDelta::from_nanos(row.cpu_ns);
        for weight in weights {
            self.profile.add_sample(handle, time, stack, cpu, weight);
            cpu = CpuDelta::ZERO;
        }
        self.energy = self.energy.saturating_add(row.energy);
    }

    fn since_start(&self, moment: UnixMicros) -> Timestamp {
        let micros = u64::try_from(moment.0.saturating_sub(self.start.0)).unwrap_or(0);
        Timestamp::from_nanos_since_reference(micros.saturating_mul(1000))
    }

    fn add_thread(&mut self, catalog: &Catalog, index: ThreadIndex) {
        if self.threads.contains_key(&index) {
            return;
        }
        let thread = catalog.thread(index);
        let process = catalog.process(thread.process);
        let process_handle = self.process(catalog, thread.process);
        let is_main = thread.tid.0 == process.pid.0;
        let start = self.since_start(thread.start);
        let handle = self.profile.add_thread(process_handle, thread.tid.0, start, is_main);
        self.profile.set_thread_samples_weight_type(handle, WeightType::Samples);
        self.threads.insert(index, ThreadState { handle, window: UnixMicros(i64::MIN), used_ns: 0 });
    }

    fn process(&mut self, catalog: &Catalog, index: ProcessIndex) -> ProcessHandle {
        let process = catalog.process(index);
        let start = self.since_start(process.start);
        let host = catalog.run_of(process).info.host.raw();
        let profile = &mut self.profile;
        *self.processes.entry(index).or_insert_with(|| {
            profile.add_process(&format!("{} on {host}", process.title().raw()), process.pid.0, start)
        })
    }

    /// What one process has of one measure in windows, which are in the order of time. Each counts at its window's end.
    #[allow(clippy::cast_precision_loss, reason = "a graph; exact amounts are in reports")]
    fn beside_energy(&mut self, catalog: &Catalog, windows: &[OfProcess]) {
        let Some(OfProcess { measure, process, .. }) = windows.first().copied() else { return };
        let process = self.process(catalog, process);
        // The graph of such a counter shows a rate, that of others a sum.
        let category = if measure.unit() == Unit::Bytes { "Bandwidth" } else { "Events" };
        let counter = self.profile.add_counter(process, measure.name(), category, &measure.title());
        for window in windows {
            let end = UnixMicros(window.window_start.0.saturating_add_unsigned(window.window_ns / 1000));
            self.profile.add_counter_sample(counter, self.since_start(end), window.amount as f64, 0);
        }
    }

    fn stack(&mut self, catalog: &Catalog, row: &EnergyRow, thread: ThreadHandle) -> Option<StackHandle> {
        let key = (row.thread, row.path);
        if let Some(stack) = self.stacks.get(&key) {
            return *stack;
        }
        let mut stack = None;
        for index in catalog.paths.path(row.path) {
            let frame = catalog.paths.frame(*index);
            let profile = &mut self.profile;
            let name = *self.names.entry(*index).or_insert_with(|| profile.intern_string(frame.method().raw()));
            let category = self.categories.get(&frame.kind).copied().unwrap_or(CategoryHandle::OTHER);
            let info = FrameInfo {
                frame: FirefoxFrame::Label(name),
                category_pair: category.into(),
                flags: FrameFlags::empty(),
            };
            let frame = self.profile.intern_frame(thread, info);
            stack = Some(self.profile.intern_stack(thread, stack, frame));
        }
        self.stacks.insert(key, stack);
        stack
    }

    /// Gives each thread the latest name that it had.
    fn name_threads(&mut self, catalog: &Catalog) {
        for (index, state) in &self.threads {
            self.profile.set_thread_name(state.handle, catalog.thread(*index).name.raw());
        }
    }
}

const fn color(kind: FrameKind) -> CategoryColor {
    match kind {
        FrameKind::Interpreted => CategoryColor::LightGreen,
        FrameKind::Compiled | FrameKind::CompiledC1 | FrameKind::CompiledC2 => CategoryColor::Green,
        FrameKind::Inlined => CategoryColor::LightBlue,
        FrameKind::NativeWrapper | FrameKind::Stub => CategoryColor::Purple,
        FrameKind::Vm => CategoryColor::Blue,
        FrameKind::Native => CategoryColor::Yellow,
        FrameKind::Kernel => CategoryColor::Orange,
        FrameKind::Marker => CategoryColor::Gray,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_is_split_into_weights_of_32_bits_and_not_into_thousands() {
        let most = i32::MAX.unsigned_abs().into();
        for (energy, samples) in
            [(0, 1), (1, 1), (most, 1), (most + 1, 2), (2 * most, 2), (1000 * most - 1, 1000), (1000 * most, 1000)]
        {
            let weights: Vec<i32> = weights(MicroJoules(energy)).unwrap().collect();
            assert_eq!(weights.len(), samples, "{energy}");
            assert_eq!(weights.iter().map(|weight| u64::from(weight.unsigned_abs())).sum::<u64>(), energy);
        }
        for energy in [1000 * most + 1, 1 << 62, u64::MAX] {
            assert!(weights(MicroJoules(energy)).is_none(), "{energy}");
        }
        let error = damaged(Path::new("/data"), MicroJoules(1 << 62));
        assert!(matches!(error, ExportError::Data(DataSetError::Damaged { .. })), "{error}");
    }
}

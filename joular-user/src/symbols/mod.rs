//! Names addresses of live processes.
//!
//! [`Symbolizer`] is told of a stack when it first arrives ([`arrived`]), so that it can
//! take hold of what its names need, and asked in every window for the addresses of that window. It answers
//! from what it holds and never waits for a process. The memory of a run-time system that is
//! understood ([`crate::runtimes`]) is read ([`instances`]); perf maps of others are requested in
//! the background at a bounded pace ([`perf_map`]). What is needed to name a process after its end
//! (its root, its mappings, its files) is opened when the process is first seen.
//!
//! Everything else in the program knows names only through the events made of these answers, so a
//! replay needs none of this.

pub mod allocation;
mod answers;
mod arrived;
mod builds;
pub mod demangle;
pub mod files;
mod instance_state;
pub mod instances;
pub mod kernel;
pub mod mapped_code;
pub mod native;
mod open_instance;
pub mod perf_map;
pub mod process;
pub mod questions;
#[cfg(test)]
mod runtime_tests;
#[cfg(test)]
mod tests;

use std::{
    collections::HashMap,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use builds::Builds;
use files::{FileKey, NewFile};
use instances::Pace;
use joular_data::{
    events::{ProcessInfo, Symbol},
    model::{
        frame::{Frame, FrameKind, Marker},
        units::{Address, MonotonicNs, Pid},
    },
};
use kernel::KernelSymbols;
use native::NativeSymbols;
pub use perf_map::requests::ProcessKey;
use perf_map::{
    generated_code::Source,
    generations::Answer,
    requests::{Finished, RequestError, Requests},
};
use process::{Location, Process};

use crate::{
    procs::attach::{AttachError, OWN_BINARY},
    runtimes::{RuntimeSystem, SYSTEMS, Systems},
};

#[derive(Clone, Debug)]
pub struct SymbolizerOptions {
    /// Our own program, which attaches to JVMs; `None`: no JVM is asked.
    pub attach_helper: Option<PathBuf>,
}

impl Default for SymbolizerOptions {
    fn default() -> Self {
        Self { attach_helper: Some(OWN_BINARY.into()) }
    }
}

/// Something that the user should know, said once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notice {
    pub pid: Option<Pid>,
    pub text: String,
}

/// News since the last poll.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Update {
    /// Processes whose addresses may have other names now.
    pub refreshed: Vec<ProcessKey>,
    pub notices: Vec<Notice>,
}

#[derive(Debug)]
enum Kernel {
    NotRead,
    Read(KernelSymbols),
    Unreadable,
}

/// Names addresses of live processes and of the kernel.
#[derive(Debug)]
pub struct Symbolizer {
    proc_root: PathBuf,
    options: SymbolizerOptions,
    systems: Systems,
    processes: HashMap<ProcessKey, Process>,
    builds: Builds,
    pace: Pace,
    native: NativeSymbols,
    vdso: Option<Option<FileKey>>,
    kernel: Kernel,
    requests: Requests,
    news: Update,
    window_start: MonotonicNs,
}

impl Symbolizer {
    pub fn new(proc_root: &Path, options: SymbolizerOptions) -> Self {
        Self::with_systems(proc_root, options, SYSTEMS)
    }

    /// Knows other run-time systems than [`SYSTEMS`].
    fn with_systems(proc_root: &Path, options: SymbolizerOptions, systems: Systems) -> Self {
        Self {
            proc_root: proc_root.to_owned(),
            options,
            systems,
            processes: HashMap::new(),
            builds: Builds::default(),
            pace: Pace::default(),
            native: NativeSymbols::default(),
            vdso: None,
            kernel: Kernel::NotRead,
            requests: Requests::default(),
            news: Update::default(),
            window_start: MonotonicNs(0),
        }
    }

    /// Opens what naming the process will need; called again when it has turned out to run a
    /// run-time system. A process that executes a program counts as ended and started anew.
    pub fn process_started(&mut self, info: &ProcessInfo) {
        let now = Instant::now();
        let key = (info.pid, info.start_boottime_ns);
        let fresh = Process::open(info, &self.proc_root, self.systems, now);
        match self.processes.get_mut(&key) {
            Some(known) => known.succeed_by(fresh),
            None => drop(self.processes.insert(key, fresh)),
        }
        self.try_open_instances(key, now);
        self.start_requests(now);
    }

    /// Forgets a process; must be called when its last window is complete.
    pub fn process_ended(&mut self, pid: Pid, start_boottime_ns: u64) {
        if let Some(process) = self.processes.remove(&(pid, start_boottime_ns)) {
            process.close(&mut self.native);
        }
    }

    /// Says which window the addresses belong to that will be asked for. Without it, every window
    /// counts as reaching behind every map (see [`perf_map::generations::Generations`]).
    pub fn begin_window(&mut self, start: MonotonicNs) {
        self.window_start = start;
        let now = Instant::now();
        self.native.pass_window(now);
        self.end_window_of_instances(now);
        for code in self.processes.values_mut().filter_map(|process| process.code.as_mut()) {
            code.generations.forget_before(start);
        }
    }

    /// Names addresses of a process, in their order. One that nothing can name (yet) has no frames.
    pub fn resolve(&mut self, info: &ProcessInfo, addresses: &[Address]) -> Vec<Symbol> {
        let key = (info.pid, info.start_boottime_ns);
        if !self.processes.contains_key(&key) {
            self.process_started(info);
        }
        let now = Instant::now();
        let places = self.places(key, addresses, now);
        self.try_open_instances(key, now);
        self.prepare(&places);
        let mut told = vec![None; addresses.len()];
        for open in self.processes.get_mut(&key).into_iter().flat_map(Process::open_instances) {
            open.frames(addresses, &places, &mut told);
        }
        let symbols: Vec<Symbol> = addresses
            .iter()
            .zip(&places)
            .zip(told)
            .map(|((&address, place), told)| {
                let frames = told.unwrap_or_else(|| self.frame(key, address, place).into_iter().collect());
                Symbol { address, frames }
            })
            .collect();
        if places.contains(&Location::Generated)
            && let Some(process) = self.processes.get_mut(&key)
        {
            process.expect_code(Source::File, now);
            if let Some(code) = &mut process.code {
                let unnamed =
                    |(symbol, place): &(&Symbol, &Location)| **place == Location::Generated && symbol.frames.is_empty();
                code.sampled(symbols.iter().zip(&places).filter(unnamed).map(|(symbol, _)| symbol.address));
            }
            self.start_requests(now);
        }
        symbols
    }

    fn places(&mut self, key: ProcessKey, addresses: &[Address], now: Instant) -> Vec<Location> {
        let Some(process) = self.processes.get_mut(&key) else { return vec![Location::Nowhere; addresses.len()] };
        process.freshen(addresses, now);
        addresses.iter().map(|&address| process.place(address, &mut self.native)).collect()
    }

    /// Asks for all names of a file at once.
    fn prepare(&mut self, places: &[Location]) {
        let mut offsets: HashMap<FileKey, Vec<u64>> = HashMap::new();
        for place in places {
            match *place {
                Location::File(key, offset) => offsets.entry(key).or_default().push(offset),
                Location::Vdso(offset) => {
                    if let Some(key) = self.vdso() {
                        offsets.entry(key).or_default().push(offset);
                    }
                }
                _ => {}
            }
        }
        for (key, offsets) in offsets {
            self.native.prepare(key, &offsets);
        }
    }

    fn vdso(&mut self) -> Option<FileKey> {
        let (native, proc_root) = (&mut self.native, &self.proc_root);
        *self.vdso.get_or_insert_with(|| {
            let file = native::own_vdso(proc_root).and_then(NewFile::of).ok()?;
            native.acquire(file, "[vdso]").map(|used| used.key)
        })
    }

    fn frame(&self, key: ProcessKey, address: Address, place: &Location) -> Option<Frame> {
        match place {
            Location::File(key, offset) => self.native.frame(*key, *offset),
            Location::Module(module) => Some(native::frame(module, None)),
            Location::Vdso(offset) => match self.vdso.flatten() {
                Some(key) => self.native.frame(key, *offset),
                None => Some(native::frame("[vdso]", None)),
            },
            Location::Generated => {
                let process = self.processes.get(&key)?;
                match process.code.as_ref()?.generations.answer(address, self.window_start) {
                    Answer::Name(name) => Some(perf_map_frame(process.system(), name)),
                    Answer::Stale => Some(Frame::marker(Marker::Stale)),
                    Answer::Unknown => None,
                }
            }
            Location::NotKept => Some(Frame::marker(Marker::NotKept)),
            Location::Word | Location::Nowhere => None,
        }
    }

    /// The kernel's symbols, which are read when they are first asked for; `None` if they cannot be.
    fn kernel_symbols(&mut self) -> Option<&KernelSymbols> {
        if matches!(self.kernel, Kernel::NotRead) {
            self.kernel = match KernelSymbols::read(&self.proc_root.join("kallsyms")) {
                Ok(symbols) => Kernel::Read(symbols),
                Err(error) => {
                    self.news.notices.push(Notice { pid: None, text: error.to_string() });
                    Kernel::Unreadable
                }
            };
        }
        match &self.kernel {
            Kernel::Read(symbols) => Some(symbols),
            _ => None,
        }
    }

    /// Names addresses of the kernel, in their order.
    pub fn resolve_kernel(&mut self, addresses: &[Address]) -> Vec<Symbol> {
        let symbols = self.kernel_symbols();
        let frame = |address| symbols.and_then(|symbols| symbols.lookup(address));
        addresses.iter().map(|&address| Symbol { address, frames: frame(address).into_iter().collect() }).collect()
    }

    /// Takes in finished requests and starts those that are due.
    pub fn poll(&mut self) -> Update {
        while let Some(finished) = self.requests.take_finished() {
            self.take_in(finished);
        }
        let now = Instant::now();
        self.open_instances(now);
        self.start_requests(now);
        self.news.notices.extend(self.native.take_notices());
        std::mem::take(&mut self.news)
    }

    /// Whether something is under way that only a poll goes on with: a request, or a run-time system
    /// that is starting.
    pub fn is_waiting(&self) -> bool {
        !self.requests.are_idle() || self.has_starting()
    }

    /// Removes the perf maps that JVMs wrote for us. Waits for the requests
    /// under way, for a short time.
    pub fn finish(&mut self) {
        let deadline = Instant::now() + Duration::from_secs(1);
        while let Some(finished) = self.requests.wait(deadline.saturating_duration_since(Instant::now())) {
            self.take_in(finished);
        }
        for (_, process) in self.processes.drain() {
            process.close(&mut self.native);
        }
    }

    fn start_requests(&mut self, now: Instant) {
        // A handful of processes are due at a time: the rest costs a look each.
        let mut due: Vec<_> = self
            .processes
            .iter()
            .filter(|(_, process)| !process.needs_no_map())
            .filter_map(|(&key, process)| Some((process.code.as_ref()?, key)))
            .filter(|(code, _)| code.is_due(now))
            .map(|(code, key)| (code.urgency(), key))
            .collect();
        due.sort_unstable();
        for (_, key) in due {
            self.start_request(key, false, now);
        }
    }

    fn start_request(&mut self, key: ProcessKey, force: bool, now: Instant) {
        if !self.requests.has_room() {
            return;
        }
        let Some(process) = self.processes.get_mut(&key) else { return };
        if let Some(request) = process.request(key, self.options.attach_helper.as_ref(), force, now)
            && self.requests.start(request)
            && let Some(code) = &mut process.code
        {
            code.started();
        }
    }

    fn take_in(&mut self, finished: Finished) {
        let now = Instant::now();
        let Finished { process: key, incarnation, cost, taken, result } = finished;
        // It may have ended, or run another program since.
        let process = self.processes.get_mut(&key).filter(|process| process.incarnation == incarnation);
        let Some(process) = process else { return };
        if matches!(result, Err(RequestError::Attach(AttachError::WrongUser { .. }))) {
            process.read_user();
        }
        let Some(code) = process.code.as_mut() else { return };
        let notice = match result {
            Ok(map) => {
                code.succeeded(map, taken, cost, now);
                self.news.refreshed.push(key);
                None
            }
            Err(RequestError::Attach(error)) => code
                .failed(&error, cost, now)
                .then(|| format!("{error}; its compiled methods stay {}", Marker::Unresolved.name())),
            Err(error) if error.is_absent() && code.source == Source::File => {
                code.ended(cost, now);
                None
            }
            Err(error) => {
                code.ended(cost, now);
                code.source = Source::None;
                Some(error.to_string())
            }
        };
        self.news.notices.extend(notice.map(|text| Notice { pid: Some(key.0), text }));
    }
}

/// The frame that a name from a perf map stands for.
fn perf_map_frame(system: Option<&dyn RuntimeSystem>, name: &str) -> Frame {
    system.map_or_else(|| Frame::new(FrameKind::Native, name.trim()), |system| system.perf_map_frame(name))
}

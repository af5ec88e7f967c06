//! Tests mistakes of other tools in dividing energy, each named after the tool and made impossible
//! here. Mistakes in reading energy are in `energy::regressions`.

use std::collections::BTreeMap;

use joular_ebpf::abi::{Boundary, Comm, Place as KeyPlace, SplitNs, ThreadKey, split_slice};

use super::{
    Engine,
    window_report::{Category, ThreadRow, WindowReport},
};
use crate::{
    events::{
        CpuTimes, EnergyReading, Event, ProcessInfo, RawStack, RunInfo, Runtime, SampleCount, Symbol, ThreadTime,
        Window, decode::comm_bytes,
    },
    model::{
        domain::{Domain, Label, Meter, Reading},
        frame::{Frame, FrameKind},
        policy::{Calibrated, IdlePolicy, InstrumentCosts, Policy},
        quality::StackQuality,
        units::{Address, MonotonicNs, Pid, Tid},
    },
};

const SECOND: u64 = 1_000_000_000;
const PROFILER: Pid = Pid(99);

/// What happens in a window: joules per package, who ran, and samples.
struct Scene {
    policy: Policy,
    sockets: u32,
    events: Vec<Event>,
    threads: Vec<ThreadTime>,
    samples: Vec<SampleCount>,
    unslotted_ns: u64,
}

impl Scene {
    fn new(sockets: u32) -> Self {
        let policy = Policy { idle: IdlePolicy::Spread, ..Policy::default() };
        Self { policy, sockets, events: Vec::new(), threads: Vec::new(), samples: Vec::new(), unslotted_ns: 0 }
    }

    /// A JVM that was selected.
    fn jvm(mut self, pid: u32) -> Self {
        let runtime = Runtime::UNKNOWN_JVM;
        let process = ProcessInfo { pid: Pid(pid), is_target: true, runtime, ..ProcessInfo::default() };
        self.events.push(Event::Process(Box::new(process)));
        self
    }

    fn ran(self, pid: u32, tid: u32, name: &str, cpu_ns: u64) -> Self {
        self.ran_on(0, pid, tid, name, cpu_ns)
    }

    fn ran_on(mut self, socket: u32, pid: u32, tid: u32, name: &str, cpu_ns: u64) -> Self {
        let comm: Comm = comm_bytes(name);
        let time = ThreadTime { pid: Pid(pid), tid: Tid(tid), socket, comm, cpu_ns, ..ThreadTime::default() };
        self.threads.push(time);
        self
    }

    /// Samples of a thread in a method of its own.
    fn sampled(mut self, pid: u32, tid: u32, method: u64, count: u32) -> Self {
        let address = Address(method * 0x100);
        self.events.push(Event::Stack(RawStack {
            id: method,
            is_kernel: false,
            quality: StackQuality::default(),
            frames: vec![address],
        }));
        let frames = vec![Frame::new(FrameKind::Compiled, format!("m{method}"))];
        let symbols = vec![Symbol { address, frames }];
        self.events.push(Event::Symbols { pid: Pid(pid), start_boottime_ns: 0, symbols });
        let thread_key = ThreadKey::new(tid, 0, KeyPlace::default()).0;
        let (pid, tid) = (Pid(pid), Tid(tid));
        self.samples.push(SampleCount { tid, pid, thread_key, user_stack: method, count, ..SampleCount::default() });
        for time in self.threads.iter_mut().filter(|time| time.tid == tid) {
            time.samples += count;
        }
        self
    }

    /// The report and the methods' self energies, if each package draws `joules`.
    fn report(self, joules: &[u64]) -> (WindowReport, BTreeMap<String, u64>) {
        let meter = Meter::Counter { range_uj: 0, unit_uj: 1, max_watts: 1_000 };
        let domain = |socket| Domain::new("package", Some(socket), "test", Label::Measured, meter);
        let info = RunInfo {
            domains: (0..self.sockets).map(domain).collect(),
            policy: self.policy,
            profiler_pid: PROFILER,
            sockets: self.sockets,
            ..RunInfo::default()
        };
        let reading = |second: u64| {
            let readings = joules.iter().map(|joules| Reading::CounterUj(second * joules * 1_000_000)).collect();
            Event::Energy(EnergyReading { read_at: MonotonicNs(second * SECOND), readings })
        };
        let cpu = CpuTimes { unslotted_ns: self.unslotted_ns, ..CpuTimes::default() };
        let window = Window {
            end: MonotonicNs(SECOND),
            threads: self.threads,
            samples: self.samples,
            cpus: vec![cpu],
            ..Window::default()
        };
        let mut events = vec![Event::RunStarted(Box::new(info)), reading(0)];
        events.extend(self.events);
        events.extend([reading(1), Event::Window(Box::new(window))]);
        let mut engine = Engine::default();
        let report = events.iter().filter_map(|event| engine.apply(event)).last().unwrap();
        let mut methods = BTreeMap::new();
        for row in &report.methods {
            *methods.entry(engine.table().frame(row.method).method().into_raw()).or_default() += row.own.energy.0;
        }
        (report, methods)
    }
}

fn thread(report: &WindowReport, tid: u32) -> &ThreadRow {
    report.threads.iter().find(|row| row.tid == Tid(tid)).unwrap()
}

fn joules(report: &WindowReport, tid: u32) -> f64 {
    thread(report, tid).energy.joules()
}

/// A thread that has ended by the time anyone looks has all of its time.
#[test]
fn joularjx_gives_the_last_slice_of_a_thread_that_exited_one_nanosecond() {
    let scene = Scene::new(1).jvm(1).ran(1, 10, "main", 600_000_000).ran(1, 11, "short-lived", 400_000_000);
    let (report, _) = scene.report(&[10]);
    assert_eq!((joules(&report, 10), joules(&report, 11)), (6.0, 4.0));
}

/// 530 J in one file, 223 J and 259 J in two others: here every level has it all.
#[test]
fn joularjx_has_three_energies_for_a_method_of_two_threads() {
    let scene = Scene::new(1).jvm(1).ran(1, 10, "a", 750_000_000).ran(1, 11, "b", 250_000_000);
    let (report, methods) = scene.sampled(1, 10, 5, 30).sampled(1, 11, 5, 10).report(&[20]);
    assert_eq!(methods, BTreeMap::from([("m5".to_owned(), 20_000_000)]));
    assert_eq!(report.branches.iter().map(|row| row.energy.0).sum::<u64>(), 20_000_000);
    assert_eq!(report.threads.iter().map(|row| row.energy.0).sum::<u64>(), 20_000_000);
}

#[test]
fn joularjx_spreads_garbage_collection_and_compilation_over_java_threads() {
    let scene = Scene::new(1).jvm(1).ran(1, 10, "main", 500_000_000).ran(1, 11, "GC Thread#0", 300_000_000);
    let (report, _) = scene.ran(1, 12, "C2 CompilerThre", 200_000_000).report(&[10]);
    let rows = [10, 11, 12].map(|tid| (thread(&report, tid).category, joules(&report, tid)));
    assert_eq!(rows, [(Category::Java, 5.0), (Category::Gc, 3.0), (Category::Jit, 2.0)]);
}

/// What a virtual thread does is time of its carrier.
#[test]
fn joularjx_does_not_see_virtual_threads() {
    let (report, methods) = Scene::new(1)
        .jvm(1)
        .ran(1, 10, "main", 0)
        .ran(1, 11, "ForkJoinPool-1-", 1_000_000_000)
        .sampled(1, 11, 3, 99)
        .report(&[10]);
    assert_eq!((thread(&report, 11).category, joules(&report, 11)), (Category::Java, 10.0));
    assert_eq!(methods["m3"], 10_000_000);
}

/// A method without a safepoint, over 40 % of the work, got 0 of 634 J. Samples
/// hit it wherever it is.
#[test]
fn joularjx_has_no_joule_for_a_method_without_safepoints() {
    let scene = Scene::new(1).jvm(1).ran(1, 10, "main", 1_000_000_000);
    let (_, methods) = scene.sampled(1, 10, 1, 56).sampled(1, 10, 2, 43).report(&[99]);
    assert_eq!((methods["m1"], methods["m2"]), (56_000_000, 43_000_000));
}

#[test]
fn scaphandre_has_processes_that_do_not_sum_to_the_host() {
    let scene = Scene::new(1).jvm(1).ran(1, 10, "main", 333_333_333).ran(7, 70, "other", 333_333_334);
    let (report, _) = scene.ran(PROFILER.0, 99, "joular-bpf", 1).report(&[17]);
    let audit = &report.domains[0];
    assert_eq!(audit.attributed.0 + audit.unattributed.total().0, 17_000_000);
    assert!(audit.unattributed.other_processes.0 > 0);
}

/// A thread that is never switched out is accounted at the window's boundary, to
/// the nanosecond.
#[test]
fn kepler_counts_only_at_switch_out_and_truncates_to_microseconds() {
    let split = split_slice(100, 2_000_000_999, Boundary::new(1_000_000_500, 0));
    assert_eq!(split, SplitNs { before: 1_000_000_400, after: 1_000_000_499 });
    let (report, _) = Scene::new(1).jvm(1).ran(1, 10, "a", 999).ran(1, 11, "b", 1).report(&[1]);
    assert_eq!((thread(&report, 10).energy.0, thread(&report, 11).energy.0), (999_000, 1_000));
}

#[test]
fn kepler_charges_its_own_cost_to_the_next_task() {
    let costs = InstrumentCosts { sample_ns: 0, switch_ns: 1_000_000 };
    let mut scene = Scene::new(1).jvm(1).ran(1, 10, "a", 500_000_000).ran(1, 11, "b", 500_000_000);
    scene.policy.calibration = Some(Calibrated { baselines: Vec::new(), costs });
    scene.threads[0].switches = 100;
    let (report, _) = scene.report(&[10]);
    assert_eq!((joules(&report, 10), joules(&report, 11)), (4.0, 5.0));
    assert_eq!(report.domains[0].unattributed.profiler.0, 1_000_000);
}

/// A full map takes no time away from anyone else, and gives none.
#[test]
fn kepler_loses_threads_that_a_full_map_evicts() {
    let mut scene = Scene::new(1).jvm(1).ran(1, 10, "a", 600_000_000);
    scene.unslotted_ns = 400_000_000;
    let (report, _) = scene.report(&[10]);
    assert_eq!((joules(&report, 10), report.domains[0].unattributed.unslotted.0), (6.0, 4_000_000));
}

#[test]
fn kepler_divides_all_sockets_as_one() {
    let scene = Scene::new(2).jvm(1).ran_on(0, 1, 10, "a", 1_000_000_000).ran_on(1, 1, 11, "b", 1_000_000_000);
    let (report, _) = scene.report(&[10, 70]);
    assert_eq!((joules(&report, 10), joules(&report, 11)), (10.0, 70.0));
}

/// Its end is told after the window that has its last time (`procs::registry`).
#[test]
fn kepler_redistributes_the_last_slice_of_a_process_that_exited() {
    let scene = Scene::new(1).jvm(1).jvm(2).ran(1, 10, "stays", 500_000_000).ran(2, 20, "gone", 500_000_000);
    let (report, _) = scene.report(&[10]);
    assert_eq!((joules(&report, 10), joules(&report, 20)), (5.0, 5.0));
}

/// Two tenants of half a machine each claim 1.62 times what it draws.
#[test]
fn energat_gives_two_tenants_more_than_there_is() {
    let scene = Scene::new(1).jvm(1).jvm(2).ran(1, 10, "one", 500_000_000).ran(2, 20, "two", 500_000_000);
    for smt_permille in [1_000, 1_125, 2_000] {
        let mut both = Scene::new(1).jvm(1).jvm(2);
        both.threads = scene.threads.iter().map(|time| ThreadTime { corun_ns: 500_000_000, ..time.clone() }).collect();
        both.policy.smt_permille = smt_permille;
        let (report, _) = both.report(&[11]);
        assert_eq!(joules(&report, 10) + joules(&report, 20), 11.0, "{smt_permille}");
        assert_eq!(joules(&report, 10), 5.5, "{smt_permille}");
    }
}

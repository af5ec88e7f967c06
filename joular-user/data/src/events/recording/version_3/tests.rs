use std::{fs::File, path::Path};

use super::{
    super::{
        RecordingReader,
        tests::{framed, read, small_run, with_stream_of},
    },
    *,
};

const PROFILER: Pid = Pid(1);

/// As version 3 had it: what it had no words for is left out.
fn old(event: NewEvent) -> Event {
    match event {
        NewEvent::RunStarted(run) => Event::RunStarted(Box::new(RunInfo {
            run_id: run.run_id,
            host: run.host,
            started: run.started,
            boottime_offset_ns: run.boottime_offset_ns,
            version: run.version,
            kernel: run.kernel,
            cpu_model: run.cpu_model,
            arch: run.arch,
            online_cpus: run.online_cpus,
            sockets: run.sockets,
            memory_bytes: run.memory_bytes,
            command_line: run.command_line,
            sampling_event: run.sampling_event,
            frequency_hz: run.frequency_hz,
            interval_ns: run.interval_ns,
            energy_source: run.energy_source,
            energy_reason: run.energy_reason,
            domains: run.domains.into_iter().map(old_domain).collect(),
            policy: run.policy,
            profiler_pid: run.profiler_pid,
        })),
        NewEvent::Process(process) => Event::Process(Box::new(old_process(*process))),
        NewEvent::ProcessEnded { pid, start_boottime_ns } => Event::ProcessEnded { pid, start_boottime_ns },
        NewEvent::Stack(stack) => Event::Stack(stack),
        NewEvent::Symbols { pid, start_boottime_ns, symbols } => Event::Symbols { pid, start_boottime_ns, symbols },
        NewEvent::StacksForgotten(ids) => Event::StacksForgotten(ids),
        NewEvent::Energy(reading) => Event::Energy(reading),
        NewEvent::Window(window) => Event::Window(Box::new(Window {
            index: window.index,
            start: window.start,
            end: window.end,
            wall_start: window.wall_start,
            threads: window.threads,
            samples: window.samples.into_iter().map(old_sample).collect(),
            cpus: window.cpus,
            losses: window.losses,
        })),
        NewEvent::RunEnded(end) => Event::RunEnded(end),
        NewEvent::Context(_)
        | NewEvent::Mark(_)
        | NewEvent::Counters(_)
        | NewEvent::Allocations(_)
        | NewEvent::Collections(_)
        | NewEvent::Io(_)
        | NewEvent::AllocationsUnsampled { .. } => {
            panic!("version 3 has none")
        }
    }
}

fn old_domain(of: NewDomain) -> Domain {
    let NewDomain { name, socket, core, source, label, meter, role, less, divided_by: _ } = of;
    Domain { name, socket, core, source, label, meter, role, less }
}

fn old_process(of: NewProcessInfo) -> ProcessInfo {
    ProcessInfo {
        pid: of.pid,
        start_boottime_ns: of.start_boottime_ns,
        parent: of.parent,
        comm: of.comm,
        command_line: of.command_line,
        executable: of.executable,
        uid: of.uid,
        gid: of.gid,
        namespace_pid: of.namespace_pid,
        cgroup: of.cgroup,
        container: of.container,
        pod: of.pod,
        runtime: of.runtime,
        is_target: of.is_target,
    }
}

fn old_sample(of: NewSampleCount) -> SampleCount {
    let NewSampleCount { kind: _, tid, pid, thread_key, user_stack, kernel_stack, count } = of;
    SampleCount { tid, pid, thread_key, user_stack, kernel_stack, count }
}

/// A recording of version 3.
fn recorded(events: Vec<NewEvent>) -> Vec<u8> {
    let stream = events.into_iter().map(|event| framed(&postcard::to_stdvec(&old(event)).unwrap()));
    with_stream_of(3, &stream.collect::<Vec<_>>().concat())
}

#[test]
fn an_old_recording_is_read_as_the_events_of_today() {
    let (events, error) = read(&recorded(small_run()));
    assert!(error.is_none(), "{error:?}");
    assert_eq!(events, small_run());
}

#[test]
fn children_of_the_profiler_that_were_no_targets_were_its_helpers() {
    let process = |parent: u32, is_target| {
        let info = NewProcessInfo { parent: Pid(parent), is_target, ..NewProcessInfo::default() };
        NewEvent::Process(Box::new(info))
    };
    let start = small_run().swap_remove(0);
    let events = vec![start, process(PROFILER.0, false), process(PROFILER.0, true), process(7, false)];
    let helpers = read(&recorded(events)).0.into_iter().filter_map(|event| match event {
        NewEvent::Process(process) => Some(process.is_helper),
        _ => None,
    });
    assert_eq!(helpers.collect::<Vec<_>>(), [true, false, false]);
}

/// The one that is kept in the repository.
#[test]
fn the_committed_recording_is_read_to_its_end() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures/recordings/two_jvms.jrec");
    let events: Vec<NewEvent> =
        RecordingReader::new(File::open(path).unwrap()).unwrap().collect::<Result<_, _>>().unwrap();
    let windows = || {
        events.iter().filter_map(|event| match event {
            NewEvent::Window(window) => Some(window),
            _ => None,
        })
    };
    assert!(matches!(events.last(), Some(NewEvent::RunEnded(_))));
    assert_eq!(windows().count(), 8);
    let samples: u64 = windows().flat_map(|window| &window.samples).map(|sample| u64::from(sample.count)).sum();
    assert!(samples > 500, "{samples}");
    assert!(windows().flat_map(|window| &window.samples).all(|sample| sample.kind == SampleKind::CpuTime));
}

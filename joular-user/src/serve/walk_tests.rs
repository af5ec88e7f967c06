//! Walks over all paths as somebody who may see one service, and looks for the names of another one in every answer.

mod calls_tests;

use std::{
    collections::BTreeSet,
    io::{Read as _, Write as _},
    net::{SocketAddr, TcpStream},
    path::Path,
    sync::Arc,
};

use flate2::read::GzDecoder;
use joular_data::{
    dataset::{DEFAULT_FLUSH_NS, OutputDirectory, ParquetOutput},
    events::{Mark, MarkFrom, MarkKind, ProcessInfo, RunInfo, Runtime, Service, ServiceFrom, Workload},
    fixture::{self, SMALL},
    model::{
        frame::{Frame, FrameKind},
        quality::{PathQuality, StackQuality, Unwinder, WalkEnd},
        units::MonotonicNs,
    },
    output::Output as _,
    report::ranking::By,
    stacks::StackTable,
};
use serde_json::Value;
use tempfile::TempDir;

use super::{
    desk::Desk,
    limits,
    routes::{ROUTES, Route},
    setting,
};
use crate::{
    cli::{self, Command},
    config,
    output::{Server, http::Running},
};

/// Stands in every name of what may not be seen.
const SECRET: &str = "payroll";

const RULES: &str = "[[access]]\nusers = [\"ann\"]\nservices = [\"shop\"]\n\
                     [[access]]\ngroup = \"sre\"\neverything = true\n";

fn process(index: u32, is_secret: bool) -> ProcessInfo {
    let name = if is_secret { SECRET } else { "shop" };
    let runtime = Runtime::Jvm {
        version: Some("21.0.2".into()),
        main_class: Some(format!("com.{name}.Main").into()),
        collector: Some("G1".into()),
        debug_non_safepoints: None,
        unwinding: None,
    };
    let labels = vec![format!("app={name}").into(), format!("{name}-team=1").into()];
    let namespace = format!("{name}-ns").into();
    let workload = Workload { namespace, pod: format!("{name}-0").into(), labels, ..Workload::default() };
    ProcessInfo {
        comm: format!("{name}-java").into(),
        command_line: vec!["java".into(), format!("com.{name}.Main").into()],
        cgroup: Some(format!("/system.slice/{name}.service").into()),
        unit: Some(format!("{name}.service").into()),
        container: Some(format!("{name}-container").into()),
        pod: Some(format!("{name}-uid").into()),
        workload: Some(Box::new(workload)),
        service: Some(Service {
            name: name.into(),
            version: Some(format!("{name}-1").into()),
            from: ServiceFrom::Unit,
        }),
        runtime,
        ..fixture::process(index)
    }
}

fn mark(kind: MarkKind) -> Mark {
    Mark {
        at: MonotonicNs(100 * fixture::SECOND),
        kind,
        name: Some(format!("{SECRET}-{}", if kind.is_edge() { "phase" } else { "event" }).into()),
        attributes: Some(format!("of={SECRET}").into()),
        pid: None,
        from: MarkFrom::Socket,
    }
}

/// A run of two processes, of which those from `secret_from` on may not be seen.
fn record(data: &Path, host: &str, secret_from: u32) {
    let directory = OutputDirectory::create(data, None).unwrap();
    let mut output = ParquetOutput::new(directory, DEFAULT_FLUSH_NS);
    let mut stacks = StackTable::default();
    let command_line = vec!["joular-bpf".to_owned(), "run".to_owned(), SECRET.to_owned()];
    let run_id = format!("{host}-20260301T235930-4711");
    output.run_started(&RunInfo { host: host.into(), run_id, command_line, ..fixture::run() }).unwrap();
    let processes: Vec<ProcessInfo> = (0..SMALL.processes).map(|index| process(index, index >= secret_from)).collect();
    processes.iter().for_each(|process| output.process(process));
    let quality = PathQuality::Walked(StackQuality { unwinder: Unwinder::Tables, end: WalkEnd::Root });
    let class = Some(format!("com.{SECRET}.ledger.Ledger").into());
    let secret = stacks.frame_id(Frame { class, ..Frame::new(FrameKind::CompiledC2, format!("{SECRET}Sum")) });
    let secret = stacks.branch_index(&[secret], quality);
    for index in 0..10 {
        let mut report = fixture::window(SMALL, &mut stacks, index);
        for (process, known) in report.processes.iter_mut().zip(&processes) {
            process.comm = known.comm.clone();
        }
        for thread in report.threads.iter_mut().filter(|thread| thread.process >= secret_from as usize) {
            thread.name = format!("{SECRET}-{}", thread.tid.0).into();
        }
        let threads = &report.threads;
        let hidden = |thread: usize| threads[thread].process >= secret_from as usize;
        report.branches.iter_mut().filter(|row| hidden(row.thread)).for_each(|row| row.branch = secret);
        report.marks = match index {
            1 => vec![mark(MarkKind::Begin), mark(MarkKind::Event)],
            5 => vec![mark(MarkKind::End)],
            _ => Vec::new(),
        };
        output.window(&report, &stacks).unwrap();
    }
    output.run_ended(&fixture::end()).unwrap();
}

struct Served {
    data: TempDir,
    address: SocketAddr,
    _running: Running,
}

impl Served {
    /// A host with the service that may be seen and another one, and a host with that other one only.
    fn new() -> Self {
        let data = tempfile::tempdir().unwrap();
        record(data.path(), "node-1", 1);
        record(data.path(), &format!("{SECRET}-host"), 0);
        let rules = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(rules.path(), RULES).unwrap();
        let [place, rules] = [data.path(), rules.path()].map(|path| path.to_str().unwrap().to_owned());
        let line = format!(
            "serve {place} --listen 127.0.0.1:0 --access {rules} --trust-header X-User --groups-header X-Groups \
             --trust-from 127.0.0.1 --requests 8"
        );
        let arguments = ["joular-bpf"].into_iter().chain(line.split_whitespace());
        let Some(Command::Serve(flags)) = cli::parse(arguments.map(Into::into)).unwrap().command else { panic!() };
        let serving = config::serving(&flags).unwrap();
        let server = Server::bind(serving.address, None, None).unwrap();
        let address = server.address().unwrap();
        let desk = Desk::new(setting(&serving, address.ip(), Vec::new()));
        let running = server.start("serve", limits(serving.timeout), Arc::new(desk)).unwrap();
        Self { data, address, _running: running }
    }

    /// Status and body, as text.
    fn get(&self, path: &str, who: &str) -> (u16, String) {
        self.ask(format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n{who}\r\n\r\n").as_bytes())
    }

    fn ask(&self, request: &[u8]) -> (u16, String) {
        let mut stream = TcpStream::connect(self.address).unwrap();
        stream.write_all(request).unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).unwrap();
        let at = answer.windows(4).position(|end| end == b"\r\n\r\n").unwrap();
        let head = String::from_utf8(answer[..at].to_owned()).unwrap();
        let body = &answer[at + 4..];
        let mut unpacked = Vec::new();
        if body.starts_with(&[0x1f, 0x8b]) {
            GzDecoder::new(body).read_to_end(&mut unpacked).unwrap();
        } else {
            unpacked.extend(body);
        }
        (head[9..12].parse().unwrap(), String::from_utf8_lossy(&unpacked).to_lowercase())
    }

    fn energy(&self, path: &str, who: &str) -> u64 {
        let (status, body) = self.get(path, who);
        assert_eq!(status, 200, "{path}: {body}");
        let found: Value = serde_json::from_str(&body).unwrap();
        found["selection"]["energy_uj"].as_u64().unwrap()
    }
}

const ANN: &str = "X-User: ann";
const SRE: &str = "X-User: bob\r\nX-Groups: sre";
/// No rule names this one.
const CID: &str = "X-User: cid";

/// Questions about a path. None of them has a secret name, because answers repeat what was asked.
fn questions(route: &Route) -> Vec<String> {
    let parameters = route.parameters.concat();
    let has = |name: &str| parameters.iter().any(|parameter| parameter.name == name);
    let mut queries = vec![String::new()];
    let mut ask = |texts: &[&str]| queries.extend(texts.iter().map(|text| format!("?{text}")));
    if has("service") {
        ask(&["service=pay*", "process=*", "service=moon"]);
    }
    let names = if route.template.ends_with("/values") {
        let known = ["service", "version", "host", "process", "pod", "namespace", "method", "thread", "category"];
        known.into_iter().chain(["label%3Aapp", "label%3Ashop-team"]).collect()
    } else {
        if has("service") {
            ask(&["host=pay*", "namespace=pay*", "thread=pay*", "method=*Ledger*", "label=app%3Dpay*", "run=pay*"]);
            ask(&["run=last", "pod=pay*", "version=pay*", "app=com.pay*", "until=2026-03-01T23:59:33Z"]);
        }
        vec!["shop"]
    };
    if route.has_sides {
        ask(&["left.service=sh*&right.service=pay*", "left.host=node-1&right.host=pay*"]);
    }
    if has("by") {
        let rows = By::ALL.map(By::name).into_iter().chain(["version", "label:app"]);
        queries.extend(rows.map(|by| format!("?by={by}")));
    }
    let of_name = |name: &&str| {
        let path = route.template.replace("{name}", name);
        queries.iter().map(|query| format!("{path}{query}")).collect::<Vec<_>>()
    };
    names.iter().flat_map(of_name).collect()
}

#[test]
fn no_answer_has_a_name_of_what_may_not_be_seen() {
    let served = Served::new();
    let mut with_secrets = BTreeSet::new();
    for route in ROUTES {
        for question in questions(route) {
            // Whoever may see all asks first, so what is kept is there to be mistaken for an answer.
            let (status, all) = served.get(&question, SRE);
            assert!([200, 400, 404].contains(&status), "{question}: {status} {all}");
            if all.contains(SECRET) {
                with_secrets.insert(route.template);
            }
            let (status, part) = served.get(&question, ANN);
            assert!([200, 400, 403, 404].contains(&status), "{question}: {status} {part}");
            let around = part.find(SECRET).map(|at| part.get(at.saturating_sub(200)..at + 50).unwrap_or_default());
            assert_eq!(around, None, "{question}");
            let (status, nothing) = served.get(&question, CID);
            assert!([400, 403].contains(&status) && !nothing.contains(SECRET), "{question}: {status} {nothing}");
        }
    }
    // What is looked for is there to be found.
    for template in ["/", "/part", "/compare", "/report.html", "/api/v1/labels", "/api/v1/labels/{name}/values"] {
        assert!(with_secrets.contains(template), "{template}: {with_secrets:?}");
    }
    for path in ["top", "series", "flame", "diff", "runs", "pprof"].map(|name| format!("/api/v1/{name}")) {
        assert!(with_secrets.contains(path.as_str()), "{path}: {with_secrets:?}");
    }
    // Those that need no data set.
    for path in ["/metrics", "/openapi.json", "/livez", "/readyz", "/moon"] {
        assert!(!served.get(path, ANN).1.contains(SECRET), "{path}");
    }
}

#[test]
fn what_may_be_seen_is_seen_whole() {
    let served = Served::new();
    let all = served.energy("/api/v1/top", SRE);
    let shop = served.energy("/api/v1/top?service=shop", SRE);
    assert!(shop > 0 && shop < all);
    for path in ["/api/v1/top", "/api/v1/top?service=*", "/api/v1/top?service=shop", "/api/v1/top?host=node-1"] {
        assert_eq!(served.energy(path, ANN), shop, "{path}");
    }
    for path in ["/api/v1/top?service=pay*", "/api/v1/top?host=pay*", "/api/v1/top?method=*Ledger*"] {
        assert_eq!(served.energy(path, ANN), 0, "{path}");
        assert!(served.energy(path, SRE) > 0, "{path}");
    }
    // A name that is known is of no use.
    let (status, page) = served.get(&format!("/service/{SECRET}"), ANN);
    assert!(status == 200 && page.contains("nothing was recorded in this selection"), "{page}");
    for path in ["/api/v1/runs", "/api/v1/audit"] {
        assert_eq!((served.get(path, ANN).0, served.get(path, SRE).0), (403, 200), "{path}");
    }
    assert_eq!(served.get("/api/v1/top", "X-Groups: sre").0, 401);
}

#[test]
fn a_failure_names_no_file_of_others() {
    let served = Served::new();
    let host = served.data.path().join("branches");
    let mut folders = vec![host];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap().flatten() {
            match entry.file_type().unwrap().is_dir() {
                true => folders.push(entry.path()),
                false => std::fs::write(entry.path(), "not Parquet").unwrap(),
            }
        }
    }
    let (status, all) = served.get("/api/v1/top?host=node-1", SRE);
    assert!(status == 500 && all.contains("branches"), "{status} {all}");
    let (status, part) = served.get("/api/v1/top?host=node-1", ANN);
    assert!(status == 500 && part.contains("those who may see all of it") && !part.contains("host="), "{part}");
}

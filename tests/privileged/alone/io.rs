//! Tests `--io`: bytes of sockets, files and devices are those that programs moved, by thread exactly and by method as far
//! as samples can tell; each way by which bytes go is counted once.

use std::{
    collections::BTreeMap,
    fs::{self, File},
    io::{IoSlice, IoSliceMut, Read as _, Seek as _, SeekFrom, Write as _},
    net::{TcpListener, TcpStream, UdpSocket},
    os::unix::{fs::FileExt as _, net::UnixStream},
    path::Path,
    thread,
    time::Duration,
};

use anyhow::{Context as _, Result, ensure};
use joular_tests::{
    chance::repeat_once,
    clock::wait_for,
    dataset::DataSet,
    java::{self, Jdk, Jvm, Workload},
    notes, paths,
    profiler::{Output, Run},
    servers::{Program, Site},
    truths::io::{self, METHODS, recorded},
};
use rustix::{fs::Advice, pipe::SpliceFlags};
use serde_json::Value;

use crate::readings;

/// What the program is told.
const COMMANDS: [&str; 2] = ["write", "read"];
const LIMIT: Duration = Duration::from_secs(60);
/// Requests to a web server.
const REQUESTS: u32 = 20_000;
/// Costs of bytes that are easily told apart, and 1 W always.
const DISK: &str = "--disk=idle-watts=1,read-uj=0,write-uj=0,byte-read-nj=3000,byte-written-nj=7000";
/// Cards that draw nothing when idle: nothing leaves the host.
const NIC: &str = "--nic=idle-watts=0,sent-nj=2,received-nj=2";
const READ_NJ: u64 = 3_000;
const WRITTEN_NJ: u64 = 7_000;

fn recording(output: &Output, pid: u32) -> Run {
    Run::modelled().with("--interval", "500ms").argument("--json").argument("--io").output(output.dir()).pid(pid)
}

/// What the kernel says of a thread: bytes that it read in any way, and bytes that devices read and wrote for it.
fn counted(pid: u32, tid: u64) -> Result<[u64; 3]> {
    let text = fs::read_to_string(format!("/proc/{pid}/task/{tid}/io"))?;
    let field = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "));
        line.with_context(|| format!("{name} in {text}"))?.parse::<u64>().context("a number")
    };
    Ok([field("rchar")?, field("read_bytes")?, field("write_bytes")?])
}

/// The thread of a process that has this name.
fn thread_of(pid: u32, name: &str) -> Result<u64> {
    for entry in fs::read_dir(format!("/proc/{pid}/task"))? {
        let path = entry?.path();
        if fs::read_to_string(path.join("comm"))?.trim() == name {
            return path.file_name().and_then(|name| name.to_str()?.parse().ok()).context("a number");
        }
    }
    anyhow::bail!("process {pid} has no thread {name}")
}

/// Lets a program do something, and returns what it says of that.
fn told(jvm: &mut Jvm, what: &str) -> Result<BTreeMap<String, u64>> {
    let before = jvm.records().len();
    jvm.say(what)?;
    let said = wait_for("a program to move bytes", LIMIT, || Ok(jvm.records().get(before).cloned()))?;
    serde_json::from_value(said).context("what the program says")
}

/// Compares one program's account, and the kernel's of its devices, with what was recorded.
fn check(data: &DataSet, pid: u32, told: &BTreeMap<String, u64>, devices: [u64; 2], of: &str) -> Result<()> {
    let mover = recorded(data, pid, "mover")?;
    let expected = [
        ("sent", 0),
        ("received", 0),
        ("local_sent", told["sent"]),
        ("local_received", 0),
        ("read", told["read"]),
        ("written", told["written"]),
        ("device_read", devices[0]),
        ("device_written", devices[1]),
    ];
    let expected: BTreeMap<String, u64> = expected.map(|(name, bytes)| (name.to_owned(), bytes)).into();
    ensure!(mover == expected, "{of}: the mover moved {mover:?}, the program and the kernel say {expected:?}");
    let peer = recorded(data, pid, "peer")?;
    let only_received = peer.iter().all(|(name, bytes)| match name.as_str() {
        "local_received" => *bytes == told["sent"],
        // The JVM may still load a class on it.
        "read" | "device_read" => *bytes < 1 << 20,
        _ => *bytes == 0,
    });
    ensure!(only_received, "{of}: the peer moved {peer:?}, the program says {} received", told["sent"]);
    io::check_methods(data, pid, told, of)
}

#[test]
fn bytes_are_the_programs_and_the_devices_the_kernels_across_jdks() -> Result<()> {
    Jdk::tried()?.into_iter().try_for_each(|jdk| repeat_once(|_| expect_the_programs(jdk)))
}

fn expect_the_programs(jdk: &Jdk) -> Result<()> {
    // On a disk: a temporary directory may be in memory.
    let directory = tempfile::tempdir_in(paths::target())?;
    let path = directory.path().join("bytes");
    let methods = METHODS.iter().map(|(method, _)| format!("Io.{method}"));
    let workload = Workload::new("Io").jdk(jdk).argument(path.to_str().context("a path")?);
    let mut jvm = methods.fold(workload, |workload, method| workload.dont_inline(&method)).start()?;
    // All code is there before anybody looks: classes come from files, too.
    for what in COMMANDS {
        told(&mut jvm, what)?;
    }
    let mover = thread_of(jvm.pid(), "mover")?;
    let output = Output::new()?;
    let mut profiler = recording(&output, jvm.pid()).argument(NIC).argument(DISK).start()?;
    profiler.wait_window()?;
    let before = counted(jvm.pid(), mover)?;
    let mut all = told(&mut jvm, "write")?;
    // What is read now comes from the disk.
    rustix::fs::fadvise(File::open(&path)?, 0, None, Advice::DontNeed)?;
    for (name, bytes) in told(&mut jvm, "read")? {
        *all.entry(name).or_default() += bytes;
    }
    let after = counted(jvm.pid(), mover)?;
    let [read, device_read, device_written] = [0, 1, 2].map(|index| after[index] - before[index]);
    ensure!(device_read > 0 && device_written > 0, "no device was needed: {device_read}, {device_written}");
    // The JVM may still load a class, which nobody but the kernel knows. Commands do not come from a file.
    let read = read - COMMANDS.iter().map(|command| command.len() as u64 + 1).sum::<u64>();
    ensure!((all["read"]..all["read"] + (1 << 20)).contains(&read), "{read}, the program says {}", all["read"]);
    all.insert("read".to_owned(), read);
    (0..2).try_for_each(|_| profiler.wait_window().map(drop))?;
    profiler.stop()?;
    check(&output.data, jvm.pid(), &all, [device_read, device_written], &jdk.to_string())?;
    check_energy(&output.data, jvm.pid(), [device_read, device_written], &jdk.to_string())?;
    losses(&output.data)
}

/// Compares what the disk is said to have used for the mover with what its bytes cost.
fn check_energy(data: &DataSet, pid: u32, [read, written]: [u64; 2], of: &str) -> Result<()> {
    let figure = |sql: &str| {
        let rows = data.rows(sql)?;
        rows.first().and_then(|row: &Value| row["figure"].as_f64()).with_context(|| format!("{of}: {sql}"))
    };
    let thread = format!("pid = {pid} AND thread_name = 'mover'");
    let windows = figure("SELECT count(DISTINCT window_start)::DOUBLE AS figure FROM windows")?;
    let expected_uj = (read * READ_NJ + written * WRITTEN_NJ) as f64 / 1_000.0;
    for table in ["threads", "branches"] {
        let found_uj = figure(&format!("SELECT sum(by_bytes_uj)::DOUBLE AS figure FROM {table} WHERE {thread}"))?;
        notes::figure(&format!(
            "{of}: the disk used {found_uj} µJ for the mover by {table}, its bytes cost {expected_uj}"
        ));
        // A window is off by less than a microjoule.
        ensure!((found_uj - expected_uj).abs() <= windows, "{of}: {table} have {found_uj} µJ, not {expected_uj}");
    }
    // Paths have it as they have the bytes.
    let costs = format!("{READ_NJ} * device_read_bytes + {WRITTEN_NJ} * device_written_bytes");
    data.expect_none(
        "paths whose energy is not that of their bytes",
        &format!(
            "SELECT * FROM (SELECT window_start, stack_id, sum({costs}) / 1000 AS cost_uj FROM io WHERE {thread} GROUP BY ALL)
             FULL JOIN (SELECT window_start, stack_id, sum(by_bytes_uj) AS by_bytes_uj FROM branches WHERE {thread} GROUP BY ALL)
             USING (window_start, stack_id)
             WHERE abs(coalesce(cost_uj, 0) - coalesce(by_bytes_uj, 0)) > 2"
        ),
    )?;
    data.expect_none(
        "windows in which a domain is not what its model says",
        "SELECT * FROM windows WHERE domain = 'disk' AND abs(static_uj - window_ns / 1000) > 1
           OR domain = 'network' AND (static_uj > 0 OR label <> 'modelled')",
    )?;
    readings::expect_audited(data)
}

/// Nothing was lost of what is counted. A server's names and code may be cut at a bound.
fn losses(data: &DataSet) -> Result<()> {
    data.expect_none(
        "losses",
        "SELECT lost_io_map_full, lost_nested_io, lost_device_map_full FROM windows
         WHERE lost_io_map_full + lost_device_map_full > 0",
    )
}

/// Moves bytes in each way that is counted, and in some that are not, and returns what that comes to.
fn move_in_each_way(path: &Path) -> Result<BTreeMap<String, u64>> {
    let (mut socket, mut read, mut written) = (0, 0, 0);
    for host in ["127.0.0.1:0", "[::1]:0"] {
        let listener = TcpListener::bind(host)?;
        let mut sender = TcpStream::connect(listener.local_addr()?)?;
        let (mut receiver, _) = listener.accept()?;
        sender.write_all(&[7; 1_001])?;
        let gathered = sender.write_vectored(&[IoSlice::new(&[7; 100]), IoSlice::new(&[7; 23])])?;
        ensure!(gathered == 123);
        let mut buffer = [0; 1_124];
        // What is only looked at is received once all the same.
        wait_for("what was sent", LIMIT, || Ok((receiver.peek(&mut buffer)? == buffer.len()).then_some(())))?;
        receiver.read_exact(&mut buffer)?;
        let [first, second] = [UdpSocket::bind(host)?, UdpSocket::bind(host)?];
        first.connect(second.local_addr()?)?;
        second.connect(first.local_addr()?)?;
        first.send(&[7; 501])?;
        second.peek(&mut buffer)?;
        second.recv(&mut buffer)?;
        socket += 1_124 + 501;
        let [mut one, mut other] = <[UnixStream; 2]>::from(UnixStream::pair()?);
        one.write_all(&[7; 77])?;
        other.read_exact(&mut buffer[..77])?;
    }
    let file = File::options().create(true).read(true).write(true).truncate(true).open(path)?;
    (&file).write_all(&[7; 5_003])?;
    file.write_all_at(&[7; 207], 5_003)?;
    written += rustix::io::pwritev(&file, &[IoSlice::new(&[7; 11]), IoSlice::new(&[7; 12])], 5_210)? as u64 + 5_210;
    let mut buffer = [0; 900];
    (&file).seek(SeekFrom::Start(0))?;
    (&file).read_exact(&mut buffer)?;
    file.read_exact_at(&mut buffer[..333], 8)?;
    read += rustix::io::preadv(&file, &mut [IoSliceMut::new(&mut buffer[..99])], 0)? as u64 + 1_233;
    // What the kernel moves alone is read and written.
    let copy = File::options().create(true).write(true).truncate(true).open(path.with_extension("copy"))?;
    let copied = rustix::fs::copy_file_range(&file, Some(&mut 0), &copy, None, 4_001)? as u64;
    let sent = rustix::fs::sendfile(&copy, &file, Some(&mut 0), 1_009)? as u64;
    let (from_pipe, to_pipe) = std::io::pipe()?;
    let piped = rustix::pipe::splice(&file, Some(&mut 0), &to_pipe, None, 703, SpliceFlags::empty())? as u64;
    let unpiped = rustix::pipe::splice(&from_pipe, None, &copy, None, 703, SpliceFlags::empty())? as u64;
    read += copied + sent + piped;
    written += copied + sent + unpiped;
    let told = [
        ("sent", 0),
        ("received", 0),
        ("local_sent", socket),
        ("local_received", socket),
        ("read", read),
        ("written", written),
    ];
    Ok(told.map(|(name, bytes)| (name.to_owned(), bytes)).into())
}

#[test]
fn each_way_by_which_bytes_go_is_counted_once() -> Result<()> {
    const NAME: &str = "moves-bytes";
    let directory = tempfile::tempdir_in(paths::target())?;
    let path = directory.path().join("bytes");
    let output = Output::new()?;
    let mut profiler = recording(&output, std::process::id()).start()?;
    profiler.wait_window()?;
    let mover = thread::Builder::new().name(NAME.to_owned()).spawn(move || move_in_each_way(&path))?;
    let expected = mover.join().ok().context("the thread ends")??;
    (0..2).try_for_each(|_| profiler.wait_window().map(drop))?;
    profiler.stop()?;
    let mut found = recorded(&output.data, std::process::id(), NAME)?;
    found.retain(|name, _| !name.starts_with("device"));
    ensure!(found == expected, "{found:?}, not {expected:?}");
    losses(&output.data)
}

/// The client counts what it received, and asks the same each time.
#[test]
fn a_web_server_sent_what_its_client_received() -> Result<()> {
    if !Program::Tomcat.is_installed() {
        notes::skipped("Tomcat or ab is not installed (`cargo xtask setup` does it on Debian)");
        return Ok(());
    }
    let site = Site::start(&java::tool("java"), &[])?;
    // The page's code is there before anybody looks.
    site.ask("", 1_000)?;
    let output = Output::new()?;
    let mut profiler = recording(&output, site.pid).start()?;
    (0..2).try_for_each(|_| profiler.wait_window().map(drop))?;
    let answers = site.ask("", REQUESTS)?;
    (0..2).try_for_each(|_| profiler.wait_window().map(drop))?;
    profiler.stop()?;
    let rows = output.data.rows(&format!(
        "SELECT sum(local_sent_bytes)::BIGINT AS sent, sum(local_received_bytes)::BIGINT AS received,
           sum(sent_bytes + received_bytes)::BIGINT AS others,
           sum(local_sent_bytes) FILTER (len(list_filter(s.frames, frame -> frame.class LIKE 'org.apache.%')) > 0)::DOUBLE
             / sum(local_sent_bytes) FILTER (s.walk_end <> 'no-sample') AS by_tomcat,
           sum(local_sent_bytes) FILTER (s.walk_end <> 'no-sample')::DOUBLE / sum(local_sent_bytes) AS sampled
         FROM io JOIN (SELECT DISTINCT ON (stack_id) stack_id, frames, walk_end FROM stacks) s USING (stack_id)
         WHERE pid = {}",
        site.pid
    ))?;
    let row = rows.first().context("a row")?;
    let requests = row["received"].as_u64().context("received")?;
    ensure!(row["sent"] == answers && row["others"] == 0, "the client received {answers}: {row}");
    ensure!(requests > 0 && requests.is_multiple_of(REQUESTS.into()), "{REQUESTS} requests: {row}");
    let by_tomcat = row["by_tomcat"].as_f64().context("by_tomcat")?;
    // The slower the machine, the less each thread sends in a window, and the more of them have no sample.
    let sampled = row["sampled"].as_f64().context("sampled")?;
    notes::figure(&format!(
        "Tomcat under ab: {answers} bytes sent, {sampled:.4} of them in threads with a sample, of these {by_tomcat:.4} on \
         paths of Tomcat's code"
    ));
    ensure!(by_tomcat > 0.99 && sampled > 0.5, "{row}");
    losses(&output.data)
}

#[test]
fn without_the_flag_nothing_is_counted() -> Result<()> {
    let output = Output::new()?;
    let mut profiler = Run::modelled().argument("--json").output(output.dir()).pid(std::process::id()).start()?;
    profiler.wait_window()?;
    profiler.stop()?;
    ensure!(!Path::new(output.dir()).join("io").exists());
    Ok(())
}

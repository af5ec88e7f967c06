//! Faults of what an agent brings to other places.

use std::{
    fs,
    io::{Read as _, Write as _},
    net::{TcpListener, TcpStream},
    path::{Path, PathBuf},
    process::Command,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::{self, JoinHandle},
    time::Duration,
};

use anyhow::{Context as _, Result, ensure};
use joular_tests::{
    clock::wait_for,
    dataset::{DataSet, share},
    paths,
    process::Running,
    profiler::END,
    prometheus::{answer, free_port},
};

use super::site::{Agent, LIMIT, MODEL, Site};

/// A recording of an earlier day, which still has to be shipped.
const EARLIER: &str = "tests/fixtures/recordings/two_jvms.jrec";
const SHARE: &str = ".joular-bpf-share";
const ANSWER: &str = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
/// No client of ours is silent for longer.
const SILENT: Duration = Duration::from_secs(10);

fn ship_to(place: &Path) -> String {
    format!("{MODEL}ship = {place:?}\n")
}

/// A run that is there before the agent starts.
fn record_earlier(data: &Path) -> Result<()> {
    let mut command = Command::new(paths::joular_bpf());
    command.arg("--quiet").arg("--replay").arg(paths::root().join(EARLIER)).arg("--output").arg(data);
    let replayed = Running::spawn("joular-bpf --replay", &mut command)?.finish(END)?;
    ensure!(replayed.code() == Some(0), "{replayed:?}");
    Ok(())
}

/// The share has no mark, as if it were not mounted, and a run of an earlier day waits.
pub fn away(site: &Site) -> Result<()> {
    let mut agent = Agent::new(site, "away", None)?;
    record_earlier(&agent.data)?;
    let place = agent.folder.path().join("place");
    fs::create_dir(&place)?;
    agent.start(&ship_to(&place))?;
    agent.fires(&["JoularShippingBehind"], &[])?;
    share(&place)?;
    agent.resolves(&["JoularShippingBehind", "JoularShippingFails"])?;
    agent.end()
}

/// The share loses its mark after it was used. What waits then may get old before the agent tries again.
pub fn lost(site: &Site) -> Result<()> {
    let mut agent = Agent::new(site, "lost", None)?;
    let place = agent.folder.path().join("place");
    share(&place)?;
    // So that a run waits when the agent looks for the second time.
    agent.start(&format!("{}rotate = '30s'\n", ship_to(&place)))?;
    wait_for("a pass that succeeds", LIMIT, || {
        let metrics = answer(agent.port, "/metrics", "")?.context("it is served")?;
        Ok(metrics.contains("\njoular_ship_last_success_seconds ").then_some(()))
    })?;
    fs::rename(place.join(SHARE), place.join("elsewhere"))?;
    agent.fires(&["JoularShippingFails"], &[])?;
    fs::rename(place.join("elsewhere"), place.join(SHARE))?;
    agent.resolves(&["JoularShippingFails", "JoularShippingBehind"])?;
    agent.end()
}

/// A file of a run that waits is damaged, and nobody listens where metrics are pushed to.
pub fn damaged(site: &Site) -> Result<()> {
    let mut agent = Agent::new(site, "damaged", None)?;
    record_earlier(&agent.data)?;
    let files = DataSet::at(&agent.data).files()?;
    let of_threads = files.into_iter().find(|(path, _)| path.starts_with("threads"));
    let (file, whole) = of_threads.context("a file of the table threads")?;
    let file = agent.data.join(file);
    fs::write(&file, &whole[..whole.len() / 2])?;
    let (place, collector) = (agent.folder.path().join("place"), free_port()?);
    share(&place)?;
    agent.start(&format!("{}otlp = 'http://127.0.0.1:{collector}'\notlp-interval = '1s'\n", ship_to(&place)))?;
    agent.fires(&["JoularRunsUnreadable", "JoularPushFails"], &[])?;
    replace(&file, &whole)?;
    let _collector = Collector::start(collector)?;
    agent.resolves(&["JoularRunsUnreadable", "JoularPushFails"])?;
    agent.end()
}

/// Writes a file anew, so that nobody sees a part of it.
fn replace(file: &Path, bytes: &[u8]) -> Result<()> {
    let name = file.file_name().context("a name")?.to_string_lossy();
    let beside: PathBuf = file.with_file_name(format!(".{name}.mended"));
    fs::write(&beside, bytes)?;
    fs::rename(&beside, file).context("replacing the file")
}

/// What is kept is shorter than the share is away, so that runs go before they arrive. It is longer than one run: the ring
/// must leave each until the agent has tried to ship it.
pub fn short(site: &Site) -> Result<()> {
    let mut agent = Agent::new(site, "short", None)?;
    let place = agent.folder.path().join("place");
    agent.start(&format!("{}rotate = '10s'\nkeep = '15s'\n", ship_to(&place)))?;
    agent.fires(&["JoularRunsMissed"], &[])?;
    share(&place)?;
    agent.reload(&format!("{}rotate = '10s'\nkeep = '1h'\n", ship_to(&place)))?;
    agent.resolves(&["JoularRunsMissed"])?;
    agent.end()
}

/// Takes whatever is posted.
struct Collector {
    stop: Arc<AtomicBool>,
    port: u16,
    thread: Option<JoinHandle<()>>,
}

impl Collector {
    fn start(port: u16) -> Result<Self> {
        let (listener, stop) = (TcpListener::bind(("127.0.0.1", port))?, Arc::new(AtomicBool::new(false)));
        let is_over = Arc::clone(&stop);
        let take = move || {
            for stream in listener.incoming().flatten().take_while(|_| !is_over.load(Ordering::Relaxed)) {
                // A client that goes away is of no interest.
                let _taken = taken(stream);
            }
        };
        Ok(Self { stop, port, thread: Some(thread::spawn(take)) })
    }
}

impl Drop for Collector {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        // Has it look.
        let _woken = TcpStream::connect(("127.0.0.1", self.port));
        let _ended = self.thread.take().map(JoinHandle::join);
    }
}

/// Reads one request, and accepts it.
fn taken(mut stream: TcpStream) -> Result<()> {
    stream.set_read_timeout(Some(SILENT))?;
    let (mut request, mut part) = (Vec::new(), [0; 4096]);
    loop {
        let read = stream.read(&mut part)?;
        ensure!(read > 0, "it went away");
        request.extend_from_slice(&part[..read]);
        let Some(head) = request.windows(4).position(|end| end == b"\r\n\r\n") else { continue };
        let text = String::from_utf8_lossy(&request[..head]).to_ascii_lowercase();
        let length = text.lines().find_map(|line| line.strip_prefix("content-length:")?.trim().parse::<usize>().ok());
        if request.len() >= head + 4 + length.context("a length")? {
            return stream.write_all(ANSWER.as_bytes()).context("answering");
        }
    }
}

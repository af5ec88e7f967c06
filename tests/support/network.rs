//! Gives hosts of a test networks of their own: network namespaces that have a loopback only, from which chosen ports lead to
//! servers on this machine's loopback. Nothing is reachable from elsewhere.

use std::{
    fs::{self, File},
    io,
    net::{Ipv4Addr, Shutdown, TcpListener, TcpStream},
    os::fd::AsFd as _,
    path::PathBuf,
    process::Command,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::Duration,
};

use anyhow::{Context as _, Result, anyhow};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

use crate::process::Running;

const START: Duration = Duration::from_secs(30);
/// How soon a connection is noticed.
const POLL: Duration = Duration::from_millis(5);

/// A network namespace; goes when it is dropped and nothing in it runs any more.
pub struct Network {
    /// Keeps it while nothing else is in it.
    holder: Running,
    is_over: Arc<AtomicBool>,
}

impl Network {
    pub fn new() -> Result<Self> {
        let mut command = Command::new("unshare");
        command.args(["--net", "sh", "-c", "ip link set lo up && echo ready && exec sleep 600"]);
        let mut holder = Running::spawn("a network", &mut command)?;
        holder.wait_stdout("ready", START)?;
        Ok(Self { holder, is_over: Arc::default() })
    }

    /// The file that stands for it.
    pub fn path(&self) -> PathBuf {
        PathBuf::from(format!("/proc/{}/ns/net", self.holder.pid()))
    }

    /// A command that runs in it what stands behind.
    pub fn launcher(&self) -> [String; 2] {
        ["nsenter".to_owned(), format!("--net={}", self.path().display())]
    }

    /// Whether a process is in it.
    pub fn has(&self, pid: u32) -> Result<bool> {
        let of = |path: PathBuf| fs::read_link(&path).with_context(|| format!("reading {}", path.display()));
        Ok(of(self.path())? == of(format!("/proc/{pid}/ns/net").into())?)
    }

    /// Lets a port of its loopback lead to the same port of this machine's.
    pub fn forward(&self, port: u16) -> Result<()> {
        let path = self.path();
        // A socket stays in the network of the thread that made it.
        let bound = thread::spawn(move || -> Result<TcpListener> {
            let network = File::open(&path).with_context(|| format!("opening {}", path.display()))?;
            move_into_link_name_space(network.as_fd(), Some(LinkNameSpaceType::Network)).context("entering it")?;
            TcpListener::bind((Ipv4Addr::LOCALHOST, port)).context("binding a port in it")
        });
        let listener = bound.join().map_err(|_| anyhow!("entering a network panicked"))??;
        listener.set_nonblocking(true)?;
        let is_over = Arc::clone(&self.is_over);
        thread::spawn(move || {
            while !is_over.load(Ordering::Relaxed) {
                match listener.accept() {
                    // Whoever is refused here sees a server that is away.
                    Ok((client, _)) => drop(join(client, port)),
                    Err(_) => thread::sleep(POLL),
                }
            }
        });
        Ok(())
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
    }
}

/// Passes on what both sides say, until they have ended.
fn join(client: TcpStream, port: u16) -> io::Result<()> {
    client.set_nonblocking(false)?;
    let server = TcpStream::connect((Ipv4Addr::LOCALHOST, port))?;
    pass(client.try_clone()?, server.try_clone()?);
    pass(server, client);
    Ok(())
}

fn pass(mut from: TcpStream, mut to: TcpStream) {
    thread::spawn(move || {
        // A side that breaks off is the other side's end.
        let _copied = io::copy(&mut from, &mut to);
        let _closed = to.shutdown(Shutdown::Write);
    });
}

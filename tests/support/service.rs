//! Runs `joular-bpf agent` as systemd does: told when it is ready, and how it goes.

use std::{
    os::unix::net::UnixDatagram,
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use anyhow::Result;

use crate::{clock::wait_for, process::Running};

const LIMIT: Duration = Duration::from_secs(60);

/// A service manager, as far as a service knows.
pub struct Manager {
    socket: UnixDatagram,
    path: PathBuf,
    /// All that it was told, a line each.
    told: Vec<String>,
}

impl Manager {
    pub fn new(folder: &Path) -> Result<Self> {
        let path = folder.join("notify");
        let socket = UnixDatagram::bind(&path)?;
        socket.set_nonblocking(true)?;
        Ok(Self { socket, path, told: Vec::new() })
    }

    /// Starts `joular-bpf agent` and waits until it is ready. `command` runs joular-bpf with the arguments it is given.
    pub fn start(&mut self, mut command: Command, config: &Path) -> Result<Running> {
        command.args(["agent", "--log-format", "json", "--config"]).arg(config).env("NOTIFY_SOCKET", &self.path);
        let service = Running::spawn("joular-bpf agent", &mut command)?;
        self.wait("READY=1")?;
        Ok(service)
    }

    /// Waits until it is told something that begins so, and forgets what was told before.
    pub fn wait(&mut self, beginning: &str) -> Result<String> {
        wait_for(beginning, LIMIT, || {
            let mut buffer = [0; 4096];
            while let Ok(length) = self.socket.recv(&mut buffer) {
                self.told.extend(String::from_utf8_lossy(&buffer[..length]).lines().map(ToOwned::to_owned));
            }
            let found = self.told.iter().position(|line| line.starts_with(beginning));
            Ok(found.and_then(|position| self.told.drain(..=position).next_back()))
        })
    }
}

//! Tomcat with a few pages, which `ab` asks for over connections that stay open.

use std::{
    fs,
    io::{Read as _, Write as _},
    net::{Ipv4Addr, TcpListener, TcpStream},
    path::Path,
    process::Command,
    time::Duration,
};

use anyhow::{Context as _, Result};
use tempfile::TempDir;

use super::Server;
use crate::{clock::wait_for, paths, process::Running};

const HOME: &str = "/usr/share/tomcat10";
const SETTINGS: &str = "/etc/tomcat10";
/// The second one spins for four milliseconds of its thread's CPU time, the third one for twelve.
const PAGES: [&str; 4] = ["index.jsp", "cheap.jsp", "dear.jsp", "spin.jspf"];
const LOAD: &str = "ab";
/// How Tomcat begins an answer that has the page.
pub const ANSWERED: &str = "HTTP/1.1 200";
/// A cold start, and the page's compilation.
const STARTED: Duration = Duration::from_secs(90);
const CONNECTIONS: &str = "16";
/// More than any test or benchmark takes. `ab` keeps 32 bytes of each answer.
const LOAD_SECONDS: &str = "900";
const MANY: &str = "20000000";

pub fn is_installed() -> bool {
    Path::new(HOME).exists() && Command::new(LOAD).arg("-V").output().is_ok_and(|said| said.status.success())
}

pub fn start(java: &Path, flags: &[&str]) -> Result<Server> {
    let Site { pid, port, tomcat, files } = Site::start(java, flags)?;
    let mut load = Command::new(LOAD);
    load.args(["-q", "-k", "-c", CONNECTIONS, "-t", LOAD_SECONDS, "-n", MANY, &address(port)]);
    let load = Running::spawn(LOAD, &mut load)?;
    Ok(Server { pid, _processes: vec![load, tomcat], _files: Some(files) })
}

/// Tomcat that nobody asks yet.
pub struct Site {
    /// Of its JVM.
    pub pid: u32,
    port: u16,
    tomcat: Running,
    files: TempDir,
}

impl Site {
    pub fn start(java: &Path, flags: &[&str]) -> Result<Self> {
        let files = tempfile::tempdir()?;
        let base = files.path();
        // Whoever takes it in between lets the start fail.
        let port = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port();
        prepare(base, port)?;
        let mut command = Command::new(java);
        command.args(flags).args(["-Xmx256m", &format!("-Dcatalina.home={HOME}")]);
        command.arg(format!("-Dcatalina.base={}", base.display()));
        command.arg(format!("-Djava.io.tmpdir={}", base.join("temp").display()));
        command.args(["-cp", &format!("{HOME}/bin/bootstrap.jar:{HOME}/bin/tomcat-juli.jar")]);
        let tomcat = Running::spawn("Tomcat", command.args(["org.apache.catalina.startup.Bootstrap", "start"]))?;
        let is_there = || Ok(answer(port, "").ok().filter(|answer| answer.starts_with(ANSWERED)).map(drop));
        wait_for("Tomcat to give its page", STARTED, is_there)?;
        Ok(Self { pid: tomcat.pid(), port, tomcat, files })
    }

    /// Asks for a page so many times; the first one has no name. Returns the bytes of all answers.
    pub fn ask(&self, page: &str, times: u32) -> Result<u64> {
        let mut load = Command::new(LOAD);
        let address = address(self.port) + page;
        load.args(["-q", "-k", "-c", CONNECTIONS, "-n", &times.to_string(), &address]);
        let said = Running::spawn(LOAD, &mut load)?.finish(STARTED)?;
        let bytes = said.stdout.lines().find_map(|line| line.strip_prefix("Total transferred:"));
        let bytes = bytes.and_then(|text| text.trim().trim_end_matches(" bytes").parse().ok());
        bytes.with_context(|| format!("what {LOAD} says: {said:?}"))
    }
}

fn address(port: u16) -> String {
    format!("http://127.0.0.1:{port}/")
}

/// A directory with settings, and with pages as the only application.
fn prepare(base: &Path, port: u16) -> Result<()> {
    for directory in ["conf", "logs", "temp", "work", "webapps/ROOT"] {
        fs::create_dir_all(base.join(directory))?;
    }
    for name in ["web.xml", "context.xml", "catalina.properties"] {
        let from = Path::new(SETTINGS).join(name);
        fs::copy(&from, base.join("conf").join(name)).with_context(|| format!("copying {}", from.display()))?;
    }
    let own = paths::fixtures().join("servers");
    let server = fs::read_to_string(own.join("server.xml"))?.replace("PORT", &port.to_string());
    fs::write(base.join("conf/server.xml"), server)?;
    for page in PAGES {
        fs::copy(own.join(page), base.join("webapps/ROOT").join(page))?;
    }
    Ok(())
}

/// What a server on this port says to who asks for a page, with its head.
pub fn answer(port: u16, page: &str) -> Result<String> {
    let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port))?;
    stream.write_all(format!("GET /{page} HTTP/1.0\r\n\r\n").as_bytes())?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer)?;
    Ok(String::from_utf8_lossy(&answer).into_owned())
}

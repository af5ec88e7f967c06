//! Tomcat with one page, which `ab` asks for over connections that stay open.

use std::{
    fs,
    io::{Read as _, Write as _},
    net::{Ipv4Addr, TcpListener, TcpStream},
    path::Path,
    process::Command,
    time::Duration,
};

use anyhow::{Context as _, Result};

use super::Server;
use crate::{clock::wait_for, paths, process::Running};

const HOME: &str = "/usr/share/tomcat10";
const SETTINGS: &str = "/etc/tomcat10";
const LOAD: &str = "ab";
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
    let base = tempfile::tempdir()?;
    // Whoever takes it in between lets the start fail.
    let port = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port();
    prepare(base.path(), port)?;
    let mut command = Command::new(java);
    command.args(flags).args(["-Xmx256m", &format!("-Dcatalina.home={HOME}")]);
    command.arg(format!("-Dcatalina.base={}", base.path().display()));
    command.arg(format!("-Djava.io.tmpdir={}", base.path().join("temp").display()));
    command.args(["-cp", &format!("{HOME}/bin/bootstrap.jar:{HOME}/bin/tomcat-juli.jar")]);
    let tomcat = Running::spawn("Tomcat", command.args(["org.apache.catalina.startup.Bootstrap", "start"]))?;
    wait_for("Tomcat to give its page", STARTED, || Ok(page(port).ok().filter(|page| page.contains("200")).map(drop)))?;
    let mut load = Command::new(LOAD);
    load.args(["-q", "-k", "-c", CONNECTIONS, "-t", LOAD_SECONDS, "-n", MANY, &format!("http://127.0.0.1:{port}/")]);
    let load = Running::spawn(LOAD, &mut load)?;
    Ok(Server { pid: tomcat.pid(), _processes: vec![load, tomcat], _files: Some(base) })
}

/// A directory with settings, and with one page as the only application.
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
    fs::copy(own.join("index.jsp"), base.join("webapps/ROOT/index.jsp"))?;
    Ok(())
}

fn page(port: u16) -> Result<String> {
    let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port))?;
    stream.write_all(b"GET / HTTP/1.0\r\n\r\n")?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer)?;
    Ok(String::from_utf8_lossy(&answer).lines().next().unwrap_or_default().to_owned())
}

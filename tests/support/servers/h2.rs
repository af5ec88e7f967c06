//! The database H2 within one JVM, with queries and changes all the time.

use std::{path::Path, process::Command, time::Duration};

use anyhow::Result;

use super::Server;
use crate::{java, process::Running};

pub const JAR: &str = "/usr/share/java/h2.jar";
const READY: Duration = Duration::from_secs(60);

pub fn start(java: &Path, flags: &[&str]) -> Result<Server> {
    let class_path = format!("{}:{JAR}", java::classes()?.display());
    let mut command = Command::new(java);
    command.args(flags).args(["-Xmx256m", "-cp", &class_path, "Queries", "url=jdbc:h2:mem:orders", "seconds=900"]);
    let mut database = Running::spawn("H2", &mut command)?;
    database.wait_stdout("ready", READY)?;
    Ok(Server { pid: database.pid(), _processes: vec![database], _files: None })
}

//! Spark SQL on two threads of one JVM, which a Python program drives.

use std::time::Duration;

use anyhow::{Context as _, Result};

use super::Server;
use crate::{process::Running, python};

const READY: Duration = Duration::from_secs(120);

pub fn start() -> Result<Server> {
    let mut driver = Running::spawn("Spark", &mut python::ENGINES.script("spark_sql.py")?)?;
    let line = driver.wait_stdout("ready", READY)?;
    let pid = line.split(' ').nth(1).and_then(|pid| pid.parse().ok());
    // The JVM ends when its driver does.
    Ok(Server { pid: pid.with_context(|| format!("no pid in '{line}'"))?, _processes: vec![driver], _files: None })
}

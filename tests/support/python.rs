//! Real Parquet readers from PyPI, in virtual environments of our own.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
    sync::{Mutex, OnceLock, PoisonError},
    time::Duration,
};

use anyhow::{Context as _, Result, bail, ensure};
use serde_json::{Value, json};

use crate::{paths, process::Running};

/// The longest that a statement may take.
const ANSWER: Duration = Duration::from_secs(120);

/// A virtual environment below `target`: made on demand, again when its list changes.
pub struct Environment {
    folder: &'static str,
    /// Packages, in `tests/fixtures/python`.
    list: &'static str,
    interpreter: OnceLock<Result<PathBuf, String>>,
}

/// What the demo and most tests read a data set with.
pub static COMMON: Environment = Environment::new("venv", "requirements.txt");

/// Engines that are large. One test needs them, and nobody else waits for them.
pub static ENGINES: Environment = Environment::new("engines", "engines.txt");

/// Schemas of bills of materials and of provenance.
pub static SUPPLY_CHAIN: Environment = Environment::new("supply-chain", "supply_chain.txt");

/// The interpreter of [`COMMON`].
pub fn interpreter() -> Result<PathBuf> {
    COMMON.interpreter()
}

/// Lets Python import the package that is in the sources, and compile what is imported once. Nothing may appear there,
/// least of all files of root.
pub fn with_package(command: &mut Command) -> &mut Command {
    let sources = paths::root().join("python/src");
    command.env("PYTHONPATH", sources).env("PYTHONPYCACHEPREFIX", paths::target().join("pycache"))
}

impl Environment {
    const fn new(folder: &'static str, list: &'static str) -> Self {
        Self { folder, list, interpreter: OnceLock::new() }
    }

    pub fn interpreter(&self) -> Result<PathBuf> {
        let made = self.interpreter.get_or_init(|| self.make().map_err(|e| format!("{e:#}")));
        made.clone().map_err(anyhow::Error::msg)
    }

    /// Whether [`Self::interpreter`] has nothing left to do.
    pub fn is_ready(&self) -> bool {
        let wanted = fs::read_to_string(self.list());
        let installed = fs::read_to_string(self.stamp());
        matches!((wanted, installed), (Ok(wanted), Ok(installed)) if wanted == installed)
    }

    /// A script of `tests/fixtures/python`, to be run.
    pub fn script(&self, name: &str) -> Result<Command> {
        let mut command = Command::new(self.interpreter()?);
        with_package(&mut command).arg(paths::fixtures().join("python").join(name));
        Ok(command)
    }

    fn folder(&self) -> PathBuf {
        paths::target().join(self.folder)
    }

    fn list(&self) -> PathBuf {
        paths::fixtures().join("python").join(self.list)
    }

    fn stamp(&self) -> PathBuf {
        self.folder().join("installed.txt")
    }

    fn make(&self) -> Result<PathBuf> {
        let python = self.folder().join("bin/python");
        if self.is_ready() {
            return Ok(python);
        }
        run(Command::new("python3").args(["-m", "venv", "--clear"]).arg(self.folder()))
            .context("making a virtual environment (Debian and Ubuntu have it in the package python3-venv)")?;
        // Most modules are never imported: to compile all of them takes half a minute.
        let install = ["-m", "pip", "install", "--quiet", "--no-compile", "--requirement"];
        run(Command::new(&python).args(install).arg(self.list()))?;
        // Last, so that an interrupted installation is done again.
        fs::copy(self.list(), self.stamp()).context("writing the environment's stamp")?;
        Ok(python)
    }
}

fn run(command: &mut Command) -> Result<()> {
    let output = command.output().with_context(|| format!("starting {command:?}"))?;
    ensure!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    Ok(())
}

/// Runs a script of `tests/fixtures/python`; returns what it printed.
pub fn script(name: &str, dataset: &Path, arguments: &[&str]) -> Result<String> {
    let mut command = COMMON.script(name)?;
    command.arg(dataset).args(arguments);
    let output = command.output().with_context(|| format!("starting {command:?}"))?;
    ensure!(output.status.success(), "{name} {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).with_context(|| format!("{name} did not print UTF-8"))
}

/// The rows of an SQL statement on a data set, as JSON objects.
///
/// A statement takes milliseconds, but a Python that can run it half a second to start.
/// So each is kept for the next statement, until this process ends.
pub fn query(dataset: &Path, sql: &str) -> Result<Vec<Value>> {
    static IDLE: Mutex<Vec<Running>> = Mutex::new(Vec::new());
    let idle = IDLE.lock().unwrap_or_else(PoisonError::into_inner).pop();
    let mut engine = idle.map_or_else(|| Running::spawn("query.py", &mut COMMON.script("query.py")?), Ok)?;
    // From now on it answers from another directory.
    let dataset = std::path::absolute(dataset)?;
    engine.say(&json!({"dataset": dataset, "sql": sql}).to_string())?;
    let answer = engine.wait_stdout("{", ANSWER).with_context(|| sql.to_owned())?;
    engine.forget_seen();
    let mut answer: Value = serde_json::from_str(&answer).with_context(|| format!("{sql}: {answer}"))?;
    IDLE.lock().unwrap_or_else(PoisonError::into_inner).push(engine);
    match answer["rows"].take() {
        Value::Array(rows) => Ok(rows),
        _ => bail!("{sql} on {}: {}", dataset.display(), answer["error"].as_str().unwrap_or("no rows")),
    }
}

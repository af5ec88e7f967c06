//! Does what docs/tutorial.md tells users to do with the clinic of docs/clinic: it opens, its waste is found where the tutorial
//! finds it, and mending it changes no page.

use std::{
    fs,
    net::{Ipv4Addr, TcpListener},
    path::Path,
    process::Command,
    time::Duration,
};

use anyhow::{Context as _, Result, ensure};
use joular_tests::{
    notes, paths,
    process::Running,
    profiler::{END, Output, Run},
    servers::{self, ANSWERED, Program},
};
use rustix::process::Signal;
use serde_json::Value;
use tempfile::TempDir;

/// A cold start, with the compilation of the clinic.
const OPENED: Duration = Duration::from_secs(90);
/// Rounds of a second each, and as many again on a busy machine.
const LOADED: Duration = Duration::from_secs(60);
/// Tomcat ends after these seconds, even if the test fails and leaves it.
const OPEN: &str = "180";
const ROUNDS: u32 = 5;
/// What a round asks for of the dear page.
const REPORTS: u32 = 10;

struct Clinic {
    script: Running,
    port: u16,
    /// Of its JVM.
    pid: u32,
    files: TempDir,
}

impl Clinic {
    fn open(version: &[&str]) -> Result<Self> {
        let files = tempfile::tempdir()?;
        // Whoever takes it in between lets the start fail.
        let port = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port();
        let mut command = Command::new(paths::root().join("docs/clinic/run.sh"));
        command.args(version).args(["--port", &port.to_string(), "--seconds", OPEN]).env("TMPDIR", files.path());
        let mut script = Running::spawn("docs/clinic/run.sh", &mut command)?;
        let said = script.wait_stdout("The clinic", OPENED)?;
        let pid = said.split_once("(process ").and_then(|(_, rest)| rest.split(')').next()?.parse().ok());
        let pid = pid.with_context(|| format!("no process: {said}"))?;
        Ok(Self { script, port, pid, files })
    }

    /// Asks for all pages, and has the counts written.
    fn load(&self, rounds: u32, counts: &Path) -> Result<()> {
        let mut command = Command::new(paths::root().join("docs/clinic/load.sh"));
        command.args(["--port", &self.port.to_string(), "--rounds", &rounds.to_string()]).arg(counts);
        let finished = Running::spawn("docs/clinic/load.sh", &mut command)?.finish(LOADED)?;
        ensure!(finished.code() == Some(0), "{finished:?}");
        let counts = fs::read_to_string(counts)?;
        let reports = format!("\n/report,{},ReportServlet.doGet,", REPORTS * rounds);
        ensure!(counts.starts_with("route,count,handler,begin,end\n") && counts.contains(&reports), "{counts}");
        Ok(())
    }

    fn page(&self, name: &str) -> Result<String> {
        let answer = servers::answer(self.port, name)?;
        ensure!(answer.starts_with(ANSWERED), "{name}: {answer}");
        let (_, page) = answer.split_once("\r\n\r\n").context("a head without a page")?;
        Ok(page.to_owned())
    }

    /// Closes it as somebody who stops the script, and demands that nothing is left.
    fn close(self) -> Result<()> {
        self.script.signal(Signal::TERM)?;
        let finished = self.script.finish(END)?;
        ensure!(finished.code() == Some(0), "{finished:?}");
        let left = fs::read_dir(self.files.path())?.count();
        ensure!(left == 0 && !Path::new("/proc").join(self.pid.to_string()).exists(), "{left} files are left");
        Ok(())
    }
}

/// What a report on the data set says in JSON.
fn report(data: &Path, options: &[&str]) -> Result<Value> {
    let report = Run::new().argument("report").argument(data).argument("--json");
    let said = options.iter().fold(report, |report, option| report.argument(option)).finish(END)?;
    ensure!(said.code() == Some(0), "{options:?}: {said:?}");
    Ok(serde_json::from_str(&said.stdout)?)
}

/// The first row of a table that is of a method, not of what is outside of all.
fn dearest(report: &Value) -> Result<&str> {
    let rows = report["tables"][0]["rows"].as_array().context("no rows")?;
    let mut names = rows.iter().filter_map(|row| row["name"].as_str());
    names.find(|name| !name.starts_with('[')).with_context(|| format!("no method: {rows:?}"))
}

/// The report's page is the dear handler, because of one method of the clinic.
fn expect_waste(data: &Path, counts: &Path) -> Result<()> {
    let handlers = report(data, &["--by", "handler"])?;
    ensure!(dearest(&handlers)? == "clinic.ReportServlet.doGet", "{handlers}");
    let methods = report(data, &["--app", "clinic"])?;
    ensure!(dearest(&methods)? == "clinic.Visit.day", "{methods}");
    let counts = counts.to_str().context("a path of text")?;
    let requests = report(data, &["--requests", counts])?;
    let routes = requests["routes"].as_array().context("no routes")?;
    let page = routes.iter().find(|route| route["route"] == "/report").context("no /report")?;
    ensure!(page["requests"] == REPORTS * ROUNDS && page["needs"]["direct"]["joules"].as_f64() > Some(0.0), "{page}");
    Ok(())
}

#[test]
fn the_waste_of_the_clinic_is_found_and_mending_it_changes_no_page() -> Result<()> {
    if !Program::Tomcat.is_installed() {
        notes::skipped("Tomcat is not installed (`cargo xtask setup` does it on Debian)");
        return Ok(());
    }
    let output = Output::new()?;
    let counts = output.beside("counts.csv");
    let clinic = Clinic::open(&[])?;
    clinic.load(1, &output.beside("cold.csv"))?;
    let run = Run::modelled().pid(clinic.pid).with("--frequency", "499").argument("--json").output(output.dir());
    let mut profiler = run.start()?;
    profiler.wait_window()?;
    clinic.load(ROUNDS, &counts)?;
    profiler.stop()?;
    let page = clinic.page("report")?;
    clinic.close()?;
    expect_waste(output.dir(), &counts)?;
    ensure!(page.contains("<li>2026-03-05: "), "the visits that the load adds are the latest: {page}");

    let mended = Clinic::open(&["--mended"])?;
    for rounds in [1, ROUNDS] {
        mended.load(rounds, &output.beside("mended.csv"))?;
    }
    ensure!(mended.page("report")? == page, "another page than {page}");
    mended.close()
}

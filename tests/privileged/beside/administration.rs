//! Tests what administrators do to a service: a mistake in its configuration changes nothing, rules for names need no other
//! recording, `--check --deep` finds what the file alone does not show, and `support` says how a running one is.

use std::{fs, net::TcpListener, os::unix::fs::PermissionsExt as _, path::Path, process::Command, time::Duration};

use anyhow::{Context as _, Result, ensure};
use joular_tests::{
    clock::wait_for,
    dataset::{DataSet, share},
    java::Workload,
    notes, paths,
    process::{Finished, Running},
    profiler::END,
    prometheus::{answer, free_port},
    python,
    s3::S3,
    service::Manager,
};
use rustix::process::Signal;

const LIMIT: Duration = Duration::from_secs(60);
const TOKEN: &str = "0123456789abcdef0123456789abcdef";

/// A token that only its owner may read, and one that all may.
fn token(folder: &Path, name: &str, mode: u32) -> Result<String> {
    let path = folder.join(name);
    fs::write(&path, TOKEN)?;
    fs::set_permissions(&path, fs::Permissions::from_mode(mode))?;
    Ok(path.to_str().context("a path")?.to_owned())
}

#[test]
fn a_mistake_changes_nothing_and_other_rules_hold_without_a_gap() -> Result<()> {
    let (folder, port, taken) = (tempfile::tempdir()?, free_port()?, TcpListener::bind("127.0.0.1:0")?);
    let (config, data) = (folder.path().join("agent.toml"), folder.path().join("data"));
    let secret = token(folder.path(), "token", 0o600)?;
    let open_secret = token(folder.path(), "open-token", 0o644)?;
    let jvm = Workload::new("Busy").start()?;
    let write = |port: u16, token: &str, more: &str| {
        let text = format!(
            "pid = [{}]\noutput = {data:?}\nenergy = 'model'\nmodel-watts = '2:10'\ninterval = '100ms'\n\
             metrics = '127.0.0.1:{port}'\nmetrics-token = '{token}'\n{more}",
            jvm.pid()
        );
        fs::write(&config, text)
    };
    write(port, &secret, "")?;
    let mut manager = Manager::new(folder.path())?;
    let mut service = manager.start(Command::new(paths::joular_bpf()), &config)?;
    let reload = |manager: &mut Manager, service: &mut Running| -> Result<()> {
        service.forget_seen();
        service.signal(Signal::HUP)?;
        manager.wait("RELOADING=1")?;
        manager.wait("READY=1").map(drop)
    };
    let metrics = || -> Result<String> {
        let answer =
            answer(port, "/metrics", &format!("Authorization: Bearer {TOKEN}\r\n"))?.context("it is served")?;
        ensure!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
        Ok(answer)
    };

    // What another recording cannot have is found while the old one goes on.
    let address_in_use = taken.local_addr()?.port();
    let counters = "counters = ['no-such-counter']";
    for (port, token, more, said) in [
        (port, &open_secret, "", "reading the token"),
        (address_in_use, &secret, "", "serving metrics at"),
        (port, &secret, counters, "counter"),
    ] {
        write(port, token, more)?;
        reload(&mut manager, &mut service)?;
        let error = service.wait_stderr_with("going on with the old configuration", LIMIT)?;
        ensure!(error.contains(said), "{error}");
        metrics()?;
    }

    // Another name holds from the next window on.
    write(port, &secret, "[[service-rule]]\nname = 'renamed'\ncomm = '*'\n")?;
    reload(&mut manager, &mut service)?;
    service.wait_stderr_with("going on with the new rules", LIMIT)?;
    wait_for("the new name", LIMIT, || Ok(metrics()?.contains("service=\"renamed\"").then_some(())))?;

    // What shows only as the new recording starts leads back to the old configuration, which is another run.
    let nowhere = folder.path().join("absent/recording.jrec");
    write(port, &secret, &format!("record = {nowhere:?}\n"))?;
    reload(&mut manager, &mut service)?;
    let error = service.wait_stderr_with("going on with the old configuration", LIMIT)?;
    ensure!(error.contains("creating the recording"), "{error}");
    wait_for("the new name", LIMIT, || Ok(metrics()?.contains("service=\"renamed\"").then_some(())))?;

    service.signal(Signal::TERM)?;
    let Finished { stderr, .. } = service.finish(END + LIMIT)?;
    let runs = DataSet::at(&data)
        .rows("SELECT count(*) AS runs, count(*) FILTER (end_reason = 'SIGHUP') AS reloaded FROM runs")?;
    ensure!(runs[0]["runs"] == 2 && runs[0]["reloaded"] == 1, "{runs:?} {stderr}");
    let gaps = DataSet::at(&data).rows(
        "SELECT count(*) AS gaps FROM (
           SELECT window_start - lag(window_start + to_microseconds(window_ns // 1000))
             OVER (PARTITION BY run_id ORDER BY window_index) AS gap FROM windows
         ) WHERE gap > INTERVAL 1 MILLISECOND",
    )?;
    ensure!(gaps[0]["gaps"] == 0, "{gaps:?}");
    let names = DataSet::at(&data).rows("SELECT DISTINCT service FROM processes ORDER BY service")?;
    ensure!(names.iter().any(|row| row["service"] == "renamed"), "{names:?}");
    Ok(())
}

/// What `--check --deep` prints, with its exit code.
fn checked(config: &Path, environment: &[(&str, String)]) -> Result<(String, Option<i32>)> {
    let mut command = Command::new(paths::joular_bpf());
    command.args(["agent", "--check", "--deep", "--config"]).arg(config);
    command.envs(environment.iter().map(|(name, value)| (name, value)));
    let checked = Running::spawn("check", &mut command)?.finish(LIMIT)?;
    Ok((checked.stdout.clone(), checked.code()))
}

/// The line of a check.
fn line<'a>(said: &'a str, name: &str) -> Result<&'a str> {
    let is_of = |line: &&str| line.get(9..).is_some_and(|rest| rest.starts_with(name));
    said.lines().find(is_of).with_context(|| format!("{name} in {said}"))
}

#[test]
fn a_deep_check_tries_all_that_the_file_names() -> Result<()> {
    let (folder, port) = (tempfile::tempdir()?, free_port()?);
    let [config, data, place] = ["agent.toml", "data", "place"].map(|name| folder.path().join(name));
    let nobody = free_port()?;
    let write = |token: &str, ship: &str| {
        let text = format!(
            "output = {data:?}\nenergy = 'model'\nmodel-watts = '2:10'\nship = '{ship}'\n\
             metrics = '127.0.0.1:{port}'\nmetrics-token = '{token}'\notlp = 'http://127.0.0.1:{nobody}'\n\
             kubernetes = 'https://127.0.0.1:{nobody}'\nkubernetes-ca = 'none'\n"
        );
        fs::write(&config, text)
    };
    write(&token(folder.path(), "open-token", 0o644)?, place.to_str().context("a path")?)?;
    fs::write(folder.path().join("agent.env"), "AWS_SECRET_ACCESS_KEY=x\n")?;
    let (said, code) = checked(&config, &[])?;
    for (name, word) in [
        ("credentials", "agent.env: others than its owner may write it"),
        ("metrics", "reading the token"),
        ("shipping", "No such file"),
        ("OpenTelemetry", "pushing to"),
        ("pods", "asking the kubelet"),
    ] {
        let line = line(&said, name)?;
        ensure!(line.starts_with("FAILS") && line.contains(word), "{said}");
    }
    ensure!(line(&said, "data set")?.starts_with("ok") && code == Some(1), "{code:?} {said}");

    share(&place)?;
    let secret = token(folder.path(), "token", 0o600)?;
    write(&secret, place.to_str().context("a path")?)?;
    let (said, _) = checked(&config, &[])?;
    ensure!(line(&said, "metrics")?.starts_with("ok"), "{said}");
    ensure!(line(&said, "shipping")?.starts_with("ok"), "{said}");
    ensure!(fs::read_dir(place.join(".partial"))?.count() == 0, "nothing of the trial stays");

    if !python::ENGINES.is_ready() {
        notes::skipped("a server of S3 is missing (`cargo xtask setup` installs it)");
        return Ok(());
    }
    let server = S3::with_bucket("fleet")?;
    for (bucket, begins) in [("fleet", "ok"), ("absent", "FAILS")] {
        write(&secret, &format!("s3://{bucket}/energy"))?;
        let (said, _) = checked(&config, &server.environment())?;
        ensure!(line(&said, "shipping")?.starts_with(begins), "{bucket}: {said}");
    }
    Ok(())
}

#[test]
fn support_says_how_a_service_is_and_keeps_its_secrets() -> Result<()> {
    let (folder, port) = (tempfile::tempdir()?, free_port()?);
    let [config, data, log, profile] =
        ["agent.toml", "data", "log", "profile.pb.gz"].map(|name| folder.path().join(name));
    let secret = token(folder.path(), "token", 0o600)?;
    let jvm = Workload::new("Busy").start()?;
    let text = format!(
        "# a comment\npid = [{}]\noutput = {data:?}\nenergy = 'model'\nmodel-watts = '2:10'\ninterval = '100ms'\nflush = '1s'\n\
         metrics = '127.0.0.1:{port}'\nmetrics-token = '{secret}'\n",
        jvm.pid()
    );
    fs::write(&config, text)?;
    let mut manager = Manager::new(folder.path())?;
    let mut service = manager.start(Command::new(paths::joular_bpf()), &config)?;
    service.signal(Signal::USR1)?;
    let line = service.wait_stderr_with("\"level\":\"debug\"", LIMIT)?;
    ensure!(line.contains("window ") && line.contains("lost: "), "{line}");
    fs::write(&log, format!("first\n{line}\nconnecting to http://user:hunter2@db.example:5432\n"))?;
    wait_for("files of the data set", LIMIT, || Ok(data.join("windows").is_dir().then_some(())))?;

    let mut command = Command::new(paths::joular_bpf());
    command
        .args(["support", "--profile-time", "2s", "--lines", "2"])
        .arg("--config")
        .arg(&config)
        .arg("--log")
        .arg(&log);
    let said = Running::spawn("support", command.arg("--profile").arg(&profile))?.finish(LIMIT)?;
    ensure!(said.code() == Some(0), "{said:?}");
    for part in [
        "== about\njoular-bpf ",
        "energy = 'model'",
        "eBPF programs",
        &format!("/proc/{}\n", service.pid()),
        "  thread joular-bpf: schedstat ",
        "joular_windows_total ",
        " windows, ",
        "connecting to ",
    ] {
        ensure!(said.stdout.contains(part), "{part} is missing: {}", said.stdout);
    }
    for secret in ["hunter2", TOKEN, "# a comment", "\nfirst\n"] {
        ensure!(!said.stdout.contains(secret), "{secret} is there: {}", said.stdout);
    }
    ensure!(fs::read(&profile)?.starts_with(&[0x1f, 0x8b]), "it is not zipped");
    service.signal(Signal::TERM)?;
    ensure!(service.finish(END + LIMIT)?.code() == Some(0));
    Ok(())
}

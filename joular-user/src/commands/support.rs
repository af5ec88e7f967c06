//! Runs `support`: writes what is known of the service, and records the service itself if that is asked for.

use std::{
    env,
    fs::OpenOptions,
    io::{self, Write as _},
    os::unix::fs::OpenOptionsExt as _,
    path::Path,
    process::{Command, Stdio},
};

use anyhow::{Context as _, anyhow, bail, ensure};

use super::{unless_closed, unwritten};
use crate::{
    cli::{Exit, Flags, SupportFlags},
    config, messages,
    privileges::lent,
    support::{self, Asked},
};

pub(super) fn run(flags: &SupportFlags) -> anyhow::Result<Exit> {
    if lent::are_lent() {
        bail!("collecting what is known of the service: it reads what only root may: run it as root");
    }
    let energy = config::energy_options(Flags::default())?;
    let SupportFlags { config, log, lines, .. } = flags;
    let mut text = Vec::new();
    let asked = Asked { configuration: config, log: log.as_deref(), lines: *lines, energy: &energy };
    support::write(&mut text, &asked).map_err(unwritten("what is known"))?;
    match flags.output.as_deref().filter(|path| *path != Path::new("-")) {
        None => unless_closed(io::stdout().lock().write_all(&text)).map_err(unwritten("what is known"))?,
        Some(path) => {
            // It names what runs on the host.
            let file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(path);
            let written = file.and_then(|mut file| file.write_all(&text));
            written.with_context(|| format!("writing {}: choose another file with --output", path.display()))?;
            messages::info(&format!("{}: read it before you send it", path.display()));
        }
    }
    flags.profile.as_deref().map_or(Ok(()), |file| profile(config, file, &flags.profile_time))?;
    Ok(Exit::Success)
}

/// Records the service with another recorder, whose own time is not in it.
fn profile(configuration: &Path, file: &Path, time: &str) -> anyhow::Result<()> {
    let service = support::processes(configuration).into_iter().next();
    let service = service
        .ok_or_else(|| {
            anyhow!("recording the service: none runs with this configuration: start it, or give its --config")
        })?
        .to_string();
    let folder = tempfile::tempdir().context("making a temporary directory")?;
    let data = folder.path().join("data");
    let mut record = own()?;
    record.args(["--pid", &service, "--duration", time, "--frequency", "999", "--quiet", "--output"]).arg(&data);
    succeed(&mut record, "recording the service")?;
    let mut export = own()?;
    succeed(export.args(["export", "--format", "pprof", "--output"]).arg(file).arg(&data), "exporting its profile")?;
    messages::info(&format!("{}: open it with `go tool pprof`", file.display()));
    Ok(())
}

fn own() -> anyhow::Result<Command> {
    let mut command = Command::new(env::current_exe().context("finding this program")?);
    command.stdin(Stdio::null()).stdout(Stdio::null());
    Ok(command)
}

fn succeed(command: &mut Command, what: &str) -> anyhow::Result<()> {
    let status = command.status().with_context(|| format!("{what}: starting joular-bpf"))?;
    ensure!(status.success(), "{what}: joular-bpf ended with {status}; its messages are above");
    Ok(())
}

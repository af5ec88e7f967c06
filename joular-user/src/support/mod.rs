//! Collects what developers need to find a fault, for `joular-bpf support`: one text without secrets, which its sender
//! can read before anybody else does.

mod metrics;
mod recorded;
mod service;

use std::{
    fs::{self, File},
    io::{self, Read as _, Seek as _, SeekFrom, Write},
    path::Path,
    process::Command,
};

use jiff::Timestamp;
use joular_data::{
    redact::{CommandLines, Redaction},
    text::escape_lines,
};

pub use self::service::processes;
use crate::{
    config::{AgentConfig, ConfigError},
    doctor,
    energy::EnergyOptions,
    sources,
};

/// The systemd unit whose log is shown.
const UNIT: &str = "joular-bpf";
/// The end of a log file that is looked at.
const MAX_LOG_BYTES: u64 = 4 << 20;

/// What is looked at.
#[derive(Clone, Copy, Debug)]
pub struct Asked<'a> {
    /// The service's configuration file.
    pub configuration: &'a Path,
    /// Its log, if it does not go to the journal.
    pub log: Option<&'a Path>,
    /// Last lines of the log that are shown.
    pub lines: u32,
    pub energy: &'a EnergyOptions,
}

/// Writes all parts, each below its heading. What cannot be read says why.
pub fn write(out: &mut impl Write, asked: &Asked<'_>) -> io::Result<()> {
    let configuration = AgentConfig::read(asked.configuration);
    let redaction = configuration.as_ref().map(|service| service.config.redaction.clone()).unwrap_or_default();
    let energy = configuration.as_ref().map_or(asked.energy, |service| &service.live.energy);
    let mut part = |heading: &str, text: String| write_part(out, &redaction, heading, &text);
    part("about", about())?;
    part("configuration", configuration_text(asked.configuration, configuration.as_ref().err()))?;
    part("doctor", doctor_text(energy)?)?;
    part("sources", sources_text(energy)?)?;
    part("service", service::text(asked.configuration))?;
    if let Ok(service) = &configuration {
        part("metrics", service.live.metrics.as_ref().map_or_else(|| "not served".to_owned(), metrics::text))?;
        part("recorded in the last hour", recorded::text(service.config.output.as_deref()))?;
    }
    part("log", asked.log.map_or_else(|| journal(asked.lines), |file| log(file, asked.lines)))
}

/// Secrets are taken out even where the configuration leaves them in command lines.
fn write_part(out: &mut impl Write, redaction: &Redaction, heading: &str, text: &str) -> io::Result<()> {
    let redaction = redaction.showing(CommandLines::Redacted);
    writeln!(out, "== {heading}")?;
    for line in text.lines() {
        writeln!(out, "{}", escape_lines(&redaction.text(&redaction.urls(line))))?;
    }
    writeln!(out)
}

fn about() -> String {
    let release = fs::read_to_string("/etc/os-release").unwrap_or_default();
    let system = release.lines().find_map(|line| line.strip_prefix("PRETTY_NAME=")).unwrap_or("unknown");
    let kernel = rustix::system::uname();
    format!(
        "joular-bpf {} for {} ({})\n{}\nLinux {} {}\n{}\n",
        env!("CARGO_PKG_VERSION"),
        std::env::consts::ARCH,
        if cfg!(target_env = "musl") { "static" } else { "with the system's C library" },
        system.trim_matches('"'),
        kernel.release().to_string_lossy(),
        kernel.version().to_string_lossy(),
        Timestamp::now(),
    )
}

/// Without comments, and what is wrong with it.
fn configuration_text(path: &Path, mistake: Option<&ConfigError>) -> String {
    let text = match fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) => return format!("reading {}: {error}", path.display()),
    };
    let is_shown = |line: &&str| !line.trim_start().starts_with('#') && !line.trim().is_empty();
    let lines = text.lines().filter(is_shown).map(ToOwned::to_owned);
    lines.chain(mistake.map(|mistake| format!("MISTAKE: {mistake}"))).collect::<Vec<_>>().join("\n")
}

fn doctor_text(energy: &EnergyOptions) -> io::Result<String> {
    let mut text = Vec::new();
    doctor::write(&mut text, &doctor::checks(Path::new("/proc"), energy), false)?;
    Ok(String::from_utf8_lossy(&text).into_owned())
}

fn sources_text(energy: &EnergyOptions) -> io::Result<String> {
    let mut text = Vec::new();
    sources::run(&mut text, energy, false)?;
    Ok(String::from_utf8_lossy(&text).into_owned())
}

fn journal(lines: u32) -> String {
    let mut journalctl = Command::new("journalctl");
    journalctl.args(["--unit", UNIT, "--no-pager", "--quiet", "--output", "short-iso"]);
    match journalctl.args(["--lines", &lines.to_string()]).output() {
        Ok(output) => {
            String::from_utf8_lossy(if output.status.success() { &output.stdout } else { &output.stderr }).into()
        }
        Err(error) => format!("starting journalctl: {error}: --log names a file"),
    }
}

fn log(path: &Path, lines: u32) -> String {
    let read = || {
        let mut file = File::open(path)?;
        let length = file.metadata()?.len();
        file.seek(SeekFrom::Start(length.saturating_sub(MAX_LOG_BYTES)))?;
        let mut bytes = Vec::new();
        file.take(MAX_LOG_BYTES).read_to_end(&mut bytes).map(|_| bytes)
    };
    let text = match read() {
        Ok(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
        Err(error) => return format!("reading {}: {error}", path.display()),
    };
    let all: Vec<&str> = text.lines().collect();
    all[all.len().saturating_sub(lines as usize)..].join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_has_no_secrets_even_where_command_lines_are_shown_in_full() {
        let full = Redaction::default().showing(CommandLines::Full);
        let mut out = Vec::new();
        let text = "otlp = \"http://user:hunter2@collector:4318\"\njava -Ddb.password=hunter2 Main\n\x1b[31mred";
        write_part(&mut out, &full, "log", text).unwrap();
        let text = String::from_utf8(out).unwrap();
        assert!(text.starts_with("== log\notlp = ") && text.contains("collector") && text.ends_with("\n\n"), "{text}");
        assert!(!text.contains("hunter2") && !text.contains('\x1b'), "{text}");
    }

    #[test]
    fn a_log_shows_its_last_lines_and_a_configuration_what_counts() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        fs::write(&file, "# a comment\none\n\ntwo\nthree\n").unwrap();
        assert_eq!(log(&file, 2), "two\nthree");
        assert_eq!(log(&file, 100).lines().count(), 5);
        assert_eq!(configuration_text(&file, None), "one\ntwo\nthree");
        assert!(log(&folder.path().join("absent"), 2).contains("No such file"));
    }
}

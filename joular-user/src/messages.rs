//! Writes to standard error what the user should know and what is no result, a line each.
//!
//! People get text. A service's lines go to the journal, with their priority (sd-daemon(3)), or to a log
//! collector, as JSON. There may be texts of targets in a message, so nothing in it acts on a terminal.

use std::{
    env,
    io::{self, Write as _},
    sync::atomic::{AtomicU8, Ordering},
};

use jiff::Timestamp;
use joular_data::text::escape;
use serde::Serialize;

/// How a message is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Format {
    Text,
    /// Text after the priority that the journal reads.
    Journal,
    Json,
}

/// How much a message matters, as the journal and log collectors have it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    Error,
    Warning,
    Info,
}

impl Level {
    /// Of syslog(3).
    const fn priority(self) -> u8 {
        match self {
            Self::Error => 3,
            Self::Warning => 4,
            Self::Info => 6,
        }
    }
}

static FORMAT: AtomicU8 = AtomicU8::new(Format::Text as u8);

/// Writes all further messages so.
pub fn set_format(format: Format) {
    FORMAT.store(format as u8, Ordering::Relaxed);
}

/// Whether standard error goes to the journal (systemd.exec(5), `JOURNAL_STREAM`).
pub fn go_to_journal() -> bool {
    let stream = env::var("JOURNAL_STREAM").unwrap_or_default();
    let metadata = rustix::fs::fstat(io::stderr());
    metadata.is_ok_and(|metadata| stream == format!("{}:{}", metadata.st_dev, metadata.st_ino))
}

/// Tells that something goes on as wanted.
pub fn info(text: &str) {
    write(Level::Info, &escape(text));
}

/// Tells what the user should look at, though the program goes on.
pub fn warn(text: &str) {
    write(Level::Warning, &escape(text));
}

/// Tells why the program ends, or does not do what it was told. The text may have several lines, and is harmless.
pub fn error(harmless: &str) {
    write(Level::Error, harmless);
}

fn write(level: Level, harmless: &str) {
    let format = FORMAT.load(Ordering::Relaxed);
    let format = [Format::Journal, Format::Json].into_iter().find(|known| *known as u8 == format);
    let line = line(format.unwrap_or(Format::Text), level, harmless, Timestamp::now());
    // Nobody may be listening any more, which is no reason to end.
    let _ = io::stderr().lock().write_all(line.as_bytes());
}

/// A message as it is written, with its line's end.
fn line(format: Format, level: Level, harmless: &str, now: Timestamp) -> String {
    #[derive(Serialize)]
    struct Line<'a> {
        time: String,
        level: Level,
        message: &'a str,
    }
    match format {
        Format::Text => format!("joular-bpf: {harmless}\n"),
        // The journal takes each line for a message.
        Format::Journal => harmless.lines().map(|line| format!("<{}>{}\n", level.priority(), line)).collect(),
        Format::Json => {
            let line = Line { time: format!("{now:.3}"), level, message: harmless };
            // It has nothing that JSON does not take.
            serde_json::to_string(&line).unwrap_or_default() + "\n"
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_format_has_the_message_in_lines_of_its_own() {
        let now = Timestamp::from_millisecond(1_772_409_594_007).unwrap();
        let of = |format, level| line(format, level, "loading: \"x\"\nno such file", now);
        assert_eq!(of(Format::Text, Level::Info), "joular-bpf: loading: \"x\"\nno such file\n");
        assert_eq!(of(Format::Journal, Level::Warning), "<4>loading: \"x\"\n<4>no such file\n");
        assert_eq!(
            of(Format::Json, Level::Error),
            "{\"time\":\"2026-03-01T23:59:54.007Z\",\"level\":\"error\",\"message\":\"loading: \\\"x\\\"\\nno such file\"}\n"
        );
    }
}

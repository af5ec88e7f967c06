//! Writes to standard error what the user should know and what is not a result, a line each.
//!
//! People get text. A service's lines go to the journal, with their priority (sd-daemon(3)), or to a log
//! collector, as JSON. There may be texts of targets in a message, so nothing in it acts on a terminal. It may quote a URL or
//! what the user typed, so secrets in these are taken out.

use std::{
    borrow::Cow,
    collections::VecDeque,
    env,
    io::{self, IsTerminal as _, Write as _},
    sync::{
        Arc, LazyLock, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU8, AtomicUsize, Ordering},
    },
};

use jiff::Timestamp;
use joular_data::{
    redact::{CommandLines, Redacted, Redaction},
    text::{count, escape},
};
use serde::Serialize;
use signal_hook::{consts, flag};

/// How a message is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Format {
    Text,
    /// Text after the priority that the journal reads.
    Journal,
    Json,
}

/// How much a message matters, as the journal and log collectors have it; what matters most comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    Error,
    Warning,
    Info,
    Debug,
}

impl Level {
    /// Of syslog(3).
    const fn priority(self) -> u8 {
        match self {
            Self::Error => 3,
            Self::Warning => 4,
            Self::Info => 6,
            Self::Debug => 7,
        }
    }
}

/// Options of our own that name a file with a secret in it, which messages have to name.
const FILES: [&str; 5] = ["--metrics-token", "--metrics-key", "--kubernetes-token", "--token-file", "--user-file"];

/// How messages are redacted, and what is secret in our own command line.
static SECRETS: LazyLock<Mutex<(Redaction, Redacted)>> = LazyLock::new(|| Mutex::new(own(Redaction::default())));

fn own(redaction: Redaction) -> (Redaction, Redacted) {
    of(redaction, env::args_os().map(|word| word.to_string_lossy().into_owned()))
}

fn of(redaction: Redaction, words: impl Iterator<Item = String>) -> (Redaction, Redacted) {
    let mut of_file = false;
    let words: Vec<String> = words
        .filter(|word| {
            let is_file = std::mem::replace(&mut of_file, FILES.contains(&word.as_str()));
            let has_file =
                FILES.iter().any(|option| word.strip_prefix(option).is_some_and(|rest| rest.starts_with('=')));
            !is_file && !has_file && !of_file
        })
        .collect();
    let redacted = redaction.words(&words);
    (redaction, redacted)
}

/// Takes secrets out of all further messages as it says.
pub fn redact_by(redaction: &Redaction) {
    *SECRETS.lock().unwrap_or_else(PoisonError::into_inner) = own(redaction.clone());
}

/// A text without user information of URLs, and without secrets of our own command line.
pub fn without_secrets(text: &str) -> Cow<'_, str> {
    let secrets = SECRETS.lock().unwrap_or_else(PoisonError::into_inner);
    let (redaction, own) = &*secrets;
    if redaction.shown == CommandLines::Full {
        return Cow::Borrowed(text);
    }
    let shown = redaction.urls(text);
    Cow::Owned(own.message(&shown).into_owned())
}

static FORMAT: AtomicU8 = AtomicU8::new(Format::Text as u8);

/// Writes all further messages so.
pub fn set_format(format: Format) {
    FORMAT.store(format as u8, Ordering::Relaxed);
}

/// The least important messages that are written, as [`Level`] counts them. Signals may set it at any moment.
static SHOWN: LazyLock<Arc<AtomicUsize>> = LazyLock::new(|| Arc::new(AtomicUsize::new(Level::Info as usize)));

/// Writes messages of this level and more important ones only. From now on, SIGUSR1 has all of them written, and SIGUSR2
/// goes back to this level.
///
/// # Errors
/// If the signals cannot be listened to.
pub fn show_from(level: Level) -> io::Result<()> {
    SHOWN.store(level as usize, Ordering::Relaxed);
    flag::register_usize(consts::SIGUSR1, Arc::clone(&SHOWN), Level::Debug as usize)?;
    flag::register_usize(consts::SIGUSR2, Arc::clone(&SHOWN), level as usize).map(drop)
}

/// Whether messages of this level are written: for those that cost something to make.
pub fn shows(level: Level) -> bool {
    level as usize <= SHOWN.load(Ordering::Relaxed)
}

/// Whether standard error goes to the journal (systemd.exec(5), `JOURNAL_STREAM`).
pub fn go_to_journal() -> bool {
    let stream = env::var("JOURNAL_STREAM").unwrap_or_default();
    let metadata = rustix::fs::fstat(io::stderr());
    metadata.is_ok_and(|metadata| stream == format!("{}:{}", metadata.st_dev, metadata.st_ino))
}

/// Tells how things go, for who looks for a fault.
pub fn debug(text: &str) {
    write(Level::Debug, &escape(text));
}

/// Tells that something goes on as wanted.
pub fn info(text: &str) {
    write(Level::Info, &escape(text));
}

/// Tells what the user should look at, though the program goes on.
pub fn warn(text: &str) {
    write(Level::Warning, &escape(text));
}

/// Says why the program ends, or does not do what it was told. The text may have several lines, and is harmless.
pub fn error(harmless: &str) {
    write(Level::Error, harmless);
}

fn write(level: Level, harmless: &str) {
    if !shows(level) {
        return;
    }
    let format = FORMAT.load(Ordering::Relaxed);
    let format = [Format::Journal, Format::Json].into_iter().find(|known| *known as u8 == format);
    let line = line(format.unwrap_or(Format::Text), level, &without_secrets(harmless), Timestamp::now());
    if let Some(waiting) = lock_waiting().as_mut() {
        return waiting.push(line);
    }
    // Nobody may be listening any more, which is not a reason to end.
    let _ = io::stderr().lock().write_all(line.as_bytes());
}

/// Lines that wait while something else has the terminal.
static WAITING: Mutex<Option<Waiting>> = Mutex::new(None);

fn lock_waiting() -> MutexGuard<'static, Option<Waiting>> {
    WAITING.lock().unwrap_or_else(PoisonError::into_inner)
}

#[derive(Default)]
struct Waiting {
    lines: VecDeque<String>,
    /// Those that came, whether they are still there or not.
    count: u64,
}

/// Lines that wait at most: the last ones.
pub const MAX_WAITING: usize = 100;

impl Waiting {
    fn push(&mut self, line: String) {
        self.count += 1;
        self.lines.push_back(line);
        if self.lines.len() > MAX_WAITING {
            self.lines.pop_front();
        }
    }
}

/// Messages wait as long as it lives if they would go to a terminal, and are written at its end.
pub struct Held(());

impl Held {
    /// From now on.
    pub fn hold() -> Self {
        if io::stderr().is_terminal() {
            *lock_waiting() = Some(Waiting::default());
        }
        Self(())
    }

    /// How many wait or waited, and the last one without the program's name.
    #[allow(clippy::unused_self, reason = "only while they are held")]
    pub fn last(&self) -> (u64, Option<String>) {
        let waiting = lock_waiting();
        let last = waiting.as_ref().and_then(|waiting| waiting.lines.back());
        let count = waiting.as_ref().map_or(0, |waiting| waiting.count);
        (count, last.map(|line| line.trim_start_matches("joular-bpf: ").trim_end().to_owned()))
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        let waiting = lock_waiting().take().unwrap_or_default();
        let left_out = waiting.count.saturating_sub(waiting.lines.len() as u64);
        let first =
            (left_out > 0).then(|| format!("joular-bpf: {} earlier are not shown\n", count(left_out, "message")));
        let text: String = first.into_iter().chain(waiting.lines).collect();
        let _ = io::stderr().lock().write_all(text.as_bytes());
    }
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
    fn urls_in_messages_have_no_user_information_unless_all_is_shown() {
        let text = "pushing to https://u:hunter2@h/: refused: see token: /etc/token";
        assert_eq!(without_secrets(text), "pushing to https://[redacted]@h/: refused: see token: /etc/token");
        let words =
            ["joular-bpf", "--otlp", "http://u:hunter2@h", "--metrics-token", "/etc/joular/token", "--token=swordfish"];
        let (_, own) = of(Redaction::default(), words.into_iter().map(ToOwned::to_owned));
        assert_eq!(
            own.message("reading /etc/joular/token: swordfish, hunter2"),
            "reading /etc/joular/token: [redacted], [redacted]"
        );
    }

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

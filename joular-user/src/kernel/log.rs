//! Shows the programs' own log when it is asked for.

use std::io::{self, Write as _};

use log::{Log, Metadata, Record};

/// One line per entry on standard error.
#[derive(Clone, Copy, Debug)]
pub(super) struct LogToStderr;

impl Log for LogToStderr {
    fn enabled(&self, _metadata: &Metadata<'_>) -> bool {
        true
    }

    fn log(&self, record: &Record<'_>) {
        // Nobody may be listening any more.
        let _ = writeln!(io::stderr(), "joular-bpf: kernel: {}", record.args());
    }

    fn flush(&self) {}
}

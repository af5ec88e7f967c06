//! The command line as it is typed: flags are parsed here and nothing is
//! decided. What they mean together is [`crate::config`]'s.

pub mod exit;
pub mod flags;
pub mod part_flags;
pub mod picture_flags;
pub mod subcommands;

use std::ffi::OsString;

use clap::Parser;

pub use self::{
    exit::Exit,
    flags::Flags,
    part_flags::PartFlags,
    picture_flags::{FlamegraphFlags, HtmlFlags},
    subcommands::{AuditFlags, CalibrateFlags, DoctorFlags, ReattributeFlags},
};

/// `joular-bpf` and its arguments.
#[derive(Clone, Debug, Parser)]
#[command(
    name = "joular-bpf",
    version,
    about = "Which Java method and call branch burns the joules: an eBPF energy profiler for JVMs",
    long_about = "Finds JVMs that run or are yet to start, with no agent, JVM flag or restart, and says once a \
                  second where the joules go: per process, thread, method and call branch.",
    after_help = "Example: sudo joular-bpf --comm java --duration 60s",
    after_long_help = long_epilogue(),
    args_conflicts_with_subcommands = true,
    max_term_width = 100
)]
pub struct Cli {
    #[command(subcommand)]
    pub command: Option<Command>,
    #[command(flatten)]
    pub flags: Flags,
}

/// What else it does than record.
#[derive(Clone, Debug, clap::Subcommand)]
pub enum Command {
    /// Check privileges, kernel features, energy counters and JVMs beforehand
    ///
    /// Runs every check and says for each that fails what to do about it. Exits
    /// with the code that a recording would.
    #[command(after_help = "Example: sudo joular-bpf doctor")]
    Doctor(DoctorFlags),

    /// Draw where the energy of a data set went: a flame graph in joules, as SVG
    ///
    /// Needs no privileges. Widths are energy, colours are kinds of code; with --diff it shows what changed.
    #[command(after_help = "Example: joular-bpf flamegraph joular-out --output shop.svg --process 'com.acme.*'")]
    Flamegraph(FlamegraphFlags),

    /// Write one page about a data set that a browser shows, without a network
    ///
    /// Needs no privileges. Flame graph, power over time, thread activity, tables, audit and quality.
    #[command(after_help = "Example: joular-bpf html joular-out --output shop.html")]
    Html(HtmlFlags),

    /// Attribute a recorded data set again, under another policy
    ///
    /// Needs no privileges. The result is what the run would have written with these settings.
    #[command(after_help = "Example: joular-bpf reattribute joular-out --idle active --output joular-active")]
    Reattribute(ReattributeFlags),

    /// Check that every microjoule of a data set is where it belongs
    ///
    /// Needs no privileges: sums are checked and every figure is derived again from the files alone.
    #[command(after_help = "Example: joular-bpf audit joular-out")]
    Audit(AuditFlags),
    /// Measure what this machine draws when idle and what joular-bpf itself costs on it
    ///
    /// Leave the machine alone meanwhile: it is refused if too much else runs. Recordings
    /// then set the idle power apart and take joular-bpf's own cost off whom it interrupted.
    /// Where energy is modelled there is no idle power to measure, and costs alone are.
    #[command(after_help = "Example: sudo joular-bpf calibrate")]
    Calibrate(CalibrateFlags),
    /// Show where joules can come from on this machine
    ///
    /// Lists each energy source: what it measures, whether it works here or why not, and its domains; marks
    /// those that a recording would use.
    #[command(after_help = "Example: sudo joular-bpf sources")]
    Sources(DoctorFlags),
}

/// Parses arguments, the program's own name first.
///
/// # Errors
/// clap's, which knows how to print itself (help and version included).
pub fn parse(arguments: impl IntoIterator<Item = OsString>) -> Result<Cli, clap::Error> {
    Cli::try_parse_from(arguments)
}

const EXAMPLES: &str = "\
Examples:
  Every JVM of the host for a minute, tables in ./joular-out:
    sudo joular-bpf --comm java --duration 60s
  Two services by name pattern, only the data set:
    sudo joular-bpf --comm 'orders-*' billing --output /var/lib/joular --quiet
  One process, record the event stream and interpret it elsewhere, without root:
    sudo joular-bpf --pid 4242 --record run.jrec
    joular-bpf --replay run.jrec --idle spread
  In a virtual machine whose host writes its power to a file:
    sudo joular-bpf --comm java --energy watts --energy-file /mnt/host/power

Configuration file (--config FILE): TOML with the long flags as keys, which flags override:
    comm = [\"java\"]
    interval = \"2s\"
    frequency = 199
    output = \"/var/lib/joular\"
";

fn long_epilogue() -> String {
    let codes: Vec<String> = Exit::ALL.iter().map(|exit| format!("  {:>3}  {}", exit.code(), exit.meaning())).collect();
    format!("{EXAMPLES}\nExit codes:\n{}", codes.join("\n"))
}

#[cfg(test)]
mod tests;

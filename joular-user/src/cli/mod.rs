//! The command line as it is typed: flags are parsed here and nothing is
//! decided. What they mean together is [`crate::config`]'s.

pub mod compact_flags;
pub mod diff_flags;
pub mod exit;
pub mod export_flags;
pub mod flags;
pub mod pages;
pub mod part_flags;
pub mod picture_flags;
pub mod report_flags;
pub mod subcommands;

use std::ffi::OsString;

use clap::Parser;

pub use self::{
    compact_flags::CompactFlags,
    diff_flags::DiffFlags,
    exit::Exit,
    export_flags::ExportFlags,
    flags::Flags,
    pages::{CompletionsFlags, ManFlags},
    part_flags::PartFlags,
    picture_flags::{FlamegraphFlags, HtmlFlags},
    report_flags::ReportFlags,
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
#[allow(clippy::large_enum_variant, reason = "there is one, once")]
pub enum Command {
    /// Check privileges, kernel features, energy counters and JVMs beforehand
    ///
    /// Runs every check and says for each that fails what to do about it. Exits
    /// with the code that a recording would.
    #[command(after_help = "Example: sudo joular-bpf doctor")]
    Doctor(DoctorFlags),

    /// Show where joules can come from on this machine
    ///
    /// Lists each energy source: what it measures, whether it works here or why not, and its domains; marks
    /// those that a recording would use.
    #[command(after_help = "Example: sudo joular-bpf sources")]
    Sources(DoctorFlags),

    /// Measure what this machine draws when idle and what joular-bpf itself costs on it
    ///
    /// Leave the machine alone meanwhile: it is refused if too much else runs. Recordings
    /// then set the idle power apart and take joular-bpf's own cost off whom it interrupted.
    /// Where energy is modelled there is no idle power to measure, and costs alone are.
    #[command(after_help = "Example: sudo joular-bpf calibrate")]
    Calibrate(CalibrateFlags),

    /// Show where the joules went: tables by method, class, thread, process, …
    ///
    /// Needs no privileges. Energy, power, share and 95 % interval of each row, alone (self) and with
    /// what it called (total); the VM tax; where the machine's energy went, to the microjoule.
    #[command(after_help = "Example: joular-bpf report joular-out --by method,process --app com.acme")]
    Report(ReportFlags),

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

    /// Compare two data sets: what changed, by how much, and is it more than noise
    ///
    /// Needs no privileges. Says for the total and each method what it took in A and in B, the change with its
    /// 95 % interval, and a verdict. docs/comparing.md says how.
    #[command(after_help = "Example: joular-bpf diff before after --work-a 10000 --work-b 12000 --fail-above 5%")]
    Diff(DiffFlags),

    /// Write a data set for another tool: pprof, speedscope, Perfetto, JoularJX and others
    ///
    /// Needs no privileges. Energies in the export sum to those of the data set, to the microjoule.
    #[command(after_help = "Example: joular-bpf export joular-out --format pprof --output energy.pb.gz")]
    Export(ExportFlags),

    /// Merge the small files of a long run, or of many hosts, into few large ones
    ///
    /// Needs no privileges. All rows stay as they are, only stacks that are described again are described
    /// once. Interrupt it at any moment: the data set is the old one or the new one, whole.
    #[command(after_help = "Example: joular-bpf compact joular-out")]
    Compact(CompactFlags),

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

    /// Write completions for a shell to standard output
    #[command(after_help = "Example: joular-bpf completions bash > /etc/bash_completion.d/joular-bpf")]
    Completions(CompletionsFlags),

    /// Write man pages: one to standard output, or all into a directory
    #[command(after_help = "Example: joular-bpf man --output /usr/local/share/man/man1")]
    Man(ManFlags),
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

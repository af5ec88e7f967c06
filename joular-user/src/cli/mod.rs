//! Parses the command line as it is typed, and decides nothing. [`crate::config`] decides what
//! flags mean together.

pub mod agent_flags;
pub mod baseline_flags;
mod brief;
pub mod compact_flags;
pub mod diff_flags;
pub mod erase_flags;
pub mod exit;
mod experiment_flags;
pub mod expire_flags;
pub mod export_flags;
pub mod flags;
pub mod footprint_flags;
mod heading;
mod hints;
mod load_flags;
pub mod mcp_flags;
pub mod merge;
pub mod pages;
mod part_flags;
pub mod picture_flags;
pub mod redaction_flags;
pub mod refused;
pub mod report_flags;
pub mod requests_flags;
pub mod rollup_flags;
pub mod run_flags;
pub mod serve_flags;
pub mod service_rule;
pub mod ship_flags;
pub mod subcommands;
pub mod support_flags;
pub mod sweep_flags;
pub mod tier_flags;
pub mod top_flags;
pub mod validate_flags;
mod written;

use std::ffi::OsString;

use clap::{CommandFactory as _, FromArgMatches as _, Parser};

pub use self::{
    agent_flags::{AgentFlags, LogFormat, LogLevel},
    baseline_flags::{BaselineCheckFlags, BaselineCommand, BaselineFlags, BaselineSaveFlags},
    compact_flags::CompactFlags,
    diff_flags::DiffFlags,
    erase_flags::EraseFlags,
    exit::Exit,
    experiment_flags::ExperimentFlags,
    expire_flags::ExpireFlags,
    export_flags::ExportFlags,
    flags::Flags,
    footprint_flags::FootprintFlags,
    load_flags::LoadFlags,
    mcp_flags::McpFlags,
    pages::{CompletionsFlags, ManFlags},
    part_flags::PartFlags,
    picture_flags::{FlamegraphFlags, HtmlFlags},
    redaction_flags::{CommandLineFlags, RedactFlags, RedactRuleFlags},
    report_flags::ReportFlags,
    requests_flags::RequestsFlags,
    rollup_flags::RollupFlags,
    run_flags::RunFlags,
    serve_flags::ServeFlags,
    service_rule::ServiceRuleFlags,
    ship_flags::ShipFlags,
    subcommands::{AuditFlags, CalibrateFlags, DoctorFlags, JmhFlags, ReattributeFlags, RunsFlags},
    support_flags::SupportFlags,
    sweep_flags::SweepFlags,
    tier_flags::TierFlags,
    top_flags::TopFlags,
    validate_flags::ValidateFlags,
};

/// Directory of the data set that a recording writes and others read, unless another one is named.
pub const DATA_SET: &str = "joular-out";

/// `joular-bpf` and its arguments.
#[derive(Clone, Debug, Parser)]
#[command(
    name = "joular-bpf",
    version,
    about = "An eBPF energy profiler: which Java method and call branch uses the joules",
    long_about = "Records how many joules each process, thread, method and call branch uses. It finds JVMs that run \
                  already and those that start later, without an agent, a JVM flag or a restart.",
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

/// Everything but a recording.
#[derive(Clone, Debug, clap::Subcommand)]
#[allow(clippy::large_enum_variant, reason = "the program has one value of it")]
pub enum Command {
    /// Record processes: the same as joular-bpf with these flags and no subcommand
    #[command(after_help = "Example: sudo joular-bpf record --jvms -d 60s")]
    Record(Flags),

    /// Watch where the joules go, on the whole terminal
    ///
    /// Shows processes, threads, methods and branches with their watts and joules, which can be sorted, filtered and gone
    /// into. ? shows the keys, q leaves. No data set is written unless --output is given. docs/top.md explains the view.
    #[command(after_help = "Examples: sudo joular-bpf top\n          joular-bpf top --replay run.jrec")]
    Top(TopFlags),

    /// Run a command and report the energy it used
    ///
    /// The command and all that it starts are recorded from its first instruction to its end. It runs as the user
    /// who called sudo, with the same terminal, directory and limits. Its output is left alone: totals come on
    /// standard error at the end. The exit code is the command's, or 128 and the number of the signal that ended it.
    ///
    /// With --repeat, --variant or --parameter the command is run many times, and what its variants need is compared.
    /// With --output this can be interrupted: the same command line goes on with it.
    #[command(after_help = "Examples: sudo joular-bpf run -- java -jar shop.jar\n          \
                            sudo joular-bpf run --repeat 10 --parameter gc=Serial,G1 --output gc -- java -XX:+Use{gc}GC -jar shop.jar")]
    Run(RunFlags),

    /// Run a command with many values of a parameter and report how its energy grows
    ///
    /// Fits models of growth (constant, log n, n, n log n, n², n³, 2ⁿ, a power of n) to the joules of each method and of
    /// the whole command. docs/growth.md explains how one is chosen, and what that cannot know.
    #[command(
        after_help = "Example: sudo joular-bpf sweep --parameter n=1000..1000000:log:12 -- java -jar sort.jar {n}"
    )]
    Sweep(SweepFlags),

    /// Check privileges, kernel features, energy counters and JVMs before a recording
    ///
    /// Runs every check and says what to do about each one that fails. The exit code is the one
    /// that a recording would end with.
    #[command(after_help = "Example: sudo joular-bpf doctor")]
    Doctor(DoctorFlags),

    /// Record as a service, as a configuration file says
    ///
    /// Records JVMs, unless the file names other targets, until it is stopped, and keeps the last 48 hours in
    /// /var/lib/joular-bpf/data. SIGHUP makes it read the file again. systemd is told when it is ready, and how it
    /// goes. docs/agent.md has all keys of the file.
    #[command(after_help = "Example: joular-bpf agent --check")]
    Agent(AgentFlags),

    /// Collect what developers need to find a fault, as a text without secrets
    ///
    /// Version, configuration, checks of doctor, energy sources, the service's processes with their limits, its own
    /// counters, what it recorded and lost in the last hour, and the end of its log. Read it before you send it: names
    /// of hosts, processes and files are in it.
    #[command(after_help = "Example: sudo joular-bpf support --output support.txt")]
    Support(SupportFlags),

    /// List the energy sources of this machine
    ///
    /// Says of each energy source what it measures, whether it works here, and which domains it has.
    /// Sources that a recording would use are marked.
    #[command(after_help = "Example: sudo joular-bpf sources")]
    Sources(DoctorFlags),

    /// Measure the idle power of this machine and the cost of joular-bpf on it
    ///
    /// Leave the machine alone meanwhile: the measurement is refused if too much else runs. Later
    /// recordings set the idle power apart, and move the cost of joular-bpf from the threads that it
    /// interrupts to joular-bpf itself. Where energy is modelled, only the cost is measured.
    #[command(after_help = "Example: sudo joular-bpf calibrate")]
    Calibrate(CalibrateFlags),

    /// Show tables of joules by method, class, thread, process, …
    ///
    /// Each row has its energy, power, share and 95 % interval, by itself (self) and with what it
    /// called (total). A report also has the VM tax of each JVM and an audit of all energy, to the
    /// microjoule. Needs no privileges.
    #[command(after_help = "Example: joular-bpf report joular-out --by method,process --app com.acme")]
    Report(ReportFlags),

    /// Count an application's requests for joules per request
    ///
    /// Asks the application for its counters, as Prometheus does, beside a recording, and writes how many requests there
    /// were of each route and when. `report --requests FILE` divides by them. docs/handlers.md explains it. Needs no
    /// privileges.
    #[command(
        after_help = "Example: joular-bpf requests --url http://127.0.0.1:8080/actuator/prometheus --output counts.csv"
    )]
    Requests(RequestsFlags),

    /// List the runs of a data set: when they were, what they cost, how they ended
    ///
    /// A recording adds a run to its directory, and commands sum all runs unless --run names some. --run last is the
    /// recording that began last. Needs no privileges.
    #[command(after_help = "Example: joular-bpf runs joular-out")]
    Runs(RunsFlags),

    /// Draw a flame graph in joules, as SVG or as a page
    ///
    /// Widths are energy and colours are kinds of code. With --diff, colours show what changed. A file that ends in
    /// .html is one page that can be searched, zoomed and turned over. Needs no privileges.
    #[command(after_help = "Example: joular-bpf flamegraph joular-out --output shop.svg --process 'com.acme.*'")]
    Flamegraph(FlamegraphFlags),

    /// Write a web page about a data set: one file that needs no network
    ///
    /// The page has a flame graph, power over time and by method, thread activity, tables, the audit and the quality
    /// of stacks. --jfr lays what JDK Flight Recorder recorded beside power. Needs no privileges.
    #[command(after_help = "Example: joular-bpf html joular-out --output shop.html --jfr shop.jfr")]
    Html(HtmlFlags),

    /// Serve a data set to browsers and programs
    ///
    /// Pages and a JSON API with services, methods, flame graphs and comparisons, for a selection of time, services, hosts
    /// and more, which links carry with them. It reads only, follows a recording that goes on, and needs no privileges.
    /// docs/serve.md has the paths and what is protected.
    #[command(after_help = "Example: joular-bpf serve joular-out")]
    Serve(ServeFlags),

    /// Answer an assistant's questions about a data set (Model Context Protocol)
    ///
    /// Started by a program that calls tools (MCP over standard input and output): services, top methods, call paths, callers,
    /// comparisons with verdicts, the audit, and what names mean. It reads only, reaches no other data set, and needs no
    /// privileges. docs/mcp.md has the tools and how to add it to a client.
    #[command(after_help = "Example: joular-bpf mcp joular-out")]
    Mcp(McpFlags),

    /// Compare two data sets: what changed, by how much, and whether it is more than noise
    ///
    /// Shows for the total and each row the figure in A and in B, the change with its 95 % interval,
    /// and a verdict. docs/comparing.md explains the statistics. Needs no privileges.
    #[command(after_help = "Example: joular-bpf diff before after --per run --fail-above 5%")]
    Diff(DiffFlags),

    /// Keep what a comparison needs of a data set in a small file, as a gate for CI
    ///
    /// A repository can hold the file, and a CI job can check a change against it. docs/ci.md has complete jobs.
    /// Needs no privileges.
    #[command(after_help = "Example: joular-bpf baseline check energy-baseline.json shop-run --fail-above 5%")]
    Baseline(BaselineFlags),

    /// Write a data set for another tool: pprof, speedscope, Perfetto, JFR and others
    ///
    /// Energies in the export sum to those of the data set, to the microjoule. Needs no privileges.
    #[command(after_help = "Example: joular-bpf export joular-out --format pprof --output energy.pb.gz")]
    Export(ExportFlags),

    /// Merge small files into a few large ones; in a fleet's place, sum runs by service
    ///
    /// Of a directory, all rows stay as they are, except that a stack that a run describes several times is kept once.
    /// It may be interrupted at any moment: the directory holds either the old data set or the new
    /// one, complete. Of a place that hosts ship to, it makes data sets of five minutes and of an hour in the folders
    /// minutes and hourly; repeat it every quarter of an hour. Needs no privileges.
    #[command(after_help = "Examples:\n  joular-bpf compact joular-out\n  joular-bpf compact s3://fleet/energy")]
    Compact(CompactFlags),

    /// Sum windows to longer ones, such as a minute, for data sets of a fleet
    ///
    /// All sums stay the same, to the microjoule. Call paths are summed by category of thread, and
    /// energy that no sample hit is shared out as reports do it. The result cannot be attributed again.
    /// Needs no privileges.
    #[command(after_help = "Example: joular-bpf rollup joular-out --output joular-minutes")]
    Rollup(RollupFlags),

    /// Bring runs that have ended to a bucket or another directory, as windows of a minute
    ///
    /// It may be repeated, interrupted, and run beside a recording or another one: each file arrives once. A
    /// recording does the same by itself with --ship. Needs no privileges.
    #[command(after_help = "Example: joular-bpf ship joular-out s3://fleet/energy")]
    Ship(ShipFlags),

    /// Remove old runs from a place that hosts ship to
    ///
    /// A run goes whole. It may be interrupted and repeated. A directory of one host bounds itself with --keep.
    /// Needs no privileges.
    #[command(after_help = "Example: joular-bpf expire s3://fleet/energy --keep-days 30")]
    Expire(ExpireFlags),

    /// Erase a service, a pod or a host from a place that hosts ship to
    ///
    /// What belongs to erased processes becomes that of one process, [erased], so that every sum stays what it was. It is
    /// recorded at the place, and compact goes by the record. It may be interrupted and repeated. docs/fleet/erasure.md says
    /// what stays. Needs no privileges.
    #[command(after_help = "Examples:\n  joular-bpf erase s3://fleet/energy --service checkout --dry-run\n  \
                            joular-bpf erase s3://fleet/energy --again")]
    Erase(EraseFlags),

    /// Load the runs of a fleet into ClickHouse, each exactly once
    ///
    /// Takes the bundles that hosts ship to a place, and makes tables by service and hour of them, for dashboards and alerts.
    /// It may be repeated and interrupted. docs/fleet/clickhouse.md has the steps. Needs no privileges.
    #[command(after_help = "Examples: joular-bpf load --schema --keep 30d | clickhouse client
          joular-bpf load s3://fleet/energy https://clickhouse.example:8443 --since 48h")]
    Load(LoadFlags),

    /// Attribute a recorded data set again, under another policy
    ///
    /// The result is what the run would have written with these settings. Needs no privileges.
    #[command(after_help = "Example: joular-bpf reattribute joular-out --idle active --output joular-active")]
    Reattribute(ReattributeFlags),

    /// Check that every microjoule of a data set is accounted for
    ///
    /// Checks all sums and derives every figure again from the files alone. Needs no privileges.
    #[command(after_help = "Example: joular-bpf audit joular-out")]
    Audit(AuditFlags),

    /// Compare a data set with a wattmeter's log
    ///
    /// Finds how far the meter's clock is ahead, fits meter = offset + gain × joular-bpf, and prints both
    /// with 95 % intervals, the error of the data set's power, and what that means. docs/trust.md has the
    /// log's format and how to measure. Needs no privileges, but to record with --protocol.
    #[command(after_help = "Examples: joular-bpf validate joular-out --reference meter.csv
          sudo joular-bpf validate protocol-out --protocol --reference meter.csv")]
    Validate(ValidateFlags),

    /// Show joules per operation of JMH benchmarks
    ///
    /// Takes the file that JMH wrote with -rf json, and a data set of the same run. Each fork is a replicate. No benchmark
    /// needs to change. docs/jmh.md explains the figures. Needs no privileges.
    #[command(
        after_help = "Example: sudo joular-bpf run --interval 100ms --output energy -- java -jar benchmarks.jar -rf json\n         \
                            joular-bpf jmh energy jmh-result.json"
    )]
    Jmh(JmhFlags),

    /// Write completions for a shell to standard output
    #[command(after_help = "Example: joular-bpf completions bash > /etc/bash_completion.d/joular-bpf")]
    Completions(CompletionsFlags),

    /// Write man pages: one to standard output, or all into a directory
    #[command(after_help = "Example: joular-bpf man --output /usr/local/share/man/man1")]
    Man(ManFlags),
}

/// The command line as all have it who show it: helps, man pages, completions and tests.
pub fn definition() -> clap::Command {
    refused::hidden(Cli::command())
}

/// Parses arguments, the program's own name first.
///
/// # Errors
/// clap's, which knows how to print itself (help and version included).
pub fn parse(arguments: impl IntoIterator<Item = OsString>) -> Result<Cli, clap::Error> {
    let arguments: Vec<OsString> = arguments.into_iter().collect();
    let matches = brief::with_short_help(definition()).try_get_matches_from(&arguments);
    let cli = matches.and_then(|matches| Cli::from_arg_matches(&matches));
    cli.map_err(|error| hints::hinted(error, &arguments))
}

const EXAMPLES: &str = "\
Examples:
  Every JVM of the host for a minute, data set in ./joular-out:
    sudo joular-bpf --comm java --duration 60s
  Two services by name pattern, without output to the screen:
    sudo joular-bpf --comm 'orders-*' billing --output /var/lib/joular --quiet
  One process; record its events, and interpret them elsewhere without root:
    sudo joular-bpf --pid 4242 --record run.jrec
    joular-bpf --replay run.jrec --idle spread
  In a virtual machine whose host reports power in a file:
    sudo joular-bpf --comm java --energy watts --energy-file /mnt/host/power

Configuration file (--config FILE): TOML with the long flags as keys. Flags given on the command line
override it:
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

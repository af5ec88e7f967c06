//! Measures what profiling costs, as figures that another machine can repeat. Each comes with its
//! number of measurements and their spread; docs/measured/costs.md gets all.

mod figure;
mod fleet;
mod forks;
mod gap_load;
mod idle;
mod machine;
mod own_time;
mod programs;
mod reports;
mod resources;
mod samples;
mod servers;
mod slowdown;
mod stacks;
mod switch_load;

use std::{fs, time::Duration};

use anyhow::{Context as _, Result};
use clap::{Args, Subcommand, ValueEnum};
use joular_tests::paths;

use self::slowdown::Profiling;
use crate::{build, setup, shell};

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Part {
    Slowdown,
    Idle,
    Forks,
    Resources,
    Servers,
    Programs,
    Samples,
    Stacks,
    Reports,
    Fleet,
}

#[derive(Args)]
pub struct Options {
    /// Only this part, shown but not written.
    #[arg(long)]
    only: Option<Part>,
    /// Phases with the profiler, each between two without.
    #[arg(long, default_value_t = 40)]
    pairs: u32,
    /// Length of a phase in milliseconds.
    #[arg(long, default_value_t = 2000)]
    phase_ms: u64,
}

/// What runs while something is measured: this program again.
#[derive(Subcommand)]
pub enum Load {
    /// Switches threads as fast as it can.
    #[command(hide = true)]
    SwitchLoad { seconds: u64 },
    /// Looks at the clock without end on one CPU.
    #[command(hide = true)]
    GapLoad { cpu: usize, seconds: u64 },
}

impl Load {
    pub fn run(self) -> Result<()> {
        match self {
            Self::SwitchLoad { seconds } => switch_load::run(seconds),
            Self::GapLoad { cpu, seconds } => gap_load::run(cpu, seconds),
        }
    }
}

pub fn run(options: &Options) -> Result<()> {
    setup::jdk()?;
    setup::jdks()?;
    let document = paths::root().join("docs/measured/costs.md");
    if !shell::is_root() {
        return as_root(options, &document);
    }
    // As root, either we were started by ourselves and it is built, or root develops here.
    if std::env::var_os("JOULAR_BPF").is_none() {
        build::build(build::Profile::Release)?;
        reports::build()?;
    }
    let phase = Duration::from_millis(options.phase_ms);
    let mut figures = Vec::new();
    for part in Part::value_variants().iter().filter(|part| options.only.is_none_or(|only| only == **part)) {
        figures.extend(match part {
            Part::Slowdown => {
                let with = |(frequency, alloc)| slowdown::measure(Profiling { frequency, alloc }, options.pairs, phase);
                [(99, false), (999, false), (99, true)].into_iter().map(with).collect::<Result<Vec<_>>>()?
            }
            Part::Idle => idle::measure()?,
            Part::Forks => forks::measure()?,
            Part::Resources => resources::measure()?,
            Part::Servers => servers::measure()?,
            Part::Programs => programs::measure()?,
            Part::Samples => samples::measure()?,
            Part::Stacks => stacks::measure()?,
            Part::Reports => reports::measure(&paths::joular_bpf())?,
            Part::Fleet => fleet::measure(&paths::joular_bpf())?,
        });
    }
    for figure in &figures {
        println!("{figure}");
    }
    if options.only.is_some() {
        return Ok(());
    }
    if let Some(docs) = document.parent() {
        fs::create_dir_all(docs)?;
    }
    fs::write(&document, figure::document(&machine::describe()?, &figures))
        .with_context(|| format!("writing {}", document.display()))?;
    println!("\nwritten to docs/measured/costs.md");
    Ok(())
}

/// Builds as the developer, then measures as root.
fn as_root(options: &Options, document: &std::path::Path) -> Result<()> {
    let program = build::build(build::Profile::Release)?;
    reports::build()?;
    // Made here, so that the file stays the developer's.
    fs::create_dir_all(document.parent().context("docs")?)?;
    fs::OpenOptions::new().create(true).append(true).open(document)?;
    let mut command = shell::as_root("env", &[]);
    command.arg(format!("JOULAR_BPF={}", program.display())).arg(std::env::current_exe()?);
    command.args(["bench", "--pairs", &options.pairs.to_string(), "--phase-ms", &options.phase_ms.to_string()]);
    if let Some(part) = options.only {
        command.args(["--only", &format!("{part:?}").to_lowercase()]);
    }
    shell::run(&mut command)
}

//! Runs development tasks: `cargo xtask TASK`. See `cargo xtask --help`.

#![allow(clippy::print_stdout, reason = "tasks talk to the developer who started them")]

mod bench;
mod build;
mod demo;
mod dist;
mod pictures;
mod release;
mod setup;
mod shell;
mod simulate;
mod target;
mod test;
mod tidy;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask", about = "Development tasks of joular-bpf")]
struct Arguments {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Gets everything a build and the quick tests need; does nothing twice.
    Setup(setup::Options),
    /// Builds joular-bpf, eBPF programs included.
    Build(build::Options),
    /// Builds joular-bpf and runs it as root: `cargo xtask run -- --comm java`.
    Run {
        #[arg(last = true)]
        arguments: Vec<String>,
    },
    /// Profiles a bundled Java program for ten seconds and reads the data set.
    Demo,
    /// Runs the checks that must pass before a merge.
    Test(test::Options),
    /// Measures what profiling costs; writes docs/measured/costs.md.
    Bench(bench::Options),
    /// Runs the simulations that docs/measured/statistics.md names, and prints their figures.
    Simulate(simulate::Options),
    /// Checks sizes of files, and that imports follow the data path.
    Tidy,
    /// Draws the pictures of the README from a real run.
    Pictures,
    #[command(flatten)]
    Packages(release::Task),
    #[command(flatten)]
    Load(bench::Load),
}

fn main() -> ExitCode {
    let Err(error) = run(Arguments::parse().task) else { return ExitCode::SUCCESS };
    eprintln!("error: {error:#}");
    ExitCode::FAILURE
}

fn run(task: Task) -> anyhow::Result<()> {
    match task {
        Task::Setup(options) => setup::all(options),
        Task::Build(options) => build::for_target(options),
        Task::Run { arguments } => build::run(&arguments),
        Task::Demo => demo::run(),
        Task::Test(options) => test::run(options),
        Task::Bench(options) => bench::run(&options),
        Task::Simulate(options) => simulate::run(&options),
        Task::Tidy => tidy::run(),
        Task::Pictures => pictures::run(),
        Task::Packages(task) => task.run(),
        Task::Load(load) => load.run(),
    }
}

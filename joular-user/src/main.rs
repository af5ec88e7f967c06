//! joular-bpf: which Java method and which call branch burns the joules.

use std::{env, io, process::ExitCode};

use anyhow::anyhow;
use joular_user::{
    cli::{self, Cli, Command, DoctorFlags, Exit, Flags},
    config::{self, Config},
    doctor, pipeline,
    procs::attach,
};

fn main() -> ExitCode {
    // Re-executed by itself to enter a target's namespaces; see procs::attach.
    if env::args_os().nth(1).is_some_and(|argument| argument == attach::HELPER_ARGUMENT) {
        return attach::run_helper(&env::args_os().skip(1).collect::<Vec<_>>());
    }
    let cli = match cli::parse(env::args_os()) {
        Ok(cli) => cli,
        Err(error) => {
            // Help and version are "errors" that succeed.
            let code = if error.use_stderr() { Exit::Usage } else { Exit::Success };
            let _ = error.print();
            return code.into();
        }
    };
    match run(cli) {
        Ok(exit) => exit.into(),
        Err(failure) => report(&failure),
    }
}

fn run(cli: Cli) -> anyhow::Result<Exit> {
    match cli.command {
        Some(Command::Doctor(flags)) => check(flags),
        None => record(cli.flags),
    }
}

fn record(flags: Flags) -> anyhow::Result<Exit> {
    Ok(pipeline::run(&Config::load(flags)?)?)
}

fn check(flags: DoctorFlags) -> anyhow::Result<Exit> {
    let json = flags.json;
    let proc_root = flags.proc_root.clone().unwrap_or_else(|| "/proc".into());
    let options = config::energy_options(flags.into())?;
    let checked = doctor::run(&mut io::stdout().lock(), &proc_root, &options, json);
    checked.map_err(|error| anyhow!("writing the checks to standard output: {error}"))
}

fn report(error: &anyhow::Error) -> ExitCode {
    pipeline::notice(&error.to_string());
    let exit = match (error.downcast_ref::<pipeline::Failure>(), error.downcast_ref::<config::ConfigError>()) {
        (Some(failure), _) => failure.exit(),
        (None, Some(_)) => Exit::Usage,
        (None, None) => Exit::Failure,
    };
    exit.into()
}

//! Runs joular-bpf, which shows which Java method and which call branch burns the joules.

#[cfg(any(test, target_env = "musl"))]
mod static_program;

use std::{env, process::ExitCode};

use joular_data::caught;
use joular_user::{
    calibration::trainer,
    cli::{self, Exit},
    commands,
    experiment::{self, protocol},
    messages,
    privileges::lent,
    procs::attach,
};

fn main() -> ExitCode {
    #[cfg(target_env = "musl")]
    static_program::hold_little_memory();
    caught::hush();
    // Before anything is looked at that may be anyone's.
    if let Err(error) = lent::lay_aside() {
        messages::error(&format!("giving up rights that are not the user's: {error}"));
        return Exit::Failure.into();
    }
    // Re-executed by itself to enter a target's namespaces; see procs::attach.
    if env::args_os().nth(1).is_some_and(|argument| argument == attach::HELPER_ARGUMENT) {
        return attach::run_helper(&env::args_os().skip(1).collect::<Vec<_>>());
    }
    // And to be the load under which a calibration measures.
    if env::args_os().nth(1).is_some_and(|argument| argument == trainer::TRAINER_ARGUMENT) {
        return trainer::run_trainer(&env::args_os().skip(1).collect::<Vec<_>>());
    }
    // And to wait for the recording of a command, which it then becomes.
    if env::args_os().nth(1).is_some_and(|argument| argument == experiment::LAUNCHER_ARGUMENT) {
        return experiment::run_launcher(&env::args_os().skip(1).collect::<Vec<_>>());
    }
    // And to be what the validation protocol measures.
    if env::args_os().nth(1).is_some_and(|argument| argument == protocol::PROTOCOL_ARGUMENT) {
        return protocol::run_protocol(&env::args_os().skip(1).collect::<Vec<_>>());
    }
    // And to be one run of an experiment.
    if env::args_os().nth(1).is_some_and(|argument| argument == experiment::TRIAL_ARGUMENT) {
        return match commands::run_trial(&env::args_os().skip(1).collect::<Vec<_>>()) {
            Ok(exit) => exit.into(),
            Err(failure) => report(&failure),
        };
    }
    let cli = match cli::parse(env::args_os()) {
        Ok(cli) => cli,
        Err(error) => {
            // Help and version are "errors" that succeed.
            let code = if error.use_stderr() { Exit::Usage } else { Exit::Success };
            // It quotes what was typed.
            let text = error.render().to_string();
            match messages::without_secrets(&text) {
                shown if error.use_stderr() && shown != text => eprint!("{shown}"),
                _ => drop(error.print()),
            }
            return code.into();
        }
    };
    match commands::run(cli) {
        Ok(exit) => exit.into(),
        Err(failure) => report(&failure),
    }
}

fn report(error: &anyhow::Error) -> ExitCode {
    messages::error(&commands::message_of(error));
    commands::exit_of(error).into()
}

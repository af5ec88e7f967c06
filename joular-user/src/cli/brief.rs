//! Keeps `-h` to a screen: it leaves out flags that few people need. `--help` has all.

use clap::{Arg, Command};

/// The commands that take the flags of a recording, beside the program itself.
const RECORDING: [&str; 4] = ["record", "top", "run", "sweep"];

/// What `-h` has of their flags: they have a hundred.
const COMMON: [&str; 15] = [
    "comm",
    "jvms",
    "pid",
    "duration",
    "frequency",
    "alloc",
    "io",
    "output",
    "quiet",
    "command",
    "repeat",
    "variant",
    "parameter",
    "work",
    "app",
];

/// What `-h` of all other commands leaves out.
const RARE: [&str; 34] = [
    "carbon",
    "zone",
    "carbon_source",
    "carbon_method",
    "pue",
    "embodied",
    "reserved",
    "price",
    "work",
    "pid",
    "container",
    "pod",
    "namespace",
    "label",
    "category",
    "host",
    "phase",
    "exact_names",
    "library",
    "strict",
    "as_attributed",
    "no_infer",
    "charge_gc",
    "handler",
    "handler_rules",
    "requests",
    "requests_a",
    "requests_b",
    "activations",
    "watts",
    "token_user",
    "groups_header",
    "nodes",
    "tier",
];

/// The same command line with a short help that is short.
pub fn with_short_help(command: Command) -> Command {
    let of_subcommand = |command: Command| {
        if RECORDING.contains(&command.get_name()) { of_recording(command) } else { of_others(command) }
    };
    of_recording(command).mut_subcommands(of_subcommand)
}

fn of_recording(command: Command) -> Command {
    without(command, |argument| !COMMON.contains(&argument.get_id().as_str()))
}

fn of_others(command: Command) -> Command {
    without(command, |argument| RARE.contains(&argument.get_id().as_str()))
}

fn without(command: Command, is_left_out: impl Fn(&Arg) -> bool) -> Command {
    if !command.get_arguments().any(&is_left_out) {
        return command;
    }
    let command = command.mut_args(|argument| {
        let is_left_out = is_left_out(&argument);
        argument.hide_short_help(is_left_out)
    });
    let example = command.get_after_help().cloned().unwrap_or_default();
    let long = command.get_after_long_help().unwrap_or(&example).clone();
    command.after_help(format!("{example}\nAll flags: --help")).after_long_help(long)
}

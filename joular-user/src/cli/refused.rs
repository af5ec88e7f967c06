//! Says which flags a command refuses although its definition has them. [`crate::config`] refuses their use, and no help,
//! man page or completion shows them.

use clap::{Arg, Command, Id, builder::Resettable};

use super::merge::TARGETS;

/// Flags that no experiment takes: it prints no windows.
pub const BY_EXPERIMENTS: &[&str] = &["json"];

/// Flags of an experiment whose result a sweep does not have.
pub const BY_SWEEPS: &[&str] = &["variant", "export-latex", "export-methods"];

/// Commands with the flags that they always refuse. The command after -- is the target; a sweep is an experiment, and its
/// variants are the values of its parameter.
const COMMANDS: [(&str, &[&[&str]]); 2] = [("run", &[TARGETS]), ("sweep", &[TARGETS, BY_EXPERIMENTS, BY_SWEEPS])];

/// Whether a command refuses the flag of this name.
fn refuses(command: &str, flag: &str) -> bool {
    COMMANDS.iter().any(|(name, lists)| *name == command && lists.iter().any(|list| list.contains(&flag)))
}

fn is_refused(command: &str, argument: &Arg) -> bool {
    argument.get_long().is_some_and(|flag| refuses(command, flag))
}

/// The whole command line with what is refused hidden.
pub(super) fn hidden(whole: Command) -> Command {
    each(whole, |name, command| {
        command.mut_args(|argument| {
            let hides = argument.is_hide_set() || is_refused(name, &argument);
            argument.hide(hides)
        })
    })
}

/// The whole command line without what is refused. Nothing can be parsed with it, but completions offer what is hidden.
pub(super) fn left_out(whole: Command) -> Command {
    each(whole, |name, command| {
        let kept = command.get_arguments().filter(|argument| !is_refused(name, argument)).cloned();
        // What is required may depend on what is left out, and is nothing to completions.
        let kept = kept.map(|argument| argument.required_unless_present(Resettable::<Id>::Reset));
        Command::new(name).about(command.get_about().cloned().unwrap_or_default()).args(kept)
    })
}

fn each(whole: Command, change: impl Fn(&'static str, Command) -> Command) -> Command {
    whole.mut_subcommands(|command| match COMMANDS.into_iter().find(|(name, _)| *name == command.get_name()) {
        Some((name, _)) => change(name, command),
        None => command,
    })
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::{super::Cli, *};
    use crate::{
        cli::{self, Command as Chosen},
        config::{self, CommandRun},
    };

    /// Why a command line that has one option too many is not taken, if it is not.
    fn problem(command: &str, option: &str) -> Option<String> {
        let values: &[&str] = if command == "sweep" { &["--parameter", "n=1..4"] } else { &[] };
        let words = [&["joular-bpf", command][..], values, &[option, "--", "sleep", "{n}"]].concat();
        let resolved = match cli::parse(words.into_iter().map(Into::into)).unwrap().command {
            Some(Chosen::Run(flags)) => CommandRun::resolve(&flags).map(drop),
            Some(Chosen::Sweep(flags)) => CommandRun::resolve(&flags.run).and_then(|_| config::sweep(&flags)).map(drop),
            other => panic!("{other:?}"),
        };
        resolved.err().map(|error| error.to_string())
    }

    #[test]
    fn helps_list_what_is_taken_and_nothing_that_is_refused() {
        let (plain, shown) = (Cli::command(), cli::definition());
        for (name, lists) in COMMANDS {
            let mut refused = 0;
            let commands = [&plain, &shown].map(|whole| whole.find_subcommand(name).unwrap());
            for (before, after) in commands[0].get_arguments().zip(commands[1].get_arguments()) {
                let Some(long) = before.get_long().filter(|long| *long != "parameter") else { continue };
                let value = if before.get_action().takes_values() { "=1" } else { "" };
                let problem = problem(name, &format!("--{long}{value}")).unwrap_or_default();
                let is_refused =
                    ["what is recorded: leave it out", "prints no windows", "no variants", "of `run` only"]
                        .iter()
                        .any(|said| problem.contains(said));
                assert_eq!(is_refused, refuses(name, long), "{name} --{long}: {problem}");
                assert_eq!(after.is_hide_set(), is_refused || before.is_hide_set(), "{name} --{long}");
                refused += usize::from(is_refused);
            }
            assert_eq!(refused, lists.iter().map(|list| list.len()).sum::<usize>(), "{name}");
        }
    }

    #[test]
    fn what_is_left_of_a_command_is_all_that_it_takes() {
        let left = left_out(Cli::command());
        left.clone().debug_assert();
        for name in ["run", "sweep", "record"] {
            let longs = |whole: &Command| {
                let command = whole.find_subcommand(name).unwrap();
                command
                    .get_arguments()
                    .filter_map(|argument| argument.get_long().map(str::to_owned))
                    .collect::<Vec<_>>()
            };
            let expected = longs(&Cli::command()).into_iter().filter(|flag| !refuses(name, flag)).collect::<Vec<_>>();
            assert_eq!(longs(&left), expected);
        }
    }
}

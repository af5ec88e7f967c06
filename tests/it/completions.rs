//! Tests completions and man pages with their real consumers, where there are any.

use std::{fs, process::Command};

use crate::{documents::subcommands, joular_bpf};

/// What bash offers for the last of these words.
fn bash_offers(words: &[&str]) -> Vec<String> {
    let dir = tempfile::tempdir().unwrap();
    let script = dir.path().join("completions.bash");
    fs::write(&script, joular_bpf(&["completions", "bash"]).stdout).unwrap();
    let (last, place) = (words[words.len() - 1], words.len() - 1);
    let before = words[place - 1];
    let line = format!(
        "source {}; function=$(complete -p joular-bpf | sed 's/.*-F \\([^ ]*\\).*/\\1/'); COMP_WORDS=({}); \
         COMP_CWORD={place}; $function joular-bpf '{last}' '{before}'; printf '%s\\n' \"${{COMPREPLY[@]}}\"",
        script.display(),
        words.join(" ")
    );
    let output = Command::new("bash").args(["--norc", "-c", &line]).output().unwrap();
    assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
    String::from_utf8(output.stdout).unwrap().lines().map(ToOwned::to_owned).collect()
}

#[test]
fn bash_completes_subcommands_and_their_options() {
    for (words, expected) in [
        (&["joular-bpf", "aud"][..], "audit"),
        (&["joular-bpf", "--idle-w"], "--idle-watts"),
        (&["joular-bpf", "diff", "--fail-a"], "--fail-above"),
        (&["joular-bpf", "diff", "--as"], "--as-attributed"),
        (&["joular-bpf", "run", "--comm"], "--command-line"),
        (&["joular-bpf", "completions", "z"], "zsh"),
    ] {
        assert_eq!(bash_offers(words), [expected], "{words:?}");
    }
}

#[test]
fn every_subcommand_has_a_man_page_and_no_other_thing_has() {
    let dir = tempfile::tempdir().unwrap();
    let pages = dir.path().join("man1");
    let finished = joular_bpf(&["man", "--output", pages.to_str().unwrap()]);
    assert_eq!(finished.code(), Some(0), "{finished:?}");
    let help = joular_bpf(&["--help"]).stdout;
    for name in subcommands(&help) {
        let page = fs::read_to_string(pages.join(format!("joular-bpf-{name}.1"))).unwrap();
        assert_eq!(joular_bpf(&["man", name]).stdout.trim_end(), page.trim_end(), "{name}");
    }
    let nested = joular_bpf(&["baseline", "--help"]).stdout;
    for name in subcommands(&nested) {
        assert!(pages.join(format!("joular-bpf-baseline-{name}.1")).exists(), "{name}");
    }
    let count = 1 + subcommands(&help).count() + subcommands(&nested).count();
    assert_eq!(fs::read_dir(&pages).unwrap().count(), count);
    let finished = joular_bpf(&["man", "no-such"]);
    assert_eq!(finished.code(), Some(2), "{finished:?}");
}

#[test]
fn a_shell_that_nobody_knows_is_refused() {
    crate::expect_usage_error(&["completions", "cmd.exe"], &["cmd.exe", "bash"]);
}

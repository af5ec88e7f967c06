//! Tests the view on the whole terminal on a real terminal, by keys: what it shows of a recording, and that it leaves the
//! terminal as it was.

use joular_tests::{notes, paths, tmux::Terminal};

use crate::{expect_usage_error, joular_bpf, replay::recording};

/// A terminal of this size, and the command line of a replay.
fn terminal(width: u16, height: u16, term: Option<&str>) -> Option<(Terminal, String)> {
    if !joular_tests::tmux::is_installed() {
        notes::skipped("there is no tmux (`cargo xtask setup` installs it on Debian)");
        return None;
    }
    let line = format!("{} top --replay {}; echo \"code $?\"", paths::joular_bpf().display(), recording());
    Some((Terminal::open(width, height, term).unwrap(), line))
}

/// The lines of the table's rows.
fn rows(screen: &str, heading: &str) -> Vec<String> {
    let below = screen.lines().skip_while(|line| !line.contains(heading)).skip(1);
    below.take_while(|line| !line.trim().is_empty()).map(str::to_owned).collect()
}

#[test]
fn a_recording_is_watched_sorted_filtered_gone_into_held_and_left() {
    let Some((terminal, line)) = terminal(80, 24, None) else { return };
    terminal.run(&line).unwrap();
    terminal.wait_text("(modelled)").unwrap();
    assert!(terminal.is_alternate().unwrap());
    terminal.keys(&["f"]).unwrap();
    let screen = terminal.wait_text("ENDED").unwrap();
    assert_eq!(rows(&screen, "PROCESS").len(), 2, "{screen}");
    terminal.keys(&["3"]).unwrap();
    let screen = terminal.wait_text("METHOD").unwrap();
    assert!(rows(&screen, "METHOD")[0].contains("Hot.heavy"), "{screen}");
    // The other way round.
    terminal.keys(&["r"]).unwrap();
    let screen = terminal.wait_text("▲").unwrap();
    assert!(!rows(&screen, "METHOD")[0].contains("Hot.heavy"), "{screen}");
    // By the name.
    terminal.keys(&["<"]).unwrap();
    let screen = terminal.wait_text("METHOD▼").unwrap();
    let names: Vec<String> =
        rows(&screen, "METHOD").iter().filter_map(|row| row.split_whitespace().nth(5).map(str::to_owned)).collect();
    assert!(names.len() > 3 && names.is_sorted(), "{names:?}");
    terminal.keys(&["/", "L", "i", "g", "h", "t", "Enter"]).unwrap();
    let screen = terminal.wait("one row", |screen| rows(screen, "METHOD").len() == 1).unwrap();
    assert!(screen.contains("Hot.light") && screen.contains("filter: Light"), "{screen}");
    // Escape with a key right behind it would be that key with Alt.
    terminal.keys(&["Escape"]).unwrap();
    terminal.wait("all rows", |screen| !screen.contains("filter: ")).unwrap();
    terminal.keys(&["1"]).unwrap();
    terminal.wait_text("PROCESS").unwrap();
    terminal.keys(&["Enter"]).unwrap();
    terminal.wait("threads of a process", |screen| screen.contains("THREAD") && screen.contains("in Hot")).unwrap();
    terminal.keys(&["Enter", "4"]).unwrap();
    let screen = terminal.wait_text("BRANCH").unwrap();
    assert!(screen.contains("Hot.heavy") && screen.contains(" › "), "{screen}");
    terminal.keys(&["?"]).unwrap();
    terminal.wait_text(" Keys ").unwrap();
    terminal.keys(&["?", "Space"]).unwrap();
    terminal.wait_text("HELD").unwrap();
    terminal.keys(&["q"]).unwrap();
    terminal.wait_text("code 0").unwrap();
    is_as_it_was(&terminal);
}

/// The shell is back, and shows what is typed.
fn is_as_it_was(terminal: &Terminal) {
    assert!(!terminal.is_alternate().unwrap());
    terminal.run("echo as it $((1 + 1)) was").unwrap();
    let screen = terminal.wait_text("as it 2 was").unwrap();
    assert!(screen.contains("echo as it $((1 + 1)) was"), "nothing that is typed is seen:\n{screen}");
}

#[test]
fn a_small_terminal_shows_methods_and_a_larger_one_all_columns() {
    let Some((terminal, line)) = terminal(40, 12, None) else { return };
    terminal.run(&line).unwrap();
    terminal.wait_text("(modelled)").unwrap();
    terminal.keys(&["f", "3"]).unwrap();
    let screen = terminal.wait_text("Hot.heavy").unwrap();
    assert!(!screen.contains("CPU"), "{screen}");
    terminal.resize(100, 30).unwrap();
    terminal.wait_text("CPU").unwrap();
    terminal.keys(&["C-c"]).unwrap();
    terminal.wait_text("code 0").unwrap();
    is_as_it_was(&terminal);
}

#[test]
fn a_signal_leaves_the_terminal_as_it_was() {
    for signal in ["TERM", "INT", "HUP"] {
        let Some((terminal, line)) = terminal(80, 24, None) else { return };
        // The shell's child gets the signal while the view is shown.
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("pid");
        let (command, code) = line.split_once(';').unwrap();
        let line = format!("sh -c 'echo $$ > {}; exec {command}';{code}", file.display());
        terminal.run(&line).unwrap();
        terminal.wait_text("(modelled)").unwrap();
        let pid = std::fs::read_to_string(&file).unwrap();
        let killed = std::process::Command::new("kill").args(["-s", signal, pid.trim()]).status().unwrap();
        assert!(killed.success());
        terminal.wait_text("code 0").unwrap();
        is_as_it_was(&terminal);
    }
}

#[test]
fn a_terminal_that_only_prints_and_a_pipe_get_lines() {
    let Some((terminal, line)) = terminal(80, 24, Some("dumb")) else { return };
    terminal.run(&line).unwrap();
    let screen = terminal.wait_text("code 0").unwrap();
    assert!(!terminal.is_alternate().unwrap() && !screen.contains("[J"), "{screen}");
    let finished = joular_bpf(&["top", "--replay", &recording()]);
    assert_eq!(finished.code(), Some(0), "{finished:?}");
    assert!(finished.stderr.contains("standard output is not a terminal: showing a line"), "{}", finished.stderr);
    assert!(finished.stdout.contains("(modelled)") && !finished.stdout.contains('\x1b'), "{}", finished.stdout);
}

#[test]
fn nothing_is_written_unless_a_directory_is_named_and_what_makes_no_sense_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let run = |output: &[&str]| {
        let mut command = std::process::Command::new(paths::joular_bpf());
        let status = command.args(["top", "--replay", &recording()]).args(output).current_dir(folder.path()).output();
        assert!(status.unwrap().status.success());
        std::fs::read_dir(folder.path()).unwrap().count()
    };
    assert_eq!((run(&[]), run(&["-o", "here"])), (0, 1));
    for option in ["--json", "--quiet", "--no-output", "--record=f", "--metrics"] {
        expect_usage_error(&["top", option], &[option.split('=').next().unwrap()]);
    }
    expect_usage_error(&["top", "--replay", "some.jrec", "--all"], &["--replay", "--all"]);
    let help = joular_bpf(&["top", "--help"]).stdout;
    assert!(!help.contains("--json") && help.contains("--interval"), "{help}");
}

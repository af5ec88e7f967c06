use std::path::Path;

use clap::Command;

use super::*;

fn parsed(line: &str) -> Result<Cli, clap::Error> {
    parse(std::iter::once("joular-bpf").chain(line.split_whitespace()).map(OsString::from))
}

#[track_caller]
fn check(line: &str, expected: Flags) {
    assert_eq!(parsed(line).unwrap().flags, expected, "{line}");
}

#[test]
fn targets_may_be_listed_and_repeated() {
    let comm = |names: &[&str]| Flags { comm: names.iter().map(ToString::to_string).collect(), ..Flags::default() };
    check("--comm java", comm(&["java"]));
    check("--comm java --comm node", comm(&["java", "node"]));
    check("--comm java node --comm x-*", comm(&["java", "node", "x-*"]));
    check("--pid 1,2 3", Flags { pid: vec![1, 2, 3], ..Flags::default() });
    check(
        "-p 7 -d 1s -o x",
        Flags { pid: vec![7], duration: Some("1s".into()), output: Some("x".into()), ..Flags::default() },
    );
    check("--all --json", Flags { all: true, json: true, ..Flags::default() });
}

#[test]
fn every_flag_is_taken_as_typed() {
    let line = "--comm java --container a --pod b --namespace n --label k=v --kubernetes kubelet --kubernetes-token t --kubernetes-ca none --cgroup /c --service d e --duration 10s --interval 1s --frequency 99 --output o --flush 5s --energy watts \
                --energy-file p --powercap-root r --idle spread --idle-watts 12.5 --smt-ratio 1.2 --calibration m --weights time --sampler timer --board-models b --model-watts 1:2 --tdp 65 --tdp-states 1:2 --nic --disk=idle-watts=1 --dram-by allocation --record f \
                --config c --quiet --top 5 --proc-root /p --cpu-root /c --sys-root /s --guest-power g --metrics-cert c --metrics-key k --metrics-client-ca a --energy perf,nvml";
    let flags = Flags {
        comm: vec!["java".into()],
        container: vec!["a".into()],
        pod: vec!["b".into()],
        namespace: vec!["n".into()],
        label: vec!["k=v".into()],
        kubernetes: Some("kubelet".into()),
        kubernetes_token: Some("t".into()),
        kubernetes_ca: Some("none".into()),
        cgroup: vec!["/c".into()],
        service: vec!["d".into(), "e".into()],
        duration: Some("10s".into()),
        interval: Some("1s".into()),
        frequency: Some(99),
        output: Some("o".into()),
        flush: Some("5s".into()),
        energy: vec!["watts".into(), "perf".into(), "nvml".into()],
        energy_file: Some("p".into()),
        powercap_root: Some("r".into()),
        idle: Some("spread".into()),
        idle_watts: Some(12.5),
        smt_ratio: Some(1.2),
        calibration: Some("m".into()),
        weights: Some("time".into()),
        sampler: Some("timer".into()),
        board_models: Some("b".into()),
        model_watts: Some("1:2".into()),
        tdp: Some("65".into()),
        tdp_states: Some("1:2".into()),
        nic: Some("published".into()),
        disk: Some("idle-watts=1".into()),
        dram_by: Some("allocation".into()),
        record: Some("f".into()),
        config: Some("c".into()),
        quiet: true,
        top: Some(5),
        proc_root: Some("/p".into()),
        cpu_root: Some("/c".into()),
        sys_root: Some("/s".into()),
        guest_power: Some("g".into()),
        metrics_cert: Some("c".into()),
        metrics_key: Some("k".into()),
        metrics_client_ca: Some("a".into()),
        ..Flags::default()
    };
    check(line, flags);
}

#[test]
fn subcommands_are_told_from_names() {
    assert!(matches!(parsed("doctor --json").unwrap().command, Some(super::Command::Doctor(flags)) if flags.json));
    let calibrate = parsed("calibrate --output f --json").unwrap().command;
    assert!(matches!(calibrate, Some(super::Command::Calibrate(flags)) if flags.output == Some("f".into())));
    assert!(matches!(parsed("sources").unwrap().command, Some(super::Command::Sources(flags)) if !flags.json));
    // What their advice names can be given to them.
    for subcommand in ["doctor", "sources", "calibrate"] {
        let line =
            format!("{subcommand} --energy tdp --tdp 65 --tdp-states 800:0.7 --model-watts 1:2 --board-models b");
        assert!(parsed(&line).is_ok(), "{line}");
    }
    assert!(parsed("--comm doctor").unwrap().command.is_none());
}

#[test]
fn a_recording_may_be_asked_for_by_name() {
    let line = "--jvms --duration 30s";
    let by_name = parsed(&format!("record {line}")).unwrap().command;
    assert!(matches!(by_name, Some(super::Command::Record(flags)) if flags == parsed(line).unwrap().flags));
}

/// As `-h` writes it on a terminal of 100 columns.
#[test]
fn the_short_help_fits_a_screen() {
    let mut all = brief::with_short_help(definition()).term_width(100);
    all.build();
    let subcommands = all.get_subcommands().cloned().collect::<Vec<_>>();
    for command in std::iter::once(all).chain(subcommands) {
        let help = command.term_width(100).render_help().to_string();
        assert!(help.lines().count() <= 60, "{help}");
    }
}

/// Scripts keep working, and what has one name in one command is found by it in another.
#[test]
fn other_names_of_flags_are_taken_and_not_shown() {
    for (line, other) in [
        ("report d --view total", "report d --sort total"),
        ("report d --process java", "report d --comm java"),
        ("diff a b --view total", "diff a b --sort total"),
        ("baseline save d f --view total", "baseline save d f --sort total"),
        ("sweep --parameter n=1..4 --view total -- a {n}", "sweep --parameter n=1..4 --sort total -- a {n}"),
        ("--comm java", "--process java"),
        ("run --export-csv f --export-markdown g -- a", "run --csv f --markdown g -- a"),
    ] {
        let [expected, found] = [line, other].map(|line| format!("{:?}", parsed(line).unwrap()));
        assert_eq!(found, expected, "{other}");
    }
    let mut whole = definition();
    whole.build();
    for (command, other) in [
        ("report", "--sort"),
        ("report", "--comm "),
        ("diff", "--sort"),
        ("sweep", "--methods"),
        ("sweep", "--svg"),
        ("run", "--csv"),
    ] {
        let help = whole.find_subcommand_mut(command).unwrap().render_long_help().to_string();
        assert!(!help.contains(other), "{command}: {help}");
    }
}

#[test]
fn wrong_use_has_the_usage_exit_code() {
    for line in ["--frequency fast", "--comm", "--no-such-flag", "stray", "--pid -1", "--idle-watts x"] {
        assert_eq!(parsed(line).unwrap_err().exit_code(), i32::from(Exit::Usage.code()), "{line}");
    }
    for line in ["--help", "--version", "-h", "doctor --help"] {
        assert_eq!(parsed(line).unwrap_err().exit_code(), i32::from(Exit::Success.code()), "{line}");
    }
}

#[test]
fn the_definition_is_consistent() {
    definition().debug_assert();
}

#[test]
fn exit_codes_are_distinct() {
    let mut codes: Vec<u8> = Exit::ALL.iter().map(|exit| exit.code()).collect();
    codes.dedup();
    assert_eq!(codes, [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 130]);
}

/// `UPDATE_FIXTURES=1 cargo test` writes the helps as they are now.
#[track_caller]
fn check_help(command: Command, path: &Path) {
    let help = command.term_width(100).render_long_help().to_string();
    if std::env::var_os("UPDATE_FIXTURES").is_some() {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, &help).unwrap();
    }
    let reviewed = std::fs::read_to_string(path).unwrap_or_default();
    assert_eq!(help, reviewed, "{}: if this is meant, run with UPDATE_FIXTURES=1", path.display());
}

#[test]
fn the_help_is_as_reviewed() {
    check_help(definition(), Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/src/cli/help.txt")));
}

#[test]
fn the_help_of_every_subcommand_is_as_reviewed_and_has_an_example() {
    let folder = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/src/cli/help"));
    let mut whole = definition().disable_help_subcommand(true);
    whole.build();
    let mut files = Vec::new();
    let commands =
        whole.get_subcommands().flat_map(|command| std::iter::once(command).chain(command.get_subcommands()));
    for command in commands {
        // `joular-bpf-baseline-save`, without the program.
        let name = command.get_display_name().unwrap_or_default();
        let file = format!("{}.txt", name.trim_start_matches("joular-bpf-"));
        check_help(command.clone(), &folder.join(&file));
        let example = command.get_after_help().map(ToString::to_string).unwrap_or_default();
        assert!(example.contains("Example") && example.contains("joular-bpf"), "{file}: {example}");
        files.push(file);
    }
    files.sort();
    let mut kept: Vec<String> =
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    kept.sort();
    assert_eq!(kept, files, "a help that no subcommand has any more is to be removed");
}

#[test]
fn every_command_of_the_jobs_for_ci_systems_is_taken() {
    let root = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/.."));
    for file in ["packaging/ci/github.yml", "packaging/ci/gitlab.yml"] {
        let text = std::fs::read_to_string(root.join(file)).unwrap();
        let commands: Vec<&str> =
            text.lines().filter_map(|line| line.split_once("joular-bpf ")?.1.split([';', '>', '#']).next()).collect();
        assert!(commands.len() >= 2, "{file}: {commands:?}");
        for command in commands {
            let found = parsed(command).unwrap_or_else(|error| panic!("{file}: joular-bpf {command}: {error}"));
            assert!(found.command.is_some(), "{file}: {command}");
        }
    }
}

#[test]
fn baselines_are_saved_of_data_and_data_is_checked_against_them() {
    let save = parsed("baseline save data file --work 1,2 --phase load --top 5").unwrap().command;
    let Some(super::Command::Baseline(BaselineFlags { command: BaselineCommand::Save(save) })) = save else {
        panic!("{save:?}")
    };
    assert_eq!((save.data, save.file, save.work, save.top), ("data".into(), "file".into(), vec![1.0, 2.0], Some(5)));
    assert_eq!((save.session, save.keep_sessions), (None, None));
    for (session, expected) in [("--session", ""), ("--session=night", "night")] {
        let line = format!("baseline save data file {session} --keep-sessions 8");
        let Some(super::Command::Baseline(BaselineFlags { command: BaselineCommand::Save(save) })) =
            parsed(&line).unwrap().command
        else {
            panic!("{line}")
        };
        assert_eq!((save.session.as_deref(), save.keep_sessions), (Some(expected), Some(8)), "{line}");
    }
    let check = parsed("baseline check file data --fail-above 5% --fail-on phase --junit x").unwrap().command;
    let Some(super::Command::Baseline(BaselineFlags { command: BaselineCommand::Check(check) })) = check else {
        panic!("{check:?}")
    };
    assert_eq!((check.file, check.data, check.junit), ("file".into(), "data".into(), Some("x".into())));
    for line in [
        "baseline",
        "baseline check f",
        "baseline check f d --per run --work 1",
        "baseline check f d --phase x",
        "baseline save d f --keep-sessions 8",
        "baseline save d f --session --keep-sessions 0",
    ] {
        assert_eq!(parsed(line).unwrap_err().exit_code(), i32::from(Exit::Usage.code()), "{line}");
    }
}

use clap::CommandFactory;
use joular_data::model::{policy::IdlePolicy, units::Pid};

use super::*;
use crate::cli::{self, Cli};
use crate::energy::{EnergyChoice, model::VcpuPower};

fn flags(line: &str) -> Flags {
    let arguments = std::iter::once("joular-bpf").chain(line.split_whitespace());
    cli::parse(arguments.map(Into::into)).unwrap().flags
}

fn file(text: &str) -> ConfigFile {
    ConfigFile::parse("run.toml".into(), text.into()).unwrap()
}

fn resolved(line: &str, text: &str) -> Result<Config, ConfigError> {
    Config::resolve(flags(line), Some(file(text)))
}

fn live(config: &Config) -> &Live {
    match &config.input {
        Input::Live(live) => live,
        Input::Replay(_) => panic!("a replay"),
    }
}

#[test]
fn defaults_complete_a_target() {
    let config = Config::resolve(flags("--comm java"), None).unwrap();
    assert_eq!(config.output, Some("joular-out".into()));
    assert_eq!((config.flush, config.top, config.screen), (Duration::from_secs(60), 20, Screen::Table));
    assert_eq!(config.policy, PolicyChoices::default());
    let live = live(&config);
    assert_eq!((live.duration, live.interval, live.frequency), (None, Duration::from_secs(1), 99));
    assert_eq!(live.energy.choice, EnergyChoice::Auto);
    assert_eq!(live.energy.powercap_root, PathBuf::from("/sys/class/powercap"));
    assert_eq!(live.energy.proc_root, PathBuf::from("/proc"));
    assert!(live.selection.matches(Pid(1), "java"));
}

#[test]
fn flags_override_the_file_and_the_file_overrides_defaults() {
    let text = "comm = ['java']\ninterval = '2s'\nfrequency = 199\nidle-watts = 12\noutput = 'a'\nquiet = true\n";
    let config = resolved("--interval 500ms --pid 7 --no-output --json", text).unwrap();
    let live = live(&config);
    assert_eq!((live.interval, live.frequency), (Duration::from_millis(500), 199));
    assert!(live.selection.matches(Pid(7), "x") && !live.selection.matches(Pid(8), "java"));
    assert_eq!((config.output, config.screen), (None, Screen::Json));
    assert_eq!(config.policy.idle_milliwatts, Some(12_000));
}

#[test]
fn a_replay_takes_what_the_recording_does_not_fix() {
    let config = resolved("--replay run.jrec --idle spread", "comm = ['java']\nfrequency = 5\n").unwrap();
    assert!(matches!(config.input, Input::Replay(path) if path.as_os_str() == "run.jrec"));
    assert_eq!(config.policy.idle, Some(IdlePolicy::Spread));
    assert_eq!(config.calibration, CalibrationChoice::Usual);
    let config = resolved("--replay run.jrec --calibration none", "calibration = 'machine.json'\n").unwrap();
    assert_eq!(config.calibration, CalibrationChoice::None);
    let config = resolved("--replay run.jrec", "calibration = 'machine.json'\n").unwrap();
    assert_eq!(config.calibration, CalibrationChoice::File("machine.json".into()));
}

#[test]
fn energy_options_are_passed_on() {
    let config = Config::resolve(flags("--all --energy watts --energy-file p --model-watts 1:2 --proc-root /x"), None);
    let config = config.unwrap();
    let energy = &live(&config).energy;
    assert_eq!((energy.choice.name(), energy.file.clone()), ("watts".to_owned(), Some("p".into())));
    assert_eq!(energy.model_watts, Some(VcpuPower { idle_uw: 1_000_000, full_uw: 2_000_000 }));
    assert_eq!((energy.proc_root.clone(), energy.tdp.clone()), ("/x".into(), None));
    let config = Config::resolve(flags("--all --energy tdp --tdp 65 --tdp-states 2400:1.1,800:0.7"), None).unwrap();
    let tdp = live(&config).energy.tdp.clone().unwrap();
    assert_eq!((tdp.tdp_uw, tdp.states.highest_khz()), (Some(65_000_000), Some(2_400_000)));
    let config = Config::resolve(flags("--all --energy tdp --tdp 65"), None).unwrap();
    assert!(live(&config).energy.tdp.as_ref().is_some_and(|tdp| tdp.states.is_empty()));
    for (text, expected_uw) in [("65", 65_000_000), ("12.5", 12_500_000), ("'12.5'", 12_500_000)] {
        let config = resolved("--all", &format!("tdp = {text}\n")).unwrap();
        assert_eq!(live(&config).energy.tdp.as_ref().and_then(|tdp| tdp.tdp_uw), Some(expected_uw), "{text}");
    }
}

#[test]
fn weights_are_chosen_by_name_and_counted_in_cycles_where_there_are_some() {
    for (line, expected) in [
        ("", WeightChoice::Auto),
        ("--weights auto", WeightChoice::Auto),
        ("--weights time", WeightChoice::Time),
        ("--weights cycles", WeightChoice::Cycles),
        ("--weights clock", WeightChoice::Clock),
    ] {
        assert_eq!(live(&resolved(&format!("--all {line}"), "").unwrap()).weights, expected, "{line}");
    }
    assert_eq!(live(&resolved("--all", "weights = 'cycles'").unwrap()).weights, WeightChoice::Cycles);
}

#[test]
fn energy_sources_may_be_listed_and_repeated() {
    for (line, text, expected) in [
        ("", "", "auto"),
        ("--energy perf,watts", "", "perf,watts"),
        ("--energy perf --energy watts", "", "perf,watts"),
        ("", "energy = 'perf,watts'", "perf,watts"),
        ("", "energy = ['perf', 'watts']", "perf,watts"),
        ("--energy model", "energy = 'perf,watts'", "model"),
    ] {
        let config = resolved(&format!("--all {line}"), text).unwrap();
        assert_eq!(live(&config).energy.choice.name(), expected, "{line} {text}");
    }
    let error = ConfigFile::parse("run.toml".into(), "energy = 5".into()).unwrap_err();
    assert_eq!(error.to_string(), "run.toml:1: expected a text or a list of texts");
}

#[test]
fn mistakes_on_the_command_line_name_the_flag() {
    for (line, expected) in [
        (
            "--comm java --pid 1",
            "--pid cannot be used with --comm: choose one of --comm, --jvms, --pid, --all and --replay",
        ),
        (
            "--all --replay f",
            "--replay cannot be used with --all: choose one of --comm, --jvms, --pid, --all and --replay",
        ),
        ("--replay f --frequency 9", "--frequency cannot be used with --replay: a recording fixes it"),
        ("--all --output a --no-output", "--no-output cannot be used with --output: choose one"),
        ("--replay f --weights time", "--weights cannot be used with --replay: a recording fixes it"),
        ("--replay f --nic", "--nic cannot be used with --replay: a recording fixes it"),
        ("--all --weights joules", "--weights: \"joules\": no such weights: use auto, time or cycles"),
        ("--all --sampler fast", "--sampler: \"fast\": no such sampler: use auto, timer or cpu-clock"),
        ("--all --json --quiet", "--quiet cannot be used with --json: choose one"),
        (
            "--all --energy model --energy-file p",
            "--energy-file cannot be used with --energy: only auto, microjoules, powerjoular, watts and replay read a file",
        ),
        ("--all --interval 10", "--interval: \"10\" is not a time: write numbers with units: 500ms, 10s, 1m30s, 1.5h"),
        ("--all --interval 50ms", "--interval: \"50ms\" is not between 100ms and 60s"),
        ("--all --interval 61s", "--interval: \"61s\" is not between 100ms and 60s"),
        ("--all --duration 0s", "--duration: must be longer than 0"),
        ("--all --flush 0s", "--flush: \"0s\" is not between 1s and 3600s"),
        ("--all --frequency 0", "--frequency: 0 is not between 1 and 10000"),
        ("--all --frequency 10001", "--frequency: 10001 is not between 1 and 10000"),
        ("--all --top 1001", "--top: 1001 is not between 0 and 1000"),
        ("--pid 0", "--pid: 0 is not a process: ids start at 1"),
        ("--comm [", "--comm: \"[\": not a pattern: unclosed character class; missing ']'"),
        ("--all --smt-ratio 2.5", "--smt-ratio: 2.5 is not between 1 and 2"),
        ("--all --idle lazy", "--idle: \"lazy\": no such policy: use separate, spread or active"),
        ("--all --idle-watts NaN", "--idle-watts: NaN is not between 0 and 10000 watts"),
        (
            "--all --model-watts 5",
            "--model-watts: \"5\": not IDLE:FULL in watts per vCPU with 0 ≤ IDLE ≤ FULL ≤ 1000, e.g. 0.7:3.5",
        ),
        ("--all --tdp 0", "--tdp: \"0\": not a power in watts, more than 0 and at most 10000, e.g. 65"),
        (
            "--all --tdp-states 800",
            "--tdp-states: \"800\": not MHZ:VOLTS,MHZ:VOLTS,… with up to 100000 MHz and 10 V, e.g. 800:0.7,2400:1.1",
        ),
        (
            "--all --energy rapl",
            "--energy: \"rapl\": no such energy source: use auto, or one or several of perf, powercap, \
             hwmon, scmi, microjoules, powerjoular, watts, board, model, tdp, hwmon-gpu, nvml, network, disk, replay",
        ),
        ("--all --energy perf --energy perf", "--energy: \"perf,perf\": perf is named twice: name each source once"),
    ] {
        assert_eq!(Config::resolve(flags(line), None).unwrap_err().to_string(), expected, "{line}");
    }
}

#[test]
fn mistakes_in_the_file_name_file_line_and_key() {
    for (text, expected) in [
        ("all = true\n\n  interval='1'\n", "run.toml:3: interval: \"1\" is not a time"),
        ("all = true\n\"top\" = 1001\n", "run.toml:2: top: 1001 is not between 0 and 1000"),
        ("comm = ['a']\npid = [1]\n", "run.toml:2: pid cannot be used with run.toml:1: comm: choose one"),
    ] {
        let message = resolved("", text).unwrap_err().to_string();
        assert!(message.starts_with(expected), "{text:?}: {message}");
    }
}

#[test]
fn malformed_files_name_the_line() {
    for (text, line, part) in [
        ("comm = ['a']\nfrequncy = 9\n", 2, "unknown key `frequncy`"),
        ("frequency = 'fast'\n", 1, "invalid type"),
        ("frequency = -1\n", 1, "invalid value"),
        ("\n\ncomm = [\n", 3, ""),
        ("comm = 'a'\ncomm = 'b'\n", 2, "duplicate key"),
        ("config = 'other.toml'\n", 1, "unknown key `config`"),
        ("\u{0}", 1, ""),
    ] {
        let error = ConfigFile::parse("run.toml".into(), text.into()).unwrap_err();
        let ConfigError::Syntax { line: found, message, .. } = &error else { panic!("{error}") };
        assert_eq!(*found, line, "{text:?}: {error}");
        assert!(message.contains(part) && !message.contains('\n'), "{text:?}: {error}");
    }
}

#[test]
fn files_that_cannot_be_read_are_named() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("absent.toml");
    let message = ConfigFile::read(&path).unwrap_err().to_string();
    assert!(message.contains("absent.toml") && message.ends_with("check --config"), "{message}");
    std::fs::write(&path, vec![b'#'; 2 << 20]).unwrap();
    assert!(matches!(ConfigFile::read(&path), Err(ConfigError::File { .. })));
    std::fs::write(&path, "all = true\n").unwrap();
    let loaded = Config::load(Flags { config: Some(path), ..Flags::default() }).unwrap();
    assert!(live(&loaded).selection.is_all());
}

#[test]
fn every_flag_is_a_key_of_the_file() {
    let is_key = |name: &str| {
        // No key has a date, so what is wrong is the value, if there is such a key.
        let error = ConfigFile::parse(String::new(), format!("{name} = 2026-03-01")).unwrap_err().to_string();
        !error.contains("unknown key")
    };
    for argument in Cli::command().get_arguments() {
        let name = argument.get_long().unwrap();
        assert_eq!(is_key(name), !["config", "help", "version"].contains(&name), "{name}");
    }
}

proptest::proptest! {
    #[test]
    fn no_text_panics(text in ".{0,200}") {
        if let Ok(file) = ConfigFile::parse("f".into(), text) {
            let _ = Config::resolve(Flags::default(), Some(file));
        }
    }
}

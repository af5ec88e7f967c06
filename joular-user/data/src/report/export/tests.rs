//! Tests what holds for every format, on a data set of our own and on hostile names.

use std::{collections::BTreeMap, fs, path::PathBuf};

use super::{
    super::profile::{App, Filter, Names, Profile},
    *,
};
use crate::{dataset::fixture::write, model::policy::Policy, report::measure::Unit};

fn written() -> tempfile::TempDir {
    let root = tempfile::tempdir().unwrap();
    write(root.path(), Policy::default());
    root
}

/// Exports with every format, each into a place of its own.
fn export_all(root: &tempfile::TempDir, filter: &Filter, app: Option<&App>) -> BTreeMap<&'static str, Exported> {
    let selection = Selection { data: root.path(), filter, app, measure: Measure::Energy };
    let out = tempfile::tempdir().unwrap();
    let export = |format: &ExportFormat| format.export(&selection, Some(&out.path().join(format.name)), None).unwrap();
    FORMATS.iter().map(|format| (format.name, export(format))).collect()
}

#[test]
fn every_format_holds_the_energy_of_the_selection_whatever_is_selected() {
    let root = written();
    let methods = Filter { methods: Names::parse(&["*.m100".to_owned()]).unwrap(), ..Filter::default() };
    let app = App::of(&["com.example".to_owned()]);
    let mut energies = Vec::new();
    for (filter, app) in [(Filter::default(), None), (methods, None), (Filter::default(), app.as_ref())] {
        let profile = Profile::read(root.path(), &filter, app).unwrap();
        assert!(profile.energy().0 > 0);
        for (format, exported) in export_all(&root, &filter, app) {
            assert_eq!(exported, Exported::of(&profile), "{format}");
        }
        energies.push(profile.energy());
    }
    assert!(energies[1] < energies[0] && energies[2] == energies[0], "{energies:?}");
}

/// Bytes are in it once: those of a process, by where they went.
#[test]
fn counters_of_processes_sum_to_what_the_selection_has_of_each_measure() {
    let root = written();
    let methods = Filter { methods: Names::parse(&["*.m1*".to_owned()]).unwrap(), ..Filter::default() };
    for filter in [Filter::default(), methods] {
        let profile = Profile::read(root.path(), &filter, None).unwrap();
        let counted = profile.measures_beside_energy().filter(|measure| measure.unit() == Unit::Count);
        let expected: BTreeMap<String, u64> = profile
            .measures_of_bytes()
            .chain(counted)
            .map(|measure| (measure.name().to_owned(), profile.facts(measure).map(|fact| fact.amount).sum()))
            .filter(|(_, sum)| *sum > 0)
            .collect();
        assert!(expected.len() > 2, "{expected:?}");
        let selection = Selection { data: root.path(), filter: &filter, app: None, measure: Measure::Energy };
        let out = tempfile::tempdir().unwrap();
        let [firefox, perfetto] = ["firefox", "perfetto"].map(|name| {
            let file = out.path().join(name);
            ExportFormat::of(name).unwrap().export(&selection, Some(&file), None).unwrap();
            fs::read(file).unwrap()
        });
        let firefox: serde_json::Value = serde_json::from_slice(&firefox).unwrap();
        let mut found: BTreeMap<String, u64> = BTreeMap::new();
        for counter in firefox["counters"].as_array().unwrap() {
            let counts = counter["samples"]["count"].as_array().unwrap();
            let sum: f64 = counts.iter().map(|count| count.as_f64().unwrap()).sum();
            #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "whole numbers")]
            let sum = sum as u64;
            *found.entry(counter["name"].as_str().unwrap().to_owned()).or_default() += sum;
        }
        found.retain(|_, sum| *sum > 0);
        assert_eq!(found, expected);
        for name in expected.keys() {
            let title = name.parse::<Measure>().unwrap().title();
            let has = perfetto.windows(title.len()).any(|bytes| bytes == title.as_bytes());
            assert!(has, "{title}");
        }
    }
}

#[test]
fn a_selection_of_nothing_is_exported_as_nothing() {
    let root = written();
    let nothing = Filter { methods: Names::parse(&["no.such.method".to_owned()]).unwrap(), ..Filter::default() };
    for (format, exported) in export_all(&root, &nothing, None) {
        assert_eq!(exported.energy, MicroJoules(0), "{format}");
    }
}

#[test]
fn what_is_exported_twice_is_the_same() {
    let root = written();
    let (filter, out) = (Filter::default(), tempfile::tempdir().unwrap());
    let selection = Selection { data: root.path(), filter: &filter, app: None, measure: Measure::Energy };
    for format in FORMATS.iter().filter(|format| !matches!(format.writer, Writer::Files(_))) {
        let files = ["a", "b"].map(|name| out.path().join(name));
        for file in &files {
            format.export(&selection, Some(file), None).unwrap();
        }
        let [a, b] = files.map(|file| fs::read(file).unwrap());
        assert!(!a.is_empty() && a == b, "{}", format.name);
    }
    assert_eq!(fs::read_dir(out.path()).unwrap().count(), 2, "nothing is left beside them");
}

#[test]
fn formats_are_found_by_their_names() {
    assert!(FORMATS.iter().all(|format| ExportFormat::of(format.name).is_some_and(|found| found.name == format.name)));
    assert_eq!(ExportFormat::names(), "pprof, speedscope, collapsed, firefox, perfetto, otlp, jfr, joularjx");
    assert!(ExportFormat::of("svg").is_none());
}

#[test]
fn what_cannot_be_written_is_an_error_that_names_it() {
    let root = written();
    let filter = Filter::default();
    let selection = Selection { data: root.path(), filter: &filter, app: None, measure: Measure::Energy };
    let export = |name: &str, output: Option<&str>| {
        let format = ExportFormat::of(name).unwrap();
        format.export(&selection, output.map(Path::new), None).unwrap_err()
    };
    let error = export("pprof", Some("/no/such/folder/file"));
    assert!(error.to_string().contains("/no/such/folder/file") && error.is_of_output(), "{error}");
    let error = export("joularjx", Some("-"));
    assert!(error.to_string().contains("it is a directory of files"), "{error}");
    let full = export("collapsed", Some("/dev/full"));
    assert!(full.to_string().contains("/dev/full") && full.is_of_output(), "{full}");
}

#[test]
fn joularjx_does_not_add_to_what_is_there() {
    let root = written();
    let (filter, out) = (Filter::default(), tempfile::tempdir().unwrap());
    let selection = Selection { data: root.path(), filter: &filter, app: None, measure: Measure::Energy };
    let format = ExportFormat::of("joularjx").unwrap();
    format.export(&selection, Some(out.path()), None).unwrap();
    let error = format.export(&selection, Some(out.path()), None).unwrap_err();
    assert!(matches!(error, ExportError::Exists { .. }), "{error}");
}

/// Sum of the figures of a JoularJX file, in ten thousandths.
fn sum_of(path: &Path) -> (u64, u64) {
    let text = fs::read_to_string(path).unwrap();
    let values = text.lines().map(|line| line.rsplit_once(',').unwrap().1.replace('.', "").parse::<u64>().unwrap());
    values.fold((0, 0), |(sum, rows), value| (sum + value, rows + 1))
}

fn files_below(path: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(path).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() { files_below(&path, found) } else { found.push(path) }
    }
}

#[test]
fn joularjx_files_sum_to_the_energy_within_half_of_the_last_decimal_per_row() {
    let root = written();
    let (filter, out) = (Filter::default(), tempfile::tempdir().unwrap());
    let app = App::of(&["com.example".to_owned()]);
    let selection = Selection { data: root.path(), filter: &filter, app: app.as_ref(), measure: Measure::Energy };
    let exported = ExportFormat::of("joularjx").unwrap().export(&selection, Some(out.path()), None).unwrap();
    let mut files = Vec::new();
    files_below(out.path(), &mut files);
    for part in ["all/total/methods", "all/total/calltrees", "all/evolution"] {
        let of_part: Vec<&PathBuf> = files.iter().filter(|path| path.to_str().unwrap().contains(part)).collect();
        let sums: Vec<(u64, u64)> = of_part.iter().map(|path| sum_of(path)).collect();
        let (sum, rows) = sums.iter().fold((0, 0), |(sum, rows), (s, r)| (sum + s, rows + r));
        assert!(rows > 0, "{part}");
        assert!((sum * 100).abs_diff(exported.energy.0) <= rows * 50, "{part}: {sum} in {rows} rows");
    }
    let of_app = files.iter().filter(|path| path.to_str().unwrap().contains("/app/total/methods/")).count();
    assert!(of_app > 0);
}

#[test]
fn hostile_names_end_no_line_and_no_frame_of_collapsed_stacks() {
    for (name, expected) in [
        ("a.B.c", "a.B.c"),
        ("a;b", "a_b"),
        ("a\nb\r\0", "a_b__"),
        ("#comment", "_comment"),
        ("", "_"),
        ("a b", "a b"),
        ("\u{2028}", "_"),
    ] {
        assert_eq!(collapsed::name(name), expected);
    }
}

#[test]
fn joularjx_says_in_each_process_s_folder_how_the_energy_came_about() {
    let root = written();
    let (filter, out) = (Filter::default(), tempfile::tempdir().unwrap());
    let selection = Selection { data: root.path(), filter: &filter, app: None, measure: Measure::Energy };
    let exported = ExportFormat::of("joularjx").unwrap().export(&selection, Some(out.path()), None).unwrap();
    let mut sum = 0;
    for folder in fs::read_dir(out.path().join("joularjx-result")).unwrap() {
        let about = fs::read_to_string(folder.unwrap().path().join("energy.txt")).unwrap();
        let (origin, energy) = about.split_once('\n').unwrap();
        assert_eq!(origin, exported.origin);
        sum += energy.strip_suffix(" J\n").unwrap().replace('.', "").parse::<u64>().unwrap();
    }
    assert_eq!(sum, exported.energy.0);
}

#[test]
fn joularjx_writes_through_no_link() {
    let root = written();
    let filter = Filter::default();
    let selection = Selection { data: root.path(), filter: &filter, app: None, measure: Measure::Energy };
    let export = |out: &Path| ExportFormat::of("joularjx").unwrap().export(&selection, Some(out), None);
    let (first, second, elsewhere) =
        (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    export(first.path()).unwrap();
    let process = fs::read_dir(first.path().join("joularjx-result")).unwrap().next().unwrap().unwrap().file_name();
    // In the place of the result, of a process's folder, and of that without anything behind it.
    let result = second.path().join("joularjx-result");
    std::os::unix::fs::symlink(elsewhere.path(), &result).unwrap();
    export(second.path()).unwrap_err();
    fs::remove_file(&result).unwrap();
    fs::create_dir(&result).unwrap();
    for target in [elsewhere.path().to_owned(), elsewhere.path().join("none")] {
        std::os::unix::fs::symlink(target, result.join(&process)).unwrap();
        let error = export(second.path()).unwrap_err();
        assert!(matches!(error, ExportError::Exists { .. }), "{error}");
        fs::remove_file(result.join(&process)).unwrap();
    }
    assert_eq!(fs::read_dir(elsewhere.path()).unwrap().count(), 0);
}

#[test]
fn files_are_added_to_only_if_this_export_made_them() {
    let root = tempfile::tempdir().unwrap();
    let (victim, path) = (root.path().join("victim"), root.path().join("out/p/rows"));
    fs::write(&victim, "whole").unwrap();
    let mut files = Files::open(&root.path().join("out"), None).unwrap();
    files.new_folder(Path::new("p")).unwrap();
    for rows in ["a\n", "b\n"] {
        files.append(Path::new("p/rows"), rows).unwrap();
    }
    assert_eq!(fs::read_to_string(&path).unwrap(), "a\nb\n");
    files.create(Path::new("p/rows"), "").unwrap_err();
    fs::hard_link(&path, root.path().join("second")).unwrap();
    files.append(Path::new("p/rows"), "c\n").unwrap_err();
    for link in [|a: &Path, b: &Path| fs::hard_link(a, b), |a: &Path, b: &Path| std::os::unix::fs::symlink(a, b)] {
        fs::remove_file(&path).unwrap();
        link(&victim, &path).unwrap();
        files.append(Path::new("p/rows"), "c\n").unwrap_err();
    }
    fs::rename(root.path().join("out/p"), root.path().join("out/q")).unwrap();
    fs::create_dir(root.path().join("out/p")).unwrap();
    files.append(Path::new("p/new"), "c\n").unwrap_err();
    assert_eq!(fs::read_to_string(&victim).unwrap(), "whole");
}

#[test]
fn frames_without_a_module_are_filed_by_their_kind() {
    for kind in FrameKind::ALL {
        let expected = match kind {
            FrameKind::Kernel => "[kernel]",
            FrameKind::Marker => "[none]",
            FrameKind::Vm | FrameKind::Native => "[unknown]",
            kind => {
                assert!(kind.is_java() || kind == FrameKind::Stub);
                "[java]"
            }
        };
        assert_eq!(module(&Frame::new(kind, "f")), expected, "{kind:?}");
        assert_eq!(module(&Frame::of_file(kind, "lib.so")), "lib.so");
    }
}

#[test]
fn speedscope_has_a_profile_of_each_thread_and_measure() {
    let (root, filter) = (written(), Filter::default());
    let profile = Profile::read(root.path(), &filter, None).unwrap();
    let mut out = Vec::new();
    let selection = Selection { data: root.path(), filter: &filter, app: None, measure: Measure::Energy };
    let Writer::Text(write) = ExportFormat::of("speedscope").unwrap().writer else { panic!("it is text") };
    write(&selection, &mut out).unwrap();
    let file: serde_json::Value = serde_json::from_slice(&out).unwrap();
    let profiles = file["profiles"].as_array().unwrap();
    let measures: Vec<Measure> = profile.measures_apart().collect();
    assert!(measures.iter().any(|measure| measure.unit() == Unit::Count), "{measures:?}");
    for measure in measures {
        let of_measure = format!(", {}", measure.title().to_lowercase());
        let found = profiles.iter().filter(|profile| profile["name"].as_str().unwrap().ends_with(&of_measure));
        let weights = found.flat_map(|profile| profile["weights"].as_array().unwrap());
        let sum: u64 = weights.map(|weight| weight.as_u64().unwrap()).sum();
        assert_eq!(sum, profile.measured.amount(measure), "{}", measure.name());
    }
}

#[test]
fn collapsed_stacks_of_each_measure_sum_to_what_the_selection_has_of_it() {
    let (root, filter) = (written(), Filter::default());
    let profile = Profile::read(root.path(), &filter, None).unwrap();
    let collapsed = |measure| {
        let mut out = Vec::new();
        let selection = Selection { data: root.path(), filter: &filter, app: None, measure };
        let Writer::Text(write) = ExportFormat::of("collapsed").unwrap().writer else { panic!("it is text") };
        write(&selection, &mut out).map(|_| String::from_utf8(out).unwrap())
    };
    let measures: Vec<Measure> = profile.measures_beside_energy().chain([Measure::Energy]).collect();
    assert!(measures.len() > 3, "{measures:?}");
    for measure in measures {
        let all: u64 = profile.facts(measure).map(|fact| fact.amount).sum();
        let text = collapsed(measure).unwrap();
        let sum: u64 = text.lines().map(|line| line.rsplit_once(' ').unwrap().1.parse::<u64>().unwrap()).sum();
        assert_eq!(sum, all, "{}", measure.name());
    }
    let missing = Measure::all().find(|measure| !profile.has(*measure)).unwrap();
    assert!(matches!(collapsed(missing), Err(ExportError::Data(DataSetError::NothingMeasured { .. }))));
}

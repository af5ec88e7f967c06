//! Tests JoularJX's directory: which files there are, what they are called, and every cell of them
//! against figures that SQL finds in the data set.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use joular_tests::python;
use serde_json::Value;

use super::Exports;

/// All files of an export by their path below `joularjx-result`, with their rows.
pub(super) struct Tree(BTreeMap<PathBuf, Vec<(String, String)>>);

impl Tree {
    pub(super) fn read(output: &Path) -> Self {
        let root = output.join("joularjx-result");
        let mut files = BTreeMap::new();
        let mut folders = vec![root.clone()];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    folders.push(path);
                } else if path.extension().is_some_and(|extension| extension == "csv") {
                    let text = fs::read_to_string(&path).unwrap();
                    let row =
                        |line: &str| line.split_once(',').map(|(name, value)| (name.to_owned(), value.to_owned()));
                    let rows = text.lines().map(|line| row(line).unwrap_or_else(|| panic!("{path:?}: '{line}'")));
                    files.insert(path.strip_prefix(&root).unwrap().to_owned(), rows.collect());
                }
            }
        }
        Self(files)
    }

    fn part<'a>(&'a self, part: &str) -> impl Iterator<Item = (&'a PathBuf, &'a Vec<(String, String)>)> {
        self.0.iter().filter(move |(path, _)| path.to_str().unwrap().contains(part))
    }

    /// Sum of all methods and the number of rows; `None` if a figure is not one with four decimals.
    pub(super) fn energy_ten_thousandths(&self) -> Option<(u64, usize)> {
        let mut sum = (0, 0);
        for (_, value) in self.part("all/total/methods").flat_map(|(_, rows)| rows) {
            sum = (sum.0 + ten_thousandths(value)?, sum.1 + 1);
        }
        Some(sum)
    }

    pub(super) fn cells(&self, part: &str) -> usize {
        self.part(part).map(|(_, rows)| rows.len()).sum()
    }

    pub(super) fn names(&self) -> Vec<String> {
        self.0.keys().map(|path| path.file_name().unwrap().to_str().unwrap().to_owned()).collect()
    }
}

/// Of a figure as `%.4f` prints it.
fn ten_thousandths(value: &str) -> Option<u64> {
    let (whole, decimals) = value.split_once('.')?;
    (decimals.len() == 4).then(|| format!("{whole}{decimals}").parse().ok())?
}

#[test]
fn files_are_where_and_what_joularjx_calls_them() {
    let exports = Exports::new();
    let tree = Tree::read(&exports.export("joularjx", &[]));
    for path in tree.0.keys() {
        let parts: Vec<&str> = path.iter().map(|part| part.to_str().unwrap()).collect();
        let (pid, start_ms) = parts[0].split_once('-').unwrap();
        assert!(["24682", "24683"].contains(&pid) && start_ms.parse::<u64>().unwrap() > 1_700_000_000_000, "{path:?}");
        let name = parts[parts.len() - 1].strip_prefix(&format!("joularJX-{pid}-")).unwrap();
        match parts[1..parts.len() - 1] {
            ["all", "total", "methods"] => assert_eq!(name, "all-methods-energy.csv"),
            ["all", "total", "calltrees"] => assert_eq!(name, "all-call-trees-energy.csv"),
            ["all", "runtime", folder] => {
                let (ms, rest) = name.split_once('-').unwrap();
                assert!(ms.parse::<u64>().unwrap() > start_ms.parse().unwrap(), "{path:?}");
                let kind = if folder == "methods" { "methods" } else { "call-trees" };
                assert_eq!(rest, format!("all-{kind}-power.csv"));
            }
            ["all", "evolution"] => assert!(name.ends_with("-evolution.csv"), "{path:?}"),
            _ => panic!("{path:?} is not a file of JoularJX"),
        }
    }
    assert_eq!(tree.part("all/total").count(), 4, "two files for each of two processes");
}

#[test]
fn every_cell_is_what_sql_finds() {
    let exports = Exports::new();
    let tree = Tree::read(&exports.export("joularjx", &["--app", "Hot"]));
    let found = python::script("joularjx.py", &exports.path("out"), &["Hot"]).unwrap();
    let expected: BTreeMap<String, BTreeMap<String, Vec<Value>>> = serde_json::from_str(&found).unwrap();
    let names = |tree: &Tree| tree.0.keys().map(|path| path.to_str().unwrap().to_owned()).collect::<Vec<_>>();
    assert_eq!(names(&tree), expected.keys().cloned().collect::<Vec<_>>());
    let mut cells = 0;
    for (path, rows) in &tree.0 {
        let mut found: BTreeMap<String, Vec<Value>> = BTreeMap::new();
        for (name, value) in rows {
            found.entry(name.clone()).or_default().push(value.clone().into());
        }
        found.values_mut().for_each(|values| values.sort_by_key(ToString::to_string));
        assert_eq!(found, expected[path.to_str().unwrap()], "{}", path.display());
        cells += rows.len();
    }
    assert!(cells > 100, "only {cells} cells");
}

#[test]
fn the_whole_is_the_energy_within_half_of_the_last_decimal_per_row() {
    let exports = Exports::new();
    let (sum, rows) = Tree::read(&exports.export("joularjx", &[])).energy_ten_thousandths().unwrap();
    assert!((sum * 100).abs_diff(exports.sums()[0]) <= rows as u64 * 50, "{sum} in {rows} rows");
    let folders = fs::read_dir(exports.path("joularjx/joularjx-result")).unwrap();
    let energies = folders.map(|folder| {
        let about = fs::read_to_string(folder.unwrap().path().join("energy.txt")).unwrap();
        let energy = about.strip_prefix("modelled (model)\n").and_then(|rest| rest.strip_suffix(" J\n")).unwrap();
        energy.replace('.', "").parse::<u64>().unwrap()
    });
    assert_eq!(energies.sum::<u64>(), exports.sums()[0]);
}

//! Tests the Python package in python/: its own tests, its types, and the page about it.

use std::{fs, path::Path, process::Command};

use joular_tests::{paths, python};

use crate::{bad_sets, packaging::printed};

/// Python, with the package as it stands in the sources.
fn interpreter(directory: &Path) -> Command {
    let mut command = Command::new(python::interpreter().unwrap());
    python::with_package(&mut command).current_dir(directory);
    command
}

#[test]
fn its_own_tests_pass() {
    let mut tests = interpreter(&paths::root().join("python/tests"));
    tests.env("JOULAR_BPF", paths::joular_bpf()).args(["-m", "unittest"]);
    let output = tests.output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && !said.contains("Ran 0 tests"), "{said}");
}

#[test]
fn its_types_are_consistent() {
    let cache = paths::target().join("mypy");
    let mut mypy = interpreter(&paths::root().join("python"));
    let said = printed(mypy.args(["-m", "mypy", "--cache-dir"]).arg(cache));
    assert!(said.contains("no issues found"), "{said}");
}

/// Python blocks of the page, in their order.
fn blocks(document: &str) -> String {
    let blocks = document.split("```python\n").skip(1).filter_map(|rest| rest.split("```").next());
    blocks.collect::<Vec<_>>().join("\n")
}

#[test]
fn all_that_its_page_shows_runs() {
    let folder = tempfile::tempdir().unwrap();
    bad_sets::good(&folder.path().join("joular-out"));
    fs::create_dir(folder.path().join("experiment")).unwrap();
    for variant in ["old", "new"] {
        bad_sets::good(&folder.path().join("experiment").join(variant));
    }
    for page in ["docs/python.md", "python/README.md"] {
        let code = blocks(&fs::read_to_string(paths::root().join(page)).unwrap());
        let said = printed(interpreter(folder.path()).env("MPLBACKEND", "Agg").args(["-c", &code]));
        assert!(said.contains("Hot.heavy") && said.contains("modelled"), "{page}: {said}");
    }
    for picture in ["power", "methods", "compare"] {
        assert!(fs::metadata(folder.path().join(picture).with_extension("png")).unwrap().len() > 1_000, "{picture}");
    }
}

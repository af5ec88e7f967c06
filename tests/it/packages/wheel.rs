//! Tests the wheel of the Python package: pip installs it, and what it records of its files is right.

use std::{fs, process::Command};

use joular_tests::python;

use super::packages;
use crate::{bad_sets, packaging::printed};

/// Prints what a wheel's metadata says, and how many of the files are as it records them.
const READ: &str = r"
import base64, csv, hashlib, importlib.metadata, io, sys, zipfile
wheel = zipfile.ZipFile(sys.argv[1])
[record] = [name for name in wheel.namelist() if name.endswith('.dist-info/RECORD')]
rows = list(csv.reader(io.StringIO(wheel.read(record).decode())))
assert [name for name, _, _ in rows] == wheel.namelist(), rows
for name, sum, size in rows:
    if name != record:
        digest = base64.urlsafe_b64encode(hashlib.sha256(wheel.read(name)).digest()).decode().rstrip('=')
        assert (sum, int(size)) == (f'sha256={digest}', len(wheel.read(name))), name
package = importlib.metadata.distribution('joular')
print(package.version, package.metadata['License-Expression'], package.metadata.get_all('Requires-Dist'))
import joular
print(joular.__file__)
print(joular.load(sys.argv[2]).methods().head(3))
";

#[test]
fn pip_installs_the_wheel_and_it_reads_a_data_set() {
    let Some(packages) = packages() else { return };
    let folder = tempfile::tempdir().unwrap();
    let (wheel, data, installed) = (packages.wheel().unwrap(), folder.path().join("out"), folder.path().join("lib"));
    bad_sets::good(&data);
    let interpreter = python::interpreter().unwrap();
    let mut pip = Command::new(&interpreter);
    pip.args(["-m", "pip", "install", "--quiet", "--no-index", "--no-deps", "--target"]).arg(&installed).arg(&wheel);
    printed(&mut pip);
    let mut read = Command::new(&interpreter);
    read.env("PYTHONPATH", &installed).args(["-c", READ]).arg(&wheel).arg(&data);
    let said = printed(&mut read);
    let version = format!("{} MIT OR Apache-2.0 ['pyarrow", env!("CARGO_PKG_VERSION"));
    assert!(said.starts_with(&version), "{said}");
    assert!(said.contains(&format!("{}/joular/__init__.py", installed.display())), "{said}");
    assert!(said.contains("Hot.heavy"), "{said}");
    assert!(fs::exists(installed.join("joular/py.typed")).unwrap());
}

//! Runs a script in an emulated machine, and reads what it printed.

use std::{fs, process::Command, time::Duration};

use anyhow::{Context as _, Result, ensure};
use joular_tests::{
    dataset::DataSet,
    kernels::{Kernel, printed},
    machine::AARCH64,
    notes, paths,
};
use serde_json::Value;
use tempfile::TempDir;

/// It bounds a hang. On a machine with nothing else to do, all takes ten minutes.
const LIMIT: Duration = Duration::from_secs(3600);

/// What a machine printed, and the data sets in it.
pub struct Said {
    /// `6.1.0-57-cloud-arm64`
    pub kernel: String,
    text: String,
    directory: TempDir,
}

/// Boots a kernel with JVMs of these releases, each in `/jdkRELEASE`, and the functions of `machine.sh`.
pub fn run(kernel: &Kernel, program: &[u8], releases: &[u32], script: &str) -> Result<Said> {
    let mut root = AARCH64.root(&format!(". /machine.sh\nmoment booted\n{script}\nmoment end"))?;
    root.file("/bin/joular-bpf", program);
    let functions = paths::fixtures().join("aarch64/machine.sh");
    let functions = fs::read(&functions).with_context(|| format!("reading {}", functions.display()))?;
    root.file("/machine.sh", &functions);
    releases.iter().try_for_each(|release| AARCH64.put_jvm_at(&mut root, *release, &format!("/jdk{release}")))?;
    let finished = kernel.boot(root, LIMIT)?;
    // A serial console ends its lines as teletypes do.
    let text = finished.stdout.replace('\r', "");
    ensure!(text.contains("\nmoment ") && text.contains(" end\n"), "it did not come to the end: {}", shortened(&text));
    for line in text.lines().filter(|line| line.starts_with("moment ")) {
        println!("Linux {}: {line}", kernel.release);
    }
    Ok(Said { kernel: kernel.release.clone(), text, directory: tempfile::tempdir()? })
}

/// Without the files that were printed.
fn shortened(text: &str) -> String {
    let mut is_file = false;
    let is_said = |line: &&str| {
        is_file = (is_file || line.starts_with("BEGIN ")) && *line != "END";
        !is_file
    };
    text.lines().filter(is_said).collect::<Vec<_>>().join("\n")
}

impl Said {
    /// Which machine and JVM it is, for people.
    pub fn of(&self, release: u32) -> String {
        let mut numbers = self.kernel.split('.');
        let [major, minor] = [numbers.next(), numbers.next()].map(Option::unwrap_or_default);
        format!("Linux {major}.{minor}, JDK {release}")
    }

    /// Fails unless these lines, or beginnings of such, were printed.
    pub fn expect(&self, lines: &[&str]) -> Result<()> {
        for line in lines {
            ensure!(self.text.contains(line), "'{line}' is not in what was said: {}", shortened(&self.text));
        }
        Ok(())
    }

    fn file(&self, name: &str) -> Result<Vec<u8>> {
        let found = printed(&self.text, name)?.pop();
        found.with_context(|| format!("'{name}' was not printed: {}", shortened(&self.text)))
    }

    /// A directory that was packed.
    pub fn data(&self, name: &str) -> Result<DataSet> {
        let (archive, directory) =
            (self.directory.path().join(format!("{name}.tgz")), self.directory.path().join(name));
        if !directory.exists() {
            fs::write(&archive, self.file(name)?)?;
            fs::create_dir(&directory)?;
            let status = Command::new("tar").arg("-xzf").arg(&archive).arg("-C").arg(&directory).status()?;
            ensure!(status.success(), "unpacking {name}: {status}");
            notes::figure(&format!(
                "Linux {}: data set {name} has {} bytes",
                self.kernel,
                fs::metadata(&archive)?.len()
            ));
        }
        Ok(DataSet::at(directory))
    }

    /// What a program wrote, of JSON a line.
    pub fn records(&self, name: &str) -> Result<Vec<Value>> {
        let file = self.file(name)?;
        Ok(String::from_utf8_lossy(&file).lines().filter_map(|line| serde_json::from_str(line).ok()).collect())
    }

    pub fn pid(&self, name: &str) -> Result<u32> {
        let start = format!("pid {name} ");
        let line = self.text.lines().find_map(|line| line.strip_prefix(&start));
        line.with_context(|| format!("no process {name}"))?.trim().parse().context("a process")
    }

    /// The numbers of all lines that begin so.
    pub fn numbers(&self, beginning: &str) -> Vec<Vec<f64>> {
        let lines = self.text.lines().filter_map(|line| line.strip_prefix(beginning));
        lines.map(|line| line.split_whitespace().filter_map(|number| number.parse().ok()).collect()).collect()
    }
}

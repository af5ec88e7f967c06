//! Makes images of nothing but what a workload needs.

use std::{
    collections::BTreeSet,
    fs,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context as _, Result};
use tempfile::TempDir;

use super::run;
use crate::{java, jdk::Jdk, native};

/// Where the parts are in an image.
const JDK: &str = "/jdk";
const CLASSES: &str = "/classes";
/// Some programs do not start without these.
const MOUNT_POINTS: [&str; 4] = ["proc", "sys", "dev", "tmp"];

/// The files of an image.
pub struct Image {
    root: TempDir,
}

impl Image {
    /// A JDK, the libraries that it needs, and the Java workloads.
    pub fn of(jdk: &Jdk) -> Result<Self> {
        let image = Self::empty()?;
        let home = jdk.java.parent().and_then(Path::parent).context("a JDK has a directory")?;
        copy(home, &image.inside(JDK))?;
        copy(&java::classes()?, &image.inside(CLASSES))?;
        for library in libraries(&[jdk.java.clone(), home.join("lib/server/libjvm.so")], home)? {
            image.add(&library)?;
        }
        Ok(image)
    }

    /// A program that sleeps: the first process of every pod.
    pub fn pause() -> Result<Self> {
        let image = Self::empty()?;
        native::compile_static("pause.c", &image.inside("/pause"))?;
        Ok(image)
    }

    /// Gives its `java` another name as well.
    pub fn link_java(&self, name: &str) -> Result<()> {
        symlink("java", self.inside(&format!("{JDK}/bin/{name}")))
            .with_context(|| format!("linking {name} in an image"))
    }

    /// Adds a file or a directory of this machine at another path, which must not be there.
    pub fn put(&self, from: &Path, path: &str) -> Result<()> {
        let target = self.inside(path);
        fs::create_dir_all(target.parent().context("a file has a directory")?)?;
        copy(from, &target)
    }

    /// The program of its JDK, as it is inside.
    pub fn java() -> String {
        format!("{JDK}/bin/java")
    }

    pub fn root(&self) -> &Path {
        self.root.path()
    }

    fn empty() -> Result<Self> {
        let root = tempfile::tempdir()?;
        for name in MOUNT_POINTS {
            fs::create_dir(root.path().join(name)).with_context(|| format!("creating {name} in an image"))?;
        }
        Ok(Self { root })
    }

    fn inside(&self, path: &str) -> PathBuf {
        self.root.path().join(path.trim_start_matches('/'))
    }

    /// Adds a file of this machine, at its own path.
    fn add(&self, file: &Path) -> Result<()> {
        let target = self.inside(&file.to_string_lossy());
        fs::create_dir_all(target.parent().context("a file has a directory")?)?;
        fs::copy(file, &target).map(drop).with_context(|| format!("copying {} to an image", file.display()))
    }
}

/// What runs a workload's class in a container.
pub fn java_command(class: &str) -> Vec<String> {
    named_java_command("java", class)
}

/// The same where its `java` has another name.
pub fn named_java_command(name: &str, class: &str) -> Vec<String> {
    let java = Path::new(&Image::java()).with_file_name(name).display().to_string();
    let flags = ["-Xmx32m", "-XX:+UseSerialGC", "-XX:CompileCommand=quiet"];
    let dont_inline = format!("-XX:CompileCommand=dontinline,{class}::*");
    let command = [&[java.as_str()][..], &flags, &[&dont_inline, "-cp", CLASSES, class]].concat();
    command.into_iter().map(str::to_owned).collect()
}

fn copy(directory: &Path, target: &Path) -> Result<()> {
    run(Command::new("cp").args(["--recursive", "--no-dereference"]).arg(directory).arg(target)).map(drop)
}

/// Libraries of the system that programs need; not those below `home`.
fn libraries(programs: &[PathBuf], home: &Path) -> Result<BTreeSet<PathBuf>> {
    let text = run(Command::new("ldd").args(programs))?;
    let paths = text.split_whitespace().filter(|word| word.starts_with('/') && !word.ends_with(':'));
    Ok(paths.map(PathBuf::from).filter(|path| !path.starts_with(home)).collect())
}

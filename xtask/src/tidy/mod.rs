//! Checks the rules of layout. See ARCHITECTURE.md.

mod imports;
mod layout;

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result, bail};
use joular_tests::paths;

/// A source file, its path relative to the workspace's root.
pub struct Source {
    pub path: PathBuf,
    pub text: String,
}

impl Source {
    fn is_rust(&self) -> bool {
        self.path.extension().is_some_and(|extension| extension == "rs")
    }

    /// Lines that are built into the product: no comments, and nothing that
    /// `#[cfg(test)]` stands before, wherever in the file that is.
    pub fn product_lines(&self) -> impl Iterator<Item = &str> {
        let name = self.path.file_stem().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let is_test = self.path.components().any(|part| part.as_os_str() == "tests")
            || name == "tests"
            || name.ends_with("_tests")
            || TEST_FILES.iter().any(|file| self.path.ends_with(file));
        let mut lines = if is_test { "" } else { &self.text }.lines();
        std::iter::from_fn(move || {
            let mut line = lines.next()?;
            while line.trim() == "#[cfg(test)]" {
                skip_item(&mut lines);
                line = lines.next()?;
            }
            Some(line)
        })
        .filter(|line| !line.trim_start().starts_with("//"))
    }
}

/// Files that a `#[cfg(test)]` elsewhere includes.
const TEST_FILES: &[&str] = &[
    "data/src/fixture.rs",
    "data/src/noise.rs",
    "dataset/fixture.rs",
    "attribution/regressions.rs",
    "diff/simulation.rs",
    "energy/regressions.rs",
    "perf_pmu/fake.rs",
    "powercap/fake_tree.rs",
    "hotspot/live.rs",
    "calibration/fixture.rs",
    "output/snapshot.rs",
];

/// Leaves out one item: to its semicolon, or to the brace that closes it, which
/// stands where the item begins (rustfmt sees to that).
fn skip_item<'a>(lines: &mut impl Iterator<Item = &'a str>) {
    let mut indent = None;
    for line in lines.by_ref() {
        let start = line.len() - line.trim_start().len();
        let is_attribute =
            indent.is_none() && (line.trim_start().starts_with("#[") || line.trim_start().starts_with("//"));
        if is_attribute {
            continue;
        }
        let first = *indent.get_or_insert(start);
        let ends =
            line.trim_end().ends_with(';') || line.trim_start().starts_with('}') || line.trim_end().ends_with("{}");
        if ends && start == first {
            return;
        }
    }
}

pub fn run() -> Result<()> {
    let sources = sources()?;
    let mut complaints = Vec::new();
    for source in &sources {
        layout::check(source, &mut complaints);
        if source.is_rust() {
            imports::check(source, &mut complaints);
        }
    }
    if !complaints.is_empty() {
        bail!("{} complaints:\n{}", complaints.len(), complaints.join("\n"));
    }
    let mut rooms: BTreeMap<PathBuf, usize> = BTreeMap::new();
    for source in sources.iter().filter(|source| source.is_rust()) {
        *rooms.entry(room(&source.path)).or_default() += source.text.lines().count();
    }
    for (room, lines) in rooms {
        println!("{lines:>7} {}", room.display());
    }
    println!("tidy: {} files; above, lines of Rust by folder, tests included", sources.len());
    Ok(())
}

/// A top folder of a crate, or the crate where it has only files.
fn room(path: &Path) -> PathBuf {
    let folders: Vec<_> = path.parent().into_iter().flatten().collect();
    let below_src = folders.iter().position(|folder| *folder == "src").map_or(2, |src| src + 2);
    folders.into_iter().take(below_src).collect()
}

fn sources() -> Result<Vec<Source>> {
    let mut found = Vec::new();
    for part in ["joular-ebpf", "joular-user", "python", "tests", "xtask"] {
        collect(&paths::root().join(part), &mut found)?;
    }
    Ok(found)
}

fn collect(dir: &Path, found: &mut Vec<Source>) -> Result<()> {
    for entry in fs::read_dir(dir).with_context(|| format!("listing {}", dir.display()))? {
        let path = entry?.path();
        if path.is_dir() && path.file_name().is_some_and(|name| name != "target") {
            collect(&path, found)?;
        } else if path.extension().is_some_and(|extension| ["rs", "java", "py"].iter().any(|kind| extension == *kind)) {
            let text = fs::read_to_string(&path).with_context(|| format!("reading {}", path.display()))?;
            found.push(Source { path: path.strip_prefix(paths::root())?.to_owned(), text });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_counted_by_the_top_folders_of_crates() {
        for (path, expected) in [
            ("joular-user/data/src/report/html/mod.rs", "joular-user/data/src/report"),
            ("joular-user/src/lib.rs", "joular-user/src"),
            ("joular-ebpf/src/walk/arch/x86_64.rs", "joular-ebpf/src/walk"),
            ("tests/privileged/beside/agent.rs", "tests/privileged"),
        ] {
            assert_eq!(room(Path::new(path)), Path::new(expected));
        }
    }
}

//! Rules of layout, checked rather than remembered. See ARCHITECTURE.md.

mod imports;
mod layout;

use std::{
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

    /// Lines that are built into the product: no comments, no unit tests,
    /// which stand at a file's end or in files called `tests`.
    pub fn product_lines(&self) -> impl Iterator<Item = &str> {
        let is_test = self.path.components().any(|part| part.as_os_str() == "tests" || part.as_os_str() == "tests.rs");
        let lines = if is_test { "" } else { &self.text };
        let product = lines.lines().take_while(|line| line.trim() != "#[cfg(test)]");
        product.filter(|line| !line.trim_start().starts_with("//"))
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
    println!("tidy: {} files", sources.len());
    Ok(())
}

fn sources() -> Result<Vec<Source>> {
    let mut found = Vec::new();
    for part in ["joular-ebpf", "joular-user", "tests", "xtask"] {
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

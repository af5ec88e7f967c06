//! Knows where the version stands: all places are checked and rewritten by one table.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result, bail, ensure};

/// Files and folders, and what stands before each version in them. What does not exist has no version.
const PLACES: [(&str, &[&str]); 5] = [
    (MANIFEST, &["\nversion = \""]),
    ("docs/install.md", &["joular-bpf-", "joular-bpf-chart-", "joular-bpf_", "joular-bpf:"]),
    (
        "packaging/kubernetes",
        &["app.kubernetes.io/version: ", "app.kubernetes.io/version: \"", "image: joular-bpf:", "newTag: "],
    ),
    ("packaging/helm/joular-bpf/Chart.yaml", &["\nversion: ", "\nappVersion: ", "\nappVersion: \""]),
    ("python/pyproject.toml", &["\nversion = \""]),
];

/// The workspace's, whose version the program says.
const MANIFEST: &str = "Cargo.toml";

/// Where else nobody may write the version: a release would leave it as it was.
const SEARCHED: [&str; 2] = ["docs/install.md", "packaging"];

/// The version in the workspace's manifest.
pub fn current(root: &Path) -> Result<String> {
    let text = read(&root.join(MANIFEST))?;
    let at = positions(&text, PLACES[0].1).into_iter().next().context("Cargo.toml has no version of the workspace")?;
    Ok(version_at(&text[at..]).to_owned())
}

/// Checks that all places have this version, and that it stands nowhere else.
pub fn check(root: &Path, version: &str) -> Result<()> {
    let mut faults = Vec::new();
    for (place, starts) in PLACES {
        let mut found = 0;
        for file in files(&root.join(place))? {
            let text = read(&file)?;
            let positions = positions(&text, starts);
            found += positions.len();
            let others = positions.into_iter().filter(|at| version_at(&text[*at..]) != version);
            faults.extend(others.map(|at| format!("{} has {}", line(root, &file, &text, at), version_at(&text[at..]))));
        }
        if found == 0 && root.join(place).exists() {
            faults.push(format!("{place} has no version: correct PLACES in xtask/src/release/places.rs"));
        }
    }
    faults.extend(elsewhere(root, version)?);
    ensure!(faults.is_empty(), "version {version} does not stand in all places:\n{}", faults.join("\n"));
    Ok(())
}

/// What is wrong where the version stands that a release would not rewrite.
fn elsewhere(root: &Path, version: &str) -> Result<Vec<String>> {
    let mut faults = Vec::new();
    for file in SEARCHED.map(|path| files(&root.join(path))).into_iter().collect::<Result<Vec<_>>>()?.concat() {
        // Pictures and the like have none.
        let Ok(text) = fs::read_to_string(&file) else { continue };
        let place = PLACES.iter().find(|(place, _)| file.starts_with(root.join(place)));
        let known = place.map_or(Vec::new(), |(_, starts)| positions(&text, starts));
        let found = text.match_indices(version).map(|(at, _)| at).filter(|at| is_whole(&text, *at, version.len()));
        faults.extend(found.filter(|at| !known.contains(at)).map(|at| {
            let line = line(root, &file, &text, at);
            format!("{line} has the version: add the place to PLACES in xtask/src/release/places.rs")
        }));
    }
    Ok(faults)
}

/// Writes another version in all places.
pub fn write(root: &Path, version: &str) -> Result<()> {
    for (place, starts) in PLACES {
        for file in files(&root.join(place))? {
            let mut text = read(&file)?;
            for at in positions(&text, starts).into_iter().rev() {
                let end = at + version_at(&text[at..]).len();
                text.replace_range(at..end, version);
            }
            fs::write(&file, text).with_context(|| format!("writing {}", file.display()))?;
        }
    }
    Ok(())
}

/// The numbers of a version: `MAJOR.MINOR.PATCH`, as all kinds of packages can have it.
pub fn numbers(version: &str) -> Result<[u64; 3]> {
    let parts: Option<Vec<u64>> = version.split('.').map(|part| part.parse().ok()).collect();
    let numbers = parts.and_then(|parts| <[u64; 3]>::try_from(parts).ok());
    match numbers {
        Some(numbers) if numbers.map(|number| number.to_string()).join(".") == version => Ok(numbers),
        _ => bail!("'{version}' is not a version: write MAJOR.MINOR.PATCH, such as 0.2.0"),
    }
}

/// Where versions begin, in order.
fn positions(text: &str, starts: &[&str]) -> Vec<usize> {
    let ends = starts.iter().flat_map(|start| text.match_indices(start).map(|(at, found)| at + found.len()));
    let mut positions: Vec<usize> = ends.filter(|at| text[*at..].starts_with(|c: char| c.is_ascii_digit())).collect();
    positions.sort_unstable();
    positions
}

/// The version that a text begins with.
fn version_at(text: &str) -> &str {
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    text[..end].trim_end_matches('.')
}

/// Whether a version is not a part of a longer one.
fn is_whole(text: &str, at: usize, length: usize) -> bool {
    let is_part = |c: char| c.is_ascii_digit() || c == '.';
    let after = text[at + length..].trim_start_matches('.');
    !text[..at].ends_with(is_part) && !after.starts_with(|c: char| c.is_ascii_digit())
}

fn line(root: &Path, file: &Path, text: &str, at: usize) -> String {
    format!("{}:{}", file.strip_prefix(root).unwrap_or(file).display(), text[..at].lines().count())
}

/// A file, or all in a folder; nothing if it does not exist.
fn files(path: &Path) -> Result<Vec<PathBuf>> {
    if !path.is_dir() {
        return Ok(path.exists().then(|| path.to_owned()).into_iter().collect());
    }
    let mut found = Vec::new();
    for entry in fs::read_dir(path).with_context(|| format!("listing {}", path.display()))? {
        found.extend(files(&entry.with_context(|| format!("listing {}", path.display()))?.path())?);
    }
    found.sort();
    Ok(found)
}

fn read(file: &Path) -> Result<String> {
    fs::read_to_string(file).with_context(|| format!("reading {}", file.display()))
}

#[cfg(test)]
mod tests {
    use joular_tests::paths;

    use super::*;

    /// A small tree in which the version stands where it does in ours.
    fn tree() -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        for (file, text) in [
            ("Cargo.toml", "[workspace.package]\nversion = \"0.1.0\"\n[workspace.dependencies]\naya = \"=0.14.0\"\n"),
            (
                "docs/install.md",
                "joular-bpf-0.1.0-x86_64-linux.tar.gz joular-bpf_0.1.0_amd64.deb joular-bpf-VERSION.\n",
            ),
            ("packaging/kubernetes/kustomization.yaml", "    newTag: 0.1.0\n"),
            ("packaging/kubernetes/role.yaml", "    app.kubernetes.io/version: \"0.1.0\"\n"),
            ("packaging/helm/joular-bpf/Chart.yaml", "apiVersion: v2\nversion: 0.1.0\nappVersion: \"0.1.0\"\n"),
        ] {
            let file = root.path().join(file);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, text).unwrap();
        }
        root
    }

    #[test]
    fn our_places_have_the_version_and_it_stands_nowhere_else() {
        assert_eq!(current(paths::root()).unwrap(), env!("CARGO_PKG_VERSION"));
        check(paths::root(), env!("CARGO_PKG_VERSION")).unwrap();
    }

    #[test]
    fn another_version_is_written_in_all_places_and_nothing_else_changes() {
        let root = tree();
        check(root.path(), "0.1.0").unwrap();
        write(root.path(), "0.10.2").unwrap();
        check(root.path(), "0.10.2").unwrap();
        let read = |file| fs::read_to_string(root.path().join(file)).unwrap();
        assert!(read("Cargo.toml").ends_with("version = \"0.10.2\"\n[workspace.dependencies]\naya = \"=0.14.0\"\n"));
        assert_eq!(
            read("docs/install.md"),
            "joular-bpf-0.10.2-x86_64-linux.tar.gz joular-bpf_0.10.2_amd64.deb joular-bpf-VERSION.\n"
        );
        assert_eq!(
            read("packaging/helm/joular-bpf/Chart.yaml"),
            "apiVersion: v2\nversion: 0.10.2\nappVersion: \"0.10.2\"\n"
        );
    }

    #[test]
    fn a_place_with_another_version_and_a_version_elsewhere_are_found() {
        for (file, text, said) in [
            ("packaging/kubernetes/kustomization.yaml", "a:\n  newTag: 0.0.9\n", "kustomization.yaml:2 has 0.0.9"),
            ("docs/install.md", "joular-bpf-VERSION\n", "docs/install.md has no version"),
            ("packaging/new.yaml", "image: x:0.1.0\n", "packaging/new.yaml:1 has the version: add the place"),
        ] {
            let root = tree();
            fs::write(root.path().join(file), text).unwrap();
            let error = check(root.path(), "0.1.0").unwrap_err().to_string();
            assert!(error.contains(said), "{error}");
        }
        let root = tree();
        fs::write(root.path().join("packaging/other.yaml"), "needs: 10.1.0 0.1.0.5 0.1.01\n").unwrap();
        check(root.path(), "0.1.0").unwrap();
    }

    #[test]
    fn versions_have_three_numbers() {
        assert_eq!(numbers("0.2.0").unwrap(), [0, 2, 0]);
        assert!(numbers("0.10.0").unwrap() > numbers("0.9.3").unwrap());
        for wrong in ["", "1", "1.2", "1.2.3.4", "v1.2.3", "1.2.3-rc.1", "01.2.3", "+1.2.3"] {
            assert!(numbers(wrong).unwrap_err().to_string().contains("MAJOR.MINOR.PATCH"), "{wrong}");
        }
    }
}

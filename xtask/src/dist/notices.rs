//! Collects the licences of the libraries that are part of the program: most ask that their text goes with it.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write as _,
    fs,
    path::Path,
};

use anyhow::{Context as _, Result};

use super::crates::Crate;

/// How files with licences are named.
const NAMES: [&str; 5] = ["LICENSE", "LICENCE", "COPYING", "NOTICE", "UNLICENSE"];

/// That of the font in the program, which no crate brings.
const FONT: &str = include_str!("../../../joular-user/data/src/experiment/plot/font/OFL.txt");

/// Those of the models of boards in the program, which are data of others.
const MODELS: [&str; 2] = [
    include_str!("../../../joular-user/src/energy/board/models/NOTICE"),
    include_str!("../../../joular-user/src/energy/board/models/LICENSE"),
];

/// Names, versions and licences of all libraries, and each text once; at the end those of the font and of the models.
pub fn of(crates: &[Crate]) -> Result<String> {
    let mut libraries = String::new();
    let mut texts: BTreeMap<String, BTreeSet<&str>> = BTreeMap::new();
    for Crate { name, version, licence, folder, .. } in crates.iter().filter(|one| one.checksum.is_some()) {
        writeln!(libraries, "{name} {version}: {licence}")?;
        for text in texts_in(folder)? {
            texts.entry(text).or_default().insert(name);
        }
    }
    let mut texts: Vec<(String, String)> =
        texts.into_iter().map(|(text, names)| (names.into_iter().collect::<Vec<_>>().join(", "), text)).collect();
    texts.sort();
    let mut notices = format!("joular-bpf contains these libraries, with these licences.\n\n{libraries}");
    let font = ("Arimo, the font of plots as PDF".to_owned(), FONT.to_owned());
    let models = ("models of boards, for the energy source board".to_owned(), MODELS.join("\n"));
    for (names, text) in texts.into_iter().chain([font, models]) {
        write!(notices, "\n{}\n{names}\n\n{}\n", "-".repeat(80), text.trim_end())?;
    }
    Ok(notices)
}

fn texts_in(folder: &Path) -> Result<Vec<String>> {
    let entries = fs::read_dir(folder).with_context(|| format!("listing {}", folder.display()))?;
    let files = entries.filter_map(Result::ok).filter(|entry| {
        let name = entry.file_name().to_string_lossy().to_uppercase();
        NAMES.iter().any(|start| name.starts_with(start)) && entry.path().is_file()
    });
    files.map(|entry| Ok(String::from_utf8_lossy(&super::tree::read(&entry.path())?).into_owned())).collect()
}

//! Makes the archive for any Linux: the static program and all that belongs to it.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result};

use super::{
    Release,
    tree::{Tree, gzip, pack, read, stripped},
};

/// What goes beside the program; the licences by their usual names.
const PAPERS: [&str; 3] = ["README.md", "LICENSE-MIT", "LICENSE-APACHE"];

pub fn make(release: &Release, program: &Path) -> Result<PathBuf> {
    let name = format!("joular-bpf-{}-{}-linux", release.version, std::env::consts::ARCH);
    let tree = Tree::new()?;
    tree.write_executable(&format!("{name}/joular-bpf"), stripped(program)?)?;
    for paper in PAPERS {
        tree.copy(paper, &format!("{name}/{paper}"))?;
    }
    tree.write(&format!("{name}/LICENSES-OF-LIBRARIES.txt"), &release.notices)?;
    tree.copy("packaging/agent.toml", &format!("{name}/agent.toml"))?;
    tree.copy("packaging/systemd/joular-bpf.service", &format!("{name}/joular-bpf.service"))?;
    for folder in ["container", "grafana", "kubernetes", "prometheus"] {
        tree.copy_all(&format!("packaging/{folder}"), &format!("{name}/{folder}"))?;
    }
    tree.completions(program, &format!("{name}/"))?;
    tree.manual(program, &format!("{name}/usr/share/man/man1"), Ok, "")?;
    let packed = tree.root().join("packed.tar");
    pack(tree.root(), &name, &packed, release.epoch)?;
    let archive = release.output.join(format!("{name}.tar.gz"));
    fs::write(&archive, gzip(&read(&packed)?)?).with_context(|| format!("writing {}", archive.display()))?;
    Ok(archive)
}

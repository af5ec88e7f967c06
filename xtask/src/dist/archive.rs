//! Makes the archive for any Linux: the static program and all that belongs to it.

use std::path::PathBuf;

use anyhow::Result;

use super::{Program, Release, tree::Tree};

/// What goes beside the program; the licences by their usual names.
const PAPERS: [&str; 3] = ["README.md", "LICENSE-MIT", "LICENSE-APACHE"];

pub fn make(release: &Release, program: &Program) -> Result<PathBuf> {
    let name = format!("joular-bpf-{}-{}-linux", release.version, program.target.processor.name());
    let tree = Tree::new()?;
    tree.write_executable(&format!("{name}/joular-bpf"), &program.stripped)?;
    for paper in PAPERS {
        tree.copy(paper, &format!("{name}/{paper}"))?;
    }
    tree.write(&format!("{name}/LICENSES-OF-LIBRARIES.txt"), &program.notices)?;
    tree.copy("packaging/agent.toml", &format!("{name}/agent.toml"))?;
    tree.copy("packaging/systemd/joular-bpf.service", &format!("{name}/joular-bpf.service"))?;
    for folder in ["container", "grafana", "helm", "kubernetes", "prometheus", "selinux"] {
        tree.copy_all(&format!("packaging/{folder}"), &format!("{name}/{folder}"))?;
    }
    tree.completions(&program.runs, &format!("{name}/"))?;
    tree.manual(&program.runs, &format!("{name}/usr/share/man/man1"), Ok, "")?;
    let archive = release.output.join(format!("{name}.tar.gz"));
    tree.pack(&name, &archive, release.epoch)?;
    Ok(archive)
}

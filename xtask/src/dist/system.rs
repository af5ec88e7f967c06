//! Lays out what the packages of Linux distributions install. Only the papers that a distribution asks for are not here.

use anyhow::Result;

use super::{
    Program,
    tree::{Tree, gzip},
};

const DOCUMENTS: &str = "usr/share/doc/joular-bpf";

pub fn install(tree: &Tree, program: &Program) -> Result<()> {
    tree.write_executable("usr/bin/joular-bpf", &program.stripped)?;
    tree.copy("packaging/agent.toml", "etc/joular-bpf/agent.toml")?;
    tree.copy("packaging/systemd/joular-bpf.service", "usr/lib/systemd/system/joular-bpf.service")?;
    tree.copy("packaging/selinux/joular-bpf.cil", "usr/share/selinux/packages/joular-bpf.cil")?;
    tree.completions(&program.runs, "")?;
    tree.manual(&program.runs, "usr/share/man/man1", |page| gzip(&page), ".gz")?;
    tree.write(&format!("{DOCUMENTS}/licenses-of-libraries.txt.gz"), gzip(program.notices.as_bytes())?)?;
    tree.copy("CHANGELOG.md", &format!("{DOCUMENTS}/CHANGELOG.md"))?;
    // What those read who set it up.
    for folder in ["prometheus", "grafana"] {
        tree.copy_all(&format!("packaging/{folder}"), &format!("{DOCUMENTS}/examples"))?;
    }
    Ok(())
}

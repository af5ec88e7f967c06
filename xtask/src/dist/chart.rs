//! Packs the Helm chart as `helm package` does.

use std::path::PathBuf;

use anyhow::Result;

use super::{Release, tree::Tree};

/// Name of the chart, and of the folder in its package.
const NAME: &str = "joular-bpf";

pub fn make(release: &Release) -> Result<PathBuf> {
    let tree = Tree::new()?;
    tree.copy_all("packaging/helm/joular-bpf", NAME)?;
    let chart = release.output.join(format!("joular-bpf-chart-{}.tgz", release.version));
    tree.pack(NAME, &chart, release.epoch)?;
    Ok(chart)
}

//! Lays the volumes of a pod on the node, as a kubelet does.

use std::{
    collections::BTreeMap,
    fs::{self, Permissions},
    os::unix::fs::{PermissionsExt as _, chown, symlink},
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result, bail, ensure};

use super::{Files, Node, fields::Fields};

/// Of the files of configuration maps, secrets and tokens, unless the manifest says another one.
const DEFAULT_MODE: u32 = 0o644;
/// Added to the mode of files that cannot be written, where the pod has a group for its files.
const GROUP_MODE: u32 = 0o440;

/// Where each volume of a pod is on the node, by its name in the pod.
pub struct Volumes<'n> {
    node: &'n Node,
    folder: PathBuf,
    fs_group: Option<u32>,
    laid: BTreeMap<String, PathBuf>,
}

impl<'n> Volumes<'n> {
    /// Volumes of one pod, whose folder this is.
    pub fn new(node: &'n Node, folder: PathBuf, fs_group: Option<u32>) -> Self {
        Self { node, folder, fs_group, laid: BTreeMap::new() }
    }

    /// Lays one volume.
    pub fn add(&mut self, volume: &mut Fields) -> Result<()> {
        let name = volume.text("name")?;
        let (node, folder) = (self.node, self.folder.join(&name));
        let of_map = volume.maybe_object("configMap", |map| {
            let (name, mode) = (map.text("name")?, map.number_or("defaultMode", DEFAULT_MODE)?);
            lay_files(&folder, node.config_map(&name)?, mode, self.fs_group)
        })?;
        let of_secret = volume.maybe_object("secret", |secret| {
            let (name, mode) = (secret.text("secretName")?, secret.number_or("defaultMode", DEFAULT_MODE)?);
            let files = node.secrets.get(&name).with_context(|| format!("there is no secret {name}"))?;
            lay_files(&folder, files, mode, self.fs_group)
        })?;
        let of_host = volume.maybe_object("hostPath", |host| of_host(&host.text("path")?, &host.text("type")?))?;
        let mut paths = [of_map.map(|()| folder.clone()), of_secret.map(|()| folder.clone()), of_host].into_iter();
        let path = paths.find_map(|path| path).with_context(|| format!("volume {name} is of an unknown kind"))?;
        self.laid.insert(name, path);
        Ok(())
    }

    /// Lays what pods show to the API server, and returns where.
    pub fn add_token(&self) -> Result<PathBuf> {
        let folder = self.folder.join("kube-api-access");
        let files = [("token", "a-token"), ("ca.crt", "a-certificate"), ("namespace", "joular-bpf")];
        let files = files.map(|(name, content)| (name.to_owned(), content.to_owned())).into();
        lay_files(&folder, &files, DEFAULT_MODE, self.fs_group)?;
        Ok(folder)
    }

    /// What to mount where a container mounts this volume, or one path in it.
    pub fn path(&self, name: &str, sub_path: Option<&str>) -> Result<PathBuf> {
        let volume = self.laid.get(name).with_context(|| format!("the pod has no volume {name}"))?;
        let Some(sub_path) = sub_path else { return Ok(volume.clone()) };
        // A kubelet follows links itself: what is mounted is a file, and stays the one that it was.
        let path = volume.join(sub_path).canonicalize().with_context(|| format!("{sub_path} of volume {name}"))?;
        ensure!(path.starts_with(volume.canonicalize()?), "{sub_path} leads out of volume {name}");
        Ok(path)
    }
}

/// A path of the node itself.
fn of_host(path: &str, kind: &str) -> Result<PathBuf> {
    match kind {
        "Directory" => ensure!(Path::new(path).is_dir(), "{path} is not a directory"),
        "DirectoryOrCreate" => fs::create_dir_all(path).with_context(|| format!("creating {path}"))?,
        _ => bail!("{path} has an unknown type: {kind}"),
    }
    Ok(path.into())
}

/// Lays files of the API server: each is a link to a link, so that all of them change at once. With a group, that may
/// read them too.
pub fn lay_files(folder: &Path, files: &Files, mode: u32, group: Option<u32>) -> Result<()> {
    const VERSION: &str = "..2026_11_29_08_00_00.1";
    let version = folder.join(VERSION);
    fs::create_dir_all(&version).with_context(|| format!("creating {}", version.display()))?;
    for (name, content) in files {
        let file = version.join(name);
        fs::write(&file, content).with_context(|| format!("writing {}", file.display()))?;
        let mode = group.map_or(mode, |_| mode | GROUP_MODE);
        fs::set_permissions(&file, Permissions::from_mode(mode))?;
        chown(&file, None, group).with_context(|| format!("giving {} to a group", file.display()))?;
        symlink(Path::new("..data").join(name), folder.join(name))?;
    }
    Ok(symlink(VERSION, folder.join("..data"))?)
}

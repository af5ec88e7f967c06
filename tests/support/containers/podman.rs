//! Containers of podman, with a store of images of their own.

use std::{
    ffi::OsStr,
    path::Path,
    process::{Command, Stdio},
};

use anyhow::{Context as _, Result};
use tempfile::TempDir;

use super::{image::Image, pack, run};
use crate::network::Network;

/// A podman that shares nothing with that of the system; its containers end when it is dropped.
pub struct Podman {
    home: TempDir,
}

/// A running container.
#[derive(Clone, Debug)]
pub struct Container {
    /// 64 hexadecimal digits.
    pub id: String,
    /// Of its first process, as the host sees it.
    pub pid: u32,
}

impl Podman {
    pub fn new() -> Result<Self> {
        Ok(Self { home: tempfile::tempdir()? })
    }

    /// Makes an image of files.
    pub fn import(&self, image: &Image, name: &str) -> Result<()> {
        let archive = self.home.path().join("image.tar");
        pack(image.root(), &archive)?;
        // Pods start their first container without saying what it runs.
        run(self.command("import").args(["--quiet", "--change", "CMD [\"/pause\"]"]).arg(archive).arg(name)).map(drop)
    }

    /// Writes an image to an archive that other programs read.
    pub fn save(&self, name: &str, archive: &Path) -> Result<()> {
        run(self.command("save").args(["--quiet", "--format", "oci-archive", "--output"]).arg(archive).arg(name))
            .map(drop)
    }

    /// Reads an image that was made elsewhere; its name.
    pub fn load(&self, archive: &Path) -> Result<String> {
        let said = run(self.command("load").args(["--quiet", "--input"]).arg(archive))?;
        Ok(said.rsplit(": ").next().unwrap_or_default().trim().to_owned())
    }

    /// What a container wrote to its standard error and output.
    pub fn logs(&self, container: &Container) -> Result<String> {
        let output = self.command("logs").arg(&container.id).output().context("starting podman")?;
        Ok(String::from_utf8_lossy(&output.stderr).into_owned() + &String::from_utf8_lossy(&output.stdout))
    }

    /// Ends a container as Kubernetes does; its exit code.
    pub fn stop(&self, container: &Container) -> Result<i32> {
        run(self.command("stop").args(["--time", "60"]).arg(&container.id))?;
        let code = run(self.command("inspect").args(["--format", "{{.State.ExitCode}}"]).arg(&container.id))?;
        code.parse().with_context(|| format!("podman says exit code '{code}'"))
    }

    /// Starts a container.
    pub fn start(&self, image: &str, command: &[String]) -> Result<Container> {
        self.start_with(&[], image, command)
    }

    /// Starts a container in a user namespace of its own: its root is a user without privileges outside.
    pub fn start_as_other_user(&self, image: &str, command: &[String]) -> Result<Container> {
        self.start_with(&["--uidmap", "0:200000:65536", "--gidmap", "0:200000:65536"], image, command)
    }

    /// Starts a container with more options of `podman run`.
    pub fn start_with(&self, more: &[&str], image: &str, command: &[String]) -> Result<Container> {
        // The network of the host needs no tools to be set up.
        self.start_in("host", more, image, command)
    }

    /// Starts a container in a network.
    pub fn start_in_network(&self, network: &Network, image: &str, command: &[String]) -> Result<Container> {
        self.start_in(&format!("ns:{}", network.path().display()), &[], image, command)
    }

    fn start_in(&self, network: &str, more: &[&str], image: &str, command: &[String]) -> Result<Container> {
        // Some hosts do not allow root to raise limits, as podman does by default.
        let limits = ["--ulimit", "nofile=1024:1024", "--ulimit", "nproc=30000:30000"];
        let options = ["--detach", "--network", network, "--log-driver", "k8s-file"];
        let id = run(self.command("run").args(options).args(limits).args(more).arg(image).args(command))?;
        let pid = run(self.command("inspect").args(["--format", "{{.State.Pid}}"]).arg(&id))?;
        let pid = pid.parse().with_context(|| format!("podman says pid '{pid}'"))?;
        Ok(Container { id, pid })
    }

    /// Waits until a container has printed `ready`.
    pub fn wait_ready(&self, container: &Container) -> Result<()> {
        super::wait_ready(container.pid, || self.logs(container))
    }

    /// Ends containers, and removes their files: that fails while somebody uses them.
    pub fn remove<'c>(&self, containers: impl IntoIterator<Item = &'c Container>) -> Result<()> {
        let ids: Vec<&OsStr> = containers.into_iter().map(|container| OsStr::new(&container.id)).collect();
        run(self.command("rm").args(["--force", "--time", "0"]).args(ids)).map(drop)
    }

    fn command(&self, action: &str) -> Command {
        let mut command = Command::new("podman");
        for (option, directory) in [("--root", "images"), ("--runroot", "state"), ("--tmpdir", "tmp")] {
            command.arg(option).arg(self.home.path().join(directory));
        }
        command.args(["--storage-driver", "overlay", "--cgroup-manager", "cgroupfs", "--events-backend", "none"]);
        command.args(["--runtime", "runc", action]).stdin(Stdio::null());
        command
    }
}

impl Drop for Podman {
    fn drop(&mut self) {
        let _removed = self.command("rm").args(["--force", "--all", "--time", "0"]).output();
    }
}

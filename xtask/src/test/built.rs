//! Builds the program and all tests at once, and lints our own crates by what was compiled for them.

use std::{path::PathBuf, process::Stdio};

use anyhow::{Context as _, Result, ensure};
use joular_tests::paths;
use serde_json::Value;

use crate::shell;

/// The program, and test programs that are not cargo's to run: they need it, some of
/// them root.
pub struct Built {
    pub program: PathBuf,
    pub support: PathBuf,
    pub unprivileged: PathBuf,
    pub live: PathBuf,
    /// Warnings of the compiler and of clippy, which are printed already.
    warnings: usize,
}

impl Built {
    /// Builds all there is at once, as the developer. For a part of the workspace, or
    /// without the tests, crates may have fewer features, and would be built again.
    pub fn build() -> Result<Self> {
        let mut cargo = shell::linting_cargo();
        // The report of what took how long lies in `target/cargo-timings`.
        cargo.args(["build", "--timings", "--workspace", "--all-targets", "--message-format=json"]);
        let cargo = cargo.current_dir(paths::root()).stderr(Stdio::inherit());
        let output = cargo.output().with_context(|| format!("starting {cargo:?}"))?;
        let messages: Vec<Value> =
            output.stdout.split(|byte| *byte == b'\n').filter_map(|line| serde_json::from_slice(line).ok()).collect();
        let diagnostics: Vec<&Value> =
            messages.iter().map(|message| &message["message"]).filter(|message| message.is_object()).collect();
        for diagnostic in &diagnostics {
            eprintln!("{}", diagnostic["rendered"].as_str().unwrap_or_default());
        }
        ensure!(output.status.success(), "{cargo:?}: {}", output.status);
        Ok(Self {
            program: executable(&messages, "joular-bpf", false)?,
            support: executable(&messages, "joular_tests", true)?,
            unprivileged: executable(&messages, "it", true)?,
            live: executable(&messages, "privileged", true)?,
            warnings: diagnostics.len(),
        })
    }

    /// Whether the compiler and clippy had nothing to say.
    pub fn has_no_warnings(&self) -> Result<()> {
        ensure!(self.warnings == 0, "the build has {} warnings: see above", self.warnings);
        Ok(())
    }
}

/// The program that a target of this name became, among cargo's messages.
fn executable(messages: &[Value], name: &str, is_test: bool) -> Result<PathBuf> {
    let is_it = |message: &&Value| message["target"]["name"] == name && message["profile"]["test"] == is_test;
    let program = messages.iter().filter(is_it).find_map(|message| message["executable"].as_str());
    program.map(PathBuf::from).with_context(|| format!("cargo built no '{name}'"))
}

//! Makes what is handed out, in target/dist: an archive with a static program, a Debian package, a container
//! image, and their SHA-256.
//!
//! The same sources and compilers give the same bytes: nothing of this machine is in them but the certificates
//! in the image, and times are those of the commit.

mod archive;
mod deb;
mod image;
mod notices;
mod tree;

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context as _, Result};
use joular_tests::paths;

use crate::{
    build::{self, Library, Profile},
    shell,
};

#[derive(clap::Args)]
pub struct Options {
    /// Optimise little: quick to build, for tests.
    #[arg(long)]
    quick: bool,
    /// Use this program for the Debian package, and build none.
    #[arg(long, value_name = "FILE")]
    program: Option<PathBuf>,
    /// Use this program for the archive and the image, and build none.
    #[arg(long, value_name = "FILE")]
    static_program: Option<PathBuf>,
    /// Directory for the results [default: target/dist]
    #[arg(long, value_name = "DIR")]
    output: Option<PathBuf>,
}

/// What all packages are made of.
struct Release {
    /// The version, as the program says it.
    version: String,
    /// Time of every file, in seconds since 1970.
    epoch: u64,
    /// Directory for the results.
    output: PathBuf,
    /// Licences of the libraries within the program.
    notices: String,
}

pub fn run(options: Options) -> Result<()> {
    let Options { quick, program, static_program, output } = options;
    let profile = if quick { Profile::Dev } else { Profile::Archive };
    let built = |given: Option<PathBuf>, library| given.map_or_else(|| build::build_portable(profile, library), Ok);
    let static_program = absolute(built(static_program, Library::Musl)?)?;
    let program = absolute(built(program, Library::Gnu)?)?;
    let output = absolute(output.unwrap_or_else(|| paths::target().join("dist")))?;
    fs::create_dir_all(&output).with_context(|| format!("creating {}", output.display()))?;
    let release = Release { version: version(&program)?, epoch: epoch()?, output, notices: notices::all()? };
    let made = [
        archive::make(&release, &static_program)?,
        deb::make(&release, &program)?,
        image::make(&release, &static_program)?,
    ];
    let sums = shell::capture(Command::new("sha256sum").args(&made).args(["--tag"]))?;
    let sums = sums.replace(&format!("{}/", release.output.display()), "");
    fs::write(release.output.join("SHA256SUMS"), &sums).context("writing SHA256SUMS")?;
    print!("{}:\n{sums}", release.output.display());
    Ok(())
}

fn absolute(path: PathBuf) -> Result<PathBuf> {
    std::path::absolute(&path).with_context(|| format!("finding {}", path.display()))
}

fn version(program: &Path) -> Result<String> {
    let said = shell::capture(Command::new(program).arg("--version"))?;
    Ok(said.split_whitespace().last().context("joular-bpf --version is empty")?.to_owned())
}

/// `SOURCE_DATE_EPOCH`, or the time of the commit.
fn epoch() -> Result<u64> {
    let text = match env::var("SOURCE_DATE_EPOCH") {
        Ok(text) => text,
        Err(_) => shell::capture(Command::new("git").args(["log", "-1", "--format=%ct"]))
            .context("finding the commit's time; without git, set SOURCE_DATE_EPOCH")?,
    };
    text.trim().parse().with_context(|| format!("SOURCE_DATE_EPOCH is '{}', not seconds since 1970", text.trim()))
}

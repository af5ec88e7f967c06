//! Makes what is handed out, in target/dist: an archive with a static program, a Debian package, a container
//! image, a Helm chart, and their SHA-256.
//!
//! The same sources and compilers give the same bytes: nothing of this machine is in them but the certificates
//! in the image, and times are those of the commit.

mod archive;
mod chart;
mod deb;
mod image;
mod notices;
mod tree;

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context as _, Result, ensure};
use joular_tests::paths;

use crate::{
    build::{self, Library, Profile},
    shell,
};

#[derive(clap::Args)]
pub struct Options {
    /// Use this program for the Debian package, and build none.
    #[arg(long, value_name = "FILE")]
    program: Option<PathBuf>,
    /// Use this program for the archive and the image, and build none.
    #[arg(long, value_name = "FILE")]
    static_program: Option<PathBuf>,
    /// Directory for the results, which is emptied [default: target/dist]
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

/// Builds the programs that are not given, optimised, and makes the packages.
pub fn run(options: Options) -> Result<()> {
    let Options { program, static_program, output } = options;
    let built =
        |given: Option<PathBuf>, library| given.map_or_else(|| build::build_portable(Profile::Archive, library), Ok);
    let static_program = built(static_program, Library::Musl)?;
    let program = built(program, Library::Gnu)?;
    let output = output.unwrap_or_else(|| paths::target().join("dist"));
    let sums = make(&program, &static_program, &output)?;
    print!("{}:\n{sums}", output.display());
    Ok(())
}

/// Makes packages with the program that tests run; the directory where they are. A second time, they must be the same.
pub fn for_tests(program: &Path) -> Result<PathBuf> {
    let static_program = build::build_portable(Profile::Dev, Library::Musl)?;
    let [output, again] = ["packages", "packages-again"].map(|name| paths::target().join(name));
    let (first, second) = (make(program, &static_program, &output)?, make(program, &static_program, &again)?);
    ensure!(first == second, "packages made twice of the same programs differ:\n{first}{second}");
    fs::remove_dir_all(&again).with_context(|| format!("removing {}", again.display()))?;
    Ok(output)
}

/// Makes all packages in a directory, which may hold nothing else; their SHA-256.
fn make(program: &Path, static_program: &Path, output: &Path) -> Result<String> {
    let [program, static_program, output] = [program, static_program, output].map(absolute);
    let (program, static_program, output) = (program?, static_program?, output?);
    if output.exists() {
        fs::remove_dir_all(&output).with_context(|| format!("removing {}", output.display()))?;
    }
    fs::create_dir_all(&output).with_context(|| format!("creating {}", output.display()))?;
    let release = Release { version: version(&program)?, epoch: epoch()?, output, notices: notices::all()? };
    let made = [
        archive::make(&release, &static_program)?,
        deb::make(&release, &program)?,
        image::make(&release, &static_program)?,
        chart::make(&release)?,
    ];
    let sums = shell::capture(Command::new("sha256sum").args(&made).args(["--tag"]))?;
    let sums = sums.replace(&format!("{}/", release.output.display()), "");
    fs::write(release.output.join("SHA256SUMS"), &sums).context("writing SHA256SUMS")?;
    Ok(sums)
}

fn absolute(path: &Path) -> Result<PathBuf> {
    std::path::absolute(path).with_context(|| format!("finding {}", path.display()))
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

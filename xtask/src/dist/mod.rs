//! Makes what is handed out, in target/dist: an archive with a static program, packages for Debian and for RPM, a
//! container image, a Helm chart, a Python package, what they contain and come from, their SHA-256, and a signature.
//!
//! The same sources and compilers give the same bytes: nothing of this machine is in them but the certificates
//! in the image, and times are those of the commit.

mod archive;
pub mod changelog;
mod chart;
mod crates;
mod deb;
mod image;
mod notices;
mod provenance;
mod rpm;
mod sbom;
mod sums;
mod system;
mod tree;
mod wheel;

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context as _, Result, ensure};
use joular_tests::paths;

use self::{crates::Crate, provenance::Build};
use crate::{
    build::{self, Profile},
    shell,
    target::{Library, Processor, Target},
};

/// Who answers for packages: `authors` of the workspace's manifest.
pub const MAINTAINER: &str = env!("CARGO_PKG_AUTHORS");

#[derive(clap::Args)]
#[group(skip)]
pub struct Options {
    /// Use this program for the Debian and the RPM package, and build none.
    #[arg(long, value_name = "FILE")]
    program: Option<PathBuf>,
    /// Use this program for the archive and the image, and build none.
    #[arg(long, value_name = "FILE")]
    static_program: Option<PathBuf>,
    /// Make files for this processor too, with programs that are built here
    #[arg(long, value_name = "PROCESSOR")]
    also: Option<Processor>,
    /// Directory for the results, which is emptied [default: target/dist]
    #[arg(long, value_name = "DIR")]
    output: Option<PathBuf>,
    /// Sign SHA256SUMS with this secret key of minisign
    #[arg(long, value_name = "KEYFILE")]
    pub sign: Option<PathBuf>,
    /// Address that names who builds, for the provenance
    #[arg(long, value_name = "URI", default_value = "local")]
    builder: String,
}

/// What all packages have in common.
struct Release {
    /// The version, as the program says it.
    version: String,
    /// Time of every file, in seconds since 1970.
    epoch: u64,
    /// Directory for the results.
    output: PathBuf,
}

impl Release {
    /// The time of every file, as JSON has it.
    fn time(&self) -> Result<String> {
        let mut date = Command::new("date");
        date.args(["--utc", "+%Y-%m-%dT%H:%M:%SZ", "--date"]).arg(format!("@{}", self.epoch));
        Ok(shell::capture(&mut date)?.trim().to_owned())
    }
}

/// A program that packages are made of.
struct Program {
    file: PathBuf,
    /// It, or the same for this machine: it can be run.
    runs: PathBuf,
    /// It without its symbols: what is handed out is small, whatever it was made of.
    stripped: Vec<u8>,
    target: Target,
    crates: Vec<Crate>,
    /// Licences of the libraries within it.
    notices: String,
}

impl Program {
    fn new(file: &Path, target: Target, runs: &Path) -> Result<Self> {
        let crates = crates::of(&target.to_string())?;
        let (stripped, notices) = (tree::stripped(file, target.processor)?, notices::of(&crates)?);
        Ok(Self { file: file.to_owned(), runs: runs.to_owned(), stripped, target, crates, notices })
    }
}

/// Programs for a processor, for the C library of the system and static.
#[derive(Clone)]
pub struct Pair {
    processor: Processor,
    program: PathBuf,
    pub static_program: PathBuf,
}

impl Pair {
    /// Builds those that are not given.
    fn new(profile: Profile, processor: Processor, [program, static_program]: [Option<PathBuf>; 2]) -> Result<Self> {
        let built = |given: Option<PathBuf>, library| match given {
            Some(given) => absolute(&given),
            None => build::build_portable(profile, Target { processor, library }),
        };
        let static_program = built(static_program, Library::Musl)?;
        Ok(Self { processor, program: built(program, Library::Gnu)?, static_program })
    }

    /// Builds the one that is linked to libraries, for a static one that was built.
    pub fn with_static(profile: Profile, processor: Processor, program: PathBuf) -> Result<Self> {
        Self::new(profile, processor, [None, Some(program)])
    }
}

/// The programs, and where they come from.
struct Sources {
    /// For this machine's processor, whose programs can be run.
    here: Pair,
    also: Option<Pair>,
    build: Build,
}

impl Sources {
    /// Builds the programs that are not given, optimised.
    fn new(options: Options) -> Result<Self> {
        let Options { program, static_program, builder, also, .. } = options;
        let is_compiled = program.is_none() && static_program.is_none();
        let processor = Processor::here()?;
        let also = also.filter(|also| *also != processor);
        let here = Pair::new(Profile::Archive, processor, [program, static_program])?;
        let also = also.map(|also| Pair::new(Profile::Archive, also, [None, None])).transpose()?;
        Ok(Self { here, also, build: Build { builder, is_compiled } })
    }

    /// Makes all files in a directory, which may hold nothing else; their SHA-256.
    fn make(&self, output: &Path) -> Result<String> {
        let output = absolute(output)?;
        if output.exists() {
            fs::remove_dir_all(&output).with_context(|| format!("removing {}", output.display()))?;
        }
        fs::create_dir_all(&output).with_context(|| format!("creating {}", output.display()))?;
        let release = Release { version: version(&self.here.program)?, epoch: epoch()?, output };
        let (mut programs, mut static_programs) = (Vec::new(), Vec::new());
        for Pair { processor, program, static_program } in [&self.here].into_iter().chain(&self.also) {
            let of = |library| Target { processor: *processor, library };
            programs.push(Program::new(program, of(Library::Gnu), &self.here.program)?);
            static_programs.push(Program::new(static_program, of(Library::Musl), &self.here.static_program)?);
        }
        let mut made = Vec::new();
        for (program, static_program) in programs.iter().zip(&static_programs) {
            made.push(archive::make(&release, static_program)?);
            made.push(deb::make(&release, program)?);
            made.push(rpm::make(&release, program)?);
        }
        made.extend([image::make(&release, &static_programs)?, chart::make(&release)?, wheel::make(&release)?]);
        for (program, static_program) in programs.iter().zip(&static_programs) {
            made.extend([sbom::make(&release, program)?, sbom::make(&release, static_program)?]);
        }
        made.push(install_script(&release)?);
        made.push(provenance::make(&release, &self.build, &made)?);
        sums::write(&release, &made)
    }

    /// Makes all files twice, and compares them.
    fn make_twice(&self, output: &Path) -> Result<String> {
        let again = paths::target().join("packages-again");
        let (first, second) = (self.make(output)?, self.make(&again)?);
        ensure!(first == second, "packages made twice of the same programs differ:\n{first}{second}");
        fs::remove_dir_all(&again).with_context(|| format!("removing {}", again.display()))?;
        Ok(first)
    }
}

/// Builds the programs that are not given, and makes the packages.
pub fn run(options: Options) -> Result<()> {
    finish(options, Sources::make)
}

/// The same, and makes everything twice, which must not differ.
pub fn run_twice(options: Options) -> Result<()> {
    finish(options, Sources::make_twice)
}

fn finish(mut options: Options, make: impl Fn(&Sources, &Path) -> Result<String>) -> Result<()> {
    let output = options.output.take().unwrap_or_else(|| paths::target().join("dist"));
    let key = options.sign.take();
    let sources = Sources::new(options)?;
    let made = make(&sources, &output)?;
    if let Some(key) = key {
        sums::sign(&absolute(&output)?, &version(&sources.here.program)?, &absolute(&key)?)?;
    }
    print!("{}:\n{made}", output.display());
    Ok(())
}

/// Makes packages with the program that tests run, and with those for another processor, signed with a key for this once;
/// the directory where they are.
pub fn for_tests(program: &Path, also: Option<&Pair>) -> Result<PathBuf> {
    let here = Pair::new(Profile::Dev, Processor::here()?, [Some(program.to_owned()), None])?;
    let also = also.filter(|also| !also.processor.is_here()).cloned();
    let sources = Sources { here, also, build: Build { builder: "local".into(), is_compiled: true } };
    let output = paths::target().join("packages");
    sources.make_twice(&output)?;
    if shell::exists("minisign") {
        let keys = tempfile::tempdir().context("making a temporary directory")?;
        let key = keys.path().join("minisign.key");
        let mut minisign = Command::new("minisign");
        minisign.args(["-G", "-W", "-s"]).arg(&key).arg("-p").arg(output.join("minisign.pub"));
        shell::capture(&mut minisign)?;
        sums::sign(&output, &version(program)?, &key)?;
    }
    Ok(output)
}

/// The script that installs the archive.
fn install_script(release: &Release) -> Result<PathBuf> {
    let script = release.output.join("install.sh");
    let source = paths::root().join("packaging/install.sh");
    fs::copy(&source, &script).with_context(|| format!("copying {} to {}", source.display(), script.display()))?;
    Ok(script)
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

//! Starts programs that nobody here wrote, and keeps them under load: Tomcat asked by `ab`, the database H2,
//! and Spark SQL. What they do is not known in advance, but that their stacks must be whole, and what it
//! may cost to see them. What a [`shop`] costs is known, on frameworks that nobody here wrote either.

mod h2;
pub mod shop;
mod spark;
mod tomcat;

use std::{fmt, path::Path};

use anyhow::Result;
use tempfile::TempDir;

pub use self::tomcat::{ANSWERED, Site, answer};
use crate::{java, process::Running, python};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Program {
    Tomcat,
    H2,
    SparkSql,
}

/// One under load; all its processes end when it is dropped.
pub struct Server {
    /// Of its JVM.
    pub pid: u32,
    /// The load first.
    _processes: Vec<Running>,
    _files: Option<TempDir>,
}

impl Program {
    pub const ALL: [Self; 3] = [Self::Tomcat, Self::H2, Self::SparkSql];

    /// Packages of Debian and Ubuntu that it needs; Spark comes with the engines from PyPI.
    pub const fn packages(self) -> &'static [&'static str] {
        match self {
            Self::Tomcat => &["tomcat10", "apache2-utils"],
            Self::H2 => &["libh2-java"],
            Self::SparkSql => &[],
        }
    }

    pub fn is_installed(self) -> bool {
        match self {
            Self::Tomcat => tomcat::is_installed(),
            Self::H2 => Path::new(h2::JAR).exists(),
            Self::SparkSql => python::ENGINES.is_ready(),
        }
    }

    /// Starts it on the Java of the system; it is under load when this returns.
    pub fn start(self) -> Result<Server> {
        self.start_on(&java::tool("java"), &[])
    }

    /// The same on a Java of one's choice, with more flags; Spark has its own.
    pub fn start_on(self, java: &Path, flags: &[&str]) -> Result<Server> {
        match self {
            Self::Tomcat => tomcat::start(java, flags),
            Self::H2 => h2::start(java, flags),
            Self::SparkSql => spark::start(),
        }
    }
}

impl fmt::Display for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Tomcat => "Tomcat under ab",
            Self::H2 => "H2",
            Self::SparkSql => "Spark SQL",
        })
    }
}

//! Names what programs are built for: a processor, and a C library.

use std::{env::consts::ARCH, fmt, str::FromStr};

use anyhow::{Context as _, Result};

/// Of 64 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Processor {
    #[value(name = "x86_64")]
    X86_64,
    Aarch64,
}

impl Processor {
    pub const ALL: [Self; 2] = [Self::X86_64, Self::Aarch64];

    /// This machine's.
    pub fn here() -> Result<Self> {
        let here = Self::ALL.into_iter().find(|processor| processor.name() == ARCH);
        here.with_context(|| format!("joular-bpf is built on x86_64 and aarch64, not on {ARCH}"))
    }

    /// As Rust and RPM call it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::X86_64 => "x86_64",
            Self::Aarch64 => "aarch64",
        }
    }

    /// As Debian, Go and images of containers call it.
    pub const fn debian(self) -> &'static str {
        match self {
            Self::X86_64 => "amd64",
            Self::Aarch64 => "arm64",
        }
    }

    pub fn is_here(self) -> bool {
        self.name() == ARCH
    }

    /// Name of one of GNU's tools that works for it.
    pub fn tool(self, name: &str) -> String {
        if self.is_here() { name.to_owned() } else { format!("{}-linux-gnu-{name}", self.name()) }
    }

    /// Debian's package with a C compiler for it, where it is not this machine's.
    pub const fn compiler_package(self) -> &'static str {
        match self {
            Self::X86_64 => "gcc-x86-64-linux-gnu",
            Self::Aarch64 => "gcc-aarch64-linux-gnu",
        }
    }
}

/// The C library of a program that is handed out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Library {
    /// The system's, which the program loads. Only such a program can load NVIDIA's library.
    Gnu,
    /// Within the program: one file that runs on any Linux.
    Musl,
}

/// What a program is built for. Its text is what Rust calls it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Target {
    pub processor: Processor,
    pub library: Library,
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let library = match self.library {
            Library::Gnu => "gnu",
            Library::Musl => "musl",
        };
        write!(f, "{}-unknown-linux-{library}", self.processor.name())
    }
}

impl FromStr for Target {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> Result<Self> {
        let libraries = |processor| [Library::Gnu, Library::Musl].map(|library| Self { processor, library });
        let all: Vec<Self> = Processor::ALL.into_iter().flat_map(libraries).collect();
        let names = || all.iter().map(Self::to_string).collect::<Vec<_>>().join(", ");
        let found = all.iter().find(|target| target.to_string() == text);
        found.copied().with_context(|| format!("'{text}' is none of {}", names()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_are_named_as_rust_names_them() {
        let target: Target = "aarch64-unknown-linux-musl".parse().unwrap();
        assert_eq!(target, Target { processor: Processor::Aarch64, library: Library::Musl });
        assert_eq!(target.to_string(), "aarch64-unknown-linux-musl");
        for unknown in ["", "aarch64", "riscv64gc-unknown-linux-gnu", "aarch64-unknown-linux-musleabi"] {
            assert!(unknown.parse::<Target>().unwrap_err().to_string().contains("x86_64-unknown-linux-gnu"));
        }
    }
}

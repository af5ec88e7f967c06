//! Reads and writes CHANGELOG.md, whose form is that of <https://keepachangelog.com/en/1.1.0/>.

use std::{fmt::Write as _, fs, path::PathBuf, process::Command};

use anyhow::{Context as _, Result};
use joular_tests::paths;

use crate::shell;

const UNRELEASED: &str = "## [Unreleased]\n";

pub struct Changelog(String);

impl Changelog {
    pub fn read() -> Result<Self> {
        let file = file();
        fs::read_to_string(&file).map(Self).with_context(|| format!("reading {}", file.display()))
    }

    pub fn write(&self) -> Result<()> {
        let file = file();
        fs::write(&file, &self.0).with_context(|| format!("writing {}", file.display()))
    }

    /// What the next version brings.
    pub fn unreleased(&self) -> Result<&str> {
        let (_, rest) = self.0.split_once(UNRELEASED).context("CHANGELOG.md has no line '## [Unreleased]'")?;
        let text = rest.split("\n## [").next().unwrap_or_default().trim();
        (!text.is_empty()).then_some(text).context("CHANGELOG.md says nothing below '## [Unreleased]': say what is new")
    }

    /// The newest version with an entry.
    pub fn newest(&self) -> Result<&str> {
        Ok(self.versions()?.first().context("CHANGELOG.md has no version")?.0)
    }

    /// With what is unreleased as the entry of a version.
    pub fn with_release(&self, version: &str, date: &str) -> Self {
        Self(self.0.replace(UNRELEASED, &format!("{UNRELEASED}\n## [{version}] - {date}\n")))
    }

    /// The form that Debian asks for. Each entry refers to the text, which the package has beside it.
    pub fn of_debian(&self, maintainer: &str) -> Result<String> {
        let mut debian = String::new();
        for (version, date) in self.versions()? {
            let noon = format!("{date} 12:00");
            let date = shell::capture(Command::new("date").args(["--utc", "--rfc-email", "--date", &noon]))?;
            writeln!(debian, "joular-bpf ({version}) unstable; urgency=medium\n")?;
            writeln!(debian, "  * Version {version}: see CHANGELOG.md in this directory.\n")?;
            writeln!(debian, " -- {maintainer}  {}\n", date.trim())?;
        }
        Ok(debian)
    }

    /// Versions and their dates, the newest first.
    fn versions(&self) -> Result<Vec<(&str, &str)>> {
        let headings = self.0.lines().filter_map(|line| line.strip_prefix("## ["));
        let released = headings.filter(|heading| !heading.starts_with("Unreleased]"));
        let parts = released.map(|heading| {
            heading.split_once("] - ").with_context(|| {
                format!("CHANGELOG.md has the heading '## [{heading}', not '## [VERSION] - YEAR-MONTH-DAY'")
            })
        });
        parts.collect()
    }
}

fn file() -> PathBuf {
    paths::root().join("CHANGELOG.md")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn changelog(unreleased: &str) -> Changelog {
        Changelog(format!("# Changelog\n\n## [Unreleased]\n{unreleased}\n## [0.1.0] - 2026-11-23\n\n- First.\n"))
    }

    #[test]
    fn a_release_gives_what_is_unreleased_a_version_and_leaves_nothing_unreleased() {
        let before = changelog("\n### Added\n\n- Watts.\n");
        assert_eq!(before.unreleased().unwrap(), "### Added\n\n- Watts.");
        let after = before.with_release("0.2.0", "2026-12-01");
        assert!(
            after.0.contains("## [Unreleased]\n\n## [0.2.0] - 2026-12-01\n\n### Added\n\n- Watts.\n"),
            "{}",
            after.0
        );
        assert_eq!(after.newest().unwrap(), "0.2.0");
        assert!(after.unreleased().unwrap_err().to_string().contains("say what is new"));
    }

    #[test]
    fn a_heading_without_a_date_is_an_error() {
        let wrong = Changelog("## [Unreleased]\n\n## [0.1.0]\n".into());
        assert!(wrong.newest().unwrap_err().to_string().contains("'## [0.1.0]'"));
    }

    #[test]
    fn debian_gets_an_entry_for_each_version() {
        let text = changelog("\n- Watts.\n").with_release("0.2.0", "2026-12-01").of_debian("A <a@b.c>").unwrap();
        let starts: Vec<&str> = text.lines().filter(|line| line.starts_with("joular-bpf ")).collect();
        let expected = ["joular-bpf (0.2.0) unstable; urgency=medium", "joular-bpf (0.1.0) unstable; urgency=medium"];
        assert_eq!(starts, expected);
        assert!(text.contains("\n -- A <a@b.c>  Mon, 23 Nov 2026 12:00:00 +0000\n"), "{text}");
    }

    #[test]
    fn the_changelog_is_right() {
        let changelog = Changelog::read().unwrap();
        assert_eq!(changelog.newest().unwrap(), env!("CARGO_PKG_VERSION"));
        changelog.of_debian("A <a@b.c>").unwrap();
    }
}

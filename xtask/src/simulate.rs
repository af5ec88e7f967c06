//! Runs the simulations of statistical rules that docs/measured/statistics.md names, and prints their figures.

use std::fs;

use anyhow::{Context as _, Result, ensure};
use clap::Args;

use crate::shell;

/// It names each simulation as (`PACKAGE`, `TEST`.
const PAGE: &str = "docs/measured/statistics.md";
const PACKAGE: &str = "(`joular-";

#[derive(Args)]
pub struct Options {
    /// Those whose tests have this in their names [default: all].
    only: Option<String>,
}

pub fn run(Options { only }: &Options) -> Result<()> {
    let page =
        fs::read_to_string(PAGE).with_context(|| format!("reading {PAGE}: run this in the repository's folder"))?;
    let wanted: Vec<(String, &str)> =
        simulations(&page).filter(|(_, test)| only.as_ref().is_none_or(|part| test.contains(part))).collect();
    ensure!(!wanted.is_empty(), "{PAGE} names no such simulation");
    for (package, test) in wanted {
        shell::step(&format!("{package}: {test}"));
        let tests = || {
            let mut cargo = shell::linting_cargo();
            cargo.args(["test", "--quiet", "--package", &package, "--lib", test, "--"]);
            cargo
        };
        let listed = shell::capture(tests().arg("--list"))?;
        ensure!(listed.contains(": test"), "{PAGE} names {test} in {package}, which is no test there");
        shell::run(tests().args(["--nocapture", "--test-threads=1"]))?;
    }
    Ok(())
}

/// Packages, and parts of the names of their tests.
fn simulations(page: &str) -> impl Iterator<Item = (String, &str)> {
    page.split(PACKAGE).skip(1).filter_map(|rest| {
        let mut words = rest.split('`');
        let (package, between, test) = (words.next()?, words.next()?, words.next()?);
        (between == ", ").then(|| (format!("joular-{package}"), test))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn simulations_are_found_where_the_page_names_them() {
        let page =
            "**A rule** (`joular-data`, `owed`). Text (`joular-user`, `at_rest`; more) and (`joular-data`) alone.";
        let found: Vec<_> = simulations(page).collect();
        assert_eq!(found, [("joular-data".to_owned(), "owed"), ("joular-user".to_owned(), "at_rest")]);
    }
}

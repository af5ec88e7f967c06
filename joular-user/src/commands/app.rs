//! Puts the packages of the application that are found in data sets in place of `--app auto`.

use std::path::Path;

use anyhow::bail;
use joular_data::{
    fleet::choice::View,
    report::{
        self,
        profile::{Filter, Sources},
        ranking::By,
    },
    text::escape,
};

use crate::{
    cli::{PartFlags, TierFlags},
    config::{self, AUTO_APP, ConfigError},
};

/// The flags with these packages. Of several data sets each has the packages of all, so that they can be compared.
///
/// # Errors
/// If a data set cannot be read, no package is found, or libraries are named for nothing.
pub(super) fn resolved(part: &PartFlags, data: &[&Path]) -> anyhow::Result<PartFlags> {
    found(part, data, Sources::default())
}

/// The same for commands that may read tiers: these have the packages of the runs.
///
/// # Errors
/// As [`resolved`].
pub(super) fn resolved_of(part: &PartFlags, data: &[&Path], tier: &TierFlags) -> anyhow::Result<PartFlags> {
    found(part, data, config::sources(&tier.tier, [View::Table(By::Package)])?)
}

fn found(part: &PartFlags, data: &[&Path], sources: Sources) -> anyhow::Result<PartFlags> {
    if !part.app.iter().any(|prefix| prefix == AUTO_APP) {
        if !part.library.is_empty() {
            return Err(for_nothing().into());
        }
        return Ok(part.clone());
    }
    let (filter, _) = config::part(&PartFlags { app: Vec::new(), ..part.clone() })?;
    let filter = Filter { sources, ..filter };
    let mut found = Vec::new();
    for data in data {
        found.extend(report::app::find(data, &filter, &part.library)?);
    }
    if found.is_empty() {
        let data: Vec<String> = data.iter().map(|path| escape(&path.display().to_string())).collect();
        bail!(
            "--app {AUTO_APP}: in this part of {} no package of an app was found, beside the JDK's and known libraries': name \
             one, such as --app com.acme",
            data.join(" and ")
        );
    }
    let given = part.app.iter().filter(|prefix| *prefix != AUTO_APP).cloned();
    Ok(PartFlags { app: each_once(given.chain(found)), library: Vec::new(), ..part.clone() })
}

fn each_once(names: impl Iterator<Item = String>) -> Vec<String> {
    names.fold(Vec::new(), |mut once, name| {
        if !once.contains(&name) {
            once.push(name);
        }
        once
    })
}

fn for_nothing() -> ConfigError {
    ConfigError::Conflict {
        place: "--library".to_owned(),
        other: "packages that --app names".to_owned(),
        advice: "it says what --app auto leaves out",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packages_by_hand_stay_and_libraries_are_for_those_that_are_found() {
        let part = |app: &[&str], library: &[&str]| {
            let owned = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
            PartFlags { app: owned(app), library: owned(library), ..PartFlags::default() }
        };
        let nowhere = Path::new("/nowhere");
        // No data set is read.
        for by_hand in [part(&[], &[]), part(&["com.acme", "auto."], &[])] {
            assert_eq!(resolved(&by_hand, &[nowhere]).unwrap(), by_hand);
        }
        let refused = resolved(&part(&["com.acme"], &["com.vendor"]), &[nowhere]).unwrap_err().to_string();
        assert!(refused.contains("--library"), "{refused}");
        assert!(resolved(&part(&["auto"], &[]), &[nowhere]).is_err(), "it is read");
    }
}

//! Finds which packages of those that ran are an application's, and shortens them: packages that have their first two
//! parts in common become one name, the longest that they share, unless a library that ran is below it, too.

use std::collections::{BTreeMap, BTreeSet};

use super::known::{Known, Whose, names_above};
use crate::model::frame::UNNAMED_PACKAGE;

/// Begin names of packages behind which the name of an organisation stands. So do codes of countries.
const ROOTS: [&str; 10] = ["com", "org", "net", "edu", "gov", "mil", "info", "biz", "dev", "app"];
/// Stand between a root and the name of an organisation.
const BELOW_ROOTS: [&str; 8] = ["co", "com", "org", "net", "ac", "gov", "github", "gitlab"];
/// Parts of a name beyond those that make packages one application's.
const MORE_PARTS: usize = 1;

/// Tells an application's packages from others.
pub(super) struct Judge<'a> {
    known: &'a Known,
    /// Libraries that a user named.
    libraries: &'a [String],
    /// The application's whatever is known of them, because JVMs were started with their classes.
    of_mains: &'a BTreeSet<String>,
}

/// What an application's packages have in common.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Key<'a> {
    name: &'a str,
    /// Whether it is the name to show, however few of its packages ran.
    is_whole: bool,
}

impl<'a> Judge<'a> {
    pub(super) const fn new(known: &'a Known, libraries: &'a [String], of_mains: &'a BTreeSet<String>) -> Self {
        Self { known, libraries, of_mains }
    }

    /// `None`: a library's.
    fn key<'p>(&self, package: &'p str) -> Option<Key<'p>> {
        let is_named = |name: &&str| self.libraries.iter().any(|library| library == name);
        if names_above(package).any(|name| is_named(&name)) {
            return None;
        }
        if let Some(name) = names_above(package).find(|name| self.of_mains.contains(*name)) {
            return Some(Key { name, is_whole: true });
        }
        match self.known.whose(package) {
            Whose::Library(_) => None,
            Whose::Program(name) => Some(Key { name, is_whole: false }),
            Whose::Unknown => Some(Key { name: organisation(package), is_whole: false }),
        }
    }

    /// The application's packages among those of classes that ran, as short as they can be, in the order of their names.
    /// Classes have no part behind a `$`.
    pub(super) fn packages<'c>(&self, classes: impl Iterator<Item = &'c str>) -> Vec<String> {
        let mut of_packages: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        for class in classes {
            let package = class.rsplit_once('.').map_or("", |(package, _)| package);
            of_packages.entry(package).or_default().insert(class);
        }
        let mut groups: BTreeMap<Key<'_>, Vec<&str>> = BTreeMap::new();
        let mut libraries = Vec::new();
        for package in of_packages.keys() {
            match self.key(package) {
                Some(key) => groups.entry(key).or_default().push(package),
                None => libraries.push(*package),
            }
        }
        let mut found = Vec::new();
        for (key, packages) in groups {
            match key {
                Key { name: "", .. } => found.push(UNNAMED_PACKAGE.to_owned()),
                Key { name, is_whole: true } => found.push(name.to_owned()),
                Key { name, .. } => shorten(parts(name), &packages, &libraries, &of_packages, &mut found),
            }
        }
        let all = found.clone();
        found.retain(|name| !all.iter().any(|other| other != name && is_below(name, other)));
        found
    }
}

/// Adds names that packages are below, and no library is. They have `least` parts in common.
fn shorten(
    least: usize,
    packages: &[&str],
    libraries: &[&str],
    classes: &BTreeMap<&str, BTreeSet<&str>>,
    found: &mut Vec<String>,
) {
    let [first, others @ ..] = packages else { return };
    let shared = |name: &&str| others.iter().all(|package| is_below(package, name));
    let all: Vec<&str> = names_above(first).filter(shared).collect();
    let is_free = |name: &&&str| !libraries.iter().any(|library| is_below(library, name));
    let most = all.len().min(least + MORE_PARTS);
    // As short as that, and longer only where it must be.
    let behind = all.get(most.saturating_sub(1)..).unwrap_or_default();
    if let Some(name) = behind.iter().find(is_free) {
        found.push((*name).to_owned());
        return;
    }
    let Some(longest) = all.last() else { return };
    let (exact, below): (Vec<&str>, Vec<&str>) = packages.iter().copied().partition(|package| package == longest);
    for package in exact {
        found.extend(classes.get(package).into_iter().flatten().map(|class| (*class).to_owned()));
    }
    let mut by_next: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for package in below {
        let next = names_above(package).find(|name| name.len() > longest.len()).unwrap_or(package);
        by_next.entry(next).or_default().push(package);
    }
    for packages in by_next.into_values() {
        shorten(all.len() + 1, &packages, libraries, classes, found);
    }
}

/// Whether a package is this one or below it.
fn is_below(package: &str, name: &str) -> bool {
    package.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

fn parts(name: &str) -> usize {
    name.split('.').count()
}

/// The beginning of a package's name that says whose it is: `com.acme`, `uk.co.acme`, `io.github.acme`, `hudson`.
fn organisation(package: &str) -> &str {
    let mut words = package.split('.');
    let (root, next) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let is_root = ROOTS.contains(&root) || root.len() == 2;
    let count = match (is_root, BELOW_ROOTS.contains(&next)) {
        (true, true) => 3,
        (true, false) => 2,
        (false, _) => 1,
    };
    names_above(package).take(count).last().unwrap_or(package)
}

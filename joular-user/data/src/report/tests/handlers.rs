//! Handlers in reports and comparisons of a data set, by rules that fit its methods.

use std::{path::Path, sync::Arc};

use super::super::{
    diff::{CompareBy, Per, Side},
    profile::{Filter, Names, Profile, Rules},
    ranking::{
        By,
        groups::Groups,
        rows::{Cut, Ranking, Sort},
    },
};
use crate::{
    dataset::fixture::*,
    model::{policy::Policy, units::MicroJoules},
};

/// A data set, and rules by which the second Java method of each path is its handler.
pub(in crate::report) fn written() -> (tempfile::TempDir, Arc<Rules>) {
    let root = tempfile::tempdir().unwrap();
    write(root.path(), Policy::default());
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), "[[rule]]\nframework = \"made up\"\ndispatchers = [\"com.example.*\"]\n").unwrap();
    (root, Rules::read(file.path()).unwrap())
}

fn by_handler(root: &Path, filter: &Filter) -> Vec<(String, MicroJoules)> {
    let profile = Profile::read(root, filter, None).unwrap();
    let cut = Cut { top: 0, sort: Sort::Own, is_partial: !filter.allows_all_paths() };
    let ranking = Ranking::of(&profile, &Groups::of(By::Handler, &profile), cut, None, None);
    assert_eq!(ranking.rows.iter().map(|row| row.own.amounts.energy).sum::<MicroJoules>(), profile.energy());
    ranking.rows.iter().map(|row| (row.group.name.to_string(), row.own.amounts.energy)).collect()
}

#[test]
fn rows_of_handlers_sum_to_the_whole_and_a_handler_chooses_its_paths() {
    let (root, rules) = written();
    let filter = Filter { handler_rules: Some(rules), ..Filter::default() };
    let rows = by_handler(root.path(), &filter);
    assert!(rows.len() > 2 && rows.iter().any(|(name, _)| name == "[no handler]"), "{rows:?}");
    for (name, energy) in rows.iter().filter(|(name, _)| name != "[no handler]").take(3) {
        let method = name.rsplit_once('.').unwrap().1;
        let handlers = Names::parse(&[format!("*.{method}")]).unwrap();
        let own = by_handler(root.path(), &Filter { handlers, ..filter.clone() });
        assert_eq!(own, [(name.clone(), *energy)]);
    }
}

#[test]
fn a_comparison_by_handler_has_the_same_rows() {
    let (root, rules) = written();
    let filter = Filter { handler_rules: Some(rules), ..Filter::default() };
    let choices = super::baseline::choices(CompareBy::Handler, Per::Run);
    let side = Side::read(root.path(), &filter, None, &choices).unwrap();
    let mut compared: Vec<_> = side.rows.iter().map(|(key, spent)| (key.name.to_string(), spent.energy)).collect();
    let mut ranked = by_handler(root.path(), &filter);
    compared.sort();
    ranked.sort();
    assert_eq!(compared, ranked);
}

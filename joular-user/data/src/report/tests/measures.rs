//! Tables of every measure sum to what the selection has of it, and agree with what tables of energy have beside it.

use std::collections::HashMap;

use crate::{
    dataset::fixture,
    model::policy::Policy,
    report::{
        measure::{Measure, Unit},
        profile::{Filter, Names, Profile},
        ranking::{By, Cell, MeasureTable, Ranking, Sort, TableOf, groups::Groups, rows::Cut},
    },
};

fn profile(filter: &Filter) -> Profile {
    let root = tempfile::tempdir().unwrap();
    fixture::write(root.path(), Policy::default());
    Profile::read(root.path(), filter, None).unwrap()
}

const ALL: Cut = Cut { top: 0, sort: Sort::Own, is_partial: false };

#[test]
fn rows_of_each_measure_and_what_was_cut_sum_to_all_that_the_selection_has() {
    let profile = profile(&Filter::default());
    let measures: Vec<Measure> = profile.measures_beside_energy().collect();
    for unit in [Unit::Bytes, Unit::Count] {
        assert!(measures.iter().any(|measure| measure.unit() == unit), "{unit:?} in {measures:?}");
    }
    for (measure, by) in measures.iter().flat_map(|measure| By::ALL.map(|by| (*measure, by))) {
        let table = MeasureTable::of(&profile, TableOf { by, measure }, Cut { top: 2, ..ALL });
        let what = format!("{} by {}", measure.name(), by.name());
        assert_eq!(table.all_rows().map(|row| row.own.amount).sum::<u64>(), table.whole, "{what}");
        assert_eq!(profile.facts(measure).map(|fact| fact.amount).sum::<u64>(), table.whole, "{what}");
        for figure in table.all_rows().flat_map(|row| [Some(row.own), row.total]).flatten() {
            assert!(figure.low <= figure.amount && figure.amount <= figure.high, "{what}: {figure:?}");
            assert!(figure.high <= table.whole, "{what}: {figure:?}");
            assert!(!by.is_of_threads() || figure.is_exact(), "{what}: what a thread has is exact");
        }
    }
}

#[test]
fn what_samples_divide_has_an_interval_whatever_the_measure() {
    let profile = profile(&Filter::default());
    for measure in profile.measures_beside_energy() {
        let table = MeasureTable::of(&profile, TableOf { by: By::Method, measure }, ALL);
        let has_interval = table.rows.iter().any(|row| row.own.samples > 0 && !row.own.is_exact());
        let is_sampled = profile.facts(measure).any(|fact| fact.sampled.energy.0 > 0);
        assert_eq!(has_interval, is_sampled, "{}", measure.name());
    }
}

#[test]
fn a_table_of_energy_has_the_figures_of_the_other_tables_beside_it() {
    let part = Filter { methods: Names::parse(&["*.m1*".to_owned()]).unwrap(), ..Filter::default() };
    for (filter, is_partial) in [(Filter::default(), false), (part, true)] {
        let profile = profile(&filter);
        let cut = Cut { is_partial, ..ALL };
        for by in [By::Method, By::Thread, By::Branch] {
            let energy = Ranking::of(&profile, &Groups::of(by, &profile), cut, None, None);
            assert!(!energy.beside.is_empty());
            for measure in energy.beside.iter().copied() {
                let mut expected: HashMap<String, Cell> = HashMap::new();
                for row in MeasureTable::of(&profile, TableOf { by, measure }, cut).rows {
                    let cell = Cell { own: row.own, total: row.total.unwrap_or(row.own) };
                    expected.insert(format!("{:?}", row.group), cell);
                }
                for row in &energy.rows {
                    let expected = expected.remove(&format!("{:?}", row.group)).unwrap_or_default();
                    let found = energy.cell(row, measure);
                    assert_eq!((found.own.amount, found.total.amount), (expected.own.amount, expected.total.amount));
                    assert!(found.total.amount == 0 || found == expected, "{} of {:?}", measure.name(), row.group);
                }
                assert!(expected.is_empty(), "{}: {expected:?}", measure.name());
            }
        }
    }
}

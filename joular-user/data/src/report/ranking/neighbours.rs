//! Makes tables of who calls a method and what it calls: the methods that stand directly beside it on call paths.
//!
//! A row has what the paths have on which it does, each path once. A path may show several neighbours, where the method calls
//! itself, so rows need not sum to what the method has.

use super::{
    groups::Groups,
    rows::{Cut, Ranking, Sort},
};
use crate::report::profile::{Filter, FrameIndex, Profile};

/// Which neighbours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    Callers,
    Callees,
}

/// The neighbours of the methods that a filter names, in a profile of its paths; at most `top` of them, 0: all. Their `own`
/// is nothing.
pub fn ranking(profile: &Profile, filter: &Filter, side: Side, top: usize) -> Ranking {
    let paths = &profile.catalog.paths;
    let is_chosen: Vec<bool> = paths.frames().iter().map(|frame| filter.names_method(frame)).collect();
    let is_chosen = |frame: FrameIndex| is_chosen.get(frame.index()).copied().unwrap_or(false);
    let beside = |[caller, callee]: [FrameIndex; 2]| match side {
        Side::Callers => is_chosen(callee).then_some(caller),
        Side::Callees => is_chosen(caller).then_some(callee),
    };
    let cut = Cut { top, sort: Sort::Total, is_partial: !filter.allows_all_paths() };
    Ranking::of(profile, &Groups::beside(paths, beside), cut, None, None)
}

#[cfg(test)]
mod tests {
    use super::{
        super::tests::{figures, java, profile},
        *,
    };
    use crate::report::profile::Names;

    fn neighbours(side: Side, top: usize) -> Vec<(String, u64, u64)> {
        let [main, a, b, sort, cmp] =
            [("a.Main", "main"), ("a.A", "run"), ("a.B", "run"), ("a.Sort", "sort"), ("a.Cmp", "cmp")]
                .map(|(class, name)| java(class, name));
        let of_a = [main.clone(), a.clone(), sort.clone(), sort.clone(), cmp];
        let of_b = [main.clone(), b, sort.clone()];
        let root = [sort];
        let other = [main, a];
        let profile = profile(1, &[(0, &of_a, 40, 4), (0, &of_b, 30, 3), (0, &root, 20, 2), (0, &other, 10, 1)]);
        let filter = Filter { methods: Names::parse(&["a.Sort.sort".to_owned()]).unwrap(), ..Filter::default() };
        figures(&ranking(&profile, &filter, side, top))
    }

    fn rows(rows: &[(&str, u64)]) -> Vec<(String, u64, u64)> {
        rows.iter().map(|(name, total)| ((*name).to_owned(), 0, *total)).collect()
    }

    #[test]
    fn callers_and_callees_have_what_paths_have_on_which_they_stand_beside_the_method() {
        let callers = [("a.A.run", 40), ("a.Sort.sort", 40), ("a.B.run", 30)];
        assert_eq!(neighbours(Side::Callers, 0), rows(&callers));
        assert_eq!(neighbours(Side::Callees, 0), rows(&[("a.Cmp.cmp", 40), ("a.Sort.sort", 40)]));
    }

    #[test]
    fn paths_that_several_rows_share_count_once_in_what_is_cut() {
        assert_eq!(neighbours(Side::Callers, 1), rows(&[("a.A.run", 40), ("2 others", 70)]));
    }
}

//! Finds which windows of a side are in which phase of its programs.

use std::collections::BTreeMap;

use crate::{
    model::target_text::TargetText,
    report::profile::{Run, WindowSpan},
};

/// The phases of a side, each named with the phases that it is within.
#[derive(Debug, Default)]
pub struct Phases {
    names: Vec<TargetText>,
    /// Places in `names`, for each window.
    of_windows: Vec<Vec<usize>>,
}

impl Phases {
    /// Takes windows run by run, each run's in the order of time.
    pub fn of(runs: &[Run], windows: &[WindowSpan]) -> Self {
        let mut places: BTreeMap<&TargetText, usize> = BTreeMap::new();
        let mut of_windows = vec![Vec::new(); windows.len()];
        for (number, run) in runs.iter().enumerate() {
            let first = windows.partition_point(|window| window.run < number);
            let end = windows.partition_point(|window| window.run <= number);
            let of_run = windows.get(first..end).unwrap_or_default();
            for phase in &run.phases {
                let next = places.len();
                let place = *places.entry(&phase.path).or_insert(next);
                let begin = of_run.partition_point(|window| window.start <= phase.after);
                let held = of_run.iter().skip(begin).take_while(|window| phase.has(window.start)).count();
                for found in of_windows.iter_mut().skip(first + begin).take(held) {
                    // A phase may be within one of the same name.
                    if !found.contains(&place) {
                        found.push(place);
                    }
                }
            }
        }
        let mut names = vec![TargetText::default(); places.len()];
        for (name, place) in places {
            if let Some(slot) = names.get_mut(place) {
                slot.clone_from(name);
            }
        }
        Self { names, of_windows }
    }

    /// The phases that a window is in, by number.
    pub fn of_window(&self, window: usize) -> &[usize] {
        self.of_windows.get(window).map_or(&[], Vec::as_slice)
    }

    /// Names by number.
    pub fn into_names(self) -> Vec<TargetText> {
        self.names
    }

    pub const fn len(&self) -> usize {
        self.names.len()
    }
}

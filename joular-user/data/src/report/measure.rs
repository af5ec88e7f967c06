//! Says what can be ranked, drawn and exported: energy, bytes and counts.
//!
//! A [`Measure`] is a name with a unit. A [`super::profile::Fact`] is what a thread has of a measure on a call path. Tables
//! sum facts by their rows, all measures alike.

use std::path::Path;

use crate::dataset::error::DataSetError;
pub use crate::model::{
    measure::{Measure, Unit},
    way::Way,
};

/// Why nothing of a measure can be shown.
pub fn nothing(measure: Measure, path: &Path) -> DataSetError {
    let path = path.to_owned();
    match measure.flag() {
        Some(flag) => DataSetError::NothingMeasured { path, measure: measure.title().to_lowercase(), flag },
        None => DataSetError::NoEnergy { path },
    }
}

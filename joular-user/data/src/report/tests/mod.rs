//! Tests selections and comparisons of data sets whose every number is known.

mod diff;
mod profile;

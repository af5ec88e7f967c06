//! Analyses what joular-bpf records. Nothing here needs root, a kernel or a JVM: events come from a
//! recording or from the program that records.
//!
//! The modules follow the data path. [`events`] are all that is known of a run. [`stacks`] turns
//! addresses and names into call paths. [`attribution`] decides who gets which joule. [`dataset`]
//! writes the result as Parquet, and reads and checks it again. [`report`] shows it. [`experiment`] sums up
//! runs that were repeated. [`rollup`] makes windows longer, and [`shipping`] brings them to another store,
//! [`loading`] to a database.
//!
//! A program that wants figures starts from a selection of a data set, summed
//! ([`report::profile::Profile`]). The example `read_profile` is a complete one.
//!
//! ```no_run
//! use joular_data::report::profile::{Filter, Profile};
//!
//! let profile = Profile::read("joular-out".as_ref(), &Filter::default(), None)?;
//! println!("{} J on {} call paths", profile.energy().joules(), profile.catalog.paths.len());
//! # Ok::<(), joular_data::dataset::DataSetError>(())
//! ```

pub mod attribution;
pub mod caught;
pub mod dataset;
pub mod events;
pub mod experiment;
#[cfg(any(test, feature = "fixture"))]
pub mod fixture;
pub mod fleet;
pub mod loading;
pub mod model;
#[cfg(any(test, feature = "fixture"))]
pub mod noise;
pub mod output;
pub mod redact;
pub mod report;
pub mod rollup;
pub mod sampling;
pub mod shipping;
pub mod stacks;
pub mod text;
pub mod totals;

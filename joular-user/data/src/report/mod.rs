//! Shows a data set. Everything starts from a selection of it, summed ([`profile`]): tables
//! ([`ranking`]), call trees ([`tree`]) and pictures of them ([`flamegraph`], [`html`]), which packages are the app's ([`app`]),
//! comparisons ([`diff`], [`validate`] with a wattmeter), other tools' formats ([`export`]). [`runs`] lists what
//! there is, [`requests`] divides by counts of requests. Tables can have
//! emissions and cost ([`footprint`]). Nothing here needs privileges or asks the system anything.

pub mod app;
pub mod artifact;
pub mod diff;
pub mod export;
pub mod flamegraph;
pub mod flight;
pub mod footprint;
mod format;
pub mod headline;
pub mod html;
pub mod measure;
pub mod profile;
pub mod ranking;
pub mod requests;
pub mod runs;
mod selected;
pub mod tree;
pub mod validate;
pub mod watts;

pub use self::format::Format;

#[cfg(test)]
mod tests;

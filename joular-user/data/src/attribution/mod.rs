//! Decides who gets which joule. Pure: no I/O, no clock, no /proc.
//!
//! It takes two steps, because the second can be taken again under another policy:
//!
//! 1. [`Engine`] holds what lasts between windows and turns events into a
//!    window's [`work`]: it joins threads with processes ([`threads`]), samples
//!    with call paths ([`paths`]), readings with meters ([`measured`]).
//! 2. [`Attributor`] divides that work. Each domain's energy ([`conservation`]) goes to
//!    those with a claim on it ([`claims`]) by their [`weights`] or its [`traffic`], after the
//!    share of idling ([`idle`]); so does the energy of windows that comes late
//!    ([`missed`]). A thread's energy goes to its call paths by samples ([`branches`]), and that of network and disk by
//!    what the paths moved ([`by_bytes`]).
//!    Paths are summed to methods ([`methods`]), to what JVMs did ([`jvms`]) and
//!    to how good the stacks are ([`quality`]). What garbage collectors used is charged to paths that
//!    allocated, beside all that ([`collector`]). Of threads that allocate in step with their buffers, samples tell
//!    less ([`in_step`]).
//!
//! Windows in which no sample hit a thread keep their energy apart. Whoever sums windows may share it
//! out by samples of other windows ([`inference`]).
//!
//! Every division is by largest remainder ([`split`]), so every level sums to the one above it
//! exactly.

pub mod allocated;
mod attributor;
mod branches;
mod by_bytes;
mod by_samples;
mod category;
pub(crate) mod claims;
pub mod collector;
mod conservation;
#[cfg(test)]
mod conservation_tests;
#[cfg(test)]
mod context_tests;
pub mod counter;
pub mod counts;
mod domain_audit;
mod engine;
#[cfg(test)]
mod engine_tests;
mod idle;
mod in_step;
pub mod inference;
pub mod jvms;
#[cfg(test)]
mod kinds_tests;
mod limits;
mod long_names;
mod measured;
pub(crate) mod methods;
mod missed;
#[cfg(test)]
mod model_tests;
pub mod moved;
mod names;
mod owed;
mod paths;
pub mod quality;
#[cfg(test)]
mod regressions;
mod share;
pub mod shown_parts;
mod split;
mod threads;
mod traffic;
mod weights;
pub mod window_report;
pub mod work;

pub use attributor::Attributor;
pub use engine::Engine;
pub use names::ToldNames;

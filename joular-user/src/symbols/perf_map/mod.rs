//! Handles perf maps, in which a run-time system says, by itself or when asked, which code it has
//! made. They serve whatever is not understood from its own memory.
//!
//! [`snapshot`] reads one, [`requests`] has them written and read in the background,
//! [`generations`] keeps the newest two, and [`generated_code`] paces the requests.

pub mod generated_code;
pub mod generations;
pub mod requests;
pub mod snapshot;

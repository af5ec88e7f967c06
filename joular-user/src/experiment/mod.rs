//! Starts commands whose energy is measured.
//!
//! [`launch`] starts a command, held before its first instruction until the recording has begun. [`user`] knows whose
//! command it is, and [`signals`] hands signals on to it. [`marks`] takes what it says of its phases.

pub mod launch;
pub mod marks;
pub mod signals;
pub mod user;

pub use self::{
    launch::{Held, LAUNCHER_ARGUMENT, LaunchError, Launched, run_launcher},
    marks::Rules,
    user::User,
};

//! Starts commands whose energy is measured.
//!
//! [`launch`] starts a command, held before its first instruction until the recording has begun. [`user`] knows whose
//! command it is, and [`signals`] hands signals on to it. [`marks`] takes what it says of its phases. Processes that are
//! this program again take pipes that were left open for them ([`inherited`]).
//!
//! An experiment runs commands many times. [`plan`] says which, from variants and [`parameter`]s, and in which order;
//! [`trial`] runs one of them in a process of its own, [`work`] knows how much it did, [`log`] keeps what is done and
//! under which [`circumstances`], and [`conduct`] goes through it all, with commands [`around`] each run. [`run_table`]
//! lists the runs. [`protocol`] is what a wattmeter is compared with.

pub mod around;
pub mod circumstances;
pub mod conduct;
mod inherited;
pub mod launch;
pub mod log;
pub mod marks;
pub mod parameter;
pub mod plan;
pub mod protocol;
pub mod run_table;
pub mod signals;
pub mod trial;
pub mod user;
pub mod work;

pub use self::{
    circumstances::Circumstances,
    launch::{Held, LAUNCHER_ARGUMENT, LaunchError, Launched, run_launcher},
    marks::Rules,
    trial::{Outcome, TRIAL_ARGUMENT, Task, own_command_line},
    user::User,
};

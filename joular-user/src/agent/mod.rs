//! What makes a recording a service of a fleet: runs that have ended are shipped, and systemd is told how it
//! goes.

mod backoff;
pub mod service;
mod shipping;

pub use self::{
    service::{Heartbeat, ServiceState},
    shipping::{Progress, Shipments, Shipping},
};

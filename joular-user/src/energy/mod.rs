//! Where joules come from.

pub mod domain;

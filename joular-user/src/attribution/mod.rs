//! Who gets which joule.

pub mod report;

//! Data sets that are read again, attributed again, merged, and tampered with.

mod audit;
mod compact;
mod reattribute;
mod stores;

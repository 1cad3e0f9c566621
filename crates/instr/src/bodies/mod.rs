//! Code of one form or sequence: chains and their links, independent instances, and the values that they compute with.

pub(crate) mod balance;
pub(crate) mod chain;
pub(crate) mod contents;
pub(crate) mod control;
pub mod links;
pub(crate) mod quotients;
pub(crate) mod registers;
pub(crate) mod route;
pub(crate) mod sequence;
pub mod throughput;
pub(crate) mod values;
pub mod x87;

//! Code of one form: chains and their links, independent instances, and the values that they compute with.

pub mod balance;
pub mod chain;
pub mod contents;
pub mod control;
pub mod links;
pub mod quotients;
pub mod registers;
pub mod route;
pub mod throughput;
pub mod values;
pub mod x87;

//! `instr`: latency and reciprocal throughput of every instruction of this CPU.

pub mod chain;
pub mod links;
pub mod operands;
pub mod registers;
pub mod route;
pub mod row;
pub mod settings;
pub mod skip;
pub mod throughput;
pub mod timing;
pub mod x87;

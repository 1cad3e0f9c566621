//! `instr`: latency and reciprocal throughput of every instruction of this CPU.

pub mod analysis;
pub mod branch;
pub mod chain;
pub mod compare;
pub mod experiment;
pub mod explanation;
pub mod export;
pub mod gather;
pub mod gauge;
pub mod links;
pub mod list;
pub mod operands;
pub mod reference;
pub mod registers;
pub mod route;
pub mod row;
pub mod selection;
pub mod settings;
pub mod skip;
pub mod summary;
pub mod survey;
pub mod table;
pub mod throughput;
pub mod timing;
pub mod x87;

//! `instr`: latency and reciprocal throughput of every instruction of this CPU.

pub mod analysis;
pub mod chain;
pub mod compare;
pub mod contents;
pub mod experiment;
pub mod export;
pub mod extremes;
pub mod gauge;
pub mod links;
pub mod operands;
pub mod quotients;
pub mod reference;
pub mod registers;
pub mod route;
pub mod row;
pub mod settings;
pub mod skip;
pub mod survey;
pub mod table;
pub mod throughput;
pub mod timing;
pub mod values;
pub mod x87;

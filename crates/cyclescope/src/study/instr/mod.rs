//! `instr`: latency and reciprocal throughput of every instruction of this CPU.

pub mod compare;
pub mod export;
pub mod reference;
pub mod row;
pub mod table;

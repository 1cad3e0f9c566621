//! `instr`: latency and reciprocal throughput of every instruction of this CPU.

pub mod row;

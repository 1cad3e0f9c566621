//! The machine that is measured on: processor, features, time stamp counter, CPUs, sources of noise.

pub mod cpu;
pub mod fact;
mod feature_table;
pub mod features;
pub mod leaves;
pub mod microarch;

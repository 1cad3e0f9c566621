//! What people measure: assembly, machine code, functions of libraries, regions of them.

mod assembler;
pub mod call_parameters;
pub mod compiler;
mod elf;
pub mod function;
mod library;
mod region;
mod return_type;
pub mod source;
pub mod target;

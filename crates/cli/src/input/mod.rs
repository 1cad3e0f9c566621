//! What can be measured: assembly, machine code, functions of libraries, and regions of functions.

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
pub mod variants;

//! Code around a form or sequence: chains and links, independent instances, and operand values.

pub(crate) mod balance;
pub(crate) mod chain;
pub(crate) mod chain_registers;
pub(crate) mod control_variants;
pub(crate) mod counted_body;
pub mod dependency_hazards;
pub(crate) mod division_operands;
pub mod links;
pub(crate) mod operand_contents;
pub(crate) mod operand_values;
pub(crate) mod register_allocator;
pub(crate) mod route;
pub(crate) mod sequence_body;
pub mod slot_body;
pub mod slot_filler;
pub mod throughput_body;
pub mod throughput_recipe;
mod turn_code;
pub mod x87;

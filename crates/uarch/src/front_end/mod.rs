//! Fetch, prediction and decoding.

pub(super) mod code_tlb;
pub(super) mod decoders;
pub(super) mod direction_predictor;
pub(super) mod indirect_history;
pub(super) mod instruction_cache;
pub(super) mod jump_targets;
pub(super) mod loops;
pub(super) mod misprediction;
pub(super) mod return_stack;
pub(super) mod uop_cache;

pub(crate) use direction_predictor::pattern_loop;
pub(crate) use instruction_cache::{jump_to_nops, jump_to_zeroing};

//! What fetches, predicts and decodes.

pub(super) mod branch_targets;
pub(super) mod code_tlb;
pub(super) mod conditional_targets;
pub(super) mod direction_predictor;
pub(super) mod instruction_cache;
pub(super) mod misprediction;
pub(super) mod return_stack;

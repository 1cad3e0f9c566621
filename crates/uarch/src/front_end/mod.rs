//! What fetches, predicts and decodes.

pub(super) mod branch_rate;
pub(super) mod branch_targets;
pub(super) mod call_targets;
pub(super) mod code_tlb;
pub(super) mod conditional_targets;
pub(super) mod decode_double;
pub(super) mod decode_prefix;
pub(super) mod decode_rate;
pub(super) mod direction_predictor;
pub(super) mod dispatch_rate;
pub(super) mod first_decode;
pub(super) mod indirect_history;
pub(super) mod indirect_targets;
pub(super) mod instruction_cache;
pub(super) mod length_changing_prefix;
pub(super) mod long_constants;
pub(super) mod loop_buffer;
pub(super) mod loop_rate;
pub(super) mod misprediction;
pub(super) mod predictor_reach;
pub(super) mod retire_rate;
pub(super) mod return_stack;
pub(super) mod uop_cache;
pub(super) mod uop_cache_ways;

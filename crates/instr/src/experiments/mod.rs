//! The programs that measure a form, their timing, and the evaluation of their layouts.

pub(crate) mod branch;
mod chain_experiments;
mod chain_turns;

mod constant_screening;
pub(crate) mod counted_programs;
pub mod experiment;
mod experiment_choice;
mod filler_check;
pub mod filler_curves;
pub mod form_counter;
pub(crate) mod form_measurement;
pub mod form_plan;
mod link_circuits;
pub mod link_costs;
pub(crate) mod modes;
mod own_constant;
pub(crate) mod port_blockers;
pub mod port_usage;
pub mod program_reading;
pub mod regime_reading;
pub(crate) mod regimes;
pub mod ring_0;
mod sequence_experiments;
pub mod slot_judgement;
pub mod slot_reading;
pub(crate) mod slot_search;
pub(crate) mod store_load_trip;
pub mod survey_effort;
pub(crate) mod timing;

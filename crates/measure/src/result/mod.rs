//! Results of measurements, their evidence, and the replay of evidence.
//!
//! [`record`] writes results as JSON, [`caveat`] finds their caveats, and [`aperf`] compares APERF
//! with the ruler. [`container`] is the evidence format of every study. [`answers`] provides all
//! external inputs of a study: live, recorded in a container, or replayed from one.

pub mod answers;
pub mod aperf;
mod call_record;
pub mod caveat;
pub mod container;
mod counter_check;
pub mod counter_record;
pub mod front_end;
pub mod mix_record;
pub mod quantity;
pub mod record;
pub(crate) mod recording;
pub(crate) mod replaying;
pub mod variant_comparison;

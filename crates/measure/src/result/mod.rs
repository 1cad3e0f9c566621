//! Results of measurements, their evidence, and the replay of evidence.
//!
//! [`record`] has results as JSON, [`caveat`] their caveats, [`aperf`] the comparison of APERF with the ruler.
//! [`container`] is the one format for the evidence of every study, [`answers`] all external inputs of a study: live,
//! recorded in a container, or replayed from one.

pub mod answers;
pub mod aperf;
pub mod caveat;
pub mod container;
pub mod quantity;
pub mod record;
pub(crate) mod recording;
pub(crate) mod replaying;
pub mod variant_comparison;

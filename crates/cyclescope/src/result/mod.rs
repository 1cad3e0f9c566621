//! What a measurement says, what is kept of it, and the way back from that to the same result.
//!
//! [`record`] has results as JSON, [`caveat`] what to know before believing one, [`aperf`] a counter beside the ruler.
//! [`container`] is the one format for the evidence of every study, [`answers`] all that a study learns from outside
//! itself: live, kept in a container, or given again from one.

pub mod answers;
pub mod aperf;
pub mod caveat;
pub mod container;
pub mod record;
pub(crate) mod recording;
pub(crate) mod replaying;

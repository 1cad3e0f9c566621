//! What a measurement says, what is kept of it, and the way back from that to the same result.
//!
//! [`record`] has results as JSON, [`caveat`] what to know before believing one, [`aperf`] a counter beside the ruler.
//! [`container`] is the one format for the evidence of every study. [`recording`] fills it from whatever an executor
//! runs and answers; [`replaying`] is an executor that gives these answers again.

pub mod aperf;
pub mod caveat;
pub mod container;
pub mod record;
pub mod recording;
pub mod replaying;

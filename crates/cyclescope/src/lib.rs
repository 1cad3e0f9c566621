//! What a piece of x86 code costs, in true core clock cycles with an error bar.

pub mod asm;
pub mod caveat;
pub mod clock;
pub mod context;
pub mod doctor;
pub mod error;
pub mod estimate;
pub mod evidence;
pub mod executor;
pub mod machine;
pub mod measure;
pub mod placement;
pub mod program;
pub mod random;
pub mod record;
pub mod ruler;
pub mod run;
pub mod samples;
pub mod snippet;
pub mod statistics;
pub mod unit;

//! Studies: questions that take many measurements.

pub mod ab;
mod contract;
pub mod evaluate;
mod exported;
pub(crate) mod glob;
mod info;
pub mod instr;
mod list;
pub(crate) mod listed;
pub mod marker;
pub mod points;
mod resumed;
pub mod run;
mod subject;
mod uarch;
mod versus;

pub use contract::{Follow, Progress, Record, Role, Stop, Study};
pub use exported::{TextColumn, TextTable};
pub use info::{Catalog, Entry, Plain, Selected, StudyInfo};
pub use list::{ALL, replay};
pub use resumed::{GenericSession, Head, ResumedSession};

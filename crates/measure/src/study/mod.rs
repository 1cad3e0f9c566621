//! What every study is, and what studies share: the contract, the names a study offers, files that resume, CSV lists.

pub mod contract;
pub mod exported;
pub mod glob;
pub mod info;
pub mod listed;
pub mod resumed;

pub use contract::{Follow, Progress, Record, Role, Stop, Study, going};
pub use info::{Catalog, Entry, Plain, Selected, StudyInfo};
pub use resumed::{Head, Session, differing, other_processor};

//! What every study is, and what studies share: the contract, the names a study offers, files that resume, CSV lists.

mod contract;
pub mod exported;
pub mod glob;
mod info;
pub mod listed;
mod resumed;

pub use contract::{Follow, Progress, Record, Role, Stop, Study, going};
pub use exported::{TextColumn, TextTable};
pub use info::{Catalog, Entry, Plain, Selected, StudyInfo};
pub use resumed::{GenericSession, Head, Session, differing};

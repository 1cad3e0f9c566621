//! Studies: their common interface, the names that a study offers, resumable files, CSV lists.

mod contract;
pub mod csv_list;
pub mod glob;
mod resumable_session;
mod study_info;
pub mod text_table;

pub use contract::{RecordRole, ResultRecord, StopReason, Study, StudyFollower, StudyProgress, check_stop};
pub use resumable_session::{
    GenericHead, GenericSession, ResumableSession, describe_processor_changes, list_differing_fields,
};
pub use study_info::{GenericStudy, StudyInfo, StudySelection, SuiteCatalog, SuiteQuestion};
pub use text_table::{TextColumn, TextTable};

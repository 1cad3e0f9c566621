//! A study under way: measured, printed, kept in files, resumed and computed again.

pub mod background_load;
pub mod driver;
pub mod evidence;
pub mod executor;
mod follower;
pub mod progress;
pub mod replay_study;
pub mod result_file;
pub mod resume;

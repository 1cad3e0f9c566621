//! A running study: measured, printed, saved, resumed and replayed.

pub mod background_load;
pub mod driver;
pub mod evidence;
pub mod executor;
mod follower;
pub mod progress;
pub mod replay_study;
pub mod result_file;
pub mod resume;

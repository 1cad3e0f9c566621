//! What is printed and written: results, failures, warnings.

pub mod charset;
pub mod failure;
pub mod notes;
pub mod page;
pub mod plots;
mod stdout;
pub mod table_file;
pub mod terminal;
pub mod words;

pub use stdout::{Output, WIDTH, wrapped};

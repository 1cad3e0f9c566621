//! What is printed and written: results, failures, warnings.

pub mod charset;
mod csv;
pub mod directory;
pub mod exporter;
pub mod failure;
pub mod formats;
mod json;
mod markdown;
pub mod notes;
pub mod page;
pub mod report;
mod stdout;
mod svg;
mod table_file;
pub mod terminal;
mod text;
pub mod words;

pub use stdout::{Output, WIDTH, wrapped};

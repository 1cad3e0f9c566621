//! What is printed and written: results, failures, warnings.

pub mod charset;
mod csv;
pub mod directory;
pub mod exporter;
pub mod failure;
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

pub use failure::{Failure, warn};
pub use stdout::{Output, WIDTH, wrapped};

use exporter::Exporter;

/// All formats of results. Another one is a file with its [`Exporter`], and a line here beside its `mod`.
pub const FORMATS: &[&dyn Exporter] = &[&TEXT, &JSON, &csv::Csv, &markdown::Markdown, &svg::Svg];

/// What is printed unless something else is asked for.
pub const TEXT: text::Text = text::Text;
/// What `--json` prints.
pub const JSON: json::Json = json::Json;

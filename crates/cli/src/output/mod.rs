//! Everything that is printed or written: results, failures, warnings.

pub mod charset;
mod csv;
pub mod directory;
pub mod event_table;
pub mod executable;
pub mod exporter;
pub mod failure;
pub mod footnotes;
mod json;
mod markdown;
pub mod page;
pub mod report;
pub mod report_words;
mod stdout;
mod svg;
pub mod table_file;
pub mod terminal;
mod text;

pub use failure::{Failure, print_warning};
pub use stdout::{Output, WIDTH, wrap_text};

use exporter::Exporter;

/// All result formats. To add one, add a file with its [`Exporter`], its `mod`, and a line here.
pub const EXPORTERS: &[&dyn Exporter] =
    &[&TEXT_EXPORTER, &JSON_EXPORTER, &csv::CsvExporter, &markdown::MarkdownExporter, &svg::SvgExporter];

/// The default output format.
pub const TEXT_EXPORTER: text::TextExporter = text::TextExporter;
/// The output format of `--json`.
pub const JSON_EXPORTER: json::JsonExporter = json::JsonExporter;

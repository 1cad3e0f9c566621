//! The list of all formats.

use super::csv::Csv;
use super::exporter::Exporter;
use super::json::Json;
use super::markdown::Markdown;
use super::svg::Svg;
use super::text::Text;

/// All of them. Another one is a file with its [`Exporter`] and a line here.
pub const ALL: &[&dyn Exporter] = &[&TEXT, &JSON, &Csv, &Markdown, &Svg];

/// What is printed unless something else is asked for.
pub const TEXT: Text = Text;
/// What `--json` prints.
pub const JSON: Json = Json;

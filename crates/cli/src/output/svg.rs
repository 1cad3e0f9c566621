//! Pictures as SVG files in a directory.

use super::directory::make_directory;
use super::exporter::{ExportOption, Exporter};
use super::failure::Failure;
use super::report::{Drawing, Picture, ResultReport};
use super::table_file::write_whole_file;
use std::path::Path;

/// Writes a directory of SVG files.
pub struct SvgExporter;

impl Exporter for SvgExporter {
    fn name(&self) -> &'static str {
        "plots"
    }

    fn command_option(&self, command: &str) -> Option<ExportOption> {
        let (help, conflicts): (_, &[&str]) = match command {
            "run" => ("Draw a sweep as SVG files in this directory", &["from"]),
            "evaluate" => {
                ("Draw the minima, variances and resolution of each method as SVG files in this directory", &[])
            }
            "marker" => ("Draw the costs in each loop as SVG files in this directory", &[]),
            "ports" => ("Draw the classes and what they share as an SVG file in this directory", &["pair"]),
            "uarch" => ("Draw the result as SVG files in this directory", &["list"]),
            _ => return None,
        };
        Some(ExportOption { value: "DIR", help, conflicts })
    }

    fn accepts_partial(&self) -> bool {
        true
    }

    fn prepare_path(&self, directory: &Path) -> Result<(), Failure> {
        let refused = |error: std::io::Error, remedy| {
            let text = format!("can't write graphs to {}: {error}", directory.display());
            Failure::usage(text, Some(remedy))
        };
        make_directory(directory)
            .map_err(|error| refused(error, "name a directory inside an existing, writable one"))?;
        // A failure must show before anything is measured.
        tempfile::tempfile_in(directory).map_err(|error| refused(error, "name a writable directory"))?;
        Ok(())
    }

    fn write_report(&self, report: &dyn ResultReport, directory: &Path) -> Result<(), Failure> {
        report.pictures().iter().try_for_each(|picture| write_picture(picture, directory))
    }
}

/// Writes a picture. Characters that don't belong in a file name become `_`.
fn write_picture(picture: &Picture, directory: &Path) -> Result<(), Failure> {
    let path = directory.join(format!("{}.svg", to_file_name(&picture.name)));
    let svg = match &picture.drawing {
        Drawing::Bars(bars) => bars.to_svg(),
        Drawing::Chart(chart) => chart.to_svg(),
        Drawing::Diagram(diagram) => diagram.to_svg(),
        Drawing::Heat(heat) => heat.to_svg(),
        Drawing::Linked(linked) => linked.to_svg(),
    };
    write_whole_file(&path, svg.as_bytes()).map_err(|error| {
        let remedy = "leave out --plots, or name another directory";
        Failure::from_writing(format!("can't write {}", path.display()), &error, remedy)
    })
}

/// Most bytes of a name: with its ending and that of a temporary file, every file system has room.
const NAME_BYTES_MOST: usize = 200;

/// Turns a name into a file name.
fn to_file_name(name: &str) -> String {
    let mut file = String::new();
    for c in name.chars().map(|c| if c.is_alphanumeric() || "-_.".contains(c) { c } else { '_' }) {
        if file.len() + c.len_utf8() > NAME_BYTES_MOST {
            break;
        }
        file.push(c);
    }
    file
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_is_named_after_its_picture() {
        assert_eq!(to_file_name("my loop/x"), "my_loop_x");
        assert_eq!(to_file_name("uarch-data_caches.1.capacity"), "uarch-data_caches.1.capacity");
        assert_eq!(to_file_name(&"µ".repeat(300)), "µ".repeat(NAME_BYTES_MOST / 2));
        assert_eq!(to_file_name(&format!("a{}", "µ".repeat(300))).len(), NAME_BYTES_MOST - 1);
    }
}

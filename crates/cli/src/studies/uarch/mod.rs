//! Presents the result of `uarch`: a page and a diagram of the core, and plots of its curves.

mod core_figure;
mod datasheet;
mod diagram;
mod figure;
mod pair_matrix;
mod plots;
mod record;
mod sheet;
#[cfg(test)]
mod simulated_lines;

use crate::studies::line_view::LineView;
pub use datasheet::{SheetLine, describe_datasheet};
pub use figure::{FigureScale, FigureText};
pub use plots::draw_core_pictures;
pub use record::UarchLine;

#[cfg(test)]
pub use simulated_lines::{simulated_line, simulated_lines};

/// How its lines are presented.
pub const UARCH_VIEW: LineView =
    LineView { study: record::UARCH_KIND, text: sheet::print_result, pictures: plots::draw_pictures };

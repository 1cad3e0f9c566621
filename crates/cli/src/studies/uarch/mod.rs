//! Presents the result of `uarch`: a page and a diagram of the core, and plots of its curves.

mod diagram;
mod figure;
mod pair_matrix;
mod plots;
mod record;
mod sheet;
#[cfg(test)]
mod simulated_lines;

use crate::studies::line_view::LineView;
pub use figure::{FigureScale, FigureText};
pub use record::UarchLine;

#[cfg(test)]
pub use simulated_lines::{simulated_line, simulated_lines};

/// How its lines are presented.
pub const UARCH_VIEW: LineView =
    LineView { study: record::UARCH_KIND, text: sheet::print_sheet, pictures: plots::draw_pictures };

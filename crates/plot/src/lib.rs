//! Charts as SVG text, as written by `--plots`.
//!
//! A [`Chart`] is plain data: the meaning of the axes, and the points. [`Chart::to_svg`] turns it
//! into one standalone file without scripts or fonts. The same chart always gives the same bytes.
//! Axes fit the points, with a little room. Several series get a legend, and colours that the
//! colour-blind can distinguish.
//!
//! [`BarChart`], [`Diagram`] (boxes), [`LinkedBoxes`] (boxes with curves between them) and [`HeatMap`]
//! (squares) are further pictures, whose height follows their content.
//!
//! The crate draws with `plotters`, which is not part of its interface. (`kuva` would work too, but
//! took 70 % more processor time in a clean build of everything.) `axis` decides ranges and ticks;
//! `draw`, `bar_chart`, `diagram`, `linked_boxes` and `heat_map` draw the page.
//!
//! Limits:
//!
//! - A point without a place on its axis is left out, and the chart shows how many were. These
//!   points are not a number, infinite, beyond ±1e250, or not above zero on a logarithmic axis.
//! - Text widths are estimated, since only the viewer knows its fonts. Long texts get smaller, then
//!   are cut.
//! - If several series have error bars, each is shifted by a few pixels.
//! - After seven series the colours repeat, with thinner lines and hollow dots.
//!
//! ```
//! use cyclescope_plot::{Axis, AxisScale, Chart, ChartPoint, Series, SeriesStyle};
//!
//! let chart = Chart {
//!     title: "Resolution against number of samples".to_owned(),
//!     note: "AMD EPYC 9R14 · rdtscp-lfence".to_owned(),
//!     x: Axis { label: "samples".to_owned(), scale: AxisScale::Log },
//!     y: Axis { label: "resolution (core cycles)".to_owned(), scale: AxisScale::Log },
//!     series: vec![Series {
//!         name: "user mode".to_owned(),
//!         style: SeriesStyle::Dots,
//!         points: vec![
//!             ChartPoint::new(100.0, 0.9).with_interval(0.7, 1.2),
//!             ChartPoint::new(1000.0, 0.3).with_interval(0.2, 0.4),
//!         ],
//!     }],
//! };
//! assert!(chart.to_svg().starts_with("<svg"));
//! ```

#![warn(unreachable_pub)]

mod axis;
mod bar_chart;
mod chart;
mod diagram;
mod draw;
mod heat_map;
mod linked_boxes;
#[cfg(test)]
mod tests;

pub use bar_chart::{Bar, BarChart, BarGroup};
pub use chart::{Axis, AxisScale, Chart, ChartPoint, Series, SeriesStyle};
pub use diagram::{Arrow, BoxFrame, BoxLine, Diagram, DiagramBox};
pub use heat_map::{HeatMap, HeatRow};
pub use linked_boxes::{BoxLink, LinkedBox, LinkedBoxes};

impl Chart {
    /// Returns the picture as the text of an SVG file of 800 by 480 pixels, with a white
    /// background.
    pub fn to_svg(&self) -> String {
        draw::render_chart(self)
    }
}

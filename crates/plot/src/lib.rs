//! Charts as SVG text: what `--plots` writes.
//!
//! A [`Chart`] is plain data: what the axes mean, and the points. [`Chart::to_svg`] makes of it one standalone file,
//! the same bytes for the same chart, with no script and no font inside. Axes fit the points, with a little room;
//! several series get a legend and colours that the colour-blind can distinguish.
//!
//! [`BarChart`], the boxes of a [`Diagram`] and the squares of a [`HeatMap`] are pictures of their own, as tall as they are many.
//!
//! Drawn with `plotters`, which is not part of the interface. (`kuva` draws as well, but is so large that a
//! clean build of everything took 70 % more processor time.) `axis` decides ranges and ticks, `draw`, `bars`,
//! `diagram` and `heat` put it all on the page.
//!
//! Limits: a point without a place on its axis (not a number, infinite, beyond ±1e250, or not above zero on a
//! logarithmic axis) is left out, and the chart says how many were. Text widths are estimated, since only the
//! viewer knows its fonts; long texts get smaller, then are cut. Where several series have error bars, each is shifted
//! by a few pixels. After seven series the colours repeat, with thinner lines and hollow dots.
//!
//! ```
//! use cyclescope_plot::{Axis, Chart, Point, Scale, Series, Style};
//!
//! let chart = Chart {
//!     title: "Resolution against number of samples".to_owned(),
//!     note: "AMD EPYC 9R14 · rdtscp-lfence".to_owned(),
//!     x: Axis { label: "samples".to_owned(), scale: Scale::Log },
//!     y: Axis { label: "resolution (core cycles)".to_owned(), scale: Scale::Log },
//!     series: vec![Series {
//!         name: "user mode".to_owned(),
//!         style: Style::Dots,
//!         points: vec![Point::new(100.0, 0.9).within(0.7, 1.2), Point::new(1000.0, 0.3).within(0.2, 0.4)],
//!     }],
//! };
//! assert!(chart.svg().starts_with("<svg"));
//! ```

#![warn(unreachable_pub)]

mod axis;
mod bar_chart;
mod chart;
mod diagram;
mod draw;
mod heat_map;
#[cfg(test)]
mod tests;

pub use bar_chart::{Bar, BarChart, BarGroup};
pub use chart::{Axis, AxisScale, Chart, ChartPoint, Series, SeriesStyle};
pub use diagram::{Arrow, BoxLine, Diagram, DiagramBox};
pub use heat_map::{HeatMap, HeatRow};

impl Chart {
    /// The picture as the text of an SVG file of 800 by 480 pixels on white ground.
    pub fn to_svg(&self) -> String {
        draw::render_chart(self)
    }
}

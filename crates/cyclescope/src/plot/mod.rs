//! Charts as SVG text: what `--plots` writes.
//!
//! A [`Chart`] is plain data: what the axes mean, and the points. [`Chart::svg`] makes of it one standalone file,
//! the same bytes for the same chart, with no script and no font inside. Axes fit the points, with a little room;
//! several series get a legend and colours that the colour-blind can tell apart.
//!
//! [`Bars`] are a picture of their own, as tall as they are many.
//!
//! Drawn with `plotters`, of which nothing is seen from outside. (`kuva` draws as well, but is so large that a
//! clean build of everything took 70 % more processor time.) `axis` decides ranges and ticks, `draw` and `bars`
//! put it all on the page.
//!
//! Limits: a point without a place on its axis (not a number, infinite, beyond ±1e250, or not above zero on a
//! logarithmic axis) is left out, and the chart says how many were. Text widths are estimated, since only the
//! viewer knows its fonts; long texts get smaller, then are cut. Where several series have error bars, each stands a
//! few pixels aside. After seven series the colours repeat, with thinner lines and hollow dots.
//!
//! ```
//! use cyclescope::plot::{Axis, Chart, Point, Scale, Series, Style};
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

mod axis;
mod bars;
mod draw;
#[cfg(test)]
mod tests;

pub use bars::{Bar, Bars, Group};

/// One picture: a title, two axes, and what is drawn between them.
#[derive(Clone, Debug, PartialEq)]
pub struct Chart {
    /// What is seen, in a few words.
    pub title: String,
    /// One line under the title: machine, method, how many samples. May be empty.
    pub note: String,
    /// The horizontal axis.
    pub x: Axis,
    /// The vertical axis.
    pub y: Axis,
    /// What is drawn, each in its own colour; the first lies at the bottom.
    pub series: Vec<Series>,
}

/// What one axis means.
#[derive(Clone, Debug, PartialEq)]
pub struct Axis {
    /// The quantity with its unit, such as `variance (ticks²)`.
    pub label: String,
    /// How its values are spread.
    pub scale: Scale,
}

/// How values are spread along an axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scale {
    /// Equal differences are equally far apart.
    Linear,
    /// Equal ratios are equally far apart; only values above zero have a place.
    Log,
    /// For values of either sign: logarithmic beyond ±0.1, and linear between.
    SignedLog,
}

/// Points that belong together.
#[derive(Clone, Debug, PartialEq)]
pub struct Series {
    /// Its name in the legend, which is drawn when there are several series.
    pub name: String,
    /// How its points are drawn.
    pub style: Style,
    /// The points, in the order in which lines go through them.
    pub points: Vec<Point>,
}

/// How the points of a series are drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// A line from point to point, broken where one is left out.
    Line,
    /// A staircase: each value holds until the next point; broken where one is left out.
    Steps,
    /// A dot for each point.
    Dots,
}

/// One value, in the units of its axes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// Where it lies along the horizontal axis.
    pub x: f64,
    /// Where it lies along the vertical axis.
    pub y: f64,
    /// The ends of its error bar on the vertical axis, the lower first. An end without a place on the axis
    /// reaches the edge of the picture.
    pub interval: Option<(f64, f64)>,
}

impl Point {
    /// A point without an error bar.
    pub fn new(x: f64, y: f64) -> Self {
        Self { x, y, interval: None }
    }

    /// The same point with an error bar from `low` to `high`.
    pub fn within(self, low: f64, high: f64) -> Self {
        Self { interval: Some((low, high)), ..self }
    }
}

impl Chart {
    /// The picture as the text of an SVG file of 800 by 480 pixels on white ground.
    pub fn svg(&self) -> String {
        draw::svg(self)
    }
}

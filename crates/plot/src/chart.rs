//! A chart as plain data.

/// A picture: a title, two axes, and series between them.
#[derive(Clone, Debug, PartialEq)]
pub struct Chart {
    /// Heading, in a few words.
    pub title: String,
    /// One line under the title: machine, method, number of samples. May be empty.
    pub note: String,
    /// The horizontal axis.
    pub x: Axis,
    /// The vertical axis.
    pub y: Axis,
    /// The series, each in its own colour; the first lies at the bottom.
    pub series: Vec<Series>,
}

/// Meaning of one axis.
#[derive(Clone, Debug, PartialEq)]
pub struct Axis {
    /// The quantity with its unit, such as `variance (ticks²)`.
    pub label: String,
    /// Spacing of its values.
    pub scale: AxisScale,
}

/// Spacing of values along an axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AxisScale {
    /// Equal differences are equally far apart.
    Linear,
    /// Equal ratios are equally far apart; only values above zero have a place.
    Log,
    /// Like `Log`, with ticks at powers of two, such as 4K and 1M: 2^12 and 2^20.
    Binary,
    /// For values of either sign: logarithmic beyond ±0.1, and linear between.
    SignedLog,
}

/// Points with a common name and style.
#[derive(Clone, Debug, PartialEq)]
pub struct Series {
    /// Its name in the legend, which appears if there are several series.
    pub name: String,
    /// How its points are drawn.
    pub style: SeriesStyle,
    /// The points, in the order in which lines connect them.
    pub points: Vec<ChartPoint>,
}

/// How the points of a series are drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SeriesStyle {
    /// A line from point to point, broken where a point is left out.
    Line,
    /// A staircase: each value holds until the next point. Broken where a point is left out.
    Steps,
    /// A dot for each point.
    Dots,
}

/// One value, in the units of its axes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ChartPoint {
    /// Position along the horizontal axis.
    pub x: f64,
    /// Position along the vertical axis.
    pub y: f64,
    /// The ends of its error bar on the vertical axis, the lower first. An end without a place on
    /// the axis reaches the edge of the picture.
    pub interval: Option<(f64, f64)>,
}

impl ChartPoint {
    /// A point without an error bar.
    pub fn new(x: f64, y: f64) -> Self {
        Self { x, y, interval: None }
    }

    /// The same point with an error bar from `low` to `high`.
    pub fn with_interval(self, low: f64, high: f64) -> Self {
        Self { interval: Some((low, high)), ..self }
    }
}

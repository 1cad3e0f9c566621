//! A chart as plain data.

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
    pub scale: AxisScale,
}

/// How values are spread along an axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AxisScale {
    /// Equal differences are equally far apart.
    Linear,
    /// Equal ratios are equally far apart; only values above zero have a place.
    Log,
    /// The same with ticks at powers of two, such as 4K and 1M: 2^12 and 2^20.
    Binary,
    /// For values of either sign: logarithmic beyond ±0.1, and linear between.
    SignedLog,
}

/// Points that belong together.
#[derive(Clone, Debug, PartialEq)]
pub struct Series {
    /// Its name in the legend, which is drawn when there are several series.
    pub name: String,
    /// How its points are drawn.
    pub style: SeriesStyle,
    /// The points, in the order in which lines go through them.
    pub points: Vec<ChartPoint>,
}

/// How the points of a series are drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SeriesStyle {
    /// A line from point to point, broken where one is left out.
    Line,
    /// A staircase: each value holds until the next point; broken where one is left out.
    Steps,
    /// A dot for each point.
    Dots,
}

/// One value, in the units of its axes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ChartPoint {
    /// Where it lies along the horizontal axis.
    pub x: f64,
    /// Where it lies along the vertical axis.
    pub y: f64,
    /// The ends of its error bar on the vertical axis, the lower first. An end without a place on the axis
    /// reaches the edge of the picture.
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

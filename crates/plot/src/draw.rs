//! Draws the page: title, frame, series, legend.
//!
//! `plotters` rounds every coordinate to a whole unit. On a page of 800 units a staircase of minima
//! would show false steps. So the page is drawn ten times as large, and `viewBox` scales it down.

use std::ops::Range;

use plotters::coord::Shift;
use plotters::coord::ranged1d::{KeyPointHint, NoDefaultFormatting, Ranged, ValueFormatter};
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use super::axis::AxisSpan;
use super::chart::{Chart, ChartPoint, Series, SeriesStyle};

/// Size of the picture in pixels.
pub(super) const SIZE: (i32, i32) = (800, 480);
/// Drawing units per pixel.
const UNITS_PER_PIXEL: i32 = 10;
/// Empty border in pixels.
pub(super) const MARGIN: i32 = 14;

/// Sizes of text in pixels.
const TITLE: f64 = 19.0;
pub(super) const LABEL: f64 = 14.0;
pub(super) const SMALL: f64 = 12.0;
/// Estimated width of a character, as a share of the text's size. 0.6 is the mean of wide fonts
/// such as DejaVu Sans and Verdana.
const CHARACTER_WIDTH: f64 = 0.6;
const FONTS: &str = "DejaVu Sans, Verdana, Liberation Sans, Arial, sans-serif";

pub(super) const INK: RGBColor = RGBColor(0x22, 0x22, 0x22);
pub(super) const PALE: RGBColor = RGBColor(0x66, 0x66, 0x66);
pub(super) const GRID: RGBColor = RGBColor(0xdd, 0xdd, 0xdd);
pub(super) const FINE_GRID: RGBColor = RGBColor(0xf2, 0xf2, 0xf2);

/// Okabe and Ito, Color Universal Design (2008), without yellow, which is invisible on white.
pub(super) const PALETTE: [RGBColor; 7] = [
    RGBColor(0x00, 0x72, 0xb2),
    RGBColor(0xd5, 0x5e, 0x00),
    RGBColor(0x00, 0x9e, 0x73),
    RGBColor(0xcc, 0x79, 0xa7),
    RGBColor(0xe6, 0x9f, 0x00),
    RGBColor(0x56, 0xb4, 0xe9),
    RGBColor(0x00, 0x00, 0x00),
];

pub(super) type PageArea<'a> = DrawingArea<SVGBackend<'a>, Shift>;
type ChartFrame<'a> = ChartContext<'a, SVGBackend<'a>, Cartesian2d<AxisSpan, AxisSpan>>;
pub(super) type DrawResult<T = ()> = Result<T, DrawingAreaErrorKind<std::io::Error>>;

/// A point in places, with the ends of its error bar. An end without a place is infinite.
struct PlacedPoint {
    at: (f64, f64),
    bar: Option<(f64, f64)>,
}

pub(super) fn render_chart(chart: &Chart) -> String {
    render_page(SIZE.0, SIZE.1, |page| draw_chart(chart, page))
}

/// Renders a page of this width and height in pixels, with a white background.
pub(super) fn render_page(wide: i32, tall: i32, draw: impl FnOnce(&PageArea) -> DrawResult) -> String {
    let mut text = String::new();
    let whole = (to_units(wide) as u32, to_units(tall) as u32);
    let drawn = || {
        let page = SVGBackend::with_string(&mut text, whole).into_drawing_area();
        page.fill(&WHITE)?;
        draw(&page)?;
        page.present()
    };
    drawn().expect("text in memory cannot fail to be written");
    let attributes = |wide: i32, tall: i32| format!(r#"width="{wide}" height="{tall}""#);
    text.replacen(&attributes(to_units(wide), to_units(tall)), &attributes(wide, tall), 1)
}

fn draw_chart(chart: &Chart, page: &PageArea) -> DrawResult {
    let series: Vec<Vec<Option<PlacedPoint>>> = chart.series.iter().map(|series| place_points(chart, series)).collect();
    let top = draw_heading(page, SIZE.0, &chart.title, &chart.note)?;
    draw_missing_count(page, series.iter().flatten().filter(|spot| spot.is_none()).count())?;
    let right = if chart.series.len() > 1 { draw_legend(page, &chart.series, top)? } else { SIZE.0 - MARGIN };

    let shown = || series.iter().flatten().flatten();
    // One label per 90 pixels: the widest usual one, 1 000 000, takes 65.
    let x = AxisSpan::from_places(chart.x.scale, shown().map(|spot| spot.at.0), 0.02, right as usize / 90);
    let end = x.ticks.last().map_or(0.0, |tick| text_width(&tick.label, SMALL) / 2.0);
    let right = right.min(SIZE.0 - MARGIN / 2 - end as i32);
    let tall = shown().flat_map(|spot| {
        let ends = spot.bar.map_or([spot.at.1; 2], |bar| [bar.0, bar.1]);
        ends.into_iter().chain([spot.at.1]).filter(|place| place.is_finite())
    });
    let y = AxisSpan::from_places(chart.y.scale, tall, 0.06, 7);
    let mut frame = draw_frame(page, chart, top, right, x, y)?;
    if shown().next().is_none() {
        let (x, y) = ((MARGIN + right) / 2, (top + SIZE.1) / 2);
        write_text(page, "no points to show", LABEL, PALE, Pos::new(HPos::Center, VPos::Center), x, y)?;
    }
    let aside = series_shifts(&series);
    for (index, (series, spots)) in chart.series.iter().zip(&series).enumerate() {
        draw_series(&mut frame, series.style, &SeriesLook::from_index(index), aside(index), spots)?;
    }
    Ok(())
}

/// The points of a series in places; `None` for a point without a place.
fn place_points(chart: &Chart, series: &Series) -> Vec<Option<PlacedPoint>> {
    let spot = |point: &ChartPoint| {
        let at = (chart.x.scale.to_place(point.x)?, chart.y.scale.to_place(point.y)?);
        let end = |value: f64, beyond| chart.y.scale.to_place(value).unwrap_or(beyond);
        let bar = point.interval.map(|(low, high)| (end(low, f64::NEG_INFINITY), end(high, f64::INFINITY)));
        Some(PlacedPoint { at, bar })
    };
    series.points.iter().map(spot).collect()
}

/// Draws title and note on a page of this width. Returns the height at which they end.
pub(super) fn draw_heading(page: &PageArea, wide: i32, title: &str, note: &str) -> DrawResult<i32> {
    let (middle, top) = (wide / 2, Pos::new(HPos::Center, VPos::Top));
    let room = f64::from((wide - 2 * MARGIN).max(0));
    let (title, size) = fit_text(title, TITLE, room);
    write_text(page, &title, size, INK, top, middle, MARGIN)?;
    let (shown, size) = fit_text(note, SMALL, room);
    write_text(page, &shown, size, PALE, top, middle, MARGIN + 25)?;
    Ok(if note.is_empty() { MARGIN + 32 } else { MARGIN + 48 })
}

/// Writes the number of points without a place, in the corner.
fn draw_missing_count(page: &PageArea, count: usize) -> DrawResult {
    let text = match count {
        0 => return Ok(()),
        1 => "1 point not shown".to_owned(),
        _ => format!("{count} points not shown"),
    };
    let corner = Pos::new(HPos::Right, VPos::Bottom);
    write_text(page, &text, SMALL, PALE, corner, SIZE.0 - MARGIN, SIZE.1 - MARGIN)
}

/// Draws the names to the right of the frame. Returns the position at which the frame has to end.
fn draw_legend(page: &PageArea, series: &[Series], top: i32) -> DrawResult<i32> {
    const GLYPH: i32 = 26;
    let widest = series.iter().map(|series| text_width(&series.name, SMALL)).fold(0.0, f64::max).min(210.0);
    let left = SIZE.0 - MARGIN - GLYPH - widest as i32;
    // The lower corner is reserved for the number of missing points.
    let row = ((SIZE.1 - top - MARGIN - 20) / series.len() as i32).clamp(1, 20);
    for (index, series) in series.iter().enumerate() {
        let look = SeriesLook::from_index(index);
        let y = top + 10 + row * index as i32;
        let at = |x: i32| (to_units(x), to_units(y));
        match series.style {
            SeriesStyle::Line | SeriesStyle::Steps => {
                page.draw(&PathElement::new([at(left), at(left + GLYPH - 8)], look.line))?
            }
            SeriesStyle::Dots => page.draw(&Circle::new(at(left + GLYPH / 2 - 4), to_units(4), look.dot))?,
        }
        let (name, size) = fit_text(&series.name, SMALL.min(f64::from(row)), widest + 1.0);
        write_text(page, &name, size, INK, Pos::new(HPos::Left, VPos::Center), left + GLYPH, y)?;
    }
    Ok(left - 16)
}

/// Draws axes, grid and labels, from `top` to the bottom and up to `right`.
fn draw_frame<'a>(
    page: &PageArea<'a>,
    chart: &Chart,
    top: i32,
    right: i32,
    x: AxisSpan,
    y: AxisSpan,
) -> DrawResult<ChartFrame<'a>> {
    const TICK: i32 = 5;
    let numbers = y.ticks.iter().map(|tick| text_width(&tick.label, SMALL)).fold(0.0, f64::max) as i32;
    let area = page.margin(to_units(top), to_units(MARGIN), to_units(MARGIN), to_units(SIZE.0 - right));
    let mut frame = ChartBuilder::on(&area)
        .x_label_area_size(to_units(46))
        .y_label_area_size(to_units(numbers + 2 * TICK + 26))
        .build_cartesian_2d(x, y)?;
    let (across, x_size) = fit_text(&chart.x.label, LABEL, f64::from(right - 300));
    let (along, y_size) = fit_text(&chart.y.label, LABEL, f64::from(SIZE.1 - top - MARGIN));
    frame
        .configure_mesh()
        .bold_line_style(GRID.stroke_width(to_units(1) as u32))
        .light_line_style(FINE_GRID.stroke_width(to_units(1) as u32))
        .axis_style(PALE.stroke_width(to_units(1) as u32))
        .set_all_tick_mark_size(to_units(TICK))
        .label_style(text_style(SMALL, INK))
        .axis_desc_style(text_style(x_size.min(y_size), INK))
        .x_desc(across)
        .y_desc(along)
        .draw()?;
    Ok(frame)
}

impl Ranged for AxisSpan {
    type FormatOption = NoDefaultFormatting;
    type ValueType = f64;

    fn map(&self, place: &f64, (first, last): (i32, i32)) -> i32 {
        let share = (place - self.low) / (self.high - self.low);
        (f64::from(first) + share * f64::from(last - first)).round() as i32
    }

    fn key_points<Hint: KeyPointHint>(&self, hint: Hint) -> Vec<f64> {
        match hint.weight().allow_light_points() {
            true => self.minor.clone(),
            false => self.ticks.iter().map(|tick| tick.at).collect(),
        }
    }

    fn range(&self) -> Range<f64> {
        self.low..self.high
    }
}

impl ValueFormatter<f64> for AxisSpan {
    fn format_ext(&self, place: &f64) -> String {
        self.label_at(*place)
    }
}

/// The style of a series, by its number.
struct SeriesLook {
    line: ShapeStyle,
    dot: ShapeStyle,
}

impl SeriesLook {
    fn from_index(index: usize) -> Self {
        let color = PALETTE[index % PALETTE.len()];
        let first = (index / PALETTE.len()).is_multiple_of(2);
        let line = color.stroke_width((to_units(if first { 18 } else { 8 }) / 10) as u32);
        Self { line, dot: if first { color.filled() } else { line } }
    }
}

/// Pixels by which each series is shifted, so that error bars at the same place do not cover each
/// other.
fn series_shifts(series: &[Vec<Option<PlacedPoint>>]) -> impl Fn(usize) -> f64 {
    let barred = |spots: &&Vec<Option<PlacedPoint>>| spots.iter().flatten().any(|spot| spot.bar.is_some());
    let apart = match series.iter().filter(barred).count() {
        0 | 1 => 0.0,
        _ => f64::min(4.0, 30.0 / series.len() as f64),
    };
    let middle = (series.len() as f64 - 1.0) / 2.0;
    move |index| (index as f64 - middle) * apart
}

/// Draws the points, shifted `aside` pixels to the right.
fn draw_series(
    frame: &mut ChartFrame,
    style: SeriesStyle,
    look: &SeriesLook,
    aside: f64,
    spots: &[Option<PlacedPoint>],
) -> DrawResult {
    let Range { start: bottom, end: top } = frame.y_range();
    let Range { start: left, end: right } = frame.x_range();
    let pixel = (right - left) * f64::from(UNITS_PER_PIXEL) / f64::from(frame.plotting_area().dim_in_pixel().0);
    for run in spots.split(Option::is_none) {
        let moved = |spot: &PlacedPoint| PlacedPoint { at: (spot.at.0 + aside * pixel, spot.at.1), bar: spot.bar };
        let run: Vec<PlacedPoint> = run.iter().flatten().map(moved).collect();
        let line: Vec<(f64, f64)> = match style {
            SeriesStyle::Dots => Vec::new(),
            SeriesStyle::Line => run.iter().map(|spot| spot.at).collect(),
            SeriesStyle::Steps => staircase_line(&run),
        };
        if line.len() > 1 {
            frame.draw_series([PathElement::new(line, look.line)])?;
        }
        let alone = style == SeriesStyle::Dots || run.len() == 1;
        let dots = run.iter().filter(|spot| alone && spot.bar.is_none());
        frame.draw_series(dots.map(|spot| Circle::new(spot.at, to_units(5) / 2, look.dot)))?;
        let bars = run.iter().filter_map(|spot| spot.bar.map(|bar| (spot.at, bar)));
        frame.draw_series(bars.map(|((x, middle), (low, high))| {
            let (low, high) = (low.clamp(bottom, top), high.clamp(bottom, top));
            let style = look.dot.stroke_width(to_units(1) as u32);
            ErrorBar::new_vertical(x, low, middle, high, style, to_units(7) as u32)
        }))?;
    }
    Ok(())
}

/// A line across to the next point, then up or down to it.
fn staircase_line(run: &[PlacedPoint]) -> Vec<(f64, f64)> {
    let corner = |pair: &[PlacedPoint]| [(pair[1].at.0, pair[0].at.1), pair[1].at];
    run.first().map(|spot| spot.at).into_iter().chain(run.windows(2).flat_map(corner)).collect()
}

/// Converts pixels to drawing units.
pub(super) fn to_units(pixels: i32) -> i32 {
    pixels * UNITS_PER_PIXEL
}

pub(super) fn text_style(pixels: f64, color: RGBColor) -> TextStyle<'static> {
    // The SVG writer of plotters divides every size by this.
    const SHRUNK: f64 = 1.24;
    (FONTS, pixels * SHRUNK * f64::from(UNITS_PER_PIXEL)).into_font().color(&color)
}

/// Writes a text whose anchor is at `x` and `y`, in pixels.
pub(super) fn write_text(
    page: &PageArea,
    text: &str,
    size: f64,
    color: RGBColor,
    anchor: Pos,
    x: i32,
    y: i32,
) -> DrawResult {
    page.draw_text(text, &text_style(size, color).pos(anchor), (to_units(x), to_units(y)))
}

/// Whether a character is not shown: XML cannot contain it, not even escaped, or it changes the
/// writing direction of what follows (Unicode Standard Annex 9) or ends a line.
fn is_no_text(c: char) -> bool {
    let turns = matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    turns || c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}')
}

/// Estimated width of a text in pixels.
pub(super) fn text_width(text: &str, size: f64) -> f64 {
    text.chars().count() as f64 * size * CHARACTER_WIDTH
}

/// The text, and the size at which it fits into `room` pixels: smaller if needed, and cut if that
/// is not enough.
pub(super) fn fit_text(text: &str, size: f64, room: f64) -> (String, f64) {
    const SMALLEST: f64 = 0.75;
    let text = text.replace(is_no_text, " ");
    let wide = text_width(&text, size);
    // An empty text in no room would get the size 0 / 0.
    if wide <= room {
        return (text, size);
    }
    let size = (size * room / wide).max(size * SMALLEST);
    let most = (room / text_width("m", size)) as usize;
    if text.chars().count() <= most {
        return (text, size);
    }
    (text.chars().take(most.saturating_sub(1)).chain(['…']).collect(), size)
}

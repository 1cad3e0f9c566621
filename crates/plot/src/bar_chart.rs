//! Horizontal bars with error bars, in groups, one below the other. Each bar has its name on the
//! left and its figure on the right. The axis includes zero, where bars begin in either direction.

use plotters::coord::ranged1d::Ranged;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use super::Axis;
use super::axis::AxisSpan;
use super::draw::{
    DrawResult, FINE_GRID, GRID, INK, LABEL, MARGIN, PALE, PALETTE, PageArea, SIZE, SMALL, draw_heading, fit_text,
    render_page, text_width, to_units, write_text,
};

/// Pixels of a row, of a bar in it, of the space before a group, and of the axis' numbers and name.
const ROW: i32 = 16;
const THICK: i32 = 10;
const GAP: i32 = 6;
const NUMBERS: i32 = 20;
const NAME: i32 = 22;
/// Pixels that a bar's name is indented relative to its group's.
const INDENT: i32 = 12;
/// Most pixels of names and figures.
const WIDEST: f64 = 220.0;
/// Approximate least distance of the axis' numbers, in pixels.
const APART: i32 = 60;

/// A bar chart.
#[derive(Clone, Debug, PartialEq)]
pub struct BarChart {
    /// Heading, in a few words.
    pub title: String,
    /// One line under the title. May be empty.
    pub note: String,
    /// Meaning of the bars' lengths.
    pub axis: Axis,
    /// The bars, from top to bottom.
    pub groups: Vec<BarGroup>,
}

/// Bars that belong together.
#[derive(Clone, Debug, PartialEq)]
pub struct BarGroup {
    /// Heading of the group.
    pub name: String,
    /// The bars.
    pub bars: Vec<Bar>,
}

/// One bar.
#[derive(Clone, Debug, PartialEq)]
pub struct Bar {
    /// Text on its left.
    pub name: String,
    /// Length from zero, in either direction. A bar without a place on the axis is not drawn.
    pub value: f64,
    /// The ends of its error bar, the lower first. An end without a place reaches the edge of the
    /// picture.
    pub interval: Option<(f64, f64)>,
    /// Text on its right.
    pub figure: String,
}

impl BarChart {
    /// Returns the picture as the text of an SVG file, 800 pixels wide, with a white background.
    pub fn to_svg(&self) -> String {
        let rows: usize = self.groups.iter().map(|group| group.bars.len() + 1).sum();
        let tall = rows as i32 * ROW + self.groups.len() as i32 * GAP;
        let head = if self.note.is_empty() { 32 } else { 48 };
        let whole = MARGIN + head + NUMBERS + tall + NUMBERS + NAME + MARGIN;
        render_page(SIZE.0, whole, |page| self.draw(page, tall))
    }

    fn draw(&self, page: &PageArea, tall: i32) -> DrawResult {
        let top = draw_heading(page, SIZE.0, &self.title, &self.note)? + NUMBERS;
        let bars = || self.groups.iter().flat_map(|group| &group.bars);
        let widest = |text: fn(&Bar) -> &str| bars().map(|bar| text_width(text(bar), SMALL)).fold(0.0, f64::max);
        let names = self.groups.iter().map(|group| text_width(&group.name, SMALL)).fold(0.0, f64::max);
        let names = names.max(widest(|bar| &bar.name) + f64::from(INDENT)).min(WIDEST);
        let figures = widest(|bar| &bar.figure).min(WIDEST);
        let frame = BarFrame {
            left: MARGIN + names as i32 + 10,
            right: SIZE.0 - MARGIN - figures as i32 - 10,
            top,
            bottom: top + tall,
        };
        let place = |value: f64| self.axis.scale.to_place(value);
        let ends = bars().flat_map(|bar| {
            let (low, high) = bar.interval.unwrap_or((bar.value, bar.value));
            [place(bar.value), place(low), place(high)]
        });
        let most = (frame.right - frame.left) / APART;
        let span = AxisSpan::from_places(self.axis.scale, ends.flatten().chain(place(0.0)), 0.03, most.max(2) as usize);
        frame.draw_axis(page, &span, &self.axis.label)?;
        let mut y = top;
        for group in &self.groups {
            y += GAP;
            let (name, size) = fit_text(&group.name, SMALL, names);
            let left = Pos::new(HPos::Left, VPos::Center);
            write_text(page, &name, size, INK, left, MARGIN, y + ROW / 2)?;
            y += ROW;
            for bar in &group.bars {
                let (name, size) = fit_text(&bar.name, SMALL, names - f64::from(INDENT));
                write_text(page, &name, size, PALE, left, MARGIN + INDENT, y + ROW / 2)?;
                let (figure, size) = fit_text(&bar.figure, SMALL, figures);
                let right = Pos::new(HPos::Right, VPos::Center);
                write_text(page, &figure, size, INK, right, SIZE.0 - MARGIN, y + ROW / 2)?;
                self.draw_bar(page, &frame, &span, bar, y + ROW / 2)?;
                y += ROW;
            }
        }
        Ok(())
    }

    fn draw_bar(&self, page: &PageArea, frame: &BarFrame, span: &AxisSpan, bar: &Bar, y: i32) -> DrawResult {
        let place = |value: f64| self.axis.scale.to_place(value);
        let Some((value, zero)) = place(bar.value).zip(place(0.0)) else { return Ok(()) };
        let (zero, end, half) = (frame.pixel_x(span, zero), frame.pixel_x(span, value), to_units(THICK) / 2);
        let corners = [(zero.min(end), to_units(y) - half), (zero.max(end), to_units(y) + half)];
        page.draw(&Rectangle::new(corners, PALETTE[0].mix(0.6).filled()))?;
        let Some((low, high)) = bar.interval else { return Ok(()) };
        let low = place(low).map_or(to_units(frame.left), |low| frame.pixel_x(span, low));
        let high = place(high).map_or(to_units(frame.right), |high| frame.pixel_x(span, high));
        let pen = INK.stroke_width(to_units(1) as u32);
        page.draw(&PathElement::new([(low, to_units(y)), (high, to_units(y))], pen))?;
        for end in [low, high] {
            page.draw(&PathElement::new([(end, to_units(y) - half / 2), (end, to_units(y) + half / 2)], pen))?;
        }
        Ok(())
    }
}

/// Where the bars are, in pixels.
struct BarFrame {
    left: i32,
    right: i32,
    top: i32,
    bottom: i32,
}

impl BarFrame {
    /// The position of a place on the axis, in drawing units.
    fn pixel_x(&self, span: &AxisSpan, place: f64) -> i32 {
        span.map(&place, (to_units(self.left), to_units(self.right)))
    }

    /// Draws vertical grid lines, numbers above and below, and a name.
    fn draw_axis(&self, page: &PageArea, span: &AxisSpan, label: &str) -> DrawResult {
        let line = |page: &PageArea, place: f64, colour: RGBColor| {
            let x = self.pixel_x(span, place);
            let ends = [(x, to_units(self.top)), (x, to_units(self.bottom))];
            page.draw(&PathElement::new(ends, colour.stroke_width(to_units(1) as u32)))
        };
        for place in &span.minor {
            line(page, *place, FINE_GRID)?;
        }
        for tick in &span.ticks {
            line(page, tick.at, if tick.at == 0.0 { PALE } else { GRID })?;
            let x = self.pixel_x(span, tick.at) / to_units(1);
            for (y, edge) in [(self.top - 4, VPos::Bottom), (self.bottom + 4, VPos::Top)] {
                write_text(page, &tick.label, SMALL, INK, Pos::new(HPos::Center, edge), x, y)?;
            }
        }
        let (label, size) = fit_text(label, LABEL, f64::from(SIZE.0 - 2 * MARGIN));
        write_text(page, &label, size, INK, Pos::new(HPos::Center, VPos::Top), SIZE.0 / 2, self.bottom + NUMBERS)
    }
}

#[cfg(test)]
mod tests {
    use super::super::AxisScale;
    use super::super::tests::{covers, number, texts, value};
    use super::*;
    use proptest::prelude::*;
    use roxmltree::Document;

    fn bar(value: f64, reach: f64) -> Bar {
        let figure = format!("{value:.3} ± {reach:.3}");
        Bar { name: "dormant".to_owned(), value, interval: Some((value - reach, value + reach)), figure }
    }

    fn bars(bars: Vec<Bar>, scale: AxisScale) -> BarChart {
        let axis = Axis { label: "core cycles per loop".to_owned(), scale };
        let groups = vec![BarGroup { name: "flag".to_owned(), bars }];
        BarChart { title: "What markers cost".to_owned(), note: "a machine".to_owned(), axis, groups }
    }

    /// Left and right ends of the bars, and of the error bars.
    fn spans(svg: &str) -> (Vec<[f64; 2]>, Vec<[f64; 2]>) {
        let document = Document::parse(svg).unwrap();
        let drawn = document.descendants().filter(|node| node.attribute("fill") == Some("#0072B2"));
        let drawn = drawn.map(|node| [number(node, "x"), number(node, "x") + number(node, "width")]).collect();
        let errors = document
            .descendants()
            .filter(|node| node.has_tag_name("polyline") && node.attribute("stroke") == Some("#222222"))
            .map(covers)
            .filter(|ends| ends[0].1 == ends[1].1);
        (drawn, errors.map(|ends| [ends[0].0, ends[1].0]).collect())
    }

    #[test]
    fn bars_extend_from_zero_in_either_direction() {
        let svg = bars(vec![bar(2.0, 0.5), bar(-1.0, 0.5), bar(f64::NAN, 1.0)], AxisScale::Linear).to_svg();
        let (drawn, errors) = spans(&svg);
        let [right, left] = drawn[..] else { panic!("{drawn:?}") };
        assert_eq!(right[0], left[1], "both begin at zero");
        let unit = left[1] - left[0];
        assert!((right[1] - right[0] - 2.0 * unit).abs() <= 2.0 && unit > 100.0);
        for (bar, error) in [(right[1], errors[0]), (left[0], errors[1])] {
            assert!((bar - error[0] - unit / 2.0).abs() <= 2.0 && (error[1] - bar - unit / 2.0).abs() <= 2.0);
        }
        let found = texts(&svg);
        for text in
            ["What markers cost", "a machine", "core cycles per loop", "flag", "dormant", "−1.0", "2.000 ± 0.500"]
        {
            assert!(found.iter().any(|found| found == text), "{text} in {found:?}");
        }
    }

    #[test]
    fn the_page_height_follows_the_number_of_bars() {
        let tall = |count: usize| {
            let svg = bars(vec![bar(1.0, 0.1); count], AxisScale::SignedLog).to_svg();
            let document = Document::parse(&svg).unwrap();
            assert_eq!(document.root_element().attribute("width"), Some("800"));
            number(document.root_element(), "height")
        };
        assert_eq!(tall(30) - tall(10), f64::from(20 * ROW));
        assert!(tall(0) > 100.0);
    }

    #[test]
    fn empty_texts_have_a_size() {
        let empty = Bar { name: String::new(), value: 0.0, interval: None, figure: String::new() };
        let svg = bars(vec![empty], AxisScale::Linear).to_svg();
        assert!(!svg.contains("NaN"), "{svg}");
    }

    fn any_bars() -> impl Strategy<Value = BarChart> {
        let scale = prop_oneof![Just(AxisScale::Linear), Just(AxisScale::Log), Just(AxisScale::SignedLog)];
        let bar = (".{0,60}", value(), prop::option::of((value(), value())), ".{0,60}");
        let bar = bar.prop_map(|(name, value, interval, figure)| Bar { name, value, interval, figure });
        let group = (".{0,60}", prop::collection::vec(bar, 0..8));
        let groups = prop::collection::vec(group.prop_map(|(name, bars)| BarGroup { name, bars }), 0..6);
        (".{0,120}", ".{0,120}", ".{0,80}", scale, groups).prop_map(|(title, note, label, scale, groups)| BarChart {
            title,
            note,
            axis: Axis { label, scale },
            groups,
        })
    }

    proptest! {
        #[test]
        fn any_bars_are_well_formed_and_stay_on_their_page(bars in any_bars()) {
            let svg = bars.to_svg();
            let document = Document::parse(&svg).unwrap();
            let (wide, tall) = (8000.0, 10.0 * number(document.root_element(), "height"));
            for node in document.descendants() {
                let on_page = |&(x, y): &(f64, f64)| (0.0..=wide).contains(&x) && (0.0..=tall).contains(&y);
                prop_assert!(covers(node).iter().all(on_page), "{:?}", node);
            }
        }
    }
}

//! A table of numbers as coloured squares: a larger number is darker. If there is room, squares
//! contain their numbers.

use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use super::draw::{
    DrawResult, FINE_GRID, INK, MARGIN, PALE, PageArea, SIZE, SMALL, draw_heading, fit_text, render_page, text_width,
    to_units, write_text,
};

/// The largest side of a square in pixels, and the smallest side of a square that contains its
/// number.
const SIDE: f64 = 56.0;
/// Least height of a row in pixels if many columns make squares small, and most height of all rows.
const ROW: f64 = 16.0;
const ROWS: f64 = 560.0;
const WRITTEN: f64 = 24.0;
/// Pixels of the names above the columns, and of the scale below with its numbers.
const NAMES: i32 = 20;
const SCALE: i32 = 56;
/// Most pixels of the names of rows.
const WIDEST: f64 = 120.0;
/// Width and height of the scale in pixels, and its steps.
const LONG: i32 = 240;
const TALL: i32 = 12;
const STEPS: i32 = 48;

/// The colours of the smallest and the largest number. They have one hue, so that lightness alone
/// shows the value.
const LEAST: RGBColor = RGBColor(0xe8, 0xf1, 0xfa);
const MOST: RGBColor = RGBColor(0x08, 0x30, 0x6b);
/// The share of the scale above which numbers are white.
const DARK: f64 = 0.45;

/// A picture of a table of numbers.
#[derive(Clone, Debug, PartialEq)]
pub struct HeatMap {
    /// Heading, in a few words.
    pub title: String,
    /// One line under the title. May be empty.
    pub note: String,
    /// The quantity of the numbers, with its unit.
    pub unit: String,
    /// Names of the columns, from left to right.
    pub columns: Vec<String>,
    /// The rows, from top to bottom.
    pub rows: Vec<HeatRow>,
}

/// A row of a [`HeatMap`].
#[derive(Clone, Debug, PartialEq)]
pub struct HeatRow {
    /// Text on its left.
    pub name: String,
    /// The numbers by column; each must be above zero. A square without one is grey.
    pub cells: Vec<Option<f64>>,
}

/// Position of the squares, in pixels.
struct HeatFrame {
    left: f64,
    top: f64,
    wide: f64,
    tall: f64,
}

impl HeatMap {
    /// Returns the picture as the text of an SVG file, 800 pixels wide, with a white background.
    pub fn to_svg(&self) -> String {
        let head = if self.note.is_empty() { 32 } else { 48 };
        let tall = (self.place_squares(0).tall * self.rows.len() as f64).ceil() as i32;
        render_page(SIZE.0, MARGIN + head + NAMES + tall + SCALE + MARGIN, |page| self.draw(page))
    }

    fn place_squares(&self, top: i32) -> HeatFrame {
        let names = self.rows.iter().map(|row| text_width(&row.name, SMALL)).fold(0.0, f64::max).min(WIDEST);
        let left = f64::from(MARGIN) + names + 8.0;
        let room = f64::from(SIZE.0 - MARGIN) - left;
        let wide = (room / self.columns.len().max(1) as f64).min(SIDE);
        let tall = wide.max(ROW.min(ROWS / self.rows.len().max(1) as f64));
        HeatFrame { left, top: f64::from(top), wide, tall }
    }

    fn draw(&self, page: &PageArea) -> DrawResult {
        let top = draw_heading(page, SIZE.0, &self.title, &self.note)? + NAMES;
        let frame = self.place_squares(top);
        let ends = self.number_range();
        for (number, row) in self.rows.iter().enumerate() {
            for (column, cell) in row.cells.iter().take(self.columns.len()).enumerate() {
                frame.draw_square(page, [number, column], cell.filter(|value| is_positive_number(*value)), ends)?;
            }
        }
        self.draw_names(page, &frame)?;
        let bottom = frame.top + frame.tall * self.rows.len() as f64;
        match ends {
            Some(ends) => self.draw_scale(page, bottom.ceil() as i32, ends),
            None => {
                let middle = Pos::new(HPos::Center, VPos::Top);
                write_text(page, "no numbers to show", SMALL, PALE, middle, SIZE.0 / 2, bottom.ceil() as i32 + 16)
            }
        }
    }

    /// The smallest and the largest number.
    fn number_range(&self) -> Option<[f64; 2]> {
        let all =
            || self.rows.iter().flat_map(|row| &row.cells).flatten().copied().filter(|one| is_positive_number(*one));
        let (least, most) = (all().fold(f64::INFINITY, f64::min), all().fold(0.0, f64::max));
        (least <= most).then_some([least, most])
    }

    /// Writes the names of rows and columns, only some of them if there is too little room.
    fn draw_names(&self, page: &PageArea, frame: &HeatFrame) -> DrawResult {
        let widest = self.columns.iter().map(|name| text_width(name, SMALL)).fold(0.0, f64::max) + 4.0;
        let every = |room: f64, side: f64| (room / side).ceil().max(1.0) as usize;
        let above = Pos::new(HPos::Center, VPos::Bottom);
        for (number, name) in self.columns.iter().enumerate().step_by(every(widest, frame.wide)) {
            let (name, size) = fit_text(name, SMALL, f64::from(MARGIN) * 2.0 + frame.wide);
            let x = frame.left + frame.wide * (number as f64 + 0.5);
            write_text(page, &name, size, PALE, above, x as i32, frame.top as i32 - 4)?;
        }
        let before = Pos::new(HPos::Right, VPos::Center);
        for (number, row) in self.rows.iter().enumerate().step_by(every(SMALL, frame.tall)) {
            let (name, size) = fit_text(&row.name, SMALL, WIDEST);
            let y = frame.top + frame.tall * (number as f64 + 0.5);
            write_text(page, &name, size, PALE, before, frame.left as i32 - 5, y as i32)?;
        }
        Ok(())
    }

    /// Draws the scale of the colours.
    fn draw_scale(&self, page: &PageArea, bottom: i32, [least, most]: [f64; 2]) -> DrawResult {
        let (left, top) = ((SIZE.0 - LONG) / 2, bottom + 14);
        for step in 0..STEPS {
            // Each step extends to the end, so that there is no gap between steps.
            let from = to_units(left) + to_units(LONG) * step / STEPS;
            let corners = [(from, to_units(top)), (to_units(left + LONG), to_units(top + TALL))];
            let share = f64::from(step) / f64::from(STEPS - 1);
            page.draw(&Rectangle::new(corners, colour_of_share(share).filled()))?;
        }
        let room = f64::from(left - MARGIN - 8);
        for (text, anchor, x) in
            [(format_number(least), HPos::Right, left - 6), (format_number(most), HPos::Left, left + LONG + 6)]
        {
            let (text, size) = fit_text(&text, SMALL, room);
            write_text(page, &text, size, INK, Pos::new(anchor, VPos::Center), x, top + TALL / 2)?;
        }
        let (unit, size) = fit_text(&self.unit, SMALL, f64::from(SIZE.0 - 2 * MARGIN));
        write_text(page, &unit, size, INK, Pos::new(HPos::Center, VPos::Top), SIZE.0 / 2, top + TALL + 5)
    }
}

impl HeatFrame {
    fn draw_square(
        &self,
        page: &PageArea,
        [row, column]: [usize; 2],
        value: Option<f64>,
        ends: Option<[f64; 2]>,
    ) -> DrawResult {
        let tenths = |pixels: f64| (pixels * f64::from(to_units(1))).round() as i32;
        let at = |row: usize, column: usize| {
            (tenths(self.left + self.wide * column as f64), tenths(self.top + self.tall * row as f64))
        };
        let share = value.zip(ends).map(|(value, ends)| share_on_scale(value, ends));
        let fill = share.map_or(FINE_GRID, colour_of_share);
        page.draw(&Rectangle::new([at(row, column), at(row + 1, column + 1)], fill.filled()))?;
        let (Some(value), Some(share), true) = (value, share, self.wide >= WRITTEN) else { return Ok(()) };
        let (text, size) = fit_text(&format_number(value), SMALL, self.wide - 2.0);
        let ink = if share > DARK { WHITE } else { INK };
        let x = self.left + self.wide * (column as f64 + 0.5);
        let y = self.top + self.tall * (row as f64 + 0.5);
        write_text(page, &text, size, ink, Pos::new(HPos::Center, VPos::Center), x as i32, y as i32)
    }
}

fn is_positive_number(value: f64) -> bool {
    value > 0.0 && value.is_finite()
}

/// Position of a number on the scale, from 0 to 1. Equal ratios are equally far apart.
fn share_on_scale(value: f64, [least, most]: [f64; 2]) -> f64 {
    let whole = (most / least).ln();
    if whole > 0.0 && whole.is_finite() { ((value / least).ln() / whole).clamp(0.0, 1.0) } else { 0.0 }
}

fn colour_of_share(share: f64) -> RGBColor {
    let channel = |least: u8, most: u8| (f64::from(least) + share * (f64::from(most) - f64::from(least))).round() as u8;
    RGBColor(channel(LEAST.0, MOST.0), channel(LEAST.1, MOST.1), channel(LEAST.2, MOST.2))
}

fn format_number(value: f64) -> String {
    if value < 10.0 { format!("{value:.1}") } else { format!("{value:.0}") }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{covers, number, texts, value};
    use super::*;
    use proptest::prelude::*;
    use roxmltree::Document;

    fn heat(cells: &[&[Option<f64>]]) -> HeatMap {
        let names = |count: usize| (0..count).map(|one| format!("CPU {one}"));
        HeatMap {
            title: "From core to core".to_owned(),
            note: "a machine".to_owned(),
            unit: "nanoseconds".to_owned(),
            columns: names(cells.first().map_or(0, |row| row.len())).collect(),
            rows: names(cells.len()).zip(cells).map(|(name, cells)| HeatRow { name, cells: cells.to_vec() }).collect(),
        }
    }

    /// The colours of the squares, which precede those of the scale.
    fn squares(svg: &str) -> Vec<String> {
        let document = Document::parse(svg).unwrap();
        let drawn = document.descendants().filter(|node| node.has_tag_name("rect"));
        let all: Vec<String> = drawn.filter_map(|node| node.attribute("fill")).map(str::to_owned).skip(1).collect();
        all[..all.len() - STEPS as usize].to_vec()
    }

    #[test]
    fn larger_numbers_are_darker_and_missing_ones_are_grey() {
        let svg = heat(&[&[None, Some(40.0)], &[Some(120.0), Some(69.3)]]).to_svg();
        assert_eq!(squares(&svg), ["#F2F2F2", "#E8F1FA", "#08306B", "#7890B2"]);
        let found = texts(&svg);
        for text in ["From core to core", "a machine", "CPU 0", "CPU 1", "40", "69", "120", "nanoseconds"] {
            assert!(found.iter().any(|found| found == text), "{text} in {found:?}");
        }
    }

    #[test]
    fn small_squares_lack_numbers_and_some_names() {
        let row = vec![Some(40.0); 256];
        let svg = heat(&[&row, &row]).to_svg();
        assert_eq!(squares(&svg).len(), 512);
        let found = texts(&svg);
        assert!(found.iter().filter(|text| *text == "40").count() == 2, "those of the scale: {found:?}");
        assert!(found.len() < 60 && found.iter().any(|text| text == "CPU 0"), "{found:?}");
        assert!(texts(&heat(&[&[None]]).to_svg()).iter().any(|text| text == "no numbers to show"));
    }

    fn any_heat() -> impl Strategy<Value = HeatMap> {
        let cells = prop::collection::vec(prop::option::of(value()), 0..40);
        let row = (".{0,30}", cells).prop_map(|(name, cells)| HeatRow { name, cells });
        let names = prop::collection::vec(".{0,30}", 0..40);
        (".{0,120}", ".{0,120}", ".{0,120}", names, prop::collection::vec(row, 0..12))
            .prop_map(|(title, note, unit, columns, rows)| HeatMap { title, note, unit, columns, rows })
    }

    proptest! {
        #[test]
        fn any_heat_is_well_formed_and_stays_on_its_page(heat in any_heat()) {
            let svg = heat.to_svg();
            let document = Document::parse(&svg).unwrap();
            let (wide, tall) = (8000.0, 10.0 * number(document.root_element(), "height"));
            for node in document.descendants() {
                let on_page = |&(x, y): &(f64, f64)| (0.0..=wide).contains(&x) && (0.0..=tall).contains(&y);
                prop_assert!(covers(node).iter().all(on_page), "{:?}", node);
            }
            prop_assert!(!svg.contains("NaN"));
        }
    }
}

//! Boxes with a name and lines of text, in rows one below the other, with arrows from row to row.
//! The boxes of a row are equally wide. A wide box has its lines in several columns.

use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use super::draw::{
    DrawResult, FINE_GRID, INK, LABEL, MARGIN, PALE, PALETTE, PageArea, SIZE, SMALL, draw_heading, fit_text,
    render_page, text_width, to_units, write_text,
};

/// Pixels of a line of text, of a box's name, and of the space inside a box.
const ROW: i32 = 17;
const NAME: i32 = 24;
const INSIDE: i32 = 9;
/// Pixels between boxes of a row, and between rows, where arrows are.
const APART: i32 = 14;
const BELOW: i32 = 30;
/// Approximate least width of a column, in pixels.
const COLUMN: i32 = 330;
/// Length and half the width of an arrow's head, in pixels.
const HEAD: (i32, i32) = (8, 4);

/// A diagram of boxes.
#[derive(Clone, Debug, PartialEq)]
pub struct Diagram {
    /// Heading, in a few words.
    pub title: String,
    /// One line under the title. May be empty.
    pub note: String,
    /// The boxes of each row, from left to right; the rows from top to bottom.
    pub rows: Vec<Vec<DiagramBox>>,
    /// The arrows.
    pub arrows: Vec<Arrow>,
}

/// A box.
#[derive(Clone, Debug, PartialEq)]
pub struct DiagramBox {
    /// Heading of the box.
    pub name: String,
    /// Lines of text in the box.
    pub entries: Vec<BoxLine>,
}

/// A line in a box.
#[derive(Clone, Debug, PartialEq)]
pub struct BoxLine {
    /// Text on the left.
    pub name: String,
    /// Text on the right.
    pub figure: String,
    /// Whether it is grey.
    pub faint: bool,
}

/// An arrow from a box down to one of the next row. It is not drawn if one of the boxes is missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrow {
    /// Row of the box where it begins, and position of the box in the row, from 0.
    pub from: (usize, usize),
    /// Position in the next row of the box where it ends.
    pub to: usize,
}

/// Position of a box, in pixels.
#[derive(Clone, Copy, Debug)]
struct BoxFrame {
    left: i32,
    right: i32,
    top: i32,
    bottom: i32,
}

impl Diagram {
    /// Returns the picture as the text of an SVG file, 800 pixels wide, with a white background.
    pub fn to_svg(&self) -> String {
        let head = if self.note.is_empty() { 32 } else { 48 };
        let tall: i32 = self.rows.iter().map(|row| row_height(row) + BELOW).sum();
        render_page(SIZE.0, MARGIN + head + (tall - BELOW).max(0) + MARGIN, |page| self.draw(page))
    }

    fn draw(&self, page: &PageArea) -> DrawResult {
        let mut top = draw_heading(page, &self.title, &self.note)?;
        let mut frames: Vec<Vec<BoxFrame>> = Vec::new();
        for row in &self.rows {
            frames.push(frame_boxes(row, top));
            top += row_height(row) + BELOW;
        }
        for (row, frames) in self.rows.iter().zip(&frames) {
            row.iter().zip(frames).try_for_each(|(block, frame)| block.draw(page, frame))?;
        }
        let frame = |row: usize, place: usize| frames.get(row).and_then(|row| row.get(place));
        for Arrow { from, to } in &self.arrows {
            if let (Some(from), Some(to)) = (frame(from.0, from.1), frame(from.0.saturating_add(1), *to)) {
                draw_arrow(page, from, to)?;
            }
        }
        Ok(())
    }
}

/// Height of a row's boxes in pixels.
fn row_height(row: &[DiagramBox]) -> i32 {
    let wide = box_width(row.len());
    let lines = row.iter().map(|block| block.entries.len().div_ceil(box_columns(wide) as usize));
    NAME + ROW * lines.max().unwrap_or_default() as i32 + INSIDE
}

/// Width of a box in pixels, in a row with this number of boxes.
fn box_width(boxes: usize) -> i32 {
    let boxes = boxes.max(1) as i32;
    (SIZE.0 - 2 * MARGIN - (boxes - 1) * APART) / boxes
}

/// Number of columns in a box of this width.
fn box_columns(wide: i32) -> i32 {
    (wide / COLUMN).max(1)
}

fn frame_boxes(row: &[DiagramBox], top: i32) -> Vec<BoxFrame> {
    let (wide, bottom) = (box_width(row.len()), top + row_height(row));
    let left = |place: usize| MARGIN + place as i32 * (wide + APART);
    let frame = |place| BoxFrame { left: left(place), right: left(place) + wide, top, bottom };
    (0..row.len()).map(frame).collect()
}

impl DiagramBox {
    fn draw(&self, page: &PageArea, frame: &BoxFrame) -> DrawResult {
        let corners = [(to_units(frame.left), to_units(frame.top)), (to_units(frame.right), to_units(frame.bottom))];
        page.draw(&Rectangle::new(corners, FINE_GRID.filled()))?;
        let [(left, top), (right, bottom)] = corners;
        let edges = [(left, top), (right, top), (right, bottom), (left, bottom), (left, top)];
        page.draw(&PathElement::new(edges, PALE.stroke_width(to_units(1) as u32)))?;
        let wide = frame.right - frame.left;
        let (name, size) = fit_text(&self.name, LABEL, f64::from(wide - 2 * INSIDE));
        let middle = Pos::new(HPos::Center, VPos::Center);
        write_text(page, &name, size, PALETTE[0], middle, (frame.left + frame.right) / 2, frame.top + NAME / 2)?;
        let columns = box_columns(wide);
        let lines = self.entries.len().div_ceil(columns as usize).max(1);
        for (column, entries) in (0..columns).zip(self.entries.chunks(lines)) {
            let left = frame.left + column * wide / columns + INSIDE;
            let right = frame.left + (column + 1) * wide / columns - INSIDE;
            for (line, entry) in (0..).zip(entries) {
                entry.draw(page, (left, right), frame.top + NAME + ROW * line + ROW / 2)?;
            }
        }
        Ok(())
    }
}

impl BoxLine {
    /// Writes the line from `left` to `right`, centred at the height `y`. The figure gets the room
    /// that it needs, up to half.
    fn draw(&self, page: &PageArea, (left, right): (i32, i32), y: i32) -> DrawResult {
        let colour = if self.faint { PALE } else { INK };
        let room = f64::from(right - left);
        let figures = text_width(&self.figure, SMALL).min(room / 2.0);
        let (figure, size) = fit_text(&self.figure, SMALL, figures);
        write_text(page, &figure, size, colour, Pos::new(HPos::Right, VPos::Center), right, y)?;
        let (name, size) = fit_text(&self.name, SMALL, room - figures - 4.0);
        write_text(page, &name, size, colour, Pos::new(HPos::Left, VPos::Center), left, y)
    }
}

/// Draws an arrow from the lower edge of a box to the upper edge of another, in the middle of the
/// narrower one.
fn draw_arrow(page: &PageArea, from: &BoxFrame, to: &BoxFrame) -> DrawResult {
    let narrow = if from.right - from.left < to.right - to.left { from } else { to };
    let (x, (long, half)) = ((narrow.left + narrow.right) / 2, HEAD);
    let at = |x: i32, y: i32| (to_units(x), to_units(y));
    let line = [at(x, from.bottom), at(x, to.top - long)];
    page.draw(&PathElement::new(line, PALE.stroke_width((to_units(3) / 2) as u32)))?;
    let head = [at(x, to.top), at(x - half, to.top - long), at(x + half, to.top - long)];
    page.draw(&Polygon::new(head, PALE.filled()))
}

#[cfg(test)]
mod tests {
    use super::super::tests::{covers, number, texts};
    use super::*;
    use proptest::prelude::*;
    use roxmltree::Document;

    fn entry(name: &str, figure: &str, faint: bool) -> BoxLine {
        BoxLine { name: name.to_owned(), figure: figure.to_owned(), faint }
    }

    fn block(name: &str, entries: usize) -> DiagramBox {
        let entries = (0..entries).map(|line| entry(&format!("{name} {line}"), "512 entries", line % 2 == 1));
        DiagramBox { name: name.to_owned(), entries: entries.collect() }
    }

    fn diagram(rows: Vec<Vec<DiagramBox>>, arrows: Vec<Arrow>) -> Diagram {
        Diagram { title: "The core".to_owned(), note: "a machine".to_owned(), rows, arrows }
    }

    /// The boxes of a picture: left, right, top and bottom.
    fn boxes(svg: &str) -> Vec<[f64; 4]> {
        let document = Document::parse(svg).unwrap();
        let drawn = document.descendants().filter(|node| node.attribute("fill") == Some("#F2F2F2"));
        let side = |node| ["x", "width", "y", "height"].map(|name| number(node, name));
        drawn.map(side).map(|[x, wide, y, tall]| [x, x + wide, y, y + tall]).collect()
    }

    #[test]
    fn boxes_form_rows_from_top_to_bottom() {
        let svg = diagram(vec![vec![block("a", 4)], vec![block("b", 2), block("c", 5)]], Vec::new()).to_svg();
        let [a, b, c] = boxes(&svg)[..] else { panic!("{svg}") };
        assert!(a[3] < b[2] && (b[2], b[3]) == (c[2], c[3]) && b[1] < c[0], "{a:?} {b:?} {c:?}");
        assert!((a[0], a[1]) == (b[0], c[1]), "a row is as wide as the page: {a:?} {b:?} {c:?}");
        let found = texts(&svg);
        for text in ["The core", "a machine", "a", "b 1", "c 4", "512 entries"] {
            assert!(found.iter().any(|found| found == text), "{text} in {found:?}");
        }
    }

    #[test]
    fn an_arrow_goes_from_box_to_box() {
        let arrow = |place: usize| Arrow { from: (0, 0), to: place };
        let rows = vec![vec![block("a", 1)], vec![block("b", 1), block("c", 1)]];
        let svg = diagram(rows, vec![arrow(1), arrow(2)]).to_svg();
        let [a, _, c] = boxes(&svg)[..] else { panic!("{svg}") };
        let document = Document::parse(&svg).unwrap();
        let heads: Vec<_> = document.descendants().filter(|node| node.has_tag_name("polygon")).collect();
        let [head] = heads[..] else { panic!("an arrow to a missing box must not be drawn: {svg}") };
        let tip = head.attribute("points").unwrap().split_whitespace().next().unwrap();
        let (x, y) = tip.split_once(',').unwrap();
        let (x, y): (f64, f64) = (x.parse().unwrap(), y.parse().unwrap());
        assert!(y == c[2] && (x - (c[0] + c[1]) / 2.0).abs() <= 10.0 && x > a[0], "{tip} {c:?}");
    }

    #[test]
    fn faint_lines_are_grey() {
        let row =
            vec![DiagramBox { name: String::new(), entries: vec![entry("x", "none", true), entry("y", "7", false)] }];
        let svg = diagram(vec![row], Vec::new()).to_svg();
        let document = Document::parse(&svg).unwrap();
        let colour = |text: &str| {
            let node = document.descendants().find(|node| node.text().is_some_and(|found| found.trim() == text));
            node.and_then(|node| node.attribute("fill")).map(str::to_owned)
        };
        assert_eq!((colour("none"), colour("7")), (Some("#666666".to_owned()), Some("#222222".to_owned())));
    }

    fn any_diagram() -> impl Strategy<Value = Diagram> {
        let entry = (".{0,60}", ".{0,60}", any::<bool>());
        let entry = entry.prop_map(|(name, figure, faint)| BoxLine { name, figure, faint });
        let block = (".{0,60}", prop::collection::vec(entry, 0..12));
        let block = block.prop_map(|(name, entries)| DiagramBox { name, entries });
        let rows = prop::collection::vec(prop::collection::vec(block, 0..6), 0..5);
        let arrow = (0usize..6, 0usize..6, 0usize..6);
        let arrow = arrow.prop_map(|(row, place, to)| Arrow { from: (row, place), to });
        (".{0,120}", ".{0,120}", rows, prop::collection::vec(arrow, 0..6))
            .prop_map(|(title, note, rows, arrows)| Diagram { title, note, rows, arrows })
    }

    proptest! {
        #[test]
        fn any_diagram_is_well_formed_and_stays_on_its_page(diagram in any_diagram()) {
            let svg = diagram.to_svg();
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

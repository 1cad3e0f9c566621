//! Boxes with a name and lines of text at given places, with arrows between them. A box without
//! figures is dashed.

use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use super::draw::{
    DrawResult, FINE_GRID, INK, LABEL, PALE, PALETTE, PageArea, SMALL, draw_heading, fit_text, render_page, text_width,
    to_units, write_text,
};

/// Pixels of a line of text, of a box's name, and of the space inside a box.
const ROW: i32 = 20;
const NAME: i32 = 28;
const INSIDE: i32 = 10;
/// Length and half the width of an arrow's head, in pixels.
const HEAD: (i32, i32) = (9, 5);
/// Length of a dash, and of the space after it, in pixels.
const DASH: (i32, i32) = (7, 5);
/// Largest side of a picture in pixels.
const SIDE_MOST: i32 = 4000;

/// A diagram of boxes.
#[derive(Clone, Debug, PartialEq)]
pub struct Diagram {
    /// Heading, in a few words.
    pub title: String,
    /// One line under the title. May be empty.
    pub note: String,
    /// Width and height of the picture in pixels, at most 4 000 each. The heading takes the first 62.
    pub size: (i32, i32),
    /// The boxes.
    pub boxes: Vec<DiagramBox>,
    /// The arrows.
    pub arrows: Vec<Arrow>,
}

/// A box.
#[derive(Clone, Debug, PartialEq)]
pub struct DiagramBox {
    /// Heading of the box.
    pub name: String,
    /// Where it stands. What lies outside the picture is cut off.
    pub frame: BoxFrame,
    /// Lines of text in the box. Those without room are left out.
    pub entries: Vec<BoxLine>,
}

/// Place of a box, in pixels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BoxFrame {
    /// Distance from the left edge of the picture.
    pub left: i32,
    /// Distance from its upper edge.
    pub top: i32,
    /// Width.
    pub width: i32,
    /// Height.
    pub height: i32,
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

/// An arrow from edge to edge of two boxes: down or up if one lies above the other, else sideways.
/// It is not drawn if a box is missing, or if they do not face each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrow {
    /// Position in the list of the box where it begins, from 0.
    pub from: usize,
    /// Position of the box where it ends.
    pub to: usize,
}

impl Diagram {
    /// Returns the picture as the text of an SVG file with a white background.
    pub fn to_svg(&self) -> String {
        let (wide, tall) = self.page_size();
        render_page(wide, tall, |page| self.draw(page))
    }

    fn page_size(&self) -> (i32, i32) {
        (self.size.0.clamp(1, SIDE_MOST), self.size.1.clamp(1, SIDE_MOST))
    }

    fn draw(&self, page: &PageArea) -> DrawResult {
        let (wide, tall) = self.page_size();
        draw_heading(page, wide, &self.title, &self.note)?;
        let frames: Vec<BoxFrame> = self.boxes.iter().map(|block| block.frame.cut_to(wide, tall)).collect();
        for Arrow { from, to } in &self.arrows {
            if let Some([from, to]) = frames.get(*from).zip(frames.get(*to)).and_then(|(from, to)| arrow_ends(from, to))
            {
                draw_arrow(page, from, to)?;
            }
        }
        self.boxes.iter().zip(&frames).try_for_each(|(block, frame)| block.draw(page, frame))
    }
}

impl BoxFrame {
    fn right(&self) -> i32 {
        self.left + self.width
    }

    fn bottom(&self) -> i32 {
        self.top + self.height
    }

    /// The part of the frame inside a picture of this size.
    fn cut_to(&self, wide: i32, tall: i32) -> BoxFrame {
        let (left, top) = (self.left.clamp(0, wide), self.top.clamp(0, tall));
        let right = self.left.saturating_add(self.width).clamp(left, wide);
        let bottom = self.top.saturating_add(self.height).clamp(top, tall);
        BoxFrame { left, top, width: right - left, height: bottom - top }
    }
}

/// The ends of an arrow between two boxes, in pixels. `None` if they overlap or do not face each other.
fn arrow_ends(from: &BoxFrame, to: &BoxFrame) -> Option<[(i32, i32); 2]> {
    let middle = |low: i32, high: i32| (low < high).then_some((low + high) / 2);
    let across = middle(from.left.max(to.left), from.right().min(to.right()));
    let along = middle(from.top.max(to.top), from.bottom().min(to.bottom()));
    match (across, along) {
        (Some(x), None) if from.bottom() <= to.top => Some([(x, from.bottom()), (x, to.top)]),
        (Some(x), None) => Some([(x, from.top), (x, to.bottom())]),
        (None, Some(y)) if from.right() <= to.left => Some([(from.right(), y), (to.left, y)]),
        (None, Some(y)) => Some([(from.left, y), (to.right(), y)]),
        _ => None,
    }
}

impl DiagramBox {
    fn draw(&self, page: &PageArea, frame: &BoxFrame) -> DrawResult {
        let at = |x: i32, y: i32| (to_units(x), to_units(y));
        let (left, top, right, bottom) = (frame.left, frame.top, frame.right(), frame.bottom());
        page.draw(&Rectangle::new([at(left, top), at(right, bottom)], FINE_GRID.filled()))?;
        let edges = [at(left, top), at(right, top), at(right, bottom), at(left, bottom), at(left, top)];
        let style = PALE.stroke_width(to_units(1) as u32);
        if self.entries.iter().all(|entry| entry.faint) {
            let dashes = edges.windows(2).flat_map(|edge| split_into_dashes(edge[0], edge[1]));
            dashes.into_iter().try_for_each(|dash| page.draw(&PathElement::new(dash, style)))?;
        } else {
            page.draw(&PathElement::new(edges, style))?;
        }
        let (name, size) = fit_text(&self.name, LABEL, f64::from(frame.width - 2 * INSIDE));
        let middle = Pos::new(HPos::Center, VPos::Center);
        if frame.height >= NAME {
            write_text(page, &name, size, PALETTE[0], middle, (left + right) / 2, top + NAME / 2)?;
        }
        let room = ((frame.height - NAME) / ROW).max(0) as usize;
        for (line, entry) in (0..).zip(self.entries.iter().take(room)) {
            entry.draw(page, (left + INSIDE, right - INSIDE), top + NAME + ROW * line + ROW / 2)?;
        }
        Ok(())
    }
}

/// The dashes of a line along an axis, in drawing units.
fn split_into_dashes(from: (i32, i32), to: (i32, i32)) -> Vec<[(i32, i32); 2]> {
    let (dash, step) = (to_units(DASH.0), to_units(DASH.0 + DASH.1));
    let length = (to.0 - from.0).abs().max((to.1 - from.1).abs());
    let [dx, dy] = [(to.0 - from.0).signum(), (to.1 - from.1).signum()];
    let at = |way: i32| (from.0 + dx * way, from.1 + dy * way);
    (0..length).step_by(step as usize).map(|start| [at(start), at((start + dash).min(length))]).collect()
}

impl BoxLine {
    /// Writes the line from `left` to `right`, centred at the height `y`. The figure gets the room
    /// that it needs, up to two thirds.
    fn draw(&self, page: &PageArea, (left, right): (i32, i32), y: i32) -> DrawResult {
        let colour = if self.faint { PALE } else { INK };
        let room = f64::from((right - left).max(0));
        let figures = text_width(&self.figure, SMALL).min(room * 2.0 / 3.0);
        let (figure, size) = fit_text(&self.figure, SMALL, figures);
        write_text(page, &figure, size, colour, Pos::new(HPos::Right, VPos::Center), right, y)?;
        let (name, size) = fit_text(&self.name, SMALL, (room - figures - 4.0).max(0.0));
        write_text(page, &name, size, colour, Pos::new(HPos::Left, VPos::Center), left, y)
    }
}

/// Draws an arrow from one place to another, along an axis.
fn draw_arrow(page: &PageArea, from: (i32, i32), to: (i32, i32)) -> DrawResult {
    let at = |(x, y): (i32, i32)| (to_units(x), to_units(y));
    let (along, half) = HEAD;
    let [dx, dy] = [(to.0 - from.0).signum(), (to.1 - from.1).signum()];
    let neck = (to.0 - dx * along, to.1 - dy * along);
    page.draw(&PathElement::new([at(from), at(neck)], PALE.stroke_width((to_units(3) / 2) as u32)))?;
    let head = [to, (neck.0 - dy * half, neck.1 - dx * half), (neck.0 + dy * half, neck.1 + dx * half)];
    page.draw(&Polygon::new(head.map(at), PALE.filled()))
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

    fn frame(left: i32, top: i32, width: i32, height: i32) -> BoxFrame {
        BoxFrame { left, top, width, height }
    }

    fn block(name: &str, frame: BoxFrame, faint: bool) -> DiagramBox {
        let entries = (0..3).map(|line| entry(&format!("{name} {line}"), "512 entries", faint)).collect();
        DiagramBox { name: name.to_owned(), frame, entries }
    }

    fn diagram(boxes: Vec<DiagramBox>, arrows: Vec<Arrow>) -> Diagram {
        Diagram { title: "The core".to_owned(), note: "a machine".to_owned(), size: (800, 600), boxes, arrows }
    }

    /// The boxes of a picture: left, right, top and bottom.
    fn boxes(svg: &str) -> Vec<[f64; 4]> {
        let document = Document::parse(svg).unwrap();
        let drawn = document.descendants().filter(|node| node.attribute("fill") == Some("#F2F2F2"));
        let side = |node| ["x", "width", "y", "height"].map(|name| number(node, name));
        drawn.map(side).map(|[x, wide, y, tall]| [x, x + wide, y, y + tall]).collect()
    }

    #[test]
    fn boxes_stand_at_their_places_with_their_lines() {
        let svg = diagram(vec![block("a", frame(20, 80, 300, 100), false)], Vec::new()).to_svg();
        assert_eq!(boxes(&svg), [[200.0, 3200.0, 800.0, 1800.0]]);
        let found = texts(&svg);
        for text in ["The core", "a machine", "a", "a 2", "512 entries"] {
            assert!(found.iter().any(|found| found == text), "{text} in {found:?}");
        }
    }

    #[test]
    fn arrows_join_boxes_that_face_each_other() {
        let above = frame(0, 100, 100, 50);
        assert_eq!(arrow_ends(&above, &frame(50, 200, 100, 50)), Some([(75, 150), (75, 200)]));
        assert_eq!(arrow_ends(&frame(50, 200, 100, 50), &above), Some([(75, 200), (75, 150)]));
        assert_eq!(arrow_ends(&above, &frame(200, 120, 100, 50)), Some([(100, 135), (200, 135)]));
        assert_eq!(arrow_ends(&frame(200, 120, 100, 50), &above), Some([(200, 135), (100, 135)]));
        assert_eq!(arrow_ends(&above, &frame(200, 200, 100, 50)), None);
        assert_eq!(arrow_ends(&above, &frame(50, 120, 100, 50)), None);
        let rows = vec![block("a", above, false), block("b", frame(0, 300, 100, 50), false)];
        let svg = diagram(rows, vec![Arrow { from: 0, to: 1 }, Arrow { from: 0, to: 2 }]).to_svg();
        let document = Document::parse(&svg).unwrap();
        let heads: Vec<_> = document.descendants().filter(|node| node.has_tag_name("polygon")).collect();
        let [head] = heads[..] else { panic!("an arrow to a missing box must not be drawn: {svg}") };
        assert!(head.attribute("points").unwrap().starts_with("500,3000"), "{svg}");
    }

    #[test]
    fn a_box_without_figures_is_dashed_and_grey() {
        let drawn = |faint: bool| diagram(vec![block("a", frame(20, 80, 300, 100), faint)], Vec::new()).to_svg();
        let lines = |svg: &str| {
            Document::parse(svg).unwrap().descendants().filter(|node| node.has_tag_name("polyline")).count()
        };
        assert!(lines(&drawn(true)) > 10 && lines(&drawn(false)) == 1);
        let svg = drawn(true);
        let document = Document::parse(&svg).unwrap();
        let node = document.descendants().find(|node| node.text().is_some_and(|found| found.trim() == "a 1"));
        assert_eq!(node.and_then(|node| node.attribute("fill")), Some("#666666"));
    }

    fn any_diagram() -> impl Strategy<Value = Diagram> {
        let entry = (".{0,60}", ".{0,60}", any::<bool>());
        let entry = entry.prop_map(|(name, figure, faint)| BoxLine { name, figure, faint });
        let place = || prop_oneof![-100..1500i32, any::<i32>()];
        let frame = (place(), place(), 0..900i32, 0..900i32);
        let frame = frame.prop_map(|(left, top, width, height)| BoxFrame { left, top, width, height });
        let block = (".{0,60}", frame, prop::collection::vec(entry, 0..12));
        let block = block.prop_map(|(name, frame, entries)| DiagramBox { name, frame, entries });
        let arrow = (0usize..9, 0usize..9).prop_map(|(from, to)| Arrow { from, to });
        let size = (1..1500i32, 1..1500i32);
        (".{0,120}", ".{0,120}", size, prop::collection::vec(block, 0..8), prop::collection::vec(arrow, 0..6))
            .prop_map(|(title, note, size, boxes, arrows)| Diagram { title, note, size, boxes, arrows })
    }

    proptest! {
        #[test]
        fn any_diagram_is_well_formed(diagram in any_diagram()) {
            let svg = diagram.to_svg();
            let document = Document::parse(&svg).unwrap();
            for node in document.descendants() {
                prop_assert!(covers(node).iter().all(|(x, y)| x.is_finite() && y.is_finite()), "{:?}", node);
            }
            prop_assert!(!svg.contains("NaN"));
        }
    }
}

//! Boxes in two columns, and curves between those that have something in common.
//!
//! A curve leaves its boxes towards the space between the columns, so that it crosses no box. The more
//! boxes lie between two of one column, the further the curve bends.

use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use super::diagram::BoxFrame;
use super::draw::{
    DrawResult, FINE_GRID, INK, LABEL, MARGIN, PALE, PageArea, SMALL, draw_heading, fit_text, render_page, text_width,
    to_units, write_text,
};

/// Least size of a picture, and its largest height, in pixels.
const SIZE: (i32, i32) = (1200, 900);
const HEIGHT_MOST: i32 = 4000;
/// Width of a box, the largest height of one, and the least.
const WIDTH: i32 = 360;
const TALL_MOST: i32 = 44;
const TALL_LEAST: i32 = 40;
/// Largest distance from box to box.
const STEP_MOST: i32 = 120;
/// Space between boxes, at the least.
const SPACE: i32 = 8;
/// Space inside a box.
const INSIDE: i32 = 10;
/// Height of the key below the boxes.
const KEY: i32 = 28;
/// Straight pieces of a curve, an even number: every second one is left out of a dashed curve.
const PIECES: usize = 48;
/// The largest weight of a curve.
const WEIGHT_MOST: u32 = 5;

/// Colours of groups: each has a contrast of 4.5 and more with white and with a box, and the
/// colour-blind can distinguish neighbours.
const COLOURS: [RGBColor; 4] =
    [RGBColor(0x00, 0x66, 0xa3), RGBColor(0x9c, 0x3f, 0x00), RGBColor(0x00, 0x65, 0x47), RGBColor(0x7a, 0x34, 0x8a)];

/// A picture of boxes that have something in common.
#[derive(Clone, Debug, PartialEq)]
pub struct LinkedBoxes {
    /// Heading, in a few words.
    pub title: String,
    /// One line under the title. May be empty.
    pub note: String,
    /// What the curves mean, in one line at the bottom.
    pub key: String,
    /// The boxes, from top to bottom, first in the left column.
    pub boxes: Vec<LinkedBox>,
    /// The curves.
    pub links: Vec<BoxLink>,
}

/// A box.
#[derive(Clone, Debug, PartialEq)]
pub struct LinkedBox {
    /// Heading of the box.
    pub name: String,
    /// Text on the right of the heading.
    pub figure: String,
    /// A line below.
    pub text: String,
    /// Boxes of one group have the same colour.
    pub group: usize,
}

/// A curve between two boxes. It is not drawn if one is missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BoxLink {
    /// Position of a box in the list, from 0.
    pub from: usize,
    /// Position of the other box.
    pub to: usize,
    /// Thickness in steps of 1.5 pixels, 5 at most.
    pub weight: u32,
    /// Whether it is dashed.
    pub dashed: bool,
}

impl LinkedBoxes {
    /// Returns the picture as the text of an SVG file of 1200 by 900 pixels, or taller for more than 32
    /// boxes, with a white background.
    pub fn to_svg(&self) -> String {
        let tall = self.place_boxes().1;
        render_page(SIZE.0, tall, |page| self.draw(page))
    }

    /// The places of the boxes, and the height of the picture.
    fn place_boxes(&self) -> (Vec<BoxFrame>, i32) {
        const TOP: i32 = 68;
        let rows = (self.boxes.len().div_ceil(2).max(1)) as i32;
        let needed = TOP + rows * (TALL_LEAST + SPACE) + KEY + MARGIN;
        let tall = needed.clamp(SIZE.1, HEIGHT_MOST);
        let step = ((tall - TOP - KEY - MARGIN) / rows).min(STEP_MOST);
        let height = (step - SPACE).min(TALL_MOST);
        let place = |at: usize| {
            let (column, row) = (at as i32 / rows, at as i32 % rows);
            let left = if column == 0 { MARGIN } else { SIZE.0 - MARGIN - WIDTH };
            BoxFrame { left, top: TOP + row * step, width: WIDTH, height }
        };
        // Boxes below the largest picture are cut off.
        let frames = (0..self.boxes.len()).map(place).take_while(|frame| frame.top + height <= HEIGHT_MOST);
        (frames.collect(), tall)
    }

    fn draw(&self, page: &PageArea) -> DrawResult {
        let (frames, tall) = self.place_boxes();
        draw_heading(page, SIZE.0, &self.title, &self.note)?;
        for link in &self.links {
            let ends = frames.get(link.from).zip(frames.get(link.to)).filter(|_| link.from != link.to);
            let group = self.boxes.get(link.from).map_or(0, |own| own.group);
            if let Some((from, to)) = ends {
                link.draw(page, trace_curve(from, to), colour_of(group))?;
            }
        }
        self.boxes.iter().zip(&frames).try_for_each(|(own, frame)| own.draw(page, frame))?;
        let (key, size) = fit_text(&self.key, SMALL, f64::from(SIZE.0 - 2 * MARGIN));
        let bottom = Pos::new(HPos::Center, VPos::Bottom);
        write_text(page, &key, size, PALE, bottom, SIZE.0 / 2, tall - MARGIN)
    }
}

fn colour_of(group: usize) -> RGBColor {
    COLOURS[group % COLOURS.len()]
}

/// The points of a curve between two boxes, in drawing units.
fn trace_curve(from: &BoxFrame, to: &BoxFrame) -> Vec<(i32, i32)> {
    const NEAR: f64 = 46.0;
    const ROOM: f64 = (SIZE.0 - 2 * (MARGIN + WIDTH)) as f64;
    // The edge towards the middle, and the direction to it.
    let end = |frame: &BoxFrame| {
        let is_left = frame.left < SIZE.0 / 2;
        let x = if is_left { frame.left + frame.width } else { frame.left };
        (f64::from(x), f64::from(frame.top + frame.height / 2), if is_left { 1.0 } else { -1.0 })
    };
    let ((x0, y0, out0), (x3, y3, out3)) = (end(from), end(to));
    let reach = if out0 == out3 { (NEAR + 0.5 * (y3 - y0).abs()).min(1.1 * ROOM) } else { ROOM / 2.0 };
    let (x1, x2) = (x0 + out0 * reach, x3 + out3 * reach);
    let point = |piece: usize| {
        let t = piece as f64 / PIECES as f64;
        let weigh = |values: [f64; 4]| {
            let s = 1.0 - t;
            values[0] * s * s * s + 3.0 * values[1] * s * s * t + 3.0 * values[2] * s * t * t + values[3] * t * t * t
        };
        let units = |pixels: f64| (pixels * f64::from(to_units(1))).round() as i32;
        (units(weigh([x0, x1, x2, x3])), units(weigh([y0, y0, y3, y3])))
    };
    (0..=PIECES).map(point).collect()
}

impl BoxLink {
    fn draw(&self, page: &PageArea, curve: Vec<(i32, i32)>, colour: RGBColor) -> DrawResult {
        let style = colour.stroke_width(to_units(3) as u32 / 2 * self.weight.clamp(1, WEIGHT_MOST));
        match self.dashed {
            false => page.draw(&PathElement::new(curve, style)),
            true => curve.windows(2).step_by(2).try_for_each(|dash| page.draw(&PathElement::new(dash.to_vec(), style))),
        }
    }
}

impl LinkedBox {
    fn draw(&self, page: &PageArea, frame: &BoxFrame) -> DrawResult {
        let at = |x: i32, y: i32| (to_units(x), to_units(y));
        let (left, right) = (frame.left, frame.left + frame.width);
        let (top, bottom) = (frame.top, frame.top + frame.height);
        let colour = colour_of(self.group);
        page.draw(&Rectangle::new([at(left, top), at(right, bottom)], FINE_GRID.filled()))?;
        let edges = [at(left, top), at(right, top), at(right, bottom), at(left, bottom), at(left, top)];
        page.draw(&PathElement::new(edges, colour.stroke_width(to_units(1) as u32)))?;
        let room = f64::from(frame.width - 2 * INSIDE);
        let line = frame.height / 2 - 1;
        let (upper, lower) = (top + 2 + line / 2, bottom - 2 - line / 2);
        let figures = text_width(&self.figure, SMALL).min(room / 2.0);
        let (figure, size) = fit_text(&self.figure, SMALL, figures);
        write_text(page, &figure, size, PALE, Pos::new(HPos::Right, VPos::Center), right - INSIDE, upper)?;
        let (name, size) = fit_text(&self.name, LABEL, room - figures - 6.0);
        write_text(page, &name, size, colour, Pos::new(HPos::Left, VPos::Center), left + INSIDE, upper)?;
        let (text, size) = fit_text(&self.text, SMALL, room);
        write_text(page, &text, size, INK, Pos::new(HPos::Left, VPos::Center), left + INSIDE, lower)
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{covers, number, texts};
    use super::*;
    use proptest::prelude::*;
    use roxmltree::Document;

    fn picture(boxes: usize, links: Vec<BoxLink>) -> LinkedBoxes {
        let own = |at: usize| LinkedBox {
            name: format!("A{at} = p{at}"),
            figure: "2 ports, 12 forms".to_owned(),
            text: format!("imul{at} r64, r64"),
            group: at % 5,
        };
        let [title, note, key] = ["Ports", "a machine", "thick: many ports"].map(str::to_owned);
        LinkedBoxes { title, note, key, boxes: (0..boxes).map(own).collect(), links }
    }

    fn link(from: usize, to: usize) -> BoxLink {
        BoxLink { from, to, weight: 2, dashed: false }
    }

    /// Left, right, top and bottom of the boxes, in pixels.
    fn find_boxes(svg: &str) -> Vec<[f64; 4]> {
        let document = Document::parse(svg).unwrap();
        let drawn = document.descendants().filter(|node| node.attribute("fill") == Some("#F2F2F2"));
        let side = |node| ["x", "width", "y", "height"].map(|name| number(node, name) / 10.0);
        drawn.map(side).map(|[x, wide, y, tall]| [x, x + wide, y, y + tall]).collect()
    }

    fn find_curves(svg: &str) -> Vec<Vec<(f64, f64)>> {
        let document = Document::parse(svg).unwrap();
        let is_curve = |points: &str| points.split_whitespace().count() != 5;
        let lines = document.descendants().filter(|node| node.attribute("points").is_some_and(is_curve));
        lines.map(|line| covers(line).iter().map(|(x, y)| (x / 10.0, y / 10.0)).collect()).collect()
    }

    #[test]
    fn boxes_do_not_overlap_and_stay_on_the_page() {
        for count in [1, 2, 7, 32, 33, 64] {
            let svg = picture(count, Vec::new()).to_svg();
            let tall = number(Document::parse(&svg).unwrap().root_element(), "height");
            let boxes = find_boxes(&svg);
            assert_eq!((boxes.len(), tall == 900.0), (count, count <= 32), "{count}: {tall}");
            for (at, [left, right, top, bottom]) in boxes.iter().enumerate() {
                assert!(*left >= 0.0 && *right <= 1200.0 && *top >= 62.0 && *bottom <= tall - 28.0, "{count}: {at}");
                let apart =
                    |other: &[f64; 4]| other[1] < *left || other[0] > *right || other[3] < *top || other[2] > *bottom;
                assert!(boxes[..at].iter().all(apart), "{count}: {at}");
            }
            let found = texts(&svg);
            assert!(
                ["Ports", "a machine", "thick: many ports", "A0 = p0"]
                    .iter()
                    .all(|text| found.contains(&text.to_string()))
            );
        }
    }

    #[test]
    fn curves_join_boxes_and_cross_none() {
        let links = (0..20).flat_map(|to| (0..to).map(move |from| link(from, to))).chain([link(3, 99)]).collect();
        let svg = picture(20, links).to_svg();
        let (boxes, curves) = (find_boxes(&svg), find_curves(&svg));
        assert_eq!(curves.len(), 190, "a curve to a missing box is not drawn");
        for curve in curves {
            for (x, y) in curve {
                let inside = |[left, right, top, bottom]: &[f64; 4]| {
                    x > left + 0.1 && x < right - 0.1 && y > *top && y < *bottom
                };
                assert!(!boxes.iter().any(inside), "{x} {y}");
            }
        }
    }

    #[test]
    fn a_dashed_curve_has_gaps() {
        let svg = picture(2, vec![BoxLink { dashed: true, ..link(0, 1) }]).to_svg();
        assert_eq!(find_curves(&svg).len(), PIECES / 2);
    }

    #[test]
    fn colours_have_the_contrast_of_text() {
        let share = |level: u8| {
            let level = f64::from(level) / 255.0;
            if level <= 0.04045 { level / 12.92 } else { ((level + 0.055) / 1.055).powf(2.4) }
        };
        let light = |RGBColor(r, g, b): RGBColor| 0.2126 * share(r) + 0.7152 * share(g) + 0.0722 * share(b);
        let contrast = |one: RGBColor, other: RGBColor| {
            let [one, other] = [one, other].map(light);
            (one.max(other) + 0.05) / (one.min(other) + 0.05)
        };
        for colour in COLOURS.into_iter().chain([INK, PALE]) {
            let both = [contrast(colour, WHITE), contrast(colour, FINE_GRID)];
            assert!(both.iter().all(|contrast| *contrast >= 4.5), "{colour:?}: {both:?}");
        }
    }

    fn any_picture() -> impl Strategy<Value = LinkedBoxes> {
        let own = (".{0,60}", ".{0,60}", ".{0,90}", any::<usize>());
        let own = own.prop_map(|(name, figure, text, group)| LinkedBox { name, figure, text, group });
        let link = (0usize..200, 0usize..200, any::<u32>(), any::<bool>());
        let link = link.prop_map(|(from, to, weight, dashed)| BoxLink { from, to, weight: weight >> 2, dashed });
        (".{0,120}", ".{0,120}", prop::collection::vec(own, 0..180), prop::collection::vec(link, 0..20))
            .prop_map(|(title, note, boxes, links)| LinkedBoxes { key: note.clone(), title, note, boxes, links })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn any_picture_is_well_formed(picture in any_picture()) {
            let svg = picture.to_svg();
            let document = Document::parse(&svg).unwrap();
            for node in document.descendants() {
                prop_assert!(covers(node).iter().all(|(x, y)| x.is_finite() && y.is_finite()), "{:?}", node);
            }
        }
    }
}

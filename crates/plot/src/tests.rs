use proptest::prelude::*;
use roxmltree::{Document, Node};

use super::axis::AxisSpan;
use super::{Axis, AxisScale, Chart, ChartPoint, Series, SeriesStyle};

fn chart((x, y): (AxisScale, AxisScale), series: Vec<Series>) -> Chart {
    let axis = |label: &str, scale| Axis { label: label.to_owned(), scale };
    let (title, note) = ("Minimum per ensemble".to_owned(), "AMD EPYC 9R14 · rdtscp-lfence".to_owned());
    Chart { title, note, x: axis("ensemble", x), y: axis("minimum (ticks)", y), series }
}

fn series(style: SeriesStyle, points: impl IntoIterator<Item = (f64, f64)>) -> Series {
    let points = points.into_iter().map(|(x, y)| ChartPoint::new(x, y)).collect();
    Series { name: "user mode".to_owned(), style, points }
}

fn linear(style: SeriesStyle, points: impl IntoIterator<Item = (f64, f64)>) -> String {
    chart((AxisScale::Linear, AxisScale::Linear), vec![series(style, points)]).to_svg()
}

pub(super) fn texts(svg: &str) -> Vec<String> {
    let document = Document::parse(svg).unwrap();
    let texts = document.descendants().filter(|node| node.has_tag_name("text"));
    texts.map(|node| node.text().unwrap_or_default().trim().to_owned()).collect()
}

pub(super) fn number(node: Node, name: &str) -> f64 {
    node.attribute(name).unwrap_or_else(|| panic!("{name} in {node:?}")).parse().unwrap()
}

/// The corners of every line in the first colour.
fn lines(svg: &str) -> Vec<Vec<(f64, f64)>> {
    let document = Document::parse(svg).unwrap();
    let lines = document
        .descendants()
        .filter(|node| node.has_tag_name("polyline") && node.attribute("stroke") == Some("#0072B2"));
    lines.map(corners).collect()
}

fn corners(line: Node) -> Vec<(f64, f64)> {
    let pairs = line.attribute("points").unwrap().split_whitespace().map(|pair| pair.split_once(',').unwrap());
    pairs.map(|(x, y)| (x.parse().unwrap(), y.parse().unwrap())).collect()
}

fn dots(svg: &str) -> Vec<(f64, f64)> {
    let document = Document::parse(svg).unwrap();
    let circles = document.descendants().filter(|node| node.has_tag_name("circle"));
    circles.map(|node| (number(node, "cx"), number(node, "cy"))).collect()
}

/// The vertical position of a text.
pub(super) fn height_of(svg: &str, text: &str) -> f64 {
    let document = Document::parse(svg).unwrap();
    let node = document.descendants().find(|node| node.text().is_some_and(|found| found.trim() == text));
    number(node.unwrap_or_else(|| panic!("no {text}")), "y")
}

fn labels(scale: AxisScale, places: &[f64]) -> Vec<String> {
    let span = AxisSpan::from_places(scale, places.iter().copied(), 0.0, 7);
    span.ticks.into_iter().map(|tick| tick.label.replace('\u{2009}', " ")).collect()
}

#[test]
fn a_chart_is_one_standalone_file_of_its_size() {
    let svg = linear(SeriesStyle::Line, [(0.0, 1.0), (1.0, 2.0)]);
    let document = Document::parse(&svg).unwrap();
    let root = document.root_element();
    assert_eq!((root.attribute("width"), root.attribute("height")), (Some("800"), Some("480")));
    assert_eq!(root.attribute("viewBox"), Some("0 0 8000 4800"));
    assert!(!svg.contains("href") && !svg.contains("<script"));
    let found = texts(&svg);
    for text in ["Minimum per ensemble", "AMD EPYC 9R14 · rdtscp-lfence", "ensemble", "minimum (ticks)"] {
        assert!(found.iter().any(|found| found == text), "{text} in {found:?}");
    }
}

#[test]
fn texts_are_escaped() {
    let mut chart = chart((AxisScale::Linear, AxisScale::Linear), vec![series(SeriesStyle::Line, []); 2]);
    chart.title = "a < b && \"c\" > 'd'".to_owned();
    chart.x.label = "bell\u{7} and \u{ffff}\u{202e}\u{2066}".to_owned();
    chart.series[1].name = "</svg>".to_owned();
    let found = texts(&chart.to_svg());
    for text in ["a < b && \"c\" > 'd'", "bell  and", "</svg>"] {
        assert!(found.iter().any(|found| found == text), "{text} in {found:?}");
    }
    assert!(!chart.to_svg().contains(['\u{202e}', '\u{2066}']));
}

#[test]
fn a_legend_names_several_series_but_not_one() {
    let one = chart((AxisScale::Linear, AxisScale::Linear), vec![series(SeriesStyle::Line, [(0.0, 1.0), (1.0, 2.0)])]);
    assert!(!texts(&one.to_svg()).contains(&"user mode".to_owned()));
    let two = Chart { series: vec![one.series[0].clone(); 2], ..one };
    assert_eq!(texts(&two.to_svg()).iter().filter(|text| *text == "user mode").count(), 2);
}

#[test]
fn a_constant_lies_in_the_middle() {
    let svg = linear(SeriesStyle::Line, (0..1000).map(|i| (f64::from(i), 44.0)));
    let lines = lines(&svg);
    assert_eq!((lines.len(), lines[0].len()), (1, 1000));
    assert!(lines[0].iter().all(|&(_, y)| y == height_of(&svg, "44.0")));
    let middle = (height_of(&svg, "43.0") + height_of(&svg, "45.0")) / 2.0;
    assert!((lines[0][0].1 - middle).abs() <= 1.0);
    for (scale, value) in [(AxisScale::Linear, 0.0), (AxisScale::Linear, -3e-9), (AxisScale::Log, 44.0)] {
        let place = scale.to_place(value).unwrap();
        let span = AxisSpan::from_places(scale, [place].into_iter(), 0.0, 7);
        assert!(((span.low + span.high) / 2.0 - place).abs() <= 1e-9 * (span.high - span.low), "{value}");
        assert!(span.ticks.len() >= 3, "{value}");
    }
}

#[test]
fn linear_labels_have_enough_decimals_to_differ() {
    assert_eq!(labels(AxisScale::Linear, &[0.1, 0.5]), ["0.1", "0.2", "0.3", "0.4", "0.5"]);
    assert_eq!(labels(AxisScale::Linear, &[0.0, 999.0]), ["0", "200", "400", "600", "800"]);
    assert_eq!(labels(AxisScale::Linear, &[0.0, 250_000.0])[3..], ["150 000", "200 000", "250 000"]);
    assert_eq!(labels(AxisScale::Linear, &[-1234.5, -1233.5])[..2], ["−1 234.4", "−1 234.2"]);
    assert_eq!(labels(AxisScale::Linear, &[0.0, 1.2e10])[..2], ["0", "2×10⁹"]);
    assert_eq!(labels(AxisScale::Linear, &[-1e-5, 2e-5])[..4], ["−1.0×10⁻⁵", "−5×10⁻⁶", "0", "5×10⁻⁶"]);
}

#[test]
fn log_labels_fit_the_number_of_decades() {
    assert_eq!(labels(AxisScale::Log, &[0.0, 2.0]), ["1", "2", "5", "10", "20", "50", "100"]);
    assert_eq!(labels(AxisScale::Log, &[-4.0, 1.0]), ["10⁻⁴", "0.001", "0.01", "0.1", "1", "10"]);
    assert_eq!(labels(AxisScale::Log, &[5.0, 7.0])[..4], ["100 000", "200 000", "500 000", "10⁶"]);
    assert_eq!(labels(AxisScale::Log, &[0.0, 16.0]), ["1", "1 000", "10⁶", "10⁹", "10¹²", "10¹⁵"]);
    // From 1.2 to 1.9 there is no power of ten.
    assert_eq!(labels(AxisScale::Log, &[1.2f64.log10(), 1.9f64.log10()]), ["1.2", "1.4", "1.6", "1.8"]);
    let binary = |low: f64, high: f64| labels(AxisScale::Binary, &[low.log10(), high.log10()]);
    assert_eq!(binary(500.0, 5000.0), ["512", "1K", "2K", "4K"]);
    assert_eq!(binary(4096.0, 8.4e6), ["4K", "16K", "64K", "256K", "1M", "4M"]);
    assert_eq!(binary(1.2, 1.9), ["1.2", "1.4", "1.6", "1.8"]);
}

#[test]
fn a_signed_log_axis_has_zero_and_both_signs() {
    let labels = |values: [f64; 2]| {
        labels(AxisScale::SignedLog, &values.map(|value| AxisScale::SignedLog.to_place(value).unwrap()))
    };
    assert_eq!(labels([-0.2, 1000.0]), ["−0.1", "0", "0.1", "1", "10", "100", "1 000"]);
    assert_eq!(labels([-1.0, 2.0]), ["−1", "−0.3", "−0.1", "0", "0.1", "0.3", "1"]);
    assert_eq!(labels([-0.025, 0.065]), ["−0.02", "0.00", "0.02", "0.04", "0.06"]);
    let place = |value| AxisScale::SignedLog.to_place(value).unwrap();
    assert!((place(-40.0) + place(40.0)).abs() < 1e-12);
    assert!((place(1000.0) - place(100.0) - 1.0).abs() < 1e-3);
}

#[test]
fn equal_ratios_are_equally_far_apart_on_a_log_axis() {
    let points = [(1.0, 1000.0), (10.0, 100.0), (100.0, 10.0), (1000.0, 1.0)];
    let dots = dots(&chart((AxisScale::Log, AxisScale::Log), vec![series(SeriesStyle::Dots, points)]).to_svg());
    assert_eq!(dots.len(), 4);
    let steps: Vec<(f64, f64)> = dots.windows(2).map(|pair| (pair[1].0 - pair[0].0, pair[1].1 - pair[0].1)).collect();
    assert!(steps[0].0 > 1000.0 && steps[0].1 > 1000.0, "{steps:?}");
    assert!(steps.iter().all(|step| (step.0 - steps[0].0).abs() <= 1.0), "{steps:?}");
    assert!(steps.iter().all(|step| (step.1 - steps[0].1).abs() <= 1.0), "{steps:?}");
}

#[test]
fn points_without_a_place_are_left_out_and_counted() {
    let values = [1.0, 2.0, f64::NAN, 3.0, 4.0, f64::INFINITY, 5.0, 6.0, 0.0, -1.0, 7.0];
    let points = || values.iter().enumerate().map(|(i, &y)| (i as f64, y));
    let on_log = chart((AxisScale::Linear, AxisScale::Log), vec![series(SeriesStyle::Line, points())]).to_svg();
    assert_eq!(lines(&on_log).iter().map(Vec::len).collect::<Vec<_>>(), [2, 2, 2]);
    assert_eq!(dots(&on_log).len(), 1, "a point between two gaps is a dot");
    assert!(texts(&on_log).contains(&"4 points not shown".to_owned()));
    let on_linear = linear(SeriesStyle::Line, points());
    assert_eq!(lines(&on_linear).iter().map(Vec::len).collect::<Vec<_>>(), [2, 2, 5]);
    assert!(texts(&on_linear).contains(&"2 points not shown".to_owned()));
    assert!(!texts(&linear(SeriesStyle::Line, [(0.0, 1.0)])).iter().any(|text| text.contains("not shown")));
}

#[test]
fn a_chart_without_points_says_so() {
    for series in [vec![], vec![series(SeriesStyle::Line, [])], vec![series(SeriesStyle::Dots, [(f64::NAN, 1.0)])]] {
        let svg = chart((AxisScale::Log, AxisScale::Linear), series).to_svg();
        assert!(texts(&svg).contains(&"no points to show".to_owned()));
    }
    assert!(!texts(&linear(SeriesStyle::Dots, [(1.0, 1.0)])).contains(&"no points to show".to_owned()));
}

#[test]
fn steps_hold_a_value_until_the_next_point() {
    let svg = linear(SeriesStyle::Steps, [(0.0, 1.0), (1.0, 3.0), (2.0, 2.0)]);
    let (line, dots) = (&lines(&svg)[0], dots(&linear(SeriesStyle::Dots, [(0.0, 1.0), (1.0, 3.0), (2.0, 2.0)])));
    let [a, b, c] = dots[..] else { panic!("{dots:?}") };
    assert_eq!(line[..], [a, (b.0, a.1), b, (c.0, b.1), c]);
}

#[test]
fn steps_smaller_than_a_pixel_are_not_lost() {
    let svg = linear(SeriesStyle::Steps, (0..1000).map(|i| (f64::from(i), f64::from(i / 2))));
    let mut heights: Vec<i64> = lines(&svg)[0].iter().map(|&(_, y)| y as i64).collect();
    heights.dedup();
    assert_eq!(heights.len(), 500);
}

#[test]
fn error_bars_span_their_interval_and_reach_the_edge_without_an_end() {
    let mut all = series(SeriesStyle::Dots, [(1.0, 2.0), (1.0, 8.0)]);
    all.points.push(ChartPoint::new(1.0, 4.0).with_interval(2.0, 8.0));
    all.points.push(ChartPoint::new(2.0, 4.0).with_interval(0.0, f64::INFINITY));
    let svg = chart((AxisScale::Linear, AxisScale::Log), vec![all]).to_svg();
    let document = Document::parse(&svg).unwrap();
    let upright: Vec<(f64, f64)> = document
        .descendants()
        .filter(|node| node.attribute("stroke") == Some("#0072B2") && node.has_tag_name("line"))
        .filter(|node| node.attribute("x1") == node.attribute("x2"))
        .map(|node| (number(node, "y1"), number(node, "y2")))
        .collect();
    let dots = dots(&svg);
    let [bar, open] = upright[..] else { panic!("{upright:?}") };
    assert_eq!(bar, (dots[0].1, dots[1].1));
    let room = 0.06 * (bar.0 - bar.1);
    assert!((open.0 - (bar.0 + room)).abs() <= 2.0 && (open.1 - (bar.1 - room)).abs() <= 2.0, "{upright:?}");
}

#[test]
fn error_bars_of_several_series_do_not_cover_each_other() {
    let places = |barred: [bool; 2]| {
        let with_bar = barred.map(|barred| {
            let point = ChartPoint::new(1.0, 4.0);
            let point = if barred { point.with_interval(3.0, 5.0) } else { point };
            Series { points: vec![point], ..series(SeriesStyle::Dots, []) }
        });
        let svg = chart((AxisScale::Linear, AxisScale::Linear), with_bar.to_vec()).to_svg();
        // The first two dots are in the legend.
        dots(&svg)[2..].iter().map(|dot| dot.0).collect::<Vec<_>>()
    };
    let (both, one) = (places([true, true]), places([true, false]));
    assert!((both[1] - both[0] - 40.0).abs() <= 1.0, "{both:?}");
    assert!(((both[0] + both[1]) / 2.0 - one[0]).abs() <= 1.0, "{both:?} {one:?}");
    assert_eq!(one[0], one[1]);
}

/// Numbers of every kind: ordinary, huge, tiny, equal, and NaN.
pub(super) fn value() -> impl Strategy<Value = f64> {
    prop_oneof![4 => -1e4..1e4, 2 => 1e-3..1e6, 1 => Just(44.0), 1 => Just(0.0), 1 => prop::num::f64::ANY]
}

fn any_chart() -> impl Strategy<Value = Chart> {
    let scale = || prop_oneof![Just(AxisScale::Linear), Just(AxisScale::Log)];
    let style = prop_oneof![Just(SeriesStyle::Line), Just(SeriesStyle::Steps), Just(SeriesStyle::Dots)];
    let point = (value(), value(), prop::option::of((value(), value())));
    let points = prop::collection::vec(point.prop_map(|(x, y, interval)| ChartPoint { x, y, interval }), 0..6);
    let series = (".{0,40}", style, points).prop_map(|(name, style, points)| Series { name, style, points });
    let all = prop::collection::vec(series, 0..30);
    (".{0,120}", ".{0,120}", ".{0,80}", ".{0,80}", scale(), scale(), all).prop_map(
        |(title, note, x, y, across, along, series)| {
            let (x, y) = (Axis { label: x, scale: across }, Axis { label: y, scale: along });
            Chart { title, note, x, y, series }
        },
    )
}

/// Left and right, or top and bottom, of the area that an element covers. Text widths are those
/// that the crate estimates.
pub(super) fn covers(node: Node) -> Vec<(f64, f64)> {
    match node.tag_name().name() {
        "polyline" => corners(node),
        "line" => vec![(number(node, "x1"), number(node, "y1")), (number(node, "x2"), number(node, "y2"))],
        "circle" => vec![(number(node, "cx"), number(node, "cy"))],
        "text" => {
            let (x, y, size) = (number(node, "x"), number(node, "y"), number(node, "font-size"));
            let wide = node.text().unwrap_or_default().trim().chars().count() as f64 * size * 0.6;
            let (before, after) = match node.attribute("text-anchor") {
                Some("start") => (0.0, wide),
                Some("end") => (wide, 0.0),
                _ => (wide / 2.0, wide / 2.0),
            };
            match node.attribute("transform") {
                Some(_) => vec![(x, y - before), (x, y + after)],
                None => vec![(x - before, y), (x + after, y)],
            }
        }
        _ => Vec::new(),
    }
}

/// Elements outside the page.
fn off_page(svg: &str) -> Vec<String> {
    let on_page = |&(x, y): &(f64, f64)| (0.0..=8000.0).contains(&x) && (0.0..=4800.0).contains(&y);
    let document = Document::parse(svg).unwrap();
    let off = document.descendants().filter(|&node| !covers(node).iter().all(on_page));
    off.map(|node| format!("{node:?}")).collect()
}

#[test]
fn a_wide_label_at_the_end_is_not_cut() {
    let svg = linear(SeriesStyle::Line, [(0.0, 1.0), (1e6, 2.0)]);
    assert!(texts(&svg).contains(&"1\u{2009}000\u{2009}000".to_owned()));
    assert_eq!(off_page(&svg), Vec::<String>::new());
}

proptest! {
    #[test]
    fn any_chart_is_well_formed_and_stays_on_its_page(chart in any_chart()) {
        prop_assert_eq!(off_page(&chart.to_svg()), Vec::<String>::new());
    }

    #[test]
    fn any_span_contains_its_places_and_has_distinct_labels(
        places in prop::collection::vec(value(), 1..8),
        scale in prop_oneof![Just(AxisScale::Linear), Just(AxisScale::Log), Just(AxisScale::Binary), Just(AxisScale::SignedLog)],
    ) {
        let places: Vec<f64> = places.into_iter().filter_map(|value| scale.to_place(value)).collect();
        let span = AxisSpan::from_places(scale, places.iter().copied(), 0.05, 7);
        prop_assert!(places.iter().all(|place| (span.low..=span.high).contains(place)));
        prop_assert!((2..=12).contains(&span.ticks.len()), "{:?}", span);
        for pair in span.ticks.windows(2) {
            prop_assert!(pair[0].at < pair[1].at && pair[0].label != pair[1].label, "{:?}", span);
        }
    }
}

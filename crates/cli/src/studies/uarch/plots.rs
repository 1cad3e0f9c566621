//! Draws the core and each number's curves.
//!
//! A test's curves show overlap by number of instructions, cost per step by size, or bytes per
//! cycle by memory size. Numbers of CPU pairs become a heat map. The result is a line through the
//! plot: across the overlaps where the number ends them, or as a staircase over the costs. The
//! staircase runs along each level and rises between the sizes where one level ends and the next
//! begins.

use super::diagram::draw_core;
use super::figure::FigureText;
use super::pair_matrix::PairMatrix;
use super::record::{UARCH_KIND, UarchLine};
use crate::output::report::{Drawing, Picture};
use cyclescope::plot::{Axis, AxisScale, Chart, ChartPoint, Series, SeriesStyle};
use cyclescope::study::uarch::{FillerRecord, WalkRecord};
use cyclescope::unit::Unit;
use serde_json::Value;

/// Draws all pictures of a result's lines.
pub fn draw_pictures(lines: &[Value], machine: &str) -> Vec<Picture> {
    draw_core_pictures(&UarchLine::from_lines(lines), machine)
}

/// Draws all pictures of records.
pub fn draw_core_pictures(records: &[UarchLine], machine: &str) -> Vec<Picture> {
    let charts = records.iter().flat_map(|record| record_charts(record, machine));
    let mut all: Vec<Picture> = charts.map(|(name, chart)| Picture::new(name, Drawing::Chart(chart))).collect();
    for records in records.chunk_by(|one, other| one.test == other.test) {
        if let Some((name, chart)) = bandwidth_chart(records, machine) {
            all.push(Picture::new(name, Drawing::Chart(chart)));
        }
        if let (Some(matrix), [first, ..]) = (PairMatrix::from_records(records), records) {
            let heat = matrix.draw_heat(test_title(first), machine);
            all.push(Picture::new(format!("{UARCH_KIND}-{}", first.test), Drawing::Heat(heat)));
        }
    }
    all.push(Picture::new("core", Drawing::Diagram(draw_core(records, machine))));
    all
}

/// The pictures of a record with their names, one for each kind of curve in it.
fn record_charts(record: &UarchLine, machine: &str) -> Vec<(String, Chart)> {
    let name = format!("{}-{}", UARCH_KIND, record.what);
    let overlaps = || overlap_chart(record, machine);
    let costs = || cost_chart(record, machine);
    match (record.fillers.is_empty(), record.walks.is_empty()) {
        (true, true) if record.places.is_empty() => Vec::new(),
        (true, true) => vec![(name, place_chart(record, machine))],
        (false, true) => vec![(name, overlaps())],
        (true, false) => vec![(name, costs())],
        (false, false) => vec![(format!("{name}-steps"), costs()), (name, overlaps())],
    }
}

/// Plots the overlap of two chains against the number of instructions between them.
fn overlap_chart(record: &UarchLine, machine: &str) -> Chart {
    // The first series lies at the bottom, and curves fall at the number.
    let mut series = Vec::new();
    if let (true, Some(value)) = (record.is_found(), record.value.value) {
        let name = record.value.format_with_unit().unwrap_or_default();
        series.push(line_series(&name, [(value, 0.0), (value, 1.0)]));
    }
    series.extend(record.fillers.iter().map(overlap_series));
    let knees: Vec<ChartPoint> = record.fillers.iter().filter_map(knee_point).collect();
    if !knees.is_empty() {
        series.push(Series { name: "last overlap".to_string(), style: SeriesStyle::Dots, points: knees });
    }
    Chart {
        title: test_title(record),
        note: chart_note(record, machine),
        x: new_axis("instructions between the chains", AxisScale::Linear),
        y: new_axis("overlap: 1 at the same time, 0 in sequence", AxisScale::Linear),
        series,
    }
}

/// Plots bytes per cycle against memory size, from the records of a bandwidth test.
fn bandwidth_chart(records: &[UarchLine], machine: &str) -> Option<(String, Chart)> {
    let first = records.first().filter(|record| record.value.unit == Unit::BytesPerCycle)?;
    let rates = || records.iter().flat_map(|record| &record.rates);
    let mut series: Vec<Series> = Vec::new();
    for rate in rates() {
        if series.iter().all(|known| known.name != rate.name) {
            let of_one = rates().filter(|other| other.name == rate.name);
            series.push(line_series(&rate.name, of_one.map(|one| (one.n as f64, one.rate.value.unwrap_or(f64::NAN)))));
        }
    }
    let chart = Chart {
        title: test_title(first),
        note: machine.to_string(),
        x: new_axis("bytes of memory", AxisScale::Binary),
        y: new_axis("bytes per core cycle", AxisScale::Log),
        series,
    };
    // Draw only programs with one rate per size.
    let once = |series: &Series| series.points.windows(2).all(|pair| pair[0].x < pair[1].x);
    let drawn = !chart.series.is_empty() && chart.series.iter().all(once);
    Some((format!("{UARCH_KIND}-{}", first.test), chart)).filter(|_| drawn)
}

/// Plots costs by place.
fn place_chart(record: &UarchLine, machine: &str) -> Chart {
    let points = record.places.iter().map(|place| ChartPoint::new(place.place as f64, place.cost.unwrap_or(f64::NAN)));
    let points = points.collect();
    Chart {
        title: record.describe_name(),
        note: chart_note(record, machine),
        x: new_axis("bytes", AxisScale::Linear),
        y: new_axis("core cycles", AxisScale::Linear),
        series: vec![Series { name: "two programs agree".to_string(), style: SeriesStyle::Dots, points }],
    }
}

fn overlap_series(filler: &FillerRecord) -> Series {
    let mut curve = filler.curve.clone();
    curve.sort_by_key(|point| point.n);
    let points = curve.iter().map(|point| ChartPoint::new(point.n as f64, point.overlap));
    Series { name: filler.name.to_string(), style: SeriesStyle::Line, points: points.collect() }
}

/// The last number of instructions with an overlap, as a point on the curve.
fn knee_point(filler: &FillerRecord) -> Option<ChartPoint> {
    let end = filler.knee?.high;
    let point = filler.curve.iter().find(|point| point.n == end)?;
    point.overlap.is_finite().then(|| ChartPoint::new(end as f64, point.overlap))
}

/// Plots the cost of a step against the size of the structure walked through.
fn cost_chart(record: &UarchLine, machine: &str) -> Chart {
    let several = record.walks.len() > 1;
    let mut series = Vec::new();
    for walk in record.walks.iter().filter(|walk| !walk.levels.is_empty()) {
        let name = if several { format!("levels of {}", walk.name) } else { "levels".to_string() };
        series.push(line_series(&name, level_corners(walk)));
    }
    series.extend(record.walks.iter().map(|walk| cost_series(walk, !several)));
    let (label, scale) = match record.value.unit {
        Unit::Bytes => ("bytes walked through", AxisScale::Binary),
        _ => ("entries walked through", AxisScale::Log),
    };
    Chart {
        title: test_title(record),
        note: chart_note(record, machine),
        x: new_axis(label, scale),
        y: new_axis("core cycles per step", cost_scale(record)),
        series,
    }
}

/// A logarithmic scale, with room for zero if costs can be zero, such as hits relative to a
/// reference.
fn cost_scale(record: &UarchLine) -> AxisScale {
    let mut costs =
        record.walks.iter().flat_map(|walk| &walk.curve).map(|step| step.cost).filter(|cost| !cost.is_nan());
    if costs.all(|cost| cost > 0.0) { AxisScale::Log } else { AxisScale::SignedLog }
}

/// The costs of a walk. The only walk has intervals; of several walks, the costs are drawn at their
/// sizes, because levels wouldn't lie on the curves.
fn cost_series(walk: &WalkRecord, alone: bool) -> Series {
    let mut curve = walk.curve.clone();
    curve.sort_by_key(|point| point.n);
    let points = curve.iter().map(|step| {
        let point = ChartPoint::new(step.n as f64, step.cost);
        match alone && step.low.is_finite() && step.high.is_finite() {
            true => point.with_interval(step.low, step.high),
            false => point,
        }
    });
    Series { name: walk.name.to_string(), style: SeriesStyle::Line, points: points.collect() }
}

/// The corners of the staircase: along each level to its last size, then to the next level at the
/// first size beyond.
fn level_corners(walk: &WalkRecord) -> Vec<(f64, f64)> {
    let sizes = || walk.curve.iter().map(|step| step.n as f64);
    let (mut from, last) = (sizes().fold(f64::INFINITY, f64::min), sizes().fold(0.0, f64::max));
    let mut corners = Vec::new();
    for level in &walk.levels {
        let (to, next) = level.upto.map_or((last, last), |edge| (edge.low as f64, edge.high as f64));
        let cost = level.cost;
        corners.extend([(from, cost), (to, cost)]);
        from = next;
    }
    corners
}

fn line_series(name: &str, points: impl IntoIterator<Item = (f64, f64)>) -> Series {
    let points = points.into_iter().map(|(x, y)| ChartPoint::new(x, y)).collect();
    Series { name: name.to_string(), style: SeriesStyle::Line, points }
}

fn new_axis(label: &str, scale: AxisScale) -> Axis {
    Axis { label: label.to_string(), scale }
}

/// The test's question, from the list of tests.
fn test_title(record: &UarchLine) -> String {
    let plain = cyclescope::study::find_study(UARCH_KIND).and_then(|study| study.generic);
    let tests = plain.map_or(&[][..], |plain| plain.subjects);
    let Some((_, asked)) = tests.iter().find(|(name, _)| *name == record.test) else {
        return record.describe_name();
    };
    let mut letters = asked.chars();
    letters.next().map_or(String::new(), |first| first.to_uppercase().chain(letters).collect())
}

/// The machine and the result.
fn chart_note(record: &UarchLine, machine: &str) -> String {
    let interval = record.value.format_interval(&record.value.best_scale());
    let found = match (record.value.format_with_unit().filter(|_| record.is_found()), interval) {
        (Some(number), Some(interval)) => format!("{number}, {interval}"),
        (Some(number), None) => number,
        (None, _) => record.describe_verdict(),
    };
    match test_title(record) == record.describe_name() {
        true => format!("{machine}: {found}"),
        false => format!("{machine}: {}: {found}", record.describe_name()),
    }
}

#[cfg(test)]
mod tests {
    use super::super::simulated_lines;
    use super::*;
    use cyclescope::study::uarch::VerdictKind;
    use serde_json::json;

    fn drawn() -> Vec<(String, Chart)> {
        let records = UarchLine::from_lines(&simulated_lines::simulated_lines());
        records.iter().flat_map(|record| record_charts(record, "a machine")).collect()
    }

    #[test]
    fn every_record_with_curves_has_a_picture() {
        let names: Vec<String> = drawn().into_iter().map(|(name, _)| name).collect();
        assert_eq!(names, ["uarch-rob", "uarch-data_caches.1.size", "uarch-data_caches.1.cost"]);
    }

    #[test]
    fn overlap_chart_marks_the_ends_and_the_number() {
        let (_, chart) = &drawn()[0];
        let names: Vec<&str> = chart.series.iter().map(|series| series.name.as_str()).collect();
        assert_eq!(names, ["394 entries", "nop", "long nop", "last overlap"]);
        assert_eq!(chart.title, "How many instructions the core holds until they retire");
        assert_eq!(chart.note, "a machine: reorder buffer: 394 entries, 394 to 396");
        assert_eq!(chart.series[0].points, [ChartPoint::new(394.0, 0.0), ChartPoint::new(394.0, 1.0)]);
        assert_eq!(chart.series[3].points, [ChartPoint::new(392.0, 0.97), ChartPoint::new(391.0, 0.97)]);
        assert!(chart.series[1].points.is_sorted_by(|one, other| one.x <= other.x));
    }

    #[test]
    fn cost_chart_shows_levels_as_a_staircase() {
        let (_, chart) = &drawn()[1];
        assert_eq!(chart.note, "a machine: data caches, level 1: size: 48 KiB, 47.5 to 48.5");
        assert_eq!((chart.x.scale, chart.y.scale), (AxisScale::Binary, AxisScale::Log));
        let names: Vec<&str> = chart.series.iter().map(|series| series.name.as_str()).collect();
        assert_eq!(names, ["levels", "loads that wait for each other"]);
        assert_eq!(chart.series[1].points[0].interval, Some((0.99 * 5.0, 1.01 * 5.0)));
        let corners: Vec<(f64, f64)> = chart.series[0].points.iter().map(|point| (point.x, point.y)).collect();
        let (l1, l2, end) = (49152.0, 1_310_720.0, 268_435_456.0);
        let expected = [(4096.0, 5.0), (l1, 5.0), (2.0 * l1, 14.0), (l2, 14.0), (2.0 * l2, 200.0), (end, 200.0)];
        assert_eq!(corners, expected);
    }

    #[test]
    fn costs_of_several_walks_are_drawn_at_their_sizes() {
        let mut records = UarchLine::from_lines(&simulated_lines::simulated_lines());
        let walk = records[3].walks[0].clone();
        records[3].walks.push(walk);
        let chart = &record_charts(&records[3], "a machine")[0].1;
        let mut points = chart.series.iter().flat_map(|series| &series.points);
        assert!(chart.series.len() == 4 && points.all(|point| point.interval.is_none()), "{chart:?}");
    }

    #[test]
    fn cost_chart_accepts_a_zero_cost() {
        let mut records = UarchLine::from_lines(&simulated_lines::simulated_lines());
        records[3].walks[0].curve[0].cost = -0.001;
        assert_eq!(record_charts(&records[3], "a machine")[0].1.y.scale, AxisScale::SignedLog);
    }

    #[test]
    fn number_of_an_unlisted_test_is_drawn() {
        let mut records = UarchLine::from_lines(&simulated_lines::simulated_lines());
        records[3].test = "another".into();
        let chart = &record_charts(&records[3], "a machine")[0].1;
        let expected = ("data caches, level 1: size", "a machine: 48 KiB, 47.5 to 48.5");
        assert_eq!((chart.title.as_str(), chart.note.as_str()), expected);
    }

    #[test]
    fn bandwidth_is_drawn_by_memory_size() {
        let rate = |name: &str, n: u64, value: f64| {
            let rate = json!({ "value": value, "low": value, "high": value, "unit": "bytes_per_cycle" });
            json!({ "name": name, "n": n, "rate": rate })
        };
        let row = |what: &str, n: u64, rates: [f64; 2]| {
            let mut line = simulated_lines::simulated_line("read_bandwidth", what, "unclear", None, "bytes_per_cycle");
            line["rates"] = json!([rate("downwards", n, rates[0]), rate("upwards", n, rates[1])]);
            line
        };
        let lines =
            [row("read_bandwidth.16_KiB", 16384, [64.0, 60.0]), row("read_bandwidth.1_MiB", 1 << 20, [32.0, 30.0])];
        let (name, chart) = bandwidth_chart(&UarchLine::from_lines(&lines), "a machine").expect("a picture");
        assert_eq!(name, "uarch-read_bandwidth");
        let drawn: Vec<(&str, Vec<ChartPoint>)> =
            chart.series.iter().map(|series| (series.name.as_str(), series.points.clone())).collect();
        let points = |one: f64, other: f64| vec![ChartPoint::new(16384.0, one), ChartPoint::new(1_048_576.0, other)];
        assert_eq!(drawn, [("downwards", points(64.0, 32.0)), ("upwards", points(60.0, 30.0))]);
        assert!(bandwidth_chart(&UarchLine::from_lines(&simulated_lines::simulated_lines()), "a machine").is_none());
    }

    #[test]
    fn missing_number_draws_no_line() {
        let mut records = UarchLine::from_lines(&simulated_lines::simulated_lines());
        records[0].verdict = VerdictKind::Unclear;
        let chart = &record_charts(&records[0], "a machine")[0].1;
        assert!(chart.series.iter().all(|series| !series.name.ends_with("entries")), "{chart:?}");
        assert!(chart.note.ends_with("reorder buffer: unclear"), "{}", chart.note);
    }
}

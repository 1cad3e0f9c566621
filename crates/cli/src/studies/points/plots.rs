//! Plots of a sweep: the cost by value, and the cost divided by the value; of words, bars.

use super::tables::common_subject;
use crate::output::report::{Drawing, Picture};
use crate::output::report_words::format_quantity;
use cyclescope::plot::{Axis, AxisScale, Bar, BarChart, BarGroup, Chart, ChartPoint, Series, SeriesStyle};
use cyclescope::record::Quantity;
use cyclescope::study::points::{PointLabel, PointRow, PointVariant, PointsStudy};

/// Costs that differ by more than this factor get a logarithmic axis if the values have one.
const LINEAR_COST_RATIO: f64 = 10.0;

/// Draws both plots.
pub fn draw_sweep(study: &PointsStudy, machine: &str, geometric: bool) -> Vec<Picture> {
    let rows: Vec<&PointRow> = study.rows().collect();
    let rows = rows.as_slice();
    let confidence = study.runs().next().map_or(0.95, |run| run.measurement_plan().confidence);
    let note = format!("{machine}: {} % intervals", (1e6 * confidence).round() / 1e4);
    let variable = match rows.first().map(|row| &row.point.label) {
        Some(PointLabel::Value { variable, .. }) => variable,
        Some(PointLabel::Word { variable, .. }) => {
            let bars = cost_bars(rows, variable, &note);
            return vec![Picture::new(format!("sweep-{variable}"), Drawing::Bars(bars))];
        }
        Some(PointLabel::Name { .. }) | None => return Vec::new(),
    };
    let each = format!("core cycles / {variable}");
    let whole = cost_chart(rows, (variable, "core cycles"), &note, geometric, |_| 1.0);
    let shares = cost_chart(rows, (variable, &each), &note, geometric, |value| value);
    vec![
        Picture::new(format!("sweep-{variable}"), Drawing::Chart(whole)),
        Picture::new(format!("sweep-{variable}-each"), Drawing::Chart(shares)),
    ]
}

/// Draws a bar for each word of a variable, or for each of its variants.
fn cost_bars(rows: &[&PointRow], variable: &str, note: &str) -> BarChart {
    let bar = |name: &str, cost: Option<&Quantity>| Bar {
        name: name.to_string(),
        value: cost.and_then(|cost| cost.value).unwrap_or(f64::NAN),
        interval: cost.and_then(|cost| cost.low.zip(cost.high)),
        figure: cost.map_or("no number".to_string(), format_quantity),
    };
    let point_bars = |row: &&PointRow| match (&row.versus, row.variants.is_empty()) {
        (_, false) => row.variants.iter().map(|variant| bar(variant.label(), Some(&variant.cost))).collect(),
        (Some(versus), true) => vec![bar("first", row.measured_cost()), bar("other", Some(&versus.cost))],
        (None, true) => vec![bar("cost", row.measured_cost())],
    };
    let group = |row: &&PointRow| BarGroup { name: row.point.label.to_text(), bars: point_bars(row) };
    BarChart {
        title: title_chart(rows, variable),
        note: note.to_string(),
        axis: Axis { label: "core cycles".to_string(), scale: AxisScale::Linear },
        groups: rows.iter().map(group).collect(),
    }
}

fn title_chart(rows: &[&PointRow], variable: &str) -> String {
    common_subject(rows).map_or(format!("Cost by {variable}"), |subject| format!("{subject} by {variable}"))
}

/// Plots the cost divided by `share` of the value.
fn cost_chart(
    rows: &[&PointRow],
    (variable, label): (&str, &str),
    note: &str,
    geometric: bool,
    share: impl Fn(f64) -> f64,
) -> Chart {
    let points = |cost: &dyn Fn(&PointRow) -> Option<Quantity>| {
        let point = |row: &&PointRow| {
            let PointLabel::Value { value, .. } = row.point.label else { return None };
            let (value, cost) = (value as f64, cost(row));
            let by = share(value);
            let number = cost.and_then(|cost| cost.value).map_or(f64::NAN, |cost| cost / by);
            let point = ChartPoint::new(value, number);
            Some(match cost.and_then(|cost| cost.low.zip(cost.high)) {
                Some((low, high)) => point.with_interval(low / by, high / by),
                None => point,
            })
        };
        rows.iter().filter_map(point).collect::<Vec<ChartPoint>>()
    };
    let most = rows.iter().map(|row| row.variants.len()).max().unwrap_or(0);
    let curves: Vec<(String, Vec<ChartPoint>)> = if most > 0 {
        let name = |index: usize| rows.iter().find_map(|row| row.variants.get(index)).map_or("", PointVariant::label);
        let curve = |index: usize| points(&|row| row.variants.get(index).map(|variant| variant.cost));
        (0..most).map(|index| (name(index).to_string(), curve(index))).collect()
    } else {
        let compared = rows.iter().any(|row| row.versus.is_some());
        let one = points(&|row| row.measured_cost().copied());
        let other = || points(&|row| row.versus.as_ref().map(|versus| versus.cost));
        let first = (if compared { "first" } else { "cost" }.to_string(), one);
        [Some(first), compared.then(|| ("other".to_string(), other()))].into_iter().flatten().collect()
    };
    let costs = curves.iter().flat_map(|(_, points)| points).map(|point| point.y).filter(|cost| !cost.is_nan());
    let (least, most) = costs.fold((f64::INFINITY, 0f64), |(least, most), cost| (least.min(cost), most.max(cost)));
    let scale = |logarithmic| if logarithmic { AxisScale::Log } else { AxisScale::Linear };
    let is_size = |row: &&PointRow| match row.point.label {
        PointLabel::Value { value, .. } => value.is_power_of_two() || value.is_multiple_of(1 << 10),
        PointLabel::Word { .. } | PointLabel::Name { .. } => false,
    };
    let sizes = geometric && rows.iter().all(is_size);
    let series = |(name, points)| Series { name, style: SeriesStyle::Line, points };
    Chart {
        title: title_chart(rows, variable),
        note: note.to_string(),
        x: Axis { label: variable.to_string(), scale: if sizes { AxisScale::Binary } else { scale(geometric) } },
        y: Axis {
            label: label.to_string(),
            scale: scale(geometric && least > 0.0 && most > LINEAR_COST_RATIO * least),
        },
        series: curves.into_iter().map(series).collect(),
    }
}

//! Plots of a sweep: the cost by value, and the cost divided by the value.

use super::tables::common_subject;
use crate::output::report::{Drawing, Picture};
use cyclescope::plot::{Axis, AxisScale, Chart, ChartPoint, Series, SeriesStyle};
use cyclescope::record::Quantity;
use cyclescope::study::points::{PointLabel, PointRow, PointsStudy};

/// Costs that differ by more than this factor get a logarithmic axis if the values have one.
const LINEAR_COST_RATIO: f64 = 10.0;

/// Draws both plots.
pub fn draw_sweep(study: &PointsStudy, machine: &str, geometric: bool) -> Vec<Picture> {
    let rows: Vec<&PointRow> = study.rows().collect();
    let rows = rows.as_slice();
    let Some(PointLabel::Value { variable, .. }) = rows.first().map(|row| &row.point.label) else {
        return Vec::new();
    };
    let confidence = study.runs().next().map_or(0.95, |run| run.measurement_plan().confidence);
    let note = format!("{machine}: {} % intervals", (1e6 * confidence).round() / 1e4);
    let each = format!("core cycles / {variable}");
    let whole = cost_chart(rows, (variable, "core cycles"), &note, geometric, |_| 1.0);
    let shares = cost_chart(rows, (variable, &each), &note, geometric, |value| value);
    vec![
        Picture::new(format!("sweep-{variable}"), Drawing::Chart(whole)),
        Picture::new(format!("sweep-{variable}-each"), Drawing::Chart(shares)),
    ]
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
    let one = points(&|row| row.measured_cost().copied());
    let other = points(&|row| row.versus.as_ref().map(|versus| versus.cost));
    let costs = one.iter().chain(&other).map(|point| point.y).filter(|cost| !cost.is_nan());
    let (least, most) = costs.fold((f64::INFINITY, 0f64), |(least, most), cost| (least.min(cost), most.max(cost)));
    let scale = |logarithmic| if logarithmic { AxisScale::Log } else { AxisScale::Linear };
    let is_size = |row: &&PointRow| match row.point.label {
        PointLabel::Value { value, .. } => value.is_power_of_two() || value.is_multiple_of(1 << 10),
        PointLabel::Name { .. } => false,
    };
    let sizes = geometric && rows.iter().all(is_size);
    let series = |name: &str, points| Series { name: name.to_string(), style: SeriesStyle::Line, points };
    let compared = rows.iter().any(|row| row.versus.is_some());
    let mut all = vec![series(if compared { "first" } else { "cost" }, one)];
    all.extend(compared.then(|| series("other", other)));
    Chart {
        title: common_subject(rows).map_or(format!("Cost by {variable}"), |subject| format!("{subject} by {variable}")),
        note: note.to_string(),
        x: Axis { label: variable.to_string(), scale: if sizes { AxisScale::Binary } else { scale(geometric) } },
        y: Axis {
            label: label.to_string(),
            scale: scale(geometric && least > 0.0 && most > LINEAR_COST_RATIO * least),
        },
        series: all,
    }
}

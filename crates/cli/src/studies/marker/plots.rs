//! Plots the cost of each marker in each state, one plot per context.

use super::tables::context_names;
use crate::output::report::{Drawing, Picture};
use crate::output::report_words::format_quantity;
use cyclescope::plot::{Axis, AxisScale, Bar, BarChart, BarGroup};
use cyclescope::study::marker::record::MarkerRecord;

/// Costs above this many core cycles would hide the others on a linear axis.
const LINEAR_COST_MOST: f64 = 20.0;

/// Draws all plots.
pub fn draw_contexts(records: &[MarkerRecord], machine: &str) -> Vec<Picture> {
    let picture = |name: &str| {
        let of: Vec<&MarkerRecord> = records.iter().filter(|record| record.context == name).collect();
        Picture::new(format!("marker-{name}"), Drawing::Bars(draw_bars(name, machine, &of)))
    };
    context_names(records).into_iter().map(picture).collect()
}

fn draw_bars(context: &str, machine: &str, records: &[&MarkerRecord]) -> BarChart {
    let mut groups: Vec<BarGroup> = Vec::new();
    for record in records {
        if groups.last().is_none_or(|group| group.name != record.design) {
            groups.push(BarGroup { name: record.design.to_string(), bars: Vec::new() });
        }
        let cost = &record.cost;
        let bar = Bar {
            name: record.state.clone(),
            value: cost.value.unwrap_or(f64::NAN),
            interval: cost.low.zip(cost.high),
            figure: format_quantity(cost),
        };
        groups.last_mut().expect("there is one now").bars.push(bar);
    }
    let large = records.iter().filter_map(|record| record.cost.value).any(|cost| cost.abs() > LINEAR_COST_MOST);
    let scale = if large { AxisScale::SignedLog } else { AxisScale::Linear };
    let label = if large { "core cycles per loop, logarithmic beyond ±0.1" } else { "core cycles per loop" };
    let executor = records.first().map_or("user", |record| record.executor);
    BarChart {
        title: format!("Cost of markers per iteration of the loop: {context}"),
        note: format!("{machine}, {executor} mode: medians over placements, 95 % intervals"),
        axis: Axis { label: label.to_string(), scale },
        groups,
    }
}

#[cfg(test)]
mod tests {
    use super::super::simulated_records::simulated_record;
    use super::*;

    #[test]
    fn bars_are_grouped_by_design() {
        let records = [
            simulated_record("flag", "dormant", -0.1, None),
            simulated_record("flag", "empty", 4.0, None),
            simulated_record("log", "sink", 400.0, None),
        ];
        let all: Vec<&MarkerRecord> = records.iter().collect();
        let bars = draw_bars("empty", "a machine", &all);
        let shape: Vec<(&str, usize)> =
            bars.groups.iter().map(|group| (group.name.as_str(), group.bars.len())).collect();
        assert_eq!(shape, [("flag", 2), ("log", 1)]);
        assert_eq!((bars.axis.scale, bars.groups[0].bars[0].value), (AxisScale::SignedLog, -0.1));
        assert_eq!(draw_bars("empty", "a machine", &all[..2]).axis.scale, AxisScale::Linear);
    }
}

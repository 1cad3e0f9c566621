//! The core: datasheet, diagram, all numbers, and their curves.

use super::report_file::ReportFile;
use crate::output::report::{Drawing, Picture};
use crate::studies::uarch::{FigureText, UarchLine, describe_datasheet, draw_core_pictures};
use cyclescope::plot::{Axis, AxisScale, Chart, HeatMap, SeriesStyle};
use serde::Serialize;
use serde_json::Value;

/// The core of a machine.
#[derive(Serialize)]
pub struct CoreSection {
    machine: Option<usize>,
    sheet: Vec<SheetGroup>,
    diagram: String,
    numbers: Vec<CoreNumber>,
    charts: Vec<ChartData>,
    heat: Option<HeatData>,
}

#[derive(Serialize)]
struct SheetGroup {
    title: &'static str,
    rows: Vec<SheetRow>,
}

#[derive(Serialize)]
struct SheetRow {
    name: &'static str,
    value: String,
    remark: String,
}

#[derive(Serialize)]
struct CoreNumber {
    name: String,
    verdict: String,
    value: String,
    unit: String,
    interval: String,
    why: String,
}

/// A chart as the page draws it.
#[derive(Serialize)]
pub struct ChartData {
    name: String,
    title: String,
    note: String,
    x: AxisData,
    y: AxisData,
    series: Vec<SeriesData>,
}

#[derive(Serialize)]
struct AxisData {
    label: String,
    scale: &'static str,
}

#[derive(Serialize)]
struct SeriesData {
    name: String,
    style: &'static str,
    /// Places that are no number are null.
    points: Vec<[Option<f64>; 2]>,
}

#[derive(Serialize)]
struct HeatData {
    title: String,
    corner: String,
    columns: Vec<String>,
    rows: Vec<HeatRowData>,
}

#[derive(Serialize)]
struct HeatRowData {
    name: String,
    values: Vec<Option<f64>>,
}

/// The section of a file; `None` without numbers of a core.
pub fn describe_core(file: &ReportFile, machine: Option<usize>, machine_name: &str) -> Option<CoreSection> {
    if file.core.is_empty() {
        return None;
    }
    let mut sheet: Vec<SheetGroup> = Vec::new();
    for line in describe_datasheet(&file.core) {
        if sheet.last().is_none_or(|group| group.title != line.group) {
            sheet.push(SheetGroup { title: line.group, rows: Vec::new() });
        }
        let row = SheetRow { name: line.name, value: line.words.text, remark: line.words.remark };
        sheet.last_mut().expect("one was pushed").rows.push(row);
    }
    let mut section = CoreSection {
        machine,
        sheet,
        diagram: String::new(),
        numbers: file.core.iter().map(describe_number).collect(),
        charts: Vec::new(),
        heat: None,
    };
    for Picture { name, drawing } in draw_core_pictures(&file.core, machine_name) {
        match drawing {
            Drawing::Chart(chart) => section.charts.push(ChartData::new(name, &chart)),
            Drawing::Heat(heat) => section.heat = Some(HeatData::new(&heat)),
            Drawing::Diagram(diagram) => section.diagram = diagram.to_svg(),
            Drawing::Bars(_) | Drawing::Linked(_) => {}
        }
    }
    Some(section)
}

fn describe_number(record: &UarchLine) -> CoreNumber {
    let scale = record.value.best_scale();
    let value = record.value.value.filter(|_| record.is_found());
    CoreNumber {
        name: record.describe_name(),
        verdict: record.describe_verdict(),
        value: value.map_or(String::new(), |value| scale.format_number(value)),
        unit: value.map_or(String::new(), |_| scale.name.clone()),
        interval: record.value.format_interval(&scale).filter(|_| value.is_some()).unwrap_or_default(),
        why: record.why.clone(),
    }
}

impl ChartData {
    /// A chart with its file name.
    pub fn new(name: String, chart: &Chart) -> ChartData {
        let series = chart.series.iter().map(|series| SeriesData {
            name: series.name.clone(),
            style: match series.style {
                SeriesStyle::Line | SeriesStyle::Steps => "line",
                SeriesStyle::Dots => "dots",
            },
            points: series.points.iter().map(|point| [point.x, point.y].map(finite)).collect(),
        });
        let (title, note) = (chart.title.clone(), chart.note.clone());
        ChartData {
            name,
            title,
            note,
            x: AxisData::new(&chart.x),
            y: AxisData::new(&chart.y),
            series: series.collect(),
        }
    }
}

/// A number with six digits, if it is one.
fn finite(value: f64) -> Option<f64> {
    value.is_finite().then(|| format!("{value:.5e}").parse().unwrap_or(value))
}

impl AxisData {
    fn new(axis: &Axis) -> AxisData {
        let scale = match axis.scale {
            AxisScale::Linear | AxisScale::SignedLog => "linear",
            AxisScale::Log => "log",
            AxisScale::Binary => "binary",
        };
        AxisData { label: axis.label.clone(), scale }
    }
}

impl HeatData {
    fn new(heat: &HeatMap) -> HeatData {
        let row = |row: &cyclescope::plot::HeatRow| HeatRowData {
            name: row.name.clone(),
            values: row.cells.iter().map(|cell| cell.and_then(finite)).collect(),
        };
        HeatData {
            title: heat.title.clone(),
            corner: heat.unit.clone(),
            columns: heat.columns.clone(),
            rows: heat.rows.iter().map(row).collect(),
        }
    }
}

/// The text of a field, or nothing.
pub fn field_text(line: &Value, field: &str) -> String {
    match &line[field] {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        other => other.to_string(),
    }
}

//! Timing methods: the verdict, a table of methods, the documents' claims, and the paper's graphs.

use super::core_section::{ChartData, field_text};
use super::report_file::ReportFile;
use cyclescope::plot::{Axis, AxisScale, Chart, ChartPoint, Series, SeriesStyle};
use serde::Serialize;
use serde_json::Value;

/// The evaluation of a machine's timing methods.
#[derive(Serialize)]
pub struct TimingSection {
    machine: Option<usize>,
    verdicts: Vec<MethodVerdict>,
    methods: MethodTable,
    claims: Vec<ClaimRow>,
    charts: Vec<ChartData>,
}

#[derive(Serialize)]
struct MethodVerdict {
    title: String,
    clock: String,
    why: String,
}

#[derive(Serialize)]
struct MethodTable {
    columns: Vec<&'static str>,
    rows: Vec<Vec<String>>,
}

#[derive(Serialize)]
struct ClaimRow {
    text: String,
    source: String,
    holds: Option<bool>,
    why: String,
}

/// The columns of the table of methods.
const METHOD_COLUMNS: [&str; 8] = [
    "method",
    "executor",
    "overhead",
    "step",
    "readings for one cycle",
    "variance of variances",
    "variance of minima",
    "spurious minima",
];

/// The section of a file; `None` without an evaluation.
pub fn describe_timing(file: &ReportFile, machine: Option<usize>, machine_name: &str) -> Option<TimingSection> {
    file.of_kind("evaluate").next()?;
    let verdict = |line: &Value| {
        let of = |field: &str, title: &str| MethodVerdict {
            title: format!("{title}, {} mode", field_text(line, "executor")),
            clock: line[field]["clock"].as_str().unwrap_or("none").to_string(),
            why: field_text(&line[field], "why"),
        };
        [of("short_code", "Best for short code"), of("long_code", "Best for long code")]
    };
    let claim = |line: &Value| ClaimRow {
        text: field_text(line, "text"),
        source: field_text(line, "source"),
        holds: line["holds"].as_bool(),
        why: field_text(line, "why"),
    };
    let mut charts: Vec<ChartData> = Vec::new();
    charts.extend(ensemble_charts(file, machine_name));
    for line in file.of_kind("evaluate.resolution") {
        charts.extend(resolution_charts(line, machine_name));
    }
    Some(TimingSection {
        machine,
        verdicts: file.of_kind("evaluate.verdict").flat_map(verdict).collect(),
        methods: MethodTable {
            columns: METHOD_COLUMNS.to_vec(),
            rows: file.of_kind("evaluate").map(|line| method_row(line, file)).collect(),
        },
        claims: file.of_kind("evaluate.claim").map(claim).collect(),
        charts,
    })
}

fn method_row(line: &Value, file: &ReportFile) -> Vec<String> {
    let overhead = line["overhead"]["value"].as_f64().map_or("–".to_string(), |cycles| format!("{cycles:.1}"));
    let same = |other: &&Value| other["clock"] == line["clock"] && other["executor"] == line["executor"];
    let resolution = file.of_kind("evaluate.resolution").find(same);
    let readings = resolution.and_then(|line| line["by_samples"][0]["one_cycle_from"].as_f64());
    let number = |field: &str| line[field].as_f64().map_or("–".to_string(), format_statistic);
    vec![
        field_text(line, "clock"),
        field_text(line, "executor"),
        overhead,
        number("tsc_step"),
        readings.map_or("–".to_string(), format_statistic),
        number("variance_of_variances"),
        number("variance_of_minima"),
        number("spurious_minima"),
    ]
}

fn format_statistic(value: f64) -> String {
    match value.abs() {
        size if size >= 1e6 => format!("{value:.2e}"),
        size if size.fract() == 0.0 => format!("{value:.0}"),
        _ => format!("{value:.2}"),
    }
}

fn new_axis(label: impl Into<String>, scale: AxisScale) -> Axis {
    Axis { label: label.into(), scale }
}

fn new_dots(name: &str, points: Vec<ChartPoint>) -> Series {
    Series { name: name.to_string(), style: SeriesStyle::Dots, points }
}

/// Minimum and variance of each ensemble, of results with `--series`.
fn ensemble_charts(file: &ReportFile, machine: &str) -> Vec<ChartData> {
    let mut clocks: Vec<String> = Vec::new();
    for line in file.of_kind("evaluate.ensemble") {
        let clock = format!("{}, {} mode", field_text(line, "clock"), field_text(line, "executor"));
        if !clocks.contains(&clock) {
            clocks.push(clock);
        }
    }
    let chart = |clock: &String, field: &str, title: &str| {
        let of = file.of_kind("evaluate.ensemble");
        let of =
            of.filter(|line| *clock == format!("{}, {} mode", field_text(line, "clock"), field_text(line, "executor")));
        let points =
            (0..).zip(of).filter_map(|(number, line)| Some(ChartPoint::new(f64::from(number), line[field].as_f64()?)));
        let chart = Chart {
            title: format!("{title} of each ensemble: {clock}"),
            note: machine.to_string(),
            x: new_axis("ensemble", AxisScale::Linear),
            y: new_axis(format!("{title} (raw units)"), AxisScale::Linear),
            series: vec![new_dots(title, points.collect())],
        };
        ChartData::new(format!("{title}-{clock}"), &chart)
    };
    clocks.iter().flat_map(|clock| [chart(clock, "minimum", "minimum"), chart(clock, "variance", "variance")]).collect()
}

/// Minimum and variance by length, and the resolution by number of readings.
fn resolution_charts(line: &Value, machine: &str) -> Vec<ChartData> {
    let clock = format!("{}, {} mode", field_text(line, "clock"), field_text(line, "executor"));
    let unit = field_text(line, "unit").replace('_', " ");
    let mut charts = Vec::new();
    for stairs in line["staircases"].as_array().into_iter().flatten() {
        let body = field_text(stairs, "body").replace('_', " ");
        for (field, label) in [("minimum", "minimum"), ("variance", "variance")] {
            let points = stairs["points"].as_array().into_iter().flatten();
            let points =
                points.filter_map(|point| Some(ChartPoint::new(point["length"].as_f64()?, point[field].as_f64()?)));
            let chart = Chart {
                title: format!("{label} by length: {clock}"),
                note: format!("{machine}: body of {body}"),
                x: new_axis(format!("length ({body})"), AxisScale::Linear),
                y: new_axis(format!("{label} ({unit})"), AxisScale::Linear),
                series: vec![new_dots(label, points.collect())],
            };
            charts.push(ChartData::new(format!("{label}-by-length-{clock}"), &chart));
        }
    }
    if let Some(rungs) = line["by_samples"][0]["rungs"].as_array() {
        let points = rungs
            .iter()
            .filter_map(|rung| Some(ChartPoint::new(rung["readings"].as_f64()?, rung["interleaved"].as_f64()?)));
        let chart = Chart {
            title: format!("Difference that readings resolve: {clock}"),
            note: machine.to_string(),
            x: new_axis("readings", AxisScale::Log),
            y: new_axis("core cycles", AxisScale::Log),
            series: vec![Series {
                name: "interleaved".to_string(),
                style: SeriesStyle::Line,
                points: points.collect(),
            }],
        };
        charts.push(ChartData::new(format!("resolution-{clock}"), &chart));
    }
    charts
}

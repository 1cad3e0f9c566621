//! The paper's graphs of each method: minimum and variance by ensemble and by code length, and
//! resolution by number of readings.

use crate::output::report::{Drawing, Picture};
use cyclescope::executor::DEFAULT_OFFER;
use cyclescope::plot::{Axis, AxisScale, Chart, ChartPoint, Series, SeriesStyle};
use cyclescope::study::evaluate::ensemble::{Ensemble, ExactFraction};
use cyclescope::study::evaluate::resolution::{Resolution, Staircase, StaircaseBody};
use cyclescope::study::evaluate::sampled_method::SampledMethod;
use cyclescope::study::evaluate::{EvaluateStudy, MethodCandidate};
use cyclescope::unit::Unit;

/// Draws all graphs of an evaluation.
pub fn draw_graphs(study: &EvaluateStudy) -> Vec<Picture> {
    let mut graphs = EvaluateGraphs { machine: &study.around.cpu_model, all: Vec::new() };
    for found in study.found.iter().flat_map(|found| &found.methods) {
        graphs.add_resolution(found.candidate, &found.resolution);
        found.method.iter().for_each(|method| graphs.add_method(method));
    }
    graphs.all
}

/// Graphs that are being drawn.
struct EvaluateGraphs<'a> {
    /// The machine, with which the line under each title begins.
    machine: &'a str,
    all: Vec<Picture>,
}

impl EvaluateGraphs<'_> {
    fn add_chart(&mut self, name: String, chart: Chart) {
        self.all.push(Picture::new(name, Drawing::Chart(chart)));
    }

    /// Adds the minimum and variance of each ensemble.
    fn add_method(&mut self, method: &SampledMethod<'static>) {
        let candidate = method.tested.candidate();
        let (clock, file) = (candidate.to_string(), graph_file_name(candidate));
        let unit = unit_name(method.tested.clock.counts);
        let samples = method.sampled.shape.size.samples;
        let note = format!("{}: {} samples in each ensemble", self.machine, samples);
        let by_ensemble = |figure: &dyn Fn(&Ensemble) -> f64| {
            let ensembles = method.sampled.ensembles.iter().enumerate();
            ensembles.map(|(number, ensemble)| ChartPoint::new(number as f64, figure(ensemble))).collect()
        };
        let minima = by_ensemble(&|ensemble| ensemble.minimum.map_or(f64::NAN, |least| least as f64));
        self.add_chart(
            format!("minimum-{file}"),
            Chart {
                title: format!("Minimum of each ensemble: {clock}"),
                note: note.clone(),
                x: linear_axis("ensemble"),
                y: linear_axis(&format!("minimum ({unit})")),
                series: vec![new_series("minimum", SeriesStyle::Dots, minima)],
            },
        );
        let all = by_ensemble(&|ensemble| ExactFraction(ensemble.variance_exact()).to_f64());
        let trimmed = method.sampled.trimmed.iter().enumerate();
        let trimmed = trimmed.map(|(number, ensemble)| ChartPoint::new(number as f64, ensemble.variance)).collect();
        self.add_chart(
            format!("variance-{file}"),
            Chart {
                title: format!("Variance of each ensemble: {clock}"),
                note,
                x: linear_axis("ensemble"),
                y: Axis { label: format!("variance ({unit}²)"), scale: AxisScale::Log },
                series: vec![
                    new_series("all samples", SeriesStyle::Dots, all),
                    new_series("trimmed", SeriesStyle::Dots, trimmed),
                ],
            },
        );
    }

    /// Adds minimum and variance by length, and the difference that a number of readings resolves.
    fn add_resolution(&mut self, of: MethodCandidate, resolution: &Resolution) {
        for stairs in &resolution.staircases {
            self.add_staircase(of, unit_name(resolution.unit), stairs);
        }
        let Some(by) = resolution.by_samples.first() else { return };
        let (clock, file) = (of.to_string(), graph_file_name(of));
        let rungs = |figure: fn(&cyclescope::study::evaluate::resolution::LadderRung) -> f64| {
            by.rungs.iter().map(|rung| ChartPoint::new(rung.readings as f64, figure(rung))).collect()
        };
        self.add_chart(
            format!("resolution-{file}"),
            Chart {
                title: format!("Difference resolved by a number of readings: {clock}"),
                note: format!("{}: at 95 %", self.machine),
                x: Axis { label: "readings of each program".to_string(), scale: AxisScale::Log },
                y: Axis { label: "difference (core cycles)".to_string(), scale: AxisScale::Log },
                series: vec![
                    new_series("in turn, with ruler", SeriesStyle::Line, rungs(|rung| rung.interleaved)),
                    new_series("apart, with ruler", SeriesStyle::Line, rungs(|rung| rung.apart)),
                    new_series("apart, no ruler", SeriesStyle::Line, rungs(|rung| rung.unruled)),
                ],
            },
        );
    }

    fn add_staircase(&mut self, of: MethodCandidate, unit: &str, stairs: &Staircase) {
        let (clock, file) = (of.to_string(), graph_file_name(of));
        let (what, axis, words) = match stairs.body {
            StaircaseBody::Adds => ("adds", "dependent add instructions", "add instructions"),
            StaircaseBody::Iterations => ("loop", "iterations of the loop", "the paper's loop"),
        };
        let note = format!("{}: {} readings of each length", self.machine, stairs.readings);
        let minima = stairs.points.iter().map(|point| ChartPoint::new(point.length.into(), point.raw.minimum as f64));
        self.add_chart(
            format!("minimum-by-{what}-{file}"),
            Chart {
                title: format!("Minimum by length, {words}: {clock}"),
                note: note.clone(),
                x: linear_axis(axis),
                y: linear_axis(&format!("minimum ({unit})")),
                series: vec![new_series("minimum", SeriesStyle::Steps, minima.collect())],
            },
        );
        let variances = stairs.points.iter().map(|point| ChartPoint::new(point.length.into(), point.raw.variance));
        self.add_chart(
            format!("variance-by-{what}-{file}"),
            Chart {
                title: format!("Variance by length, {words}: {clock}"),
                note,
                x: linear_axis(axis),
                y: Axis { label: format!("variance ({unit}²)"), scale: AxisScale::Log },
                series: vec![new_series("variance", SeriesStyle::Dots, variances.collect())],
            },
        );
    }
}

/// The suffix of a graph's file name.
fn graph_file_name(MethodCandidate { clock, executor }: MethodCandidate) -> String {
    match executor == DEFAULT_OFFER.name {
        true => clock.name.to_string(),
        false => format!("{}-{executor}", clock.name),
    }
}

fn unit_name(unit: Unit) -> &'static str {
    match unit {
        Unit::TscTicks => "ticks",
        unit => unit.text(),
    }
}

fn linear_axis(label: &str) -> Axis {
    Axis { label: label.to_string(), scale: AxisScale::Linear }
}

fn new_series(name: &str, style: SeriesStyle, points: Vec<ChartPoint>) -> Series {
    Series { name: name.to_string(), style, points }
}

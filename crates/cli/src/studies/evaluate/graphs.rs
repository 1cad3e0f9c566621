//! The paper's graphs of each method: minimum and variance by ensemble and by length of the code, and resolution by
//! number of readings.

use crate::output::report::{Drawing, Picture};
use cyclescope::executor::DEFAULT;
use cyclescope::plot::{Axis, Chart, Point, Scale, Series, Style};
use cyclescope::study::evaluate::ensemble::{Ensemble, Fraction};
use cyclescope::study::evaluate::method::Method;
use cyclescope::study::evaluate::resolution::{Body, Resolution, Staircase};
use cyclescope::study::evaluate::{Candidate, Evaluate};
use cyclescope::unit::Unit;

/// All graphs of what was found.
pub fn pictures(study: &Evaluate) -> Vec<Picture> {
    let mut graphs = Graphs { machine: &study.around.cpu_model, all: Vec::new() };
    for found in study.found.iter().flat_map(|found| &found.methods) {
        graphs.resolution(found.candidate, &found.resolution);
        found.method.iter().for_each(|method| graphs.method(method));
    }
    graphs.all
}

/// Graphs under way.
struct Graphs<'a> {
    /// The line under each title begins with the machine.
    machine: &'a str,
    all: Vec<Picture>,
}

impl Graphs<'_> {
    fn add(&mut self, name: String, chart: Chart) {
        self.all.push(Picture::new(name, Drawing::Chart(chart)));
    }

    /// Minimum and variance of each ensemble.
    fn method(&mut self, method: &Method<'static>) {
        let candidate = method.tested.candidate();
        let (clock, file) = (candidate.to_string(), file(candidate));
        let unit = unit(method.tested.clock.counts);
        let samples = method.sampled.shape.size.samples;
        let note = format!("{}: {} samples in each ensemble", self.machine, samples);
        let by_ensemble = |figure: &dyn Fn(&Ensemble) -> f64| {
            let ensembles = method.sampled.ensembles.iter().enumerate();
            ensembles.map(|(number, ensemble)| Point::new(number as f64, figure(ensemble))).collect()
        };
        let minima = by_ensemble(&|ensemble| ensemble.minimum.map_or(f64::NAN, |least| least as f64));
        self.add(
            format!("minimum-{file}"),
            Chart {
                title: format!("Minimum of each ensemble: {clock}"),
                note: note.clone(),
                x: linear("ensemble"),
                y: linear(&format!("minimum ({unit})")),
                series: vec![series("minimum", Style::Dots, minima)],
            },
        );
        let all = by_ensemble(&|ensemble| Fraction(ensemble.variance_exact()).value());
        let trimmed = method.sampled.trimmed.iter().enumerate();
        let trimmed =
            trimmed.map(|(number, ensemble)| Point::new(number as f64, ensemble.variance)).collect();
        self.add(
            format!("variance-{file}"),
            Chart {
                title: format!("Variance of each ensemble: {clock}"),
                note,
                x: linear("ensemble"),
                y: Axis { label: format!("variance ({unit}²)"), scale: Scale::Log },
                series: vec![
                    series("all samples", Style::Dots, all),
                    series("trimmed", Style::Dots, trimmed),
                ],
            },
        );
    }

    /// Minimum and variance by length, and the difference that a number of readings resolves.
    fn resolution(&mut self, of: Candidate, resolution: &Resolution) {
        for stairs in &resolution.staircases {
            self.stairs(of, unit(resolution.unit), stairs);
        }
        let Some(by) = resolution.by_samples.first() else { return };
        let (clock, file) = (of.to_string(), file(of));
        let rungs = |figure: fn(&cyclescope::study::evaluate::resolution::Rung) -> f64| {
            by.rungs.iter().map(|rung| Point::new(rung.readings as f64, figure(rung))).collect()
        };
        self.add(
            format!("resolution-{file}"),
            Chart {
                title: format!("Difference resolved by a number of readings: {clock}"),
                note: format!("{}: at 95 %", self.machine),
                x: Axis { label: "readings of each program".to_string(), scale: Scale::Log },
                y: Axis { label: "difference (core cycles)".to_string(), scale: Scale::Log },
                series: vec![
                    series("in turn, with ruler", Style::Line, rungs(|rung| rung.interleaved)),
                    series("apart, with ruler", Style::Line, rungs(|rung| rung.apart)),
                    series("apart, no ruler", Style::Line, rungs(|rung| rung.unruled)),
                ],
            },
        );
    }

    fn stairs(&mut self, of: Candidate, unit: &str, stairs: &Staircase) {
        let (clock, file) = (of.to_string(), file(of));
        let (what, axis, words) = match stairs.body {
            Body::Adds => ("adds", "dependent add instructions", "add instructions"),
            Body::Iterations => ("loop", "iterations of the loop", "the paper's loop"),
        };
        let note = format!("{}: {} readings of each length", self.machine, stairs.readings);
        let minima =
            stairs.points.iter().map(|point| Point::new(point.length.into(), point.raw.minimum as f64));
        self.add(
            format!("minimum-by-{what}-{file}"),
            Chart {
                title: format!("Minimum by length, {words}: {clock}"),
                note: note.clone(),
                x: linear(axis),
                y: linear(&format!("minimum ({unit})")),
                series: vec![series("minimum", Style::Steps, minima.collect())],
            },
        );
        let variances = stairs.points.iter().map(|point| Point::new(point.length.into(), point.raw.variance));
        self.add(
            format!("variance-by-{what}-{file}"),
            Chart {
                title: format!("Variance by length, {words}: {clock}"),
                note,
                x: linear(axis),
                y: Axis { label: format!("variance ({unit}²)"), scale: Scale::Log },
                series: vec![series("variance", Style::Dots, variances.collect())],
            },
        );
    }
}

/// What a graph's name ends with.
fn file(Candidate { clock, executor }: Candidate) -> String {
    match executor == DEFAULT.name {
        true => clock.name.to_string(),
        false => format!("{}-{executor}", clock.name),
    }
}

fn unit(unit: Unit) -> &'static str {
    match unit {
        Unit::TscTicks => "ticks",
        unit => unit.text(),
    }
}

fn linear(label: &str) -> Axis {
    Axis { label: label.to_string(), scale: Scale::Linear }
}

fn series(name: &str, style: Style, points: Vec<Point>) -> Series {
    Series { name: name.to_string(), style, points }
}

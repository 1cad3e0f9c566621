//! The paper's graphs of each method: minimum and variance by ensemble and by length of the code, and resolution by
//! number of readings.

use super::rows;
use crate::failure::Failure;
use crate::plots::Plots;
use cyclescope::executor::DEFAULT;
use cyclescope::plot::{Axis, Chart, Point, Scale, Series, Style};
use cyclescope::study::evaluate::Candidate;
use cyclescope::study::evaluate::ensemble::{Ensemble, Fraction};
use cyclescope::study::evaluate::method::Method;
use cyclescope::study::evaluate::resolution::{Body, Resolution, Staircase};
use cyclescope::unit::Unit;

impl Plots {
    /// Minimum and variance of each ensemble.
    pub fn method(&mut self, method: &Method<'static>) -> Result<(), Failure> {
        let candidate = method.subject.candidate();
        let (clock, file) = (rows::named(candidate), file(candidate));
        let unit = unit(method.subject.clock.counts);
        let samples = method.sampled.shape.size.samples;
        let note = format!("{}: {} samples in each ensemble", self.machine(), samples);
        let by_ensemble = |figure: &dyn Fn(&Ensemble) -> f64| {
            let ensembles = method.sampled.ensembles.iter().enumerate();
            ensembles.map(|(number, ensemble)| Point::new(number as f64, figure(ensemble))).collect()
        };
        let minima = by_ensemble(&|ensemble| ensemble.minimum.map_or(f64::NAN, |least| least as f64));
        self.draw_chart(
            &format!("minimum-{file}"),
            &Chart {
                title: format!("Minimum of each ensemble: {clock}"),
                note: note.clone(),
                x: linear("ensemble"),
                y: linear(&format!("minimum ({unit})")),
                series: vec![series("minimum", Style::Dots, minima)],
            },
        )?;
        let all = by_ensemble(&|ensemble| Fraction(ensemble.variance_exact()).value());
        let trimmed = method.sampled.trimmed.iter().enumerate();
        let trimmed =
            trimmed.map(|(number, ensemble)| Point::new(number as f64, ensemble.variance)).collect();
        self.draw_chart(
            &format!("variance-{file}"),
            &Chart {
                title: format!("Variance of each ensemble: {clock}"),
                note,
                x: linear("ensemble"),
                y: Axis { label: format!("variance ({unit}²)"), scale: Scale::Log },
                series: vec![
                    series("all samples", Style::Dots, all),
                    series("trimmed", Style::Dots, trimmed),
                ],
            },
        )
    }

    /// Minimum and variance by length, and the difference that a number of readings resolves.
    pub fn resolution(&mut self, of: Candidate, resolution: &Resolution) -> Result<(), Failure> {
        let (clock, file) = (rows::named(of), file(of));
        for stairs in &resolution.staircases {
            self.stairs((&clock, &file), unit(resolution.unit), stairs)?;
        }
        let Some(by) = resolution.by_samples.first() else { return Ok(()) };
        let rungs = |figure: fn(&cyclescope::study::evaluate::resolution::Rung) -> f64| {
            by.rungs.iter().map(|rung| Point::new(rung.readings as f64, figure(rung))).collect()
        };
        self.draw_chart(
            &format!("resolution-{file}"),
            &Chart {
                title: format!("Difference resolved by a number of readings: {clock}"),
                note: format!("{}: at 95 %", self.machine()),
                x: Axis { label: "readings of each program".to_string(), scale: Scale::Log },
                y: Axis { label: "difference (core cycles)".to_string(), scale: Scale::Log },
                series: vec![
                    series("in turn, with ruler", Style::Line, rungs(|rung| rung.interleaved)),
                    series("apart, with ruler", Style::Line, rungs(|rung| rung.apart)),
                    series("apart, no ruler", Style::Line, rungs(|rung| rung.unruled)),
                ],
            },
        )
    }

    fn stairs(&mut self, (clock, file): (&str, &str), unit: &str, stairs: &Staircase) -> Result<(), Failure> {
        let (what, axis, words) = match stairs.body {
            Body::Adds => ("adds", "dependent add instructions", "add instructions"),
            Body::Iterations => ("loop", "iterations of the loop", "the paper's loop"),
        };
        let note = format!("{}: {} readings of each length", self.machine(), stairs.readings);
        let minima =
            stairs.points.iter().map(|point| Point::new(point.length.into(), point.raw.minimum as f64));
        self.draw_chart(
            &format!("minimum-by-{what}-{file}"),
            &Chart {
                title: format!("Minimum by length, {words}: {clock}"),
                note: note.clone(),
                x: linear(axis),
                y: linear(&format!("minimum ({unit})")),
                series: vec![series("minimum", Style::Steps, minima.collect())],
            },
        )?;
        let variances = stairs.points.iter().map(|point| Point::new(point.length.into(), point.raw.variance));
        self.draw_chart(
            &format!("variance-by-{what}-{file}"),
            &Chart {
                title: format!("Variance by length, {words}: {clock}"),
                note,
                x: linear(axis),
                y: Axis { label: format!("variance ({unit}²)"), scale: Scale::Log },
                series: vec![series("variance", Style::Dots, variances.collect())],
            },
        )
    }
}

impl Plots {
    fn draw_chart(&mut self, name: &str, chart: &Chart) -> Result<(), Failure> {
        self.draw(name, &chart.svg())
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

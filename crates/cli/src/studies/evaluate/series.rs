//! `--series` as text: a line for each ensemble and for each length of the staircases, as the
//! paper's module logs them, and the first readings in order, as the notes on RDTSC(P) print them.

use crate::output::{Failure, Output};
use cyclescope::study::evaluate::ensemble::Ensemble;
use cyclescope::study::evaluate::evaluation::Evaluation;
use cyclescope::study::evaluate::resolution::{LengthEnsemble, StaircaseBody};

/// Prints the ensembles and lengths of each method. The numbers are in raw units of its clock.
pub fn print_series(found: &Evaluation, output: &mut Output) -> Result<(), Failure> {
    for method in &found.methods {
        output.write_line(format!("ensembles of {}", method.candidate))?;
        let ensembles = method.method.iter().flat_map(|method| &method.sampled.ensembles);
        for (number, ensemble) in ensembles.enumerate() {
            output.write_line(format_ensemble(number, ensemble))?;
        }
        if let Some(method) = &method.method {
            output.write_line(format_readings(&method.sampled.first_durations))?;
        }
        for stairs in &method.resolution.staircases {
            let what = match stairs.body {
                StaircaseBody::Adds => "dependent additions",
                StaircaseBody::Iterations => "iterations of the paper's loop",
            };
            output.write_line(format!("{what} by {}", method.candidate))?;
            for point in &stairs.points {
                output.write_line(format_length(point.length, &point.raw))?;
            }
        }
        output.write_line("")?;
    }
    Ok(())
}

/// Readings in the order of their measurement.
fn format_readings(durations: &[u64]) -> String {
    let durations: Vec<String> = durations.iter().map(u64::to_string).collect();
    format!("overheads: {}", durations.join(" "))
}

/// Section 3.1.2 of the paper: its `loop_size` is the number of the ensemble, whose code is empty.
fn format_ensemble(number: usize, ensemble: &Ensemble) -> String {
    let minimum = ensemble.minimum.map_or("none".to_string(), |minimum| minimum.to_string());
    let (variance, deviation) = (ensemble.variance(), ensemble.max_deviation());
    format!("loop_size:{number} >>>> variance(cycles): {variance}; max_deviation: {deviation} ;min time: {minimum}")
}

/// Section 3.3 of the paper: its `loop_size` is the length of the code.
fn format_length(length: u32, of: &LengthEnsemble) -> String {
    let LengthEnsemble { variance_floored, maximum_deviation, minimum, .. } = of;
    format!(
        "loop_size:{length} >>>> variance(cycles): {variance_floored}; max_deviation: {maximum_deviation} ;min time: {minimum}"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_have_the_form_of_the_paper() {
        let readings =
            LengthEnsemble { readings: 9, minimum: 44, maximum_deviation: 4, variance_floored: 2, variance: 2.5 };
        let expected = "loop_size:7 >>>> variance(cycles): 2; max_deviation: 4 ;min time: 44";
        assert_eq!(format_length(7, &readings), expected);
        let none = "loop_size:0 >>>> variance(cycles): 0; max_deviation: 0 ;min time: none";
        assert_eq!(format_ensemble(0, &Ensemble::default()), none);
        assert_eq!(format_readings(&[76, 76, 114, 76]), "overheads: 76 76 114 76");
    }
}

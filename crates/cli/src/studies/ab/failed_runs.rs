//! Failed runs: which of them are repeated, and how often.
//!
//! A program may fail once by chance. Its round is then repeated as a whole, because the runs of a
//! round belong together. All failures are counted and reported.

use super::record::AbFailureRecord;
use crate::output::{Failure, print_warning};

/// Failures of a program in succession that end the comparison.
const FAILURES_IN_SUCCESSION: usize = 3;

/// The failure of a run.
#[derive(Debug)]
pub struct RunFailure {
    failure: Failure,
    /// Whether another run may succeed.
    repeatable: bool,
}

impl RunFailure {
    /// The failure of a program that may succeed in another run.
    pub fn repeatable(failure: Failure) -> RunFailure {
        RunFailure { failure, repeatable: true }
    }
}

impl From<Failure> for RunFailure {
    fn from(failure: Failure) -> RunFailure {
        RunFailure { failure, repeatable: false }
    }
}

/// All failed runs of a comparison.
#[derive(Debug)]
pub struct FailedRuns {
    /// For each program.
    in_succession: Vec<usize>,
    all: Vec<AbFailureRecord>,
}

impl FailedRuns {
    /// No failed runs of this number of programs.
    pub fn new(programs: usize) -> FailedRuns {
        FailedRuns { in_succession: vec![0; programs], all: Vec::new() }
    }

    /// Notes a successful run.
    pub fn note_success(&mut self, program: usize) {
        self.in_succession[program] = 0;
    }

    /// Notes a failed run. Returns its failure if it can't be repeated.
    pub fn note_failure(
        &mut self,
        program: usize,
        build: usize,
        RunFailure { failure, repeatable }: RunFailure,
    ) -> Result<(), Failure> {
        self.in_succession[program] += 1;
        if !repeatable || self.in_succession[program] >= FAILURES_IN_SUCCESSION {
            return Err(failure);
        }
        if self.count(program) == 0 {
            print_warning(&format!("{}; the run is repeated", failure.text()));
        }
        self.all.push(AbFailureRecord { program, build, text: failure.text().to_string() });
        Ok(())
    }

    /// The failed runs that were repeated.
    pub fn all(&self) -> &[AbFailureRecord] {
        &self.all
    }

    /// The number of failed runs of a program.
    pub fn count(&self, program: usize) -> usize {
        self.all.iter().filter(|failed| failed.program == program).count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_are_repeated_until_three_in_succession() {
        let fail = || RunFailure::repeatable(Failure::usage("it failed", None));
        let mut failed = FailedRuns::new(2);
        for _ in 0..10 {
            assert!(failed.note_failure(0, 0, fail()).is_ok() && failed.note_failure(1, 0, fail()).is_ok());
            assert!(failed.note_failure(0, 0, fail()).is_ok());
            failed.note_success(0);
            failed.note_success(1);
        }
        assert_eq!((failed.count(0), failed.count(1), failed.all().len()), (20, 10, 30));
        assert!(failed.note_failure(1, 0, Failure::usage("it can't start", None).into()).is_err());
        assert!((0..2).all(|_| failed.note_failure(0, 0, fail()).is_ok()));
        assert!(failed.note_failure(0, 0, fail()).is_err());
    }
}

//! Times mixes on an executor, and keeps them for a study that is resumed.

use crate::mix_source::MixSource;
use crate::study_part::{StudyPart, TimedMixes};
use cyclescope_core::random::{Random, mix_seeds};
use cyclescope_exec::Executor;
use cyclescope_instr::mixes::mix::Mix;
use cyclescope_instr::mixes::mix_timer::{MixOutcome, MixTimer};
use cyclescope_measure::study::{ResultRecord, StopReason, StudyFollower, StudyProgress, check_stop};
use std::collections::{HashMap, HashSet};
use std::ops::ControlFlow;

/// Mixes that are timed before progress is reported.
const PART_MIXES: usize = 56;

/// Times mixes on an executor.
pub(crate) struct ExecutorMixes<'a> {
    timer: MixTimer<'a>,
    executor: &'a mut dyn Executor,
    seed: u64,
    follow: &'a mut dyn StudyFollower,
    known: HashMap<Mix, MixOutcome>,
    /// Mixes timed so far.
    done: u64,
}

impl<'a> ExecutorMixes<'a> {
    /// A source of mixes of the timer's forms. `parts` are timed already.
    pub(crate) fn new(
        timer: MixTimer<'a>,
        executor: &'a mut dyn Executor,
        seed: u64,
        follow: &'a mut dyn StudyFollower,
        parts: Vec<TimedMixes>,
    ) -> ExecutorMixes<'a> {
        let known: HashMap<Mix, MixOutcome> = parts.into_iter().flat_map(|part| part.mixes).collect();
        let done = known.len() as u64;
        ExecutorMixes { timer, executor, seed, follow, known, done }
    }

    /// Passes a record on.
    pub(crate) fn accept_record(&mut self, record: ResultRecord) -> ControlFlow<()> {
        self.follow.accept_record(record)
    }
}

impl MixSource for ExecutorMixes<'_> {
    fn time_mixes(&mut self, mixes: &[Mix]) -> Result<Vec<MixOutcome>, StopReason> {
        let mut asked: HashSet<&Mix> = HashSet::new();
        let open: Vec<Mix> =
            mixes.iter().filter(|mix| !self.known.contains_key(*mix) && asked.insert(mix)).cloned().collect();
        let total = self.done + open.len() as u64;
        for part in open.chunks(PART_MIXES) {
            let message = format!("{} of {total} mixes", self.done);
            check_stop(self.follow.report_progress(StudyProgress { done: self.done, total, message }))?;
            // The same mixes get the same layouts, whatever was timed before.
            let seed = part
                .iter()
                .flat_map(|mix| &mix.parts)
                .fold(self.seed, |seed, part| mix_seeds(mix_seeds(seed, part.form as u64), part.count as u64));
            let outcomes = self.timer.time_mixes(self.executor, part, &mut Random::new(seed))?;
            let timed: Vec<(Mix, MixOutcome)> = part.iter().cloned().zip(outcomes).collect();
            let saved = || {
                let part = StudyPart::Mixes(TimedMixes { mixes: timed.clone() });
                serde_json::to_string(&part).expect("times are plain data")
            };
            check_stop(self.follow.save_part(&saved))?;
            self.done += part.len() as u64;
            self.known.extend(timed);
        }
        Ok(mixes.iter().map(|mix| self.known[mix].clone()).collect())
    }
}

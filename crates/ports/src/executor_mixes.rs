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
    /// The tries of each mix.
    known: HashMap<Mix, Vec<MixOutcome>>,
    /// The tries of each mix that were asked for.
    asked: HashMap<Mix, usize>,
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
        let mut known: HashMap<Mix, Vec<MixOutcome>> = HashMap::new();
        let mut done = 0;
        for (mix, outcome) in parts.into_iter().flat_map(|part| part.mixes) {
            known.entry(mix).or_default().push(outcome);
            done += 1;
        }
        ExecutorMixes { timer, executor, seed, follow, known, asked: HashMap::new(), done }
    }

    /// Passes a record on.
    pub(crate) fn accept_record(&mut self, record: ResultRecord) -> ControlFlow<()> {
        self.follow.accept_record(record)
    }

    /// The try with this number of each mix.
    fn time_tries(&mut self, asked: &[(&Mix, usize)]) -> Result<Vec<MixOutcome>, StopReason> {
        let mut listed: HashSet<&Mix> = HashSet::new();
        let tries = |mix: &Mix| self.known.get(mix).map_or(0, Vec::len);
        let is_open = |(mix, number): &(&Mix, usize)| tries(mix) <= *number;
        let open: Vec<(&Mix, usize)> =
            asked.iter().copied().filter(|asked| is_open(asked) && listed.insert(asked.0)).collect();
        let total = self.done + open.len() as u64;
        for part in open.chunks(PART_MIXES) {
            let message = format!("{} of {total} mixes", self.done);
            check_stop(self.follow.report_progress(StudyProgress { done: self.done, total, message }))?;
            let mixes: Vec<Mix> = part.iter().map(|(mix, _)| (*mix).clone()).collect();
            // The same tries get the same layouts, whatever was timed before.
            let seed = part.iter().fold(self.seed, |seed, (mix, number)| {
                let parts = mix.parts.iter().flat_map(|part| [part.form as u64, part.count as u64]);
                // The first try has no number.
                parts.chain((*number > 0).then_some(*number as u64)).fold(seed, mix_seeds)
            });
            let outcomes = self.timer.time_mixes(self.executor, &mixes, &mut Random::new(seed))?;
            let timed: Vec<(Mix, MixOutcome)> = mixes.into_iter().zip(outcomes).collect();
            let saved = || {
                let part = StudyPart::Mixes(TimedMixes { mixes: timed.clone() });
                serde_json::to_string(&part).expect("times are plain data")
            };
            check_stop(self.follow.save_part(&saved))?;
            self.done += part.len() as u64;
            for (mix, outcome) in timed {
                self.known.entry(mix).or_default().push(outcome);
            }
        }
        Ok(asked.iter().map(|(mix, number)| self.known[*mix][*number].clone()).collect())
    }
}

impl MixSource for ExecutorMixes<'_> {
    fn time_mixes(&mut self, mixes: &[Mix]) -> Result<Vec<MixOutcome>, StopReason> {
        for mix in mixes {
            self.asked.entry(mix.clone()).or_insert(1);
        }
        let first: Vec<(&Mix, usize)> = mixes.iter().map(|mix| (mix, 0)).collect();
        self.time_tries(&first)
    }

    fn time_again(&mut self, mixes: &[Mix]) -> Result<Vec<MixOutcome>, StopReason> {
        let next: Vec<usize> = mixes.iter().map(|mix| self.asked.get(mix).copied().unwrap_or(0)).collect();
        for (mix, number) in mixes.iter().zip(&next) {
            self.asked.insert(mix.clone(), number + 1);
        }
        let again: Vec<(&Mix, usize)> = mixes.iter().zip(next).collect();
        self.time_tries(&again)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cyclescope_code::asm::CodeMode;
    use cyclescope_code::clock::Clock;
    use cyclescope_core::machine::Machine;
    use cyclescope_exec::PrivilegeRing;
    use cyclescope_instr::mixes::mix_form::MixForm;
    use cyclescope_instr::mixes::mix_timer::MixEffort;
    use cyclescope_instr::selection::list_forms;
    use cyclescope_instr::survey_settings::SurveyTiming;
    use cyclescope_sim::{CoreModel, PortAssignment, SimulatedCore, SimulatedPortMap};

    /// Keeps the parts of a study.
    #[derive(Default)]
    struct KeptParts(Vec<TimedMixes>);

    impl StudyFollower for KeptParts {
        fn accept_record(&mut self, _record: ResultRecord) -> ControlFlow<()> {
            ControlFlow::Continue(())
        }

        fn save_part(&mut self, part: &dyn Fn() -> String) -> ControlFlow<()> {
            if let Ok(StudyPart::Mixes(mixes)) = serde_json::from_str(&part()) {
                self.0.push(mixes);
            }
            ControlFlow::Continue(())
        }
    }

    /// Asks for a mix, for it anew twice, and for another one anew. Returns the outcomes and all parts.
    fn ask(parts: Vec<TimedMixes>) -> ([MixOutcome; 4], Vec<TimedMixes>) {
        let model = CoreModel::with_port_map(3, SimulatedPortMap::zen_4(PortAssignment::Best));
        let features = Machine::detect().features;
        let form = |name: &str| {
            let target = list_forms(CodeMode::Bits64).into_iter().find(|target| target.code() == name).unwrap();
            MixForm::new(&target, &features, PrivilegeRing::Three).unwrap()
        };
        let forms = [form("Popcnt_r64_rm64"), form("Imul_r64_rm64")];
        let clock = Clock::find_named("lfence-rdtsc-lfence").unwrap();
        let timing = SurveyTiming {
            clock,
            step: 2.0,
            imul_latency: model.imul_latency.into(),
            mode: CodeMode::default(),
            adders: None,
        };
        let timer = MixTimer::new(timing, &forms, MixEffort::QUICK, 0.95);
        let mut core = SimulatedCore::new(model, 3);
        let mut follow = KeptParts::default();
        let mut source = ExecutorMixes::new(timer, &mut core, 7, &mut follow, parts);
        let [one, other] = [Mix::new([(0, 4), (1, 1)]), Mix::new([(0, 8), (1, 1)])];
        let mut outcomes = source.time_mixes(std::slice::from_ref(&one)).unwrap();
        for again in [&one, &one, &other] {
            outcomes.extend(source.time_again(std::slice::from_ref(again)).unwrap());
        }
        (outcomes.try_into().unwrap(), follow.0)
    }

    #[test]
    fn each_try_is_timed_anew_and_kept_for_a_study_that_is_resumed() {
        let (outcomes, parts) = ask(Vec::new());
        assert!(outcomes.iter().all(|outcome| matches!(outcome, MixOutcome::Timed(_))), "{outcomes:?}");
        let [first, second, third, _] = &outcomes;
        assert!(first != second && second != third && first != third, "{outcomes:?}");
        assert_eq!(parts.len(), 4);
        let part = parts[..2].to_vec();
        let (resumed, new) = ask(parts);
        assert_eq!((&resumed, new.len()), (&outcomes, 0));
        let (resumed, new) = ask(part);
        assert_eq!((&resumed[..2], new.len()), (&outcomes[..2], 2));
    }
}

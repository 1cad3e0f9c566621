//! Measures bodies of instances and fillers until the number of dispatch slots is certain.
//!
//! A core dispatches a group of slots in each cycle. An instance of several slots may have to wait
//! for the next group if it does not fit. So a period of instances and fillers has whole groups, if
//! the number is as the figures so far suggest. Slower instances get more fillers, so that their
//! units are never the limit.

use super::branch::is_branch;
use super::experiment::FormExperiment;
use super::filler_check::FillerCheck;
use super::form_measurement::{FormMeasurement, LOOPS_LEAST, LOOPS_MOST};
use super::form_plan::FormPlan;
use super::program_reading::ProgramReading;
use super::slot_judgement::{SMALL_SLOTS, SlotJudgement, SlotVerdict, is_disturbed};
use super::slot_reading::SlotReading;
use super::timing::{LoopedProgram, ProgramTiming};
use crate::bodies::balance::balance_instance;
use crate::bodies::slot_body::{SlotBody, SlotShape};
use crate::bodies::slot_filler::SlotFiller;
use crate::bodies::x87;
use cyclescope_code::asm::access::is_non_temporal_store;
use cyclescope_core::error::RunError;
use cyclescope_core::random::Random;
use cyclescope_exec::Executor;

/// Layouts of each body in the first attempt, and in later ones.
const FIRST_LAYOUTS: usize = 2;
const LATER_LAYOUTS: usize = 3;
/// Bodies of the first attempt: two with the most trusted kind of filler, and one with another.
const FIRST_BODIES: usize = 3;
/// Approximate slots of a body, by attempt. A longer loop may lose slots at each window of code, but
/// has more instances between uses of one register.
const BODY_SLOTS: [usize; 4] = [96, 96, 96, 192];
/// Lower and upper limit of the core cycles of a body's longest call. In between, a step of the clock
/// is worth this many slots of a period.
const CALL_CYCLES_LEAST: f64 = 6_000.0;
const CALL_CYCLES_MOST: f64 = 16_000.0;
const STEP_SLOTS: f64 = 0.1;
/// Lower and upper limit of instances in a body. With one, the error of a loop's end would be its own.
const COPIES_LEAST: usize = 3;
const COPIES_MOST: usize = 12;
/// Lower limit of slots in a period.
const PERIOD_LEAST: f64 = 15.0;
/// A period takes longer than an instance at its best rate by this factor and this many cycles.
const SLACK_FACTOR: f64 = 1.5;
const SLACK_CYCLES: f64 = 0.5;
/// Slots of a body that shows groups of its own. Few of them are at the loop's end, which breaks groups too.
const GROUP_BODY_SLOTS: usize = 192;
/// Upper limit of fillers after an instance. A core must hold an instance and its fillers until they
/// retire: Skylake holds 224.
const FILLERS_MOST: usize = 144;

/// Why a form's slots are not counted.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum SlotObstacle {
    /// It is a branch.
    Branch,
    /// It stores past the caches.
    NonTemporal,
    /// It empties caches or translation buffers.
    Empties,
    /// No throughput program exists.
    NoProgram,
    /// An instance takes this many core cycles.
    Slow(f64),
    /// Too few kinds of fillers are limited by slots alone.
    FewFillers,
}

impl SlotObstacle {
    /// The obstacle as text.
    pub(crate) fn describe(self) -> String {
        match self {
            SlotObstacle::Branch => "a branch has no fillers after it in the same line of code".to_string(),
            SlotObstacle::NonTemporal => "memory limits stores past the caches".to_string(),
            SlotObstacle::Empties => "it empties caches or translation buffers".to_string(),
            SlotObstacle::NoProgram => "no program with fillers can be written".to_string(),
            SlotObstacle::Slow(cycles) => {
                format!("an instance takes {cycles:.1} core cycles, and too few fillers fit between two")
            }
            SlotObstacle::FewFillers => {
                "fewer than two kinds of fillers are as fast as the fastest instructions here".to_string()
            }
        }
    }
}

/// What the next bodies look like.
#[derive(Debug, Clone, Copy)]
struct SlotAttempt {
    /// The number of the attempt, from 0.
    number: usize,
    /// The assumed slots of an instance.
    slots: usize,
    /// Whether all numbers of fillers of a group are tried, to find out whether an instance takes
    /// groups of its own.
    all_numbers: bool,
}

impl FormMeasurement<'_> {
    /// Why this form's slots are not counted, given its readings.
    pub(crate) fn find_slot_obstacle(plan: &FormPlan, rthroughput: f64, width: f64) -> Option<SlotObstacle> {
        let sample = &plan.anatomy.sample;
        let longest = (FILLERS_MOST as f64 / width - SLACK_CYCLES) / SLACK_FACTOR;
        match () {
            () if is_branch(sample) => Some(SlotObstacle::Branch),
            () if is_non_temporal_store(sample) => Some(SlotObstacle::NonTemporal),
            () if plan.surroundings.emptied => Some(SlotObstacle::Empties),
            () if rthroughput.is_infinite() => Some(SlotObstacle::NoProgram),
            () if rthroughput > longest => Some(SlotObstacle::Slow(rthroughput)),
            () => None,
        }
    }

    /// Counts the dispatch slots of an instance. The first reading records all bodies. A later pass
    /// counts only what no earlier one has found.
    pub(super) fn measure_slots(
        &self,
        executor: &mut dyn Executor,
        readings: &mut [ProgramReading],
        random: &mut Random,
    ) -> Result<(), RunError> {
        let Some(width) = self.filler_curves.width() else { return Ok(()) };
        let rthroughput = self.plan.least_rthroughput(readings);
        let vex = SlotBody::uses_vex(&self.plan.anatomy);
        let trusted = self.filler_curves.list_trusted(vex);
        let judge = |found: &[SlotReading]| SlotJudgement::from_readings(self.filler_curves, found);
        let is_settled = |judgement: SlotJudgement| judgement.verdict != SlotVerdict::Upper;
        let known = |pass: &Vec<ProgramReading>| judge(&pass.first()?.slots).map(is_settled);
        let is_known = self.earlier.iter().any(|pass| known(pass) == Some(true));
        let obstacle = Self::find_slot_obstacle(self.plan, rthroughput, width);
        if self.plan.is_sequence() || is_known || obstacle.is_some() || trusted.len() < 2 {
            return Ok(());
        }
        let mut found: Vec<SlotReading> = Vec::new();
        let mut attempt = SlotAttempt { number: 0, slots: 1, all_numbers: false };
        while attempt.number < BODY_SLOTS.len() {
            let third = trusted.get(2).copied().unwrap_or(trusted[1]);
            let fillers = match (attempt.all_numbers, attempt.number) {
                (true, _) => vec![trusted[0]],
                (false, 0..=1) => vec![trusted[0], trusted[1]],
                (false, _) => vec![trusted[0], trusted[1], third],
            };
            let mut shapes = self.list_shapes(attempt, &fillers, vex, rthroughput, width);
            // The first kind shows with two numbers that the slots are the limit.
            shapes.truncate(if attempt.number == 0 && !attempt.all_numbers { FIRST_BODIES } else { usize::MAX });
            let layouts = if attempt.number == 0 { FIRST_LAYOUTS } else { LATER_LAYOUTS };
            for reading in self.time_shapes(executor, &shapes, layouts, rthroughput, width, random)? {
                match found.iter_mut().find(|known| known.shape == reading.shape) {
                    Some(known) => known.add_layouts(reading),
                    None => found.push(reading),
                }
            }
            let Some(judgement) = judge(&found) else {
                // The sibling was busy in all layouts, perhaps.
                attempt.number += 1;
                continue;
            };
            if judgement.verdict != SlotVerdict::Upper {
                break;
            }
            let all_numbers = judgement.needs_group_test && !attempt.all_numbers;
            let number = attempt.number + usize::from(!all_numbers);
            attempt = SlotAttempt { number, slots: judgement.whole.min(SMALL_SLOTS), all_numbers };
        }
        if let Some(first) = readings.first_mut() {
            first.slots = found;
        }
        Ok(())
    }

    /// The bodies of an attempt: each filler in two numbers that differ by one group, or in all between.
    fn list_shapes(
        &self,
        attempt: SlotAttempt,
        fillers: &[SlotFiller],
        vex: bool,
        rthroughput: f64,
        width: f64,
    ) -> Vec<SlotShape> {
        let group = width.round().max(1.0) as usize;
        let longer = if attempt.number > 2 { 2.0 } else { 1.0 };
        let least = (longer * (SLACK_FACTOR * rthroughput + SLACK_CYCLES) * width).max(PERIOD_LEAST);
        let groups = (least / group as f64).ceil() as usize;
        let mut shapes = Vec::new();
        for filler in fillers {
            let probe = SlotShape { filler: *filler, vex, fillers: 0, copies: 1 };
            let Some(body) = SlotBody::new(&self.plan.anatomy, probe) else { continue };
            let own = attempt.slots + body.extra;
            let fewest = (groups.max(own.div_ceil(group) + 1) * group) - own;
            let counts: Vec<usize> = match attempt.all_numbers {
                true => (fewest..fewest + group).collect(),
                false => vec![fewest, fewest + group],
            };
            for count in counts {
                let slots = if attempt.all_numbers { GROUP_BODY_SLOTS } else { BODY_SLOTS[attempt.number] };
                let copies = (slots / (count + own)).clamp(COPIES_LEAST, COPIES_MOST);
                shapes.push(SlotShape { filler: *filler, vex, fillers: count, copies });
            }
        }
        shapes
    }

    /// Times bodies of these shapes.
    fn time_shapes(
        &self,
        executor: &mut dyn Executor,
        shapes: &[SlotShape],
        layouts: usize,
        rthroughput: f64,
        width: f64,
        random: &mut Random,
    ) -> Result<Vec<SlotReading>, RunError> {
        let Some(first) = shapes.first() else { return Ok(Vec::new()) };
        let slots = first.copies * (first.fillers + 1);
        let Some(check) = FillerCheck::new(self.filler_curves, slots, first.vex) else { return Ok(Vec::new()) };
        let mut bodies = Vec::new();
        let mut programs = vec![check.build_program(self.timer, self.choose_call_cycles(slots as f64))];
        for shape in shapes {
            let Some(body) = SlotBody::new(&self.plan.anatomy, *shape) else { continue };
            let Some(experiment) = self.plan.slot_experiment(&body.period, &body.init, *shape) else { continue };
            let cycles = shape.copies as f64 * rthroughput.max((shape.fillers + 1) as f64 / width);
            let slots = (cycles * width / shape.copies as f64).max(1.0);
            let call = self.choose_call_cycles(slots);
            programs.push(self.prepare_slots(&experiment, cycles, call));
            let control = body.control.and_then(|code| self.plan.slot_experiment(&code, &body.init, *shape));
            programs.extend(control.iter().map(|control| self.prepare_slots(control, cycles, call)));
            bodies.push((*shape, body.extra, control.is_some()));
        }
        let timings = self.time_layouts(executor, &programs, layouts, random)?;
        let lost: Vec<Option<f64>> = timings.iter().map(|layout| check.find_lost_share(&layout[0])).collect();
        let mut timed = 1..programs.len();
        let mut take = |shape: SlotShape| {
            let at = timed.next().expect("each program has a timing");
            read_layouts(&timings, at, |layout| lost[layout].is_none_or(|lost| is_disturbed(shape.fillers, lost)))
        };
        let read = |(shape, extra, has_control): (SlotShape, usize, bool)| {
            let [cycles, disturbed] = take(shape);
            let control = has_control.then(|| take(shape)).map(|[cycles, _]| cycles);
            SlotReading { shape, extra, cycles, control, disturbed }
        };
        Ok(bodies.into_iter().map(read).collect())
    }

    /// Core cycles of the longest call of a body whose periods take the time of this many slots.
    fn choose_call_cycles(&self, slots: f64) -> f64 {
        (self.timer.step * slots / STEP_SLOTS).clamp(CALL_CYCLES_LEAST, CALL_CYCLES_MOST)
    }

    fn prepare_slots(&self, experiment: &FormExperiment, cycles: f64, call: f64) -> LoopedProgram {
        let loops = ((call / 4.0 / cycles) as u64).clamp(LOOPS_LEAST, LOOPS_MOST);
        LoopedProgram { loops, ..self.prepare_program(experiment, usize::MAX) }
    }
}

/// Core cycles of an iteration of a program in layouts that fit the scale, and in disturbed ones.
fn read_layouts(timings: &[Vec<ProgramTiming>], program: usize, is_disturbed: impl Fn(usize) -> bool) -> [Vec<f64>; 2] {
    let mut readings = [ProgramReading::default(), ProgramReading::default()];
    for (layout, timings) in timings.iter().enumerate() {
        readings[usize::from(is_disturbed(layout))].add_rate_layout(&timings[program]);
    }
    readings.map(|reading| reading.cycles)
}

/// Whether each instance has other instructions around it whose slots can't be subtracted.
pub(crate) fn is_burdened(plan: &FormPlan, readings: &[SlotReading]) -> bool {
    let needs_others = readings.iter().any(|reading| reading.extra > 0);
    needs_balance(plan) || x87::uses_stack(&plan.anatomy.sample) && needs_others
}

/// Whether each instance needs instructions around it that balance a stack.
fn needs_balance(plan: &FormPlan) -> bool {
    let (before, after) = balance_instance(&plan.anatomy.sample);
    !before.is_empty() || !after.is_empty()
}

/// Whether what is around each instance may cost another amount without it: a push and a pop of the
/// x87 stack do (FCHS on Zen 5).
pub(crate) fn may_change_neighbours(plan: &FormPlan) -> bool {
    needs_balance(plan) || x87::uses_stack(&plan.anatomy.sample)
}

#[cfg(test)]
mod tests {
    use super::super::filler_curves::{FillerCurve, FillerCurves};
    use super::super::survey_effort::SurveyEffort;
    use super::super::timing::ProgramTimer;
    use super::*;
    use crate::forms::form_anatomy::FormAnatomy;
    use crate::selection::{FormCriteria, list_forms};
    use cyclescope_code::asm::CodeMode;
    use cyclescope_code::clock::Clock;
    use cyclescope_core::machine::Machine;
    use cyclescope_sim::{CoreModel, Scenario, SimulatedCore};

    fn plan(name: &str) -> FormPlan {
        let criteria = FormCriteria { filters: vec![name.to_string()], ..FormCriteria::default() };
        let target = criteria.select(list_forms(CodeMode::default())).unwrap().remove(0);
        FormPlan::new(FormAnatomy::from_form(target.form).unwrap(), &Machine::detect().features, &target)
    }

    #[test]
    fn periods_are_whole_groups_that_units_do_not_limit() {
        let plan = plan("Imul_r64_rm64 r64, r64");
        let timer = ProgramTimer::new(Clock::find_named("rdtscp-lfence").unwrap(), 2.0, 3.0, CodeMode::Bits64);
        let curves = FillerCurves::default();
        let effort = SurveyEffort::FULL;
        let form = FormMeasurement { timer: &timer, effort, plan: &plan, earlier: &[], filler_curves: &curves };
        for (width, rthroughput, slots) in
            [(8.0, 1.0, 1), (8.0, 0.25, 2), (4.0, 0.25, 4), (6.0, 5.0, 7), (7.97, 10.0, 1)]
        {
            let attempt = SlotAttempt { number: 1, slots, all_numbers: false };
            let shapes = form.list_shapes(attempt, &[SlotFiller::ZeroIdiom], false, rthroughput, width);
            let group = width.round() as usize;
            for shape in &shapes {
                assert_eq!((shape.fillers + slots) % group, 0, "{shape:?}");
                assert!((shape.fillers + slots) as f64 / width >= SLACK_FACTOR * rthroughput, "{shape:?}");
            }
            assert_eq!(shapes[1].fillers - shapes[0].fillers, group);
        }
    }

    #[test]
    fn calls_are_as_long_as_the_clock_needs() {
        let plan = plan("Imul_r64_rm64 r64, r64");
        let curves = FillerCurves::default();
        let call = |step: f64, slots: f64| {
            let timer = ProgramTimer::new(Clock::find_named("rdtscp-lfence").unwrap(), step, 3.0, CodeMode::Bits64);
            let effort = SurveyEffort::FULL;
            let form = FormMeasurement { timer: &timer, effort, plan: &plan, earlier: &[], filler_curves: &curves };
            form.choose_call_cycles(slots)
        };
        assert_eq!((call(2.0, 24.0), call(26.0, 1_000.0)), (CALL_CYCLES_LEAST, CALL_CYCLES_MOST));
        assert!((call(26.0, 48.0) / 26.0 - 480.0).abs() < 1e-9, "a tenth of a slot is worth a step");
    }

    #[test]
    fn layouts_that_do_not_fit_the_scale_count_no_slots() {
        let plan = plan("Imul_r64_rm64 r64, r64");
        let model = CoreModel { width: 6, integer_ports: 5, ..CoreModel::from_seed(1) };
        let mut core = SimulatedCore::with_scenario(model, Scenario { step: 2, ..Scenario::default() }, 5);
        let clock = Clock::find_named("rdtscp-lfence").unwrap();
        let timer = ProgramTimer::new(clock, 2.0, 3.0, CodeMode::Bits64);
        let mut random = Random::new(3);
        let scale = FillerCurves::measure(&timer, &mut core, &Machine::detect().features, &mut random).unwrap();
        let mut count = |factor: f64| {
            let mut curves: Vec<FillerCurve> = scale.clone().into();
            curves.iter_mut().flat_map(|curve| &mut curve.points).for_each(|point| point.1 *= factor);
            let filler_curves = FillerCurves::from(curves);
            let effort = SurveyEffort::FULL;
            let form =
                FormMeasurement { timer: &timer, effort, plan: &plan, earlier: &[], filler_curves: &filler_curves };
            let attempt = SlotAttempt { number: 0, slots: 1, all_numbers: false };
            let shapes = form.list_shapes(attempt, &[SlotFiller::ZeroIdiom], false, 1.0, 6.0);
            let readings = form.time_shapes(&mut core, &shapes, 2, 1.0, 6.0, &mut random).unwrap();
            assert_eq!(readings.len(), 2);
            readings.iter().map(|reading| (reading.cycles.len(), reading.disturbed.len())).collect::<Vec<_>>()
        };
        assert_eq!(count(1.0), [(2, 0); 2]);
        assert_eq!(count(0.96), [(0, 2); 2], "something else used the core beside the bodies");
        assert_eq!(count(1.04), [(0, 2); 2], "something else used the core while the scale was measured");
    }

    #[test]
    fn forms_that_fillers_cannot_surround_say_why() {
        let obstacle = |name: &str, cycles| FormMeasurement::find_slot_obstacle(&plan(name), cycles, 8.0);
        assert_eq!(obstacle("Imul_r64_rm64 r64, r64", 1.0), None);
        assert_eq!(obstacle("Imul_r64_rm64 r64, r64", 30.0), Some(SlotObstacle::Slow(30.0)));
        assert_eq!(obstacle("Jmp_rel8_64", 1.0), Some(SlotObstacle::Branch));
        assert_eq!(obstacle("Movnti_m64_r64", 1.0), Some(SlotObstacle::NonTemporal));
        assert_eq!(obstacle("Wbinvd", 1.0), Some(SlotObstacle::Empties));
    }
}

//! Random mixes of instructions: how well the ports that `ports` finds predict their time, beside simpler
//! predictions and llvm-mca. The mixes are none of those that the ports were found from.

use crate::lab::{Lab, SectionResult};
use cyclescope::asm::CodeMode;
use cyclescope::executor::PrivilegeRing;
use cyclescope::executor::user::UserOptions;
use cyclescope::random::Random;
use cyclescope::record::MixPartRecord;
use cyclescope::result::answers::MachineAnswers;
use cyclescope::run::RunRequest;
use cyclescope::statistics::{mean, median};
use cyclescope::study::instr::experiments::slot_judgement::SlotVerdict;
use cyclescope::study::instr::forms::target_form::TargetForm;
use cyclescope::study::instr::mixes::mix::Mix;
use cyclescope::study::instr::mixes::mix_form::MixForm;
use cyclescope::study::instr::mixes::mix_order::MixOrder;
use cyclescope::study::instr::mixes::mix_timer::{MixEffort, MixOutcome, MixTime, MixTimer};
use cyclescope::study::instr::selection::{full_name, list_forms};
use cyclescope::study::ports::mix_ports::MixedForm;
use cyclescope::study::ports::ports_comparison::PortsTable;
use cyclescope::study::ports::ports_plan::{PortsPlan, PortsQuestion};
use cyclescope::study::ports::ports_row::PortsRow;
use cyclescope::study::ports::{PortsStudy, ResumedPorts};
use cyclescope::study::{GenericSession, Study};
use std::io::Write;
use std::process::{Command, Stdio};
use std::time::Instant;

/// Time limits of the ports of all forms, quick and at the default effort.
const QUICK_SECONDS: f64 = 45.0;
const FULL_SECONDS: f64 = 180.0;
/// Forms of more slots or core cycles are left out of the shares.
const SLOTS_MOST: usize = 4;
const CYCLES_MOST: f64 = 14.0;
/// Smallest share of these forms that has slots and resources, and of those, that has one solution.
const RESOURCES_SHARE: f64 = 0.95;
const ONE_SOLUTION_SHARE: f64 = 0.8;
/// Smallest share of forms with the same verdict in two surveys.
const SAME_VERDICT_SHARE: f64 = 0.98;
/// Random mixes, forms of each, and most copies of a form.
const MIXES: usize = 2000;
const MIX_FORMS: usize = 5;
const COPIES_MOST: usize = 4;
/// Largest errors of the prediction, as a share of the measured time.
const MEAN_ERROR: f64 = 0.06;
const MEDIAN_ERROR: f64 = 0.02;
/// Iterations that llvm-mca simulates.
const MCA_ITERATIONS: usize = 30;

/// Runs the section.
pub fn check_mixes(lab: &mut Lab) -> SectionResult {
    let quick = survey_ports(lab, true, QUICK_SECONDS)?;
    let (rows, table) = survey_ports(lab, false, FULL_SECONDS)?;
    demand_shares(lab, &rows);
    let verdicts = |rows: &[PortsRow]| rows.iter().map(|row| row.verdict).collect::<Vec<_>>();
    let pairs: Vec<_> = verdicts(&rows).into_iter().zip(verdicts(&quick.0)).collect();
    let same = pairs.iter().filter(|(one, other)| one == other).count();
    let met = same as f64 >= SAME_VERDICT_SHARE * pairs.len() as f64;
    let text = format!("a quick survey of ports has the same verdicts in {:.0} %", 100.0 * SAME_VERDICT_SHARE);
    lab.record_demand(&text, Some(met), format!("{same} of {}", pairs.len()));
    compare_predictions(lab, &rows, &table)
}

/// The ports of all forms.
fn survey_ports(lab: &mut Lab, quick: bool, limit: f64) -> SectionResult<(Vec<PortsRow>, PortsTable)> {
    let started = Instant::now();
    let forms = list_forms(CodeMode::Bits64);
    let plan = lab.make_plan(&RunRequest { quick, ..RunRequest::default() })?;
    let session = GenericSession {
        version: env!("CARGO_PKG_VERSION").to_string(),
        seed: plan.seed,
        quick,
        clock: plan.clock.name.to_string(),
        executor: "user".to_string(),
        cpu: lab.cpu as u32,
        subjects: forms.iter().map(full_name).collect(),
        counters: None,
    };
    let plan = PortsPlan::new(plan, PortsQuestion::Forms, session, String::new(), &lab.machine);
    let (machine, options) = (lab.machine.clone(), UserOptions { cpu: lab.cpu, ..UserOptions::default() });
    let open = move || {
        let user = cyclescope::executor::user::UserExecutor::spawn_on(machine.clone(), &options)?;
        Ok(Box::new(user) as Box<dyn cyclescope::executor::Executor>)
    };
    let facts = serde_json::to_value(&lab.machine)?;
    let mut study = PortsStudy::new(plan, forms, facts, String::new(), Box::new(open), ResumedPorts::default());
    study.measure(&MachineAnswers::live(), &mut Vec::new()).map_err(|stop| format!("{stop:?}"))?;
    let seconds = started.elapsed().as_secs_f64();
    let name = if quick { "quick" } else { "default" };
    let (rows, classes) = (study.rows, study.classes.ok_or("the survey has no classes")?);
    println!("{name}: {} forms and {} classes in {seconds:.0} s", rows.len(), classes.classes.len());
    let text = format!("the ports of all forms take at most {limit:.0} s, {name}");
    lab.record_demand(&text, Some(seconds <= limit), format!("{seconds:.1} s"));
    Ok((rows.clone(), PortsTable::from_records(rows, classes)))
}

/// The certain slots of a form.
fn certain_slots(row: &PortsRow) -> Option<usize> {
    row.slots.as_ref().filter(|slots| slots.verdict == SlotVerdict::Exact)?.whole
}

/// Requires that most short forms have resources, and most of these one solution.
fn demand_shares(lab: &mut Lab, rows: &[PortsRow]) {
    let is_short = |row: &&PortsRow| {
        let slots = row.slots.as_ref().and_then(|slots| slots.count.value);
        slots.is_none_or(|slots| slots < SLOTS_MOST as f64 + 0.5)
            && row.cycles.value.is_some_and(|cycles| cycles <= CYCLES_MOST)
    };
    let short: Vec<&PortsRow> = rows.iter().filter(is_short).collect();
    let known: Vec<&&PortsRow> =
        short.iter().filter(|row| certain_slots(row).is_some() && !row.resources.is_empty()).collect();
    let one = known.iter().filter(|row| row.solutions == 1).count();
    for (what, count, all, least) in [
        ("of short forms have slots and resources", known.len(), short.len(), RESOURCES_SHARE),
        ("of these have one solution", one, known.len(), ONE_SOLUTION_SHARE),
    ] {
        let text = format!("at least {:.0} % {what}", 100.0 * least);
        let met = count as f64 >= least * all as f64;
        lab.record_demand(&text, Some(met), format!("{count} of {all}, {:.1} %", 100.0 * count as f64 / all as f64));
    }
}

/// A form with known ports.
struct PredictedForm<'a> {
    row: &'a PortsRow,
    slots: usize,
    alone: f64,
}

/// Errors of a predictor, as shares of the measured times.
struct PredictorErrors {
    name: &'static str,
    errors: Vec<f64>,
}

impl PredictorErrors {
    fn new(name: &'static str) -> PredictorErrors {
        PredictorErrors { name, errors: Vec::new() }
    }

    fn add(&mut self, predicted: Option<f64>, measured: f64) {
        self.errors.extend(predicted.map(|predicted| predicted / measured - 1.0));
    }

    /// Mean and median of the absolute errors.
    fn summarize(&self) -> Option<[f64; 2]> {
        let mut sizes: Vec<f64> = self.errors.iter().map(|error| error.abs()).collect();
        (!sizes.is_empty()).then(|| [mean(&sizes), median(&mut sizes)])
    }
}

/// Times random mixes of forms with known ports, and compares predictions with them.
fn compare_predictions(lab: &mut Lab, rows: &[PortsRow], table: &PortsTable) -> SectionResult {
    let plan = lab.make_plan(&RunRequest::default())?;
    let mut executor = lab.spawn_executor()?;
    let timing = lab.survey_timing(&mut executor, &plan)?;
    let targets: Vec<TargetForm> = list_forms(CodeMode::Bits64);
    let (mut known, mut mixed) = (Vec::new(), Vec::new());
    for (row, target) in rows.iter().zip(&targets) {
        let form = MixForm::new(target, &lab.machine.features, PrivilegeRing::Three);
        if let (Some(_), Some(slots), Some(alone), Ok(form)) = (&row.ports, certain_slots(row), row.cycles.value, form)
        {
            known.push(PredictedForm { row, slots, alone });
            mixed.push(form);
        }
    }
    if known.len() < MIX_FORMS {
        return Err("too few forms have known ports".into());
    }
    let mut random = Random::new(lab.next_seed());
    MixTimer::measure_latencies(timing, &mut executor, &mut mixed, &mut random)?;
    let timer = MixTimer::new(timing, &mixed, MixEffort::FULL, plan.confidence);
    // Not every draw fits into the registers.
    let mut mixes: Vec<Mix> = Vec::new();
    while mixes.len() < MIXES {
        let mut parts: Vec<(usize, usize)> = Vec::new();
        while parts.len() < MIX_FORMS {
            let form = random.below(known.len());
            if parts.iter().all(|(chosen, _)| *chosen != form) {
                parts.push((form, 1 + random.below(COPIES_MOST)));
            }
        }
        let mix = Mix::new(parts);
        if timer.build_body(&mix, MixOrder::Blocks).is_ok() {
            mixes.push(mix);
        }
    }
    let outcomes = timer.time_mixes(&mut executor, &mixes, &mut random)?;
    let mut ports = PredictorErrors::new("best assignment to ports");
    let mut slots = PredictorErrors::new("slots / slots per cycle");
    let mut slowest = PredictorErrors::new("slowest form alone");
    let mut mca = PredictorErrors::new("llvm-mca -mcpu=native");
    for (mix, outcome) in mixes.iter().zip(&outcomes) {
        let MixOutcome::Timed(MixTime { cycles, .. }) = outcome else { continue };
        let forms = || mix.parts.iter().map(|part| (&known[part.form], part.count));
        let parts: Vec<MixPartRecord> = forms()
            .map(|(form, count)| MixPartRecord { code: form.row.code.clone(), form: form.row.name(), count })
            .collect();
        let operands = forms().map(|(form, _)| form.row.operands.as_str());
        let asked: Vec<MixedForm> =
            parts.iter().zip(operands).map(|(part, operands)| MixedForm { part, operands }).collect();
        ports.add(table.limit_mix(&asked).ports.cycles, *cycles);
        let all: usize = forms().map(|(form, count)| form.slots * count).sum();
        slots.add(Some(all as f64 / table.width()), *cycles);
        let longest = forms().map(|(form, count)| form.alone * count as f64).fold(0.0, f64::max);
        slowest.add(Some(longest), *cycles);
        mca.add(simulate_mix(&timer, mix)?, *cycles);
    }
    println!("{:<28} {:>6} {:>8} {:>8} {:>10}", "prediction", "mixes", "mean", "median", "too low by 1 %");
    for predictor in [&ports, &slots, &slowest, &mca] {
        let Some([mean, median]) = predictor.summarize() else {
            println!("{:<28}   none", predictor.name);
            continue;
        };
        let low = predictor.errors.iter().filter(|error| **error < -0.01).count();
        let all = predictor.errors.len();
        println!("{:<28} {all:>6} {:>6.1} % {:>6.1} % {low:>10}", predictor.name, 100.0 * mean, 100.0 * median);
    }
    let [mean, median] = ports.summarize().ok_or("no mix has a time")?;
    for (what, error, most) in [("mean", mean, MEAN_ERROR), ("median", median, MEDIAN_ERROR)] {
        let text =
            format!("the {what} error of {MIXES} random mixes of {MIX_FORMS} forms is at most {:.0} %", 100.0 * most);
        let figure = format!("{:.2} % of {} mixes", 100.0 * error, ports.errors.len());
        lab.record_demand(&text, Some(error <= most), figure);
    }
    Ok(())
}

/// Core cycles of a mix by llvm-mca. `None` where it is not installed, or does not know a form.
fn simulate_mix(timer: &MixTimer, mix: &Mix) -> SectionResult<Option<f64>> {
    let Ok(body) = timer.build_body(mix, MixOrder::list(2)[1]) else { return Ok(None) };
    let iterations = format!("-iterations={MCA_ITERATIONS}");
    let mut command = Command::new("llvm-mca");
    command.args(["-mcpu=native", &iterations]).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let Ok(mut child) = command.spawn() else { return Ok(None) };
    let text = format!(".intel_syntax noprefix\n{}\n", body.to_assembly().replace("; ", "\n"));
    // It may end early.
    let _ = child.stdin.take().ok_or("a pipe")?.write_all(text.as_bytes());
    let output = child.wait_with_output()?;
    let cycles = read_total_cycles(&String::from_utf8_lossy(&output.stdout));
    Ok(cycles.map(|cycles| cycles / (MCA_ITERATIONS * body.repeats) as f64))
}

/// The line `Total Cycles:` of llvm-mca.
fn read_total_cycles(text: &str) -> Option<f64> {
    text.lines().find_map(|line| line.strip_prefix("Total Cycles:"))?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_are_shares_of_the_measured_time() {
        let mut errors = PredictorErrors::new("any");
        assert_eq!(errors.summarize(), None);
        for (predicted, measured) in [(Some(2.0), 4.0), (Some(5.0), 4.0), (None, 4.0), (Some(4.0), 4.0)] {
            errors.add(predicted, measured);
        }
        assert_eq!(errors.errors, [-0.5, 0.25, 0.0]);
        assert_eq!(errors.summarize(), Some([0.25, 0.25]));
    }

    #[test]
    fn total_cycles_are_read_from_the_summary() {
        assert_eq!(read_total_cycles("Iterations:        30\nTotal Cycles:      607\nTotal uOps: 9\n"), Some(607.0));
        assert_eq!(read_total_cycles("error: no such instruction\n"), None);
    }
}

//! Counts the events of a form, and finds the ports of its µops by blocking.
//!
//! Blocking: a form stands among many instructions that keep a set of ports busy. Those of its µops
//! that may use other ports do so. The µops that the set's counters see beyond the blocking
//! instructions can use no port outside. Sets are tried in order of size; µops that a smaller set
//! explains are subtracted (A. Abel and J. Reineke, "uops.info", ASPLOS 2019).
//!
//! Limits: a core may leave µops to a blocked port for a time. Then the count is no whole number, and
//! no ports are reported.

use super::branch::is_branch;
use super::counted_programs::{BodyPair, CountedPrograms, count_programs};
use super::experiment::{ExperimentMeaning, FormExperiment};
use super::form_measurement::LOOPS_MOST;
use super::form_plan::FormPlan;
use super::port_blockers::{PortBlocker, find_blockers, find_whole, read_port_counts, split_by_whole};
use super::port_usage::{PortShare, PortUsage};
use super::slot_search::may_change_neighbours;
use super::timing::{LoopedProgram, ProgramTimer};
use crate::bodies::counted_body::{accesses_memory, build_counted_body};
use cyclescope_core::error::{Error, RunError};
use cyclescope_core::random::Random;
use cyclescope_events::CounterRequest;
use cyclescope_exec::Executor;
use cyclescope_measure::EventPlan;
use cyclescope_measure::result::answers::MachineAnswers;
use cyclescope_measure::result::counter_record::CountedEvents;

/// Approximate core cycles of a program's longest call.
const CALL_CYCLES: f64 = 16_000.0;
/// Instances in the shorter body: alone, and among blockers.
const COPIES: usize = 24;
const BLOCKED_COPIES: usize = 4;
/// Blockers keep their ports busy for this many times as long as an instance takes, and some cycles
/// more, so that they wait for their ports all the time.
const BUSY_FACTOR: f64 = 2.0;
const BUSY_CYCLES: f64 = 8.0;
/// Upper limit of blockers after an instance.
const BLOCKERS_MOST: usize = 192;

/// How a form's events are counted.
pub(crate) enum CountedForm {
    /// Nothing else is counted.
    Exact(Box<CountedPrograms>),
    /// They can't be counted alone, for this reason.
    Inexact(String),
}

/// Programs that count the events of a form. An instance takes about this many core cycles.
pub(crate) fn prepare_counted(
    timer: &ProgramTimer,
    plan: &FormPlan,
    cycles: f64,
    blocker: Option<(&PortBlocker, usize)>,
) -> CountedForm {
    let inexact = |why: &str| CountedForm::Inexact(why.to_string());
    let pair = |bodies: Option<[(FormExperiment, usize, usize); 2]>| {
        let [short, long] = bodies?;
        let loops = (CALL_CYCLES / 4.0 / (cycles * long.2 as f64)).clamp(1.0, LOOPS_MOST as f64) as u64;
        let looped = |(experiment, repeats, copies): (FormExperiment, usize, usize)| {
            let FormExperiment { world, init, period, .. } = experiment;
            LoopedProgram { program: timer.build_program(world, &init, &period, repeats), copies, loops }
        };
        Some(BodyPair { short: looped(short), long: looped(long) })
    };
    if plan.is_sequence() || is_branch(&plan.anatomy.sample) {
        let is_rate = |one: &&FormExperiment| {
            matches!(one.meaning, ExperimentMeaning::Throughput { burdened: false, variant: None, .. })
        };
        let Some(first) = plan.experiments.iter().find(is_rate).filter(|_| blocker.is_none()) else {
            return inexact("other instructions around each instance can't be counted alone");
        };
        let repeats = COPIES.div_ceil(first.copies);
        let bodies = [repeats, 2 * repeats].map(|repeats| (first.clone(), repeats, repeats * first.copies));
        let body = pair(Some(bodies)).expect("two bodies are given");
        return CountedForm::Exact(Box::new(CountedPrograms { body, control: None }));
    }
    if may_change_neighbours(plan)
        && build_counted_body(&plan.anatomy, 1, None).is_none_or(|body| body.control.is_none())
    {
        return inexact("what balances the x87 stack around each instance can't be counted alone");
    }
    let most = if blocker.is_some() { BLOCKED_COPIES } else { COPIES };
    let copies = ((CALL_CYCLES / 8.0 / cycles) as usize).clamp(1, most);
    let blocking = blocker.map(|(blocker, count)| (&blocker.plan.anatomy, count));
    let bodies = [copies, 2 * copies].map(|copies| (build_counted_body(&plan.anatomy, copies, blocking), copies));
    let [(Some(short), few), (Some(long), many)] = bodies else {
        return inexact("no program with instances alone can be written");
    };
    let experiment =
        |code: &[u8], of: &crate::bodies::slot_body::SlotBody| plan.body_experiment(code, &of.init, String::new());
    let body = experiment(&short.period, &short).zip(experiment(&long.period, &long));
    let Some(body) = pair(body.map(|(short, long)| [(short, 1, few), (long, 1, many)])) else {
        return inexact("no program with instances alone can be written");
    };
    let control = short.control.as_ref().zip(long.control.as_ref()).and_then(|(fewer, more)| {
        let bodies = experiment(fewer, &short).zip(experiment(more, &long));
        pair(bodies.map(|(short, long)| [(short, 1, few), (long, 1, many)]))
    });
    CountedForm::Exact(Box::new(CountedPrograms { body, control }))
}

/// Counts the events of all forms of a survey.
pub struct FormCounter {
    events: EventPlan,
    ports: Option<PortCounter>,
    confidence: f64,
}

/// Finds the ports of µops.
struct PortCounter {
    events: EventPlan,
    /// The names of the ports' counters.
    names: Vec<String>,
    blockers: Vec<PortBlocker>,
}

/// The events of a form, and the ports of its µops.
pub(crate) struct FormCounts {
    pub(crate) events: CountedEvents,
    pub(crate) ports: Option<PortUsage>,
}

impl FormCounter {
    /// Plans to count these events.
    ///
    /// # Errors
    ///
    /// If the executor does not count one of the events.
    pub fn new(
        request: &CounterRequest,
        executor: &dyn Executor,
        answers: &MachineAnswers,
        confidence: f64,
    ) -> Result<FormCounter, Error> {
        let events = EventPlan::new(request, executor, answers)?;
        let ports = match request.select_ports() {
            Some(ports) => Some(PortCounter {
                events: EventPlan::new(&ports, executor, answers)?,
                names: ports.columns.iter().map(|(name, _)| name.clone()).collect(),
                blockers: Vec::new(),
            }),
            None => None,
        };
        Ok(FormCounter { events, ports, confidence })
    }

    /// Whether ports are counted, which needs blockers.
    pub(crate) fn counts_ports(&self) -> bool {
        self.ports.is_some()
    }

    /// Finds instructions that block ports among these candidates.
    pub(crate) fn find_blockers(
        &mut self,
        timer: &ProgramTimer,
        executor: &mut dyn Executor,
        candidates: Vec<FormPlan>,
        random: &mut Random,
    ) -> Result<(), RunError> {
        if let Some(ports) = &mut self.ports {
            let events = (&ports.events, self.confidence);
            ports.blockers = find_blockers(timer, executor, candidates, events, random)?;
        }
        Ok(())
    }

    /// Counts the events of a form whose instance takes this many core cycles.
    pub(crate) fn count_form(
        &self,
        timer: &ProgramTimer,
        executor: &mut dyn Executor,
        plan: &FormPlan,
        cycles: f64,
        random: &mut Random,
    ) -> Result<FormCounts, RunError> {
        let cycles = cycles.max(0.1);
        let lost = |why: String| FormCounts {
            events: self.events.lose_counts(&why),
            ports: self.ports.as_ref().map(|_| PortUsage::unclear(None, why)),
        };
        let programs = match prepare_counted(timer, plan, cycles, None) {
            CountedForm::Exact(programs) => *programs,
            CountedForm::Inexact(why) => return Ok(lost(why)),
        };
        let events = (&self.events, self.confidence);
        let one = std::slice::from_ref(&programs);
        let counted = match count_programs(executor, one, plan.surroundings, events, random) {
            Err(error) if !error.is_harness_failure() => return Ok(lost(error.to_string())),
            counted => counted?.swap_remove(0),
        };
        let ports = match &self.ports {
            Some(ports) => {
                Some(ports.find_ports(timer, executor, (plan, programs), cycles, self.confidence, random)?)
            }
            None => None,
        };
        Ok(FormCounts { events: counted, ports })
    }
}

impl PortCounter {
    fn find_ports(
        &self,
        timer: &ProgramTimer,
        executor: &mut dyn Executor,
        (plan, alone): (&FormPlan, CountedPrograms),
        cycles: f64,
        confidence: f64,
        random: &mut Random,
    ) -> Result<PortUsage, RunError> {
        let (mut programs, mut blocking) = (vec![alone], Vec::new());
        for blocker in &self.blockers {
            let count = ((BUSY_FACTOR * cycles + BUSY_CYCLES) / blocker.cycles).ceil() as usize;
            if count > BLOCKERS_MOST {
                continue;
            }
            let busy = cycles.max(count as f64 * blocker.cycles);
            if let CountedForm::Exact(blocked) = prepare_counted(timer, plan, busy, Some((blocker, count))) {
                blocking.push((blocker, if blocked.control.is_some() { 0 } else { count }));
                programs.push(*blocked);
            }
        }
        let mut surroundings = plan.surroundings;
        for (blocker, _) in &blocking {
            surroundings.touches_memory |= accesses_memory(&blocker.plan.anatomy);
            surroundings.vectors = surroundings.vectors.max(blocker.plan.surroundings.vectors);
        }
        let counted = match count_programs(executor, &programs, surroundings, (&self.events, confidence), random) {
            Err(error) if !error.is_harness_failure() => return Ok(PortUsage::unclear(None, error.to_string())),
            counted => counted?,
        };
        let counts: Option<Vec<Vec<f64>>> = counted.iter().map(read_port_counts).collect();
        let Some((alone, blocked)) = counts.as_ref().and_then(|counts| counts.split_first()) else {
            return Ok(PortUsage::unclear(None, "a counter of a port was lost"));
        };
        let blocked: Vec<BlockedCount> = blocking
            .iter()
            .zip(blocked)
            .map(|((blocker, extra), counts)| {
                let seen: f64 = blocker.ports.iter().map(|port| counts[*port]).sum();
                BlockedCount { ports: blocker.ports.clone(), uops: seen - *extra as f64 * blocker.uops }
            })
            .collect();
        let known: Vec<&[usize]> = self.blockers.iter().map(|blocker| blocker.ports.as_slice()).collect();
        let uops = Some(alone.iter().sum());
        Ok(match assign_ports(alone, &blocked, &known) {
            Ok(sets) => {
                let share = |(ports, uops): (Vec<usize>, u32)| PortShare {
                    ports: ports.into_iter().map(|port| self.names[port].clone()).collect(),
                    uops,
                };
                PortUsage { uops, shares: sets.into_iter().map(share).collect(), why: None }
            }
            Err(why) => PortUsage::unclear(uops, why),
        })
    }
}

/// The µops of a form on blocked ports.
#[derive(Debug, Clone)]
struct BlockedCount {
    ports: Vec<usize>,
    uops: f64,
}

/// The sets of ports of a form's µops, from the counts of each port in code of the form alone, and
/// from blocked sets in ascending order of size. `known`: the sets that any instruction blocks.
fn assign_ports(alone: &[f64], blocked: &[BlockedCount], known: &[&[usize]]) -> Result<Vec<(Vec<usize>, u32)>, String> {
    let total: f64 = alone.iter().sum();
    let Some(total) = find_whole(total) else {
        return Err(format!("{total:.2} µops in all is no whole number"));
    };
    let mut sets: Vec<(Vec<usize>, u32)> = Vec::new();
    for BlockedCount { ports, uops } in blocked {
        let inside = sets.iter().filter(|(set, _)| set.iter().all(|port| ports.contains(port)));
        let explained: u32 = inside.map(|(_, uops)| *uops).sum();
        let Some(own) = find_whole(uops - f64::from(explained)) else {
            return Err(format!("{uops:.2} µops on blocked ports is no whole number"));
        };
        if own == 0 {
            continue;
        }
        // A smaller set that could not be blocked beside this form explains the µops as well.
        let used: Vec<usize> = ports.iter().copied().filter(|port| alone[*port] > NO_USE).collect();
        let is_inside = |set: &[usize]| set.len() < ports.len() && set.iter().all(|port| ports.contains(port));
        let is_open = |set: &[usize]| !blocked.iter().any(|one| one.ports == set);
        if known.iter().any(|set| is_inside(set) && is_open(set) && used.iter().all(|port| set.contains(port))) {
            return Err("a smaller set of ports can't be blocked beside it".to_string());
        }
        sets.push((ports.clone(), own));
    }
    let assigned: u32 = sets.iter().map(|(_, uops)| *uops).sum();
    if assigned < total {
        // Ports that no instruction blocks, and that no other µop of the form uses.
        let rest = |(port, uops): (usize, &f64)| {
            let is_assigned = sets.iter().any(|(set, _)| set.contains(&port));
            if is_assigned { 0.0 } else { *uops }
        };
        let rest: Vec<f64> = alone.iter().enumerate().map(rest).collect();
        sets.extend(split_by_whole(&rest).unwrap_or_default());
    }
    let assigned: u32 = sets.iter().map(|(_, uops)| *uops).sum();
    match assigned == total {
        true => Ok(sets),
        false => Err(format!("{assigned} of {total} µops have known ports")),
    }
}

/// A port with fewer µops than this per instance is not used.
const NO_USE: f64 = 0.02;

#[cfg(test)]
mod tests {
    use super::*;

    fn blocked(ports: &[usize], uops: f64) -> BlockedCount {
        BlockedCount { ports: ports.to_vec(), uops }
    }

    #[test]
    fn smaller_sets_explain_a_part_of_larger_ones() {
        let known: [&[usize]; 3] = [&[0], &[0, 1], &[0, 1, 2]];
        let counts = [blocked(&[0], 1.02), blocked(&[0, 1], 0.98), blocked(&[0, 1, 2], 3.0)];
        let sets = assign_ports(&[1.3, 0.9, 0.8], &counts, &known);
        assert_eq!(sets, Ok(vec![(vec![0], 1), (vec![0, 1, 2], 2)]));
        // Blocking port 0 alone was impossible, and the form may use no other.
        let open = assign_ports(&[1.0, 0.0, 0.0], &counts[1..], &known);
        assert!(open.is_err(), "{open:?}");
    }

    #[test]
    fn counts_that_fit_no_ports_give_none() {
        let known: [&[usize]; 1] = [&[0, 1]];
        let find = |alone: &[f64], uops| assign_ports(alone, &[blocked(&[0, 1], uops)], &known);
        assert_eq!(find(&[0.5, 0.5, 0.0], 1.0), Ok(vec![(vec![0, 1], 1)]));
        // The port of a unit that no instruction blocks.
        assert_eq!(find(&[0.5, 0.5, 1.0], 1.0), Ok(vec![(vec![0, 1], 1), (vec![2], 1)]));
        assert!(find(&[0.5, 0.5, 0.0], 0.6).is_err() && find(&[0.5, 0.3, 0.0], 1.0).is_err());
        assert_eq!(find(&[1.0, 0.0, 0.0], 1.0), Ok(vec![(vec![0, 1], 1)]), "no instruction uses port 0 alone");
        assert!(find(&[0.5, 1.0, 0.5], 1.0).is_err(), "a µop is left");
        assert_eq!(find(&[0.0, 0.0, 0.0], 0.0), Ok(Vec::new()), "an eliminated move");
    }
}

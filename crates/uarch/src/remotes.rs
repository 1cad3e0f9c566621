//! CPUs that exchange messages, each with an executor of its own, through a line that all of them have in common.

use super::exchange::{Asked, Pairs, Turns};
use super::test::walk::code;
use cyclescope_code::clock::Clock;
use cyclescope_code::program::memory::{Area, At, Fill, Frames, Lifetime, Memory, PAGE, Pointer};
use cyclescope_code::program::{Program, Recipe};
use cyclescope_core::error::RunError;
use cyclescope_exec::{Batch, Call, OpenOptions, Placed, Ran, Remote};
use cyclescope_measure::result::answers::Answers;
use cyclescope_measure::schedule::{Pace, Schedule, Stage};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Time for a batch, and for another run to leave the CPU.
const WITHIN: Duration = Duration::from_millis(600);
const PATIENCE: Duration = Duration::from_millis(300);
/// Copies of an exchange in an iteration, and iterations of the shorter call; the longer one has twice as many.
const COPIES: usize = 4;
const ITERATIONS: u64 = 4;
/// Batches, and rounds of each.
const BATCHES: u32 = 4;
const ROUNDS: u32 = 24;
/// The same of a control, each of whose exchanges takes some microseconds.
const CONTROLS: u32 = 3;
const CONTROL_ROUNDS: u32 = 3;
/// Copies of an answer in an iteration, iterations of a call, and calls: some milliseconds.
const LOOKS: usize = 8;
const LOOK_ITERATIONS: u64 = 10_000;
const LOOK_ROUNDS: u32 = 12;
/// How far from the line the one is in which a control answers: in another page and another pair of lines.
const APART: i32 = 4096 + 512;
/// Bytes from one line to the next, in pairs of their own, and pages that all have in common.
const LINES: i32 = 3 * 128;
const PAGES: u64 = 8;

/// Makes the number of the pages another one for each test that runs in this process.
static NUMBER: AtomicU64 = AtomicU64::new(0x636f_7265_0000_0000);

/// The executors, whose answers are kept: a replay makes none.
pub(super) struct Remotes<'a> {
    answers: &'a Answers,
    open: BTreeMap<u32, Result<Remote, String>>,
    number: u64,
}

impl Remotes<'_> {
    pub(super) fn new(answers: &Answers) -> Remotes<'_> {
        Remotes { answers, open: BTreeMap::new(), number: NUMBER.fetch_add(1, Ordering::Relaxed) }
    }
}

impl Pairs for Remotes<'_> {
    fn exchanged(&mut self, asked: &Asked) -> Result<Result<Turns, String>, RunError> {
        let Remotes { answers, open, number } = self;
        answers.get(|| {
            for cpu in asked.cpus {
                let options = OpenOptions { own_code: true, patience: PATIENCE, ..OpenOptions::default() };
                let make = || Remote::open(cpu, options).map_err(|error| error.to_string());
                open.entry(cpu).or_insert_with(make);
            }
            let [asks, answers] = asked.cpus.map(|cpu| open[&cpu].as_ref().map_err(Clone::clone));
            let done = asks.and_then(|asks| Ok((asks, answers?)));
            let done = done.and_then(|(asks, answers)| exchange(asked, *number, asks, answers));
            if let Err(why) = &done {
                let why = why.clone();
                for cpu in asked.cpus {
                    match open.get(&cpu) {
                        // Nobody waits for it twice.
                        Some(Ok(remote)) if remote.is_lost() => drop(open.insert(cpu, Err(why.clone()))),
                        // A new one waits for another run again.
                        Some(Ok(_)) => drop(open.remove(&cpu)),
                        _ => {}
                    }
                }
            }
            Ok::<_, RunError>(done)
        })
    }

    fn done_with(&mut self, cpu: u32) {
        self.open.remove(&cpu);
    }
}

/// One side asks while the other one answers.
fn exchange(asked: &Asked, number: u64, asks: &Remote, answers: &Remote) -> Result<Turns, String> {
    let text = |error: RunError| error.to_string();
    let [ask, answer] = batches(asked, number, [asks.clock, answers.clock]);
    let answering = answers.repeat(answer, WITHIN).map_err(text)?;
    let ran = asks.run(ask, WITHIN).map_err(text)?;
    let answered = answering.end(WITHIN).map_err(text)?;
    told(&ran, &answered, batches_of(asked)[1])
}

/// Batches of the side that asks, and rounds of each.
fn batches_of(asked: &Asked) -> [u32; 2] {
    if asked.apart { [CONTROLS, CONTROL_ROUNDS] } else { [BATCHES, ROUNDS] }
}

/// What the side runs that asks, and the one that answers.
fn batches(asked: &Asked, number: u64, [asks, answers]: [&Clock; 2]) -> [Batch; 2] {
    let answer = looped(answers, "", asked.way.answer, LOOKS);
    let looks = Call { place: 0, loop_count: LOOK_ITERATIONS };
    let line = LINES * asked.line as i32;
    let apart = if asked.apart { APART } else { 0 };
    let answer = batch(answer, number, [1, LOOK_ROUNDS], vec![looks], line + apart);
    let ask = looped(asks, asked.way.before, asked.way.ask, COPIES);
    let calls = [1, 2].map(|times| Call { place: 0, loop_count: times * ITERATIONS });
    [batch(ask, number, batches_of(asked), calls.to_vec(), line), answer]
}

/// What both sides ran, where nothing else used their CPUs.
fn told(ran: &Ran, answered: &Ran, rounds: u32) -> Result<Turns, String> {
    if ran.disturbed || answered.disturbed {
        return Err("another run of cyclescope uses one of the two CPUs".to_string());
    }
    Ok(turns(ran, rounds))
}

fn turns(ran: &Ran, rounds: u32) -> Turns {
    let took: Vec<u64> = ran.samples.iter().map(|sample| sample.end.saturating_sub(sample.start)).collect();
    let of_batch = |batch: &[u64]| batch.chunks_exact(2).map(|round| [round[0], round[1]]).collect();
    let batches = took.chunks_exact(2 * rounds as usize).map(of_batch).collect();
    Turns { more: ITERATIONS * COPIES as u64, batches }
}

fn looped(clock: &Clock, before: &str, text: &str, copies: usize) -> Program {
    let (init, snippet) = (code(before), code(text));
    Recipe { init: &init, ..Recipe::looped(clock, &snippet, copies) }.build()
}

/// A batch that runs a program in these layouts and rounds of calls. R14 points this far into the common pages.
fn batch(program: Program, number: u64, [layouts, rounds]: [u32; 2], round: Vec<Call>, shift: i32) -> Batch {
    let length = program.len().next_multiple_of(64) as u32;
    let stage = |number: u32| {
        let code = vec![Placed { program: 0, offset: number * length }];
        Stage::in_order(code, round.clone(), number.into()).with_data(vec![shift])
    };
    let area = Area {
        frames: Frames::Common(number),
        lifetime: Lifetime::Kept,
        pointer: Some(Pointer { register: 14, at: At::Start }),
        ..Area::new(PAGES * PAGE, Fill::Image(Vec::new()))
    };
    let memory = Memory { areas: vec![area], ..Memory::default() };
    let pace = Pace { warm_up: 2, rounds, memory, deadline: WITHIN, ..Pace::default() };
    Schedule::with(vec![program], pace, (0..layouts).map(stage)).into_batch()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::list::TESTS;
    use crate::test::Look;
    use crate::test::exchange::Exchange;
    use cyclescope_core::machine::Machine;
    use cyclescope_exec::DEFAULT;
    use std::collections::BTreeSet;

    fn ways() -> &'static [Exchange; 2] {
        let find = |test: &&'static crate::test::Test| match &test.look {
            Look::Exchanges(asked) => Some(&asked.ways),
            _ => None,
        };
        TESTS.iter().find_map(find).unwrap()
    }

    /// CPUs that this process may use, where it may run code at all.
    fn cpus() -> Vec<u32> {
        let machine = Machine::detect();
        let usable = (DEFAULT.check)(&machine).is_ok();
        machine.topology.allowed.known().filter(|_| usable).cloned().unwrap_or_default()
    }

    #[test]
    fn each_side_ends_by_itself_where_the_other_one_is_gone() {
        let Some(cpu) = cpus().last().copied() else { return };
        let remote = Remote::open(cpu, OpenOptions { own_code: true, ..OpenOptions::default() }).unwrap();
        let within = Duration::from_secs(20);
        for way in ways() {
            for (before, text) in [(way.before, way.ask), ("", way.answer)] {
                let calls = vec![Call { place: 0, loop_count: ITERATIONS }];
                let batch = batch(looped(remote.clock, before, text, COPIES), 0x6f6e_6500, [1, 2], calls, 0);
                let ran = remote.run(batch, within);
                assert_eq!(ran.map(|ran| ran.samples.len()).ok(), Some(2), "{text}");
            }
        }
    }

    #[test]
    fn two_cpus_have_rounds_or_a_reason() {
        let all = cpus();
        let (Some(one), Some(other)) = (all.first(), all.get(1)) else { return };
        let answers = Answers::live();
        let mut remotes = Remotes::new(&answers);
        for apart in [false, true] {
            let asked = Asked { cpus: [*one, *other], way: &ways()[0], line: 31, apart };
            match remotes.exchanged(&asked).unwrap() {
                Ok(turns) => {
                    let [batches, _] = batches_of(&asked);
                    assert!(
                        turns.batches.len() == batches as usize && turns.batches[0].len() > 1,
                        "{turns:?}"
                    );
                }
                Err(why) => assert!(!why.is_empty()),
            }
        }
        let nowhere = Asked { cpus: [*one, 1_000_000], way: &ways()[0], line: 0, apart: false };
        assert!(remotes.exchanged(&nowhere).unwrap().is_err());
    }
    /// Where in the common pages both sides of an exchange through a line are.
    fn places(line: usize, apart: bool) -> [i32; 2] {
        let clock = Clock::named("rdtscp-lfence").expect("it is a timing method");
        let asked = Asked { cpus: [0, 1], way: &ways()[0], line, apart };
        batches(&asked, 1, [clock; 2]).map(|batch| {
            assert!(batch.layouts.iter().all(|layout| layout.data == batch.layouts[0].data));
            batch.layouts[0].data[0]
        })
    }

    /// Bytes that a core fetches together, a pair of lines, and bytes of a page.
    const PAIR: i32 = 128;
    const OF_PAGE: i32 = PAGE as i32;

    #[test]
    fn both_sides_have_a_line_in_common_and_those_of_a_control_have_not_even_a_page() {
        for line in 0..32 {
            let [asks, answers] = places(line, false);
            assert_eq!(asks, answers);
            let [asks, answers] = places(line, true);
            assert_ne!(asks / OF_PAGE, answers / OF_PAGE, "{line}");
            assert_ne!(asks % OF_PAGE / PAIR, answers % OF_PAGE / PAIR, "{line}");
            assert!(answers + PAIR <= PAGES as i32 * OF_PAGE);
        }
    }

    #[test]
    fn each_line_is_in_a_pair_of_its_own() {
        let pairs: BTreeSet<i32> = (0..32).map(|line| places(line, false)[0] / PAIR).collect();
        assert_eq!(pairs.len(), 32);
    }

    /// Each exchange of a control takes all of its tries.
    #[test]
    fn a_control_has_fewer_rounds() {
        let clock = Clock::named("rdtscp-lfence").expect("it is a timing method");
        let rounds = [false, true].map(|apart| {
            let asked = Asked { cpus: [0, 1], way: &ways()[0], line: 0, apart };
            let [ask, _] = batches(&asked, 1, [clock; 2]);
            ask.layouts.len() * ask.rounds as usize
        });
        assert!(rounds[1] * 4 <= rounds[0] && rounds[1] > 0, "{rounds:?}");
    }

    #[test]
    fn where_another_run_uses_a_cpu_there_is_a_reason_and_no_time() {
        let ran = |disturbed| Ran { samples: Vec::new(), disturbed };
        for (one, other) in [(false, false), (true, false), (false, true)] {
            let told = told(&ran(one), &ran(other), 1);
            assert_eq!(told.is_err(), one || other, "{told:?}");
        }
    }
}

//! CPUs that exchange messages through a shared line, each with its own executor.

use super::exchange::{ExchangeMessages, ExchangeRequest, ExchangeTicks};
use super::spec::assemble;
use cyclescope_code::clock::Clock;
use cyclescope_code::program::memory::{
    AreaFill, AreaPointer, MemoryArea, PAGE_BYTES, PhysicalFrames, PointerPosition, ProgramMemory, StoreLifetime,
};
use cyclescope_code::program::{Program, ProgramRecipe};
use cyclescope_core::error::RunError;
use cyclescope_exec::{Batch, OpenOptions, PlacedProgram, ProgramCall, RemoteExecutor, RemoteOutcome};
use cyclescope_measure::result::answers::MachineAnswers;
use cyclescope_measure::schedule::{BatchPace, PlannedLayout, Schedule};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// The longest wait for a batch.
const BATCH_TIMEOUT: Duration = Duration::from_millis(600);
/// The longest wait for another run to leave the CPU.
const PATIENCE: Duration = Duration::from_millis(300);
/// Copies of an exchange per iteration.
const COPIES: usize = 4;
/// Iterations of the shorter call. The longer call has twice as many.
const ITERATIONS: u64 = 4;
/// Number of batches.
const BATCHES: u32 = 4;
/// Rounds per batch.
const ROUNDS: u32 = 24;
/// Batches of a control, whose exchanges take some microseconds each.
const CONTROL_BATCHES: u32 = 3;
/// Rounds per batch of a control.
const CONTROL_ROUNDS: u32 = 3;
/// Copies of an answer per iteration.
const ANSWER_COPIES: usize = 8;
/// Iterations per call of the answering side.
const ANSWER_ITERATIONS: u64 = 10_000;
/// Number of calls of the answering side: some milliseconds.
const ANSWER_ROUNDS: u32 = 12;
/// The offset of the line for a control's answers: in another page and another pair of lines.
const CONTROL_OFFSET: i32 = 4096 + 512;
/// Bytes from one line to the next: each is in its own pair of lines.
const LINE_STRIDE: i32 = 3 * 128;
/// Number of shared pages.
const PAGES: u64 = 8;

/// Gives the shared pages a new identifier for each test of this process.
static NEXT_PAGES_ID: AtomicU64 = AtomicU64::new(0x636f_7265_0000_0000);

/// Executors of other CPUs. Their answers are recorded: a replay creates none.
pub(super) struct RemoteExecutors<'a> {
    answers: &'a MachineAnswers,
    open: BTreeMap<u32, Result<RemoteExecutor, String>>,
    number: u64,
}

impl RemoteExecutors<'_> {
    pub(super) fn new(answers: &MachineAnswers) -> RemoteExecutors<'_> {
        RemoteExecutors { answers, open: BTreeMap::new(), number: NEXT_PAGES_ID.fetch_add(1, Ordering::Relaxed) }
    }
}

impl ExchangeMessages for RemoteExecutors<'_> {
    fn exchange_messages(&mut self, asked: &ExchangeRequest) -> Result<Result<ExchangeTicks, String>, RunError> {
        let RemoteExecutors { answers, open, number } = self;
        answers.ask_machine(|| {
            for cpu in asked.cpus {
                let options = OpenOptions { own_code: true, patience: PATIENCE, ..OpenOptions::default() };
                let make = || RemoteExecutor::open(cpu, options).map_err(|error| error.to_string());
                open.entry(cpu).or_insert_with(make);
            }
            let [asks, answers] = asked.cpus.map(|cpu| open[&cpu].as_ref().map_err(Clone::clone));
            let done = asks.and_then(|asks| Ok((asks, answers?)));
            let done = done.and_then(|(asks, answers)| run_exchange(asked, *number, asks, answers));
            if let Err(why) = &done {
                let why = why.clone();
                for cpu in asked.cpus {
                    match open.get(&cpu) {
                        // A lost executor is not waited for again.
                        Some(Ok(remote)) if remote.is_lost() => drop(open.insert(cpu, Err(why.clone()))),
                        // A new executor waits for other runs again.
                        Some(Ok(_)) => drop(open.remove(&cpu)),
                        _ => {}
                    }
                }
            }
            Ok::<_, RunError>(done)
        })
    }

    fn release_cpu(&mut self, cpu: u32) {
        self.open.remove(&cpu);
    }
}

/// Runs both sides of an exchange at once.
fn run_exchange(
    asked: &ExchangeRequest,
    number: u64,
    asks: &RemoteExecutor,
    answers: &RemoteExecutor,
) -> Result<ExchangeTicks, String> {
    let text = |error: RunError| error.to_string();
    let [ask, answer] = build_batches(asked, number, [asks.clock, answers.clock]);
    let answering = answers.repeat(answer, BATCH_TIMEOUT).map_err(text)?;
    let ran = asks.run(ask, BATCH_TIMEOUT).map_err(text)?;
    let answered = answering.stop(BATCH_TIMEOUT).map_err(text)?;
    check_undisturbed(&ran, &answered, batch_counts(asked)[1])
}

/// Batches of the asking side, and rounds per batch.
fn batch_counts(asked: &ExchangeRequest) -> [u32; 2] {
    if asked.is_control { [CONTROL_BATCHES, CONTROL_ROUNDS] } else { [BATCHES, ROUNDS] }
}

/// The batches of the asking and the answering side.
fn build_batches(asked: &ExchangeRequest, number: u64, [asks, answers]: [&Clock; 2]) -> [Batch; 2] {
    let answer = build_loop(answers, "", asked.program.answer, ANSWER_COPIES);
    let looks = ProgramCall { place: 0, loop_count: ANSWER_ITERATIONS };
    let line = LINE_STRIDE * asked.line as i32;
    let apart = if asked.is_control { CONTROL_OFFSET } else { 0 };
    let answer = build_batch(answer, number, [1, ANSWER_ROUNDS], vec![looks], line + apart);
    let ask = build_loop(asks, asked.program.init, asked.program.ask, COPIES);
    let calls = [1, 2].map(|times| ProgramCall { place: 0, loop_count: times * ITERATIONS });
    [build_batch(ask, number, batch_counts(asked), calls.to_vec(), line), answer]
}

/// The times of an exchange, if nothing else used the CPUs of both sides.
fn check_undisturbed(ran: &RemoteOutcome, answered: &RemoteOutcome, rounds: u32) -> Result<ExchangeTicks, String> {
    if ran.disturbed || answered.disturbed {
        return Err("another run of cyclescope uses one of the two CPUs".to_string());
    }
    Ok(read_ticks(ran, rounds))
}

fn read_ticks(ran: &RemoteOutcome, rounds: u32) -> ExchangeTicks {
    let took: Vec<u64> = ran.samples.iter().map(|sample| sample.whole_duration()).collect();
    let of_batch = |batch: &[u64]| batch.chunks_exact(2).map(|round| [round[0], round[1]]).collect();
    let batches = took.chunks_exact(2 * rounds as usize).map(of_batch).collect();
    ExchangeTicks { more: ITERATIONS * COPIES as u64, batches }
}

fn build_loop(clock: &Clock, before: &str, text: &str, copies: usize) -> Program {
    let (init, snippet) = (assemble(before), assemble(text));
    ProgramRecipe { init: &init, ..ProgramRecipe::with_loop(clock, &snippet, copies) }.build()
}

/// A batch that runs a program in these layouts and rounds of calls. R14 points to this offset in
/// the shared pages.
fn build_batch(
    program: Program,
    number: u64,
    [layouts, rounds]: [u32; 2],
    round: Vec<ProgramCall>,
    shift: i32,
) -> Batch {
    let length = program.len().next_multiple_of(64) as u32;
    let stage = |number: u32| {
        let code = vec![PlacedProgram { program: 0, offset: number * length }];
        PlannedLayout::with_calls_in_order(code, round.clone(), number.into()).with_data(vec![shift])
    };
    let area = MemoryArea {
        frames: PhysicalFrames::Common(number),
        lifetime: StoreLifetime::Kept,
        pointer: Some(AreaPointer { register: 14, at: PointerPosition::Start }),
        ..MemoryArea::new(PAGES * PAGE_BYTES, AreaFill::Image(Vec::new()))
    };
    let memory = ProgramMemory { areas: vec![area], ..ProgramMemory::default() };
    let pace = BatchPace { warm_up: 2, rounds, memory, deadline: BATCH_TIMEOUT, ..BatchPace::default() };
    Schedule::with_layouts(vec![program], pace, (0..layouts).map(stage)).into_batch()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::{ExchangeProgram, Experiment};
    use crate::test_list::TESTS;
    use cyclescope_core::machine::Machine;
    use cyclescope_exec::DEFAULT_OFFER;
    use std::collections::BTreeSet;

    fn variants() -> &'static [ExchangeProgram; 2] {
        let find = |test: &&'static crate::spec::TestSpec| match &test.experiment {
            Experiment::Exchanges(asked) => Some(&asked.programs),
            _ => None,
        };
        TESTS.iter().find_map(find).unwrap()
    }

    /// The CPUs that this process may use, if it may run code at all.
    fn cpus() -> Vec<u32> {
        let machine = Machine::detect();
        let usable = (DEFAULT_OFFER.check)(&machine).is_ok();
        machine.topology.allowed.known().filter(|_| usable).cloned().unwrap_or_default()
    }

    #[test]
    fn each_side_stops_by_itself_without_the_other() {
        let Some(cpu) = cpus().last().copied() else { return };
        let remote = RemoteExecutor::open(cpu, OpenOptions { own_code: true, ..OpenOptions::default() }).unwrap();
        let within = Duration::from_secs(20);
        for variant in variants() {
            for (before, text) in [(variant.init, variant.ask), ("", variant.answer)] {
                let calls = vec![ProgramCall { place: 0, loop_count: ITERATIONS }];
                let batch = build_batch(build_loop(remote.clock, before, text, COPIES), 0x6f6e_6500, [1, 2], calls, 0);
                let ran = remote.run(batch, within);
                assert_eq!(ran.map(|ran| ran.samples.len()).ok(), Some(2), "{text}");
            }
        }
    }

    #[test]
    fn two_cpus_yield_rounds_or_a_reason() {
        let all = cpus();
        let (Some(one), Some(other)) = (all.first(), all.get(1)) else { return };
        let answers = MachineAnswers::live();
        let mut remotes = RemoteExecutors::new(&answers);
        for apart in [false, true] {
            let asked = ExchangeRequest { cpus: [*one, *other], program: &variants()[0], line: 31, is_control: apart };
            match remotes.exchange_messages(&asked).unwrap() {
                Ok(turns) => {
                    let [batches, _] = batch_counts(&asked);
                    assert!(turns.batches.len() == batches as usize && turns.batches[0].len() > 1, "{turns:?}");
                }
                Err(why) => assert!(!why.is_empty()),
            }
        }
        let nowhere = ExchangeRequest { cpus: [*one, 1_000_000], program: &variants()[0], line: 0, is_control: false };
        assert!(remotes.exchange_messages(&nowhere).unwrap().is_err());
    }
    /// The lines that both sides of an exchange use, as offsets in the shared pages.
    fn places(line: usize, apart: bool) -> [i32; 2] {
        let clock = Clock::find_named("rdtscp-lfence").expect("it is a timing method");
        let asked = ExchangeRequest { cpus: [0, 1], program: &variants()[0], line, is_control: apart };
        build_batches(&asked, 1, [clock; 2]).map(|batch| {
            assert!(batch.layouts.iter().all(|layout| layout.data == batch.layouts[0].data));
            batch.layouts[0].data[0]
        })
    }

    /// Bytes of a pair of lines, which a core fetches together.
    const PAIR: i32 = 128;
    /// Bytes of a page.
    const OF_PAGE: i32 = PAGE_BYTES as i32;

    #[test]
    fn both_sides_share_a_line_and_controls_share_no_page() {
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
    fn each_line_is_in_its_own_pair_of_lines() {
        let pairs: BTreeSet<i32> = (0..32).map(|line| places(line, false)[0] / PAIR).collect();
        assert_eq!(pairs.len(), 32);
    }

    #[test]
    fn a_control_has_fewer_rounds() {
        let clock = Clock::find_named("rdtscp-lfence").expect("it is a timing method");
        let rounds = [false, true].map(|apart| {
            let asked = ExchangeRequest { cpus: [0, 1], program: &variants()[0], line: 0, is_control: apart };
            let [ask, _] = build_batches(&asked, 1, [clock; 2]);
            ask.layouts.len() * ask.rounds as usize
        });
        assert!(rounds[1] * 4 <= rounds[0] && rounds[1] > 0, "{rounds:?}");
    }

    #[test]
    fn a_cpu_in_use_by_another_run_yields_a_reason() {
        let ran = |disturbed| RemoteOutcome { samples: Vec::new(), disturbed };
        for (one, other) in [(false, false), (true, false), (false, true)] {
            let checked = check_undisturbed(&ran(one), &ran(other), 1);
            assert_eq!(checked.is_err(), one || other, "{checked:?}");
        }
    }
}
